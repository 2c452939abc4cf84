/*
 * The producing half.
 *
 *   nl_log *log = nl_open("testProg", "x-netlog://dolly.lbl.gov");
 *   nl_write(log, NL_USAGE, "WriteData", "SEND.SZ=%ld FILE=%s", size, name);
 *   nl_close(log);
 *
 * A log is a stream of records from one program to one destination. What is logged goes into a ring of the calling
 * thread's, in memory that outlives the process (recover.h); a writer thread of the log stamps records with host and
 * program, puts those of all threads in order of time (but for what a thread was about for more than 100 ms), and sends
 * them, within milliseconds. So a call takes no time for the destination's sake, unless the ring is full: then the
 * log's policy holds. The library never changes the CPU affinity of a thread. What is lost is counted, and a record
 * NetLogger.Lost says in the log itself how many events there were (COUNT) and between which times (FROM, TO). So is an
 * event whose memory the program has overwritten, which costs no other one; where even its size is gone the record says
 * how many BYTES were passed over, which is one event at least. The REASON is given then.
 *
 * A log may be used by any number of threads at once. After fork() the child may go on logging: it does not repeat what
 * the parent had logged, and to a collector it opens a connection of its own. (That is fork(), and what goes through
 * its handlers, pthread_atfork(3). A child of _Fork(), vfork() or a bare clone() must not log: it would write into the
 * parent's rings.) A thread may be cancelled: a call here that takes locks or waits puts that off to its end, but
 * asynchronous cancelability must be off. A daemon may close all descriptors and change its folder after nl_open: names
 * of files are made whole there, and descriptors that are gone are not used, but opened again. A program that ends
 * without nl_close has its logs sent at exit(); one that is killed leaves them to nlrecover.
 *
 * Privileges: what is to be recovered after a kill lies in files that belong to the user who the process was when it
 * opened its first log. A program that becomes another user after that is to open its logs afterwards; otherwise rings
 * that are made later (a thread's first event) lie in memory that ends with the process, as they do where there is no
 * shared memory to be had. The log says so, once, by a record NetLogger.Unrecoverable with the REASON.
 *
 * Signal handlers: NL_EVENT is safe (event.h), and so is nl_write of an event and format that the process has used
 * before and whose fields are one integer or %s each; with a format that is new, or with fields that must be printed,
 * it allocates. A call that comes in the middle of another of the same thread is refused and counted as lost, which is
 * safe whatever its format. (All this takes it that the library was loaded before the process had 32 keys of
 * pthread_key_create: setting later ones allocates, at a thread's first event.) nl_is_on and nl_set_level are safe;
 * nothing else here is.
 *
 * The library never ends the program, never raises SIGPIPE in it, and never prints. A log that could not be opened is
 * NULL, and every call here accepts a NULL log and does nothing, so a program need not check. When memory runs out,
 * what is in the rings waits until there is memory again; an event that cannot get into a ring is counted as lost.
 *
 * Environment. The library ignores every variable in a program that has more rights than the user who started it
 * (set-user-ID, set-group-ID, file capabilities):
 *   NETLOGGER_DEST   the destination of logs opened with a NULL url
 *   NETLOGGER_ON     0, no, off or false: nothing is opened and nothing written
 *   NETLOGGER_ACTIVATION  the activation file of logs whose url names none; see nl_control
 *   NETLOGGER_LEVEL  the threshold that logs start with, a level's name; what is none counts as Debug, all levels
 *   NETLOGGER_CLOCK  seconds or no: clock= of logs whose url has none
 *   NETLOGGER_HOST   what HOST says, instead of the host's own name
 *   NETLOGGER_SHM    where rings are kept, instead of /dev/shm
 */
#ifndef NETLOGGER_LOG_H
#define NETLOGGER_LOG_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#include <stdarg.h>

NL_BEGIN_DECLS

typedef struct nl_log nl_log;

/* clang-format off */
/*
 * Opens a log. prog is the program's name (PROG), copied. url is a destination as url.h has it, with the options
 *
 *   append=yes|no           files: keep what is there (default), or start anew
 *   format=ulm|bp|nlb       default ulm; nlb, the binary format, when the file's name ends in .nlb. Only nlb is
 *                           acknowledged by a collector: text that was sent and not yet written when the collector or
 *                           the connection dies is lost, and nobody counts it. So to a collector: ?format=nlb
 *   zstd=0..19              nlb: blocks are compressed; 0: they are not (default). The text formats take no notice
 *   timeout=SECONDS         collectors: how long a write may take, with connecting and its acknowledgement (default 10),
 *                           but for looking up a host's name, which takes as long as the system's resolver likes;
 *                           pipes: how long nl_open waits until somebody reads, and a write while nobody does
 *   policy=block|newest|oldest|LEVEL
 *                           when a thread's ring is full, nl_policy; LEVEL, a level's name: what is less urgent is
 *                           dropped first
 *   block=SECONDS           how long an event waits then (default 10). After a wait in vain later events do not wait,
 *                           but are dropped at once, until the ring has been emptied by something
 *   ring=SIZE[k|m]          of each thread's ring (default 1m), rounded up to a power of two and to 64k at least, at
 *                           most 1024m. The largest event that it takes is a quarter of it, and never more than 960k
 *   spool=FOLDER            collectors: where records wait on disk while it is away, for this process or the next one.
 *                           FOLDER may not belong to another user (but to root), and other users may not write to it
 *                           (unless it has the sticky bit, as /tmp)
 *   spool_size=SIZE         at most so much of it (default 256m, at least 1m)
 *   spool_full=stop|oldest  then: the rings fill up, and the policy holds (default), while what is in the spool stays
 *                           there; or the oldest records give way, and NetLogger.Lost gives their COUNT and the REASON
 *   fsync=never|flush|SECONDS
 *                           when what is in the spool is made safe against a crash of the machine: never by the
 *                           library; before nl_flush and nl_close return; or then, and so long after it was written at
 *                           the latest (default 1)
 *   backup=URL              a second destination, used while the first is away
 *   activation=FILE         a file of commands as nl_control takes them, which is watched
 *   clock=SECONDS|no        how often the log says how right its host's clock is (default 60 s to collectors; no to
 *                           others): when it is opened and then every so often the records ClockKernel (what the
 *                           kernel knows, Warning when nothing keeps the clock right), ClockTracking (chronyd, where it
 *                           runs) and, to collectors with format=nlb, ClockOffset (by how much the collector's clock and
 *                           this one differ); ClockStep when the clock was set. doc/clocks.md says what is in them
 *   idle=SECONDS            how long the writer thread sleeps at most while nothing is logged (default 0.02); see
 *                           nl_set_idle
 *
 * or NULL for $NETLOGGER_DEST; when that is unset or empty too, logging is off. NULL when it can't be opened
 * (nl_error_message() says why) or logging is off (then nl_error_message() is ""). The log is closed with nl_close.
 * Thread-safe; not for signal handlers.
 */
/* clang-format on */
NL_API nl_log *nl_open(const char *prog, const char *url);

/*
 * Writes one event. event is its name (NL.EVNT). format holds NAME=conversion pairs as printf(3) has them, or is NULL
 * for none: "SEND.SZ=%ld FILE=%s". Fields are told apart by the format, never by what is put in: a %s value holding
 * spaces, quotes, '=' or newlines arrives as the same bytes. Pairs are apart by blanks: a comma is part of a value. %n
 * is refused; so is a format in which no NAME= begins it. A format is read at its first use only. Fields that are one
 * integer (%d %u, of any length) or %s and nothing else cost no printing: they arrive as printf would have put them,
 * but are put so by the log's own thread. NL_OK; NL_OFF when log is NULL or the level is below its threshold; NL_FAILED
 * when the event is lost; NL_MALFORMED when it is logged, but a value of more than 131072 bytes was cut there. errno is
 * left alone. Thread-safe; signal handlers: on top of this page.
 */
NL_API nl_status nl_write(nl_log *log, nl_level level, const char *event, const char *format, ...) NL_PRINTF(4, 5);
NL_API nl_status nl_vwrite(nl_log *log, nl_level level, const char *event, const char *format, va_list arguments)
    NL_PRINTF(4, 0);

/*
 * Writes record as it is, with the log's host, program and the time now where it has none (data NULL, time 0).
 * Results as nl_write. Thread-safe, for records that no other thread changes meanwhile; safe in signal handlers as
 * NL_EVENT is, while no event is switched off by name (nl_control).
 */
NL_API nl_status nl_write_record(nl_log *log, const nl_record *record);

/* What becomes of an event when its thread's ring is full: the destination is slower than the program, or away. */
typedef enum nl_policy {
    NL_POLICY_BLOCK, /* it waits for room, at most the time given, then it is dropped; the default but for collectors */
    NL_POLICY_NEWEST, /* it is dropped; the default for collectors, which must not hold up the program */
    NL_POLICY_OLDEST, /* the oldest events in the ring give way: a flight recorder. While the writer thread is just
                         reading that ring they cannot, and it is dropped instead */
    NL_POLICY_LEVEL,  /* less urgent than keep_level it is dropped as soon as the ring is half full; otherwise it waits
                       */
} nl_policy;

/*
 * Chooses the policy, in place of the URL's. block_ns, nanoseconds, bounds each wait; keep_level is for
 * NL_POLICY_LEVEL. To be called before the log is used by other threads.
 */
NL_API void nl_set_policy(nl_log *log, nl_policy policy, int64_t block_ns, nl_level keep_level);

/*
 * Chooses how long the writer thread sleeps at most while nothing is logged, nanoseconds, in place of the URL's idle=.
 * It looks at the rings 50 times a second else, so that no event has to tell it of itself, which takes 0.1 to 0.3
 * percent of a processor. For programs that log seldom, a second or more is better: the first event after a sleep of
 * more than 20 ms then wakes it, by one system call. Commands of a collector and of an activation file (nl_control)
 * wait for it to look. Not positive: nothing happens. Thread-safe.
 */
NL_API void nl_set_idle(nl_log *log, int64_t idle_ns);

/*
 * Sends what is buffered and waits for that. A destination that was away is tried at once. As long as it takes
 * something the call goes on; when it does not, the call ends after about twice the timeout= of the URL (what is just
 * being tried, and a try for this call), with a backup after twice as much. Finding a host's address comes on top of
 * that: the resolver keeps to /etc/resolv.conf. Thread-safe; not for signal handlers.
 * NL_OK: all is with the destination, with the backup, or in the spool, safe on the disk as fsync= of the URL says.
 * NL_FAILED with the reason: what could not be sent is kept and tried again.
 */
NL_API nl_status nl_flush(nl_log *log);

/* The threshold: events of levels after this one are not written. Any thread, any time. */
NL_API void nl_set_level(nl_log *log, nl_level level);

/* Whether events of a level are written; false when log is NULL. Any thread, any time; signal handlers too. */
NL_API bool nl_is_on(const nl_log *log, nl_level level);

/* clang-format off */
/*
 * Does what commands[0..size) says, a line each; blank lines and those that begin with # say nothing. Words are apart
 * by blanks, patterns are those of fnmatch(3).
 *
 *   level LEVEL                       as nl_set_level
 *   event PATTERN off|on              switches the events of that name, NL_EVENT's and nl_write's, in all logs: those
 *                                     that there are, and those to come
 *   marker PATTERN log [LEVEL]        attaches a probe to markers (marker.h) that logs them here, as Usage if not said
 *   marker PATTERN count              counts their passes
 *   marker PATTERN time PATTERN       takes the time from one marker to another
 *   marker PATTERN off                detaches what such lines have attached to that very pattern
 *   destination URL                   sends on to there, as nl_open takes it: of its options those count that say how
 *                                     to write (format, zstd, append, timeout). Nothing that waits is lost: it goes
 *                                     there, or, when it is in another format, first to where it was to go. A
 *                                     destination that can't be opened changes nothing. Said of a file that is in
 *                                     use already it opens it anew: so a log file is rotated, which was moved away.
 *                                     A collector may only name another collector
 *
 * What is attached is attached once, however often it is said. What is counted and timed is said in the log, in records
 * NetLogger.Marker: every 10 seconds while it changes, and when it is detached. nl_close detaches all.
 *
 * The same lines are read from the activation file (?activation=FILE, or $NETLOGGER_ACTIVATION) when the log is opened
 * and whenever the file has changed; it need not exist. What an earlier version has said and the present one does not
 * say is undone: write it elsewhere and rename it, for a file that is read when half of it is there is obeyed as it
 * stands. Each time it was applied a record NetLogger.Activation counts what is DONE and UNDONE by it;
 * NetLogger.Activation.Error says what could not be.
 *
 * NL_OK; NL_OFF when log is NULL; NL_FAILED when some lines are wrong: nl_error_message() names them, the others are
 * done. Thread-safe; not for signal handlers.
 */
/* clang-format on */
NL_API nl_status nl_control(nl_log *log, const char *commands, size_t size);

/*
 * Whether all lines are commands that a collector may have its clients do, as nl_control would read them; none is done.
 * NL_OK, or NL_FAILED with what is wrong in nl_error_message(). Thread-safe.
 */
NL_API nl_status nl_control_check(const char *commands, size_t size);

/*
 * Flushes and closes; log is gone whatever it returns: closing it again, or logging to it at the same time or later, is
 * undefined. Takes as long as nl_flush may, and a second for a TLS connection; at exit() all logs that are open are
 * flushed together, for as long as the one that takes longest. Not for signal handlers. NL_OK: all is delivered or safe
 * on disk, as nl_flush has it. NL_FAILED when something could not be: nl_error_message() says how many events and why.
 * Those that no ring had room for are lost; those that could not be sent (a collector away, a disk full) stay in shared
 * memory, and nlrecover brings them later, once the process has closed its last log or ended (recover.h). Each such
 * close takes memory, a ring's size a thread, until they are recovered. Nothing stays of logs into - and memory:, or
 * without shared memory.
 */
NL_API nl_status nl_close(nl_log *log);

/*
 * What was written to the destination memory:NAME so far, copied to the end of out. Returns false when there is no such
 * memory. It lasts until nl_memory_free(NAME), or the end of the process. Thread-safe.
 */
NL_API bool nl_memory_read(const char *name, nl_buffer *out);
NL_API void nl_memory_free(const char *name);

NL_END_DECLS
#endif
