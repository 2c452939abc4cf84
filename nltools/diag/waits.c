#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MANY = 8 }; /* number of calls of one caller, one after another */

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the visit that caused a visit: its parent, or otherwise its request. */
static uint32_t caller_of(const visits *v, uint32_t index)
{
    const visit *x = visit_at(v, index);
    return x->parent != VISIT_NONE ? x->parent : v->all->len + x->request;
}

/* Tries requests that make many more visits to the place than other requests, or many visits one after another. */
void try_calls(search *s, uint32_t number)
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
    candidate c = {.cause = "calls", .place = number, .scale = 1, .from_ns = v->from_ns, .to_ns = v->to_ns};
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
        /* If calls are repeated because calls fail, the failed calls are the excess. */
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
    candidate_offer(s, &c);
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
                   .p = m->p,
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

/*
 * Returns whether the time of an edge says little about its own program. The edge is then an inferred message, whose
 * length depends on clocks, or a time in which spans of other hosts were running that may not belong to it.
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

void try_mechanisms(search *s, const sample *x)
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
    offer_mechanism(s, x, "timer", &m, 1);
    m = find_batch(x);
    offer_mechanism(s, x, "batch", &m, 0.95);
    if (s->best[x->place].cause == NULL || s->best[x->place].explained < 0.5) {
        m = find_timeout(x);
        offer_mechanism(s, x, "timeout", &m, 1);
    }
}
