#include "config.h"

#include "log/clock.h"

#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum {
    READINGS = 3,              /* the tightest of so many is taken */
    SPACING_NS = 20 * 1000000, /* points closer than this give way to newer ones */
    STEP_NS = 200 * 1000,      /* further than this from where it was expected, the clock was stepped ... */
    STEP_PART = 1000,          /* ... plus a thousandth of the time since: no daemon slews faster */
};

bool nl_clock_has_counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    /* Intel SDM vol. 3B, 18.17.1: invariant TSC. */
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
    return false;
#endif
}

static uint64_t ticks_now(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __rdtsc();
#else
    return 0;
#endif
}

static nl_clock_point read_both(bool slow)
{
    nl_clock_point best = {0, nl_time_now_ns()};
    if (slow) {
        best.ticks = (uint64_t)best.time_ns;
        return best;
    }
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t before = ticks_now();
        int64_t time_ns = nl_time_now_ns();
        uint64_t width = ticks_now() - before;
        if (width < narrowest) {
            narrowest = width;
            best = (nl_clock_point){before + width / 2, time_ns};
        }
    }
    return best;
}

/* Makes the segment from point i to the next the one in use. */
static void use_segment(nl_clock *clock, size_t i)
{
    const nl_clock_point *from = &clock->points[i], *to = from + 1;
    clock->segment = i;
    clock->segment_ticks = to->ticks - from->ticks;
    clock->ns_per_tick = (double)(to->time_ns - from->time_ns) / (double)(to->ticks - from->ticks);
}

static void add_point(nl_clock *clock, nl_clock_point point)
{
    if (clock->count > 0 && point.ticks <= clock->points[clock->count - 1].ticks)
        return;
    if (clock->count == NL_CLOCK_POINTS) {
        /* Every other one goes: what is still waiting after that long is told its time a little less finely. */
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

static int64_t extrapolate(const nl_clock *clock, uint64_t ticks)
{
    const nl_clock_point *from = &clock->points[clock->segment];
    return from->time_ns + (int64_t)((double)(int64_t)(ticks - from->ticks) * clock->ns_per_tick);
}

uint64_t nl_clock_update(nl_clock *clock)
{
    nl_clock_point now = read_both(clock->slow);
    size_t count = clock->count;
    if (count >= 2)
        use_segment(clock, count - 2);
    const nl_clock_point *last = &clock->points[count - 1];
    if (count >= 2 && !clock->slow) {
        int64_t expected_ns = extrapolate(clock, now.ticks), away_ns = now.time_ns - expected_ns;
        int64_t since_ns = expected_ns - last->time_ns;
        if (away_ns > STEP_NS + since_ns / STEP_PART || -away_ns > STEP_NS + since_ns / STEP_PART)
            add_point(clock, (nl_clock_point){now.ticks - 1, expected_ns});
        else if (last->time_ns - last[-1].time_ns < SPACING_NS && last->time_ns >= last[-1].time_ns)
            clock->count--;
    }
    add_point(clock, now);
    if (clock->count >= 2)
        use_segment(clock, clock->count - 2);
    return now.ticks;
}

int64_t nl_clock_find_time_ns(nl_clock *clock, uint64_t ticks)
{
    if (clock->slow || clock->count < 2)
        return clock->slow ? (int64_t)ticks : clock->points[0].time_ns;
    size_t i = clock->segment;
    bool before = ticks < clock->points[i].ticks && i > 0;
    bool behind = ticks > clock->points[i + 1].ticks && i + 2 < clock->count;
    if (before || behind) {
        size_t low = 0, high = clock->count - 2; /* the last point that is not behind ticks, within the segments */
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
    return (uint64_t)((double)duration_ns / clock->ns_per_tick);
}

void nl_clock_save(const nl_clock *clock, nl_clock_point points[2])
{
    size_t count = clock->count;
    const nl_clock_point *last = &clock->points[count - 1];
    points[1] = *last;
    points[0] = count < 2 ? *last : last[-1];
    if (count >= 3 && last->ticks - last[-1].ticks == 1) { /* a step: the rate before it holds */
        points[0].ticks = last->ticks - (last[-1].ticks - last[-2].ticks);
        points[0].time_ns = last->time_ns - (last[-1].time_ns - last[-2].time_ns);
    }
}

void nl_clock_restore(nl_clock *clock, const nl_clock_point points[2], bool slow)
{
    memset(clock, 0, sizeof *clock);
    clock->slow = slow;
    add_point(clock, points[0]);
    add_point(clock, points[1]);
    if (clock->count >= 2)
        use_segment(clock, 0);
}
