/*
 * How the trace clock and the real-time clock belong together.
 *
 * The kernel stamps events by CLOCK_MONOTONIC (trace clock mono), programs by CLOCK_REALTIME. Both are slewed alike, so
 * what lies between them changes only when the clock is set. It is measured again and again: the real-time clock read
 * between two readings of the other, the closest of several tries; and at once when the kernel says that the clock was
 * set. What happened before that has the time that programs read then. One thread measures, any may convert.
 */
#ifndef NLKERNEL_REALTIME_H
#define NLKERNEL_REALTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct realtime {
    _Atomic int64_t offset_ns; /* to be added to a time of the trace clock, */
    _Atomic int64_t since_ns;  /* from this one on; before it another was right: */
    _Atomic int64_t before_ns;
    int timer_fd;         /* readable when the clock was set; -1 where the kernel does not say so */
    int64_t error_ns;     /* which may be off by so much */
    int64_t namespace_ns; /* what this process's namespace of time adds to the monotonic clock */
} realtime;

void realtime_start(realtime *r);
void realtime_stop(realtime *r);

/* Measures again. True when the clock was set meanwhile: the offset is another one. */
bool realtime_update(realtime *r);

/* The time of an event, nanoseconds since 1970 UTC. */
static inline int64_t realtime_of(const realtime *r, uint64_t trace_ns)
{
    if (__builtin_expect((int64_t)trace_ns < atomic_load_explicit(&r->since_ns, memory_order_acquire), 0))
        return (int64_t)trace_ns + atomic_load_explicit(&r->before_ns, memory_order_relaxed);
    return (int64_t)trace_ns + atomic_load_explicit(&r->offset_ns, memory_order_relaxed);
}

#endif
