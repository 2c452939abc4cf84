/*
 * What is changed in a log while the program runs, by nl_control or by its activation file: level, events, probes at
 * markers, destination. And the log's own records, which say what came of it.
 */
#ifndef NETLOGGER_LOG_CONTROL_H
#define NETLOGGER_LOG_CONTROL_H

#include "transport/log_options.h"
#include "transport/destination.h"
#include "transport/writer.h"

#include <pthread.h>
#include <sys/stat.h>

typedef struct nl_control_probe nl_control_probe;

/* A destination that is open and takes the place of the log's as soon as nothing is in the way. */
typedef struct nl_next_destination {
    nl_url *url; /* NULL: there is none */
    nl_destination *destination;
    nl_writer_options writer;
} nl_next_destination;

/* Who attached a probe. */
typedef enum nl_control_origin {
    NL_CONTROL_CALL,
    NL_CONTROL_FILE,
    NL_CONTROL_COLLECTOR, /* a destination may only be another collector then: it has no say over files here */
} nl_control_origin;

/*
 * What an activation file, or the collector, said last. The writer thread's, but for the first look at the file, in
 * nl_open.
 */
typedef struct nl_activation {
    nl_control_origin origin;
    char *path;     /* NULL: there is none */
    char *text;     /* NULL: there was no file */
    nl_buffer done; /* its good lines, as commands are written, each with its NUL */
    struct stat seen;
    int64_t look_ns; /* on the monotonic clock: not looked at before */
    int level_before;
} nl_activation;

typedef struct nl_log_control {
    pthread_mutex_t mutex; /* for what follows up to the next comment; log->mutex may be taken within */
    nl_control_probe *probes;
    bool closing; /* nothing is attached any more */

    /* The writer thread's. */
    nl_activation activation;
    nl_activation collector; /* what the collector has asked for */
    int64_t report_ns;       /* on the monotonic clock: when counts are reported next */

    /* log->mutex is for these. */
    nl_record **said; /* the log's own records that are still to be sent */
    size_t said_count;
    nl_next_destination next;
    nl_url *first_url; /* the one that the log was opened with: options are texts in it */
} nl_log_control;

/* ---- control.c ---- */

/*
 * Does the commands in text[0..size), or with log NULL only reads them: each good one is appended to *good (which may
 * be NULL), written in one way, with its NUL. NL_OK, or NL_FAILED with the lines that are bad and why, when any is.
 */
nl_status nl_control_do(nl_log *log, nl_control_origin origin, const char *text, size_t size, nl_buffer *good);

/* Undoes a command as nl_control_do wrote it, which the activation held and holds no more. NL_OK or NL_FAILED. */
nl_status nl_control_undo(nl_log *log, const nl_activation *activation, const char *command);

/* Reports counts that have changed, when it is time. By the writer thread. */
void nl_control_report(nl_log *log);

/* The log is being closed: takes off every probe, and reports the last counts. */
void nl_control_finish(nl_log *log);
void nl_control_free(nl_log *log);

/* ---- activation.c ---- */

/* Looks at the activation file when it is time to, and does what it says. */
void nl_activation_look(nl_log *log);

/* Does what the collector of a log (user) says, in place of what it said before; for nl_destination_options. By the
 * writer thread. */
void nl_activation_hear(void *user, const char *commands, size_t size);

/* ---- own_records.c ---- */

/* A record of the log's own, to be filled and given to nl_log_say, which takes it; whatever the threshold. */
nl_record *nl_log_record(nl_log *log, nl_level level, const char *event);
void nl_log_say(nl_log *log, nl_record *record);

/*
 * Encodes the first of what was said and not sent, all of one level with one_level, to the end of out; how many. Then
 * they are dropped.
 */
size_t nl_log_said_encode(nl_log *log, bool one_level, nl_format format, nl_buffer *out, nl_level *level);
void nl_log_said_drop(nl_log *log, size_t count);

#endif
