#include "config.h"

#include "stat/series.h"

#include <glib.h>

#include <string.h>

enum { FIRST_WIDTH_NS = 1000000 };

static int64_t floor_to(int64_t time_ns, int64_t width_ns)
{
    int64_t rest = time_ns % width_ns;
    return time_ns - (rest < 0 ? rest + width_ns : rest);
}

int64_t series_from_ns(const series *s, size_t i)
{
    /* Compute with unsigned numbers, because the difference of distant times overflows int64_t. */
    return (int64_t)((uint64_t)s->from_ns + i * (uint64_t)s->width_ns);
}

/* Joins each group of `factor` intervals into one interval. The bounds of intervals are multiples of the width. */
static void series_join(series *s, int64_t factor)
{
    int64_t width_ns = s->width_ns * factor, from_ns = floor_to(s->from_ns, width_ns);
    size_t used = 0;
    for (size_t i = 0; i < s->count; i++) {
        size_t to = (size_t)(((uint64_t)series_from_ns(s, i) - (uint64_t)from_ns) / (uint64_t)width_ns);
        series_interval interval = s->intervals[i];
        for (; used <= to; used++)
            s->intervals[used] = (series_interval){0};
        s->intervals[to].sum += interval.sum;
        s->intervals[to].count += interval.count;
    }
    s->from_ns = from_ns;
    s->width_ns = width_ns;
    s->count = used;
}

/* Returns the index of the interval that contains a time. Adds intervals if necessary, or joins intervals if there
 * would be too many. */
static size_t reach(series *s, int64_t time_ns)
{
    for (;;) {
        int64_t at_ns = floor_to(time_ns, s->width_ns);
        int64_t from_ns = s->count == 0 || at_ns < s->from_ns ? at_ns : s->from_ns;
        int64_t last_ns = s->count == 0 ? at_ns : series_from_ns(s, s->count - 1);
        last_ns = at_ns > last_ns ? at_ns : last_ns;
        uint64_t count /* unsigned, because the difference of the times may exceed INT64_MAX */
            = ((uint64_t)last_ns - (uint64_t)from_ns) / (uint64_t)s->width_ns + 1;
        if (count > SERIES_MAX) {
            series_join(s, 2);
            continue;
        }
        if (from_ns < s->from_ns && s->count > 0) {
            size_t shift = (size_t)((s->from_ns - from_ns) / s->width_ns);
            memmove(s->intervals + shift, s->intervals, s->count * sizeof *s->intervals);
            memset(s->intervals, 0, shift * sizeof *s->intervals);
            s->count += shift;
        }
        s->from_ns = from_ns;
        if (count > s->count)
            memset(s->intervals + s->count, 0, (count - s->count) * sizeof *s->intervals);
        s->count = count;
        return (size_t)((at_ns - from_ns) / s->width_ns);
    }
}

void series_add(series *s, int64_t time_ns, double value)
{
    if (s->intervals == NULL) {
        s->intervals = g_new0(series_interval, SERIES_MAX + 1);
        s->width_ns = FIRST_WIDTH_NS;
    }
    /* Limit times to the range from November 1823 to February 2116, so that rounded times do not overflow. */
    time_ns = CLAMP(time_ns, INT64_MIN / 2, INT64_MAX / 2);
    size_t at = reach(s, time_ns);
    s->intervals[at].sum += value;
    s->intervals[at].count++;
}

void series_widen(series *s, int64_t width_ns)
{
    if (s->width_ns > 0 && width_ns > s->width_ns)
        series_join(s, (width_ns + s->width_ns - 1) / s->width_ns);
}

void series_clear(series *s)
{
    g_free(s->intervals);
    memset(s, 0, sizeof *s);
}

int64_t series_nice_width_ns(double span_ns)
{
    static const int steps[] = {1, 2, 5};
    for (int64_t power_ns = 1000000; power_ns < INT64_MAX / 50; power_ns *= 10)
        for (size_t i = 0; i < G_N_ELEMENTS(steps); i++)
            if (span_ns / (double)(steps[i] * power_ns) <= SERIES_ROWS_MAX)
                return steps[i] * power_ns;
    return INT64_MAX / 50;
}
