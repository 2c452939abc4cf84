/*
 * The own times of one place's visits, and how much of their variation something explains.
 *
 * A sample holds up to SAMPLE_MAX visits of a place, in order of time. It has two halves, by request. What explains the
 * times is fitted to one half and judged on the other, both ways. One thread at a time.
 */
#ifndef NLDIAG_SAMPLE_H
#define NLDIAG_SAMPLE_H

#include "diag/visits.h"

enum { SAMPLE_MAX = 4096, BINS_MAX = 64, BIN_NONE = 255 };

typedef struct sample {
    const visits *visits;
    uint32_t place, count;
    uint32_t *index;          /* of visits */
    double *y;                /* own time without what is claimed already, in nanoseconds */
    double *weight;           /* the part of it on the critical path */
    double *rank;             /* of y, 1 to count; ties have their mean */
    double scale;             /* visits of the place for each one in the sample */
    double median, deviation; /* deviation: sum of |y - median| */
    bool reduced;             /* findings claimed a part of the times */
} sample;

/* How well something that divides visits into bins explains their times. */
typedef struct explanation {
    double z;                 /* Kruskal and Wallis's test, as a standard normal deviate */
    double explained;         /* the part of the absolute deviation that the other half's medians remove */
    double claim_ns;          /* of critical paths: the excess of the slow bins over the others */
    uint64_t slow;            /* bits of the slow bins */
    double slow_ns, other_ns; /* mean times */
    uint32_t slow_count;
    float *excess; /* by visit of the sample, for g_free */
} explanation;

/* claimed: time of each visit that findings have already. */
sample *sample_new(const visits *v, uint32_t place, const float *claimed);
void sample_free(sample *s);

/* Ranks the times again after a change of y. */
void sample_rank(sample *s);

/* bins: a number below `count` or BIN_NONE for each visit. `ordered` bins are those of a number. */
explanation sample_explain(const sample *s, const uint8_t *bins, int count, bool ordered);

/* The part of the deviation that is removed by subtracting a wait from each time. */
double sample_explained_by_waits(const sample *s, const float *waits);

/* Divides values into up to 8 bins of equal counts; returns how many. NAN has none. */
int sample_quantize(const float *values, uint32_t count, uint8_t *bins);

/* The half of a visit, at random: hosts may take turns. */
static inline bool sample_half(const sample *s, uint32_t i)
{
    uint32_t x = visit_at(s->visits, s->index[i])->request;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return (x ^ (x >> 16)) & 1;
}

double normal_tail(double z);
int compare_double(const void *a, const void *b);
double median_of(double *values, size_t count); /* sorts them; 0 without any */

#endif
