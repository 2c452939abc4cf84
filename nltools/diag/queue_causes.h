/*
 * Causes of queues: visits may wait for a lock or for servers because of another fault. Without this fault, most waits
 * would vanish, so the fault is a better finding than the queue. Not thread-safe.
 */
#ifndef NLDIAG_QUEUE_CAUSES_H
#define NLDIAG_QUEUE_CAUSES_H

#include "diag/search.h"

/*
 * Visits may wait before a span because the span's earlier visits take long. The function computes which waits would
 * vanish without the cause of the span's times. If these waits are at least half of the waits that `largest` claims,
 * returns the span's candidate, and sets *saved to the time that each waiting visit would save. The caller frees *saved
 * with g_free. Otherwise, returns `largest`.
 */
candidate *queue_find_server(search *s, candidate *largest, float **saved);

/*
 * Callers that try again after failures may look like a queue, because many of them wait at the same time. Returns the
 * candidate for these failures if it claims at least half of the time that the queue `largest` claims. Otherwise,
 * returns `largest`.
 */
candidate *queue_find_failures(const search *s, candidate *largest);

/*
 * If visits of a span wait for each other only because a host, a resource or a pause makes some of them slow, replaces
 * `queue` with this cause and returns true. Otherwise, returns false. Requires two conditions:
 * - Without the cause, at least half of the waits that `queue` claims would vanish, or the waits and the service
 *   together would become shorter by at least the waits that `queue` claims.
 * - The cause explains at least half of the variation that `queue` explains.
 */
bool queue_find_slow_service(search *s, candidate *queue);

#endif
