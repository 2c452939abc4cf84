#include "config.h"

#include "compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_EACH_MIN = 20, VISITS_MIN = 20, SENSORS_SHOWN = 3, STRATUM_REQUESTS_MIN = 30 };

/* The module compares only requests with equal values of a field if this comparison has at most STRATA_ERROR_MAX times
 * the standard error of the comparison of all requests. */
#define STRATA_ERROR_MAX 0.9

#define ATTRIBUTION_RATE 0.01
#define SENSOR_CHANGE_MIN 0.1

/* The counts and sums of both sides. */
typedef struct sums {
    unit_sums sides[SIDES];
} sums;

static contrast contrast_sums(const profile *p, const sums *s)
{
    return contrast_make(&s->sides[0], &p->kinds[0], &s->sides[1], &p->kinds[1]);
}

static double total_of(const profile *p, int side, const double *values)
{
    return profile_sum(values, &p->kinds[side]);
}

static double relative(const contrast *c)
{
    return c->before != 0 ? (c->after - c->before) / fabs(c->before) : c->after != 0 ? INFINITY : 0;
}

static bool is_change(const contrast *c, double threshold)
{
    return c->tested && c->p <= threshold && fabs(relative(c)) >= COMPARISON_CHANGE_MIN;
}

/* ---- standardization by a field ---- */

/* The bins of a row. The compared quantity is a ratio: the sums in `values` divided by the counts in `counts`. */
typedef struct binned {
    const profile_bin *counts, *values; /* indexed by bin; values may belong to another row */
    bool of_visits;                     /* use the counts of `values` instead of the sums */
} binned;

static const double *binned_values(const binned *b, unsigned bin, int side)
{
    const unit_sums *s = &b->values[bin].sides[side];
    return b->of_visits ? s->count : s->sum;
}

static double bin_count(const profile *p, const binned *b, unsigned bin, int side)
{
    return total_of(p, side, b->counts[bin].sides[side].count);
}

/* Returns the mean of a bin before the change. If that side lacks the bin, returns the mean after the change. */
static double bin_mean(const profile *p, const binned *b, unsigned bin)
{
    int side = bin_count(p, b, bin, SIDE_BEFORE) > 0 ? SIDE_BEFORE : SIDE_AFTER;
    double count = bin_count(p, b, bin, side);
    return count > 0 ? total_of(p, side, binned_values(b, bin, side)) / count : 0;
}

/* Computes the sums that would result if every visit took the mean time of its bin before the change. */
static void predict(const profile *p, const binned *b, sums *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned bin = 0; bin < PROFILE_BINS; bin++) {
        double mean = bin_mean(p, b, bin);
        for (int side = 0; side < SIDES; side++)
            for (unsigned u = 0; u < p->kinds[side].units; u++) {
                out->sides[side].count[u] += b->counts[bin].sides[side].count[u];
                out->sides[side].sum[u] += b->counts[bin].sides[side].count[u] * mean;
            }
    }
}

/* Removes the effect of the mix: changes the sums as if each bin had the share of the counts that it had before the
 * change. */
static void remove_mix(const profile *p, const binned *b, sums *s)
{
    sums predicted;
    predict(p, b, &predicted);
    contrast means = contrast_sums(p, &predicted);
    for (int side = 0; side < SIDES; side++)
        for (unsigned u = 0; u < p->kinds[side].units; u++)
            s->sides[side].sum[u] += s->sides[side].count[u] * means.before - predicted.sides[side].sum[u];
}

/* Returns the share of a side's counts, 0 to 1, in bins that both sides have. */
static double common_part(const profile *p, const binned *b, int side)
{
    double common = 0, all = 0;
    for (unsigned bin = 0; bin < PROFILE_BINS; bin++) {
        double count = bin_count(p, b, bin, side);
        all += count;
        common += bin_count(p, b, bin, !side) > 0 ? count : 0;
    }
    return all > 0 ? common / all : 0;
}

/* Returns the bin whose share has the largest effect on the mean, and sets `shares` to its share on each side. */
static unsigned largest_shift(const profile *p, const binned *b, double shares[SIDES])
{
    double all[SIDES] = {0}, mean = 0, best = -1;
    unsigned found = 0;
    for (unsigned bin = 0; bin < PROFILE_BINS; bin++)
        for (int side = 0; side < SIDES; side++)
            all[side] += bin_count(p, b, bin, side);
    for (int pass = 0; pass < 2; pass++)
        for (unsigned bin = 0; bin < PROFILE_BINS; bin++) {
            double share[SIDES] = {0};
            for (int side = 0; side < SIDES; side++)
                share[side] = all[side] > 0 ? bin_count(p, b, bin, side) / all[side] : 0;
            double its = bin_mean(p, b, bin), effect = fabs((share[1] - share[0]) * (its - mean));
            if (pass == 0) {
                mean += its * (share[0] + share[1]) / 2;
            } else if (effect > best) {
                best = effect;
                found = bin;
                memcpy(shares, share, sizeof share);
            }
        }
    return found;
}

/* ---- the mix of requests ---- */

static void find_mix(comparison *c)
{
    const profile *p = c->profile;
    const profile_row *all = profile_row_at(p, 0);
    contrast effects[PROFILE_FIELDS_MAX];
    double sorted[PROFILE_FIELDS_MAX];
    guint fields[PROFILE_FIELDS_MAX], count = 0;
    for (guint f = 0; f < p->fields->len; f++) {
        const profile_field *field = g_ptr_array_index(p->fields, f);
        const binned b = {all->bins[f], all->bins[f], false};
        sums predicted;
        if (all->bins[f] == NULL || !field->of_requests || common_part(p, &b, 0) < 0.5 || common_part(p, &b, 1) < 0.5)
            continue;
        predict(p, &b, &predicted);
        effects[count] = contrast_sums(p, &predicted);
        sorted[count] = effects[count].p;
        fields[count++] = f;
    }
    double threshold = contrast_threshold(sorted, count, COMPARISON_RATE), largest = 0;
    for (guint i = 0; i < count; i++) {
        double effect = fabs(effects[i].after - effects[i].before);
        if (!is_change(&effects[i], threshold) || effect <= largest)
            continue;
        const binned b = {all->bins[fields[i]], all->bins[fields[i]], false};
        largest = effect;
        c->mix = g_ptr_array_index(p->fields, fields[i]);
        c->mix_effect = effects[i];
        c->mix_bin = largest_shift(p, &b, c->mix_shares);
    }
}

/* Returns the field that reduces the variance most if the module compares only requests with equal values of the field
 * (post-stratification; Deng et al., WSDM 2013). Returns NULL if no field reduces the variance enough. */
static const profile_field *find_strata(const comparison *c)
{
    const profile *p = c->profile;
    const profile_row *all = profile_row_at(p, 0);
    const profile_field *found = NULL;
    double smallest = STRATA_ERROR_MAX * c->unadjusted.error;
    for (guint f = 0; f < p->fields->len; f++) {
        const profile_field *field = g_ptr_array_index(p->fields, f);
        const binned b = {all->bins[f], all->bins[f], false};
        sums total = {{all->own[0], all->own[1]}};
        if (all->bins[f] == NULL || !field->of_requests || common_part(p, &b, 0) < 0.9 || common_part(p, &b, 1) < 0.9 ||
            c->requests[0] + c->requests[1] < STRATUM_REQUESTS_MIN * PROFILE_BINS)
            continue;
        remove_mix(p, &b, &total);
        contrast adjusted = contrast_sums(p, &total);
        if (adjusted.error < smallest) {
            smallest = adjusted.error;
            found = field;
        }
    }
    return found;
}

/* Returns a row's bins for the field that find_strata has chosen, or NULL. */
static const profile_bin *strata_bins(const comparison *c, const profile_row *row)
{
    guint index = 0;
    return c->strata != NULL && g_ptr_array_find(c->profile->fields, c->strata, &index) ? row->bins[index] : NULL;
}

/* ---- reasons for a change ---- */

typedef struct candidate {
    double p, score;
    char *text;
} candidate;

static void split_bins(const profile *p, const binned *b, uint32_t chosen, sums *in, sums *out)
{
    memset(in, 0, sizeof *in);
    memset(out, 0, sizeof *out);
    for (unsigned bin = 0; bin < PROFILE_BINS; bin++)
        for (int side = 0; side < SIDES; side++) {
            unit_sums *to = &(chosen >> bin & 1 ? in : out)->sides[side];
            const double *values = binned_values(b, bin, side);
            for (unsigned u = 0; u < p->kinds[side].units; u++) {
                to->count[u] += b->counts[bin].sides[side].count[u];
                to->sum[u] += values[u];
            }
        }
}

static bool has_enough(const profile *p, const sums *s)
{
    return total_of(p, 0, s->sides[0].count) >= VISITS_MIN && total_of(p, 1, s->sides[1].count) >= VISITS_MIN;
}

/* Tests whether the change is larger in a bin than in the other bins. For a field with numbers, compares `bin` and all
 * higher bins with the lower bins. */
static void try_split(const profile *p, const profile_field *f, const binned *b, unsigned bin, double change,
                      GArray *candidates)
{
    sums in, out;
    uint32_t chosen = f->texts != NULL || bin == BIN_ABSENT
                          ? UINT32_C(1) << bin
                          : ((UINT32_C(1) << (f->edge_count + 1)) - 1) & ~((UINT32_C(1) << bin) - 1);
    split_bins(p, b, chosen, &in, &out);
    if (!has_enough(p, &in) || !has_enough(p, &out))
        return;
    contrast here = contrast_sums(p, &in), elsewhere = contrast_sums(p, &out),
             between = contrast_between(&elsewhere, &here);
    double there = here.after - here.before, rest = elsewhere.after - elsewhere.before,
           inside = total_of(p, 1, in.sides[1].count), share = inside / (inside + total_of(p, 1, out.sides[1].count)),
           carried = share * there / change;
    if (!between.tested || there * change <= 0 || fabs(there) < 1.5 * fabs(rest) || here.before <= 0 ||
        elsewhere.before <= 0)
        return;
    char *name = f->texts == NULL && bin != BIN_ABSENT ? g_strdup_printf("%s of %g or more", f->name, f->edges[bin - 1])
                                                       : profile_bin_name(f, bin);
    const candidate x = {between.p, carried - share,
                         g_strdup_printf("%s: %+.1f %% there, %+.1f %% elsewhere", name, 100 * relative(&here),
                                         100 * relative(&elsewhere))};
    g_array_append_val(candidates, x);
    g_free(name);
}

/*
 * Tests whether changed shares of the field's values explain the change, although requests with each value are as slow
 * as before.
 */
static void try_composition(const profile *p, const profile_field *f, const binned *b, double change,
                            GArray *candidates)
{
    sums predicted;
    predict(p, b, &predicted);
    contrast effect = contrast_sums(p, &predicted);
    double explained = (effect.after - effect.before) / change, shares[SIDES] = {0};
    if (!effect.tested || explained < 0.5)
        return;
    char *name = profile_bin_name(f, largest_shift(p, b, shares));
    const candidate x = {effect.p, 0.9 * fmin(explained, 1),
                         g_strdup_printf("%s: %.0f %% (was %.0f %%)", name, 100 * shares[1], 100 * shares[0])};
    g_array_append_val(candidates, x);
    g_free(name);
}

/* Returns a text that names the value of a field that best explains the change of a row, or NULL. The caller frees it
 * with g_free. */
static char *find_reason(const comparison *c, const profile_row *row, bool of_calls, double change)
{
    const profile *p = c->profile;
    GArray *candidates = g_array_new(FALSE, FALSE, sizeof(candidate));
    for (guint i = 0; i < p->fields->len; i++) {
        const profile_field *f = g_ptr_array_index(p->fields, i);
        const binned b = {of_calls ? profile_row_at(p, 0)->bins[i] : row->bins[i], row->bins[i], of_calls};
        if (b.counts == NULL || b.values == NULL || (of_calls && !f->of_requests))
            continue;
        unsigned bins = f->texts != NULL ? MIN(f->texts->len, (guint)BIN_OTHERS) : f->edge_count + 1;
        for (unsigned bin = f->texts != NULL ? 0 : 1; bin < bins; bin++)
            try_split(p, f, &b, bin, change, candidates);
        if (f != c->strata)
            try_composition(p, f, &b, change, candidates);
    }
    double *sorted = g_new(double, candidates->len + 1);
    for (guint i = 0; i < candidates->len; i++)
        sorted[i] = g_array_index(candidates, candidate, i).p;
    double threshold = contrast_threshold(sorted, candidates->len, ATTRIBUTION_RATE), best = 0.1;
    char *found = NULL;
    for (guint i = 0; i < candidates->len; i++) {
        candidate *x = &g_array_index(candidates, candidate, i);
        if (x->p <= threshold && x->score > best) {
            best = x->score;
            g_free(found);
            found = g_steal_pointer(&x->text);
        }
        g_free(x->text);
    }
    g_free(sorted);
    g_array_free(candidates, TRUE);
    return found;
}

/* ---- places ---- */

/* Returns the sums for the ratio of visits to requests. */
static sums calls_of(const profile *p, const profile_row *row)
{
    sums s = {0};
    for (int side = 0; side < SIDES; side++) {
        memcpy(s.sides[side].count, profile_row_at(p, 0)->own[side].count, sizeof s.sides[side].count);
        memcpy(s.sides[side].sum, row->own[side].count, sizeof s.sides[side].sum);
    }
    return s;
}

static place_change compare_row(const comparison *c, const profile_row *row, bool has_spans)
{
    const profile *p = c->profile;
    place_change x = {.row = row};
    sums own = {{row->own[0], row->own[1]}}, calls = calls_of(p, row);
    for (int side = 0; side < SIDES; side++) {
        x.own_ns[side] = total_of(p, side, row->own[side].sum) / c->requests[side];
        x.path_ns[side] = total_of(p, side, row->path[side]) / c->requests[side];
    }
    bool enough = has_enough(p, &own);
    const profile_bin *bins = strata_bins(c, row), *requests = strata_bins(c, profile_row_at(p, 0));
    if (bins != NULL && requests != NULL) {
        remove_mix(p, &(binned){bins, bins, false}, &own);
        remove_mix(p, &(binned){requests, bins, true}, &calls);
    }
    x.own = contrast_sums(p, &own);
    x.calls = contrast_sums(p, &calls);
    x.own.tested = x.own.tested && enough;
    /* do not test the number of messages on the critical path, because it depends on other places */
    x.calls.tested = x.calls.tested && (row->is_span || !has_spans);
    return x;
}

static double time_change(const place_change *x)
{
    double path = fabs(x->path_ns[1] - x->path_ns[0]), own = fabs(x->own_ns[1] - x->own_ns[0]);
    return fmin(path, own) + 1e-3 * fmax(path, own);
}

static int by_time_change(const void *a, const void *b)
{
    double x = time_change(a), y = time_change(b);
    return (x < y) - (x > y);
}

/* Returns whether a number differs between units or sides; otherwise, the module needs no test. */
static bool varies(const contrast *c)
{
    return c->tested && (c->error > 0 || c->p < 1);
}

static void find_changes(comparison *c)
{
    const profile *p = c->profile;
    guint count = p->rows->len;
    place_change *all = g_new0(place_change, count + 1);
    double *sorted = g_new(double, 2 * count + 1);
    size_t tests = 0;
    bool has_spans = false;
    for (guint i = 1; i < count; i++)
        has_spans = has_spans || profile_row_at(p, i)->is_span;
    for (guint i = 1; i < count; i++) {
        all[i] = compare_row(c, profile_row_at(p, i), has_spans);
        if (varies(&all[i].own))
            sorted[tests++] = all[i].own.p;
        if (varies(&all[i].calls))
            sorted[tests++] = all[i].calls.p;
    }
    if (varies(&c->failed))
        sorted[tests++] = c->failed.p;
    double threshold = contrast_threshold(sorted, tests, COMPARISON_RATE);
    c->level = tests > 0 ? fmax(threshold, COMPARISON_RATE / (double)tests) : COMPARISON_RATE;
    c->failed_changed = is_change(&c->failed, threshold);
    for (guint i = 1; i < count; i++) {
        place_change *x = &all[i];
        x->own_changed = is_change(&x->own, threshold);
        x->calls_changed = is_change(&x->calls, threshold);
        if (!x->own_changed && !x->calls_changed)
            continue;
        double own = (x->own.after - x->own.before) * (x->calls.before + x->calls.after) / 2,
               calls = (x->calls.after - x->calls.before) * (x->own.before + x->own.after) / 2;
        bool of_calls = x->calls_changed && (!x->own_changed || fabs(calls) > fabs(own));
        x->goes_with = find_reason(c, x->row, of_calls,
                                   of_calls ? x->calls.after - x->calls.before : x->own.after - x->own.before);
        g_array_append_val(c->changes, *x);
    }
    if (c->changes->len > 0)
        qsort(c->changes->data, c->changes->len, sizeof(place_change), by_time_change);
    g_free(sorted);
    g_free(all);
}

/* ---- sensors ---- */

static int by_sensor_change(const void *a, const void *b)
{
    double x = fabs(log(fmax(fabs(((const sensor_change *)a)->value.after), 1e-9) /
                        fmax(fabs(((const sensor_change *)a)->value.before), 1e-9))),
           y = fabs(log(fmax(fabs(((const sensor_change *)b)->value.after), 1e-9) /
                        fmax(fabs(((const sensor_change *)b)->value.before), 1e-9)));
    return (x < y) - (x > y);
}

static void find_sensors(comparison *c)
{
    const profile *p = c->profile;
    double *sorted = g_new(double, p->sensors->len + 1);
    contrast *values = g_new(contrast, p->sensors->len + 1);
    size_t tests = 0;
    for (guint i = 0; i < p->sensors->len; i++) {
        const profile_sensor *s = g_ptr_array_index(p->sensors, i);
        values[i] = contrast_make(&s->sides[0], &p->kinds[0], &s->sides[1], &p->kinds[1]);
        if (values[i].tested)
            sorted[tests++] = values[i].p;
    }
    double threshold = contrast_threshold(sorted, tests, COMPARISON_RATE);
    for (guint i = 0; i < p->sensors->len; i++)
        if (is_change(&values[i], threshold) && fabs(relative(&values[i])) >= SENSOR_CHANGE_MIN) {
            const sensor_change x = {g_ptr_array_index(p->sensors, i), values[i]};
            g_array_append_val(c->sensors, x);
        }
    if (c->sensors->len > 0)
        qsort(c->sensors->data, c->sensors->len, sizeof(sensor_change), by_sensor_change);
    g_array_set_size(c->sensors, MIN(c->sensors->len, (guint)SENSORS_SHOWN));
    g_free(sorted);
    g_free(values);
}

/* ---- the result ---- */

/*
 * Adds a place's change of the time per request to the sum of all changes. Also adds the half widths of the intervals,
 * because the errors of different places may be correlated.
 */
static void add_change(comparison *c, const place_change *x)
{
    double own = x->own.after - x->own.before, calls = x->calls.after - x->calls.before,
           own_half = contrast_half_width(&x->own, c->level), calls_half = contrast_half_width(&x->calls, c->level);
    if (x->calls.before <= 0 || x->calls.after <= 0) {
        double mean = x->calls.after > 0 ? x->own.after : x->own.before;
        c->changes_ns += calls * mean;
        c->changes_half_ns += fabs(calls) * own_half + mean * calls_half;
        return;
    }
    double mean_calls = (x->calls.before + x->calls.after) / 2, mean_own = (x->own.before + x->own.after) / 2;
    if (x->own_changed) {
        c->changes_ns += own * mean_calls;
        c->changes_half_ns += own_half * mean_calls;
    }
    if (x->calls_changed) {
        c->changes_ns += calls * mean_own;
        c->changes_half_ns += calls_half * mean_own;
    }
}

/*
 * Sets the verdict. If the requests' time varies too much for a verdict, the verdict follows from the sum of the
 * places' changes. This sum must agree with the change of the requests' time within the uncertainty of both. Otherwise,
 * other places may compensate for the changes, or the changes may not be on critical paths.
 */
static void judge(comparison *c)
{
    double total = c->total.after - c->total.before, half = contrast_half_width(&c->total, COMPARISON_RATE);
    for (guint i = 0; i < c->changes->len; i++)
        add_change(c, &g_array_index(c->changes, place_change, i));
    c->of_changes = !c->total_changed && fabs(c->changes_ns) > c->changes_half_ns &&
                    fabs(c->changes_ns - total) <= c->changes_half_ns + half;
    double change = c->total_changed ? total : c->of_changes ? c->changes_ns : 0;
    bool failing = c->failed_changed && c->failed.after > c->failed.before;
    if (change > 0)
        c->verdict = COMPARISON_SLOWER;
    else if (failing)
        c->verdict = COMPARISON_FAILING;
    else if (change < 0)
        c->verdict = COMPARISON_FASTER;
    else if (comparison_detectable(c) > COMPARISON_DETECTABLE_MAX)
        c->verdict = COMPARISON_CANNOT_TELL;
    else
        c->verdict = c->changes->len > 0 ? COMPARISON_PLACES : COMPARISON_EQUAL;
}

/* Returns the reason why the requests' times cannot be compared, or NULL. */
static char *reason_no_data(const comparison *c)
{
    static const char *const sides[] = {"before", "after"};
    if (c->requests[0] < REQUESTS_EACH_MIN || c->requests[1] < REQUESTS_EACH_MIN)
        return g_strdup_printf(
            "a comparison needs at least %d requests before the change and as many after it; there are %.0f and %.0f",
            REQUESTS_EACH_MIN, c->requests[0], c->requests[1]);
    if (c->unadjusted.before <= 0 || c->unadjusted.after <= 0)
        return g_strdup_printf("the requests %s the change have no duration; log the start and the end of each request",
                               sides[c->unadjusted.before > 0]);
    if (!c->unadjusted.tested)
        return g_strdup("there are too few requests to measure how much their times vary; compare longer logs");
    return NULL;
}

/*
 * Returns the reason why the comparison could not have found a change, with a remedy. The caller frees it with g_free.
 */
static char *reason_weak(const comparison *c)
{
    const profile *p = c->profile;
    double detectable = comparison_detectable(c), largest = COMPARISON_DETECTABLE_MAX;
    char *what = g_strdup_printf("times vary so much that only a change of %.0f %% or more would be found",
                                 100 * detectable),
         *remedy;
    if (p->kinds[0].are_logs || p->kinds[1].are_logs) {
        const unsigned logs[SIDES] = {MIN(p->logs[0], UNITS_MAX), MIN(p->logs[1], UNITS_MAX)};
        unsigned needed = contrast_logs_needed(&c->total, logs, COMPARISON_RATE, largest * c->total.before);
        remedy = needed > 0 ? g_strdup_printf("compare about %u logs from before the change, and as many from after it",
                                              needed)
                            : g_strdup("compare longer logs of the same load");
    } else {
        double more = detectable * detectable / (largest * largest);
        remedy = g_strdup_printf("compare about %.0f requests from before the change, and as many from after it",
                                 ceil(more * fmin(c->requests[0], c->requests[1])));
    }
    char *reason = g_strdup_printf("%s; %s", what, remedy);
    g_free(what);
    g_free(remedy);
    return reason;
}

comparison *comparison_make(const profile *p)
{
    comparison *c = g_new0(comparison, 1);
    const profile_row *all = profile_row_at(p, 0);
    c->profile = p;
    c->changes = g_array_new(FALSE, FALSE, sizeof(place_change));
    c->sensors = g_array_new(FALSE, FALSE, sizeof(sensor_change));
    sums total = {{all->own[0], all->own[1]}}, failed = total;
    for (int side = 0; side < SIDES; side++) {
        c->requests[side] = total_of(p, side, all->own[side].count);
        memcpy(failed.sides[side].sum, p->failed[side], sizeof p->failed[side]);
    }
    c->unadjusted = contrast_sums(p, &total);
    c->failed = contrast_sums(p, &failed);
    c->verdict = COMPARISON_CANNOT_TELL;
    c->reason = reason_no_data(c);
    if (c->reason != NULL)
        return c;
    find_mix(c);
    c->strata = c->mix != NULL ? c->mix : find_strata(c);
    const profile_bin *bins = strata_bins(c, all);
    if (bins != NULL)
        remove_mix(p, &(binned){bins, bins, false}, &total);
    c->total = contrast_sums(p, &total);
    if (!c->total.tested || c->total.after <= 0) {
        c->reason = g_strdup(
            "the requests before the change differ too much from those after it; select similar requests with --where");
        return c;
    }
    c->has_data = true;
    c->total_changed = is_change(&c->total, COMPARISON_RATE);
    find_changes(c);
    if (c->total_changed || c->changes->len > 0)
        find_sensors(c);
    judge(c);
    if (c->verdict == COMPARISON_CANNOT_TELL)
        c->reason = reason_weak(c);
    return c;
}

void comparison_free(comparison *c)
{
    for (guint i = 0; i < c->changes->len; i++)
        g_free(g_array_index(c->changes, place_change, i).goes_with);
    g_array_free(c->changes, TRUE);
    g_array_free(c->sensors, TRUE);
    g_free(c->reason);
    g_free(c);
}
