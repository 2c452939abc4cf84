#include "config.h"

#include "stat/distribution.h"

#include <glib.h>

#include <math.h>
#include <string.h>

/* Bucket 0 is for 0, bucket i for what is above GAMMA^(i - 2) and not above GAMMA^(i - 1); the last holds INT64_MAX. */
#define GAMMA ((1 + DISTRIBUTION_ERROR) / (1 - DISTRIBUTION_ERROR))
enum { BUCKETS = 2186 };

static size_t bucket_of(int64_t time_ns)
{
    if (time_ns <= 0)
        return 0;
    size_t bucket = (size_t)ceil(log((double)time_ns) / log(GAMMA)) + 1;
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The value in a bucket that is wrong by the same factor at both of its ends. */
static int64_t value_of(const distribution *d, size_t bucket)
{
    if (bucket == 0)
        return 0;
    double value = 2 * pow(GAMMA, (double)bucket - 1) / (GAMMA + 1);
    if (value >= (double)d->max_ns)
        return d->max_ns;
    return value <= (double)d->min_ns ? d->min_ns : (int64_t)value;
}

static void count_in_buckets(distribution *d)
{
    d->buckets = g_new0(uint64_t, BUCKETS);
    for (size_t i = 0; i < DISTRIBUTION_EXACT; i++)
        d->buckets[bucket_of(d->times_ns[i])]++;
    g_free(d->times_ns);
    d->times_ns = NULL;
}

void distribution_add(distribution *d, int64_t time_ns)
{
    d->min_ns = d->count == 0 || time_ns < d->min_ns ? time_ns : d->min_ns;
    d->max_ns = d->count == 0 || time_ns > d->max_ns ? time_ns : d->max_ns;
    d->total_ns += (double)time_ns;
    if (d->buckets == NULL && d->count == DISTRIBUTION_EXACT)
        count_in_buckets(d);
    if (d->buckets != NULL) {
        d->buckets[bucket_of(time_ns)]++;
    } else {
        if (d->count == d->capacity) {
            d->capacity = d->capacity == 0 ? 8 : 2 * d->capacity;
            d->times_ns = g_renew(int64_t, d->times_ns, d->capacity);
        }
        d->times_ns[d->count] = time_ns;
        d->sorted = false;
    }
    d->count++;
}

static int compare(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static void sort(distribution *d)
{
    if (!d->sorted && d->count > 0)
        qsort(d->times_ns, d->count, sizeof *d->times_ns, compare);
    d->sorted = true;
}

int64_t distribution_quantile_ns(distribution *d, double share)
{
    uint64_t rank = (uint64_t)ceil(share * (double)d->count);
    rank = rank < 1 ? 1 : rank > d->count ? d->count : rank;
    if (d->count == 0)
        return 0;
    if (d->buckets == NULL) {
        sort(d);
        return d->times_ns[rank - 1];
    }
    uint64_t so_far = 0;
    size_t bucket = 0;
    while (bucket + 1 < BUCKETS && (so_far += d->buckets[bucket]) < rank)
        bucket++;
    return rank == d->count ? d->max_ns : value_of(d, bucket);
}

double distribution_mean_ns(const distribution *d)
{
    return d->count > 0 ? d->total_ns / (double)d->count : 0;
}

/* How many are not above limit_ns. */
static uint64_t up_to(distribution *d, int64_t limit_ns)
{
    if (d->buckets != NULL) {
        uint64_t count = 0;
        for (size_t i = 0; limit_ns >= 0 && i <= bucket_of(limit_ns); i++)
            count += d->buckets[i];
        return count;
    }
    sort(d);
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->times_ns[middle] <= limit_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t distribution_between(distribution *d, double low_ns, double high_ns)
{
    /* INT64_MAX is no double. */
    return (high_ns < (double)INT64_MAX ? up_to(d, (int64_t)high_ns) : d->count) -
           (low_ns < (double)INT64_MAX ? up_to(d, (int64_t)low_ns) : d->count);
}

bool distribution_is_exact(const distribution *d)
{
    return d->buckets == NULL;
}

void distribution_clear(distribution *d)
{
    g_free(d->times_ns);
    g_free(d->buckets);
    memset(d, 0, sizeof *d);
}
