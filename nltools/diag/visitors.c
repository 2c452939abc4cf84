#include "config.h"

#include "diag/visitors.h"

#include "diag/search.h"

/*
 * A place has at least VISITED_TIME_MIN of the time and is visited by at most VISITED_MAX of the requests. At least
 * VALUE_MIN of these requests have the value, and at least VALUE_MIN of the requests with the value visit the place.
 */
#define VISITED_TIME_MIN CAUSE_SHARE
#define VISITED_MAX 0.5
#define VALUE_MIN 0.8

/* The certainty of a finding, which only states what the records show. The maximum of confidence() in findings.c. */
#define SURE 0.98

/* Replaces the field and value if a value of `c` separates the visiting requests from the others better than *best.
 * `visits_place` has an element for each request, and `visiting` is the number of visiting requests. */
static void try_field(const visits *v, const column *c, const bool *visits_place, uint32_t visiting, double *best,
                      const column **field, float *value)
{
    uint32_t *all = g_new0(uint32_t, c->texts->len + 1), *here = g_new0(uint32_t, c->texts->len + 1);
    for (guint r = 0; r < v->requests->len; r++) {
        float of_request = column_get(c->of_requests, r);
        if (!isfinite(of_request))
            continue;
        all[(uint32_t)of_request]++;
        here[(uint32_t)of_request] += visits_place[r];
    }
    for (guint k = 0; k < c->texts->len; k++) {
        const double found = fmin((double)here[k] / visiting, (double)here[k] / MAX(all[k], 1));
        if (found <= *best)
            continue;
        *best = found;
        *field = c;
        *value = (float)k;
    }
    g_free(all);
    g_free(here);
}

bool place_find_visitors(const visits *v, uint32_t number, const column **field, float *value)
{
    const place *p = place_at(v, number);
    uint32_t visiting = 0;
    double best = VALUE_MIN;
    *field = NULL;
    if (p->path_ns < VISITED_TIME_MIN * v->total_ns)
        return false;
    bool *visits_place = g_new0(bool, v->requests->len + 1);
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        bool *of = &visits_place[visit_at(v, v->by_place[i])->request];
        visiting += !*of;
        *of = true;
    }
    if (visiting <= VISITED_MAX * v->requests->len && visiting >= KIND_COUNT_MIN)
        for (uint32_t n = 0; n < v->columns->count; n++) {
            const column *c = &v->columns->all[n];
            if (!c->closed && c->has_text && c->name[0] != '@' && !column_is_of_cache(c) && !column_is_result(c))
                try_field(v, c, visits_place, visiting, &best, field, value);
        }
    g_free(visits_place);
    return *field != NULL;
}

static void add_finding(findings *f, uint32_t number, const column *field, float value)
{
    const visits *v = f->visits;
    const place *p = place_at(v, number);
    float *cut = g_new0(float, v->all->len + 1);
    double sum_ns = 0;
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = v->by_place[i];
        const visit *x = visit_at(v, index);
        cut[index] = (float)MAX(0, (double)x->own_ns - (double)f->claimed[index]);
        sum_ns += (double)cut[index] * path_weight(x);
    }
    if (sum_ns < VISITED_TIME_MIN * v->total_ns) {
        g_free(cut);
        return;
    }
    finding *x = findings_add(f, "field");
    x->place = number;
    x->column = field;
    x->value = (double)value;
    x->is_ordinary = true;
    x->share = sum_ns / v->total_ns;
    x->gain = fmin(x->share, replay_gain(v, cut, 1));
    x->explained = x->margin = 1;
    x->sure = SURE;
    x->cut = cut;
    /* The time stays unclaimed, because findings_judge decides whether it may hide a cause. */
    char *part = text_share(x->share), *where = text_place(v, number, NULL), *text = column_text(field, value),
         *each = text_ns(sum_ns / p->count);
    x->answer =
        g_strdup_printf("%s of the requests' time: only requests with %s=%s visit %s", part, field->name, text, where);
    x->advice = "to save this time, request less work, or do the work faster";
    finding_evidence(x, "the %u visits take %s each, and nothing else explains this time", p->count, each);
    g_free(part);
    g_free(where);
    g_free(text);
    g_free(each);
}

void find_visitors(findings *f)
{
    for (guint i = 0; i < f->visits->places->len; i++) {
        const column *field;
        float value;
        if (place_at(f->visits, i)->kind == PLACE_SPAN && place_find_visitors(f->visits, i, &field, &value))
            add_finding(f, i, field, value);
    }
}
