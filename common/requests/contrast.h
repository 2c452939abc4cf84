/*
 * The statistics of a comparison of two sides (before and after a change). Determines whether a mean differs between
 * the sides, and by how much.
 *
 * A mean is the ratio of two sums, such as total time and number of visits. The requests of one run depend on each
 * other, so the sample consists of units instead of requests. If a side has several logs, each log is a unit. The units
 * of a single log are blocks of consecutive requests (batch means, Law and Kelton, "Simulation Modeling and Analysis").
 * The correlation of adjacent blocks increases the variance like that of an AR(1) process. The module tests differences
 * with Welch's t-test (Biometrika 1947). The tests of a family share one false discovery rate (Benjamini and Hochberg,
 * J. R. Stat. Soc. B 1995); the intervals of the changes that were found have the corresponding level (Benjamini and
 * Yekutieli, J. Am. Stat. Assoc. 2005).
 *
 * The functions have no state. Any thread may call them.
 */
#ifndef NETLOGGER_REQUESTS_CONTRAST_H
#define NETLOGGER_REQUESTS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

enum { UNITS_MAX = 64 };

/* For each unit, two sums over its visits: the number of visits and their total time, or another pair of numbers. */
typedef struct unit_sums {
    double count[UNITS_MAX], sum[UNITS_MAX];
} unit_sums;

/* The units of one side. */
typedef struct unit_kind {
    unsigned units;
    bool are_logs; /* the units are logs; otherwise, they are blocks of one log */
} unit_kind;

typedef struct contrast {
    bool tested; /* the data was sufficient for a test; otherwise, only `before`, `after` and p = 1 are valid */
    double before, after;
    double error, freedom; /* standard error of the difference, and degrees of freedom of t */
    double p;              /* two-sided p-value */
} contrast;

/*
 * Compares the means (sum / count) of two sides. A side whose count is 0 has the mean 0. Returns both means and the
 * result of the test.
 */
contrast contrast_make(const unit_sums *before, const unit_kind *before_kind, const unit_sums *after,
                       const unit_kind *after_kind);

/*
 * Compares two differences: tests whether the sides differ more in `b` than in `a`. In the result, `before` is the
 * difference of `a`, and `after` is the difference of `b`.
 */
contrast contrast_between(const contrast *a, const contrast *b);

/*
 * Returns half the width of the confidence interval of the difference. The interval misses the true difference with the
 * probability `level`.
 */
double contrast_half_width(const contrast *c, double level);

/* Returns the smallest difference that a test at `level` finds with a probability of 95 %. */
double contrast_detectable(const contrast *c, double level);

/*
 * Returns the number of logs that each side needs, so that a test at `level` finds `difference` with a probability of
 * 95 %. Assumes that logs vary as much as the logs of `c`. `logs` contains the number of logs on each side of `c`.
 * Returns 0 if UNITS_MAX logs are not sufficient. If the test of `c` cannot find the difference, the result is larger
 * than the smaller number in `logs`.
 */
unsigned contrast_logs_needed(const contrast *c, const unsigned logs[2], double level, double difference);

/*
 * Returns the largest p at which the false discovery rate of `count` tests is at most `rate`, or 0 if no p is small
 * enough. Sorts `p`.
 */
double contrast_threshold(double *p, size_t count, double rate);

#endif
