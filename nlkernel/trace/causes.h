/*
 * Causality within a process: which request makes a thread send a call to another server.
 *
 * The module knows the requests that each thread has received and not yet answered. A call belongs to such a request
 * only if the following proves it; otherwise its cause is ambiguous:
 * - the thread has only one such request, as a thread of a server with a thread or process per connection
 * - the thread is an event loop, and since it last waited for events with nothing else to do, it has received data for
 *   this request only
 * - the thread is an event loop, and the data for this request was the last that it received, and it has not asked for
 *   events since then
 * Data for a request is its own bytes, and the replies to its calls. An event loop that reads the data of several
 * connections first, and handles them later, asks for events without waiting in between. Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_CAUSES_H
#define NLKERNEL_TRACE_CAUSES_H

#include "bpf/trace.h"
#include "trace/span.h"

typedef struct causes causes;

causes *causes_new(void);
void causes_free(causes *c); /* NULL is allowed */

/* Notes that a thread has received data for a request in a server, which is not answered yet. */
void causes_receive(causes *c, span *request, const struct trace_event *event);

/* Notes that a thread has received data that belongs to no request. */
void causes_receive_other(causes *c, const struct trace_event *event);

/* Notes that a request has been answered. */
void causes_answer(causes *c, span *request);

/*
 * Returns the request that makes a thread send a call or open a connection, or NULL. Sets *cause, and *candidates if
 * the cause is ambiguous.
 */
span *causes_find(causes *c, const struct trace_event *event, span_cause *cause, uint32_t *candidates);

/* Forgets threads that have no request and have not been seen since a time. */
void causes_expire(causes *c, int64_t before_ns);

#endif
