#include "config.h"

#include <math.h>

#include "diag/queue_causes.h"

#include <string.h>

/* Minimum part of a queue's waits that a cause must explain in order to replace the queue. */
#define EXPLAINED_WAITS_MIN 0.5

/* Returns whether a candidate is a fault of a span's servers. A field, a size, the number of calls and the load are not
 * faults, but demands that the servers must handle. */
static bool is_fault_of_server(const candidate *c)
{
    static const char *const others[] = {"field", "size", "calls", "load"};
    for (size_t i = 0; c->cause != NULL && i < G_N_ELEMENTS(others); i++)
        if (strcmp(c->cause, others[i]) == 0)
            return false;
    return c->cause != NULL && c->m.servers == 0;
}

candidate *queue_find_server(search *s, candidate *largest, float **saved)
{
    if (largest->m.servers == 0 || place_at(s->v, largest->place)->kind != PLACE_EDGE)
        return largest;
    uint32_t next = next_span(s->v, largest->place);
    if (next == VISIT_NONE || !is_fault_of_server(&s->best[next]))
        return largest;
    float *waits = g_new0(float, s->v->all->len + 1);
    double saved_ns = queue_find_savings(s->v, largest->place, &largest->m, s->best[next].cut, waits);
    if (saved_ns < EXPLAINED_WAITS_MIN * largest->claim_ns) {
        g_free(waits);
        return largest;
    }
    *saved = waits;
    return &s->best[next];
}

candidate *queue_find_failures(const search *s, candidate *largest)
{
    const place *p = place_at(s->v, largest->place);
    for (guint i = 0; largest->m.servers > 0 && i < s->v->places->len; i++) {
        candidate *c = &s->best[i];
        double both_ns = 0;
        if (c->cause == NULL || !c->m.is_retry)
            continue;
        for (uint32_t n = p->first; n < p->first + p->count; n++) {
            uint32_t index = s->v->by_place[n];
            both_ns += (double)fminf(c->cut[index], largest->cut[index]) * path_weight(visit_at(s->v, index));
        }
        if (both_ns >= EXPLAINED_WAITS_MIN * largest->claim_ns)
            return c;
    }
    return largest;
}

/* Returns the best explanation of the visits' service times, which are the visits' times without the waits of the
 * queue. The explanation's cut covers all visits of the place. The caller clears the candidate. */
static candidate explain_service(search *s, const candidate *queue)
{
    const visits *v = s->v;
    float *before = s->f->claimed;
    s->f->claimed = g_memdup2(before, (v->all->len + 1) * sizeof *before);
    for (guint i = 0; i < v->all->len; i++)
        s->f->claimed[i] += queue->cut[i];
    /* copy the search, so that these trials do not change its candidates */
    search trials = *s;
    guint tried = s->f->tried->len;
    char *cannot_tell = g_strdup(s->f->cannot_tell);
    trials.best = g_new0(candidate, v->places->len + 1);
    trials.rivals = g_array_new(FALSE, FALSE, sizeof(candidate));
    trials.doubtful_ns = g_memdup2(s->doubtful_ns, v->places->len * sizeof *s->doubtful_ns);
    sample *x = sample_new(v, queue->place, s->f->claimed);
    try_divisions(&trials, x);
    try_pauses(&trials, x);
    sample_free(x);
    candidate best = trials.best[queue->place];
    if (best.cause != NULL)
        candidate_settle(&best, v, s->f->claimed);
    g_free(trials.best);
    g_array_free(trials.rivals, TRUE);
    g_free(trials.doubtful_ns);
    g_ptr_array_set_size(s->f->tried, (gint)tried);
    g_free(s->f->cannot_tell);
    s->f->cannot_tell = cannot_tell;
    g_free(s->f->claimed);
    s->f->claimed = before;
    return best;
}

/* Returns the part of the variation of the visits' times that the candidate's cuts explain. */
static double explained_by_cut(const search *s, const candidate *c)
{
    sample *x = sample_new(s->v, c->place, s->f->claimed);
    float *waits = g_new(float, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        waits[i] = c->cut[x->index[i]];
    double explained = sample_explained_by_waits(x, waits);
    g_free(waits);
    sample_free(x);
    return explained;
}

/*
 * Returns whether a candidate names the host, the resource or the pause that makes the service slow. A time range is
 * no such cause: if more requests arrive in this range, the computed service times also change, because the queue
 * differs from the model.
 */
static bool is_cause_of_slow_service(const candidate *c)
{
    static const char *const causes[] = {"peer", "resource", "pause"};
    for (size_t i = 0; c->cause != NULL && i < G_N_ELEMENTS(causes); i++)
        if (strcmp(c->cause, causes[i]) == 0)
            return true;
    return false;
}

bool queue_find_slow_service(search *s, candidate *queue)
{
    const visits *v = s->v;
    if (queue->m.servers == 0 || strcmp(queue->cause, "balance") == 0 || place_at(v, queue->place)->kind != PLACE_SPAN)
        return false;
    candidate c = explain_service(s, queue);
    bool found = is_cause_of_slow_service(&c);
    if (found) {
        float *saved = g_new0(float, v->all->len + 1);
        double saved_ns = 0;
        queue_find_savings(v, queue->place, &queue->m, c.cut, saved);
        for (guint i = 0; i < v->all->len; i++) {
            /* The model of the queue may also predict waits on hosts where the search found no queue. */
            float wait = fminf(saved[i], queue->cut[i]);
            saved_ns += (double)wait * path_weight(visit_at(v, i));
            c.cut[i] += wait;
        }
        g_free(saved);
        found = saved_ns >= EXPLAINED_WAITS_MIN * queue->claim_ns || c.claim_ns + saved_ns >= queue->claim_ns;
    }
    if (found) {
        candidate_settle(&c, v, s->f->claimed);
        c.score = c.explained = explained_by_cut(s, &c);
        c.queue_servers = queue->m.servers;
        found = c.explained >= EXPLAINED_WAITS_MIN * queue->explained;
    }
    if (!found) {
        candidate_clear(&c);
        return false;
    }
    candidate_clear(queue);
    *queue = c;
    return true;
}
