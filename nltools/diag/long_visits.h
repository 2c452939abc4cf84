/*
 * Finds visits that take longer than the usual times of their kinds and amounts of work. Callers: steps.c and
 * tail_groups.c. No state.
 */
#ifndef NLDIAG_LONG_VISITS_H
#define NLDIAG_LONG_VISITS_H

#include "diag/search.h"

/* A visit is long if its time is this number of standard deviations above the usual time, in logarithms: one of a
 * thousand visits in a log-normal distribution. The spread is that of the short times, which long visits do not change.
 */
#define LONG_DEVIATIONS 3.1

/* Accuracy of a delay: timers and round trips add up to this part of it. */
#define DELAY_ACCURACY 0.01

/*
 * A long visit: its position in the sample, its usual time, and the spread of the usual times, in nanoseconds. A visit
 * is long if it takes longer than `limit`. `value` is the excess over the usual time.
 */
typedef struct long_visit {
    uint32_t i;
    double value, time, usual, spread, limit;
} long_visit;

/* A sample of a place's visits, whose kinds and amounts of work were evened out, and its long visits. */
typedef struct long_sample {
    const sample *x;
    sample *kinds, *amounts, *even;
    GArray *found; /* elements are long_visit */
    double spread; /* of the usual times, in logarithms */
} long_sample;

/* Finds the long visits of a sample, which the caller clears with long_sample_clear. */
long_sample long_sample_of(const search *s, const sample *x);
void long_sample_clear(long_sample *l);

#endif
