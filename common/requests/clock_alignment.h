/*
 * Corrects hosts' clocks within one request, and counts effects that precede their causes.
 *
 * If hosts' clocks differ, a span may seem to lie outside the parent that waited for it. The module shifts such a span,
 * with its children on the same host, to the middle of its parent. This assumes equal network delays in both
 * directions. Durations, and the order of events on one host, do not change. The reference clock is that of the host on
 * which the largest tree of spans has its root. A span that begins after its parent has ended is asynchronous, like the
 * consumer of a message queue, and its wait is part of the request. The module shifts such a span only if other spans
 * of the request prove that the clocks are wrong by this much, or if its parent waited for it (awaited_spans.h).
 *
 * The module owns the shifts of the latest request's hosts; the spans have their own shifts (request_span.shift_ns).
 * request_graph.c is its only caller. Only one thread at a time may use an alignment.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_ALIGNMENT_H
#define NETLOGGER_REQUESTS_CLOCK_ALIGNMENT_H

#include "requests/awaited_spans.h"

typedef struct clock_alignment clock_alignment;

clock_alignment *clock_alignment_new(void);
void clock_alignment_free(clock_alignment *a); /* NULL is allowed */

/*
 * Shifts the spans of a request. Their parents and depths must be set. `clocks` is NULL if nothing is known about the
 * clocks, and `awaited` is NULL if nothing is known about spans that wait for children.
 */
void clock_alignment_shift_spans(clock_alignment *a, request_graph *g, const clock_bounds *clocks,
                                 const awaited_spans *awaited);

/* Returns whether any host of the latest request was shifted. */
bool clock_alignment_has_shifts(const clock_alignment *a);

/* Returns the time in nanoseconds to add to a host's events that belong to no span; 0 if the host was not shifted. */
int64_t clock_alignment_shift(const clock_alignment *a, uint32_t host);

/* Counts, in g->problems, the spans whose logged times contradict the times of their parents. */
void clock_alignment_check_parents(request_graph *g, const clock_bounds *clocks, const awaited_spans *awaited);

#endif
