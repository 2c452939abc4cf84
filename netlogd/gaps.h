/*
 * Tracks gaps. A gap is a range of a stream's numbers whose records have not arrived yet. Numbers may arrive in any
 * order, because records may come over another connection, from a spool, from a backup, or from NATS. Therefore,
 * netlogd reports a gap as lost (Netlogd.Lost) only if the gap is still open after GAPS_GRACE_S seconds. If the records
 * arrive later, netlogd reports this (Netlogd.Found) and no longer counts them as lost.
 *
 * The module owns the list of gaps, which has at most GAPS_MAX gaps. If the list is full, the oldest gap is reported
 * early. The streams of the outputs determine whether a number has arrived. Only the server's thread may call this
 * module.
 */
#ifndef NETLOGD_GAPS_H
#define NETLOGD_GAPS_H

#include <netlogger.h>

#include "reader/decoder.h"

enum { GAPS_GRACE_S = 5, GAPS_MAX = 4096 };

typedef struct gaps_counts {
    uint64_t lost;  /* number of records reported as lost so far */
    uint64_t found; /* number of lost records that arrived later */
} gaps_counts;

/* Starts without gaps. `streams` and `log` must remain valid until gaps_free. `log` may be NULL. */
void gaps_start(const nl_streams *streams, nl_log *log);
void gaps_free(void);

/*
 * Adds a gap that a decoder has found. If the program itself dropped the records, reports them immediately. `peer` and
 * `message` (which may be "") name the sender. `number` is the number of this gap among the sender's gaps. Each of the
 * first ten gaps of a sender gets its own report.
 */
void gaps_note(const nl_lost *what, const char *peer, const char *message, uint64_t number);

/* Reports the gaps that are due at now_ns (nl_monotonic_ns). Called about once a second. */
void gaps_check(int64_t now_ns);

/* Reports all open gaps. Called at the end of the program. */
void gaps_end(void);

const gaps_counts *gaps_get_counts(void);

/* Returns the number of records that were reported as lost and have not arrived since. */
uint64_t gaps_count_lost(void);

#endif
