/*
 * How long something took, many times: count, sum, extremes and quantiles.
 *
 * Times are kept as they are, and quantiles are exact by the nearest rank, until there are DISTRIBUTION_EXACT of them.
 * Beyond that they are counted in buckets whose bounds grow by a factor, so that a quantile is wrong by no more than
 * DISTRIBUTION_ERROR of its value, however many there are (DDSketch: Masson, Rim, Lee, VLDB 2019, section 2.1). One
 * thread at a time.
 */
#ifndef NLSTAT_DISTRIBUTION_H
#define NLSTAT_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISTRIBUTION_EXACT = 1 << 18 };
#define DISTRIBUTION_ERROR 0.01

typedef struct distribution {
    uint64_t count;
    double total_ns;
    int64_t min_ns, max_ns;
    int64_t *times_ns; /* NULL once they are counted in buckets */
    size_t capacity;
    uint64_t *buckets; /* likewise before; each of those up to its upper bound */
    bool sorted;
} distribution;

/* A distribution begins as all zeros. time_ns must not be negative. */
void distribution_add(distribution *d, int64_t time_ns);

/* The time that a share (0 to 1) of the times does not exceed; 0 when there are none. */
int64_t distribution_quantile_ns(distribution *d, double share);

/* The mean, 0 when there are none. */
double distribution_mean_ns(const distribution *d);

/* How many times are above low_ns and not above high_ns. */
uint64_t distribution_between(distribution *d, double low_ns, double high_ns);

/* Whether quantiles are exact. */
bool distribution_is_exact(const distribution *d);

/* Frees what it holds; it is as at the beginning then. */
void distribution_clear(distribution *d);

#endif
