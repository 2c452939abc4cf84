/* What a log's URL asks for: ?policy=oldest&ring=4m&format=nlb. */
#ifndef NETLOGGER_LOG_OPTIONS_H
#define NETLOGGER_LOG_OPTIONS_H

#include "log/ring.h"
#include "transport/url.h"
#include "transport/writer.h"

typedef struct nl_log_options {
    nl_writer_options writer; /* format, append, timeout, zstd */
    nl_ring_policy policy;
    size_t ring_size;       /* bytes of a thread's ring */
    const char *spool;      /* the folder where records wait while the destination is away; the URL's own, or NULL */
    size_t spool_size;      /* bytes that may wait there */
    bool spool_synced;      /* what is there is made safe against a crash of the machine: before a flush ends, */
    int64_t spool_sync_ns;  /* and so long after it was written at the latest; INT64_MAX: no time */
    bool spool_oldest;      /* when they do, the oldest give way; otherwise the rings fill up and the policy says */
    const char *backup;     /* a second destination, for while the first is away */
    const char *activation; /* the file that switches events and markers */
    int64_t clock_ns;       /* between the log's records of its clock's quality; 0: there are none */
    int64_t idle_ns;        /* how long the writer thread sleeps at most while nothing is logged */
} nl_log_options;

/* Reads the options of url over the defaults for its scheme. Texts are the URL's. NL_OK or NL_FAILED. */
nl_status nl_log_options_read(nl_log_options *options, const nl_url *url);

#endif
