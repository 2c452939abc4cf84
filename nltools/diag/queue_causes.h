/*
 * Causes of queues: visits may wait for a lock or for servers because of another fault. Without this fault, most waits
 * would vanish, so the fault is a better finding than the queue. Not thread-safe.
 */
#ifndef NLDIAG_QUEUE_CAUSES_H
#define NLDIAG_QUEUE_CAUSES_H

#include "diag/search.h"

/*
 * Visits may wait before a span because the span's earlier visits take long. The function computes which waits would
 * vanish without the cause of the span's times. If these are at least half of the waits that `largest` claims, returns
 * the span's candidate, and sets *saved to the time that each waiting visit would save. Otherwise, returns `largest`.
 */
candidate *queue_find_server(search *s, candidate *largest, float **saved);

/*
 * A caller that tries again after failures may look like a queue, because many callers wait at the same time. Returns
 * the candidate for these failures if it claims at least half of the time that the queue `largest` claims. Otherwise,
 * returns `largest`.
 */
candidate *queue_find_failures(const search *s, candidate *largest);

/*
 * If a host, a resource or a pause causes visits of a span to wait for each other, because it makes some of them slow,
 * replaces `queue` with this cause and returns true. Otherwise, returns false. Requires two conditions:
 * - The waits that would vanish without the cause are at least half of the waits that `queue` claims. Or these waits
 * and the longer service last at least as long as the waits that `queue` claims.
 * - The cause explains at least half of the variation that `queue` explains.
 */
bool queue_find_slow_service(search *s, candidate *queue);

#endif
