/*
 * The offset between the trace clock and the real-time clock.
 *
 * The kernel stamps events with CLOCK_MONOTONIC (trace clock mono), and programs use CLOCK_REALTIME. NTP slews both
 * clocks equally, so their offset changes only when the real-time clock is set. nlkernel measures the offset
 * repeatedly, and immediately when the kernel reports that the clock was set. A measurement reads the real-time clock
 * between two readings of the monotonic clock, and keeps the most precise of several attempts. The previous offset
 * applies to events before the setting of the clock. One thread measures, and any thread may convert times.
 */
#ifndef NLKERNEL_REALTIME_H
#define NLKERNEL_REALTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct realtime {
    _Atomic int64_t offset_ns; /* real time minus trace clock, for times at or after since_ns */
    _Atomic int64_t since_ns;  /* time of the trace clock */
    _Atomic int64_t before_ns; /* the offset for times before since_ns */
    int timer_fd;              /* readable when the clock was set; -1 if the kernel does not report this */
    int64_t error_ns;          /* maximum error of offset_ns */
    int64_t namespace_ns;      /* offset that this process's time namespace adds to the monotonic clock */
} realtime;

/* Measures the offset, and arms the timer. */
void realtime_start(realtime *r);
void realtime_stop(realtime *r);

/* Measures the offset again. Returns whether the real-time clock was set since the last measurement. */
bool realtime_update(realtime *r);

/* Converts a time of the trace clock to nanoseconds since 1970 UTC. */
static inline int64_t realtime_of(const realtime *r, uint64_t trace_ns)
{
    if (__builtin_expect((int64_t)trace_ns < atomic_load_explicit(&r->since_ns, memory_order_acquire), 0))
        return (int64_t)trace_ns + atomic_load_explicit(&r->before_ns, memory_order_relaxed);
    return (int64_t)trace_ns + atomic_load_explicit(&r->offset_ns, memory_order_relaxed);
}

#endif
