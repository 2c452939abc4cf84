/* What the two halves of the drain, text and blocks, share. */
#ifndef NETLOGGER_LOG_DRAIN_INTERNAL_H
#define NETLOGGER_LOG_DRAIN_INTERNAL_H

#include "log/drain.h"

enum { ROUNDING_NS = 2000 };

/*
 * The time of an event. Times within a thread never run backwards by the rounding where two readings of the clock meet;
 * a step of the clock shows.
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

/* Makes drain->record of the event at ring->at. False when that cannot be read: the record says then that it is lost.
 */
bool nl_drain_record(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event);

/* Makes drain->record the one that says that an event is lost, and why; it is counted. */
void nl_drain_lose(nl_drain *drain, nl_ring *ring, uint64_t ticks, const char *reason);

/* Appends a block of drain->record alone, which is small, to out. */
void nl_drain_block_record(nl_drain *drain, const nl_ring *ring, nl_buffer *out);

/* Throws away the block that was begun. */
void nl_drain_block_forget(nl_drain *drain);

/* Appends one block of the ring's events to out. Returns the number of records in it. */
uint64_t nl_drain_block(nl_drain *drain, nl_ring *ring, uint64_t until_ticks, nl_buffer *out);

#endif
