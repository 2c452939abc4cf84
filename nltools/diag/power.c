/*
 * Determines whether a log would have shown a cause. Adds a cause to the measured times of a place: lengthens the
 * visits of a random eighth of the requests, by a tenth of all time in total. The search looks for this cause with a
 * value that separates these requests from the other requests, as a host or a field does. The search must find the
 * cause in nine of ten trials. A fault that affects few visits, such as a pause, need not be visible in this way. The
 * module therefore also measures how much time belongs to visits that take very long.
 */
#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <string.h>

enum { TRIALS = 20, FAILURES_MAX = 2, SLOW_ONE_OF = 8 };

/* Returns whether a request belongs to the random eighth of the requests in a trial. Each trial has another eighth. */
static bool is_chosen(uint32_t request, uint32_t trial)
{
    uint32_t x = request * 0x9e3779b1u + trial * 0x7feb352du;
    x = (x ^ (x >> 16)) * 0x21f0aaadu;
    x = (x ^ (x >> 15)) * 0x735a2d97u;
    return (x ^ (x >> 15)) % SLOW_ONE_OF == 0;
}

/* Returns whether the search finds the added cause. `y` contains the measured times. */
static bool finds_cause(sample *s, const double *y, double level, uint32_t trial, uint8_t *bins)
{
    const visits *v = s->visits;
    double weight = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        bins[i] = is_chosen(visit_at(v, s->index[i])->request, trial);
        weight += bins[i] ? s->weight[i] * s->scale : 0;
    }
    if (weight <= 0)
        return false;
    double with_ns = v->total_ns / (1 - CAUSE_SHARE), more_ns = CAUSE_SHARE * with_ns / weight;
    for (uint32_t i = 0; i < s->count; i++)
        s->y[i] = y[i] + (bins[i] ? more_ns : 0);
    sample_rank(s);
    explanation e = sample_explain(s, bins, 2, false);
    double share = e.claim_ns / with_ns;
    g_free(e.excess);
    return e.p <= level && share >= FINDING_MIN && effect_counts(e.explained, share, e.slow_ns, e.other_ns);
}

bool place_shows_causes(const findings *f, uint32_t place)
{
    const visits *v = f->visits;
    if (!place_is_examined(v, place))
        return false;
    sample *s = sample_new(v, place, f->claimed);
    double *y = g_memdup2(s->y, s->count * sizeof *y),
           level = significance_level(v, place, search_count_tests(v).divisions);
    uint8_t *bins = g_new(uint8_t, s->count);
    int failures = 0;
    for (uint32_t trial = 0; trial < TRIALS && failures <= FAILURES_MAX; trial++)
        failures += !finds_cause(s, y, level, trial, bins);
    g_free(y);
    g_free(bins);
    sample_free(s);
    return failures <= FAILURES_MAX;
}

double place_find_tail(const findings *f, uint32_t place)
{
    if (!place_is_examined(f->visits, place))
        return 0;
    const search s = {.v = f->visits};
    sample *x = sample_new(f->visits, place, f->claimed);
    uint32_t *groups = g_new0(uint32_t, x->count + 1);
    bool has_operations = sample_group_operations(&s, x, groups) > 1;
    double *times = g_new(double, x->count + 1), sum = 0,
           resolution_ns = place_find_resolution(f->visits, place_at(f->visits, place));
    /* The last group, COLUMN_TEXTS_MAX, contains different rare operations, which have no usual time. */
    for (uint32_t g = 0; g < (has_operations ? COLUMN_TEXTS_MAX : 1); g++) {
        size_t count = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if (!has_operations || groups[i] == g)
                times[count++] = x->y[i];
        double limit_ns = TAIL_FACTOR * fmax(median_of(times, count), resolution_ns);
        for (uint32_t i = 0; i < x->count && limit_ns > 0; i++)
            if (!has_operations || groups[i] == g)
                sum += fmax(0, x->y[i] - limit_ns) * x->weight[i] * x->scale;
    }
    g_free(times);
    g_free(groups);
    sample_free(x);
    return sum;
}
