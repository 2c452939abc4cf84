/*
 * Causality within a process: finds the request that makes a thread send a call to another server.
 *
 * A thread has a request from the time at which it receives the request until the process answers the request. The data
 * for a request consists of the request's own bytes and the replies to its calls. A request is suspended if its reply
 * has begun, or if it waits for the reply to a call or for a connection. Requests may also wait in a queue of the
 * process, for example for a connection of a pool. Any event can make the process continue a request in a queue.
 *
 * A call of a thread that has requests belongs to one of these requests in four cases. In all other cases, the cause of
 * the call is ambiguous.
 * - The thread has only this request, as in a server with a thread or process per connection.
 * - The thread is an event loop, and handles data for this request. All of the following are true:
 *   - All other requests of the thread are suspended. None of them waits for the connection of the call.
 *   - The thread has not waited for events since it received the data.
 *   - Since the thread last waited, it has received data for this request only. Alternatively, this data was the latest
 *     data that the thread received, and the thread has not polled for events since.
 * - The thread opened the connection for this request, this request has sent no other call since, and all other
 *   requests of the thread are suspended.
 * - The call and this request have traceparent headers with the same trace ID, and all other requests of the thread
 *   have other trace IDs.
 *
 * A thread without a request may work on a request of another thread of the process. The calls of the thread form a
 * job. Their cause is undecided until a thread of the process sends a reply:
 * - If the thread with the job sends the reply, the job belongs to the answered request. All of the following must be
 *   true:
 *   - The thread sent its calls one after another, and all of them after the request had arrived.
 *   - The thread has received the replies to its calls.
 *   - The thread did not wait for events of several descriptors.
 *   - The thread sent no call after it had signalled another thread.
 *   - If the connection carries several requests at the same time, the process has no other request. With other
 *     requests, the thread may be sending the replies of other threads on this connection.
 * - If the thread that received the request sends the reply, the job may also belong to the answered request. All of
 *   the following must be true:
 *   - The request has been the only request of the process since the thread with the job sent its first call.
 *   - While the receiver handled the request, it woke a thread without a request.
 *   - If another thread woke the thread with the job for a request, this was the answered request.
 *   - The thread with the job has finished its calls, and has then signalled another thread.
 *   - No other job of the process is in this state. With several requests, a thread that was woken for one request may
 *     find another request in the queue.
 *
 * If a thread wakes other threads on a futex, and other threads wake this thread on the same futex, the futex is a
 * lock. A thread that wakes another thread on a lock does not hand over its request. A job ends without a cause if the
 * process has answered all requests, or if the thread is idle for JOB_NS. The cause is ambiguous if a thread with a
 * request woke the thread with the job.
 *
 * UNDECIDED_MAX (calls) and CHANNELS_MAX (futexes and files) limit the memory. Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_CAUSES_H
#define NLKERNEL_TRACE_CAUSES_H

#include "bpf/trace.h"
#include "trace/span.h"

typedef struct causes causes;

causes *causes_new(void);
void causes_free(causes *c); /* NULL is allowed */

/* Handles data for a request in a server, which a thread has received before the answer to the request. */
void causes_receive(causes *c, span *request, const struct trace_event *event);

/* Handles data that a thread has received, and that belongs to no request. */
void causes_receive_other(causes *c, const struct trace_event *event);

/* Handles the answer to a request. */
void causes_answer(causes *c, span *request);

/* Handles bytes of the reply to an unanswered request. The sending of these bytes shows which request has caused the
 * job of a thread. */
void causes_reply(causes *c, span *request, const struct trace_event *event);

/* Handles a TRACE_WAKE or TRACE_SIGNAL event. */
void causes_wake(causes *c, const struct trace_event *event);

/* Handles a call that a thread has sent, and whose parent is known. */
void causes_call(causes *c, span *call, const struct trace_event *event);

/* Returns the span to which a wait of a thread belongs: the only request of the thread, or the thread's call whose
 * reply has not arrived. Returns NULL if the thread has no request or several requests. */
span *causes_find_waiting(causes *c, const struct trace_event *event);

/* Adds a call, for which causes_find has found no request, to the job of the call's thread. Returns whether the call is
 * undecided, because the module may find a request later. */
bool causes_defer(causes *c, span *call, const struct trace_event *event);

/* Handles the reply to an undecided call, which a thread has received. */
void causes_receive_deferred(causes *c, const span *call, const struct trace_event *event);

/*
 * Returns the request that makes a thread send a call or open a connection, or NULL. Sets *cause to the reason, and
 * *candidates to the number of possible requests.
 */
span *causes_find(causes *c, const struct trace_event *event, span_cause *cause, uint32_t *candidates);

/* Like causes_find, for the first call on a connection that the process opened for the request `opener`. `calls` is the
 * number of calls that the request had sent before. */
span *causes_find_opener(causes *c, const struct trace_event *event, span *opener, uint32_t calls, span_cause *cause,
                         uint32_t *candidates);

/*
 * Returns the request of the call's thread that has the same trace ID in its traceparent header as the call. Returns
 * NULL if several requests have this trace ID, or if the trace ID of a request of the thread is unknown.
 */
span *causes_find_context(causes *c, const struct trace_event *event, const protocol_request *call);

/*
 * Ends jobs that have been idle for JOB_NS, and forgets threads and processes that have been idle for a long time.
 * now_ns is a time of the events' clock.
 */
void causes_expire(causes *c, int64_t now_ns);

/* Ends all jobs. Call this function after the last event. */
void causes_finish(causes *c);

#endif
