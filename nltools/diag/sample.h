/*
 * Samples of the own times of a place's visits, and functions that measure the part of the variation that an
 * explanation removes.
 *
 * A sample contains up to SAMPLE_MAX visits of a place, in order of time. The sample has two halves, and all visits of
 * a request are in the same half. The functions fit an explanation to each half, and measure with the other half how
 * much the explanation explains. Tests against chance use the whole sample, and assume that the requests are
 * independent. Not thread-safe.
 */
#ifndef NLDIAG_SAMPLE_H
#define NLDIAG_SAMPLE_H

#include "diag/keyed_sort.h"
#include "diag/visits.h"

enum { SAMPLE_MAX = 4096, BINS_MAX = 64, BIN_NONE = 255 };

/* The search compares the visits of a kind separately only if the kind has at least KIND_COUNT_MIN visits. */
enum { KIND_COUNT_MIN = 20 };

/* Kinds of visits according to a column: with a value, without a value, and cache misses. */
typedef enum visit_choice { VISITS_WITH, VISITS_WITHOUT, VISITS_MISS } visit_choice;

typedef struct visit_kind {
    const column *column; /* NULL: all visits */
    visit_choice choice;
} visit_kind;

typedef struct sample {
    const visits *visits;
    uint32_t place, count;
    uint32_t *index; /* indices of the visits */
    double *y;       /* own time in nanoseconds, without the time that findings have already claimed */
    double *weight;  /* part of y on the critical path */
    double *rank;    /* rank of y, from 1 to count; equal values have their mean rank */
    uint32_t *order; /* positions of the visits in the sample, grouped by request; requests are in random order */
    double scale;    /* number of the place's visits divided by the number of visits in the sample */
    double median, deviation; /* deviation is the sum of |y - median| */
    bool reduced;             /* findings have claimed a part of the times */
    double *factor;           /* see sample_even_out; NULL: all factors are 1 */
    visit_kind kind;          /* the kind of the visits */
    double part;              /* see sample_select; 1 for a sample of all kinds */
} sample;

/* The quality with which bins explain the visits' times. */
typedef struct explanation {
    double p;                 /* probability of at least this effect by chance */
    double explained;         /* share of the deviation that the bins explain (cross-validated with the two halves) */
    double claim_ns;          /* excess of the slow bins over the other bins, on critical paths */
    uint64_t slow;            /* bit mask of the slow bins */
    double slow_ns, other_ns; /* mean times */
    double slow_logged_ns, other_logged_ns; /* mean times in the log, before findings claimed parts and before
                                               operations were evened out */
    bool is_of_rest; /* the slow bins are slow only in the times that findings have left, not in the log */
    uint32_t slow_count;
    float *excess; /* for each visit of the sample; the caller frees it with g_free */
} explanation;

/* Returns the number of visits in the sample of a place. */
static inline uint32_t sample_size(const place *p)
{
    return MIN(p->work_count, SAMPLE_MAX);
}

/* Returns the position in by_work of the i-th visit in the sample of a place. */
static inline uint32_t sample_position(const place *p, uint32_t i)
{
    return p->first + (uint32_t)((uint64_t)i * p->work_count / sample_size(p));
}

/* Returns a sample of a place's visits. `claimed` is the time of each visit that findings have claimed. */
sample *sample_new(const visits *v, uint32_t place, const float *claimed);

/* Returns a sample of at most SAMPLE_MAX of `count` visits, with `values` instead of their times. `place` is the place
 * of most of the visits. */
sample *sample_of_values(const visits *v, uint32_t place, const uint32_t *index, const double *values, uint32_t count);
void sample_free(sample *s);

/* Ranks the times again after y has changed. */
void sample_rank(sample *s);

/* Returns a copy of a sample in which `factor` is not NULL. */
sample *sample_copy(const sample *s);

/*
 * Returns a copy of a sample in which the groups of visits have the same median time. Multiplies the times of each
 * group by a factor. `groups` contains the number of each visit's group, below `count`.
 */
sample *sample_even_out(const sample *s, const uint32_t *groups, uint32_t count);

/*
 * Returns a sample of the chosen visits of a sample, in the same order. `chosen` has an element for each visit. Sets
 * `part` to the part of the deviation that the chosen visits have among themselves. An explanation of these visits
 * explains at most this part of the deviation of all visits. The sample must not be evened out.
 */
sample *sample_select(const sample *s, const bool *chosen);

/* Measures how well a division of the visits into bins explains their times. The bin of a visit is a number below
 * `count`, or BIN_NONE. If `ordered` is true, the bins are ranges of a number, in ascending order. */
explanation sample_explain(const sample *s, const uint8_t *bins, int count, bool ordered);

/* Returns the part of the deviation that vanishes when each visit's element of `waits` is subtracted from its time. */
double sample_explained_by_waits(const sample *s, const float *waits);

/* Returns whether the visits that wait take longer than the others only in the times that findings have left, and not
 * in the log. `waits` has an element for each visit of the log. */
bool sample_waits_are_of_rest(const sample *s, const float *waits);

/*
 * Divides values into at most 16 bins of about equal counts. Uses fewer bins for few values, so that each half of the
 * sample has enough visits of each bin to predict the other half. Returns the number of bins, which is 1 if all values
 * are equal. NAN and INFINITY belong to no bin.
 */
int sample_quantize(const float *values, uint32_t count, uint8_t *bins);

/*
 * Returns the resolution of the times of a place's visits in nanoseconds, if it is coarse: many visits have the same
 * duration, and nearly all durations differ by multiples of the resolution. Otherwise returns 0. Uses the durations in
 * the log, because findings may already have claimed parts of the times. A few finer times have no effect.
 */
double place_find_resolution(const visits *v, const place *p);

/* Returns the unit, in nanoseconds, in which the programs of a place log times (time_units.h). */
double place_find_time_unit(const visits *v, const place *p);

/* Returns whether the time unit of a place is longer than its visits on average. The log then does not show which
 * visits were in progress at the same time. */
bool place_times_are_coarse(const visits *v, const place *p);

/* Returns whether values are like sequence numbers: in the whole sample or at each site, they nearly always increase,
 * or nearly always decrease, with time. */
bool sample_values_count(const sample *x, const float *values);

/* In a normal distribution, a fifth of the values is more than this number of standard deviations above the mean. */
#define NORMAL_FIFTH 0.8416

double normal_tail(double z);

/* Returns the probability of at most k successes in n trials that succeed with probability `share`. k must be below the
 * expected number of successes. */
double binomial_tail(uint32_t k, uint32_t n, double share);

/* Of `all` elements, `marked` are marked, and `chosen` are chosen at random. Returns the probability that at least
 * `both` elements are marked and chosen (hypergeometric distribution). */
double hypergeometric_tail(double all, double marked, double chosen, double both);
double median_of(double *values, size_t count); /* sorts the values; returns 0 if there are no values */

#endif
