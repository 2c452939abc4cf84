/*
 * Determines whether a log would have shown a cause. Adds a cause to the measured times of a place: lengthens the
 * visits of a random eighth of the requests, by a tenth of all time in total. The search gets a value that separates
 * these requests from the other requests, as a host or a field does. The search must find the cause in at least 18 of
 * 20 trials. These trials do not show whether the search finds a fault that affects few visits, such as a pause. The
 * module therefore also measures how much time very long visits take, compared with other visits of their kind. The
 * part of this time in the tail of a log-normal distribution does not count, because times without any fault often have
 * this distribution.
 */
#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <string.h>

/* Maximum ratio of the spread of the long times to the spread of the short times. With a larger ratio, the long times
 * have another cause. */
#define SPREAD_RATIO_MAX 1.25

/* The number of standard deviations by which the measured tail must exceed the expected tail. */
#define TAIL_DEVIATIONS 2.0

enum { TRIALS = 20, FAILURES_MAX = 2, SLOW_ONE_OF = 8 };

/* Returns whether a request belongs to the random eighth of the requests in a trial. Each trial has a different
 * eighth. */
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

/*
 * Returns the mean excess over `limit` of a log-normal distribution. The spread is the distance between the median and
 * the longest fifth, or the distance between the median and the shortest fifth if this is much smaller. A fault that
 * affects few visits does not change these times. `times` is in ascending order.
 */
static double expected_excess(const double *times, size_t count, double limit)
{
    double median = times[count / 2], low = times[count / 5], high = times[count * 4 / 5];
    if (low <= 0)
        return 0;
    double sigma = fmin(log(high / median), SPREAD_RATIO_MAX * log(median / low)) / NORMAL_FIFTH;
    if (sigma <= 0)
        return 0;
    double z = log(limit / median) / sigma;
    return median * exp(sigma * sigma / 2) * normal_tail(z - sigma) - limit * normal_tail(z);
}

/* The time of a kind of visits beyond a limit, on critical paths, in nanoseconds: measured time and expected time. */
typedef struct tail {
    double measured, squares, expected;
} tail;

/* Adds the visits of a group to a tail. `times` is working memory for the group's times. */
static void add_tail(tail *t, const sample *x, const uint32_t *groups, uint32_t group, double resolution_ns,
                     double *times)
{
    size_t count = 0;
    double weight = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] == group) {
            times[count++] = x->y[i];
            weight += x->weight[i] * x->scale;
        }
    double limit_ns = TAIL_FACTOR * fmax(median_of(times, count), resolution_ns); /* sorts the times */
    if (count == 0 || limit_ns <= 0)
        return;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] == group) {
            double excess_ns = fmax(0, x->y[i] - limit_ns) * x->weight[i] * x->scale;
            t->measured += excess_ns;
            t->squares += excess_ns * excess_ns * (1 - 1 / x->scale); /* a whole sample has no sampling error */
        }
    t->expected += weight * expected_excess(times, count, limit_ns);
}

double place_find_tail(const findings *f, uint32_t place)
{
    if (!place_is_examined(f->visits, place))
        return 0;
    const search s = {.v = f->visits};
    sample *x = sample_new(f->visits, place, f->claimed);
    uint32_t *groups = g_new0(uint32_t, x->count + 1), count = sample_group_kinds(&s, x, groups);
    double *times = g_new(double, x->count + 1),
           resolution_ns = place_find_resolution(f->visits, place_at(f->visits, place));
    tail t = {0};
    for (uint32_t g = 0; g < count; g++)
        add_tail(&t, x, groups, g, resolution_ns, times);
    g_free(times);
    g_free(groups);
    sample_free(x);
    return fmax(0, t.measured - t.expected - TAIL_DEVIATIONS * sqrt(t.squares));
}
