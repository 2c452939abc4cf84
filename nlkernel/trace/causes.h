/*
 * Causality within a process: which request makes a thread send a call to another server.
 *
 * The module knows the requests that each thread has received and not yet answered. A call belongs to such a request
 * only in these cases; otherwise, its cause is ambiguous:
 * - The thread has only one such request, as in a server with a thread or process per connection.
 * - The thread is an event loop, and handles data that it has received for this request; every other request is being
 *   answered, or waits for the reply to a call or for a connection. The thread has not waited for events since it
 *   received the data, and either it has not received data for another request since it last waited, or it has done
 *   nothing else since it received this data.
 * - The connection was opened for this request, which has sent no other call since; every other request waits as above.
 * Data for a request is the request's own bytes, and the replies to its calls. A request that does not wait as above
 * may be queued in the process, for example for a connection of a pool, and any event may make it run: calls are then
 * ambiguous. Not thread-safe.
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

/*
 * Like causes_find, for the first call on a connection that was opened for a request when the request had sent `calls`
 * calls.
 */
span *causes_find_opener(causes *c, const struct trace_event *event, span *opener, uint32_t calls, span_cause *cause,
                         uint32_t *candidates);

/* Forgets threads that have no request and have not been seen since a time. */
void causes_expire(causes *c, int64_t before_ns);

#endif
