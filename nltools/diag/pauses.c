/*
 * Pauses. While a program is stopped, none of its visits ends and none begins. Between two consecutive events of a
 * program on a host, the visits under way all last longer. That has a probability, by how long the visits of each place
 * usually last; the product is far too small for a pause. A visit alone is no evidence: it may just be long.
 */
#include "config.h"

#include <math.h>

#include "diag/mechanisms.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSES_MIN = 3, ACTIVE_MIN = 2, SCAN_MAX = 256, SURVIVAL_MAX = 2048, SUSPECT = 8, GAPS_MAX = 1000 };

/* How long visits of a place last. */
typedef struct survival {
    double *values;
    uint32_t count;
} survival;

typedef struct active {
    int64_t from_ns, to_ns;
    uint32_t visit;
} active;

typedef struct station {
    const visits *v;
    const char *program, *host;
    GArray *times;  /* int64_t */
    GArray *active; /* by begin */
    survival *lasting;
    GArray *gaps; /* series of pairs: active with from_ns, to_ns */
} station;

static int by_begin(const void *a, const void *b)
{
    const active *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int by_time_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

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

/* Learns how long visits of each place last, without those in the gaps found so far. */
static void learn_survival(station *s)
{
    for (guint i = 0; i < s->v->places->len; i++)
        s->lasting[i].count = 0;
    for (guint i = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        survival *of = &s->lasting[place_of_visit(s->v, visit_at(s->v, a->visit))];
        if (of->values == NULL)
            of->values = g_new(double, SURVIVAL_MAX);
        if (of->count < SURVIVAL_MAX && !in_gap(s, a))
            of->values[of->count++] = (double)(a->to_ns - a->from_ns);
    }
    for (guint i = 0; i < s->v->places->len; i++)
        if (s->lasting[i].count > 0)
            qsort(s->lasting[i].values, s->lasting[i].count, sizeof(double), compare_double);
}

/*
 * The part of visits that last longer than x, about. At first the pauses are among them, and so it is that of a
 * log-normal distribution through the shorter half; then it is counted, without the visits in suspected gaps.
 */
static double longer(const survival *l, double x, bool first)
{
    if (first) {
        double middle = l->values[l->count / 2], low = l->values[l->count * 3 / 20];
        double sigma = MAX(log(MAX(middle, 1) / MAX(low, 1)) / 1.036, 0.05);
        return MAX(normal_tail(log(MAX(x, 1) / MAX(middle, 1)) / sigma), 1e-4);
    }
    uint32_t low = 0, high = l->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->values[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return l->count - low + 1.0;
}

/* -log of the probability that no visit ends between from and to; *count: visits under way. */
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
    double sum = 0;
    *count = 0;
    uint32_t last = VISIT_NONE;
    for (guint i = low, scanned = 0; i > 0 && scanned < SCAN_MAX; scanned++) {
        const active *a = &g_array_index(s->active, active, --i);
        if (a->to_ns < to_ns)
            continue;
        const visit *x = visit_at(s->v, a->visit);
        const survival *l = &s->lasting[place_of_visit(s->v, x)];
        double age = (double)(MAX(from_ns, a->from_ns) - a->from_ns), then = (double)(to_ns - a->from_ns);
        if (l->count < 20)
            continue;
        sum += log(longer(l, age, first) / longer(l, then, first));
        *count += x->request != last;
        last = x->request;
    }
    return sum;
}

static void find_gaps(station *s, double threshold, double long_ns, bool first)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(active));
    for (guint i = 1; i < s->times->len; i++) {
        int64_t from_ns = g_array_index(s->times, int64_t, i - 1), to_ns = g_array_index(s->times, int64_t, i);
        uint32_t count;
        if ((double)(to_ns - from_ns) < long_ns)
            continue;
        if (improbability(s, from_ns, to_ns, first, &count) > threshold && count >= ACTIVE_MIN) {
            const active gap = {from_ns, to_ns, count};
            g_array_append_val(found, gap);
        }
    }
    g_array_free(s->gaps, TRUE);
    s->gaps = found;
}

/* The time from which a gap is examined: longer than usual, and among the longest. */
static double long_gap(const station *s)
{
    double *gaps = g_new(double, s->times->len);
    for (guint i = 1; i < s->times->len; i++)
        gaps[i - 1] = (double)(g_array_index(s->times, int64_t, i) - g_array_index(s->times, int64_t, i - 1));
    guint count = s->times->len - 1;
    double shortest = MAX(2 * median_of(gaps, count), gaps[count > GAPS_MAX ? count - GAPS_MAX : 0]);
    g_free(gaps);
    return shortest;
}

static void gather_station(station *s)
{
    for (guint i = 0; i < s->v->all->len; i++) {
        const visit *x = visit_at(s->v, i);
        const site *at = site_at(s->v, x->site);
        const place *p = place_at(s->v, at->place);
        bool ends = p->program == s->program && at->host == s->host,
             begins = p->kind == PLACE_EDGE ? p->from_program == s->program && at->from_host == s->host : ends;
        if (begins)
            g_array_append_val(s->times, x->from_ns);
        if (ends)
            g_array_append_val(s->times, x->to_ns);
        if (ends && p->kind != PLACE_UNKNOWN && !(p->kind == PLACE_SPAN && p->has_children)) {
            const active a = {x->from_ns, x->to_ns, i};
            g_array_append_val(s->active, a);
        }
    }
    qsort(s->times->data, s->times->len, sizeof(int64_t), by_time_ns);
    qsort(s->active->data, s->active->len, sizeof(active), by_begin);
}

/* Sums up what visits waited in the gaps. */
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

static void examine_station(const visits *v, const char *program, const char *host, GArray *results)
{
    station s = {v,
                 program,
                 host,
                 g_array_new(FALSE, FALSE, sizeof(int64_t)),
                 g_array_new(FALSE, FALSE, sizeof(active)),
                 g_new0(survival, v->places->len + 1),
                 g_array_new(FALSE, FALSE, sizeof(active))};
    gather_station(&s);
    if (s.times->len >= 100 && s.active->len >= 50) {
        double shortest = long_gap(&s);
        learn_survival(&s);
        find_gaps(&s, SUSPECT, shortest, true);
        learn_survival(&s);
        find_gaps(&s, log(s.times->len) + log(100), shortest, false);
        if (s.gaps->len >= PAUSES_MIN) {
            pause_result r = {.program = program, .host = host};
            sum_pauses(&s, &r.m);
            r.first_ns = g_array_index(s.gaps, active, 0).from_ns;
            r.last_ns = g_array_index(s.gaps, active, s.gaps->len - 1).to_ns;
            g_array_append_val(results, r);
        }
    }
    for (guint i = 0; i < v->places->len; i++)
        g_free(s.lasting[i].values);
    g_free(s.lasting);
    g_array_free(s.times, TRUE);
    g_array_free(s.active, TRUE);
    g_array_free(s.gaps, TRUE);
}

GArray *find_pauses(const visits *v, const char *const *programs)
{
    GArray *results = g_array_new(FALSE, FALSE, sizeof(pause_result));
    for (size_t n = 0; programs[n] != NULL; n++) {
        GHashTable *hosts = g_hash_table_new(NULL, NULL);
        for (guint i = 0; i < v->sites->len; i++) {
            const site *s = site_at(v, i);
            if (place_at(v, s->place)->program == programs[n] && g_hash_table_add(hosts, (gpointer)s->host))
                examine_station(v, programs[n], s->host, results);
        }
        g_hash_table_destroy(hosts);
    }
    return results;
}
