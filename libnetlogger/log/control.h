/*
 * Changes a log while the program runs. nl_control, an activation file or a collector can change the level, switch
 * events, attach probes to markers, and change the destination. The module also writes the log's own records, which
 * report the results.
 */
#ifndef NETLOGGER_LOG_CONTROL_H
#define NETLOGGER_LOG_CONTROL_H

#include "transport/log_options.h"
#include "transport/destination.h"
#include "transport/writer.h"

#include <pthread.h>
#include <sys/stat.h>

typedef struct nl_control_probe nl_control_probe;

/* An open destination that replaces the log's destination as soon as possible. */
typedef struct nl_next_destination {
    nl_url *url; /* NULL: no new destination */
    nl_destination *destination;
    nl_writer_options writer;
} nl_next_destination;

/* Origin of a command, and of a probe. */
typedef enum nl_control_origin {
    NL_CONTROL_CALL,
    NL_CONTROL_FILE,
    NL_CONTROL_COLLECTOR, /* commands from a collector must not name files; the destinations in them must be collectors
                           */
} nl_control_origin;

/*
 * The latest commands of an activation file or a collector. The writer thread owns this struct, except that nl_open
 * reads the file for the first time.
 */
typedef struct nl_activation {
    nl_control_origin origin;
    char *path;       /* NULL: no activation file */
    char *text;       /* NULL: the file did not exist, or has not been read yet */
    nl_buffer done;   /* the valid lines of `text`, as normalized commands, each with a NUL */
    struct stat seen; /* state of the file when it was last read */
    int64_t look_ns;  /* time of the next check on the monotonic clock */
    int level_before; /* the threshold before the first "level" command */
} nl_activation;

typedef struct nl_log_control {
    pthread_mutex_t mutex; /* protects probes and closing; a thread that holds it may lock log->mutex */
    nl_control_probe *probes;
    bool closing; /* the log is being closed, so no more probes may be attached */

    /* Owned by the writer thread. */
    nl_activation activation;
    nl_activation collector; /* commands of the collector */
    int64_t report_ns;       /* time of the next report of counts on the monotonic clock */

    /* Protected by log->mutex. */
    nl_record **own_records; /* the log's own records that are not sent yet */
    size_t own_record_count;
    nl_next_destination next;
    nl_url *first_url; /* the URL of nl_open; options point into it */
} nl_log_control;

/* ---- control.c ---- */

/*
 * Executes the commands in text[0..size), or only parses them if log is NULL. A normalized command is a line whose
 * words are separated by single spaces. Unless good is NULL, appends to *good each command that succeeded, normalized
 * and with a NUL. Returns NL_OK, or NL_FAILED with the numbers and errors of the lines that failed; the other lines are
 * executed.
 */
nl_status nl_control_do(nl_log *log, nl_control_origin origin, const char *text, size_t size, nl_buffer *good);

/*
 * Undoes a normalized command that the activation file no longer contains, or that the collector has withdrawn.
 * Restores the level or the first destination, removes a rule for events, or detaches a probe. Returns NL_OK, or
 * NL_FAILED with the reason if the first destination cannot be opened.
 */
nl_status nl_control_undo(nl_log *log, const nl_activation *activation, const char *command);

/* Reports counts that have changed, at most every 10 seconds. Only the writer thread calls this function. */
void nl_control_report(nl_log *log);

/* Detaches all probes of a log that is being closed, and reports the last counts. */
void nl_control_finish(nl_log *log);

/*
 * Closes the next destination if the log has not switched to it yet. Call this function after the writer thread has
 * ended, and before the outbox's sender is freed, because the destination uses the sender.
 */
void nl_control_close_next(nl_log *log);
void nl_control_free(nl_log *log);

/* ---- activation.c ---- */

/* If a check is due and the activation file has changed, executes its commands. */
void nl_activation_look(nl_log *log);

/*
 * Replaces the previous commands of the log's collector. `user` is the log. This function is the on_control function of
 * nl_destination_options, and runs in the thread that uses the outbox (outbox.h).
 */
void nl_activation_hear(void *user, const char *commands, size_t size);

/* ---- own_records.c ---- */

/*
 * nl_own_record_new creates one of the log's own records, to which the threshold does not apply; the function returns
 * NULL if memory runs out. nl_own_records_add takes ownership of the record and queues it. nl_own_records_add accepts
 * NULL, and drops the record if 10,000 records are queued or memory runs out.
 */
nl_record *nl_own_record_new(nl_log *log, nl_level level, const char *event);
void nl_own_records_add(nl_log *log, nl_record *record);

/*
 * nl_own_records_encode appends the first queued records to `out` and returns their number. If one_level is true, all
 * these records have the same level. *level is the level of the last appended record. nl_own_records_drop removes count
 * records from the queue.
 */
size_t nl_own_records_encode(nl_log *log, bool one_level, nl_format format, nl_buffer *out, nl_level *level);
void nl_own_records_drop(nl_log *log, size_t count);

#endif
