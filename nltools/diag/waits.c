#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <stdlib.h>
#include <string.h>

/* Callers whose number of visits exceeds the usual number by this factor may be a separate group. */
#define USUAL_FACTOR 1.5

enum {
    CALLS_MANY = 8, /* minimum number of a caller's visits that counts as many */
    CALLERS_MIN = 20,
    GROUP_MIN = 5,
    FAILED_MIN = 4,
    TIMEOUT_VISITS_MIN = 60 /* minimum number of visits of an operation that show a timeout */
};

/* A candidate is never significant if its probability by chance is larger than CHANCE_MAX. */
#define CHANCE_MAX 0.01

/* A value distinguishes the callers with many visits if at least this part of these callers has the value, and at least
 * this part of the callers with the value has many visits. */
#define CALLER_VALUE_MIN 0.8

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the number of a visit's caller: the index of its parent or, without a parent, the number of visits plus the
 * index of its request. */
static uint32_t caller_of(const visits *v, uint32_t index)
{
    const visit *x = visit_at(v, index);
    return x->parent != VISIT_NONE ? x->parent : v->all->len + x->request;
}

/* The visits of a place, by caller. If a caller makes calls at the same time, it waits only for the longest call, so a
 * visit that begins during another visit of its caller does not count. */
typedef struct calls {
    float *counts;  /* number of visits of each caller that do not overlap */
    uint32_t *last; /* for each caller, the position of its last visit among the place's visits */
    uint32_t *next; /* for each visit, by its position: the position of the caller's next visit, or VISIT_NONE */
    float *sorted;  /* the counts in ascending order, without callers that have no visits */
    uint32_t count; /* number of callers with visits */
    uint32_t extra; /* index in `sorted` of the first caller with many visits */
    double usual;
} calls;

/* Returns whether a caller makes several visits to a place. */
static bool has_repeated_visits(const visits *v, const place *p)
{
    uint8_t *seen = g_new0(uint8_t, ((size_t)v->all->len + v->requests->len) / 8 + 1); /* a bit for each caller */
    bool found = false;
    for (uint32_t i = 0; i < p->count && !found; i++) {
        uint32_t caller = caller_of(v, v->by_place[p->first + i]);
        found = (seen[caller / 8] >> caller % 8) & 1;
        seen[caller / 8] |= (uint8_t)(1 << caller % 8);
    }
    g_free(seen);
    return found;
}

static calls count_calls(const visits *v, const place *p)
{
    size_t callers = v->all->len + v->requests->len;
    calls c = {.counts = g_new0(float, callers + 1),
               .last = g_new0(uint32_t, callers + 1),
               .next = g_new(uint32_t, p->count + 1),
               .sorted = g_new(float, p->count + 1)};
    int64_t *ends = g_new0(int64_t, callers + 1); /* the latest end of each caller's visits */
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i], caller = caller_of(v, index);
        const visit *x = visit_at(v, index);
        bool is_first = c.counts[caller] <= 0;
        c.counts[caller] += is_first || x->from_ns >= ends[caller];
        ends[caller] = is_first ? x->to_ns : MAX(ends[caller], x->to_ns);
        c.next[i] = VISIT_NONE;
        if (!is_first)
            c.next[c.last[caller]] = i;
        c.last[caller] = i;
    }
    g_free(ends);
    for (size_t i = 0; i < callers; i++)
        if (c.counts[i] > 0)
            c.sorted[c.count++] = c.counts[i];
    qsort(c.sorted, c.count, sizeof *c.sorted, by_float);
    c.usual = c.count > 0 ? (double)c.sorted[c.count * 2 / 5] : 0;
    if (c.usual >= CALLS_MANY)
        return c;
    while (c.extra < c.count && (double)c.sorted[c.extra] <= USUAL_FACTOR * c.usual)
        c.extra++;
    return c;
}

static void calls_free(calls *c)
{
    g_free(c->counts);
    g_free(c->last);
    g_free(c->next);
    g_free(c->sorted);
}

/* Returns the number of callers with visits that have fewer than `limit` visits. */
static uint32_t callers_below(const calls *c, double limit)
{
    uint32_t from = 0, to = c->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if ((double)c->sorted[middle] < limit)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/*
 * Performs the comparison of chance_of_group_from for ranges of `width` numbers of visits. Finds the range between
 * `low` and `high` with the most callers. Compares it with each range between `usual` and `low`, and with the whole
 * range from `usual` to `low`. Chooses the lower range whose small number of callers is least probable by chance.
 * Returns this probability, multiplied by the number of comparisons, and sets *limit to the end of the lower range.
 */
static double chance_of_width(const calls *c, double usual, double low, double high, double width, double *limit)
{
    double best = 1;
    uint32_t inside = 0, tried = 0, tried_inside = 0;
    for (double at = low; at + width <= high + 1; at++, tried_inside++)
        inside = MAX(inside, callers_below(c, at + width) - callers_below(c, at));
    for (double at = usual + 1; at + width <= low; at++, tried++) {
        uint32_t between = callers_below(c, at + width) - callers_below(c, at);
        double p = between < inside ? binomial_tail(between, between + inside, 0.5) : 1;
        if (p < best) {
            best = p;
            *limit = at + width;
        }
    }
    double gap = low - usual - 1, share = gap / (gap + width);
    uint32_t between = callers_below(c, low) - callers_below(c, usual + 1);
    double p = between < share * (between + inside) ? binomial_tail(between, between + inside, share) : 1;
    if (p < best) {
        best = p;
        *limit = low;
    }
    return best * (tried + 1) * tried_inside;
}

/*
 * Returns the probability that the callers from index `first` of `sorted` are a separate group by chance, and sets
 * *limit to the smallest number of visits in this group. If the callers form one group, for example with a loop that
 * ends with a constant probability, larger numbers of visits are rarer. The function compares two ranges of numbers:
 * one within the middle half of the group, and one below that half but above the usual number. With one group, the
 * lower range has at least as many callers per number as the range within the group. The function tries several widths
 * of these ranges, because the numbers in the group may differ, and multiplies the probability by the number of
 * comparisons.
 */
static double chance_of_group_from(const calls *c, uint32_t first, double *limit)
{
    uint32_t size = c->count - first;
    if (size < GROUP_MIN)
        return 1;
    double low = (double)c->sorted[first + size / 4], high = (double)c->sorted[c->count - 1 - size / 4],
           floor_count = c->usual >= CALLS_MANY ? 0 : c->usual, best = 1;
    int widths = 0;
    for (double width = fmin(high - low + 1, low - floor_count - 1); width >= 1; width = floor(width / 2), widths++) {
        double of_width = 1, p = chance_of_width(c, floor_count, low, high, width, &of_width);
        if (p < best) {
            best = p;
            *limit = of_width;
        }
    }
    return widths > 0 ? fmin(1, best * widths) : 1;
}

/*
 * Returns the probability that some callers make more visits than others by chance. Tries two groups: all callers with
 * more visits than usual, and the callers with many visits. With more than two groups, only the second test may be
 * significant. Sets *limit as chance_of_group_from does.
 */
static double chance_of_group(const calls *c, double *limit)
{
    double p = chance_of_group_from(c, c->extra, limit), many_limit = 1;
    uint32_t many = MAX(c->extra, callers_below(c, CALLS_MANY));
    if (many == c->extra)
        return p;
    double many_p = chance_of_group_from(c, many, &many_limit);
    if (many_p < p)
        *limit = many_limit;
    return fmin(1, 2 * fmin(p, many_p));
}

/* Returns the start of the caller's first visit that begins after the visit at position i has ended, or INT64_MAX. If
 * very many visits begin before this end, returns the end, because the search would take quadratic time. */
static int64_t start_of_next(const visits *v, const place *p, const calls *c, uint32_t i)
{
    enum { SCAN_MAX = 1000 };
    const int64_t end_ns = visit_at(v, v->by_place[p->first + i])->to_ns;
    uint32_t n = c->next[i], scanned = 0;
    while (n != VISIT_NONE && visit_at(v, v->by_place[p->first + n])->from_ns < end_ns) {
        if (++scanned > SCAN_MAX)
            return end_ns;
        n = c->next[n];
    }
    return n != VISIT_NONE ? visit_at(v, v->by_place[p->first + n])->from_ns : INT64_MAX;
}

/* Returns whether the caller visits the place again after the visit at position i has ended. Calls that overlap are no
 * repetitions. */
static bool is_followed(const visits *v, const place *p, const calls *c, uint32_t i)
{
    const uint32_t index = v->by_place[p->first + i];
    return visit_at(v, v->by_place[p->first + c->last[caller_of(v, index)]])->from_ns >= visit_at(v, index)->to_ns &&
           c->next[i] != VISIT_NONE;
}

/* Returns the probability that callers visit the place again after at least as many failed visits as in the log by
 * chance. Sets *failed to the number of failed visits. */
static double chance_of_retries(const visits *v, const place *p, const calls *c, uint32_t *failed)
{
    double both = 0, followed = 0;
    *failed = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        bool again = is_followed(v, p, c, i);
        followed += again;
        *failed += visit_at(v, index)->failed;
        both += again && visit_at(v, index)->failed;
    }
    return hypergeometric_tail(p->count, followed, *failed, both);
}

/* Claims `more` nanoseconds of a visit's time, but at most the time that no finding has claimed. */
static void claim_time(const findings *f, candidate *c, uint32_t index, double more)
{
    const visit *x = visit_at(f->visits, index);
    more = CLAMP((double)x->own_ns - (double)f->claimed[index] - (double)c->cut[index], 0, more);
    c->cut[index] += (float)more;
    c->claim_ns += more * path_weight(x);
}

/*
 * Adds the own times of the place's visits, and of all visits in them, to the candidate's cut. Also adds the edges
 * beside all these visits. `parts` contains the part to cut for each visit of the place, 0 to 1. An edge is beside the
 * span that it leads to or follows. If `with_spans` is false, does not cut the spans that the visits of the place
 * contain.
 */
static void cut_tree(const findings *f, const float *parts, bool with_spans, candidate *c)
{
    enum { DEPTH_MAX = 64 };
    const visits *v = f->visits;
    c->is_tree = true;
    for (uint32_t i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        uint32_t at = x->span != VISIT_NONE ? x->span : i;
        for (int depth = 0; depth < DEPTH_MAX && at != VISIT_NONE && parts[at] <= 0; depth++)
            at = visit_at(v, at)->parent;
        if (at == VISIT_NONE || parts[at] <= 0 ||
            (!with_spans && at != i && place_at(v, place_of_visit(v, x))->kind == PLACE_SPAN))
            continue;
        claim_time(f, c, i, fmax(0, (double)x->own_ns - (double)f->claimed[i]) * (double)parts[at]);
    }
}

/*
 * Claims the time after a failed visit until `until_ns`, when the next attempt begins or the caller gives up. Claims
 * the caller's own time, and the edges from the failed visit to the next attempt. If the caller is the request itself,
 * claims the time of the request's visits. Does not claim the time of the caller's other children. To save time, claims
 * no wait in very large requests. Returns the sum of the failed visit's time and the wait, in nanoseconds.
 */
static double claim_attempt(const findings *f, candidate *c, uint32_t index, int64_t until_ns)
{
    enum { VISITS_MAX = 512 };
    const visit *x = visit_at(f->visits, index);
    const request *q = request_at(f->visits, x->request);
    double wait = q->count <= VISITS_MAX ? (double)MAX(0, until_ns - x->to_ns) : 0, own = wait;
    for (uint32_t i = q->first; wait > 0 && i < q->first + q->count; i++) {
        const visit *y = visit_at(f->visits, i);
        bool is_between = y->from_ns >= x->to_ns && y->to_ns <= until_ns,
             is_wait = is_between && place_at(f->visits, place_of_visit(f->visits, y))->kind == PLACE_EDGE &&
                       (y->from_ns == x->to_ns || y->to_ns == until_ns);
        double inside = (double)MAX(0, MIN(y->to_ns, until_ns) - MAX(y->from_ns, x->to_ns));
        if (is_between && (x->parent == VISIT_NONE || (is_wait && y->parent == x->parent)))
            claim_time(f, c, i, INFINITY);
        if (x->parent != VISIT_NONE && y->parent == x->parent) {
            own -= inside;
            wait -= is_wait ? 0 : inside;
        }
    }
    if (x->parent != VISIT_NONE)
        claim_time(f, c, x->parent, fmax(0, own));
    return (double)(x->to_ns - x->from_ns) + fmax(0, wait);
}

/*
 * Offers a candidate "timeout" for callers that visit the place again after a failed visit. The candidate claims their
 * failed visits, and the times that they wait after these visits.
 */
static void offer_retries(search *s, uint32_t number, const calls *of)
{
    const visits *v = s->v;
    const place *p = place_at(v, number);
    uint32_t failed;
    candidate c = {
        .cause = "timeout", .place = number, .from_ns = v->from_ns, .to_ns = v->to_ns, .part = 1, .m.is_retry = true};
    c.p = chance_of_retries(v, p, of, &failed);
    /* if most visits fail, their status probably has another meaning, such as more data */
    if (failed < FAILED_MIN || 2 * failed > p->count || c.p > CHANCE_MAX)
        return;
    float *parts = g_new0(float, v->all->len + 1);
    bool *repeats = g_new0(bool, v->all->len + v->requests->len + 1);
    c.cut = g_new0(float, v->all->len + 1);
    double sum = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i], caller = caller_of(v, index);
        repeats[caller] = repeats[caller] || (visit_at(v, index)->failed && is_followed(v, p, of, i));
    }
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i], caller = caller_of(v, index);
        const visit *x = visit_at(v, index);
        if (x->failed && repeats[caller]) {
            int64_t next_ns = start_of_next(v, p, of, i);
            parts[index] = 1;
            sum += claim_attempt(s->f, &c, index,
                                 next_ns != INT64_MAX      ? next_ns
                                 : x->parent != VISIT_NONE ? visit_at(v, x->parent)->to_ns
                                                           : x->to_ns);
            c.slow_count++;
        }
    }
    cut_tree(s->f, parts, true, &c);
    g_free(parts);
    g_free(repeats);
    c.m.count = c.slow_count;
    c.count = p->count;
    c.m.period_ns = sum / MAX(c.slow_count, 1);
    c.m.share = (double)c.slow_count / p->count;
    c.explained = c.score = 0.9;
    s->f->tests++;
    candidate_offer(s, &c);
}

static bool has_calls(const findings *f, uint32_t place)
{
    for (guint i = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        if (strcmp(x->cause, "calls") == 0 && x->place == place && x->branch == NULL)
            return true;
    }
    return false;
}

/* Returns whether the requested work explains the numbers of the callers' visits. */
static bool is_ordinary_number(const visits *v, const place *p, const calls *of)
{
    uint32_t *index = g_new0(uint32_t, of->count + 1), count = 0;
    double *values = g_new(double, of->count + 1), call_ns = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + i]);
        call_ns += (double)(x->to_ns - x->from_ns) / p->count;
    }
    for (uint32_t i = 0; i < p->count; i++) { /* in the order of the callers' last visits */
        uint32_t visit_index = v->by_place[p->first + i], caller = caller_of(v, visit_index);
        if (of->last[caller] != i)
            continue;
        index[count] = caller < v->all->len ? caller : request_at(v, visit_at(v, visit_index)->request)->first;
        values[count++] = (double)of->counts[caller] * call_ns;
    }
    sample *x = sample_of_values(v, place_of_visit(v, visit_at(v, index[0])), index, values, count);
    bool is_ordinary = calls_are_ordinary(v, x, call_ns);
    sample_free(x);
    g_free(index);
    g_free(values);
    return is_ordinary;
}

/* Finds the field value that distinguishes the callers with at least `limit` visits: most of these callers and few
 * other callers have the value. Sets caller_column and caller_value of the candidate. */
static void find_caller_value(const visits *v, const place *p, const calls *of, double limit, candidate *c)
{
    double best = CALLER_VALUE_MIN;
    for (uint32_t n = 0; n < v->columns->count; n++) {
        const column *of_value = &v->columns->all[n];
        if (of_value->closed || !of_value->has_text || of_value->name[0] == '@' || column_is_of_cache(of_value) ||
            column_is_result(of_value) || column_names_server(of_value) || column_names_host(of_value))
            continue;
        uint32_t *all = g_new0(uint32_t, of_value->texts->len + 1), *many = g_new0(uint32_t, of_value->texts->len + 1),
                 many_count = 0;
        for (uint32_t i = 0; i < p->count; i++) {
            uint32_t index = v->by_place[p->first + i], caller = caller_of(v, index);
            if (of->last[caller] != i)
                continue;
            float value = column_of_visit(
                of_value, v, caller < v->all->len ? caller : request_at(v, visit_at(v, index)->request)->first);
            bool is_many = (double)of->counts[caller] >= limit;
            many_count += is_many;
            if (!isfinite(value))
                continue;
            all[(uint32_t)value]++;
            many[(uint32_t)value] += is_many;
        }
        for (guint k = 0; k < of_value->texts->len; k++) {
            const double found = fmin((double)many[k] / MAX(many_count, 1), (double)many[k] / MAX(all[k], 1));
            if (found <= best || 2 * all[k] > of->count)
                continue;
            best = found;
            c->caller_column = of_value;
            c->caller_value = (float)k;
        }
        g_free(all);
        g_free(many);
    }
}

/*
 * Tries two causes: callers that make many more visits to the place than other callers, and failed visits that callers
 * repeat. If most callers make many visits, "calls" claims the visits of all callers. A place has at most one finding
 * "calls".
 */
void try_calls(search *s, uint32_t number)
{
    const visits *v = s->v;
    const place *p = place_at(v, number);
    if (p->kind != PLACE_SPAN || p->count < CALLERS_MIN || !has_repeated_visits(v, p))
        return;
    calls of = count_calls(v, p);
    double limit = 1, callers = 0;
    bool all = of.usual >= CALLS_MANY;
    candidate c = {.cause = "calls", .place = number, .from_ns = v->from_ns, .to_ns = v->to_ns, .part = 1};
    offer_retries(s, number, &of);
    c.p = of.count >= CALLERS_MIN && !has_calls(s->f, number) ? chance_of_group(&of, &limit) : 1;
    if (c.p > CHANCE_MAX || is_ordinary_number(v, p, &of)) {
        calls_free(&of);
        return;
    }
    if (!all)
        find_caller_value(v, p, &of, limit, &c);
    /* The group of callers with this value may also contain smaller numbers of visits than the group found above. */
    if (!all && c.caller_column == NULL && of.extra < of.count && (double)of.sorted[of.extra] < limit) {
        find_caller_value(v, p, &of, (double)of.sorted[of.extra], &c);
        limit = c.caller_column != NULL ? (double)of.sorted[of.extra] : limit;
    }
    float *parts = g_new0(float, v->all->len + 1);
    c.cut = g_new0(float, v->all->len + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i], caller = caller_of(v, index);
        double here = (double)of.counts[caller];
        if (here < limit && !all)
            continue;
        c.slow_count++;
        callers += of.last[caller] == i;
        parts[index] = (float)(1 - (all ? 1 : of.usual) / here);
    }
    /* if all callers make many calls, the work within the calls is probably necessary */
    cut_tree(s->f, parts, !all, &c);
    g_free(parts);
    c.count = p->count;
    c.m.length_ns = of.usual;
    c.m.peak = c.slow_count / fmax(callers, 1);
    c.explained = c.score = 0.9;
    s->f->tests++;
    candidate_offer(s, &c);
    calls_free(&of);
}

void try_branches(search *s, uint32_t number)
{
    for (guint i = 0; i < s->branches->len; i++) {
        const branch *b = &g_array_index(s->branches, branch, i);
        if (b->place != number)
            continue;
        float *parts, *own;
        candidate c = {.cause = b->column != NULL ? "field" : "calls",
                       .place = number,
                       .host = b->host,
                       .branch = b,
                       .column = b->column,
                       .value = NAN,
                       .p = b->p,
                       .is_within_kind = true,
                       .from_ns = b->host != NULL ? s->v->from_ns : b->from_ns,
                       .to_ns = b->host != NULL ? s->v->to_ns : b->to_ns,
                       .part = 1,
                       .cut = g_new0(float, s->v->all->len + 1)};
        branch_find_time(s->v, b, &parts, &own);
        for (guint n = 0; n < s->v->all->len; n++)
            if (own[n] > 0)
                claim_time(s->f, &c, n, (double)own[n]);
        cut_tree(s->f, parts, true, &c);
        g_free(parts);
        g_free(own);
        c.explained = c.score = 1 - b->other / b->share; /* the part of the calls or misses that is additional */
        s->f->tests++;
        candidate_offer(s, &c);
    }
}

/* ---- mechanisms ---- */

static void offer_mechanism(search *s, const sample *x, const char *cause, mechanism *m, double preference)
{
    if (m->waits != NULL && strcmp(cause, "timeout") == 0 && sample_waits_are_of_rest(x, m->waits))
        g_clear_pointer(&m->waits, g_free);
    if (m->waits == NULL)
        return;
    candidate c = {.cause = cause,
                   .place = x->place,
                   .host = m->host,
                   .process = m->process,
                   .m = *m,
                   .p = m->p,
                   .explained = m->explained,
                   .part = x->part,
                   .score = m->explained * preference,
                   .claim_ns = m->claim_ns,
                   .count = x->count,
                   .from_ns = s->v->from_ns,
                   .to_ns = s->v->to_ns,
                   .is_evened_out = m->is_within_kinds,
                   .cut = m->waits};
    m->waits = NULL;
    c.m.waits = NULL;
    s->f->tests++;
    candidate_offer(s, &c);
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

/* Maximum part of an edge's time between the end of a call on another host and the end of the edge. */
#define REPLY_PART_MAX 0.25

static bool crosses_hosts(const visits *v, uint32_t number)
{
    const site *at = site_at(v, g_array_index(place_at(v, number)->sites, uint32_t, 0));
    return place_at(v, number)->kind == PLACE_EDGE && at->host != at->from_host;
}

/*
 * Returns whether the cause of an edge's time may be outside the edge's program. Such an edge is an inferred message,
 * whose length depends on clocks, or a time in which a call to another host was running. The edge ends soon after the
 * reply to such a call. A span that ends much earlier is probably a parallel part of the request.
 */
static bool is_elsewhere(const visits *v, const sample *x)
{
    enum { LOOKED_AT = 200 };
    const place *p = place_at(v, x->place);
    if (p->kind != PLACE_EDGE)
        return false;
    if (crosses_hosts(v, x->place))
        return p->inferred;
    uint32_t elsewhere = 0, looked = MIN(x->count, LOOKED_AT);
    for (uint32_t i = 0; i < looked; i++) {
        const visit *edge = visit_at(v, x->index[(uint64_t)i * x->count / looked]);
        const request *q = request_at(v, edge->request);
        for (uint32_t n = 0; n < q->count; n++) {
            const visit *y = visit_at(v, q->first + n);
            if (y->from_ns >= edge->from_ns && y->to_ns <= edge->to_ns &&
                (double)(edge->to_ns - y->to_ns) <= REPLY_PART_MAX * (double)(edge->to_ns - edge->from_ns) &&
                site_at(v, y->site)->host != site_at(v, edge->site)->host) {
                elsewhere++;
                break;
            }
        }
    }
    return elsewhere * 3 > looked;
}

/* A host is as fast as the others if the median time of its visits, without their waits, is at most EQUAL_HOSTS times
 * the median time of the other visits. */
#define EQUAL_HOSTS 1.1

/* Returns whether the waits of all visits (by index) alone can explain why a host is slower than the others. */
static bool is_host_fast(const sample *x, const float *waits, const char *host)
{
    double *times = g_new(double, x->count + 1), medians[2];
    for (int here = 0; here < 2; here++) {
        size_t count = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if ((site_at(x->visits, visit_at(x->visits, x->index[i])->site)->host == host) == here)
                times[count++] = x->y[i] - (double)waits[x->index[i]];
        medians[here] = median_of(times, count);
    }
    g_free(times);
    return medians[1] <= EQUAL_HOSTS * medians[0];
}

/* The model with servers of the caller must be better by this factor, because with one caller, both models predict
 * nearly the same waits. */
#define CALLER_FACTOR 1.1

/* Finds a queue in a place or, if visits to the place begin to work before they occupy a server, in a part of its
 * spans.
 */
static mechanism find_queue_of_place(const visits *v, uint32_t place)
{
    mechanism m = find_queue(v, place), of_part = {0};
    if (m.waits == NULL || queue_is_in_part(v, place, m.waits))
        of_part = find_queue_in_part(v, place);
    if (of_part.waits == NULL)
        return m;
    g_free(m.waits);
    return of_part;
}

/* The visits of a span that needs a lock for a part of its time, such as a quarter, look like the visits of a pool of
 * four. The lock is then the rival of the pool, with this part of the pool's score. */
#define PART_LOCK_GAIN 0.4

/* Offers a queue. If a lock and a pool predict the visits nearly equally well, offers the better queue, and adds the
 * other queue as its rival. */
static void offer_queue(search *s, const sample *x)
{
    mechanism m = find_queue_of_place(s->v, x->place), of_caller = queue_find_caller(s->v, x->place);
    const candidate *best = &s->best[x->place];
    m.explained = m.waits != NULL ? explained_by(x, m.waits) : 0;
    of_caller.explained = of_caller.waits != NULL ? explained_by(x, of_caller.waits) : 0;
    if (of_caller.waits != NULL &&
        (m.waits == NULL || (of_caller.explained > CALLER_FACTOR * m.explained && of_caller.p <= CHANCE_MAX))) {
        g_free(m.waits);
        m = of_caller;
        m.host = NULL; /* m.host is the callers' host, where the visits do not end */
    } else {
        g_free(of_caller.waits);
    }
    if (m.waits == NULL)
        return;
    bool uneven = m.host != NULL && m.process == NULL && m.share >= 1.3 && place_at(s->v, x->place)->sites->len > 1;
    m.is_host_fast = uneven && is_host_fast(x, m.waits, m.host);
    const char *cause = uneven ? "balance" : m.servers == 1 ? "lock" : "pool";
    /* a queue at a host with more requests may explain why the host is slower than its peers */
    bool is_of_peer = m.is_host_fast && best->cause != NULL && strcmp(best->cause, "peer") == 0 && best->host == m.host;
    offer_mechanism(s, x, cause, &m, is_of_peer ? fmax(1, 1.01 * best->score / fmax(m.explained, 0.01)) : 1);
    if (best->cause != cause)
        return;
    if (m.other_servers == 0 && strcmp(cause, "pool") == 0 && place_at(s->v, x->place)->kind == PLACE_SPAN) {
        m.other_servers = 1;
        m.other_gain = PART_LOCK_GAIN;
    }
    if (m.other_servers == 0)
        return;
    candidate other = *best;
    other.cut = NULL;
    other.cause = m.other_servers == 1 ? "lock" : "pool";
    other.m.servers = m.other_servers;
    other.score *= m.other_gain;
    g_array_append_val(s->rivals, other);
}

/* Two operations have the same timeout if the ratio of their timeouts is at most SAME_TIMEOUT. */
#define SAME_TIMEOUT 1.2

static bool is_same_timeout(const mechanism *a, const mechanism *b)
{
    return a->waits != NULL && b->waits != NULL && a->period_ns <= SAME_TIMEOUT * b->period_ns &&
           b->period_ns <= SAME_TIMEOUT * a->period_ns;
}

/* Joins the timeouts of operations with the same timeout as `best`. Adds the number of joined timeouts to *same. */
static mechanism join_timeouts(const sample *x, mechanism *all, uint32_t count, const mechanism *best, uint32_t *same)
{
    mechanism m = *best;
    m.waits = g_new0(float, x->visits->all->len + 1);
    m.claim_ns = m.count = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (!is_same_timeout(&all[k], best))
            continue;
        ++*same;
        m.claim_ns += all[k].claim_ns;
        m.count += all[k].count;
        m.host = all[k].host == best->host ? m.host : NULL;
        for (uint32_t i = 0; i < x->count; i++)
            m.waits[x->index[i]] += all[k].waits[x->index[i]];
    }
    m.share = (double)m.count / x->count;
    m.p = fmin(1, best->p * count);
    m.explained = explained_by(x, m.waits);
    return m;
}

/*
 * Finds a timeout of a place at which several operations take different times. The durations of all visits are then no
 * evidence, so the function examines each operation. Most operations must have the same timeout, because one operation
 * may have two durations for another reason, such as a cache.
 */
static mechanism find_timeout_of_operations(const sample *x, const uint32_t *groups)
{
    mechanism all[COLUMN_TEXTS_MAX] = {{0}}, m = {0};
    uint32_t counts[COLUMN_TEXTS_MAX + 1] = {0}, count = 0, same = 0;
    const mechanism *best = NULL;
    for (uint32_t i = 0; i < x->count; i++)
        counts[groups[i]]++;
    for (uint32_t g = 0; g < COLUMN_TEXTS_MAX; g++) {
        if (counts[g] < TIMEOUT_VISITS_MIN)
            continue;
        bool *chosen = g_new(bool, x->count + 1);
        for (uint32_t i = 0; i < x->count; i++)
            chosen[i] = groups[i] == g;
        sample *part = sample_select(x, chosen);
        g_free(chosen);
        all[count++] = find_timeout(part);
        sample_free(part);
    }
    for (uint32_t k = 0; k < count; k++)
        if (all[k].waits != NULL && (best == NULL || all[k].p < best->p))
            best = &all[k];
    if (best != NULL)
        m = join_timeouts(x, all, count, best, &same);
    if (2 * same <= count)
        g_clear_pointer(&m.waits, g_free);
    for (uint32_t k = 0; k < count; k++)
        g_free(all[k].waits);
    return m;
}

static mechanism find_timeout_of_place(const search *s, const sample *x)
{
    uint32_t *groups = g_new(uint32_t, x->count + 1);
    bool has_operations = sample_group_operations(s, x, groups) > 1;
    mechanism m = has_operations ? find_timeout_of_operations(x, groups) : find_timeout(x);
    g_free(groups);
    /* if the longer visits are a kind of visits, their durations are not evidence of a timeout */
    if (m.waits != NULL && sample_waits_are_kind(s, x, m.waits))
        g_clear_pointer(&m.waits, g_free);
    return m;
}

/* Factor of the score of a CPU quota. The search prefers a quota to a timer, because a program that works only in a
 * part of each period also has visits that end at multiples of the period. */
#define QUOTA_PREFERENCE 1.3

/* A pause must be at least this number of time units long (time_units.h). */
#define PAUSE_UNITS 2

void try_pauses(search *s, const sample *x)
{
    const double unit_ns = place_find_time_unit(s->v, place_at(s->v, x->place));
    for (guint i = 0; i < s->pauses->len; i++) {
        const pause_result *pause = &g_array_index(s->pauses, pause_result, i);
        mechanism copy = pause->m;
        copy.explained = explained_by(x, pause->m.waits);
        if (copy.explained < 0.04 || pause->m.length_ns < PAUSE_UNITS * unit_ns)
            continue;
        copy.claim_ns = 0;
        copy.waits = g_new0(float, s->v->all->len + 1);
        for (uint32_t k = 0; k < x->count; k++) {
            copy.waits[x->index[k]] = MIN(pause->m.waits[x->index[k]], (float)x->y[k]);
            copy.claim_ns += (double)copy.waits[x->index[k]] * x->weight[k] * x->scale;
        }
        offer_mechanism(s, x, "pause", &copy, pause->m.is_quota ? QUOTA_PREFERENCE : 1.1);
    }
}

/* Factor of the score of a batch that ends when its last visit arrives, and of waits for an idle server. No queue
 * explains these waits, but a queue may explain the other waits of the place. */
#define COMPLETED_PREFERENCE 1.2

void try_mechanisms(search *s, const sample *x)
{
    const bool elsewhere = is_elsewhere(s->v, x), is_coarse = place_times_are_coarse(s->v, place_at(s->v, x->place));
    try_pauses(s, x);
    mechanism m = find_acknowledgement(x);
    offer_mechanism(s, x, m.is_retransmission ? "timeout" : "timer", &m, 1);
    /* an error of two hosts' clocks does not hide a timer or a batch, and changes only the arrivals at a queue */
    if (!elsewhere || crosses_hosts(s->v, x->place)) {
        if (!is_coarse)
            offer_queue(s, x);
        m = find_timer(x);
        offer_mechanism(s, x, "timer", &m, 1);
        if (!is_coarse) {
            m = find_batch(x);
            offer_mechanism(s, x, "batch", &m, m.is_completed ? COMPLETED_PREFERENCE : 0.95);
            bool is_batch = false;
            m = find_idle_servers(x, &is_batch);
            offer_mechanism(s, x, is_batch ? "batch" : "timer", &m, COMPLETED_PREFERENCE);
        }
    }
    m = find_named_timeout(x);
    offer_mechanism(s, x, "timeout", &m, 1);
    if (elsewhere && !crosses_hosts(s->v, x->place))
        return;
    m = find_given_up(x);
    offer_mechanism(s, x, "timeout", &m, 1);
    const candidate *best = &s->best[x->place];
    if (best->cause == NULL || best->explained * best->part < 0.5 || best->meaning == NUMBER_CONTENTION) {
        m = find_timeout_of_place(s, x);
        offer_mechanism(s, x, m.acknowledgement ? "timer" : "timeout", &m, 1);
    }
    best = &s->best[x->place];
    /* at a place with a finding, the unclaimed times are not evidence */
    if (!s->has_finding[x->place] && (best->cause == NULL || best->is_ordinary || best->explained * best->part < 0.5 ||
                                      best->meaning == NUMBER_CONTENTION)) {
        m = find_step(s, x);
        if (m.waits != NULL && sample_waits_are_kind(s, x, m.waits))
            g_clear_pointer(&m.waits, g_free);
        offer_mechanism(s, x, m.acknowledgement ? "timer" : "timeout", &m, 1);
    }
}
