/*
 * Finds legs that are slow at some times. The time is divided into windows, and each leg's means in them are compared
 * with all resources (Pearson's correlation). A resource that varies with the leg need not be the cause, but shows
 * where to look. The variance between windows must exceed what the variance within them explains.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOWS = 40, WINDOWS_MIN = 10, WINDOW_PASSAGES = 3 };
#define CORRELATION_MIN 0.75
#define VARIATION_MIN 0.5
#define VARIANCE_MIN 3.0 /* chance makes it that of 40 windows once in millions */

static double window_ns(const observed *o)
{
    return (double)(observed_to_ns(o) - observed_from_ns(o)) / WINDOWS;
}

/* Sets the mean of each window; NAN for windows with too few passages. */
static void leg_means(const observed *o, const leg *l, double means[WINDOWS])
{
    double sums[WINDOWS] = {0};
    guint counts[WINDOWS] = {0};
    for (size_t i = 0; i < l->count; i++) {
        double at = (double)(l->passages[i].from_ns - observed_from_ns(o)) / window_ns(o);
        guint window = (guint)CLAMP(at, 0, WINDOWS - 1);
        sums[window] += (double)l->passages[i].took_ns;
        counts[window]++;
    }
    for (guint i = 0; i < WINDOWS; i++)
        means[i] = counts[i] >= WINDOW_PASSAGES ? sums[i] / counts[i] : NAN;
}

/*
 * Returns the variance between windows by that within windows: about 1 if there is only chance (F of the analysis of
 * variance).
 */
static double variance_ratio(const observed *o, const leg *l, const double means[WINDOWS])
{
    double counts[WINDOWS] = {0}, within = 0, between = 0, all = 0, mean = 0, windows = 0;
    for (size_t i = 0; i < l->count; i++) {
        double at = (double)(l->passages[i].from_ns - observed_from_ns(o)) / window_ns(o);
        guint window = (guint)CLAMP(at, 0, WINDOWS - 1);
        if (isnan(means[window]))
            continue;
        within += pow((double)l->passages[i].took_ns - means[window], 2);
        mean += (double)l->passages[i].took_ns;
        counts[window]++;
        all++;
    }
    for (guint i = 0; i < WINDOWS; i++) {
        windows += counts[i] > 0;
        between += counts[i] > 0 ? counts[i] * pow(means[i] - mean / all, 2) : 0;
    }
    if (windows < 2 || all <= windows)
        return 0;
    return within > 0 ? between / (windows - 1) / (within / (all - windows)) : INFINITY;
}

static void resource_means(const observed *o, const resource *r, double means[WINDOWS])
{
    for (guint i = 0; i < WINDOWS; i++) {
        int64_t from = observed_from_ns(o) + (int64_t)(i * window_ns(o));
        means[i] = resource_mean(r, from, from + (int64_t)window_ns(o));
    }
}

static double correlation(const double *a, const double *b)
{
    double n = 0, mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
    for (guint i = 0; i < WINDOWS; i++) {
        if (isnan(a[i]) || isnan(b[i]))
            continue;
        n++;
        mean_a += (a[i] - mean_a) / n;
        mean_b += (b[i] - mean_b) / n;
    }
    if (n < WINDOWS_MIN)
        return 0;
    for (guint i = 0; i < WINDOWS; i++) {
        if (isnan(a[i]) || isnan(b[i]))
            continue;
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
        ab += (a[i] - mean_a) * (b[i] - mean_b);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* Returns the excess of the windows' means above their lower quartile: 1 is twice as slow. */
static double variation(const double *means)
{
    double known[WINDOWS], sum = 0;
    guint count = 0;
    for (guint i = 0; i < WINDOWS; i++)
        if (!isnan(means[i]))
            known[count++] = means[i];
    if (count < WINDOWS_MIN)
        return 0;
    qsort(known, count, sizeof *known, compare_doubles);
    for (guint i = 0; i < count; i++)
        sum += known[i] / count;
    double low = known[count / 4];
    return low > 0 ? sum / low - 1 : 0;
}

typedef struct partner {
    const resource *resource;
    double correlation;
} partner;

static partner best_partner(const observed *o, const leg *l, const double *means)
{
    const GPtrArray *all = observed_resources(o);
    partner best = {NULL, 0};
    for (guint i = 0; i < all->len; i++) {
        const resource *r = g_ptr_array_index(all, i);
        double others[WINDOWS];
        if ((r->host != l->from_host && r->host != l->to_host) || r->samples->len < WINDOWS_MIN)
            continue;
        resource_means(o, r, others);
        double found = correlation(means, others);
        if (fabs(found) > fabs(best.correlation))
            best = (partner){r, found};
    }
    return best;
}

static void look_at(findings *f, const leg *l)
{
    const observed *o = f->observed;
    double means[WINDOWS], others[WINDOWS];
    leg_means(o, l, means);
    double above = variation(means);
    if (above < VARIATION_MIN || variance_ratio(o, l, means) < VARIANCE_MIN)
        return;
    partner with = best_partner(o, l, means);
    bool moved = with.resource != NULL && fabs(with.correlation) >= CORRELATION_MIN;
    const char *where = text_leg(o, l), *mean = text_ns(l->mean_ns), *low = text_ns((double)l->low_ns);
    finding *made = findings_add(f, "varies", leg_share(o, l) * above / (1 + above), moved ? 0.5 : 0.3,
                                 "slow at some times: %s", where);
    finding_evidence(made, "mean %s, 10th percentile %s", mean, low);
    if (moved) {
        resource_means(o, with.resource, others);
        finding_evidence(made, "%s %s of %s %s %s with it (correlation %.2f)", with.resource->event,
                         with.resource->field, observed_host(o, with.resource->host), with.resource->instance,
                         with.correlation > 0 ? "rises and falls" : "falls and rises", with.correlation);
    } else {
        finding_evidence(made, "no number in the log varies with it");
    }
    finding_place(made, o, l->from_host, l);
    finding_advice(made, "%s",
                   moved ? "examine what that number measures, at the slow times"
                         : "log the sensors of these hosts, or kernel events, to see what differs then");
}

void find_changes(findings *f)
{
    const observed *o = f->observed;
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (l->count >= WINDOWS_MIN * WINDOW_PASSAGES && leg_share(o, l) >= FINDING_MIN)
            look_at(f, l);
    }
}
