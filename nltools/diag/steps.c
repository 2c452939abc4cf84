/*
 * Finds visits that take longer than usual by a constant time, at places where the usual times differ.
 *
 * The module compares each visit with the usual time of its kind and its amount of work. A lost packet or a timeout
 * adds the same time to each visit, whatever its kind. Rare long work has other times: they decrease gradually, as in a
 * Pareto distribution, or they vary as much as the usual work does. The module compares the likelihood of the long
 * times under the constant delay with the larger likelihood under these two alternatives. If an alternative is true,
 * the probability of a likelihood ratio of at least r is at most 1/r (Markov's inequality), for each delay that is
 * tried. No state.
 */
#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <stdlib.h>
#include <string.h>

/* A visit is long if its time is this number of standard deviations above the usual time, in logarithms: one of a
 * thousand visits in a log-normal distribution. The spread is that of the short times, which long visits do not change.
 */
#define LONG_DEVIATIONS 3.1

/* Minimum ratio of the time of a long visit to the usual time. */
#define LONG_RATIO_MIN 1.5

/* Accuracy of a delay: timers and round trips add up to this part of it. */
#define DELAY_ACCURACY 0.01

/* Part of the long visits that have other reasons. */
#define OTHERS 0.1

/* The smallest spread of kinds of work, in logarithms. */
#define WORK_SPREAD_MIN 0.1

/* If the delay is the cause, at least this part of the visits with a similar excess (by up to the factor SIMILAR) have
 * the delay. */
#define DELAYED_MIN 0.6
#define SIMILAR 2.0

/* Minimum part of the delayed visits on the host that has the cause. */
#define HOST_MIN 0.8

/* Maximum part of the delayed visits that follow a delayed visit at the same site. */
#define FOLLOW_MAX 0.7

enum { DELAYED_COUNT_MIN = 5, TRIED_MAX = 24, RESOLUTIONS = 3, MIXED = 10 };

/*
 * A long visit: its position in the sample, its usual time, and the spread of the usual times, in nanoseconds. `value`
 * is the time that is constant if the delay is the cause: the excess over the usual time or, for visits that are given
 * up, the whole time.
 */
typedef struct long_visit {
    uint32_t i;
    double value, time, usual, spread, limit;
} long_visit;

static int by_value(const void *a, const void *b)
{
    return compare_double(&((const long_visit *)a)->value, &((const long_visit *)b)->value);
}

static double normal_density(double x, double middle, double spread)
{
    double z = (x - middle) / spread;
    return exp(-z * z / 2) / spread / sqrt(2 * G_PI);
}

/* Divides the groups of an edge's visits by their sites: paths between hosts, and clocks, differ. */
static uint32_t divide_by_sites(const sample *x, uint32_t *groups, uint32_t count)
{
    const place *p = place_at(x->visits, x->place);
    const GArray *sites = p->sites;
    uint32_t *numbers = g_new0(uint32_t, x->visits->sites->len + 1);
    if (p->kind != PLACE_EDGE || sites->len == 1 || (uint64_t)sites->len * count * KIND_COUNT_MIN > x->count) {
        g_free(numbers);
        return count;
    }
    for (guint n = 0; n < sites->len; n++)
        numbers[g_array_index(sites, uint32_t, n)] = n;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] != UINT32_MAX)
            groups[i] = groups[i] * sites->len + numbers[visit_at(x->visits, x->index[i])->site];
    g_free(numbers);
    return count * sites->len;
}

/* Returns the standard deviation of the logarithms of times below the usual time. `ratios` contains the logarithms of
 * the ratios of times to usual times. */
static double spread_of(double *ratios, size_t count)
{
    qsort(ratios, count, sizeof *ratios, compare_double);
    return count > 0 ? fmax(DELAY_ACCURACY, -ratios[count / 5] / NORMAL_FIFTH) : INFINITY;
}

/* Returns the long visits (elements are long_visit). `even` is the sample after all kinds
 * and amounts were evened out. Sets *spread to the spread of the usual times, in logarithms. */
static GArray *find_long(const sample *x, const sample *even, const uint32_t *groups, uint32_t count, double *spread)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(long_visit));
    double *ratios = g_new(double, x->count + 1),
           resolution_ns = place_find_resolution(x->visits, place_at(x->visits, x->place));
    uint32_t all = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] != UINT32_MAX)
            ratios[all++] = log(fmax(even->y[i], even->median / 100) / even->median);
    *spread = spread_of(ratios, all);
    for (uint32_t g = 0; g < count; g++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if (groups[i] == g)
                ratios[n++] = log(fmax(even->y[i], even->median / 100) / even->median);
        double own = n >= KIND_COUNT_MIN ? spread_of(ratios, n) : *spread,
               ratio = fmax(LONG_RATIO_MIN, exp(LONG_DEVIATIONS * own));
        for (uint32_t i = 0; i < x->count; i++) {
            double usual = even->median / even->factor[i];
            const long_visit y = {i, x->y[i] - usual, x->y[i], usual, usual * own, ratio * usual};
            if (groups[i] == g && x->y[i] > y.limit && y.value > RESOLUTIONS * resolution_ns)
                g_array_append_val(found, y);
        }
    }
    g_free(ratios);
    return found;
}

/* Returns the spread of the times of visits with a delay. */
static double spread_with_delay(const long_visit *y, double delay)
{
    return hypot(y->spread, DELAY_ACCURACY * delay);
}

static bool is_delayed(const long_visit *y, double delay)
{
    return fabs(y->value - delay) <= LONG_DEVIATIONS * spread_with_delay(y, delay);
}

/*
 * Returns the logarithm of the ratio of the likelihood with a delay to the likelihood without a delay. `power` is the
 * power of the Pareto distribution, and `spread` is the spread of the usual times in logarithms.
 */
static double ratio_of_delay(const GArray *found, double delay, double power, double spread)
{
    double pareto = 0, work = 0, with = 0;
    for (guint n = 0; n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        double time = y->time, tail = power / time * pow(y->limit / time, power),
               kind = normal_density(log(time), log(delay + time - y->value), fmax(spread, WORK_SPREAD_MIN)) / time,
               constant = normal_density(y->value, delay, spread_with_delay(y, delay));
        pareto += log(tail);
        work += log((1 - OTHERS) * kind + OTHERS * tail);
        with += log((1 - OTHERS) * constant + OTHERS * tail);
    }
    return with - fmax(pareto, work);
}

/* Returns the delay with the largest likelihood, in nanoseconds, or 0. Sets *chance to the probability of such a
 * likelihood by chance. */
static double find_delay(const GArray *found, double spread, double *chance)
{
    double logs = 0, best = 0, best_delay = 0;
    for (guint n = 0; n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        logs += log(y->time / y->limit);
    }
    double power = found->len / fmax(logs, 0.01 * found->len);
    guint step = found->len / TRIED_MAX + 1;
    for (guint n = step / 2; n < found->len; n += step) {
        double delay = g_array_index(found, long_visit, n).value, ratio;
        for (int k = 0; k < 3; k++) { /* move to the middle of the visits with this delay */
            double sum = 0, weights = 0;
            for (guint m = 0; m < found->len; m++) {
                const long_visit *y = &g_array_index(found, long_visit, m);
                double weight = is_delayed(y, delay) ? 1 / pow(spread_with_delay(y, delay), 2) : 0;
                sum += weight * y->value;
                weights += weight;
            }
            delay = weights > 0 ? sum / weights : delay;
        }
        ratio = ratio_of_delay(found, delay, power, spread);
        if (ratio > best) {
            best = ratio;
            best_delay = delay;
        }
    }
    *chance = fmin(1, found->len * exp(-best));
    return best_delay;
}

/* Returns whether the delayed visits come one after another: something else was slow for a time. */
static bool come_together(const sample *x, const bool *delayed, uint32_t count)
{
    bool *was = g_new0(bool, x->visits->sites->len + 1);
    uint32_t after = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t site = visit_at(x->visits, x->index[i])->site;
        after += delayed[i] && was[site];
        was[site] = delayed[i];
    }
    g_free(was);
    return after > FOLLOW_MAX * count && count < FOLLOW_MAX * x->count;
}

/* Returns the host of most of the delayed visits: where they begin or, if `at_begin` is false, where they end. Returns
 * NULL if there is no such host, or if all visits are on one host. */
static const char *host_of_delayed(const sample *x, const bool *delayed, bool at_begin, bool *is_mixed)
{
    GHashTable *counts = g_hash_table_new(NULL, NULL);
    const char *host = NULL;
    uint32_t largest = 0, all = 0, here = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const site *at = site_at(x->visits, visit_at(x->visits, x->index[i])->site);
        gpointer own = (gpointer)(at_begin ? at->from_host : at->host);
        uint32_t count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, own)) + delayed[i];
        g_hash_table_insert(counts, own, GUINT_TO_POINTER(count));
        all += delayed[i];
        if (count > largest) {
            largest = count;
            host = own;
        }
    }
    bool several = g_hash_table_size(counts) > 1;
    g_hash_table_destroy(counts);
    for (uint32_t i = 0; i < x->count; i++) {
        const site *at = site_at(x->visits, visit_at(x->visits, x->index[i])->site);
        here += (at_begin ? at->from_host : at->host) == host;
    }
    *is_mixed = (here - largest) * MIXED > here;
    return several && largest >= HOST_MIN * all ? host : NULL;
}

/* Makes a mechanism from the delayed visits. */
static mechanism mechanism_of(const sample *x, const sample *even, const bool *delayed, uint32_t count, double delay,
                              bool is_whole)
{
    mechanism m = {.period_ns = delay, .count = count, .given_up = is_whole, .is_within_kinds = true};
    float *waits = g_new0(float, x->count + 1);
    m.waits = g_new0(float, x->visits->all->len + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        double usual = even->median / even->factor[i],
               wait = delayed[i] ? fmin(x->y[i], is_whole ? x->y[i] - usual : delay) : 0;
        m.waits[x->index[i]] = (float)wait;
        waits[i] = (float)(wait * even->factor[i]);
        m.claim_ns += wait * x->weight[i] * x->scale;
    }
    m.explained = sample_explained_by_waits(even, waits);
    m.share = (double)count / x->count;
    m.host = host_of_delayed(x, delayed, false, &m.is_mixed);
    if (m.host == NULL && place_at(x->visits, x->place)->kind == PLACE_EDGE) {
        m.host = host_of_delayed(x, delayed, true, &m.is_mixed);
        m.is_from_host = m.host != NULL;
    }
    if (!is_whole)
        mechanism_name_delay(x, &m);
    g_free(waits);
    return m;
}

/*
 * Judges whether long visits have a constant value. `found` contains the long visits. `is_whole`: the value is the
 * whole time of visits that are given up, which end without a result.
 */
static mechanism judge(const sample *x, const sample *even, GArray *found, double spread, bool is_whole)
{
    mechanism m = {0};
    double chance = 1, delay = 0, least = INFINITY, most = 0;
    uint32_t similar = 0, count = 0;
    for (guint n = 0; is_whole && n < found->len; n++) {
        long_visit *y = &g_array_index(found, long_visit, n);
        y->value = y->time;
        y->spread = 0;
    }
    g_array_sort(found, by_value);
    if (found->len >= DELAYED_COUNT_MIN)
        delay = find_delay(found, spread, &chance);
    bool *delayed = g_new0(bool, x->count + 1);
    for (guint n = 0; delay > 0 && n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        similar += y->value > delay / SIMILAR && y->value < delay * SIMILAR;
        delayed[y->i] = is_delayed(y, delay);
        count += delayed[y->i];
        least = delayed[y->i] ? fmin(least, y->time) : least;
        most = delayed[y->i] ? fmax(most, y->time) : most;
    }
    if (count >= DELAYED_COUNT_MIN && count >= DELAYED_MIN * similar && !come_together(x, delayed, count) &&
        (!is_whole || visits_end_without_result(x, least, most))) {
        m = mechanism_of(x, even, delayed, count, delay, is_whole);
        m.p = fmin(1, 2 * chance); /* two kinds of values */
    }
    g_free(delayed);
    return m;
}

mechanism find_step(const search *s, const sample *x)
{
    mechanism m = {0};
    uint32_t *groups = g_new(uint32_t, x->count + 1),
             count = divide_by_sites(x, groups, sample_group_kinds(s, x, groups));
    sample *kinds = sample_even_out(x, groups, count), *amounts = sample_even_out_amounts(s, kinds),
           *even = amounts != NULL ? amounts : kinds;
    double spread;
    if (even->median > 0) {
        GArray *found = find_long(x, even, groups, count, &spread);
        m = judge(x, even, found, spread, false);
        if (m.waits == NULL)
            m = judge(x, even, found, spread, true);
        g_array_free(found, TRUE);
    }
    g_free(groups);
    sample_free(kinds);
    if (amounts != NULL)
        sample_free(amounts);
    return m;
}
