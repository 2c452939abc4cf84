/*
 * The options of a log's URL, such as ?policy=oldest&ring=4m&format=nlb, and the environment variables of the library.
 * Both are rows (base/option.h), so that programs can list them. No state; any thread.
 */
#ifndef NETLOGGER_TRANSPORT_LOG_OPTIONS_H
#define NETLOGGER_TRANSPORT_LOG_OPTIONS_H

#include "base/option.h"
#include "transport/url.h"
#include "transport/writer.h"

/* What happens to an event when its thread's ring is full. */
typedef struct nl_ring_policy {
    nl_policy kind;
    int64_t block_ns;    /* the longest time that an event waits */
    nl_level keep_level; /* NL_POLICY_LEVEL */
} nl_ring_policy;

/* spool_sync_ns, when it is not a duration */
enum { NL_SPOOL_SYNC_NEVER = -1, NL_SPOOL_SYNC_FLUSH = -2 };

typedef struct nl_log_options {
    nl_writer_options writer; /* format, append, timeout, zstd */
    nl_ring_policy policy;
    size_t ring_size;       /* bytes of a thread's ring, a power of two */
    const char *spool;      /* the directory where records wait while the destination is away, or NULL */
    size_t spool_size;      /* bytes */
    int64_t spool_sync_ns;  /* from writing to syncing at most, besides at each flush */
    bool spool_oldest;      /* a full spool drops the oldest records; otherwise the rings fill */
    const char *backup;     /* a second destination, for while the first is away, or NULL */
    const char *activation; /* the file that switches events and markers, or NULL */
    int64_t clock_ns;       /* between records of the clock's quality; 0 or less: there are none */
    int64_t idle_ns;        /* the longest sleep of the writer thread while nothing is logged */
    int policy_choice;      /* the index in the choices of policy=; 0: not given */
} nl_log_options;

/* The options of a log's URL besides those of writers (nl_writer_rows) and TLS (nl_dialer_rows). */
extern const nl_option nl_log_rows[];

/* Reads the options of url over the defaults for its scheme and, with environment, over the environment. Texts belong
 * to url or to the environment. NL_OK, or NL_FAILED with the reason in nl_error_message(). */
nl_status nl_log_options_read(nl_log_options *options, const nl_url *url, bool environment);

/* The values of the library's environment variables that have no option of a URL; texts are NULL when not set. */
typedef struct nl_environment {
    const char *destination, *host, *shm;
    int on;         /* odd: logging is on */
    nl_level level; /* the threshold of new logs */
} nl_environment;

extern const nl_option nl_environment_rows[];

/* Reads the variables. Returns false and sets the error when one is invalid; the others are set nevertheless. */
bool nl_environment_read(nl_environment *environment);

#endif
