/*
 * The options of a log's URL (?policy=oldest&ring=4m&quiet=yes), and the library's environment variables, as rows
 * (base/option.h). The module has no state. Any thread may call its functions.
 */
#ifndef NETLOGGER_TRANSPORT_LOG_OPTIONS_H
#define NETLOGGER_TRANSPORT_LOG_OPTIONS_H

#include "base/option.h"
#include "transport/url.h"
#include "transport/writer.h"

/* The treatment of an event whose thread has a full ring. */
typedef struct nl_ring_policy {
    nl_policy kind;
    int64_t block_ns;    /* maximum time that an event waits */
    nl_level keep_level; /* NL_POLICY_LEVEL: less urgent events are dropped */
} nl_ring_policy;

/* Values of spool_sync_ns that are not durations. */
enum { NL_SPOOL_SYNC_NEVER = -1, NL_SPOOL_SYNC_FLUSH = -2 };

typedef struct nl_log_options {
    nl_writer_options writer; /* format, append, timeout, zstd */
    nl_ring_policy policy;
    size_t ring_size;       /* bytes, a power of two */
    const char *spool;      /* directory, or NULL */
    size_t spool_size;      /* bytes */
    int64_t spool_sync_ns;  /* maximum time from writing to syncing */
    bool spool_oldest;      /* a full spool drops the oldest records */
    const char *backup;     /* URL of the second destination, or NULL */
    const char *activation; /* file of control commands, or NULL */
    int64_t clock_ns;       /* interval between records of the clock's quality; 0 or less disables these records */
    int64_t idle_ns;        /* maximum sleep of the writer thread */
    int quiet;              /* an odd value means that the log prints nothing on standard error */
    int policy_choice;      /* index in the choices of policy=; 0 means that the option is not given */
} nl_log_options;

/* The options of a log's URL, besides nl_writer_rows and nl_dialer_rows. */
extern const nl_option nl_log_rows[];

/*
 * Sets options from the defaults for the URL's scheme, the environment (unless environment is false) and the URL. Texts
 * belong to url or the environment. Returns NL_FAILED if an option is invalid.
 */
nl_status nl_log_options_read(nl_log_options *options, const nl_url *url, bool environment);

/* The library's environment variables that are not options of URLs; texts are NULL if not set. */
typedef struct nl_environment {
    const char *destination, *host, *shm;
    int on;         /* index of a choice; an odd index means on */
    int quiet;      /* an odd value means that logs print nothing on standard error */
    nl_level level; /* level threshold of new logs */
} nl_environment;

extern const nl_option nl_environment_rows[];

/*
 * Reads the environment variables. If a variable is invalid, sets the error and returns false after reading the other
 * variables.
 */
bool nl_environment_read(nl_environment *environment);

#endif
