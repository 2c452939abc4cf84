/*
 * Finds the number of servers behind a wait: at most that many objects are between two places at a time, mostly
 * exactly that many (one: a lock; more: a pool), and a waiting object enters when another leaves.
 */
#include "config.h"

#include "diag/capacity.h"

#include "diag/findings.h"
#include "diag/numbers.h"

#include <stdlib.h>

enum { STAYS_MAX = 1 << 13, NEXT_STEPS = 256, LEVELS_MAX = 1024, BEHIND_MAX = 8 };

typedef struct stay {
    int64_t waited_ns, from_ns, to_ns;
} stay;

static int compare_stays(const void *a, const void *b)
{
    const stay *first = a, *second = b;
    return (first->from_ns > second->from_ns) - (first->from_ns < second->from_ns);
}

/*
 * Returns the first time from from_ns on at which an object is at a place or behind it; its end if it never is.
 * Examines only the next NEXT_STEPS steps.
 */
static int64_t reached_ns(const observed *o, guint object, int64_t from_ns, guint place)
{
    guint count, low = 0;
    const step *steps = observed_steps(o, object, &count);
    for (guint high = count; low < high;) {
        guint middle = low + (high - low) / 2;
        if (steps[middle].time_ns < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    guint end = MIN(count, low + NEXT_STEPS);
    while (low < end && steps[low].place < place)
        low++;
    return MAX(from_ns, steps[MIN(low, count - 1)].time_ns);
}

/*
 * Returns how long the objects of some legs, which end at the same place, stayed behind it. Objects of other legs than
 * l did not wait.
 */
static stay *stays_behind(const observed *o, const leg *l, const leg *const *legs, guint leg_count, guint until,
                          size_t *count)
{
    int64_t end_ns = INT64_MAX;
    size_t capacity = 0;
    for (guint i = 0; i < leg_count; i++) {
        if (legs[i]->count > STAYS_MAX / leg_count)
            end_ns = MIN(end_ns, legs[i]->passages[STAYS_MAX / leg_count].from_ns);
        capacity += MIN(legs[i]->count, STAYS_MAX / leg_count);
    }
    stay *stays = g_new(stay, capacity + 1);
    *count = 0;
    for (guint i = 0; i < leg_count; i++)
        for (size_t k = 0; k < legs[i]->count && k < STAYS_MAX / leg_count; k++) {
            const passage *p = &legs[i]->passages[k];
            int64_t from_ns = p->from_ns + p->took_ns;
            if (p->from_ns <= end_ns)
                stays[(*count)++] = (stay){leg_is_same_way(l, legs[i]) ? p->took_ns : 0, from_ns,
                                           reached_ns(o, p->object, from_ns, until)};
        }
    qsort(stays, *count, sizeof *stays, compare_stays);
    return stays;
}

/* Returns how long 0, 1, 2 ... objects were there at a time. ends are sorted. */
static double *levels_of(const stay *stays, const int64_t *ends, size_t count)
{
    double *levels = g_new0(double, LEVELS_MAX + 1);
    int64_t now = stays[0].from_ns;
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        for (; ended < i && ends[ended] <= stays[i].from_ns; ended++) {
            levels[MIN(i - ended, LEVELS_MAX)] += (double)(ends[ended] - now);
            now = ends[ended];
        }
        levels[MIN(i - ended, LEVELS_MAX)] += (double)(stays[i].from_ns - now);
        now = stays[i].from_ns;
    }
    return levels;
}

/*
 * Returns the share of the waiting objects that enter as another one leaves: within a tenth of the mean distance
 * between leaving objects. By chance, it is a fifth.
 */
static double handed_over(const stay *stays, const int64_t *ends, size_t count)
{
    double near_ns = 0.1 * (double)(ends[count - 1] - ends[0]) / (double)count, waited_ns = 0;
    size_t waited = 0, handed = 0, next = 0;
    for (size_t i = 0; i < count; i++)
        waited_ns += 0.1 * (double)stays[i].waited_ns / (double)count;
    for (size_t i = 0; i < count; i++) {
        while (next < count && ends[next] < stays[i].from_ns)
            next++;
        bool is_near = (next < count && (double)(ends[next] - stays[i].from_ns) <= near_ns) ||
                       (next > 0 && (double)(stays[i].from_ns - ends[next - 1]) <= near_ns);
        waited += (double)stays[i].waited_ns > waited_ns;
        handed += is_near && (double)stays[i].waited_ns > waited_ns;
    }
    return waited > 0 ? (double)handed / (double)waited : 0;
}

/* The number of servers is exceeded at most 2 % of the time. Of ten or more servers, one may be free. */
static capacity measure_capacity(const stay *stays, size_t count, guint until)
{
    int64_t *ends = g_new(int64_t, count);
    for (size_t i = 0; i < count; i++)
        ends[i] = stays[i].to_ns;
    qsort(ends, count, sizeof *ends, compare_ns);
    double *levels = levels_of(stays, ends, count), above = 0, all = 0, full = 0;
    for (guint i = 0; i <= LEVELS_MAX; i++)
        all += levels[i];
    guint places = LEVELS_MAX;
    while (places > 0 && above + levels[places] <= 0.02 * all)
        above += levels[places--];
    for (guint i = places - places / 10; i <= LEVELS_MAX; i++)
        full += levels[i];
    capacity found = {until, places, 0, 0};
    if (all > 0) {
        found.full = full / all;
        found.used = 1 - levels[0] / all;
    }
    if (found.full < 0.6 || places == LEVELS_MAX || (places > 1 && handed_over(stays, ends, count) < 0.5))
        found.places = 0;
    g_free(levels);
    g_free(ends);
    return found;
}

/* Returns all legs that end at the place where l ends, on its host or on any. */
static GPtrArray *ways_in(const observed *o, const leg *l, bool on_any)
{
    const GPtrArray *legs = observed_legs(o);
    GPtrArray *ways = g_ptr_array_new();
    for (guint i = 0; i < legs->len; i++) {
        leg *one = g_ptr_array_index(legs, i);
        if (one->lifeline == l->lifeline && one->to_place == l->to_place && (on_any || one->to_host == l->to_host))
            g_ptr_array_add(ways, one);
    }
    return ways;
}

capacity capacity_behind(const observed *o, const leg *l, bool on_any)
{
    if (observed_sampled(o) < 1)
        return (capacity){0}; /* a sample does not show how many objects there are at a time */
    GPtrArray *ways = ways_in(o, l, on_any);
    guint last = MIN(g_strv_length(l->lifeline->events), l->to_place + 1 + BEHIND_MAX);
    capacity found = {0};
    for (guint until = l->to_place + 1; until < last && found.places == 0; until++) {
        size_t count;
        stay *stays = stays_behind(o, l, (const leg *const *)ways->pdata, ways->len, until, &count);
        if (count >= PASSAGES_TELLING)
            found = measure_capacity(stays, count, until);
        g_free(stays);
    }
    g_ptr_array_free(ways, TRUE);
    return found;
}
