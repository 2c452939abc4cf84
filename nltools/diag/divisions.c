#include "config.h"

#include <math.h>

#include "diag/processes.h"
#include "diag/search.h"
#include "requests/contrast.h"

#include <stdlib.h>
#include <string.h>

/* The search offers a sensor or the hours as a cause only if the probability that chance alone has this effect is below
 * this limit. Otherwise, the search omits the tests with shifted sensors or hours, which take time. */
#define PROMISING 1e-3

/* The load is a consequence of many causes. The search therefore multiplies its score by LOAD_PREFERENCE, and requires
 * that it explains the part LOAD_EXPLAINED_MIN of the variation. */
#define LOAD_PREFERENCE 0.5
#define LOAD_EXPLAINED_MIN 0.04

/* Maximum ratio of a place's visits to the visits in its sample. With a larger ratio, too few visits are in the sample
 * to count the visits in progress. */
#define LOAD_SCALE_MAX 8

/* The load is the cause of a slow time range if the rate of requests is at least RATE_RATIO_MIN times the rate
 * elsewhere. The probability of this difference by chance must be at most RATE_CHANCE_MAX. */
#define RATE_RATIO_MIN 1.5
#define RATE_CHANCE_MAX 0.01

/*
 * The load explains a slow time range unless at least OWN_PART_MIN of the difference remains between visits with the
 * same load. SAME_LOAD_MIN: minimum weight of these visits, for example 12 visits in the range and 12 others.
 */
#define OWN_PART_MIN 0.5
#define SAME_LOAD_MIN 6

/* A fault recurs daily if the same hours are slow on all days, with at most this part of the days as exceptions. */
#define OTHER_DAYS_MAX 0.2

/* try_hours also moves each day by a random number of hours. The true hours must explain this many times the part of
 * the variation that the moved hours explain. */
#define HOURS_FACTOR 1.3

enum {
    HOURS = 24,
    ROTATIONS = 32,
    DAY_VISITS_MIN = 3,
    HOUR_VISITS_MIN = 16, /* minimum mean number of visits in an hour of the day to examine the hours separately */
    RANGE_HOURS_MAX = 12
};

/* number of blocks of time into which find_rates divides a slow range */
enum { RATE_BLOCKS = 12 };

enum { TIME_BINS = 48, TIME_BINS_FEW = 16, TIME_BINS_MIN = 10, SHIFTS = 16, THRESHOLDS = 18, THRESHOLD_VISITS_MIN = 6 };

/* Factor of a sensor's score. The search prefers a sensor to a time range, because the sensor names a resource. */
#define RESOURCE_PREFERENCE 1.1

/* Factor of the score of traffic, and of numbers of waiting tasks, which are more often a consequence of slow visits
 * than their cause. */
#define TRAFFIC_PREFERENCE 0.8

/* If a host's sensor is the cause, at least this part of the claim belongs to the host. */
#define HOST_PART_MIN 0.9

/*
 * Minimum part of the variation that a sensor explains, and minimum ratio of this part to the largest part that any
 * sensor explains by chance. The search tries many sensors that change slowly.
 */
#define RESOURCE_MIN 0.04
#define RESOURCE_FACTOR 1.3

/* A bin is slow in a time range if it differs there by more than this factor times the largest difference by
 * chance. */
#define BIN_TIME_FACTOR 2

/* A sensor explains nearly as much as the best sensor if it explains at least NEARLY times as much of the variation. */
#define NEARLY 0.67

/* ---- hosts ---- */

/* The peers that try_peers compares: the hosts or processes of a span, or of the start or end of an edge. */
typedef enum peer_kind { PEER_HOST, PEER_HOST_AT_BEGIN, PEER_PROCESS } peer_kind;

/* Returns the host of a site, or the instance of its process. Equal pointers are the same peer. */
static const void *peer_of_site(const visits *v, const site *at, peer_kind by)
{
    return by == PEER_PROCESS ? (const void *)instance_at(v, at->instance) : by == PEER_HOST ? at->host : at->from_host;
}

/* Makes a peer the host, or the process with its host, of a candidate. */
static void set_peer(candidate *c, const void *peer, peer_kind by)
{
    const instance *process = by == PEER_PROCESS ? peer : NULL;
    c->host = process != NULL ? process->host : by != PEER_PROCESS ? peer : NULL;
    c->process = process != NULL ? process->program : NULL;
}

/* Returns the number of time ranges into which a sample is divided, or 0 if the sample has too few visits. A range
 * of a short log has fewer visits, so that its length is still a small part of the log. */
static int count_time_bins(const sample *x)
{
    int count = (int)CLAMP(x->count / 8, MIN(x->count / 4, TIME_BINS_FEW), TIME_BINS);
    return count < TIME_BINS_MIN ? 0 : count;
}

/* Returns the number of tests by which to multiply the probability of the slowest range. The ranges at the start, the
 * ranges at the end and all other ranges each have a third of the significance level. */
static double count_ranges(int count, int from, int to)
{
    return 3.0 * (from == 0 || to == count - 1 ? count : count * (count - 1) / 2);
}

/* Smaller times of visits count as this part of the median. */
#define TIME_MIN 0.01

/* For each time range, the sum of the logarithms of the times and the number of the visits in all earlier ranges,
 * for one bin or for all bins. Ranks would not show that the slowest visits become even slower. */
typedef struct time_sums {
    double sum[TIME_BINS + 1], count[TIME_BINS + 1];
} time_sums;

/* A time range in which a bin is slower or faster, with the score of find_bin_range. */
typedef struct bin_range {
    int from, to;
    double score;
} bin_range;

/*
 * Finds the time range in which a bin's visits differ most both from the bin's other visits and from the other bins'
 * visits in the same range. The score is the smaller difference of the mean logarithms, divided by its standard error
 * if the logarithms had the standard deviation 1. `sign` is 1 for slow visits and -1 for fast visits. If `only_more` is
 * true, the bin must also differ more from the other bins in the range than at other times.
 */
static bin_range find_bin_range(const time_sums *own, const time_sums *all, int bins, double sign, bool only_more)
{
    enum { VISITS_MIN = 12 };
    bin_range best = {0, 0, 0};
    for (int from = 0; from < bins; from++)
        for (int to = from; to < bins; to++) {
            double n = own->count[to + 1] - own->count[from], sum = own->sum[to + 1] - own->sum[from],
                   before = own->count[bins] - n, others = all->count[to + 1] - all->count[from] - n,
                   others_before = all->count[bins] - n - before - others;
            if (n < VISITS_MIN || before < VISITS_MIN || others < VISITS_MIN ||
                (only_more && others_before < VISITS_MIN))
                continue;
            double mean = sum / n, sum_before = own->sum[bins] - sum,
                   others_sum = all->sum[to + 1] - all->sum[from] - sum, of_before = sum_before / before,
                   of_others = others_sum / others,
                   difference = fmin(sign * (mean - of_before), sign * (mean - of_others));
            if (only_more)
                difference =
                    fmin(difference, sign * (mean - of_before - of_others +
                                             (all->sum[bins] - sum - sum_before - others_sum) / others_before));
            double score = difference / sqrt(1 / n + 1 / before + 1 / others + (only_more ? 1 / others_before : 0));
            if (score > best.score)
                best = (bin_range){from, to, score};
        }
    return best;
}

bool sample_find_slow_bin(const sample *x, const uint8_t *bins, int count, bool only_more, uint8_t *inside,
                          slow_bin *slowest)
{
    const int times = count_time_bins(x);
    if (times == 0)
        return false;
    time_sums *sums = g_new0(time_sums, (size_t)count + 1), *all = &sums[count];
    for (uint32_t i = 0; i < x->count; i++) {
        if (bins[i] == BIN_NONE)
            continue;
        time_sums *const of[] = {&sums[bins[i]], all};
        for (int k = 0; k < 2; k++) {
            of[k]->sum[(uint64_t)i * (uint64_t)times / x->count + 1] += log(fmax(x->y[i], x->median * TIME_MIN));
            of[k]->count[(uint64_t)i * (uint64_t)times / x->count + 1]++;
        }
    }
    for (int b = 0; b <= count; b++)
        for (int t = 0; t < times; t++) {
            sums[b].sum[t + 1] += sums[b].sum[t];
            sums[b].count[t + 1] += sums[b].count[t];
        }
    bin_range best = {0, 0, 0};
    double chance = 0;
    slowest->bin = 0;
    for (int b = 0; b < count; b++) {
        bin_range found = find_bin_range(&sums[b], all, times, 1, only_more);
        chance = fmax(chance, fmin(found.score, best.score));
        if (found.score > best.score) {
            best = found;
            slowest->bin = b;
        }
    }
    for (int b = 0; b < count; b++)
        if (b != slowest->bin)
            chance = fmax(chance, find_bin_range(&sums[b], all, times, -1, only_more).score);
    g_free(sums);
    if (best.score <= BIN_TIME_FACTOR * chance)
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        int t = (int)((uint64_t)i * (uint64_t)times / x->count);
        inside[i] = bins[i] == slowest->bin && t >= best.from && t <= best.to;
    }
    slowest->ranges = count_ranges(times, best.from, best.to) * count;
    slowest->from_ns = visit_at(x->visits, x->index[(uint64_t)best.from * x->count / (uint64_t)times])->from_ns;
    slowest->to_ns =
        visit_at(x->visits, x->index[MIN((uint64_t)(best.to + 1) * x->count / (uint64_t)times, x->count - 1)])->to_ns;
    return true;
}

/* Tries a peer that is slow only in a time range. */
static void try_peers_in_time(search *s, const sample *x, const void *const *peers, const uint8_t *bins, int count,
                              peer_kind by)
{
    uint8_t *inside = g_new(uint8_t, x->count + 1);
    slow_bin slowest;
    if (sample_find_slow_bin(x, bins, count, false, inside, &slowest)) {
        s->f->tests++;
        explanation e = sample_explain(x, inside, 2, false);
        bool is_slow = (e.slow & 2) != 0;
        candidate c = candidate_of(x, "peer", &e, 1);
        set_peer(&c, peers[slowest.bin], by);
        candidate_set_range(&c, &slowest);
        if (is_slow)
            candidate_offer(s, &c);
        else
            candidate_clear(&c);
    }
    g_free(inside);
}

/* Compares the hosts or the processes of a place. */
static void try_peers(search *s, const sample *x, peer_kind by)
{
    const void *peers[BINS_MAX];
    int count = 0;
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        const void *peer = peer_of_site(s->v, site_at(s->v, visit_at(s->v, x->index[i])->site), by);
        int b = 0;
        while (b < count && peers[b] != peer)
            b++;
        if (b == count && count < BINS_MAX)
            peers[count++] = peer;
        bins[i] = b < BINS_MAX ? (uint8_t)b : BIN_NONE;
    }
    if (count > 1) {
        s->f->tests++;
        explanation e = sample_explain(x, bins, count, false);
        uint64_t slow = e.slow;
        candidate found = candidate_of(x, "peer", &e, 1.01);
        set_peer(&found, __builtin_popcountll(slow) == 1 ? peers[__builtin_ctzll(slow)] : NULL, by);
        if (found.host == NULL)
            candidate_clear(&found);
        else
            candidate_offer(s, &found);
        try_peers_in_time(s, x, peers, bins, count, by);
    }
    g_free(bins);
}

/* ---- load ---- */

typedef struct load_change {
    int64_t time_ns;
    uint32_t host;  /* number of the host */
    uint32_t visit; /* index of the visit */
    bool begins;
} load_change;

static int by_host_and_time(const void *a, const void *b)
{
    const load_change *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->begins != y->begins ? x->begins - y->begins : (x->visit > y->visit) - (x->visit < y->visit);
}

/* For each visit of a place, counts the other visits on the same host that are in progress when the visit begins. */
static void count_load(const visits *v, const place *p, float *loads)
{
    load_change *changes = g_new(load_change, 2 * (size_t)p->count + 1);
    GHashTable *hosts = g_hash_table_new(NULL, NULL); /* maps a host to its number */
    size_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        const visit *x = visit_at(v, index);
        const char *host = site_at(v, x->site)->host;
        if (!g_hash_table_contains(hosts, host))
            g_hash_table_insert(hosts, (gpointer)host, GUINT_TO_POINTER(g_hash_table_size(hosts)));
        uint32_t number = GPOINTER_TO_UINT(g_hash_table_lookup(hosts, host));
        changes[count++] = (load_change){x->from_ns, number, index, true};
        if (x->to_ns > x->from_ns) /* a visit without a duration is never in progress */
            changes[count++] = (load_change){x->to_ns, number, index, false};
    }
    qsort(changes, count, sizeof *changes, by_host_and_time);
    float here = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && changes[i].host != changes[i - 1].host)
            here = 0;
        const visit *x = visit_at(v, changes[i].visit);
        if (changes[i].begins)
            loads[changes[i].visit] = here;
        if (x->to_ns > x->from_ns)
            here += changes[i].begins ? 1 : -1;
    }
    g_hash_table_destroy(hosts);
    g_free(changes);
}

/* Gets the load of each visit of a sample. Returns the largest load, or 0 if the load is unknown or has no meaning. */
static float get_loads(const sample *x, float *values)
{
    const place *p = place_at(x->visits, x->place);
    if (x->scale > LOAD_SCALE_MAX || p->has_children || place_times_are_coarse(x->visits, p))
        return 0;
    float *loads = g_new0(float, x->visits->all->len + 1), peak = 0;
    count_load(x->visits, p, loads);
    for (uint32_t i = 0; i < x->count; i++) {
        values[i] = loads[x->index[i]];
        peak = MAX(peak, values[i] + 1);
    }
    g_free(loads);
    return peak;
}

/*
 * Compares the visits in a time range with other visits that begin under the same load. Returns the difference of
 * their mean ranks as a part of the difference without regard to the load. The weights of the loads are Mantel-Haenszel
 * weights. Returns 1 if too few visits have the same load.
 */
static double part_with_same_load(const sample *x, const uint8_t *inside, const float *loads)
{
    enum { LOADS_MAX = 256 };
    double sums[LOADS_MAX][2] = {{0}}, counts[LOADS_MAX][2] = {{0}}, sum[2] = {0}, count[2] = {0}, weights = 0, all = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        int load = (int)fminf(loads[i], LOADS_MAX - 1);
        sums[load][inside[i]] += x->rank[i];
        counts[load][inside[i]]++;
        sum[inside[i]] += x->rank[i];
        count[inside[i]]++;
    }
    for (int n = 0; n < LOADS_MAX - 1; n++) {
        if (counts[n][0] <= 0 || counts[n][1] <= 0)
            continue;
        double weight = counts[n][0] * counts[n][1] / (counts[n][0] + counts[n][1]);
        weights += weight;
        all += weight * (sums[n][1] / counts[n][1] - sums[n][0] / counts[n][0]);
    }
    double difference = sum[1] / fmax(count[1], 1) - sum[0] / fmax(count[0], 1);
    return weights < SAME_LOAD_MIN || difference <= 0 ? 1 : all / weights / difference;
}

/*
 * Returns whether the load explains why visits in a time range are slow. Under the same load, the visits in the
 * range must be hardly slower than others. The load must also explain at least as much of the variation as the range
 * does. The first condition excludes a change that makes visits slower under the same load, and thereby increases the
 * load.
 */
static bool load_explains(const sample *x, const uint8_t *inside, double explained)
{
    float *loads = g_new0(float, x->count + 1);
    bool does = get_loads(x, loads) > 1 && part_with_same_load(x, inside, loads) < OWN_PART_MIN;
    if (does) {
        uint8_t *bins = g_new(uint8_t, x->count + 1);
        int count = sample_quantize(loads, x->count, bins);
        explanation e = sample_explain(x, bins, count, true);
        does = count > 1 && (e.slow & 1) == 0 && e.explained >= explained;
        g_free(e.excess);
        g_free(bins);
    }
    g_free(loads);
    return does;
}

/* ---- time ---- */

/* Sets *from and *to to the range of bins whose mean rank exceeds the mean rank of the other bins most. Returns false
 * if no range has a larger mean rank. */
static bool find_range(const sample *x, const uint8_t *bins, int count, int *from, int *to)
{
    double sums[TIME_BINS] = {0}, counts[TIME_BINS] = {0}, total = 0, best = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        sums[bins[i]] += x->rank[i];
        counts[bins[i]]++;
        total += x->rank[i];
    }
    for (int a = 0; a < count; a++) {
        double sum = 0, n = 0;
        for (int b = a; b < count; b++) {
            sum += sums[b];
            n += counts[b];
            if (b == a || count - (b - a + 1) < 4)
                continue;
            double difference = sum / n - (total - sum) / (x->count - n),
                   between = difference * fabs(difference) * n * (x->count - n);
            if (between > best) {
                best = between;
                *from = a;
                *to = b;
            }
        }
    }
    return best > 0;
}

/*
 * If significantly more requests arrive while a place is slow, makes the load the cause of the time range. A slow
 * place cannot be the reason, because it does not make requests arrive faster. The units of the test are blocks of
 * time, because requests often arrive in bursts. The log's end is the arrival of its last request.
 */
static void find_rates(const visits *v, candidate *c)
{
    unit_sums here = {0}, elsewhere = {0};
    int64_t last_ns = v->from_ns;
    for (guint i = 0; i < v->requests->len; i++)
        last_ns = MAX(last_ns, request_at(v, i)->from_ns);
    double length = (double)(MIN(c->to_ns, last_ns) - MIN(c->from_ns, last_ns)),
           rest = (double)(last_ns - v->from_ns) - length;
    if (length <= 0 || rest <= 0)
        return;
    const unit_kind blocks = {RATE_BLOCKS, false},
                    other_blocks = {(unsigned)CLAMP(RATE_BLOCKS * rest / length, RATE_BLOCKS, UNITS_MAX), false};
    for (unsigned u = 0; u < blocks.units; u++)
        here.count[u] = length / blocks.units / NL_NS_PER_SECOND;
    for (unsigned u = 0; u < other_blocks.units; u++)
        elsewhere.count[u] = rest / other_blocks.units / NL_NS_PER_SECOND;
    for (guint i = 0; i < v->requests->len; i++) {
        int64_t ns = request_at(v, i)->from_ns;
        double since = (double)(ns - v->from_ns), inside = (double)(ns - c->from_ns);
        if (inside >= 0 && inside < length)
            here.sum[(unsigned)(inside / length * blocks.units)]++;
        else
            elsewhere.sum[MIN((unsigned)((inside < 0 ? since : since - length) / rest * other_blocks.units),
                              other_blocks.units - 1)]++;
    }
    contrast rates = contrast_make(&elsewhere, &other_blocks, &here, &blocks);
    if (rates.p > RATE_CHANCE_MAX || rates.before <= 0 || rates.after < RATE_RATIO_MIN * rates.before)
        return;
    c->cause = "load";
    c->m.rate = rates.after;
    c->m.other_rate = rates.before;
}

static void try_time(search *s, const sample *x)
{
    int count = count_time_bins(x), from = 0, to = 0;
    if (count == 0)
        return;
    uint8_t *bins = g_new(uint8_t, x->count + 1), *inside = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        bins[i] = (uint8_t)((uint64_t)i * (uint64_t)count / x->count);
    if (find_range(x, bins, count, &from, &to)) {
        for (uint32_t i = 0; i < x->count; i++)
            inside[i] = bins[i] >= from && bins[i] <= to;
        s->f->tests++;
        explanation e = sample_explain(x, inside, 2, false);
        bool rises = (e.slow & 2) != 0;
        const char *cause = from == 0 && to < count / 2 ? "cold" : "changed";
        rises = rises && (from > 0 || to < count * 4 / 5);
        candidate c = candidate_of(x, cause, &e, 0.95);
        c.p *= count_ranges(count, from, to);
        c.from_ns = visit_at(s->v, x->index[(uint64_t)from * x->count / (uint64_t)count])->from_ns;
        c.to_ns = visit_at(s->v, x->index[MIN((uint64_t)(to + 1) * x->count / (uint64_t)count, x->count - 1)])->to_ns;
        find_rates(s->v, &c);
        if (rises && (strcmp(c.cause, "load") == 0 || !load_explains(x, inside, c.explained)))
            candidate_offer(s, &c);
        else
            candidate_clear(&c);
    }
    g_free(bins);
    g_free(inside);
}

/* ---- time of day ---- */

/* Returns the number of a visit's hour. Hours and days before 1970 have negative numbers. */
static int64_t hour_of(const sample *x, uint32_t i)
{
    int64_t ns = visit_at(x->visits, x->index[i])->from_ns;
    return ns / HOUR_NS - (ns % HOUR_NS < 0);
}

static int64_t day_of(int64_t hour)
{
    return hour / HOURS - (hour % HOURS < 0);
}

/* Assigns each visit to its hour of the day (UTC). If `rotation` is not 0, it is the seed of a random number of hours
 * by which the function moves each day. */
static void bins_of_hours(const sample *x, uint32_t rotation, uint8_t *bins)
{
    for (uint32_t i = 0; i < x->count; i++) {
        int64_t hour = hour_of(x, i), day = day_of(hour);
        uint32_t moved = ((uint32_t)day * 0x9e3779b1u) ^ (rotation * 0x85ebca6bu);
        moved = (moved ^ (moved >> 15)) * 0x2c1b3c6du;
        bins[i] = (uint8_t)((hour - day * HOURS + (rotation > 0 ? (moved ^ (moved >> 13)) % HOURS : 0)) % HOURS);
    }
}

/* Returns whether visits in these hours are slower than other visits on nearly every day. Ignores days with fewer than
 * `count_min` visits in these hours or in the other hours. */
static bool is_daily(const sample *x, const uint8_t *bins, uint64_t slow, size_t count_min)
{
    double *values = g_new(double, x->count + 1);
    uint32_t days = 0, others = 0;
    for (uint32_t from = 0, to = 0; from < x->count; from = to) { /* visits are in order of time */
        size_t counts[2] = {0};
        double medians[2];
        while (to < x->count && day_of(hour_of(x, to)) == day_of(hour_of(x, from)))
            to++;
        for (int half = 0; half < 2; half++) {
            for (uint32_t i = from; i < to; i++)
                if (((slow >> bins[i]) & 1) == (uint64_t)half)
                    values[counts[half]++] = x->y[i];
            medians[half] = median_of(values, counts[half]);
        }
        if (counts[0] < count_min || counts[1] < count_min)
            continue;
        days++;
        others += medians[1] <= medians[0];
    }
    g_free(values);
    return days >= DAYS_MIN && others <= OTHER_DAYS_MAX * days;
}

/*
 * Finds the range of hours, possibly across midnight, in which the mean rank of the visits exceeds the mean rank of the
 * other visits most. Returns a bit mask of the hours.
 */
static uint64_t find_hours(const sample *x, const uint8_t *bins)
{
    double sums[HOURS] = {0}, counts[HOURS] = {0}, total = 0, best = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        sums[bins[i]] += x->rank[i];
        counts[bins[i]]++;
        total += x->rank[i];
    }
    uint64_t chosen = 0;
    for (int first = 0; first < HOURS; first++) {
        double sum = 0, n = 0;
        uint64_t hours = 0;
        for (int length = 1; length <= RANGE_HOURS_MAX; length++) {
            int hour = (first + length - 1) % HOURS;
            sum += sums[hour];
            n += counts[hour];
            hours |= UINT64_C(1) << hour;
            double difference = n > 0 && n < x->count ? sum / n - (total - sum) / (x->count - n) : 0,
                   between = difference * fabs(difference) * n * (x->count - n);
            if (between > best) {
                best = between;
                chosen = hours;
            }
        }
    }
    return chosen;
}

/* Assigns bin 1 to the visits in the range of hours, and bin 0 to the other visits. */
static void bins_of_range(const sample *x, const uint8_t *hours, uint64_t range, uint8_t *bins)
{
    for (uint32_t i = 0; i < x->count; i++)
        bins[i] = (range >> hours[i]) & 1;
}

/* Tries the hour of the day as a cause. If the log has only a few days, slow changes also make the hours differ by
 * chance. To measure this chance difference, the function moves each day by a random number of hours. */
static void try_hours(search *s, const sample *x)
{
    if (!visits_span_days(s->v))
        return;
    uint8_t *bins = g_new(uint8_t, x->count + 1), *moved = g_new(uint8_t, x->count + 1),
            *inside = g_new0(uint8_t, x->count + 1);
    bool few = x->count < HOURS * HOUR_VISITS_MIN;
    bins_of_hours(x, 0, bins);
    s->f->tests++;
    /* with too few visits to compare each hour, find a range of hours */
    uint64_t range = few ? find_hours(x, bins) : 0;
    bins_of_range(x, bins, range, inside);
    explanation e = sample_explain(x, few ? inside : bins, few ? 2 : HOURS, false);
    uint64_t slow = few ? (e.slow == 2 ? range : 0) : e.slow;
    candidate c = candidate_of(x, "hour", &e, 0.95);
    if (few)
        c.p *= HOURS * RANGE_HOURS_MAX; /* find_hours has chosen the best of this many ranges */
    bool counts = slow != 0 && c.p < PROMISING && is_daily(x, bins, slow, few ? 1 : DAY_VISITS_MIN);
    for (uint32_t k = 1; k <= ROTATIONS && counts; k++) {
        bins_of_hours(x, k, moved);
        bins_of_range(x, moved, few ? find_hours(x, moved) : 0, inside);
        explanation other = sample_explain(x, few ? inside : moved, few ? 2 : HOURS, false);
        counts = c.explained > HOURS_FACTOR * other.explained;
        g_free(other.excess);
    }
    c.hours = (uint32_t)slow;
    if (counts)
        candidate_offer(s, &c);
    else
        candidate_clear(&c);
    g_free(bins);
    g_free(moved);
    g_free(inside);
}

/*
 * Tries the load, which is the number of visits in progress, as a cause. Visits take longer under load if they wait for
 * each other in any way. The search prefers a mechanism, such as a lock, because a mechanism also explains when each
 * visit ends.
 */
static void try_load(search *s, const sample *x)
{
    float *values = g_new(float, x->count + 1), peak = get_loads(x, values);
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    int count = peak > 0 ? sample_quantize(values, x->count, bins) : 0;
    if (count > 1) {
        s->f->tests++;
        explanation e = sample_explain(x, bins, count, true);
        bool rises = (e.slow & 1) == 0;
        candidate c = candidate_of(x, "load", &e, LOAD_PREFERENCE);
        c.m.peak = (double)peak;
        if (rises && c.explained >= LOAD_EXPLAINED_MIN)
            candidate_offer(s, &c);
        else
            candidate_clear(&c);
    }
    g_free(values);
    g_free(bins);
}

/* ---- sensors ---- */

/* The series of a sensor on all hosts. */
typedef struct sensor_of_sample {
    const sensor_series *first;
    const sensor_series **of_site; /* for each site, by its number, the series of the site's host; NULL: the host has
                                      no such series */
} sensor_of_sample;

/* Finds the series for each site of the sample's place. Returns false if the sensor covers too few visits, or if it
 * always has the same value. `counts` has the number of the sample's visits at each site. */
static bool sensor_cover(const sample *x, const sensor_series *first, const uint32_t *counts, sensor_of_sample *out)
{
    const visits *v = x->visits;
    GHashTable *by_host = g_hash_table_new(g_str_hash, g_str_equal);
    double lowest = INFINITY, highest = -INFINITY;
    for (const sensor_series *of = first; of != NULL; of = of->next) {
        g_hash_table_insert(by_host, of->host, (gpointer)of);
        lowest = fmin(lowest, of->lowest);
        highest = fmax(highest, of->highest);
    }
    const GArray *sites = place_at(v, x->place)->sites;
    uint32_t covered = 0;
    out->first = first;
    for (guint n = 0; n < sites->len; n++) {
        uint32_t number = g_array_index(sites, uint32_t, n);
        out->of_site[number] = g_hash_table_lookup(by_host, site_at(v, number)->host);
        covered += out->of_site[number] != NULL ? counts[number] : 0;
    }
    g_hash_table_destroy(by_host);
    return lowest < highest && covered * 3 > x->count;
}

/*
 * For each visit, gets the value of the sensor on the visit's host when the visit begins. A later value may be an
 * effect of the visit. Moves the sensor's times by `shift`, a share of the log's length. Returns the number of known
 * values.
 */
static uint32_t sensor_values(const sample *x, const sensor_of_sample *sensor, double shift, float *values)
{
    const visits *v = x->visits;
    int64_t length = v->to_ns - v->from_ns;
    uint32_t known = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const visit *y = visit_at(v, x->index[i]);
        const sensor_series *own = sensor->of_site[y->site];
        int64_t at = y->from_ns - v->from_ns + (int64_t)(shift * (double)length);
        values[i] = own != NULL ? (float)series_at(own, v->from_ns + (length > 0 ? at % length : 0)) : NAN;
        known += isfinite(values[i]);
    }
    return known;
}

/* Returns whether low values of a sensor can slow a program down. Low values of free memory or of a congestion window
 * can. Low activity of processors, disks, network and processes is only a consequence of waiting programs. */
static bool low_can_slow(const sensor_series *of)
{
    static const char *const activity[] = {"CPU.", "DISK.", "LOAD.", "NET.", "PROC.", "PROCS.", "PSI.", "TCP."};
    static const char *const supply[] = {"AVAILABLE", "FREE", "IDLE", "CWND", "PACING", "RATE", "SSTHRESH", "WINDOW"};
    for (size_t i = 0; i < G_N_ELEMENTS(supply); i++)
        if (strstr(of->field, supply[i]) != NULL)
            return true;
    for (size_t i = 0; i < G_N_ELEMENTS(activity); i++)
        if (g_str_has_prefix(of->field, activity[i]))
            return false;
    return true;
}

/* Returns the host of at least HOST_PART_MIN of the time that a cut claims. Returns NULL if there is no such host, or
 * if all visits are on one host. */
static const char *host_of_claim(const sample *x, const float *cut)
{
    const visits *v = x->visits;
    double *sums = g_new0(double, v->sites->len + 1), all = 0, largest = 0;
    const char *host = NULL;
    for (uint32_t i = 0; i < x->count; i++) {
        double claim = (double)cut[x->index[i]] * x->weight[i];
        sums[visit_at(v, x->index[i])->site] += claim;
        all += claim;
    }
    const place *p = place_at(v, x->place);
    GHashTable *of_hosts = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* host -> double: the claim of its sites */
    for (guint n = 0; n < p->sites->len; n++) {
        uint32_t number = g_array_index(p->sites, uint32_t, n);
        const char *here = site_at(v, number)->host;
        double *sum = g_hash_table_lookup(of_hosts, here);
        if (sum == NULL) {
            sum = g_new0(double, 1);
            g_hash_table_insert(of_hosts, (gpointer)here, sum);
        }
        *sum += sums[number];
        if (*sum > largest) {
            largest = *sum;
            host = here;
        }
    }
    bool several = g_hash_table_size(of_hosts) > 1;
    g_hash_table_destroy(of_hosts);
    g_free(sums);
    return several && largest >= HOST_PART_MIN * all ? host : NULL;
}

/*
 * Divides the visits into bins 0 and 1, below and above a threshold of a sensor's values, because a busy resource often
 * slows visits only beyond a threshold. Tries thresholds that separate a part of the values, either the largest or the
 * smallest. This part is a half to a thirty-second of all values. Chooses the threshold at which the mean ranks of the
 * visits below and above it differ most. Returns 2, or 0 if no threshold separates the visits.
 */
static int bins_of_threshold(const sample *x, const float *values, uint8_t *bins)
{
    uint32_t n = 0, chosen = 0;
    double *sorted = g_new(double, x->count + 1), cuts[THRESHOLDS] = {0}, best = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (isfinite(values[i]))
            sorted[n++] = (double)values[i];
    sort_doubles(sorted, n);
    for (uint32_t k = 0; k < THRESHOLDS && n > 0; k++) {
        double part = pow(2, -1 - (double)(k / 2) / 2), sums[2] = {0}, counts[2] = {0};
        cuts[k] = sorted[(uint32_t)((double)n * (k % 2 == 0 ? 1 - part : part))];
        for (uint32_t i = 0; i < x->count; i++)
            if (isfinite(values[i])) {
                sums[(double)values[i] >= cuts[k]] += x->rank[i];
                counts[(double)values[i] >= cuts[k]]++;
            }
        if (counts[0] < THRESHOLD_VISITS_MIN || counts[1] < THRESHOLD_VISITS_MIN)
            continue;
        double difference = sums[1] / counts[1] - sums[0] / counts[0],
               between = difference * difference * counts[0] * counts[1];
        if (between > best) {
            best = between;
            chosen = k;
        }
    }
    for (uint32_t i = 0; i < x->count && best > 0; i++)
        bins[i] = !isfinite(values[i]) ? BIN_NONE : (double)values[i] >= cuts[chosen];
    g_free(sorted);
    return best > 0 ? 2 : 0;
}

/* If processors are busy for this part of the time, programs may wait for any length of time. */
#define SATURATED 0.9

/*
 * Returns whether busy processors can be the reason for the slow visits. If requests share a processor that is busy for
 * the part b of the time, they take at most 1 / (1 - b) times as long. With several processors, the factor is smaller.
 * If the slow visits take longer than that, the processors are busy only because the programs do more work.
 */
static bool can_slow_so_much(const sample *x, const sensor_series *of, const float *values, const explanation *e)
{
    const bool is_idle = strcmp(of->field, "CPU.IDLE") == 0;
    if (!g_str_has_prefix(of->field, "CPU.") || strcmp(of->field, "CPU.IOWAIT") == 0)
        return true;
    double *busy = g_new(double, x->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (e->excess[i] > 0 && isfinite(values[i]))
            busy[count++] = (is_idle ? 100 - (double)values[i] : (double)values[i]) / 100;
    sort_doubles(busy, count);
    /* Use a high value, because a shortage begins and ends with lower values. */
    double high = count > 0 ? busy[count * 3 / 4] : 1;
    g_free(busy);
    return high >= SATURATED || e->slow_ns * (1 - high) <= e->other_ns;
}

/* Divides the visits by a sensor's values, and explains the times. Returns false if there is only one bin. */
static bool explain_sensor(const sample *x, const float *values, bool by_threshold, explanation *e)
{
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    int count = by_threshold ? bins_of_threshold(x, values, bins) : sample_quantize(values, x->count, bins);
    if (count > 1)
        *e = sample_explain(x, bins, count, true);
    g_free(bins);
    return count > 1;
}

/* Resources. A shortage of a resource also affects the resources after it in this list. */
typedef enum resource_kind {
    RESOURCE_MEMORY, /* a shortage of memory causes reads and writes */
    RESOURCE_OTHER,
    RESOURCE_PROCESSOR,
    RESOURCE_WAITING, /* processors and processes that wait, for example for a disk */
    RESOURCE_TRAFFIC  /* amounts of transferred data, and numbers of transfers and of page faults without reads */
} resource_kind;

static resource_kind resource_of(const sensor_series *of)
{
    static const char *const traffic[] = {"TCP.IN",     "TCP.OUT",        "TCP.ESTABLISHED", "TCP.OPENED", "NET.IN",
                                          "NET.OUT",    "NET.IN.PACKETS", "NET.OUT.PACKETS", "DISK.READ",  "DISK.WRITE",
                                          "DISK.READS", "DISK.WRITES",    "TCP.ACCEPTED",    "VM.FAULTS"};
    for (size_t i = 0; i < G_N_ELEMENTS(traffic); i++)
        if (strcmp(of->field, traffic[i]) == 0)
            return RESOURCE_TRAFFIC;
    return strstr(of->field, "IOWAIT") != NULL                                             ? RESOURCE_WAITING
           : g_str_has_prefix(of->field, "MEM.") || g_str_has_prefix(of->field, "SWAP.")   ? RESOURCE_MEMORY
           : g_str_has_prefix(of->field, "CPU.")                                           ? RESOURCE_PROCESSOR
           : g_str_has_prefix(of->field, "LOAD.") || g_str_has_prefix(of->field, "PROCS.") ? RESOURCE_WAITING
                                                                                           : RESOURCE_OTHER;
}

/*
 * Tries a sensor as a cause. Increases *chance to the part of the variation that the sensor, moved in time, explains.
 * Moved values explain the visits only by chance, but change as slowly as the true values.
 */
static candidate try_sensor(search *s, const sample *x, const sensor_of_sample *sensor, bool by_threshold,
                            double *chance)
{
    float *values = g_new(float, x->count + 1);
    candidate c = {.place = x->place};
    explanation e, other;
    uint32_t known = sensor_values(x, sensor, 0, values);
    if (known * 3 > x->count && explain_sensor(x, values, by_threshold, &e)) {
        s->f->tests++;
        bool falls = (e.slow & 1) != 0, is_possible = can_slow_so_much(x, sensor->first, values, &e);
        const resource_kind kind = resource_of(sensor->first);
        c = candidate_of(x, "resource", &e,
                         kind == RESOURCE_TRAFFIC || kind == RESOURCE_WAITING ? TRAFFIC_PREFERENCE
                                                                              : RESOURCE_PREFERENCE);
        c.p *= by_threshold ? 2 * THRESHOLDS : 2; /* each of the two ways to divide the visits has half of the level */
        c.falls = falls;
        c.sensor = sensor->first;
        c.host = host_of_claim(x, c.cut);
        if (!is_possible || (falls && !low_can_slow(c.sensor))) {
            candidate_clear(&c);
            c = (candidate){.place = x->place};
        }
        for (int k = 1; k <= SHIFTS && c.p < PROMISING && c.explained > RESOURCE_MIN; k++) {
            sensor_values(x, sensor, k / (SHIFTS + 1.0), values);
            if (!explain_sensor(x, values, by_threshold, &other))
                continue;
            g_free(other.excess);
            *chance = fmax(*chance, other.explained);
        }
    }
    g_free(values);
    return c;
}

/* A sensor that explains a part of the variation by more than chance. */
typedef struct sensor_result {
    const sensor_series *first;
    bool by_threshold;
    double explained;
} sensor_result;

/*
 * Returns the sensor that explains most of the variation. `largest` is the part of the variation that this sensor
 * explains. If sensors of several resources explain nearly as much, returns the best sensor of the first of these
 * resources in resource_kind, because its shortage affects the others. Returns NULL if there are no sensors.
 */
static const sensor_result *choose_sensor(const GArray *results, double largest)
{
    const sensor_result *best = NULL;
    for (guint i = 0; i < results->len; i++) {
        const sensor_result *r = &g_array_index(results, sensor_result, i);
        if (r->explained < NEARLY * largest)
            continue;
        resource_kind kind = resource_of(r->first), of_best = best != NULL ? resource_of(best->first) : kind;
        if (best == NULL || kind < of_best || (kind == of_best && r->explained > best->explained))
            best = r;
    }
    return best;
}

/* Offers the sensor that explains the times best as a cause if it explains more than sensors explain by chance. */
static void try_sensors(search *s, const sample *x)
{
    const GPtrArray *all = series_all(s->v->series);
    if (all->len == 0)
        return;
    double chance = RESOURCE_MIN / RESOURCE_FACTOR, largest = 0;
    sensor_of_sample sensor = {.of_site = g_new0(const sensor_series *, s->v->sites->len + 1)};
    uint32_t *counts = g_new0(uint32_t, s->v->sites->len + 1);
    GArray *results = g_array_new(FALSE, FALSE, sizeof(sensor_result));
    for (uint32_t i = 0; i < x->count; i++)
        counts[visit_at(s->v, x->index[i])->site]++;
    for (guint i = 0; i < all->len; i++) {
        const sensor_series *first = g_ptr_array_index(all, i);
        if (!first->is_first || !sensor_cover(x, first, counts, &sensor))
            continue;
        for (int by_threshold = 0; by_threshold < 2; by_threshold++) {
            candidate c = try_sensor(s, x, &sensor, by_threshold, &chance);
            const sensor_result result = {first, by_threshold, c.explained};
            if (c.cause != NULL && c.p < PROMISING) {
                g_array_append_val(results, result);
                largest = fmax(largest, c.explained);
            }
            candidate_clear(&c);
        }
    }
    const sensor_result *chosen = choose_sensor(results, largest);
    if (chosen != NULL && largest > RESOURCE_FACTOR * chance && sensor_cover(x, chosen->first, counts, &sensor)) {
        candidate best = try_sensor(s, x, &sensor, chosen->by_threshold, &chance);
        candidate_offer(s, &best);
    }
    g_array_free(results, TRUE);
    g_free(sensor.of_site);
    g_free(counts);
}

static void try_sample(search *s, const sample *original)
{
    sample *even = sample_even_out_operations(s, original), *of_work = even != NULL ? even : (sample *)original,
           *amounts = sample_even_out_amounts(s, of_work);
    const sample *x = amounts != NULL ? amounts : of_work;
    const place *p = place_at(s->v, x->place);
    const site *first = site_at(s->v, visit_at(s->v, x->index[0])->site);
    try_peers(s, x, PEER_HOST);
    if (p->kind == PLACE_EDGE || p->server_field != NULL)
        try_peers(s, x, PEER_HOST_AT_BEGIN);
    if (place_has_processes(s->v, p))
        try_peers(s, x, PEER_PROCESS);
    for (uint32_t i = 0; i < s->v->columns->count; i++)
        if (!s->v->columns->all[i].closed && g_strcmp0(s->v->columns->all[i].name, p->server_field) != 0)
            try_column(s, original, sample_choose_work(&s->v->columns->all[i], of_work, amounts),
                       &s->v->columns->all[i]);
    if (!p->inferred || first->host == first->from_host) /* an inferred edge between hosts depends on clocks */
        try_time(s, x);
    try_hours(s, x);
    try_load(s, x);
    if (original->kind.column == NULL)
        try_sensors(s, x);
    if (amounts != NULL)
        sample_free(amounts);
    if (even != NULL)
        sample_free(even);
}

/* Examines the main kind of visits, because the ordinary difference between kinds can hide a fault that is visible
 * within a kind. */
static void try_kind(search *s, const sample *kind)
{
    GArray *all = s->collected = g_array_new(FALSE, FALSE, sizeof(candidate));
    double best_ordinary = 0;
    try_sample(s, kind);
    s->collected = NULL;
    for (guint i = 0; i < all->len; i++) {
        const candidate *c = &g_array_index(all, candidate, i);
        best_ordinary = fmax(best_ordinary, c->is_ordinary ? c->score : 0);
    }
    for (guint i = 0; i < all->len; i++) {
        candidate *c = &g_array_index(all, candidate, i);
        c->is_within_kind = !c->is_ordinary && c->score > best_ordinary;
        candidate_place(s, c);
    }
    g_array_free(all, TRUE);
}

void try_divisions(search *s, const sample *x)
{
    sample *kind = sample_select_main_kind(s, x);
    try_sample(s, x);
    if (kind != NULL) {
        try_kind(s, kind);
        sample_free(kind);
    }
}
