/*
 * Learns which spans wait for a child that ends after them in the log.
 *
 * A child that ends after its parent is either asynchronous, or the parent waited for it. In the second case, the
 * clocks of their hosts differ, or the child's program logs the end of the span after it has sent its reply. If the
 * parent did not wait, the child ends at any time after the parent. If the parent waited, the time between the two ends
 * varies much less than the durations of these children. A few late children suffice to see this difference.
 *
 * The module distinguishes children by the names and programs of the two spans. It owns the times of the spans until
 * awaited_spans_settle. Memory is bounded by AWAITED_KINDS_MAX and AWAITED_TIMES_MAX. Callers: request_learning.c adds
 * the times; request_graph.c and clock_alignment.c query the result. Only one thread at a time may use the object.
 */
#ifndef NETLOGGER_REQUESTS_AWAITED_SPANS_H
#define NETLOGGER_REQUESTS_AWAITED_SPANS_H

#include "requests/request_graph.h"

enum {
    AWAITED_KINDS_MAX = 4096, /* maximum number of pairs of spans' names, programs and hosts */
    AWAITED_TIMES_MAX = 1000, /* maximum number of children from which the module learns for each of these pairs */
};

typedef struct awaited_spans awaited_spans;

awaited_spans *awaited_spans_new(void);
void awaited_spans_free(awaited_spans *a); /* NULL is allowed */

/* Learns from the logged times of the spans with explicit parents. */
void awaited_spans_learn(awaited_spans *a, const request_graph *g);

/* Ends the learning. */
void awaited_spans_settle(awaited_spans *a);

/*
 * Returns whether the parent waited for a child that ends late_ns nanoseconds after the parent. Returns false if the
 * module does not know this, or if `a` is NULL.
 */
bool awaited_spans_include(const awaited_spans *a, const request_span *parent, const request_span *child,
                           int64_t late_ns);

#endif
