/*
 * Finds pauses. While a program is stopped, none of its visits begins or ends. All visits in progress therefore last
 * across the gap between two consecutive events of a program on a host. The probability of this follows from how long
 * the visits of each place usually last. For a pause, the product of these probabilities is very small. A single visit
 * is no evidence, because it may simply be long.
 */
#include "config.h"

#include <math.h>

#include "diag/keyed_sort.h"
#include "diag/mechanisms.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAUSES_MIN = 3,
    ACTIVE_MIN = 2,
    SCAN_MAX = 256,
    SURVIVAL_MAX = 2048,
    SUSPECT = 7, /* minimum improbability of a gap, in natural logarithms */
    GAPS_MAX = 1000,
    RESULTS_MAX = 16 /* each result has a number for each visit of the log */
};

/* Maximum expected share of chance gaps among the gaps that are found. */
#define GAP_CHANCE 0.01

/* The least probability that is assumed, with a value beyond which normal_tail is less. Below CERTAIN_Z, it is 1. */
#define RARE 1e-4
#define RARE_Z 3.72
#define CERTAIN_Z (-9.0)

/* The distribution of the durations of a place's visits. */
typedef struct survival {
    double *values;
    double log_middle, sigma; /* log-normal distribution through the shorter half; see longer */
    uint32_t count;
    bool sorted;
} survival;

typedef struct active {
    int64_t from_ns, to_ns;
    uint32_t visit, place;
} active;

/* A program on a host. */
typedef struct station {
    const visits *v;
    const char *program, *host;
    GArray *times;     /* int64_t: times at which its visits begin and end */
    GArray *active;    /* its visits, sorted by begin */
    survival *lasting; /* indexed by place; shared by all stations */
    GArray *gaps;      /* elements are active, with from_ns and to_ns */
} station;

static bool in_gap(const station *s, const active *a)
{
    guint low = 0, high = s->gaps->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->gaps, active, middle).to_ns <= a->from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->gaps->len && g_array_index(s->gaps, active, low).from_ns < a->to_ns;
}

static survival *survival_of(const station *s, const active *a)
{
    return &s->lasting[a->place];
}

static void sort_survival(survival *l)
{
    qsort(l->values, l->count, sizeof(double), compare_double);
    l->sorted = true;
    if (l->count == 0)
        return;
    const double middle = MAX(l->values[l->count / 2], 1), low = MAX(l->values[l->count * 3 / 20], 1);
    l->log_middle = log(middle);
    l->sigma = MAX(log(middle / low) / 1.036, 0.05);
}

/* Learns how long visits of each place last. Excludes visits in the gaps that were found so far. */
static void learn_survival(station *s)
{
    for (guint i = 0; i < s->active->len; i++) {
        survival *of = survival_of(s, &g_array_index(s->active, active, i));
        if (of->values == NULL)
            of->values = g_new(double, SURVIVAL_MAX);
        of->count = 0;
        of->sorted = false;
    }
    for (guint i = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        survival *of = survival_of(s, a);
        if (of->count < SURVIVAL_MAX && !in_gap(s, a))
            of->values[of->count++] = (double)(a->to_ns - a->from_ns);
    }
    for (guint i = 0; i < s->active->len; i++) {
        survival *of = survival_of(s, &g_array_index(s->active, active, i));
        if (!of->sorted)
            sort_survival(of);
    }
}

/*
 * Returns approximately the part of visits that last longer than x. At first, pauses are included, so the function uses
 * a log-normal distribution through the shorter half. Later, it counts the visits outside suspected gaps.
 */
static double longer(const survival *l, double x, bool first)
{
    if (first) {
        const double z = (log(MAX(x, 1)) - l->log_middle) / l->sigma;
        return z < CERTAIN_Z ? 1 : z > RARE_Z ? RARE : MAX(normal_tail(z), RARE);
    }
    const double *from = l->values;
    if (x < *from) /* frequent: the visit began in the gap */
        return l->count + 1.0;
    /* Without branches, because half of them would be predicted wrongly. */
    for (uint32_t size = l->count; size > 1; size -= size / 2)
        from += from[size / 2 - 1] <= x ? size / 2 : 0;
    return l->count - (double)(from - l->values) - (*from <= x ? 1 : 0) + 1.0;
}

/*
 * Returns whether a visit is a message that usually takes longer than a gap. Such messages wait together on their path,
 * so gaps are normal.
 */
static bool is_usual_way(const station *s, const visit *x, const survival *l, double gap_ns)
{
    const site *at = site_at(s->v, x->site);
    return place_at(s->v, at->place)->kind == PLACE_EDGE && at->host != at->from_host &&
           gap_ns < l->values[l->count / 2];
}

/* Returns the negative logarithm of the probability that no visit ends between from_ns and to_ns. Sets *count to the
 * number of visits in progress. */
static double improbability(const station *s, int64_t from_ns, int64_t to_ns, bool first, uint32_t *count)
{
    guint low = 0, high = s->active->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->active, active, middle).from_ns < to_ns)
            low = middle + 1;
        else
            high = middle;
    }
    double sum = 0, product = 1;
    *count = 0;
    uint32_t last = VISIT_NONE;
    for (guint i = low, scanned = 0; i > 0 && scanned < SCAN_MAX; scanned++) {
        const active *a = &g_array_index(s->active, active, --i);
        if (a->to_ns < to_ns)
            continue;
        const visit *x = visit_at(s->v, a->visit);
        const survival *l = survival_of(s, a);
        double age = (double)(MAX(from_ns, a->from_ns) - a->from_ns), then = (double)(to_ns - a->from_ns);
        if (l->count < 20 || is_usual_way(s, x, l, (double)(to_ns - from_ns)))
            continue;
        product *= longer(l, age, first) / longer(l, then, first); /* 1 to 10,000 */
        if (product > 1e200) {
            sum += log(product);
            product = 1;
        }
        *count += x->request != last;
        last = x->request;
    }
    return sum + log(product);
}

static int by_improbability(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/*
 * Returns the smallest improbability of a gap that is found: of n gaps, the k-th largest improbability counts if gaps
 * would exceed it by chance at most GAP_CHANCE * k times (Benjamini and Hochberg's procedure).
 */
static double threshold_of(GArray *improbabilities, guint count)
{
    double threshold = INFINITY;
    g_array_sort(improbabilities, by_improbability);
    for (guint k = 0; k < improbabilities->len; k++) {
        double x = g_array_index(improbabilities, double, k);
        if (x >= log(count) + log(1 / GAP_CHANCE) - log(k + 1))
            threshold = x;
    }
    return threshold;
}

static void find_gaps(station *s, double long_ns, bool first)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(active)), *all = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 1; i < s->times->len; i++) {
        int64_t from_ns = g_array_index(s->times, int64_t, i - 1), to_ns = g_array_index(s->times, int64_t, i);
        uint32_t count;
        if ((double)(to_ns - from_ns) < long_ns)
            continue;
        double x = improbability(s, from_ns, to_ns, first, &count);
        if (x < SUSPECT || count < ACTIVE_MIN)
            continue;
        const active gap = {from_ns, to_ns, count, 0};
        g_array_append_val(found, gap);
        g_array_append_val(all, x);
    }
    if (!first) {
        GArray *sorted = g_array_copy(all);
        double threshold = threshold_of(sorted, s->times->len);
        for (guint i = found->len; i-- > 0;)
            if (g_array_index(all, double, i) < threshold)
                g_array_remove_index(found, i);
        g_array_free(sorted, TRUE);
    }
    g_array_free(all, TRUE);
    g_array_free(s->gaps, TRUE);
    s->gaps = found;
}

/* Returns the minimum length of gaps to examine, which are longer than usual and among the longest gaps. */
static double long_gap(const station *s)
{
    guint count = s->times->len - 1;
    keyed *gaps = g_new(keyed, count);
    for (guint i = 0; i < count; i++)
        gaps[i] = (keyed){g_array_index(s->times, int64_t, i + 1) - g_array_index(s->times, int64_t, i), i};
    keyed_sort(gaps, count);
    int64_t middle = (gaps[(count - 1) / 2].key + gaps[count / 2].key) / 2,
            shortest = MAX(2 * middle, gaps[count > GAPS_MAX ? count - GAPS_MAX : 0].key);
    g_free(gaps);
    return (double)shortest;
}

/* Gathers the visits of a station and the times at which they begin and end, both in the order of time. */
static void gather_station(station *s, const uint32_t *indices, uint32_t count)
{
    keyed *times = g_new(keyed, 2 * (size_t)count + 1), *begins = g_new(keyed, count + 1);
    size_t time_count = 0, active_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const visit *x = visit_at(s->v, indices[i]);
        const site *at = site_at(s->v, x->site);
        const place *p = place_at(s->v, at->place);
        bool ends = p->program == s->program && at->host == s->host,
             begins_here = p->kind == PLACE_EDGE ? p->from_program == s->program && at->from_host == s->host : ends;
        if (begins_here)
            times[time_count++].key = x->from_ns;
        if (ends)
            times[time_count++].key = x->to_ns;
        if (ends && p->kind != PLACE_UNKNOWN && !(p->kind == PLACE_SPAN && p->has_children))
            begins[active_count++] = (keyed){x->from_ns, indices[i]};
    }
    keyed_sort(times, time_count);
    keyed_sort(begins, active_count);
    for (size_t i = 0; i < time_count; i++)
        g_array_append_val(s->times, times[i].key);
    for (size_t i = 0; i < active_count; i++) {
        const visit *x = visit_at(s->v, begins[i].index);
        const active a = {x->from_ns, x->to_ns, begins[i].index, place_of_visit(s->v, x)};
        g_array_append_val(s->active, a);
    }
    g_free(times);
    g_free(begins);
}

/* Adds up the time that visits have waited in the gaps. */
static void sum_pauses(const station *s, mechanism *m)
{
    double sum = 0, square = 0, length = 0;
    uint32_t n = s->gaps->len;
    for (guint i = 0; i < n; i++) {
        const active *gap = &g_array_index(s->gaps, active, i);
        length += (double)(gap->to_ns - gap->from_ns);
        if (i > 0) {
            double step = (double)(gap->from_ns - g_array_index(s->gaps, active, i - 1).from_ns);
            sum += step;
            square += step * step;
        }
    }
    double mean = sum / (n - 1), variance = square / (n - 1) - mean * mean;
    m->count = n;
    m->length_ns = length / n;
    m->period_ns = n >= 5 && variance < 0.04 * mean * mean ? mean : 0;
    m->host = s->host;
    m->waits = g_new0(float, s->v->all->len + 1);
    for (guint i = 0, g = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        const visit *x = visit_at(s->v, a->visit);
        while (g < n && g_array_index(s->gaps, active, g).to_ns <= a->from_ns)
            g++;
        double wait = 0;
        for (guint k = g; k < n && g_array_index(s->gaps, active, k).from_ns < a->to_ns; k++) {
            const active *gap = &g_array_index(s->gaps, active, k);
            wait += (double)(MIN(gap->to_ns, a->to_ns) - MAX(gap->from_ns, a->from_ns));
        }
        m->waits[a->visit] = (float)MIN(wait, (double)x->own_ns);
        m->claim_ns += (double)m->waits[a->visit] * path_weight(x);
    }
}

/* Keeps the results with the largest claims. */
static void keep_result(GArray *results, pause_result *r)
{
    guint smallest = 0;
    if (results->len < RESULTS_MAX) {
        g_array_append_val(results, *r);
        return;
    }
    for (guint i = 1; i < results->len; i++)
        if (g_array_index(results, pause_result, i).m.claim_ns <
            g_array_index(results, pause_result, smallest).m.claim_ns)
            smallest = i;
    pause_result *other = &g_array_index(results, pause_result, smallest);
    if (other->m.claim_ns >= r->m.claim_ns) {
        g_free(r->m.waits);
        return;
    }
    g_free(other->m.waits);
    *other = *r;
}

static void examine_station(station *s, const uint32_t *indices, uint32_t count, GArray *results)
{
    s->times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    s->active = g_array_new(FALSE, FALSE, sizeof(active));
    s->gaps = g_array_new(FALSE, FALSE, sizeof(active));
    gather_station(s, indices, count);
    if (s->times->len >= 100 && s->active->len >= 50) {
        double shortest = long_gap(s);
        learn_survival(s);
        find_gaps(s, shortest, true);
        learn_survival(s);
        find_gaps(s, shortest, false);
        if (s->gaps->len >= PAUSES_MIN) {
            pause_result r = {.program = s->program, .host = s->host};
            sum_pauses(s, &r.m);
            r.m.p = pow(GAP_CHANCE, PAUSES_MIN);
            r.first_ns = g_array_index(s->gaps, active, 0).from_ns;
            r.last_ns = g_array_index(s->gaps, active, s->gaps->len - 1).to_ns;
            keep_result(results, &r);
        }
    }
    for (guint i = 0; i < s->active->len; i++) {
        survival *of = survival_of(s, &g_array_index(s->active, active, i));
        g_free(of->values);
        of->values = NULL;
    }
    g_array_free(s->times, TRUE);
    g_array_free(s->active, TRUE);
    g_array_free(s->gaps, TRUE);
}

/* ---- all stations ---- */

typedef struct station_list {
    GHashTable *numbers;   /* maps "program\nhost" to a number + 1 */
    GPtrArray *names;      /* program and host of each station */
    uint32_t *begin, *end; /* indexed by site: the stations where the site's visits begin and end */
    uint32_t *first;       /* indexed by station, with one more element: the station's first index in visits */
    uint32_t *visits;      /* indices of visits, grouped by station */
} station_list;

static uint32_t station_number(station_list *l, const char *program, const char *host)
{
    char *key = g_strjoin("\n", program, host, NULL);
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(l->numbers, key));
    if (number > 0) {
        g_free(key);
        return number - 1;
    }
    g_ptr_array_add(l->names, (gpointer)program);
    g_ptr_array_add(l->names, (gpointer)host);
    g_hash_table_insert(l->numbers, key, GUINT_TO_POINTER(l->names->len / 2));
    return l->names->len / 2 - 1;
}

static void station_list_fill(station_list *l, const visits *v)
{
    guint count = l->names->len / 2;
    l->first = g_new0(uint32_t, count + 2);
    l->visits = g_new(uint32_t, 2 * (size_t)v->all->len + 1);
    for (int pass = 0; pass < 2; pass++) { /* count, then write; first[n + 1] is the next index for station n */
        for (guint i = 0; i < v->all->len; i++) {
            uint32_t at = visit_at(v, i)->site, begin = l->begin[at], end = l->end[at];
            uint32_t *slot = &l->first[end + 1 + !pass];
            if (pass == 1)
                l->visits[*slot] = i;
            ++*slot;
            if (begin == end)
                continue;
            slot = &l->first[begin + 1 + !pass];
            if (pass == 1)
                l->visits[*slot] = i;
            ++*slot;
        }
        for (guint n = 0; pass == 0 && n < count; n++)
            l->first[n + 2] += l->first[n + 1];
    }
}

GArray *find_pauses(const visits *v)
{
    GArray *results = g_array_new(FALSE, FALSE, sizeof(pause_result));
    station_list l = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                      g_ptr_array_new(),
                      g_new(uint32_t, v->sites->len + 1),
                      g_new(uint32_t, v->sites->len + 1),
                      NULL,
                      NULL};
    survival *lasting = g_new0(survival, v->places->len + 1);
    for (guint i = 0; i < v->sites->len; i++) {
        const site *s = site_at(v, i);
        const place *p = place_at(v, s->place);
        l.end[i] = station_number(&l, p->program, s->host);
        l.begin[i] = p->kind == PLACE_EDGE ? station_number(&l, p->from_program, s->from_host) : l.end[i];
    }
    station_list_fill(&l, v);
    for (guint n = 0; n < l.names->len / 2; n++) {
        station s = {.v = v,
                     .program = g_ptr_array_index(l.names, 2 * n),
                     .host = g_ptr_array_index(l.names, 2 * n + 1),
                     .lasting = lasting};
        examine_station(&s, l.visits + l.first[n], l.first[n + 1] - l.first[n], results);
    }
    g_hash_table_destroy(l.numbers);
    g_ptr_array_free(l.names, TRUE);
    g_free(l.begin);
    g_free(l.end);
    g_free(l.first);
    g_free(l.visits);
    g_free(lasting);
    return results;
}
