/*
 * Causality within a process: which request makes a thread send a call to another server.
 *
 * The module knows the requests that each thread has received and not yet answered. A call belongs to such a request
 * only in the following cases; in all other cases, its cause is ambiguous. A request is called suspended if it is being
 * answered, or waits for the reply to a call or for a connection.
 * - The thread has only one such request, as in a server with a thread or process per connection.
 * - The thread is an event loop, and handles data that it has received for this request; every other request is being
 *   answered, or waits for the reply to a call or for a connection. The thread has not waited for events since it
 *   received the data, and either it has not received data for another request since it last waited, or it has done
 *   nothing else since it received this data.
 * - The connection was opened for this request, which has sent no other call since; every other request waits as above.
 * Data for a request is the request's own bytes, and the replies to its calls. A request that does not wait as above
 * may be queued in the process, for example for a connection of a pool, and any event may make it run: calls are then
 * ambiguous.
 *
 * A thread that has received no request may work on one that another thread of the process has received. Its calls
 * form a job, and are undecided until a request is answered:
 * - The thread itself sends the reply. Then the job belongs to this request, if the thread sent its calls one after the
 *   other, all after the request had arrived, and did not wait for events of several descriptors.
 * - The thread that received the request sends the reply. Then the job belongs to the request if this was the only
 *   request of the process since the thread sent its first call, if the receiver woke an idle thread while it handled
 *   the request, if the thread has since finished its calls and signalled another thread, and if no other job of the
 *   process is in this state. With several requests, jobs may have been exchanged: a thread that was woken for one
 *   request may find another one in the queue.
 * A futex on which a thread both wakes and is woken is a lock; it does not hand over a request. A job that no reply
 * decides in JOB_NS is not caused by a request, or ambiguous if a thread with a request woke its thread.
 *
 * Memory is bounded by UNDECIDED_MAX calls and CHANNELS_MAX futexes and files. Not thread-safe.
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

/* Notes that a thread sends bytes of the reply to a request, which is not answered yet. This decides jobs. */
void causes_reply(causes *c, span *request, const struct trace_event *event);

/* Notes a TRACE_WAKE or TRACE_SIGNAL. */
void causes_wake(causes *c, const struct trace_event *event);

/*
 * Adds a call for which causes_find found no request to the job of its thread. Returns whether a request may be found
 * later: the call is then undecided.
 */
bool causes_defer(causes *c, span *call, const struct trace_event *event);

/* Notes that a thread has received the reply to an undecided call. */
void causes_receive_deferred(causes *c, const span *call, const struct trace_event *event);

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

/* Decides jobs that have been idle for JOB_NS, and forgets threads and processes that have been idle for a long time.
 */
void causes_expire(causes *c, int64_t now_ns);

/* Decides all jobs. */
void causes_finish(causes *c);

#endif
