/*
 * Finds hosts whose clocks seem to differ so much that requests cannot be measured.
 *
 * Two events on different hosts are linked if the gap between them varies little, because a message joins them. If the
 * clocks are equal, the gaps of links are short, or some of them are positive and others negative, because messages go
 * in both directions. If the gaps between all linked events of two hosts have the same sign and are long, either a
 * clock is wrong by this time, or each message takes this time. The log does not show which of these is true. The
 * module considers neither clocks with a known bound nor traces.
 *
 * Callers: clock_shifts.c, which has the gaps, and request_learning.c, which marks requests. Only one thread at a time
 * may use the object.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_DOUBTS_H
#define NETLOGGER_REQUESTS_CLOCK_DOUBTS_H

#include "requests/clock_gaps.h"

/* Two hosts whose clocks are doubtful. */
typedef struct clock_doubt {
    uint32_t host, other; /* numbers of the hosts */
    int64_t ahead_ns;     /* time by which the clock of `host` may be ahead of the clock of `other`; positive */
} clock_doubt;

typedef struct clock_doubts clock_doubts;

clock_doubts *clock_doubts_new(void);
void clock_doubts_free(clock_doubts *d); /* NULL is allowed */

/* Finds the doubtful clocks. `sets` are the sorted sets of `gaps`; `clocks` are the known bounds of the clocks. */
void clock_doubts_settle(clock_doubts *d, const clock_gaps *gaps, const GPtrArray *sets, const clock_bounds *clocks);

/* Returns the number of pairs of doubtful clocks that a request visits. */
uint32_t clock_doubts_count(const clock_doubts *d, const request_event *events, size_t count);

/* Returns the doubtful clocks, the largest difference first. The module owns the array. */
const clock_doubt *clock_doubts_list(const clock_doubts *d, size_t *count);

#endif
