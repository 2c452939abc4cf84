/*
 * Converts readings of the time-stamp counter to times.
 *
 * Every event reads the counter, which takes a third as long as reading the real-time clock. Each update reads both the
 * counter and the real-time clock; these two values are a point. The module interpolates between two points, which form
 * a segment, so that times follow a clock whose rate a time daemon changes. Events that occur before a step of the
 * clock keep their times from before the step. If the machine has no invariant counter, ticks are nanoseconds of the
 * monotonic clock. An nl_clock belongs to one thread.
 */
#ifndef NETLOGGER_LOG_CLOCK_H
#define NETLOGGER_LOG_CLOCK_H

#include "log/shared.h"

enum { NL_CLOCK_POINTS = 256 };

typedef struct nl_clock {
    bool slow;                              /* there is no usable counter, and ticks are from nl_private_slow_ticks */
    size_t count;                           /* number of points */
    nl_clock_point points[NL_CLOCK_POINTS]; /* ordered by ticks */
    size_t segment;                         /* index of the point where the segment in use begins */
    uint64_t segment_ticks; /* length of the segment in use, in ticks; 0 if there is no usable segment */
    double ns_per_tick;     /* rate in the segment in use */
} nl_clock;

/* Returns whether the time-stamp counter has a constant rate on all cores. */
bool nl_clock_has_counter(void);

/* Initializes the clock and takes the first reading. */
void nl_clock_start(nl_clock *clock);

/*
 * Adds a point from before nl_clock_start, which has just been called, so that the times of events since that point can
 * be interpolated. elapsed_ns is the time since that point on the monotonic clock. Ignores the point if it is too close
 * to determine a rate, or if the real-time clock has been set since then.
 */
void nl_clock_add_earlier(nl_clock *clock, nl_clock_point point, int64_t elapsed_ns);

/* Takes a reading and returns its ticks. The times of events up to this reading can then be computed. */
uint64_t nl_clock_update(nl_clock *clock);

/* Like nl_clock_time_ns, for ticks outside the segment in use. */
int64_t nl_clock_find_time_ns(nl_clock *clock, uint64_t ticks);

/* A copy of the segment in use, which a loop can keep in registers. */
typedef struct nl_clock_segment {
    nl_clock_point from;
    uint64_t ticks;
    double ns_per_tick;
} nl_clock_segment;

static inline nl_clock_segment nl_clock_segment_in_use(const nl_clock *clock)
{
    return (nl_clock_segment){clock->points[clock->segment], clock->segment_ticks, clock->ns_per_tick};
}

static inline bool nl_clock_segment_has(const nl_clock_segment *segment, uint64_t ticks)
{
    return ticks - segment->from.ticks <= segment->ticks;
}

static inline int64_t nl_clock_segment_time_ns(const nl_clock_segment *segment, uint64_t ticks)
{
    return segment->from.time_ns + (int64_t)((double)(int64_t)(ticks - segment->from.ticks) * segment->ns_per_tick);
}

/* Returns the time of ticks in nanoseconds since 1970 UTC. */
static inline int64_t nl_clock_time_ns(nl_clock *clock, uint64_t ticks)
{
    const nl_clock_segment segment = nl_clock_segment_in_use(clock);
    if (__builtin_expect(nl_clock_segment_has(&segment, ticks), 1))
        return nl_clock_segment_time_ns(&segment, ticks);
    return nl_clock_find_time_ns(clock, ticks);
}

/* Returns the time of the latest reading, in nanoseconds since 1970 UTC; 0 before the first reading. */
static inline int64_t nl_clock_latest_ns(const nl_clock *clock)
{
    return clock->count > 0 ? clock->points[clock->count - 1].time_ns : 0;
}

/* Returns the approximate number of ticks in a duration. If the rate is unknown, this is the number of nanoseconds. */
uint64_t nl_clock_ticks(const nl_clock *clock, int64_t duration_ns);

/*
 * Save two points that determine the latest rate, and restore a clock from them in another process. nl_clock_restore
 * ignores invalid points.
 */
void nl_clock_save(const nl_clock *clock, nl_clock_point points[2]);
void nl_clock_restore(nl_clock *clock, const nl_clock_point points[2], bool slow);

#endif
