/*
 * From readings of the time-stamp counter to time.
 *
 * The counter is read by every event because that costs a third of asking the real-time clock. How the two belong
 * together is measured again at every update, so that the clock's being slewed (by a time daemon) is followed: a time
 * between two readings is interpolated. When the clock was stepped meanwhile, what came before this update keeps the
 * old time. Where the machine has no invariant counter, ticks are nanoseconds of the monotonic clock, which nobody
 * sets, and all the rest is the same. One thread at a time.
 */
#ifndef NETLOGGER_LOG_CLOCK_H
#define NETLOGGER_LOG_CLOCK_H

#include "log/shared.h"

enum { NL_CLOCK_POINTS = 256 };

typedef struct nl_clock {
    bool slow; /* no counter: ticks are nl_private_slow_ticks */
    size_t count;
    nl_clock_point points[NL_CLOCK_POINTS]; /* by ticks */
    size_t segment;                         /* the latest two points used: segment and the one behind */
    uint64_t segment_ticks;                 /* how far they are apart; 0: there is no segment yet */
    double ns_per_tick;                     /* between them */
} nl_clock;

/* Whether the machine's time-stamp counter runs at one rate always and on all cores. */
bool nl_clock_has_counter(void);

/* Begins with a first reading. */
void nl_clock_start(nl_clock *clock);

/* Takes another reading. Returns its ticks: every event up to there can be told its time now. */
uint64_t nl_clock_update(nl_clock *clock);

/* nl_clock_time_ns for ticks outside of the segment in use. */
int64_t nl_clock_find_time_ns(nl_clock *clock, uint64_t ticks);

/* The segment in use by itself, to be kept in registers. */
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

/* The time of ticks, nanoseconds since 1970 UTC. */
static inline int64_t nl_clock_time_ns(nl_clock *clock, uint64_t ticks)
{
    const nl_clock_segment segment = nl_clock_segment_in_use(clock);
    if (__builtin_expect(nl_clock_segment_has(&segment, ticks), 1))
        return nl_clock_segment_time_ns(&segment, ticks);
    return nl_clock_find_time_ns(clock, ticks);
}

/* The time of the latest reading; 0 when there is none. */
static inline int64_t nl_clock_latest_ns(const nl_clock *clock)
{
    return clock->count > 0 ? clock->points[clock->count - 1].time_ns : 0;
}

/* About how many ticks so many nanoseconds are. */
uint64_t nl_clock_ticks(const nl_clock *clock, int64_t duration_ns);

/* Two points far apart, to be kept for who has to go on without this process; and the way back. */
void nl_clock_save(const nl_clock *clock, nl_clock_point points[2]);
void nl_clock_restore(nl_clock *clock, const nl_clock_point points[2], bool slow);

#endif
