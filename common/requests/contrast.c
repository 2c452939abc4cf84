#include "config.h"

#include "requests/contrast.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCKS_WITH_VISITS_MIN = 8 };

/* The mean of one side. `variance` is the variance of the mean, and `freedom` its degrees of freedom. */
typedef struct estimate {
    double mean, variance, freedom;
    double variance_of_logs; /* variance between logs; 0 if the units are blocks */
    double correlation;      /* correlation of adjacent blocks; 0 if the units are logs */
    bool has_variance;
} estimate;

/* Returns the continued fraction of the incomplete beta function (DLMF 8.17.22), computed by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / fmax(1 - (a + b) * x / (a + 1), 1e-30), value = d;
    for (int m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
               odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        value *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        value *= d * c;
        if (fabs(d * c - 1) < 1e-13)
            break;
    }
    return value;
}

/* Returns the probability that the absolute value of Student's t is at least t. */
static double student_tails(double t, double freedom)
{
    double a = freedom / 2, b = 0.5, x = freedom / (freedom + t * t);
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? factor * beta_fraction(a, b, x) / a
                                     : 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

/* Returns the value that the absolute value of Student's t exceeds with the probability `tails`. */
static double student_quantile(double tails, double freedom)
{
    double low = 0, high = 1;
    while (student_tails(high, freedom) > tails && high < 1e12)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(student_tails(middle, freedom) > tails ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static estimate estimate_logs(const unit_sums *s, unsigned units)
{
    estimate e = {0};
    double squares = 0;
    unsigned n = 0;
    for (unsigned u = 0; u < units; u++)
        if (s->count[u] > 0) {
            double value = s->sum[u] / s->count[u], off = value - e.mean;
            e.mean += off / ++n;
            squares += off * (value - e.mean);
        }
    if (n >= 2) {
        e.has_variance = true;
        e.variance_of_logs = squares / (n - 1);
        e.variance = e.variance_of_logs / n;
        e.freedom = n - 1;
    }
    return e;
}

static estimate estimate_blocks(const unit_sums *s, unsigned units)
{
    double sum = 0, count = 0, squares = 0, products = 0, latest = 0;
    unsigned used = 0;
    for (unsigned u = 0; u < units; u++) {
        sum += s->sum[u];
        count += s->count[u];
        used += s->count[u] > 0;
    }
    estimate e = {.mean = count > 0 ? sum / count : 0};
    if (used < BLOCKS_WITH_VISITS_MIN)
        return e;
    for (unsigned u = 0; u < units; u++) {
        double residual = s->sum[u] - e.mean * s->count[u];
        squares += residual * residual;
        products += residual * latest;
        latest = residual;
    }
    e.correlation = squares > 0 ? products / squares : 0;
    e.has_variance = true;
    e.variance = squares * units / (units - 1) / (count * count);
    e.freedom = units - 1;
    return e;
}

static estimate estimate_make(const unit_sums *s, const unit_kind *kind)
{
    return kind->are_logs ? estimate_logs(s, kind->units) : estimate_blocks(s, kind->units);
}

/*
 * Increases the variance to account for the correlation of adjacent blocks, because correlated blocks contain less
 * information.
 */
static void estimate_inflate(estimate *e, double correlation)
{
    double rho = fmin(fmax(correlation, 0), 0.9), inflation = (1 + rho) / (1 - rho);
    e->variance *= inflation;
    e->freedom = fmax(e->freedom / inflation, 2);
}

/*
 * Completes the estimate of a single log that is compared with several logs. Assumes that the single log varies at
 * least as much as the several logs.
 */
static void estimate_borrow(estimate *single, const estimate *several)
{
    single->variance = fmax(single->variance, several->variance_of_logs);
    single->freedom = several->freedom;
    single->has_variance = several->has_variance;
}

static contrast contrast_of(const estimate *a, const estimate *b)
{
    contrast c = {.before = a->mean, .after = b->mean, .tested = a->has_variance && b->has_variance, .p = 1};
    double variance = a->variance + b->variance, difference = fabs(b->mean - a->mean),
           parts = a->variance * a->variance / fmax(a->freedom, 1) + b->variance * b->variance / fmax(b->freedom, 1);
    c.error = sqrt(variance);
    c.freedom = parts > 0 ? variance * variance / parts : a->freedom + b->freedom;
    if (!c.tested || difference <= 1e-9 * fmax(fabs(a->mean), fabs(b->mean)))
        return c;
    c.p = c.error > 0 ? student_tails(difference / c.error, c.freedom) : 0;
    return c;
}

contrast contrast_make(const unit_sums *before, const unit_kind *before_kind, const unit_sums *after,
                       const unit_kind *after_kind)
{
    estimate a = estimate_make(before, before_kind), b = estimate_make(after, after_kind);
    /* Assume that both sides have the same correlation, which is true if nothing changed. */
    bool both = !before_kind->are_logs && !after_kind->are_logs;
    double mean = (a.correlation + b.correlation) / 2;
    if (!before_kind->are_logs)
        estimate_inflate(&a, both ? mean : a.correlation);
    if (!after_kind->are_logs)
        estimate_inflate(&b, both ? mean : b.correlation);
    if (before_kind->are_logs && !after_kind->are_logs)
        estimate_borrow(&b, &a);
    if (after_kind->are_logs && !before_kind->are_logs)
        estimate_borrow(&a, &b);
    return contrast_of(&a, &b);
}

contrast contrast_between(const contrast *a, const contrast *b)
{
    const estimate x = {.mean = a->after - a->before,
                        .variance = a->error * a->error,
                        .freedom = a->freedom,
                        .has_variance = a->tested},
                   y = {.mean = b->after - b->before,
                        .variance = b->error * b->error,
                        .freedom = b->freedom,
                        .has_variance = b->tested};
    return contrast_of(&x, &y);
}

double contrast_half_width(const contrast *c, double level)
{
    return c->error > 0 ? c->error * student_quantile(level, c->freedom) : 0;
}

double contrast_detectable(const contrast *c, double level)
{
    return c->error > 0 ? c->error * (student_quantile(level, c->freedom) + student_quantile(0.1, c->freedom)) : 0;
}

unsigned contrast_logs_needed(const contrast *c, const unsigned logs[2], double level, double difference)
{
    double variance = c->error * c->error / (1.0 / logs[0] + 1.0 / logs[1]);
    for (unsigned n = 2; n <= UNITS_MAX; n++) {
        const contrast larger = {.error = sqrt(2 * variance / n), .freedom = n - 1};
        if (contrast_detectable(&larger, level) <= difference)
            return n;
    }
    return 0;
}

static int by_p(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double contrast_threshold(double *p, size_t count, double rate)
{
    double threshold = 0;
    if (count > 0)
        qsort(p, count, sizeof *p, by_p);
    for (size_t i = 0; i < count; i++)
        if (p[i] <= rate * (double)(i + 1) / (double)count)
            threshold = p[i];
    return threshold;
}
