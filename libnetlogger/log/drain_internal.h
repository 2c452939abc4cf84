/*
 * Declarations that the two halves of the drain share: text (drain.c) and blocks (drain_block.c).
 */
#ifndef NETLOGGER_LOG_DRAIN_INTERNAL_H
#define NETLOGGER_LOG_DRAIN_INTERNAL_H

#include "log/drain.h"

enum { ROUNDING_NS = 2000 }; /* a smaller decrease of the time is not a step of the clock */

/*
 * Returns the time of an event. A thread's times can decrease only because of a step of the clock, not because of
 * rounding.
 */
static inline int64_t nl_drain_time_ns(nl_drain *drain, nl_ring *ring, uint64_t ticks)
{
    int64_t time_ns = nl_clock_time_ns(&drain->clock, ticks);
    if (__builtin_expect(time_ns < ring->last_time_ns && (uint64_t)ring->last_time_ns - (uint64_t)time_ns < ROUNDING_NS,
                         0))
        time_ns = ring->last_time_ns;
    ring->last_time_ns = time_ns;
    return time_ns;
}

/*
 * Converts the event at ring->at to drain->record. If the event is damaged or memory runs out, returns false; the
 * record then reports the loss.
 */
bool nl_drain_record(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event);

/* Sets drain->record to a report of a lost event with the reason, and counts the event. */
void nl_drain_lose(nl_drain *drain, nl_ring *ring, uint64_t ticks, const char *reason);

/* Appends a block with only drain->record to `out`. */
void nl_drain_block_record(nl_drain *drain, const nl_ring *ring, nl_buffer *out);

/* Discards the unfinished block. */
void nl_drain_block_forget(nl_drain *drain);

/*
 * Appends to `out` a block of the ring's events up to until_ticks, and advances ring->at and ring->sequence. Returns
 * the number of records in the block.
 */
uint64_t nl_drain_block(nl_drain *drain, nl_ring *ring, uint64_t until_ticks, nl_buffer *out);

#endif
