/*
 * Learns from the requests of a log before a program builds their graphs. Finds out which events cause other events
 * (precedence.h), small differences between the clocks of hosts (clock_shifts.h), clocks that are doubtful
 * (clock_doubts.h), and which spans wait for children (awaited_spans.h). All programs learn in the same way, so their
 * graphs of a request are equal.
 *
 * The module owns this knowledge. It learns the orders of events from requests without trace IDs, and the spans that
 * wait from traces. It learns about the clocks from both kinds of requests separately. Callers: assembler.c, and nlv
 * for the request that it shows. Only one thread at a time may use a request_learning.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_LEARNING_H
#define NETLOGGER_REQUESTS_REQUEST_LEARNING_H

#include "requests/clock_doubts.h"
#include "requests/request_graph.h"

typedef struct request_learning request_learning;

/* `names` must outlive the result. */
request_learning *request_learning_new(const event_names *names);
void request_learning_free(request_learning *l); /* NULL is allowed */

/* Calls request_learning_add for each request, or request_learning_add_trace for each trace, to learn from. */
typedef void request_learning_walk(void *user, request_learning *l);

/*
 * Learns from the requests without trace IDs. Calls `walk` several times, which must pass the same requests each time.
 * `clocks` are the known bounds of the clocks.
 */
void request_learning_run(request_learning *l, request_learning_walk *walk, void *user, const clock_bounds *clocks);

/* Learns from the events of one request, in order of time. Only request_learning_walk calls this function. */
void request_learning_add(request_learning *l, const request_event *events, size_t count);

/*
 * Learns from traces. Calls `walk` several times; `walk` must pass the same traces to request_learning_add_trace in
 * each call. `clocks` are the known bounds of the clocks.
 */
void request_learning_run_traces(request_learning *l, request_learning_walk *walk, void *user,
                                 const clock_bounds *clocks);

/* Learns from the events of one trace. Overwrites the graph `g`, which then has no events. Only request_learning_walk
 * calls this function. */
void request_learning_add_trace(request_learning *l, request_graph *g, const request_event *events, size_t count,
                                const clock_bounds *clocks);

/*
 * Corrects the times of the events of a request, after request_learning_run or, if `is_trace` is true, after
 * request_learning_run_traces. Sorts the events if a time changes.
 */
void request_learning_correct(const request_learning *l, request_event *events, size_t count, bool is_trace);

/*
 * Builds the graph of a request (request_graph_build). Uses what was learned so far. `is_trace` is true if explicit
 * identifiers join the events. Call request_learning_correct first.
 */
void request_learning_build(const request_learning *l, request_graph *g, request_event *events, size_t count,
                            bool is_trace, const clock_bounds *clocks);

/*
 * Returns the number of hosts whose times request_learning_correct changes. Sets *max_ns to the largest change in
 * nanoseconds, or to 0.
 */
size_t request_learning_corrected_hosts(const request_learning *l, int64_t *max_ns);

/* Returns the clocks that seem to differ. Valid until request_learning_free. */
const clock_doubts *request_learning_clock_doubts(const request_learning *l);

#endif
