/*
 * A quantity, many times over: count, sum, extremes and quantiles. Times in nanoseconds for the most part.
 *
 * Values are kept as they are, and quantiles are exact by the nearest rank, until there are NL_DISTRIBUTION_EXACT of
 * them. Beyond that they are counted in buckets, 64 between one power of two and the next, so that a quantile is wrong
 * by no more than NL_DISTRIBUTION_ERROR of its value, however many there are. One thread at a time.
 */
#ifndef NETLOGGER_BASE_DISTRIBUTION_H
#define NETLOGGER_BASE_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NL_DISTRIBUTION_EXACT = 1 << 18 };
#define NL_DISTRIBUTION_ERROR (1.0 / 128)

typedef struct nl_distribution {
    uint64_t count;
    double total;
    int64_t least, most;
    int64_t *values; /* NULL once they are counted in buckets */
    size_t capacity;
    uint64_t *buckets; /* likewise before; each of those up to its upper bound */
    bool sorted;
} nl_distribution;

/* A distribution begins as all zeros. value must not be negative. */
void nl_distribution_add(nl_distribution *d, int64_t value);

/* The value that a share (0 to 1) of them does not exceed; 0 when there are none. */
int64_t nl_distribution_quantile(nl_distribution *d, double share);

/* The mean, 0 when there are none. */
double nl_distribution_mean(const nl_distribution *d);

/* How many values are above low and not above high. */
uint64_t nl_distribution_between(nl_distribution *d, double low, double high);

/* Whether quantiles are exact. */
bool nl_distribution_is_exact(const nl_distribution *d);

/* Frees what it holds; it is as at the beginning then. */
void nl_distribution_clear(nl_distribution *d);

#endif
