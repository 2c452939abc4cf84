#include "config.h"

#include <math.h>

#include "diag/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS_MANY = 8, /* calls of one caller, one after the other */
    ROUNDS_MAX = 6,
    TIME_BINS = 48,
    SHIFTS = 16,
    EXAMINED_SHARE = 50 /* 1/share of time below which none is examined */
};

/* Kinds of requests and hosts differ a little in any system: slow visits take at least so many times as long. */
#define EFFECT_MIN 1.5

/* Many sensors are tried, and all change slowly: one explains at least this part of the variation. */
#define RESOURCE_MIN 0.12

/* What is left after a finding is more often its consequence: a second one there explains more of it. */
#define AGAIN_MIN 0.3

/* Something that may explain the times of a place. */
typedef struct candidate {
    const char *cause;
    uint32_t place;
    const char *host;
    const column *column;
    double value;
    const sensor_series *sensor;
    mechanism m; /* without waits */
    double z, explained, score, claim_ns, scale;
    double slow_ns, other_ns;
    uint32_t slow_count, count;
    int64_t from_ns, to_ns;
    float *cut; /* by visit */
} candidate;

typedef struct search {
    findings *f;
    const visits *v;
    GArray *pauses;
    candidate *best;           /* by place; cause NULL: none */
    bool *dirty, *has_finding; /* by place */
} search;

/* ---- texts ---- */

char *text_ns(double ns)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t u = 0;
    while (u < G_N_ELEMENTS(units) - 1 && fabs(ns) < units[u].ns)
        u++;
    double value = ns / units[u].ns;
    return g_strdup_printf("%.*f %s", fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0, value, units[u].unit);
}

char *text_share(double share)
{
    return g_strdup_printf("%.*f %%", share < 0.0095 ? 1 : 0, 100 * share);
}

char *text_place(const visits *v, uint32_t number, const char *host)
{
    const place *p = place_at(v, number);
    const char *on = host != NULL ? " on " : "", *name = host != NULL ? host : "",
               *of = *p->program != '\0' ? " of " : "", *from_of = *p->from_program != '\0' ? " of " : "";
    if (p->kind == PLACE_SPAN && *p->span == '\0')
        return g_strdup_printf("%s%s%s", p->program, on, name);
    if (p->kind == PLACE_SPAN)
        return g_strdup_printf("%s%s%s%s%s", p->span, of, p->program, on, name);
    if (p->kind == PLACE_UNKNOWN)
        return g_strdup_printf("the time before %s%s%s%s%s", p->to, of, p->program, on, name);
    if (p->program == p->from_program)
        return g_strdup_printf("%s -> %s%s%s%s%s", p->from, p->to, of, p->program, on, name);
    return g_strdup_printf("%s%s%s -> %s%s%s%s%s", p->from, from_of, p->from_program, p->to, of, p->program, on, name);
}

void finding_evidence(finding *f, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_ptr_array_add(f->evidence, g_strdup_vprintf(format, values));
    va_end(values);
}

finding *findings_add(findings *f, const char *cause)
{
    finding *x = g_new0(finding, 1);
    x->cause = cause;
    x->place = VISIT_NONE;
    x->evidence = g_ptr_array_new_with_free_func(g_free);
    x->others = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    x->from_ns = f->visits->from_ns;
    x->to_ns = f->visits->to_ns;
    g_ptr_array_add(f->list, x);
    return x;
}

static void finding_free(gpointer data)
{
    finding *x = data;
    g_free(x->answer);
    g_free(x->cut);
    g_ptr_array_free(x->evidence, TRUE);
    g_array_free(x->others, TRUE);
    g_free(x);
}

/* ---- candidates ---- */

static void candidate_clear(candidate *c)
{
    g_free(c->cut);
    memset(c, 0, sizeof *c);
}

static bool place_has_host(const visits *v, const place *p, const char *host, bool at_begin)
{
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        if ((at_begin ? at->from_host : at->host) == host)
            return true;
    }
    return false;
}

/*
 * Whether a wrong clock may be what makes the messages to or from a host long. Then messages in the other direction
 * seem to arrive before they are sent, and are missing there, and not at its peers.
 */
static bool may_be_clock(const visits *v, const candidate *c)
{
    const place *p = place_at(v, c->place);
    bool ends = c->host != NULL && place_has_host(v, p, c->host, false),
         begins = c->host != NULL && place_has_host(v, p, c->host, true);
    double there[2] = {0}, back[2] = {0}; /* messages of peers, and of the host */
    if (p->kind != PLACE_EDGE || begins == ends)
        return false;
    for (guint i = 0; i < v->sites->len; i++) {
        const site *at = site_at(v, i);
        const place *of = place_at(v, at->place);
        if (of == p)
            there[(ends ? at->host : at->from_host) == c->host] += at->count;
        else if (of->kind == PLACE_EDGE && at->host != at->from_host && place_has_host(v, p, at->host, true) &&
                 place_has_host(v, p, at->from_host, false))
            back[(ends ? at->from_host : at->host) == c->host] += at->count;
    }
    if (back[0] <= 20 || there[0] <= 0 || there[1] <= 0)
        return p->inferred;
    return back[1] / there[1] < 0.5 * back[0] / there[0];
}

/* Keeps a candidate if it is significant and explains more than the best one so far; frees it otherwise. */
static void offer(search *s, candidate *c)
{
    candidate *best = &s->best[c->place];
    double p = normal_tail(c->z), share = c->claim_ns / s->v->total_ns;
    bool counts = c->explained >= (s->has_finding[c->place] ? AGAIN_MIN : 0.04) && share >= 0.02 &&
                  (c->slow_ns <= 0 || c->slow_ns > EFFECT_MIN * c->other_ns);
    if (counts && c->cause != NULL) {
        char *where = text_place(s->v, c->place, c->host), *part = text_share(share),
             *removed = text_share(c->explained);
        g_ptr_array_add(s->f->tried,
                        g_strdup_printf("%s%s%s: %s: %s of the time, explains %s of the variation, p = %.2g", c->cause,
                                        c->column != NULL ? " " : "", c->column != NULL ? c->column->name : "", where,
                                        part, removed, p));
        g_free(where);
        g_free(part);
        g_free(removed);
    }
    if (counts && c->z >= 4.5 && strcmp(c->cause, "pause") != 0 && may_be_clock(s->v, c)) {
        g_free(s->f->cannot_tell);
        s->f->cannot_tell =
            g_strdup("the clock of a host may be wrong, which looks like slow messages; log ClockOffset records");
        counts = false;
    }
    if (!counts || c->z < 4.5 || (best->cause != NULL && best->score >= c->score)) {
        candidate_clear(c);
        return;
    }
    candidate_clear(best);
    *best = *c;
}

/* Spreads the excess of a sample's visits over the log's. */
static float *spread_excess(const sample *s, const float *excess)
{
    float *cut = g_new0(float, s->visits->all->len + 1);
    for (uint32_t i = 0; i < s->count; i++)
        cut[s->index[i]] = excess[i];
    return cut;
}

static candidate candidate_of(const sample *s, const char *cause, explanation *e, double preference)
{
    candidate c = {.cause = cause,
                   .place = s->place,
                   .z = e->z,
                   .explained = e->explained,
                   .score = e->explained * preference,
                   .claim_ns = e->claim_ns,
                   .scale = s->scale,
                   .slow_ns = e->slow_ns,
                   .other_ns = e->other_ns,
                   .slow_count = e->slow_count,
                   .count = s->count,
                   .from_ns = s->visits->from_ns,
                   .to_ns = s->visits->to_ns,
                   .cut = spread_excess(s, e->excess)};
    g_free(e->excess);
    return c;
}

/* ---- fields and hosts ---- */

/* The value of a column for a visit: of its own records, or of its request's. */
static float value_of(const column *c, const visits *v, uint32_t index)
{
    float own = column_get(c->of_visits, index);
    return isnan(own) ? column_get(c->of_requests, visit_at(v, index)->request) : own;
}

/* Gives each of the most frequent values a bin, and the others one together. Returns the number of bins. */
static int bins_of_texts(const column *c, const float *values, uint32_t count, uint8_t *bins, float of_bin[BINS_MAX])
{
    enum { NAMED = 24 };
    uint32_t counts[COLUMN_TEXTS_MAX] = {0};
    int bin_of[COLUMN_TEXTS_MAX] = {0}, named = 0;
    for (uint32_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            counts[(int)values[i]]++;
    for (guint t = 0; t < c->texts->len; t++) {
        guint larger = 0;
        for (guint o = 0; o < c->texts->len; o++)
            larger += counts[o] > counts[t] || (o < t && counts[o] == counts[t]);
        bin_of[t] = larger < NAMED && counts[t] > 0 ? named++ : NAMED;
        if (bin_of[t] < NAMED)
            of_bin[bin_of[t]] = (float)t;
    }
    of_bin[NAMED] = NAN;
    for (uint32_t i = 0; i < count; i++)
        bins[i] = isfinite(values[i]) ? (uint8_t)bin_of[(int)values[i]] : BIN_NONE;
    return NAMED + 1;
}

/* Whether a number only counts on with time, as a sequence number does. */
static bool is_clock(const float *values, uint32_t count)
{
    uint32_t rises = 0, falls = 0;
    for (uint32_t i = 16; i < count; i += 16) {
        rises += values[i] > values[i - 16];
        falls += values[i] < values[i - 16];
    }
    return rises + falls > 10 && (rises > 50 * falls || falls > 50 * rises);
}

/* A column of few different numbers is like one of texts. */
static int bins_of_numbers(const float *values, uint32_t count, uint8_t *bins, float of_bin[BINS_MAX], bool *ordered)
{
    enum { DIFFERENT = 12 };
    int used = 0;
    *ordered = false;
    for (uint32_t i = 0; i < count; i++) {
        int b = 0;
        bins[i] = BIN_NONE;
        if (!isfinite(values[i]))
            continue;
        while (b < used && of_bin[b] != values[i])
            b++;
        if (b == used && used == DIFFERENT) {
            *ordered = true;
            return sample_quantize(values, count, bins);
        }
        of_bin[b] = values[i];
        used = MAX(used, b + 1);
        bins[i] = (uint8_t)b;
    }
    return used;
}

static const char *host_of_value(const column *c, float value)
{
    return isnan(value) ? NULL : g_intern_string(g_ptr_array_index(c->texts, (guint)value));
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

static void try_column(search *s, const sample *x, const column *c)
{
    float *values = g_new(float, x->count + 1), of_bin[BINS_MAX];
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    uint32_t known = 0;
    bool ordered = false;
    for (uint32_t i = 0; i < x->count; i++) {
        values[i] = value_of(c, s->v, x->index[i]);
        known += isfinite(values[i]);
    }
    int count = known * 2 < x->count || (!c->has_text && is_clock(values, x->count)) ? 0
                : c->has_text ? bins_of_texts(c, values, x->count, bins, of_bin)
                              : bins_of_numbers(values, x->count, bins, of_bin, &ordered);
    if (count > 1) {
        s->f->tests++;
        bool peers = c->name[0] == '@';
        explanation e = sample_explain(x, bins, count, ordered);
        uint64_t slow = e.slow;
        candidate found = candidate_of(x, peers ? "peer" : ordered ? "size" : "field", &e, peers ? 1.01 : 1);
        found.column = c;
        found.value = slow != 0 && !ordered ? (double)of_bin[__builtin_ctzll(slow)] : NAN;
        if (peers && count_bits(slow) == 1)
            found.host = host_of_value(c, (float)found.value);
        if (!ordered && (slow == 0 || count_bits(slow) > (peers ? 1 : 6)))
            candidate_clear(&found);
        else
            offer(s, &found);
    }
    g_free(bins);
    g_free(values);
}

/* The hosts of the place itself: the same span elsewhere. Of an edge, the hosts at its begin or at its end. */
static void try_peers(search *s, const sample *x, bool at_begin)
{
    const char *hosts[BINS_MAX];
    int count = 0;
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        const site *at = site_at(s->v, visit_at(s->v, x->index[i])->site);
        const char *host = at_begin ? at->from_host : at->host;
        int b = 0;
        while (b < count && hosts[b] != host)
            b++;
        if (b == count && count < BINS_MAX)
            hosts[count++] = host;
        bins[i] = b < BINS_MAX ? (uint8_t)b : BIN_NONE;
    }
    if (count > 1) {
        s->f->tests++;
        explanation e = sample_explain(x, bins, count, false);
        uint64_t slow = e.slow;
        candidate found = candidate_of(x, "peer", &e, 1.01);
        if (count_bits(slow) == 1)
            found.host = hosts[__builtin_ctzll(slow)];
        if (found.host == NULL)
            candidate_clear(&found);
        else
            offer(s, &found);
    }
    g_free(bins);
}

/* ---- time ---- */

/* Finds the range of bins with the largest excess of medians over the others' median, by one half. */
static bool find_range(const sample *x, const uint8_t *bins, int half, int *from, int *to)
{
    double *values = g_new(double, x->count + 1), medians[TIME_BINS], sorted[TIME_BINS];
    for (int b = 0; b < TIME_BINS; b++) {
        size_t n = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if (bins[i] == b && sample_half(x, i) == half)
                values[n++] = x->y[i];
        medians[b] = median_of(values, n);
        sorted[b] = medians[b];
    }
    g_free(values);
    qsort(sorted, TIME_BINS, sizeof *sorted, compare_double);
    double best = 0;
    for (int a = 0; a < TIME_BINS; a++) {
        double sum = 0;
        for (int b = a; b < TIME_BINS; b++) {
            sum += medians[b];
            int n = b - a + 1, rest = TIME_BINS - n;
            if (n < 2 || rest < 4)
                continue;
            double total = 0;
            for (int k = 0; k < TIME_BINS; k++)
                total += medians[k];
            double difference = sum / n - (total - sum) / rest, between = difference * fabs(difference) * n * rest;
            if (between > best) {
                best = between;
                *from = a;
                *to = b;
            }
        }
    }
    return best > 0;
}

static void try_time(search *s, const sample *x)
{
    if (x->count < 4 * TIME_BINS)
        return;
    uint8_t *bins = g_new(uint8_t, x->count + 1), *inside = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        bins[i] = (uint8_t)((uint64_t)i * TIME_BINS / x->count);
    int from[2], to[2];
    bool found = find_range(x, bins, 0, &from[0], &to[0]) && find_range(x, bins, 1, &from[1], &to[1]);
    if (found && abs(from[0] - from[1]) <= 3 && abs(to[0] - to[1]) <= 3) { /* both halves agree */
        int begin = MIN(from[0], from[1]), end = MAX(to[0], to[1]);
        for (uint32_t i = 0; i < x->count; i++)
            inside[i] = bins[i] >= begin && bins[i] <= end;
        s->f->tests++;
        explanation e = sample_explain(x, inside, 2, false);
        bool rises = (e.slow & 2) != 0;
        const char *cause = begin == 0 && end < TIME_BINS / 2 ? "cold" : "changed";
        rises = rises && (begin > 0 || end < TIME_BINS * 4 / 5);
        candidate c = candidate_of(x, cause, &e, 0.95);
        c.from_ns = visit_at(s->v, x->index[(uint64_t)begin * x->count / TIME_BINS])->from_ns;
        c.to_ns = visit_at(s->v, x->index[MIN((uint64_t)(end + 1) * x->count / TIME_BINS, x->count - 1)])->to_ns;
        if (rises)
            offer(s, &c);
        else
            candidate_clear(&c);
    }
    g_free(bins);
    g_free(inside);
}

/* ---- sensors ---- */

static bool same_series(const sensor_series *a, const sensor_series *b)
{
    return strcmp(a->event, b->event) == 0 && strcmp(a->field, b->field) == 0 && strcmp(a->instance, b->instance) == 0;
}

/* The values of a series on each visit's own host, with the visits' times moved by a part of the log's length. */
static uint32_t sensor_values(const visits *v, const sample *x, const GPtrArray *all, guint first, double shift,
                              float *values)
{
    const sensor_series *of = g_ptr_array_index(all, first);
    GHashTable *by_host = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = first; i < all->len; i++) {
        const sensor_series *other = g_ptr_array_index(all, i);
        if (same_series(of, other))
            g_hash_table_insert(by_host, other->host, (gpointer)other);
    }
    int64_t length = v->to_ns - v->from_ns;
    uint32_t known = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const visit *y = visit_at(v, x->index[i]);
        const sensor_series *own = g_hash_table_lookup(by_host, site_at(v, y->site)->host);
        int64_t at = (y->from_ns + y->to_ns) / 2 - v->from_ns + (int64_t)(shift * (double)length);
        values[i] = own != NULL ? (float)series_at(own, v->from_ns + (length > 0 ? at % length : 0)) : NAN;
        known += isfinite(values[i]);
    }
    g_hash_table_destroy(by_host);
    return known;
}

static bool is_first_of_kind(const GPtrArray *all, guint i)
{
    for (guint k = 0; k < i; k++)
        if (same_series(g_ptr_array_index(all, k), g_ptr_array_index(all, i)))
            return false;
    return true;
}

/*
 * Tries a sensor. Raises *chance to what sensors explain of the times by chance: both change slowly, and what they have
 * in common by chance shows when one of them is moved in time.
 */
static candidate try_sensor(search *s, const sample *x, const GPtrArray *all, guint number, double *chance)
{
    float *values = g_new(float, x->count + 1);
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    candidate c = {.place = x->place};
    uint32_t known = sensor_values(s->v, x, all, number, 0, values);
    int count = known * 3 > x->count ? sample_quantize(values, x->count, bins) : 0;
    if (count > 1) {
        s->f->tests++;
        explanation e = sample_explain(x, bins, count, true);
        c = candidate_of(x, "resource", &e, 1);
        c.sensor = g_ptr_array_index(all, number);
        for (int k = 1; k <= SHIFTS && c.z > 4.5 && c.explained > RESOURCE_MIN; k++) {
            sensor_values(s->v, x, all, number, k / (SHIFTS + 1.0), values);
            int shifted = sample_quantize(values, x->count, bins);
            explanation other = sample_explain(x, bins, shifted, true);
            g_free(other.excess);
            *chance = fmax(*chance, other.explained);
        }
    }
    g_free(values);
    g_free(bins);
    return c;
}

/* Offers the sensor that explains most, if it explains more than any does by chance. */
static void try_sensors(search *s, const sample *x)
{
    const GPtrArray *all = series_all(s->v->series);
    candidate best = {.place = x->place};
    double chance = RESOURCE_MIN;
    for (guint i = 0; i < all->len; i++) {
        if (!is_first_of_kind(all, i))
            continue;
        candidate c = try_sensor(s, x, all, i, &chance);
        if (c.cause != NULL && c.z > 4.5 && c.explained > best.explained) {
            candidate_clear(&best);
            best = c;
        } else {
            candidate_clear(&c);
        }
    }
    if (best.cause != NULL && best.explained > 1.3 * chance)
        offer(s, &best);
    else
        candidate_clear(&best);
}

/* ---- calls ---- */

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* What made a visit: its parent, or else its request. */
static uint32_t caller_of(const visits *v, uint32_t index)
{
    const visit *x = visit_at(v, index);
    return x->parent != VISIT_NONE ? x->parent : v->all->len + x->request;
}

/* Requests that make many more visits to the place than others, or many one after the other. */
static void try_calls(search *s, uint32_t number)
{
    const visits *v = s->v;
    const place *p = place_at(v, number);
    if (p->kind != PLACE_SPAN || p->has_children)
        return;
    float *counts = g_new0(float, v->all->len + v->requests->len + 1), *sorted = g_new(float, p->count + 1);
    for (uint32_t i = 0; i < p->count; i++)
        counts[caller_of(v, v->by_place[p->first + i])]++;
    uint32_t n = 0;
    for (guint i = 0; i < v->all->len + v->requests->len; i++)
        if (counts[i] > 0)
            sorted[n++] = counts[i];
    if (n < 20) {
        g_free(counts);
        g_free(sorted);
        return;
    }
    qsort(sorted, n, sizeof *sorted, by_float);
    double usual = (double)sorted[n * 2 / 5], most = (double)sorted[n - 1 - n / 50];
    bool all = usual >= CALLS_MANY;
    candidate c = {.cause = "calls", .place = number, .scale = 1, .z = 20, .from_ns = v->from_ns, .to_ns = v->to_ns};
    uint32_t extra = 0, failed = 0;
    c.cut = g_new0(float, v->all->len + 1);
    for (uint32_t i = 0; i < p->count && (all || most > 1.5 * usual); i++) {
        uint32_t index = v->by_place[p->first + i];
        const visit *x = visit_at(v, index);
        double here = (double)counts[caller_of(v, index)], keep = all ? 1 / here : here > usual ? usual / here : 1;
        double own = (double)x->own_ns - (double)s->f->claimed[index];
        if (here <= usual && !all)
            continue;
        extra++;
        failed += x->failed;
        c.m.peak += here;
        c.cut[index] = (float)MAX(0, own * (1 - keep));
        c.claim_ns += (double)c.cut[index] * path_weight(x);
    }
    c.slow_count = extra;
    c.count = p->count;
    c.m.length_ns = usual;
    c.m.peak /= MAX(extra, 1); /* mean number of calls, weighted by calls */
    c.explained = c.score = 0.9;
    if (failed * 4 > extra && failed > 5) {
        /* Calls are repeated because calls fail: those that fail are the excess. */
        c.cause = "timeout";
        c.claim_ns = 0;
        c.m.count = failed;
        double sum = 0;
        for (uint32_t i = 0; i < p->count; i++) {
            uint32_t index = v->by_place[p->first + i];
            const visit *x = visit_at(v, index);
            c.cut[index] = x->failed ? MAX(0, x->own_ns - s->f->claimed[index]) : 0;
            c.claim_ns += (double)c.cut[index] * path_weight(x);
            sum += (double)c.cut[index];
        }
        c.m.period_ns = sum / failed;
        c.m.share = (double)failed / p->count;
    }
    s->f->tests++;
    offer(s, &c);
    g_free(counts);
    g_free(sorted);
}

/* ---- mechanisms ---- */

static void offer_mechanism(search *s, const sample *x, const char *cause, mechanism *m, double preference)
{
    if (m->waits == NULL)
        return;
    candidate c = {.cause = cause,
                   .place = x->place,
                   .host = m->host,
                   .m = *m,
                   .z = m->z,
                   .explained = m->explained,
                   .score = m->explained * preference,
                   .claim_ns = m->claim_ns,
                   .scale = 1,
                   .count = x->count,
                   .from_ns = s->v->from_ns,
                   .to_ns = s->v->to_ns,
                   .cut = m->waits};
    m->waits = NULL;
    c.m.waits = NULL;
    s->f->tests++;
    offer(s, &c);
}

static double explained_by(const sample *x, const float *waits)
{
    float *of = g_new(float, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        of[i] = waits[x->index[i]];
    double explained = sample_explained_by_waits(x, of);
    g_free(of);
    return explained;
}

/*
 * Whether an edge says little of its own program: an inferred message, whose length depends on clocks, or a time in
 * which spans of other hosts ran that are not known to belong to it.
 */
static bool is_elsewhere(const visits *v, const sample *x)
{
    enum { LOOKED_AT = 200 };
    const place *p = place_at(v, x->place);
    const site *first = site_at(v, g_array_index(p->sites, uint32_t, 0));
    if (p->kind != PLACE_EDGE)
        return false;
    if (first->host != first->from_host)
        return p->inferred;
    uint32_t elsewhere = 0, looked = MIN(x->count, LOOKED_AT);
    for (uint32_t i = 0; i < looked; i++) {
        const visit *edge = visit_at(v, x->index[(uint64_t)i * x->count / looked]);
        const request *q = request_at(v, edge->request);
        for (uint32_t n = 0; n < q->count; n++) {
            const visit *y = visit_at(v, q->first + n);
            if (y->from_ns >= edge->from_ns && y->to_ns <= edge->to_ns &&
                site_at(v, y->site)->host != site_at(v, edge->site)->host) {
                elsewhere++;
                break;
            }
        }
    }
    return elsewhere * 3 > looked;
}

static void try_mechanisms(search *s, const sample *x)
{
    bool elsewhere = is_elsewhere(s->v, x);
    for (guint i = 0; i < s->pauses->len; i++) {
        const pause_result *pause = &g_array_index(s->pauses, pause_result, i);
        mechanism copy = pause->m;
        copy.explained = explained_by(x, pause->m.waits);
        if (copy.explained < 0.04)
            continue;
        copy.claim_ns = 0;
        copy.waits = g_new0(float, s->v->all->len + 1);
        for (uint32_t k = 0; k < x->count; k++) {
            copy.waits[x->index[k]] = MIN(pause->m.waits[x->index[k]], (float)x->y[k]);
            copy.claim_ns += (double)copy.waits[x->index[k]] * x->weight[k] * x->scale;
        }
        copy.z = 10;
        offer_mechanism(s, x, "pause", &copy, 1.1);
    }
    if (elsewhere)
        return;
    mechanism m = find_queue(s->v, x->place);
    if (m.waits != NULL) {
        m.explained = explained_by(x, m.waits);
        offer_mechanism(s, x,
                        m.host != NULL && m.share >= 1.3 && place_at(s->v, x->place)->sites->len > 1 ? "balance"
                        : m.servers == 1                                                             ? "lock"
                                                                                                     : "pool",
                        &m, 1);
    }
    m = find_timer(x);
    m.z = MAX(m.z, m.constant ? 10 : 0);
    offer_mechanism(s, x, "timer", &m, 1);
    m = find_batch(x);
    offer_mechanism(s, x, "batch", &m, 0.95);
    if (s->best[x->place].cause == NULL || s->best[x->place].explained < 0.5) {
        m = find_timeout(x);
        offer_mechanism(s, x, "timeout", &m, 1);
    }
}

static void examine(search *s, uint32_t number)
{
    const place *p = place_at(s->v, number);
    candidate_clear(&s->best[number]);
    s->dirty[number] = false;
    if (p->path_ns * EXAMINED_SHARE < s->v->total_ns || p->kind == PLACE_UNKNOWN || p->count < 20)
        return;
    sample *x = sample_new(s->v, number, s->f->claimed);
    try_peers(s, x, false);
    if (p->kind == PLACE_EDGE)
        try_peers(s, x, true);
    for (uint32_t i = 0; i < s->v->columns->count; i++)
        if (!s->v->columns->all[i].closed)
            try_column(s, x, &s->v->columns->all[i]);
    const site *first = site_at(s->v, visit_at(s->v, x->index[0])->site);
    if (!p->inferred || first->host == first->from_host) /* else it depends on clocks */
        try_time(s, x);
    try_sensors(s, x);
    try_calls(s, number);
    try_mechanisms(s, x);
    sample_free(x);
}

/* ---- findings ---- */

static bool is_same_cause(const finding *f, const candidate *c)
{
    if (strcmp(f->cause, c->cause) != 0)
        return false;
    if (f->host != c->host)
        return false;
    if (c->column != NULL && f->column != NULL && c->column->name[0] != '@')
        return f->column == c->column && (isnan(f->value) || f->value == c->value);
    return strcmp(c->cause, "peer") == 0
               ? c->host != NULL
               : strcmp(c->cause, "pause") == 0 || strcmp(c->cause, "resource") == 0 || strcmp(c->cause, "cold") == 0 ||
                     strcmp(c->cause, "changed") == 0 || f->place == c->place;
}

/* Whether the part of the variation that a cause explains was measured; other causes have their own evidence. */
static bool is_measured(const candidate *c)
{
    static const char *const others[] = {"timer", "timeout", "calls", "batch"};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i], c->cause) == 0)
            return false;
    return true;
}

static void describe(const search *s, finding *f, const candidate *c)
{
    const visits *v = s->v;
    char *where = text_place(v, c->place, c->host), *part = text_share(f->share), *value = NULL;
    char *slow = text_ns(c->slow_ns), *other = text_ns(c->other_ns), *period = text_ns(c->m.period_ns),
         *length = text_ns(c->m.length_ns);
    const place *p = place_at(v, c->place);
    if (c->column != NULL && !isnan(c->value))
        value = column_text(c->column, (float)c->value);
    if (strcmp(c->cause, "peer") == 0) {
        bool link = p->kind == PLACE_EDGE;
        f->answer = g_strdup_printf(
            link ? "%s of the requests' time: %s is behind a slower link or receiver than its peers (%s)"
                 : "%s of the requests' time: %s is slower than its peers (%s)",
            part, c->host != NULL ? c->host : "some hosts", where);
        f->advice = link ? "compare the paths and their load: nlsensor tcp on both ends, the rate and loss of the link"
                         : "compare the hosts: their load (nlsensor), hardware, versions and configuration";
        finding_evidence(f, "%s a visit, against %s for the others", slow, other);
        finding_evidence(f, "%u of %u visits", c->slow_count, c->count);
    } else if (strcmp(c->cause, "field") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s is slow for %s=%s", part, where, c->column->name,
                                    value != NULL ? value : "?");
        f->advice = "look at what the program does differently for this value";
        finding_evidence(f, "%s a visit, against %s for the other values", slow, other);
        finding_evidence(f, "%u of %u visits", c->slow_count, c->count);
    } else if (strcmp(c->cause, "size") == 0) {
        f->answer =
            g_strdup_printf("%s of the requests' time: %s takes longer the larger %s is", part, where, c->column->name);
        f->advice = "reduce the amount of work, or make its cost grow less with the amount";
        finding_evidence(f, "%s a visit on average, against %s for an eighth of them", slow, other);
    } else if (strcmp(c->cause, "calls") == 0) {
        bool all = c->slow_count == c->count;
        f->answer = all ? g_strdup_printf("%s of the requests' time: each request calls %s %.0f times", part, where,
                                          c->m.length_ns)
                        : g_strdup_printf("%s of the requests' time: some requests call %s %.0f times, others %.0f",
                                          part, where, c->m.peak, c->m.length_ns);
        f->advice = "make one call for all of it, or make the calls at the same time";
        if (!all)
            finding_evidence(f, "the requests with more calls than usual make %u of the %u calls", c->slow_count,
                             c->count);
    } else if (strcmp(c->cause, "timeout") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s waits for a time-out of %s and tries again", part,
                                    where, period);
        f->advice = "find out why the first attempt has no answer; a shorter time-out only hides it";
        finding_evidence(f, "%.1f %% of the visits take %s longer than the others, and almost none are between",
                         100 * c->m.share, period);
    } else if (strcmp(c->cause, "timer") == 0) {
        f->answer =
            g_strdup_printf(c->m.constant ? "%s of the requests' time: %s always takes %s: a timer or fixed work"
                                          : "%s of the requests' time: %s waits for a timer of %s",
                            part, where, period);
        f->advice = "wait for the event itself instead of looking for it from time to time";
        if (c->m.constant)
            finding_evidence(f, "half of %u visits differ by at most 0.5 %%", c->count);
        else
            finding_evidence(f, "the visits end at multiples of %s; their regularity is %.2f, 1 at most", period,
                             c->explained);
    } else if (strcmp(c->cause, "batch") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s waits until a batch is full", part, where);
        f->advice = "limit the time that a batch waits, or make batches smaller";
        finding_evidence(f, "%.0f %% of the visits end together with others, %.1f at a time", 100 * c->m.share,
                         c->m.length_ns);
    } else if (strcmp(c->cause, "pause") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s on %s stops %s%s", part, p->program, c->host,
                                    c->m.period_ns > 0 ? "every " : "now and then", c->m.period_ns > 0 ? period : "");
        f->advice =
            "look for garbage collection, a full log or disk, a CPU quota, or suspended machines at these times";
        finding_evidence(f, "%u times nothing began or ended, for %s on average, while requests were under way",
                         c->m.count, length);
    } else if (strcmp(c->cause, "resource") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s is slow when %s %s changes", part, where,
                                    c->sensor->event, c->sensor->field);
        f->advice = "find out what uses this resource at these times";
        finding_evidence(f, "%s a visit on average, against %s in the eighth at the other end", slow, other);
    } else if (strcmp(c->cause, "cold") == 0 || strcmp(c->cause, "changed") == 0) {
        char *when = text_ns((double)(c->from_ns - v->from_ns)), *until = text_ns((double)(c->to_ns - v->from_ns));
        f->answer = c->cause[1] == 'o'
                        ? g_strdup_printf("%s of the requests' time: %s is slow for the first %s", part, where, until)
                        : g_strdup_printf("%s of the requests' time: %s is slower from %s to %s after the begin", part,
                                          where, when, until);
        f->advice = c->cause[1] == 'o' ? "warm caches and connections before taking requests"
                                       : "find out what changed at that time: load, data, deployments";
        finding_evidence(f, "%s a visit, against %s at other times", slow, other);
        g_free(when);
        g_free(until);
    } else {
        f->answer = c->m.servers == 1
                        ? g_strdup_printf(
                              "%s of the requests' time: %s lets one request through at a time (a lock, one thread)",
                              part, where)
                        : g_strdup_printf("%s of the requests' time: %s lets %d requests through at a time (a pool of "
                                          "%d); peak demand was %.0f",
                                          part, where, c->m.servers, c->m.servers, c->m.peak);
        if (strcmp(c->cause, "balance") == 0) {
            g_free(f->answer);
            f->answer = g_strdup_printf(
                "%s of the requests' time: requests queue at %s, which gets %.1f times its part of them (%s)", part,
                c->host, c->m.share, where);
        }
        f->advice = strcmp(c->cause, "balance") == 0 ? "distribute the requests evenly"
                                                     : "hold it for a shorter time, divide it, or allow more at a time";
        finding_evidence(f, "up to %.0f are there at a time", c->m.peak);
    }
    if (is_measured(c)) {
        char *removed = text_share(c->explained);
        finding_evidence(f, "this explains %s of the variation there", removed);
        g_free(removed);
    }
    g_free(where);
    g_free(part);
    g_free(value);
    g_free(slow);
    g_free(other);
    g_free(period);
    g_free(length);
}

static void claim(search *s, finding *f, candidate *c)
{
    if (f->cut == NULL)
        f->cut = g_new0(float, s->v->all->len + 1);
    for (guint i = 0; i < s->v->all->len; i++) {
        f->cut[i] += c->cut[i];
        s->f->claimed[i] += c->cut[i];
    }
    f->gain += replay_gain(s->v, c->cut, c->scale);
    f->share += c->claim_ns / s->v->total_ns;
}

/* The host of all of a place's sites, or NULL. */
static const char *only_host(const visits *v, const place *p)
{
    const char *host = site_at(v, g_array_index(p->sites, uint32_t, 0))->host;
    for (guint n = 1; n < p->sites->len; n++)
        if (site_at(v, g_array_index(p->sites, uint32_t, n))->host != host)
            return NULL;
    return host;
}

/* Takes the candidate with the largest claim. Returns false if there is none. */
static bool take_best(search *s)
{
    candidate *best = NULL;
    for (guint i = 0; i < s->v->places->len; i++)
        if (s->best[i].cause != NULL && (best == NULL || s->best[i].claim_ns > best->claim_ns))
            best = &s->best[i];
    if (best == NULL || best->claim_ns < 0.03 * s->v->total_ns)
        return false;
    finding *f = findings_add(s->f, best->cause);
    f->place = best->place;
    f->host = best->host;
    f->column = best->column;
    f->value = best->value;
    f->explained = best->explained;
    f->z = best->z;
    f->from_ns = best->from_ns;
    f->to_ns = best->to_ns;
    candidate first = *best;
    first.cut = NULL;
    uint32_t main = best->place;
    for (guint i = 0; i < s->v->places->len; i++) {
        candidate *c = &s->best[i];
        if (c->cause == NULL || (i != main && !is_same_cause(f, c)))
            continue;
        claim(s, f, c);
        if (i != main)
            g_array_append_val(f->others, i);
        s->dirty[i] = s->has_finding[i] = true;
        candidate_clear(c);
    }
    describe(s, f, &first);
    if (f->host == NULL)
        f->host = only_host(s->v, place_at(s->v, main));
    return true;
}

/* A small cause that sensors confirm is one. */
void findings_drop_small(findings *f)
{
    for (guint i = f->list->len; i-- > 0;) {
        const finding *x = g_ptr_array_index(f->list, i);
        if (x->share < FINDING_MIN && x->cut != NULL && !x->confirmed) {
            g_ptr_array_add(f->tried, g_strdup_printf("too small: %s", x->answer));
            for (guint n = 0; n < f->visits->all->len; n++)
                f->claimed[n] -= x->cut[n];
            g_ptr_array_remove_index(f->list, i);
        }
    }
}

/*
 * How sure a finding is: the share of such findings that were right on development runs (tests/diagnosis/score.py). The
 * weak ones of all causes are right less often.
 */
static double confidence(const finding *f)
{
    static const struct {
        const char *cause;
        double right;
    } measured[] = {{"peer", 0.88}, {"timeout", 0.85}, {"lock", 0.88}, {"pool", 0.8},    {"timer", 0.9},
                    {"pause", 0.9}, {"calls", 0.92},   {"field", 0.9}, {"changed", 0.88}};
    double right = 0.93;
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        if (strcmp(measured[i].cause, f->cause) == 0)
            right = measured[i].right;
    if (f->share < 0.13)
        right -= 0.2;
    if (f->explained < 0.4)
        right -= 0.15;
    return right;
}

static void search_places(findings *f)
{
    const visits *v = f->visits;
    search s = {f,
                v,
                find_pauses(v),
                g_new0(candidate, v->places->len + 1),
                g_new0(bool, v->places->len + 1),
                g_new0(bool, v->places->len + 1)};
    memset(s.dirty, true, v->places->len);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        for (guint i = 0; i < v->places->len; i++)
            if (s.dirty[i])
                examine(&s, i);
        if (!take_best(&s))
            break;
    }
    for (guint i = 0; i < v->places->len; i++)
        candidate_clear(&s.best[i]);
    for (guint i = 0; i < s.pauses->len; i++)
        g_free(g_array_index(s.pauses, pause_result, i).m.waits);
    g_array_free(s.pauses, TRUE);
    g_free(s.best);
    g_free(s.dirty);
    g_free(s.has_finding);
}

findings *findings_find(const visits *v)
{
    findings *f = g_new0(findings, 1);
    f->visits = v;
    f->list = g_ptr_array_new_with_free_func(finding_free);
    f->tried = g_ptr_array_new_with_free_func(g_free);
    f->claimed = g_new0(float, v->all->len + 1);
    if (v->requests->len == 0 || v->total_ns <= 0)
        return f;
    search_places(f);
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        x->sure = confidence(x);
    }
    find_limits(f);
    find_failures(f);
    return f;
}

void findings_free(findings *f)
{
    g_ptr_array_free(f->list, TRUE);
    g_ptr_array_free(f->tried, TRUE);
    g_free(f->claimed);
    g_free(f->cannot_tell);
    g_free(f);
}
