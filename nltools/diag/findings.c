#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <stdarg.h>
#include <string.h>

enum { ROUNDS_MAX = 6 };

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

static void examine(search *s, uint32_t number)
{
    candidate_clear(&s->best[number]);
    s->dirty[number] = false;
    if (!place_is_examined(s->v, number))
        return;
    sample *x = sample_new(s->v, number, s->f->claimed);
    try_divisions(s, x);
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

static void claim(search *s, finding *f, candidate *c)
{
    if (f->cut == NULL)
        f->cut = g_new0(float, s->v->all->len + 1);
    f->gain = MIN(1, f->gain + candidate_settle(c, s->v, s->f->claimed));
    for (guint i = 0; i < s->v->all->len; i++) {
        f->cut[i] += c->cut[i];
        s->f->claimed[i] += c->cut[i];
    }
    f->share = MIN(1, f->share + c->claim_ns / s->v->total_ns);
}

/* Returns the host of all sites of a place, or NULL if there are several hosts. */
static const char *only_host(const visits *v, const place *p)
{
    const char *host = site_at(v, g_array_index(p->sites, uint32_t, 0))->host;
    for (guint n = 1; n < p->sites->len; n++)
        if (site_at(v, g_array_index(p->sites, uint32_t, n))->host != host)
            return NULL;
    return host;
}

/*
 * Returns the candidate to use first. If a host is slower than its peers, messages to it wait because its own work is
 * slow. The place within the host therefore comes first, unless it is only a small part.
 */
static candidate *first_of_host(const search *s, candidate *largest)
{
    candidate *first = largest;
    if (strcmp(largest->cause, "peer") != 0 || place_at(s->v, largest->place)->kind != PLACE_EDGE)
        return largest;
    for (guint i = 0; i < s->v->places->len; i++) {
        candidate *c = &s->best[i];
        if (c->cause != NULL && strcmp(c->cause, "peer") == 0 && c->host == largest->host && c->host != NULL &&
            place_at(s->v, i)->kind == PLACE_SPAN && c->claim_ns > 0.25 * largest->claim_ns &&
            (first == largest || c->claim_ns > first->claim_ns))
            first = c;
    }
    return first;
}

/* Takes the candidate with the largest claim. Returns false if no candidate is left. */
static bool take_best(search *s)
{
    candidate *best = NULL;
    for (guint i = 0; i < s->v->places->len; i++)
        if (s->best[i].cause != NULL && (best == NULL || s->best[i].claim_ns > best->claim_ns))
            best = &s->best[i];
    if (best == NULL || best->claim_ns < 0.03 * s->v->total_ns)
        return false;
    best = first_of_host(s, best);
    finding *f = findings_add(s->f, best->cause);
    f->place = best->place;
    f->host = best->host;
    f->column = best->column;
    f->value = best->value;
    f->explained = best->explained;
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
    finding_describe(s, f, &first);
    if (f->host == NULL)
        f->host = only_host(s->v, place_at(s->v, main));
    return true;
}

/* A small cause remains if sensors confirm it. */
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
 * Returns how sure a finding is: the share of such findings that were right, among 213 findings of development runs
 * with simulated programs (tests/diagnosis/score.py) and with real processes. Causes that other causes resemble are
 * right less often, as are findings that claim or explain little.
 */
static double confidence(const finding *f)
{
    static const char *const resembled[] = {"peer", "timeout", "pool", "field", "changed", "load"};
    double right = 0.97, weak = 0.15;
    for (size_t i = 0; i < G_N_ELEMENTS(resembled); i++)
        if (strcmp(resembled[i], f->cause) == 0)
            right = 0.87;
    return f->share < 0.13 || f->explained < 0.4 ? right - weak : right;
}

static void search_places(findings *f)
{
    const visits *v = f->visits;
    search s = {f,
                v,
                find_pauses(v),
                g_new0(candidate, v->places->len + 1),
                g_new0(bool, v->places->len + 1),
                g_new0(bool, v->places->len + 1),
                search_count_tests(v)};
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
    if (v->requests->len == 0 || v->total_ns <= 0 || visits_overlap(v))
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
