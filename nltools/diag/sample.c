#include "config.h"

#include <math.h>

#include "diag/sample.h"
#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

enum {
    BIN_COUNT_MIN = 3, /* minimum number of visits of a bin in one half, to predict the other half */
    QUANTILES = 16,
    QUANTILE_COUNT = 16, /* minimum mean number of visits in a quantile */
    EQUAL_ONE_OF = 10,   /* times are coarse if one in ten visits has the same duration as another visit */
    EXACT_MAX = 1024     /* maximum size of a sample for Fisher's test; other samples need only Kruskal-Wallis */
};

/* Minimum part of the durations that are multiples of a coarse resolution. */
#define MULTIPLES_MIN 0.9

double median_of(double *values, size_t count)
{
    sort_doubles(values, count);
    return count == 0 ? 0 : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double normal_tail(double z)
{
    return 0.5 * erfc(z / sqrt(2));
}

/* Returns the logarithm of the number of ways to choose k of n elements. */
static double log_choices(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

double binomial_tail(uint32_t k, uint32_t n, double share)
{
    double term =
               exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) + k * log(share) + (n - k) * log1p(-share)),
           sum = 0;
    for (; term > 1e-6 * sum; k--) {
        sum += term;
        if (k == 0)
            break;
        term *= k / (n - k + 1.0) * (1 - share) / share;
    }
    return sum;
}

double hypergeometric_tail(double all, double marked, double chosen, double both)
{
    double ways = log_choices(all, chosen), sum = 0;
    for (double k = fmax(both, chosen - (all - marked)); k <= fmin(marked, chosen); k++)
        sum += exp(log_choices(marked, k) + log_choices(all - marked, chosen - k) - ways);
    return fmin(1, sum);
}

void sample_rank(sample *s)
{
    keyed *order = g_new(keyed, s->count + 1);
    for (uint32_t i = 0; i < s->count; i++)
        order[i] = (keyed){key_of_double(s->y[i]), i};
    keyed_sort(order, s->count);
    for (uint32_t i = 0, end; i < s->count; i = end) {
        for (end = i + 1; end < s->count && order[end].key == order[i].key; end++)
            ;
        for (uint32_t n = i; n < end; n++)
            s->rank[order[n].index] = (i + 1 + end) / 2.0;
    }
    s->median = s->count == 0 ? 0 : (s->y[order[(s->count - 1) / 2].index] + s->y[order[s->count / 2].index]) / 2;
    g_free(order);
    s->deviation = 0;
    for (uint32_t i = 0; i < s->count; i++)
        s->deviation += fabs(s->y[i] - s->median);
}

static uint32_t mix_bits(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static int by_mixed_request(const void *a, const void *b, void *user)
{
    const sample *s = user;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint32_t x = mix_bits(visit_at(s->visits, s->index[i])->request),
             y = mix_bits(visit_at(s->visits, s->index[j])->request);
    return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static void order_by_request(sample *s)
{
    s->order = g_new(uint32_t, s->count + 1);
    for (uint32_t i = 0; i < s->count; i++)
        s->order[i] = i;
    qsort_r(s->order, s->count, sizeof *s->order, by_mixed_request, s);
}

/* Returns a sample with memory for `count` visits, without their indices and times. */
static sample *sample_allocate(const visits *v, uint32_t number, uint32_t count)
{
    sample *s = g_new0(sample, 1);
    s->visits = v;
    s->place = number;
    s->count = count;
    s->part = 1;
    s->index = g_new(uint32_t, count + 1);
    s->y = g_new(double, count + 1);
    s->weight = g_new(double, count + 1);
    s->rank = g_new(double, count + 1);
    return s;
}

sample *sample_new(const visits *v, uint32_t number, const float *claimed)
{
    const place *p = place_at(v, number);
    sample *s = sample_allocate(v, number, sample_size(p));
    s->scale = s->count > 0 ? (double)p->work_count / s->count : 1;
    for (uint32_t i = 0; i < s->count; i++) {
        s->index[i] = v->by_work[sample_position(p, i)];
        const visit *x = visit_at(v, s->index[i]);
        s->y[i] = MAX(0.0, (double)x->own_ns - (double)claimed[s->index[i]]);
        s->reduced = s->reduced || claimed[s->index[i]] > 0;
        s->weight[i] = x->own_ns > 0 ? MIN(1.0, (double)x->path_ns / (double)x->own_ns) : 0;
    }
    sample_rank(s);
    order_by_request(s);
    return s;
}

sample *sample_of_values(const visits *v, uint32_t number, const uint32_t *index, const double *values, uint32_t count)
{
    sample *s = sample_allocate(v, number, MIN(count, SAMPLE_MAX));
    s->scale = s->count > 0 ? (double)count / s->count : 1;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t from = (uint32_t)((uint64_t)i * count / s->count);
        s->index[i] = index[from];
        s->y[i] = values[from];
        s->weight[i] = 1;
    }
    sample_rank(s);
    order_by_request(s);
    return s;
}

sample *sample_copy(const sample *s)
{
    sample *copy = g_memdup2(s, sizeof *s);
    copy->index = g_memdup2(s->index, (s->count + 1) * sizeof *s->index);
    copy->weight = g_memdup2(s->weight, (s->count + 1) * sizeof *s->weight);
    copy->order = g_memdup2(s->order, (s->count + 1) * sizeof *s->order);
    copy->y = g_memdup2(s->y, (s->count + 1) * sizeof *s->y);
    copy->rank = g_memdup2(s->rank, (s->count + 1) * sizeof *s->rank);
    copy->factor = g_new(double, s->count + 1);
    for (uint32_t i = 0; i < s->count; i++)
        copy->factor[i] = s->factor != NULL ? s->factor[i] : 1;
    return copy;
}

sample *sample_even_out(const sample *s, const uint32_t *groups, uint32_t count)
{
    sample *even = sample_copy(s);
    double *times = g_new(double, s->count + 1);
    for (uint32_t g = 0; g < count; g++) {
        size_t size = 0;
        for (uint32_t i = 0; i < s->count; i++)
            if (groups[i] == g)
                times[size++] = s->y[i];
        double median_ns = median_of(times, size), factor = median_ns > 0 ? s->median / median_ns : 1;
        for (uint32_t i = 0; i < s->count; i++)
            if (groups[i] == g) {
                even->factor[i] = factor > 0 ? factor : 1;
                even->y[i] = s->y[i] * even->factor[i];
            }
    }
    g_free(times);
    sample_rank(even);
    return even;
}

sample *sample_select(const sample *s, const bool *chosen)
{
    sample *x = g_memdup2(s, sizeof *s);
    uint32_t *position = g_new(uint32_t, s->count + 1); /* maps a position in s to the position in x */
    x->index = g_new(uint32_t, s->count + 1);
    x->order = g_new(uint32_t, s->count + 1);
    x->y = g_new(double, s->count + 1);
    x->weight = g_new(double, s->count + 1);
    x->rank = g_new(double, s->count + 1);
    x->count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        position[i] = x->count;
        if (!chosen[i])
            continue;
        x->index[x->count] = s->index[i];
        x->y[x->count] = s->y[i];
        x->weight[x->count++] = s->weight[i];
    }
    for (uint32_t i = 0, n = 0; i < s->count; i++)
        if (chosen[s->order[i]])
            x->order[n++] = position[s->order[i]];
    g_free(position);
    sample_rank(x);
    x->part = s->deviation > 0 ? s->part * x->deviation / s->deviation : 0;
    return x;
}

void sample_free(sample *s)
{
    g_free(s->factor);
    g_free(s->index);
    g_free(s->y);
    g_free(s->weight);
    g_free(s->rank);
    g_free(s->order);
    g_free(s);
}

/* ---- bins ---- */

typedef struct bin_sums {
    uint32_t count[2];
    double sum[2], median[2];
} bin_sums;

/* Assigns the requests of each bin to the halves in turn, so that both halves have visits with rare values. Returns the
 * half (0 or 1) of each visit in the sample. The caller frees the array with g_free. */
static uint8_t *balance_halves(const sample *s, const uint8_t *bins)
{
    uint8_t *halves = g_new0(uint8_t, s->count + 1), half[BINS_MAX] = {0};
    uint32_t last[BINS_MAX];
    memset(last, 0xff, sizeof last);
    for (uint32_t n = 0; n < s->count; n++) {
        uint32_t i = s->order[n], request = visit_at(s->visits, s->index[i])->request;
        if (bins[i] == BIN_NONE)
            continue;
        if (request != last[bins[i]])
            half[bins[i]] ^= 1;
        last[bins[i]] = request;
        halves[i] = half[bins[i]];
    }
    return halves;
}

static void sum_bins(const sample *s, const uint8_t *bins, const uint8_t *halves, int count, bin_sums *sums)
{
    double *values = g_new(double, s->count + 1);
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (uint32_t i = 0; i < s->count; i++) {
        if (bins[i] == BIN_NONE)
            continue;
        sums[bins[i]].count[halves[i]]++;
        sums[bins[i]].sum[halves[i]] += s->y[i];
    }
    /* Compute the medians with a counting sort into one array. */
    uint32_t *offset = g_new0(uint32_t, 2 * (size_t)count + 1);
    for (int b = 0, at = 0; b < count; b++)
        for (int h = 0; h < 2; h++) {
            offset[2 * b + h] = (uint32_t)at;
            at += (int)sums[b].count[h];
        }
    uint32_t *fill = g_memdup2(offset, (2 * (size_t)count + 1) * sizeof *offset);
    for (uint32_t i = 0; i < s->count; i++)
        if (bins[i] != BIN_NONE)
            values[fill[2 * bins[i] + halves[i]]++] = s->y[i];
    for (int b = 0; b < count; b++)
        for (int h = 0; h < 2; h++)
            sums[b].median[h] = select_median(values + offset[2 * b + h], sums[b].count[h]);
    g_free(fill);
    g_free(offset);
    g_free(values);
}

/* The visits of one request in one bin, for kruskal_wallis. */
typedef struct request_ranks {
    double sum;
    uint32_t count;
} request_ranks;

/* Adds the mean ranks of a request to the sums over all bins, and clears the request's ranks. */
static void add_request(request_ranks *of, int count, double *sums, uint32_t *counts, double *square)
{
    for (int b = 0; b < count; b++) {
        if (of[b].count == 0)
            continue;
        double mean = of[b].sum / of[b].count;
        sums[b] += mean;
        counts[b]++;
        *square += mean * mean;
        of[b] = (request_ranks){0, 0};
    }
}

/* Returns the Kruskal-Wallis statistic, transformed to a normal deviate with the cube root of Wilson and Hilferty. The
 * mean rank of a request's visits in a bin counts as one value, because these visits depend on each other. */
static double kruskal_wallis(const sample *s, const uint8_t *bins, int count)
{
    double sums[BINS_MAX] = {0}, n = 0, total = 0, square = 0;
    uint32_t counts[BINS_MAX] = {0};
    request_ranks own[BINS_MAX] = {{0, 0}};
    for (uint32_t k = 0; k < s->count; k++) {
        uint32_t i = s->order[k], request = visit_at(s->visits, s->index[i])->request;
        if (bins[i] != BIN_NONE) {
            own[bins[i]].sum += s->rank[i];
            own[bins[i]].count++;
        }
        if (k + 1 == s->count || visit_at(s->visits, s->index[s->order[k + 1]])->request != request)
            add_request(own, count, sums, counts, &square);
    }
    for (int b = 0; b < count; b++) {
        total += sums[b];
        n += counts[b];
    }
    double mean = total / n, variance = (square - total * mean) / (n - 1), h = 0;
    int used = 0;
    for (int b = 0; b < count; b++)
        if (counts[b] > 0) {
            double difference = sums[b] / counts[b] - mean;
            h += counts[b] * difference * difference;
            used++;
        }
    if (used < 2 || !(variance > 0))
        return 0;
    double k = used - 1;
    h /= variance;
    return (cbrt(h / k) - (1 - 2 / (9 * k))) / sqrt(2 / (9 * k));
}

typedef struct bin_mean {
    double mean, count;
    int bin;
} bin_mean;

static int by_mean(const void *a, const void *b)
{
    double x = ((const bin_mean *)a)->mean, y = ((const bin_mean *)b)->mean;
    return (x > y) - (x < y);
}

/*
 * Divides the bins into slow bins and other bins so that the means of these groups differ most. Uses the sums of one
 * half. Returns a bit mask of the slow bins.
 */
static uint64_t find_slow(const bin_sums *sums, int count, int half)
{
    bin_mean means[BINS_MAX] = {{0}};
    int used = 0;
    double total = 0, n = 0, best = 0;
    for (int b = 0; b < count; b++)
        if (sums[b].count[half] >= BIN_COUNT_MIN) {
            means[used++] = (bin_mean){sums[b].sum[half] / sums[b].count[half], sums[b].count[half], b};
            total += sums[b].sum[half];
            n += sums[b].count[half];
        }
    qsort(means, (size_t)used, sizeof *means, by_mean);
    uint64_t slow = 0, chosen = 0;
    double high_sum = 0, high_count = 0;
    for (int i = used - 1; i > 0; i--) {
        high_sum += means[i].mean * means[i].count;
        high_count += means[i].count;
        slow |= UINT64_C(1) << means[i].bin;
        double difference = high_sum / high_count - (total - high_sum) / (n - high_count);
        double between = difference * difference * high_count * (n - high_count);
        if (between > best) {
            best = between;
            chosen = slow;
        }
    }
    return chosen;
}

/*
 * Returns a bit mask of the slow bins if bins are ordered: all bins except the first or the last, whichever is faster.
 */
static uint64_t find_slow_ordered(const bin_sums *sums, int count, int half)
{
    const bin_sums *low = &sums[0], *high = &sums[count - 1];
    if (low->count[half] == 0 || high->count[half] == 0)
        return 0;
    bool rises = low->sum[half] / low->count[half] <= high->sum[half] / high->count[half];
    uint64_t all = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    return all & ~(UINT64_C(1) << (rises ? 0 : count - 1));
}

static double deviation_left(const sample *s, const uint8_t *bins, const uint8_t *halves, const bin_sums *sums,
                             double *without)
{
    double left = 0;
    *without = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (bins[i] == BIN_NONE)
            continue;
        int other = !halves[i];
        double prediction = sums[bins[i]].count[other] >= BIN_COUNT_MIN ? sums[bins[i]].median[other] : s->median;
        left += fabs(s->y[i] - prediction);
        *without += fabs(s->y[i] - s->median);
    }
    return left;
}

/* Adds a unit: the mean rank of a request's visits in the slow bins or in the other bins. The key is the negative rank,
 * so that the slowest units come first. */
static void add_unit(keyed *units, uint32_t *count, double sum, uint32_t visits, uint32_t is_slow)
{
    if (visits > 0)
        units[(*count)++] = (keyed){key_of_double(-sum / visits), is_slow};
}

/*
 * Performs Fisher's exact test, because the Kruskal-Wallis test is weak if few visits are slow. If the slow bins have n
 * visits, "the slowest" are the n slowest visits of the sample. Returns the probability that the slow bins contain at
 * least as many of the slowest by chance. Visits of a request depend on each other, so the request's visits in the slow
 * bins count as one, and so do its other visits. Multiplies the probability by the number of sets of bins that could be
 * the slow bins.
 */
static double chance_of_slowest(const sample *s, const uint8_t *bins, int count, uint64_t slow, bool ordered)
{
    keyed *units = g_new(keyed, 2 * (size_t)s->count + 1);
    uint32_t unit_count = 0, slow_count = 0, visits[2] = {0}, request = VISIT_NONE;
    double sums[2] = {0};
    for (uint32_t n = 0; n <= s->count; n++) {
        uint32_t i = n < s->count ? s->order[n] : 0, of = n < s->count ? visit_at(s->visits, s->index[i])->request : 0;
        if (n == s->count || of != request) {
            slow_count += visits[1] > 0;
            for (uint32_t k = 0; k < 2; k++) {
                add_unit(units, &unit_count, sums[k], visits[k], k);
                sums[k] = 0;
                visits[k] = 0;
            }
            request = of;
        }
        if (n == s->count || bins[i] == BIN_NONE)
            continue;
        bool is_slow = (slow >> bins[i]) & 1;
        sums[is_slow] += s->rank[i];
        visits[is_slow]++;
    }
    keyed_sort(units, unit_count);
    uint32_t slowest = slow_count, both = 0;
    /* of visits with equal times, count either all or none as the slowest */
    while (slowest > 0 && slowest < unit_count && units[slowest].key == units[slowest - 1].key)
        slowest--;
    for (uint32_t i = 0; i < slowest; i++)
        both += units[i].index;
    g_free(units);
    double p = hypergeometric_tail(unit_count, slowest, slow_count, both), number = __builtin_popcountll(slow);
    return p * (ordered ? 3 : count - 1) * (ordered ? 1 : exp(log_choices(count, number)));
}

/* Computes the means of slow bins and of other bins in a half. */
static void split_means(const bin_sums *sums, int count, int half, uint64_t slow, double *slow_mean, double *other_mean)
{
    double sum[2] = {0}, n[2] = {0};
    for (int b = 0; b < count; b++) {
        int is_slow = (slow >> b) & 1;
        sum[is_slow] += sums[b].sum[half];
        n[is_slow] += sums[b].count[half];
    }
    *slow_mean = n[1] > 0 ? sum[1] / n[1] : 0;
    *other_mean = n[0] > 0 ? sum[0] / n[0] : 0;
}

/* A difference between the remaining times counts only if the logged times differ by at least this part of the
 * difference. */
#define LOGGED_MIN 0.5

/* Findings have claimed little of a visit if at least this part of its time remains. */
#define LITTLE_MIN 0.9

/* Sums of logged times and of the times that findings have left. [0]: slow visits; [1]: other visits; [2]: other visits
 * of which findings have claimed little. All times are before the operations were evened out. */
typedef struct logged_sums {
    double logged[3], left[3];
    uint32_t count[3];
} logged_sums;

static void logged_sums_add(logged_sums *sums, const sample *s, uint32_t i, bool is_slow)
{
    double left = s->factor != NULL ? s->y[i] / s->factor[i] : s->y[i],
           logged = s->reduced ? (double)visit_at(s->visits, s->index[i])->own_ns : left;
    for (int k = is_slow ? 0 : 1; k < (is_slow ? 1 : left >= LITTLE_MIN * logged ? 3 : 2); k++) {
        sums->logged[k] += logged;
        sums->left[k] += left;
        sums->count[k]++;
    }
}

/*
 * Returns whether the slow visits are slow only in the times that findings have left, because findings have claimed
 * more of the other visits. If findings have claimed little of some other visits, compares the slow visits only with
 * these visits. Sets `means` to the mean times in the log.
 */
static bool is_only_in_rest(const logged_sums *sums, double means[3])
{
    double left[3] = {0};
    for (int k = 0; k < 3; k++) {
        means[k] = sums->count[k] > 0 ? sums->logged[k] / sums->count[k] : 0;
        left[k] = sums->count[k] > 0 ? sums->left[k] / sums->count[k] : 0;
    }
    double difference = means[0] - means[1];
    if (sums->count[2] >= KIND_COUNT_MIN)
        difference = fmax(difference, means[0] - means[2]);
    return sums->count[0] > 0 && sums->count[1] > 0 && difference < LOGGED_MIN * (left[0] - left[1]);
}

bool sample_waits_are_of_rest(const sample *s, const float *waits)
{
    logged_sums logged = {0};
    double means[3];
    for (uint32_t i = 0; i < s->count; i++)
        logged_sums_add(&logged, s, i, waits[s->index[i]] > 0);
    return is_only_in_rest(&logged, means);
}

explanation sample_explain(const sample *s, const uint8_t *bins, int count, bool ordered)
{
    explanation e = {0};
    bin_sums sums[BINS_MAX];
    uint64_t slow[2];
    double other[2], mean, without;
    uint8_t *halves = balance_halves(s, bins);
    sum_bins(s, bins, halves, count, sums);
    double left = deviation_left(s, bins, halves, sums, &without);
    e.explained = s->deviation > 0 ? (without - left) / s->deviation : 0;
    for (int h = 0; h < 2; h++) { /* choose slow bins with the other half, and measure their effect with this half */
        slow[h] = ordered ? find_slow_ordered(sums, count, !h) : find_slow(sums, count, !h);
        split_means(sums, count, h, slow[h], &mean, &other[h]);
    }
    e.slow = slow[0] & slow[1];
    e.excess = g_new0(float, s->count + 1);
    double sum_slow = 0, sum_other = 0;
    logged_sums logged = {0};
    uint32_t others = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (bins[i] == BIN_NONE)
            continue;
        int h = halves[i];
        bool is_slow = (slow[h] >> bins[i]) & 1, is_named = e.slow != 0 ? (e.slow >> bins[i]) & 1 : is_slow;
        *(is_named ? &sum_slow : &sum_other) += s->y[i];
        logged_sums_add(&logged, s, i, is_named);
        *(is_named ? &e.slow_count : &others) += 1;
        if (!is_slow || sums[bins[i]].count[h] == 0)
            continue;
        double excess = sums[bins[i]].sum[h] / sums[bins[i]].count[h] - other[h];
        e.claim_ns += excess * s->weight[i] * s->scale;
        e.excess[i] = (float)MAX(0, MIN(excess, s->y[i]));
    }
    g_free(halves);
    e.p = normal_tail(kruskal_wallis(s, bins, count));
    if (e.slow != 0 && s->count <= EXACT_MAX) /* the smaller p of two tests */
        e.p = fmin(1, 2 * fmin(e.p, chance_of_slowest(s, bins, count, e.slow, ordered)));
    e.slow_ns = e.slow_count > 0 ? sum_slow / e.slow_count : 0;
    e.other_ns = others > 0 ? sum_other / others : 0;
    double means[3];
    e.is_of_rest = is_only_in_rest(&logged, means);
    e.slow_logged_ns = means[0];
    e.other_logged_ns = means[1];
    return e;
}

double sample_explained_by_waits(const sample *s, const float *waits)
{
    double *left = g_new(double, s->count + 1), *sorted = g_new(double, s->count + 1), sum = 0;
    for (uint32_t i = 0; i < s->count; i++)
        left[i] = sorted[i] = s->y[i] - (double)waits[i];
    double middle = median_of(sorted, s->count);
    for (uint32_t i = 0; i < s->count; i++)
        sum += fabs(left[i] - middle);
    g_free(left);
    g_free(sorted);
    return s->deviation > 0 ? 1 - sum / s->deviation : 0;
}

int sample_quantize(const float *values, uint32_t count, uint8_t *bins)
{
    double *sorted = g_new(double, count + 1), cuts[QUANTILES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            sorted[n++] = (double)values[i];
    sort_doubles(sorted, n);
    int used = 0, quantiles = (int)CLAMP(n / QUANTILE_COUNT, 2, QUANTILES);
    for (int q = 1; q < quantiles && n > 0; q++) {
        double cut = sorted[(uint64_t)n * (uint64_t)q / (uint64_t)quantiles];
        if (cut > sorted[0] && (used == 0 || cut > cuts[used - 1]))
            cuts[used++] = cut;
    }
    g_free(sorted);
    for (uint32_t i = 0; i < count; i++) {
        bins[i] = BIN_NONE;
        if (!isfinite(values[i]))
            continue;
        bins[i] = 0;
        while (bins[i] < used && (double)values[i] >= cuts[bins[i]])
            bins[i]++;
    }
    return used + 1;
}

/* ---- resolution ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Returns the greatest common divisor of the differences between durations, or 0 if all durations are equal. The
 * durations are sorted. Ignores durations of single visits and differences that occur only once, because a few visits
 * may have finer times. Sets *base to a duration that several visits have.
 */
static int64_t find_step(const int64_t *durations, uint32_t count, int64_t *base)
{
    int64_t *differences = g_new(int64_t, count + 1), step = 0, last = -1;
    uint32_t different = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (durations[i] > durations[i - 1]) {
            differences[different++] = durations[i] - durations[i - 1];
            continue;
        }
        step = last >= 0 ? common_divisor(durations[i] - last, step) : step;
        *base = last = durations[i];
    }
    qsort(differences, different, sizeof *differences, nl_compare_int64);
    for (uint32_t i = 1; i < different; i++)
        if (differences[i] == differences[i - 1])
            step = common_divisor(differences[i], step);
    g_free(differences);
    return step;
}

double place_find_resolution(const visits *v, const place *p)
{
    const uint32_t count = MIN(p->count, SAMPLE_MAX);
    int64_t *durations = g_new(int64_t, count + 1), base = 0;
    uint32_t equal = 0, multiples = 0;
    for (uint32_t i = 0; i < count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + (uint64_t)i * p->count / count]);
        durations[i] = x->to_ns - x->from_ns;
    }
    qsort(durations, count, sizeof *durations, nl_compare_int64);
    for (uint32_t i = 1; i < count; i++)
        equal += durations[i] == durations[i - 1];
    int64_t step = equal * EQUAL_ONE_OF > count ? find_step(durations, count, &base) : 0;
    for (uint32_t i = 0; i < count && step > 0; i++)
        multiples += (durations[i] - base) % step == 0;
    g_free(durations);
    return multiples >= MULTIPLES_MIN * count ? (double)step : 0;
}

double place_find_time_unit(const visits *v, const place *p)
{
    double unit_ns = 0;
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        unit_ns = fmax(
            unit_ns, fmax(instance_at(v, at->instance)->time_unit_ns, instance_at(v, at->from_instance)->time_unit_ns));
    }
    return unit_ns;
}

bool place_times_are_coarse(const visits *v, const place *p)
{
    double sum_ns = 0;
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        const visit *x = visit_at(v, v->by_place[i]);
        sum_ns += (double)(x->to_ns - x->from_ns);
    }
    return place_find_time_unit(v, p) * p->count > sum_ns;
}

/* ---- sequence numbers ---- */

/* Counts the values of a sample that are larger or smaller than the 16th value before. */
typedef struct changes {
    uint32_t rises, falls;
} changes;

static bool changes_count(const changes *c)
{
    return c->rises + c->falls > 10 && (c->rises > 50 * c->falls || c->falls > 50 * c->rises);
}

static void changes_add(changes *c, float before, float after)
{
    c->rises += after > before;
    c->falls += after < before;
}

bool sample_values_count(const sample *x, const float *values)
{
    enum { DISTANCE = 16 }; /* concurrent requests have neighboring values in any order */
    changes all = {0}, of_sites = {0};
    uint32_t *seen = g_new0(uint32_t, x->visits->sites->len + 1);
    float *last = g_new(float, x->visits->sites->len + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t site = visit_at(x->visits, x->index[i])->site;
        if (i % DISTANCE == 0 && i > 0)
            changes_add(&all, values[i - DISTANCE], values[i]);
        if (seen[site]++ % DISTANCE != 0)
            continue;
        if (seen[site] > 1)
            changes_add(&of_sites, last[site], values[i]);
        last[site] = values[i];
    }
    g_free(seen);
    g_free(last);
    return changes_count(&all) || changes_count(&of_sites);
}
