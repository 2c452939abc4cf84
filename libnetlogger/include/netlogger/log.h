/*
 * Logging.
 *
 *   nl_log *log = nl_open("testProg", "x-netlog://dolly.lbl.gov");
 *   nl_write(log, NL_USAGE, "WriteData", "SEND.SZ=%ld FILE=%s", size, name);
 *   nl_close(log);
 *
 * A log is a stream of records from one program to one destination. A call writes the event to a ring (a circular
 * buffer) of the calling thread. The ring is in shared memory, which outlives the process (recover.h). The log's writer
 * thread adds the host and the program, and sends the records within milliseconds. If the destination is a file of
 * blocks (the binary format), the writer thread writes the records within about 0.1 s. In text, the records of all
 * threads are in order of time, unless a thread is stopped for more than 0.1 s within a call. A call that logs an event
 * never waits for the destination unless the ring is full; then the log's policy applies. The library never changes the
 * CPU affinity of a thread.
 *
 * The library counts lost events and reports them in the log. A NetLogger.Lost record has the number of lost events
 * (COUNT), the times between which they occurred (FROM, TO) and the REASON. If the program overwrites the memory of an
 * event, the other events are unaffected. If the size of the overwritten event is unknown, the NetLogger.Lost record
 * has the number of skipped bytes (BYTES); they contained at least one event.
 *
 * Threads and processes. Any number of threads may use a log at the same time. A child of fork() may continue to log:
 * it does not repeat the events of the parent, and it opens its own connection to a collector. A child of _Fork(),
 * vfork() or clone() must not log, because it would write to the rings of the parent. Cancellation of a thread takes
 * effect after a call, not within it; asynchronous cancellation is not supported. After nl_open, a daemon may close all
 * descriptors and change its working directory. exit() sends the events of all open logs. The events of a killed
 * process remain for nlrecover.
 *
 * Privileges. The rings belong to the user of the process at the first nl_open. A program that changes its user should
 * open its logs afterwards. Otherwise, rings that threads create after the change are in private memory, and nlrecover
 * cannot recover their events. The log reports private rings once, with a NetLogger.Unrecoverable record and its
 * REASON.
 *
 * Signal handlers. NL_EVENT (event.h), nl_is_on and nl_set_level are safe. nl_write is safe if the process has used the
 * event and format before, and each field is a single integer or %s conversion. Otherwise, nl_write may allocate
 * memory. The other functions are not safe. A call that interrupts another call of the same thread is rejected and
 * counted as lost. These guarantees require that the process had fewer than 32 pthread keys when the library was
 * loaded.
 *
 * The library never ends the program and never raises SIGPIPE in it. The library prints only what
 * nl_set_message_handler describes. All functions accept a NULL log and do nothing, so programs need no checks after
 * nl_open. If memory runs out, events in the rings wait, and events for which no ring can be allocated are counted as
 * lost.
 *
 * netlogger(7) describes the environment variables. The library ignores these variables in a program that has more
 * privileges than the user who started the program (set-user-ID, set-group-ID, file capabilities).
 */
#ifndef NETLOGGER_LOG_H
#define NETLOGGER_LOG_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#include <stdarg.h>

NL_BEGIN_DECLS

typedef struct nl_log nl_log;

/*
 * Opens a log. prog is the program's name (PROG); it is copied. url is a destination with options, such as
 * "x-netlog://dolly?ring=4m" (see netlogger(7)). If url is NULL, $NETLOGGER_DEST is the destination; if that variable
 * is unset or empty, logging is off.
 *
 * The log sends blocks to a collector, which acknowledges them and stores them exactly once. With format=ulm, the log
 * sends text, which is not acknowledged. nl_open waits for the connection at most as long as the URL's timeout= option
 * allows. If the log has a spool or a backup destination, nl_open waits at most 1 s. nl_open does not fail if the
 * destination cannot be reached now, for example because the collector is not running. The log then prints one line on
 * standard error, keeps the events in its rings or its spool, and tries again after pauses that double from 0.1 s to 10
 * s. If the peer is not a collector, the log also prints a line and tries again. If a connection is reset after it has
 * transferred text, the text may be lost, and nl_close reports the loss.
 *
 * Returns the log, which the caller closes with nl_close. Returns NULL if logging is off; nl_error_message() is then
 * "". Also returns NULL if the URL is invalid or the destination can never work, such as a file in a missing directory.
 * nl_error_message() then has the reason, and the library prints it in one line on standard error. Thread-safe. Not
 * safe in signal handlers.
 */
NL_API nl_log *nl_open(const char *prog, const char *url);

/* The reason for a message. */
typedef enum nl_message_kind {
    NL_MESSAGE_OPEN,  /* nl_open failed */
    NL_MESSAGE_RETRY, /* the log cannot reach its destination or write to it, and will try again */
    NL_MESSAGE_CLOSE, /* some events are not delivered, because the log is closed, the program exits, or a part of the
                         spool is damaged */
} nl_message_kind;

/* Receives a message: one line without a newline, which is valid during the call. user is the argument of
 * nl_set_message_handler. The library calls the handler in the calling thread or in the writer thread. The handler must
 * not use the log.
 */
typedef void nl_message_handler(void *user, nl_message_kind kind, const char *message);

/*
 * Sets the function that receives all messages of logs. NULL restores the default: the library prints the messages on
 * standard error. A log reports each kind of failure of its destination once. NETLOGGER_QUIET=1, or quiet=yes in the
 * URL, prevents the messages. Call this function before nl_open.
 */
NL_API void nl_set_message_handler(nl_message_handler *handler, void *user);

/*
 * Writes one event. event is the name of the event (NL.EVNT). format consists of NAME=conversion pairs with the
 * conversions of printf(3), separated by spaces, such as "SEND.SZ=%ld FILE=%s"; NULL means no fields. The format alone
 * determines the fields: a %s value with spaces, quotes, '=' or newlines is preserved. A comma is part of a value. %n,
 * and a format that does not begin with NAME=, are errors. The library parses a format at its first use. The writer
 * thread formats fields that are one integer (%d or %u of any length) or %s; the calling thread formats other fields.
 * errno is unchanged. Thread-safe. The top of this file describes the use in signal handlers. Returns:
 *
 *   NL_OK         the event is logged
 *   NL_OFF        log is NULL, the threshold excludes the level, or the event is switched off by name
 *   NL_FAILED     event is NULL, the level or the format is invalid, or the event is lost
 *   NL_MALFORMED  the event is logged, but a value of more than 131072 bytes was truncated
 */
NL_API nl_status nl_write(nl_log *log, nl_level level, const char *event, const char *format, ...) NL_PRINTF(4, 5);
NL_API nl_status nl_vwrite(nl_log *log, nl_level level, const char *event, const char *format, va_list arguments)
    NL_PRINTF(4, 0);

/*
 * Writes a record. A missing host or program (data is NULL) becomes that of the log, and a missing time (0) becomes the
 * current time. Returns the same values as nl_write. Thread-safe if no other thread changes the record. Safe in signal
 * handlers, with the limits that event.h states, unless nl_control has switched off an event by name.
 */
NL_API nl_status nl_write_record(nl_log *log, const nl_record *record);

/* The policy for an event whose ring is full, because the destination is unreachable or slower than the program. */
typedef enum nl_policy {
    NL_POLICY_BLOCK,  /* the thread waits a limited time for free space, then drops the event; default, except for
                       * collectors
                       */
    NL_POLICY_NEWEST, /* the event is dropped; default for collectors */
    NL_POLICY_OLDEST, /* the event replaces the oldest events in the ring (a flight recorder), or is dropped while the
                         writer thread reads the ring */
    NL_POLICY_LEVEL,  /* if the ring is half full, an event less urgent than keep_level is dropped; other events wait as
                         with NL_POLICY_BLOCK */
} nl_policy;

/* Replaces the policy in the URL. block_ns is the maximum wait in nanoseconds. keep_level is used only with
 * NL_POLICY_LEVEL. Call this function before other threads use the log. */
NL_API void nl_set_policy(nl_log *log, nl_policy policy, int64_t block_ns, nl_level keep_level);

/*
 * Sets the maximum time, in nanoseconds, that the writer thread sleeps while nothing is logged. Replaces the URL's
 * idle= option. By default, the thread examines the rings 50 times per second, so that events need not wake it. These
 * examinations take 0.1 to 0.3 % of the time of one processor. Choose one second or more for programs that log rarely.
 * The first event after a sleep of more than 20 ms then wakes the thread with one system call. Commands of a collector
 * or an activation file (nl_control) take effect when the thread wakes. Values <= 0 have no effect. Thread-safe.
 */
NL_API void nl_set_idle(nl_log *log, int64_t idle_ns);

/*
 * Sends all buffered events and waits until they are sent. nl_flush tries an unreachable destination again at once.
 * nl_flush continues while the destination accepts data. Otherwise, nl_flush ends after about twice the URL's timeout=
 * (the current attempt and one more), or four times if the log has a backup destination. Resolving a host name takes
 * additional time (/etc/resolv.conf), except for a log with a spool or a backup destination. A log with a spool moves
 * its events to the spool when an attempt fails, or when the flush has lasted as long as the timeout. Returns NL_OK if
 * all events are at the destination, at the backup, or in the spool (on the disk if the URL's fsync= option requires
 * it). Returns NL_FAILED with the reason otherwise; the log keeps the events and tries again. Thread-safe. Not safe in
 * signal handlers.
 */
NL_API nl_status nl_flush(nl_log *log);

/* Sets the threshold: the log drops events with a level after this level. Safe in any thread and in signal handlers. */
NL_API void nl_set_level(nl_log *log, nl_level level);

/* Returns whether the log writes events of a level; false if log is NULL. Safe in any thread and in signal handlers. */
NL_API bool nl_is_on(const nl_log *log, nl_level level);

/* clang-format off */
/*
 * Executes commands[0..size), one per line. Empty lines and lines that begin with # are comments. Words are separated by
 * spaces. Patterns are those of fnmatch(3).
 *
 *   level LEVEL                       sets the threshold, like nl_set_level
 *   event PATTERN off|on              switches events with a matching name off or on, in all present and future logs
 *   marker PATTERN log [LEVEL]        logs passes of matching markers (marker.h); default level: Usage
 *   marker PATTERN count              counts passes of matching markers
 *   marker PATTERN time PATTERN       measures the time from one marker to another
 *   marker PATTERN off                detaches the probes that earlier commands of this log attached to this pattern
 *   destination URL                   changes the destination. The options format, zstd, append and
 *                                     timeout apply. Buffered events go to the new destination, or, if the format
 *                                     differs, first to the old destination. If the new destination cannot be opened,
 *                                     nothing changes. If URL names the current file, the log reopens it: use this
 *                                     after rotating a log. A collector may name only another collector.
 *
 * Repeated lines have no further effect. The log reports counts and measured times in NetLogger.Marker records, every
 * 10 seconds while they change and when a probe is detached. nl_close detaches all probes.
 *
 * ?activation=FILE or $NETLOGGER_ACTIVATION names an activation file, which need not exist. The log executes the file's
 * commands when the log is opened and whenever the file changes. The log undoes commands that a changed file no longer
 * contains. Write to a temporary file and rename it, because the log would otherwise apply a half-written file. Each
 * time that the log has applied the file, a NetLogger.Activation record reports how many commands were executed (DONE)
 * and undone (UNDONE). NetLogger.Activation.Error records report failures.
 *
 * Returns NL_OK, or NL_OFF if log is NULL. If some lines are invalid, executes the other lines and returns NL_FAILED;
 * nl_error_message() names the invalid lines. Thread-safe. Not safe in signal handlers.
 */
/* clang-format on */
NL_API nl_status nl_control(nl_log *log, const char *commands, size_t size);

/*
 * Checks commands without executing them. Returns NL_OK if a log would accept all of them from a collector, or
 * NL_FAILED with the reason in nl_error_message(). Thread-safe.
 */
NL_API nl_status nl_control_check(const char *commands, size_t size);

/*
 * Flushes and closes a log, and always frees it. The behavior is undefined if the program uses the log during or after
 * nl_close. nl_close takes as long as nl_flush, plus at most 1 s if the log sends text to a collector; exit() flushes
 * all open logs concurrently. Returns NL_OK if all events are sent as nl_flush describes. Otherwise returns NL_FAILED,
 * and nl_error_message() gives the number of unsent events and the reason. Events that did not fit into a ring are
 * lost. Events that could not be sent (for example, because the collector is unreachable or the disk is full) stay in
 * shared memory, one ring per thread. nlrecover delivers them after the process has closed its last log or ended
 * (recover.h). Logs to - and memory:, and logs without shared memory, do not keep unsent events. Not safe in signal
 * handlers.
 */
NL_API nl_status nl_close(nl_log *log);

/*
 * nl_memory_read appends to `out` all bytes that logs have written to memory:NAME. Returns false if no log has written
 * to memory:NAME, or memory runs out. nl_memory_free frees the bytes of memory:NAME. Thread-safe.
 */
NL_API bool nl_memory_read(const char *name, nl_buffer *out);
NL_API void nl_memory_free(const char *name);

NL_END_DECLS
#endif
