/*
 * Finds visits that take longer than the usual times of their kinds and amounts of work. Callers: steps.c and
 * tail_groups.c. No state.
 */
#ifndef NLDIAG_LONG_VISITS_H
#define NLDIAG_LONG_VISITS_H

#include "diag/search.h"

/*
 * A visit is long if the logarithm of its time is this number of standard deviations above the usual logarithm. In a
 * log-normal distribution, one in a thousand visits is long. Only the short times determine the standard deviation, so
 * that long visits do not change it.
 */
#define LONG_DEVIATIONS 3.1

/* Accuracy of a delay: timers and round trips add up to this part of the delay. */
#define DELAY_ACCURACY 0.01

/* A visit that takes longer than `limit`. `i` is its position in the sample, `value` is its excess over the usual time,
 * and `spread` is the spread of the usual times. Times are in nanoseconds. */
typedef struct long_visit {
    uint32_t i;
    double value, time, usual, spread, limit;
} long_visit;

/* A sample of a place's visits, whose kinds and amounts of work were evened out, and its long visits. */
typedef struct long_sample {
    const sample *x;
    sample *kinds, *amounts, *even;
    GArray *found; /* elements are long_visit */
    double spread; /* spread of the logarithms of the usual times */
} long_sample;

/* Finds the long visits of a sample, which the caller clears with long_sample_clear. */
long_sample long_sample_of(const search *s, const sample *x);
void long_sample_clear(long_sample *l);

#endif
