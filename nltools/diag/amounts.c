/*
 * Evens out the times of visits that request different amounts of work.
 *
 * Amounts often differ by a factor of 100, and so do the times. The effect of a slow host or resource is small compared
 * to these differences. The module fits the time as a function of the amount, and multiplies the time of each visit by
 * a factor, so that visits with any amount take the same time. No state.
 */
#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <string.h>

/* AMOUNT_EXPLAINED_MIN: minimum part of the variation that an amount explains. AMOUNT_CHANCE_MAX: maximum probability
 * that chance alone causes the amount's effect. */
#define AMOUNT_EXPLAINED_MIN 0.1
#define AMOUNT_CHANCE_MAX 1e-6

/* Minimum part of the visits with a known amount. */
#define KNOWN_MIN 0.9

enum { AMOUNTS_MAX = 2, QUANTILES_MAX = 16 };

/* A point of the function: logarithms of the median amount and of the median time of a range of amounts. */
typedef struct point {
    double amount, time;
} point;

/* Returns the logarithm of an amount. `smallest` is the smallest positive amount. */
static double log_amount(double amount, double smallest)
{
    return log(fmax(amount, smallest / 2));
}

/*
 * Computes the points of the function, in ascending order. Returns the number of points. The time for each unit of work
 * grows at most by the factor EFFECT_MIN. A kind of work that has both larger amounts and longer times is therefore not
 * evened out.
 */
static int find_points(const sample *x, const float *amounts, const uint8_t *bins, int count, double smallest,
                       point *points)
{
    double *values = g_new(double, x->count + 1), *times = g_new(double, x->count + 1);
    int used = 0;
    double lowest = INFINITY; /* logarithm of the shortest time for a unit of work */
    for (int b = 0; b < count; b++) {
        size_t n = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if (bins[i] == b) {
                values[n] = (double)amounts[i];
                times[n++] = x->y[i];
            }
        double amount = log_amount(median_of(values, n), smallest), time_ns = median_of(times, n);
        if (time_ns <= 0 || (used > 0 && amount <= points[used - 1].amount))
            continue;
        points[used++] = (point){amount, fmin(log(time_ns), lowest + amount + log(EFFECT_MIN))};
        lowest = fmin(lowest, log(time_ns) - amount);
    }
    g_free(values);
    g_free(times);
    return used;
}

/* Returns the logarithm of the time that is usual for an amount. Beyond the outer points, the time grows as between the
 * two nearest points, but at most in proportion to the amount. */
static double usual_time(const point *points, int count, double amount)
{
    int i = 1;
    while (i < count - 1 && amount > points[i].amount)
        i++;
    const point *a = &points[i - 1], *b = &points[i];
    double slope = (b->time - a->time) / (b->amount - a->amount);
    if (amount < points[0].amount || amount > points[count - 1].amount)
        slope = CLAMP(slope, 0, 1);
    return amount > b->amount ? b->time + slope * (amount - b->amount) : a->time + slope * (amount - a->amount);
}

/* Gets the amounts of the visits. Returns whether the column has amounts for nearly all visits. */
static bool get_amounts(const search *s, const sample *x, const column *c, float *amounts)
{
    uint32_t known = 0;
    if (c->closed || c->has_text || !column_is_amount(x, c))
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        amounts[i] = column_of_visit(c, s->v, x->index[i]);
        known += isfinite(amounts[i]);
    }
    return known >= KNOWN_MIN * x->count;
}

/* Returns the part of the variation that the amounts explain, or 0 if the time does not grow with the amounts as
 * ordinary work does. */
static double explained_by(const search *s, const sample *x, const float *amounts, uint8_t *bins, int *count)
{
    const division d = {
        .values = amounts, .bins = bins, .ordered = true, .count = *count = sample_quantize(amounts, x->count, bins)};
    if (d.count < 3)
        return 0;
    explanation e = sample_explain(x, bins, d.count, true);
    g_free(e.excess);
    return e.p <= AMOUNT_CHANCE_MAX && (e.slow & 1) == 0 && e.slow_ns > EFFECT_MIN * e.other_ns &&
                   division_is_proportional(s, x, &d)
               ? e.explained
               : 0;
}

/* Evens out a sample by the amounts that explain most of its variation. Returns false if there are no such amounts. */
static bool even_out(const search *s, sample *x, const column **used, int number)
{
    float *amounts = g_new(float, x->count + 1), *best = g_new(float, x->count + 1);
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    double largest = AMOUNT_EXPLAINED_MIN, smallest = INFINITY;
    int count = 0;
    for (uint32_t n = 0; n < s->v->columns->count; n++) {
        const column *c = &s->v->columns->all[n];
        double explained =
            c != used[0] && get_amounts(s, x, c, amounts) ? explained_by(s, x, amounts, bins, &count) : 0;
        if (explained <= largest)
            continue;
        largest = explained;
        used[number] = c;
        memcpy(best, amounts, x->count * sizeof *best);
    }
    for (uint32_t i = 0; used[number] != NULL && i < x->count; i++)
        smallest = best[i] > 0 ? fmin(smallest, (double)best[i]) : smallest;
    point points[QUANTILES_MAX];
    int point_count = 0;
    if (used[number] != NULL && isfinite(smallest)) {
        count = sample_quantize(best, x->count, bins);
        point_count = find_points(x, best, bins, count, smallest, points);
    }
    double middle = x->median > 0 ? log(x->median) : 0;
    for (uint32_t i = 0; i < x->count && point_count > 1 && x->median > 0; i++)
        if (isfinite(best[i])) {
            double factor = exp(middle - usual_time(points, point_count, log_amount((double)best[i], smallest)));
            x->factor[i] *= factor;
            x->y[i] *= factor;
        }
    if (point_count > 1)
        sample_rank(x);
    g_free(amounts);
    g_free(best);
    g_free(bins);
    return point_count > 1 && x->median > 0;
}

sample *sample_even_out_amounts(const search *s, const sample *x)
{
    const column *used[AMOUNTS_MAX] = {NULL};
    sample *even = sample_copy(x);
    int number = 0;
    while (number < AMOUNTS_MAX && even_out(s, even, used, number))
        number++;
    if (number > 0)
        return even;
    sample_free(even);
    return NULL;
}
