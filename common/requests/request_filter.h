/*
 * Expressions that select whole requests:
 *
 *   request.duration > 50ms && any(STATUS >= 500)
 *   span("Query").self > 10ms || span("Query") on critical path
 *
 * The terms are combined as in expressions on records (doc/expressions.md). A term is true in the following cases:
 * - request.duration with a comparison: the request's duration satisfies the comparison
 * - any(EXPRESSION): at least one record of the request matches the expression
 * - span("NAME"): the request has a span whose name matches the fnmatch(3) pattern NAME
 * - span("NAME").duration, .self or .path (the time on the critical path) with a comparison: at least one such span
 *   satisfies the comparison
 * - span("NAME") on critical path: the critical path goes through such a span
 * - on critical path: the critical path goes through any span
 *
 * A request_filter is constant, and any thread may use it.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_FILTER_H
#define NETLOGGER_REQUESTS_REQUEST_FILTER_H

#include "program/absent_fields.h"
#include "requests/request_graph.h"

typedef struct request_filter request_filter;

/* Returns whether an expression selects requests; otherwise, it selects records. */
bool request_filter_selects_requests(const char *expression);

/*
 * Changes *filter so that it also requires an expression. A filter that is NULL matches all requests. If the expression
 * is invalid, sets the current thread's error, does not change *filter, and returns false.
 */
bool request_filter_narrow(request_filter **filter, const char *expression);
void request_filter_free(request_filter *f); /* NULL is allowed */

/* Adds the fields that expressions in any() name. */
void request_filter_add_fields(const request_filter *f, absent_fields *fields);

/* Returns the value of request_event.matches for the event of a record. */
uint32_t request_filter_match_record(const request_filter *f, const nl_record *record);

/*
 * Returns whether the filter selects a record that belongs to no request. `matches` is the result of
 * request_filter_match_record. A filter whose terms are all any(EXPRESSION) treats the record as a request with one
 * record. All other filters select no such record.
 */
bool request_filter_matches_single(const request_filter *f, uint32_t matches);

/* Returns whether the filter selects a request. The member `matches` of each event must be set. */
bool request_filter_matches(const request_filter *f, const request_graph *g, const event_names *names);

#endif
