/*
 * The distribution of a quantity: count, sum, minimum, maximum and quantiles.
 *
 * A distribution stores up to NL_DISTRIBUTION_EXACT values; quantiles are then exact (nearest rank). If there are more
 * values, the distribution counts all values in buckets, 64 per power of two. Then, the relative error of a quantile is
 * at most NL_DISTRIBUTION_ERROR. Initialize a distribution with zeros. Only one thread at a time may use a
 * distribution.
 */
#ifndef NETLOGGER_BASE_DISTRIBUTION_H
#define NETLOGGER_BASE_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NL_DISTRIBUTION_EXACT = 1 << 18 };
#define NL_DISTRIBUTION_ERROR (1.0 / 128)
enum { NL_DISTRIBUTION_COMPACT_SIZE = 30 << 10 };

typedef struct nl_distribution {
    uint64_t count;
    double total;
    int64_t minimum, maximum;
    int64_t *values;   /* NULL while values are counted in buckets */
    size_t capacity;   /* number of values for which `values` has memory */
    uint64_t *buckets; /* NULL while values are stored */
    bool sorted;
} nl_distribution;

/* Adds a value, which must not be negative. If memory runs out, omits the value. */
void nl_distribution_add(nl_distribution *d, int64_t value);

/* Returns the smallest value v for which at least a share (0 to 1) of the values is <= v; 0 if there are no values. */
int64_t nl_distribution_quantile(nl_distribution *d, double share);

/* Returns the mean; 0 if there are no values. */
double nl_distribution_mean(const nl_distribution *d);

/* Returns the number of values in (low, high]. If values are counted in buckets, the number is approximate. */
uint64_t nl_distribution_between(nl_distribution *d, double low, double high);

/* Moves the values into buckets, which take at most NL_DISTRIBUTION_COMPACT_SIZE bytes. */
void nl_distribution_compact(nl_distribution *d);

/* Returns whether quantiles are exact: false if values are counted in buckets. */
bool nl_distribution_is_exact(const nl_distribution *d);

/* Frees the values. The distribution is empty afterwards. */
void nl_distribution_clear(nl_distribution *d);

#endif
