/*
 * Records that are not here yet. Numbers of a stream may arrive in any order: over another connection, from a spool or
 * a backup, from NATS. A gap is therefore reported as lost (Netlogd.Lost) only when it is still open after a grace of
 * GAPS_GRACE_S seconds. What arrives after that is reported too (Netlogd.Found), and no longer counts as lost.
 *
 * The module owns the list of gaps, which holds at most GAPS_MAX; the oldest is settled early when the list is full.
 * Whether a number has come is decided by the server's streams alone. One thread.
 */
#ifndef NETLOGD_GAPS_H
#define NETLOGD_GAPS_H

#include <netlogger.h>

#include "reader/decoder.h"

enum { GAPS_GRACE_S = 5, GAPS_MAX = 4096 };

typedef struct gaps gaps;

typedef struct gaps_counts {
    uint64_t lost;  /* records reported as lost, so far */
    uint64_t found; /* of these, records that came later */
} gaps_counts;

/* streams and log must outlive the list. log may be NULL. Freed with gaps_free. */
gaps *gaps_new(const nl_streams *streams, nl_log *log);
void gaps_free(gaps *g);

/*
 * Notes a gap that a decoder noticed. Records that the program dropped itself are reported at once. peer and message
 * (which may be "") name the sender. number is how many gaps this sender had, this one included: the first ten are
 * reported one by one.
 */
void gaps_note(gaps *g, const nl_lost *what, const char *peer, const char *message, uint64_t number);

/* Reports what is due at that time of nl_monotonic_ns; call it about once a second. */
void gaps_check(gaps *g, int64_t now_ns);

/* Reports all gaps that are open, because netlogd ends. */
void gaps_end(gaps *g);

const gaps_counts *gaps_get_counts(const gaps *g);

/* The records that are lost as far as is known: reported, and not found since. */
uint64_t gaps_count_lost(const gaps *g);

#endif
