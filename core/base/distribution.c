#include "config.h"

#include "base/distribution.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/*
 * Each value below TWICE has its own bucket. For larger values, each power of two has EACH buckets of the same
 * width.
 */
enum { BITS = 6, EACH = 1 << BITS, TWICE = 2 * EACH, BUCKETS = TWICE + (62 - BITS) * EACH };

static size_t bucket_of(int64_t value)
{
    if (value < TWICE)
        return value > 0 ? (size_t)value : 0;
    unsigned power = 63 - (unsigned)__builtin_clzll((uint64_t)value), shift = power - BITS;
    return TWICE + (size_t)(power - BITS - 1) * EACH + (size_t)(value >> shift) % EACH;
}

/* Returns the middle of a bucket, limited to the range from the minimum to the maximum value. */
static int64_t value_of(const nl_distribution *d, size_t bucket)
{
    if (bucket < TWICE)
        return (int64_t)bucket;
    unsigned shift = (unsigned)((bucket - TWICE) / EACH) + 1;
    int64_t value = (int64_t)(((uint64_t)(EACH + (bucket - TWICE) % EACH) << shift) + ((UINT64_C(1) << shift) - 1) / 2);
    if (value >= d->maximum)
        return d->maximum;
    return value <= d->minimum ? d->minimum : value;
}

/* Handles a lack of memory. In a program, does not return, but exits. In the library, returns false; the caller then
 * omits the value. */
static bool memory_failed(void)
{
    if (program_memory_failed != NULL)
        program_memory_failed();
    return false;
}

static bool count_in_buckets(nl_distribution *d)
{
    d->buckets = calloc(BUCKETS, sizeof *d->buckets);
    if (d->buckets == NULL)
        return memory_failed();
    for (size_t i = 0; i < d->count; i++)
        d->buckets[bucket_of(d->values[i])]++;
    free(d->values);
    d->values = NULL;
    return true;
}

void nl_distribution_add(nl_distribution *d, int64_t value)
{
    if (d->buckets == NULL && d->count == NL_DISTRIBUTION_EXACT && !count_in_buckets(d))
        return;
    if (d->buckets != NULL) {
        d->buckets[bucket_of(value)]++;
    } else {
        if (d->count == d->capacity) {
            size_t capacity = d->capacity == 0 ? 8 : 2 * d->capacity;
            int64_t *values = reallocarray(d->values, capacity, sizeof *values);
            if (values == NULL) {
                memory_failed();
                return;
            }
            d->values = values;
            d->capacity = capacity;
        }
        d->values[d->count] = value;
        d->sorted = false;
    }
    d->minimum = d->count == 0 || value < d->minimum ? value : d->minimum;
    d->maximum = d->count == 0 || value > d->maximum ? value : d->maximum;
    d->total += (double)value;
    d->count++;
}

static int distribution_compare(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static void sort(nl_distribution *d)
{
    if (!d->sorted && d->count > 0)
        qsort(d->values, d->count, sizeof *d->values, distribution_compare);
    d->sorted = true;
}

/* Returns the rank of a quantile, from 1 to the number of values. */
static uint64_t rank_of(const nl_distribution *d, double share)
{
    double exact = share * (double)d->count;
    uint64_t rank = exact > 0 ? (uint64_t)exact : 0;
    if ((double)rank < exact * (1 - 1e-12)) /* in floating point, 0.07 * 100 is slightly more than 7 */
        rank++;
    return rank < 1 ? 1 : rank > d->count ? d->count : rank;
}

int64_t nl_distribution_quantile(nl_distribution *d, double share)
{
    if (d->count == 0)
        return 0;
    uint64_t rank = rank_of(d, share);
    if (d->buckets == NULL) {
        sort(d);
        return d->values[rank - 1];
    }
    uint64_t so_far = 0;
    size_t bucket = 0;
    while (bucket + 1 < BUCKETS && (so_far += d->buckets[bucket]) < rank)
        bucket++;
    return rank == d->count ? d->maximum : value_of(d, bucket);
}

double nl_distribution_mean(const nl_distribution *d)
{
    return d->count > 0 ? d->total / (double)d->count : 0;
}

/* Returns the number of values that do not exceed the limit. If values are counted in buckets, returns the number of
 * values in the buckets up to the limit's bucket. */
static uint64_t up_to(nl_distribution *d, int64_t limit)
{
    if (d->buckets != NULL) {
        uint64_t count = 0;
        for (size_t i = 0; limit >= 0 && i <= bucket_of(limit); i++)
            count += d->buckets[i];
        return count;
    }
    sort(d);
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->values[middle] <= limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t nl_distribution_between(nl_distribution *d, double low, double high)
{
    /* A double cannot represent INT64_MAX exactly. */
    return (high < (double)INT64_MAX ? up_to(d, (int64_t)high) : d->count) -
           (low < (double)INT64_MAX ? up_to(d, (int64_t)low) : d->count);
}

void nl_distribution_compact(nl_distribution *d)
{
    if (d->buckets == NULL)
        count_in_buckets(d);
}

bool nl_distribution_is_exact(const nl_distribution *d)
{
    return d->buckets == NULL;
}

void nl_distribution_clear(nl_distribution *d)
{
    free(d->values);
    free(d->buckets);
    memset(d, 0, sizeof *d);
}
