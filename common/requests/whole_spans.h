/*
 * Learns from many requests which spans contain other spans, if one record describes each span and no record names a
 * parent.
 *
 * The times of such spans show the structure of a request: a span contains the spans that it calls. A span of one kind
 * may be the parent of a span of another kind if it contains that span in nearly all requests. If a third span contains
 * both, they may also be two concurrent calls of the third span. To decide between a parent and two concurrent calls,
 * the module compares how much two times before the start of the inner span vary. The first is the time since the start
 * of the third span or the end of its previous call. The second is the time since the start of the other span. If the
 * calls are concurrent, the first time varies less, because the second time is the difference of two independent times.
 * Asynchronous spans begin within their parent, but may end after it. A span that no other span contains may follow the
 * end of another span. The module also decides this by how much the time between them varies.
 *
 * The module is a part of precedence.h, which is its only caller. Memory is bounded: WHOLE_SPANS_MAX spans and
 * WHOLE_KINDS_MAX kinds of spans. Only one thread at a time may use the result.
 */
#ifndef NETLOGGER_REQUESTS_WHOLE_SPANS_H
#define NETLOGGER_REQUESTS_WHOLE_SPANS_H

#include "requests/program_families.h"

enum { WHOLE_KINDS_MAX = 128, WHOLE_SPANS_MAX = 1 << 16 };

/* The largest result of whole_spans_rounding, in nanoseconds. */
#define WHOLE_ROUNDING_MAX_NS INT64_C(2000000)

typedef struct whole_spans whole_spans;

/* `families` determines the kinds of events, and must outlive the result. */
whole_spans *whole_spans_new(const program_families *families);
void whole_spans_free(whole_spans *w); /* NULL is allowed */

/* Learns from the events of one request. Ignores large requests. If `names` is NULL, names do not show which events
 * begin or end spans. */
void whole_spans_learn(whole_spans *w, const event_names *names, const request_event *events, size_t count);

/* Determines the relations of the kinds, after learning. May be called again after more learning. */
void whole_spans_settle(whole_spans *w);

/*
 * Returns the maximum difference of two times, in nanoseconds, that the rounding of the events' times and durations
 * explains.
 */
int64_t whole_spans_rounding(const whole_spans *w, const request_event *a, const request_event *b);

/* Returns whether spans of the kind of `outer` can be the parents of other spans. */
bool whole_spans_can_contain(const whole_spans *w, const request_event *outer);

/* Returns whether the span that `outer` describes can be the parent of the span that `inner` describes: their kinds and
 * times agree. */
bool whole_spans_are_nested(const whole_spans *w, const request_event *outer, const request_event *inner);

/*
 * Returns the certainty, from 0 to 1, that an event of the kind of `cause` makes the span of `effect` begin. Returns 0
 * if the module has not found this relation.
 */
double whole_spans_follow(const whole_spans *w, const request_event *cause, const request_event *effect);

#endif
