#include "config.h"

#include <math.h>

#include "diag/limit_contrasts.h"

#include "diag/search.h"

#include <string.h>

/* A place can be compared only if at least this share of its visits is at the limit, and at other times. */
#define GROUP_SHARE_MIN 0.05

/* Minimum ratio of the mean time of visits at the limit to the mean time of other visits. */
#define RATIO_MIN 1.5

/* Minimum ratio of the time that a limit explains to the median of the times that it explains if its times are shifted.
 */
#define SHIFT_FACTOR 1.3

/* Maximum ratio of the mean times of two groups of hosts that count as equal. */
#define EQUAL_HOSTS 1.1

/* Minimum share of all time that a limit explains at a place. */
#define PLACE_SHARE_MIN 0.02

enum {
    GROUP_MIN = 10, /* minimum number of visits in each group */
    SHIFTS = 16,
    TIME_PARTS = 10,
    CUTS = 3,  /* a resource slows visits already below its limit: tries the limit, its half and its quarter */
    KINDS = 3, /* number of limits that are compared */
    TESTS = KINDS * LIMIT_GAUGES_MAX * CUTS
};

/* The result of one comparison. */
typedef struct comparison {
    bool known, explains;
    double cut;                                /* visits with at least this value are slow */
    double claim_ns, slow_ns, other_ns, share; /* share: part of the time above other_ns that slow visits lose */
} comparison;

/* A gauge, and its series on each host. */
typedef struct gauge {
    double full;
    GHashTable *series; /* maps a host to a GPtrArray, whose elements are sensor_series */
} gauge;

static gauge gauge_new(const visits *v, const limit_gauge *g)
{
    gauge of = {g->full, g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref)};
    for (guint n = 0; n < v->sites->len; n++) {
        const char *host = site_at(v, n)->host;
        const GPtrArray *all = g_hash_table_contains(of.series, host) ? NULL : series_of_host(v->series, host);
        GPtrArray *matching = all != NULL ? g_ptr_array_new() : NULL;
        for (guint i = 0; all != NULL && i < all->len; i++) {
            sensor_series *s = g_ptr_array_index(all, i);
            if (strcmp(s->field, g->field) == 0 && strcmp(s->event, g->event) == 0 &&
                (g->instance == NULL || strcmp(s->instance, g->instance) == 0))
                g_ptr_array_add(matching, s);
        }
        if (matching != NULL)
            g_hash_table_insert(of.series, (gpointer)host, matching);
    }
    return of;
}

/* Returns the largest value of a gauge on a visit's host when the visit begins, or NAN. A later value may be an effect
 * of the visit. Moves the gauge's times by `shift`, a share of the log's length. */
static float value_of_gauge(const visits *v, const gauge *g, const visit *x, double shift)
{
    const GPtrArray *all = g_hash_table_lookup(g->series, site_at(v, x->site)->host);
    int64_t length = v->to_ns - v->from_ns, at = x->from_ns - v->from_ns + (int64_t)(shift * (double)length);
    double largest = NAN;
    for (guint i = 0; all != NULL && i < all->len; i++)
        largest = fmax(largest, series_at(g_ptr_array_index(all, i), v->from_ns + (length > 0 ? at % length : 0)));
    return (float)largest;
}

/* Divides visits by a cut into bins 0 (below) and 1, and explains their times. Returns false if a bin has too few
 * visits. */
static bool explain_cut(const sample *x, const float *values, double cut, explanation *e)
{
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    uint32_t counts[2] = {0};
    for (uint32_t i = 0; i < x->count; i++) {
        bins[i] = !isfinite(values[i]) ? BIN_NONE : (double)values[i] >= cut;
        if (bins[i] != BIN_NONE)
            counts[bins[i]]++;
    }
    bool known = MIN(counts[0], counts[1]) >= GROUP_MIN &&
                 MIN(counts[0], counts[1]) >= GROUP_SHARE_MIN * (counts[0] + counts[1]);
    if (known)
        *e = sample_explain(x, bins, 2, true);
    g_free(bins);
    return known;
}

/* Compares the visits whose values are known. Chooses the cut with the largest claim. */
static comparison compare_values(const sample *x, const float *values, double full)
{
    comparison best = {0};
    explanation e;
    double level = significance_level(x->visits, x->place, TESTS);
    for (int k = 0; k < CUTS; k++) {
        double cut = full / (1 << k);
        if (!explain_cut(x, values, cut, &e)) {
            if (k == 0)
                break; /* without both groups at the limit itself, the limit is reached always or never */
            continue;
        }
        g_free(e.excess);
        if (k == 0)
            best = (comparison){.known = true, .slow_ns = e.slow_ns, .other_ns = e.other_ns};
        if (e.slow == 2 && e.p <= level && e.slow_ns > RATIO_MIN * e.other_ns && e.claim_ns > best.claim_ns)
            best = (comparison){true, true, cut, e.claim_ns, e.slow_ns, e.other_ns, 0};
    }
    return best;
}

/* Numbers of a host's visits below the limit and at the limit. */
typedef struct host_states {
    uint32_t counts[2];
} host_states;

/* Returns whether a host reaches the limit at some times, but not at most times. */
static bool is_host_mixed(const host_states *h)
{
    uint32_t all = h->counts[0] + h->counts[1], fewer = MIN(h->counts[0], h->counts[1]);
    return fewer >= GROUP_MIN && fewer >= GROUP_SHARE_MIN * all;
}

/*
 * Copies the values of the visits on hosts that reach the limit only at times. The value of other visits is NAN.
 * Returns whether there are such hosts.
 */
static bool keep_mixed_hosts(const sample *x, const float *values, double full, float *kept)
{
    GHashTable *hosts = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* maps a host to its host_states */
    bool any = false;
    for (uint32_t i = 0; i < x->count; i++) {
        const char *host = site_at(x->visits, visit_at(x->visits, x->index[i])->site)->host;
        host_states *h = g_hash_table_lookup(hosts, host);
        if (h == NULL) {
            h = g_new0(host_states, 1);
            g_hash_table_insert(hosts, (gpointer)host, h);
        }
        if (isfinite(values[i]))
            h->counts[(double)values[i] >= full]++;
    }
    for (uint32_t i = 0; i < x->count; i++) {
        const char *host = site_at(x->visits, visit_at(x->visits, x->index[i])->site)->host;
        bool mixed = is_host_mixed(g_hash_table_lookup(hosts, host));
        kept[i] = mixed ? values[i] : (float)NAN;
        any = any || mixed;
    }
    g_hash_table_destroy(hosts);
    return any;
}

static void read_gauge(const sample *x, const gauge *g, double shift, float *values)
{
    for (uint32_t i = 0; i < x->count; i++)
        values[i] = value_of_gauge(x->visits, g, visit_at(x->visits, x->index[i]), shift);
}

/*
 * Returns whether the visits depend on the gauge more than on the gauge at shifted times: at least as much as at any
 * shift, and clearly more than at the median shift.
 */
static bool is_aligned(const sample *x, const gauge *g, const float *known, double claim_ns)
{
    float *values = g_new(float, x->count + 1);
    double claims_ns[SHIFTS], largest = 0;
    for (int k = 0; k < SHIFTS; k++) {
        read_gauge(x, g, (k + 1) / (SHIFTS + 1.0), values);
        for (uint32_t i = 0; i < x->count; i++)
            values[i] = isfinite(known[i]) ? values[i] : (float)NAN;
        claims_ns[k] = compare_values(x, values, g->full).claim_ns;
        largest = fmax(largest, claims_ns[k]);
    }
    g_free(values);
    return claim_ns >= largest && claim_ns > SHIFT_FACTOR * median_of(claims_ns, SHIFTS);
}

/*
 * Returns whether the slow visits lose their time in more than one part of the log. A single short event, such as a
 * cold start, often coincides with a limit. The sample is in order of time.
 */
static bool recurs(const sample *x, const float *known, const comparison *c)
{
    double above[TIME_PARTS] = {0}, all = 0, largest = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        bool slow = isfinite(known[i]) && (double)known[i] >= c->cut;
        double lost = slow ? fmax(0, x->y[i] - c->other_ns) * x->weight[i] : 0;
        size_t part = (size_t)((uint64_t)i * TIME_PARTS / x->count);
        above[part] += lost;
        all += lost;
        largest = fmax(largest, above[part]);
    }
    return largest <= all / 2;
}

/* Sets the part of the slow visits' time above the time of other visits that makes up the claim. */
static void set_share(const sample *x, const float *values, comparison *c)
{
    double above = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (isfinite(values[i]) && (double)values[i] >= c->cut)
            above += fmax(0, x->y[i] - c->other_ns) * x->weight[i] * x->scale;
    c->share = above > 0 ? fmin(1, c->claim_ns / above) : 0;
}

/*
 * Compares the visits of a place by one gauge. Compares the times of hosts that reach the limit only at times. If there
 * are no such hosts, compares the hosts that always reach the limit with those that never do. Other differences of
 * these hosts may hide a small effect, so that only equal times show that the limit explains nothing.
 */
static comparison compare_by_gauge(const sample *x, const gauge *g)
{
    float *values = g_new(float, x->count + 1), *mixed = g_new(float, x->count + 1);
    read_gauge(x, g, 0, values);
    bool by_time = keep_mixed_hosts(x, values, g->full, mixed);
    comparison c = compare_values(x, by_time ? mixed : values, g->full);
    if (c.explains && c.claim_ns < PLACE_SHARE_MIN * x->visits->total_ns)
        c.explains = false;
    if (c.explains && by_time && (!recurs(x, mixed, &c) || !is_aligned(x, g, mixed, c.claim_ns)))
        c.explains = false;
    if (!by_time && !c.explains && c.slow_ns > EQUAL_HOSTS * c.other_ns)
        c.known = false;
    if (c.explains)
        set_share(x, by_time ? mixed : values, &c);
    g_free(values);
    g_free(mixed);
    return c;
}

/* Sets the parts of a place's visits that a comparison explains. */
static void set_parts(const visits *v, uint32_t number, const gauge *g, const comparison *best, float *parts)
{
    const place *p = place_at(v, number);
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        const visit *x = visit_at(v, v->by_place[i]);
        double above = (double)x->own_ns - best->other_ns;
        bool slow = best->explains && above > 0 && (double)value_of_gauge(v, g, x, 0) >= best->cut;
        parts[v->by_place[i]] = slow ? (float)(best->share * above / (double)x->own_ns) : 0;
    }
}

static void compare_place(const visits *v, uint32_t number, const gauge *gauges, size_t count, limit_contrast *c)
{
    float *unclaimed = g_new0(float, v->all->len + 1);
    sample *x = sample_new(v, number, unclaimed);
    comparison best = {0};
    const gauge *of = gauges;
    for (const gauge *g = gauges; g < gauges + count; g++) {
        comparison other = compare_by_gauge(x, g);
        if (other.known && (!best.known || other.claim_ns * other.explains > best.claim_ns * best.explains)) {
            best = other;
            of = g;
        }
    }
    if (best.known) {
        set_parts(v, number, of, &best, c->parts);
        c->claims_ns[number] = best.explains ? best.claim_ns : 0;
        c->slow_ns[number] = best.slow_ns;
        c->other_ns[number] = best.other_ns;
    }
    sample_free(x);
    g_free(unclaimed);
}

/*
 * Small places are not compared. If a host's other visits can be compared, the limit explains no time of its small
 * places.
 */
static void settle_small_places(const visits *v, float *parts)
{
    GHashTable *hosts = g_hash_table_new(NULL, NULL); /* a set: hosts with visits that can be compared */
    for (guint i = 0; i < v->all->len; i++)
        if (!isnan(parts[i]))
            g_hash_table_add(hosts, (gpointer)site_at(v, visit_at(v, i)->site)->host);
    for (guint i = 0; i < v->all->len; i++)
        if (isnan(parts[i]) && !place_is_examined(v, place_of_visit(v, visit_at(v, i))) &&
            g_hash_table_contains(hosts, site_at(v, visit_at(v, i)->site)->host))
            parts[i] = 0;
    g_hash_table_destroy(hosts);
}

limit_contrast *limit_contrast_new(const visits *v, const limit_gauge *gauges)
{
    limit_contrast *c = g_new0(limit_contrast, 1);
    c->parts = g_new(float, v->all->len + 1);
    c->claims_ns = g_new(double, v->places->len + 1);
    c->slow_ns = g_new0(double, v->places->len + 1);
    c->other_ns = g_new0(double, v->places->len + 1);
    for (guint i = 0; i < v->all->len; i++)
        c->parts[i] = (float)NAN;
    for (guint i = 0; i < v->places->len; i++)
        c->claims_ns[i] = NAN;
    gauge of[LIMIT_GAUGES_MAX];
    size_t count = 0;
    for (; count < LIMIT_GAUGES_MAX && gauges[count].event != NULL; count++)
        of[count] = gauge_new(v, &gauges[count]);
    for (guint i = 0; i < v->places->len; i++)
        if (place_is_examined(v, i))
            compare_place(v, i, of, count, c);
    for (size_t i = 0; i < count; i++)
        g_hash_table_destroy(of[i].series);
    settle_small_places(v, c->parts);
    return c;
}

void limit_contrast_free(limit_contrast *c)
{
    g_free(c->parts);
    g_free(c->claims_ns);
    g_free(c->slow_ns);
    g_free(c->other_ns);
    g_free(c);
}

void limit_contrasts_compete(const visits *v, limit_contrast *const *all, size_t count)
{
    for (guint i = 0; i < v->places->len; i++) {
        size_t best = 0;
        for (size_t k = 1; k < count; k++)
            if (!(all[best]->claims_ns[i] >= all[k]->claims_ns[i]))
                best = isnan(all[k]->claims_ns[i]) ? best : k;
        if (!(all[best]->claims_ns[i] > 0))
            continue;
        const place *p = place_at(v, i);
        for (size_t k = 0; k < count; k++) {
            if (k == best)
                continue;
            all[k]->claims_ns[i] = 0;
            for (uint32_t n = p->first; n < p->first + p->count; n++)
                all[k]->parts[v->by_place[n]] = 0;
        }
    }
}
