#include "config.h"

#include "log/clock.h"

#include "base/monotonic.h"

#include <math.h>
#include <string.h>

enum {
    READINGS = 3, /* number of readings per update; the module uses the most precise reading */
    SPACING_NS =
        20 * 1000000,     /* minimum time between two points; a point that follows sooner replaces the previous point */
    STEP_NS = 200 * 1000, /* the clock was set if it differs from the expected time with more than STEP_NS + elapsed
                             time / STEP_PART */
    STEP_PART = 1000,     /* a time daemon changes the rate of the clock by at most 1/STEP_PART */
    READING_NS = 2000,    /* error of the distance between two points */
};

#define SANE_NS (INT64_C(1) << 62) /* about 146 years, so times up to the year 2116 are valid */

uint64_t nl_private_slow_ticks(void)
{
    return (uint64_t)nl_monotonic_ns();
}

static uint64_t ticks_now(bool slow)
{
    return nl_private_ticks(&(nl_ring_producer){.slow_clock = slow});
}

static nl_clock_point read_both(bool slow)
{
    nl_clock_point best = {0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t before = ticks_now(slow);
        int64_t time_ns = nl_time_now_ns();
        uint64_t width = ticks_now(slow) - before;
        if (width < narrowest) {
            narrowest = width;
            best = (nl_clock_point){before + width / 2, time_ns};
        }
    }
    return best;
}

/* Makes the segment from point i to the next point the segment in use. */
static void use_segment(nl_clock *clock, size_t i)
{
    const nl_clock_point *from = &clock->points[i], *to = from + 1;
    clock->segment = i;
    int64_t apart_ns = (int64_t)((uint64_t)to->time_ns - (uint64_t)from->time_ns);
    /*
     * Points from damaged memory may be further apart than int64_t allows; the code then uses the slower path, which
     * checks for overflow.
     */
    clock->segment_ticks = apart_ns > -SANE_NS && apart_ns < SANE_NS ? to->ticks - from->ticks : 0;
    clock->ns_per_tick = (double)apart_ns / (double)(to->ticks - from->ticks);
}

static void add_point(nl_clock *clock, nl_clock_point point)
{
    if (clock->count > 0 && point.ticks <= clock->points[clock->count - 1].ticks)
        return;
    if (clock->count == NL_CLOCK_POINTS) {
        /* Remove every other point. The times of events that have waited very long become less precise. */
        for (size_t i = 0; i < NL_CLOCK_POINTS / 2; i++)
            clock->points[i] = clock->points[2 * i];
        clock->count = NL_CLOCK_POINTS / 2;
    }
    clock->points[clock->count++] = point;
}

void nl_clock_start(nl_clock *clock)
{
    memset(clock, 0, sizeof *clock);
    clock->slow = !nl_clock_has_counter();
    add_point(clock, read_both(clock->slow));
}

void nl_clock_add_earlier(nl_clock *clock, nl_clock_point point, int64_t elapsed_ns)
{
    const nl_clock_point first = clock->points[0];
    const double away_ns = (double)first.time_ns - (double)point.time_ns - (double)elapsed_ns;
    if (clock->count != 1 || point.ticks >= first.ticks || elapsed_ns < SPACING_NS ||
        fabs(away_ns) > STEP_NS + (double)elapsed_ns / STEP_PART)
        return;
    clock->points[0] = point;
    add_point(clock, first);
    use_segment(clock, 0);
}

/* Returns whether the latest segment is a step, which has the length of one tick and represents a setting of the
 * clock. */
static bool ends_with_step(const nl_clock *clock)
{
    const nl_clock_point *last = &clock->points[clock->count - 1];
    return clock->count >= 3 && last->ticks - last[-1].ticks == 1;
}

/* Returns the end of the latest segment that is not a step. Requires two points. */
static const nl_clock_point *latest_end(const nl_clock *clock)
{
    return &clock->points[clock->count - (ends_with_step(clock) ? 2 : 1)];
}

/* Returns the rate, in nanoseconds per tick, of the latest segment that is not a step. Requires two points. */
static double latest_rate(const nl_clock *clock)
{
    const nl_clock_point *to = latest_end(clock), *from = to - 1;
    return (double)(int64_t)((uint64_t)to->time_ns - (uint64_t)from->time_ns) / (double)(to->ticks - from->ticks);
}

/*
 * Returns the time of ticks that are in the segment in use or outside of all segments. Uses the rate of the segment in
 * use or, after the last point, the latest rate.
 */
static int64_t extrapolate(const nl_clock *clock, uint64_t ticks)
{
    const nl_clock_point *from = &clock->points[clock->segment], *last = &clock->points[clock->count - 1];
    double rate = clock->ns_per_tick;
    if (ticks > last->ticks) {
        from = last;
        rate = latest_rate(clock);
    }
    double away_ns = (double)(int64_t)(ticks - from->ticks) * rate;
    int64_t time_ns;
    /* Only ticks or points from damaged memory are out of range. */
    if (away_ns < -0x1p62 || away_ns > 0x1p62 || __builtin_add_overflow(from->time_ns, (int64_t)away_ns, &time_ns))
        return from->time_ns;
    return time_ns;
}

/*
 * Returns the difference from the expected time, in nanoseconds, from which the clock was set. since_ns is the time
 * since the latest point. A short segment does not determine the rate exactly.
 */
static double step_ns(const nl_clock *clock, double since_ns)
{
    const nl_clock_point *to = latest_end(clock);
    const double length_ns = (double)to->time_ns - (double)to[-1].time_ns;
    return STEP_NS + since_ns / STEP_PART + (length_ns > 0 ? since_ns * READING_NS / length_ns : 0);
}

uint64_t nl_clock_update(nl_clock *clock)
{
    nl_clock_point now = read_both(clock->slow);
    size_t count = clock->count;
    if (count >= 2)
        use_segment(clock, count - 2);
    if (count >= 2) {
        const nl_clock_point *last = &clock->points[count - 1];
        int64_t expected_ns = extrapolate(clock, now.ticks), away_ns = now.time_ns - expected_ns;
        if (fabs((double)away_ns) > step_ns(clock, (double)(expected_ns - last->time_ns)))
            add_point(clock, (nl_clock_point){now.ticks - 1, expected_ns});
        else if (last->time_ns - last[-1].time_ns < SPACING_NS && last->time_ns >= last[-1].time_ns &&
                 !ends_with_step(clock))
            clock->count--;
    }
    add_point(clock, now);
    if (clock->count >= 2)
        use_segment(clock, clock->count - 2);
    return now.ticks;
}

/*
 * Returns the time of ticks, computed from a single point. A point does not determine a rate. If ticks are from the
 * monotonic clock, the rate is known; otherwise, returns the time of the point.
 */
static int64_t only_point_ns(const nl_clock *clock, uint64_t ticks)
{
    const nl_clock_point *only = &clock->points[0];
    int64_t time_ns;
    if (!clock->slow || __builtin_add_overflow(only->time_ns, (int64_t)(ticks - only->ticks), &time_ns))
        return only->time_ns;
    return time_ns;
}

int64_t nl_clock_find_time_ns(nl_clock *clock, uint64_t ticks)
{
    if (clock->count < 2)
        return only_point_ns(clock, ticks);
    size_t i = clock->segment;
    bool before = ticks < clock->points[i].ticks && i > 0;
    bool behind = ticks > clock->points[i + 1].ticks && i + 2 < clock->count;
    if (before || behind) {
        size_t low = 0, high = clock->count - 2; /* find the last point at or before ticks */
        while (low < high) {
            size_t middle = (low + high + 1) / 2;
            if (clock->points[middle].ticks <= ticks)
                low = middle;
            else
                high = middle - 1;
        }
        use_segment(clock, low);
    }
    return extrapolate(clock, ticks);
}

uint64_t nl_clock_ticks(const nl_clock *clock, int64_t duration_ns)
{
    if (clock->slow || clock->count < 2)
        return (uint64_t)duration_ns;
    double rate = latest_rate(clock);
    return rate > 0 ? (uint64_t)((double)duration_ns / rate) : (uint64_t)duration_ns;
}

void nl_clock_save(const nl_clock *clock, nl_clock_point points[2])
{
    size_t count = clock->count;
    const nl_clock_point *last = &clock->points[count - 1];
    points[1] = *last;
    points[0] = count < 2 ? *last : last[-1];
    if (ends_with_step(clock)) { /* the rate before the step applies */
        points[0].ticks = last->ticks - (last[-1].ticks - last[-2].ticks);
        points[0].time_ns = last->time_ns - (last[-1].time_ns - last[-2].time_ns);
    }
}

void nl_clock_restore(nl_clock *clock, const nl_clock_point points[2], bool slow)
{
    memset(clock, 0, sizeof *clock);
    clock->slow = slow;
    if (points[0].time_ns < 0 || points[1].time_ns < points[0].time_ns || points[1].time_ns > SANE_NS)
        return;
    add_point(clock, points[0]);
    add_point(clock, points[1]);
    if (clock->count >= 2)
        use_segment(clock, 0);
}
