/*
 * Records that have not arrived yet. Numbers of a stream may arrive in any order: over another connection, from a spool
 * or a backup, from NATS. A gap is therefore reported as lost (Netlogd.Lost) only if it is still open after
 * GAPS_GRACE_S seconds. Records that arrive after that are reported too (Netlogd.Found), and no longer count as lost.
 *
 * The module owns the list of gaps, which holds at most GAPS_MAX; if the list is full, the oldest gap is reported
 * early. Only the streams of the outputs determine whether a number has arrived. The server's thread only.
 */
#ifndef NETLOGD_GAPS_H
#define NETLOGD_GAPS_H

#include <netlogger.h>

#include "reader/decoder.h"

enum { GAPS_GRACE_S = 5, GAPS_MAX = 4096 };

typedef struct gaps_counts {
    uint64_t lost;  /* records reported as lost, so far */
    uint64_t found; /* those of the lost records that arrived later */
} gaps_counts;

/* Starts with no gaps. streams and log must remain valid until gaps_free. log may be NULL. */
void gaps_start(const nl_streams *streams, nl_log *log);
void gaps_free(void);

/*
 * Adds a gap that a decoder noticed. If the program itself dropped the records, reports them at once. peer and message
 * (which may be "") name the sender. number counts the gaps of this sender, including this one: the first ten are
 * reported one by one.
 */
void gaps_note(const nl_lost *what, const char *peer, const char *message, uint64_t number);

/* Reports the gaps that are due at a time of nl_monotonic_ns. Called about once a second. */
void gaps_check(int64_t now_ns);

/* Reports all open gaps. For the end of the program. */
void gaps_end(void);

const gaps_counts *gaps_get_counts(void);

/* Returns the number of records that were reported as lost and have not arrived since. */
uint64_t gaps_count_lost(void);

#endif
