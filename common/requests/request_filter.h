/*
 * Expressions that select whole requests:
 *
 *   request.duration > 50ms && any(STATUS >= 500)
 *   span("Query").self > 10ms || span("Query") on critical path
 *
 * A term is a comparison of request.duration; any(EXPRESSION), which is true if one record of the request matches the
 * expression (doc/expressions.md); or span("NAME"), which is true if the request has such a span. NAME is a pattern for
 * fnmatch(3). A comparison of .duration, .self or .path (the time on the critical path) is true if it holds for one of
 * the spans. `span("NAME") on critical path` is true if the critical path goes through such a span, and `on critical
 * path` alone if it goes through any span. The terms are combined as in expressions on records.
 *
 * A request_filter is constant, and any thread may use it.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_FILTER_H
#define NETLOGGER_REQUESTS_REQUEST_FILTER_H

#include "requests/request_graph.h"

typedef struct request_filter request_filter;

/* Returns whether an expression selects requests; otherwise, it selects records. */
bool request_filter_selects_requests(const char *expression);

/*
 * Changes *filter (NULL: all requests) so that it also requires an expression. Returns false, sets the current thread's
 * error and does not change *filter if the expression is invalid.
 */
bool request_filter_narrow(request_filter **filter, const char *expression);
void request_filter_free(request_filter *f); /* NULL is allowed */

/* Returns the value of request_event.matches for an event of a record. */
uint32_t request_filter_match_record(const request_filter *f, const nl_record *record);

/* Returns whether the filter selects a request. The members `matches` of its events are set. */
bool request_filter_matches(const request_filter *f, const request_graph *g, const event_names *names);

#endif
