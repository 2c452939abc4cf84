#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

enum { FAILED_MIN = 5 };

/* Minimum length of the span that stands for a request, as a part of the request's time. */
#define ROOT_MIN 0.9

/* Returns the span that stands for a request, or NULL: a span without a parent that lasts nearly as long. */
static const visit *root_of(const visits *v, const request *q)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->parent == VISIT_NONE && place_at(v, place_of_visit(v, x))->kind == PLACE_SPAN &&
            (double)(x->to_ns - x->from_ns) >= ROOT_MIN * (double)(q->to_ns - q->from_ns))
            return x;
    }
    return NULL;
}

/*
 * Returns whether two visits are attempts at the same operation: visits of one place, or edges that begin with the same
 * event.
 */
static bool is_same_attempt(const visits *v, const visit *x, const visit *y)
{
    const place *p = place_at(v, place_of_visit(v, x)), *q = place_at(v, place_of_visit(v, y));
    return p == q ||
           (p->kind == PLACE_EDGE && q->kind == PLACE_EDGE && p->from == q->from && p->from_program == q->from_program);
}

/* Returns whether a request has a successful attempt after a failed visit. */
static bool is_repaired(const visits *v, const request *q, const visit *failed)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (!x->failed && x->from_ns >= failed->to_ns && is_same_attempt(v, x, failed))
            return true;
    }
    return false;
}

/* Returns whether a request has failed. If a span stands for the request, the status of this span decides. Otherwise,
 * the last failure counts, unless a later attempt succeeds. */
static bool has_failed(const visits *v, const request *q)
{
    const visit *root = root_of(v, q), *last = NULL;
    if (root != NULL || !q->failed)
        return root != NULL && root->failed;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (last == NULL || x->to_ns >= last->to_ns))
            last = x;
    }
    return last != NULL && !is_repaired(v, q, last);
}

/* Returns the visit in which a failure began: the failed visit that ended first. */
static const visit *origin_of(const visits *v, const request *q)
{
    const visit *origin = NULL;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (origin == NULL || x->to_ns < origin->to_ns))
            origin = x;
    }
    return origin;
}

void find_failures(findings *f)
{
    const visits *v = f->visits;
    uint32_t *by_site = g_new0(uint32_t, v->sites->len + 1), *by_place = g_new0(uint32_t, v->places->len + 1),
             failed = 0, most = 0;
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        const visit *x = has_failed(v, q) ? origin_of(v, q) : NULL;
        failed += x != NULL;
        if (x == NULL)
            continue;
        by_site[x->site]++;
        uint32_t place = place_of_visit(v, x);
        by_place[place]++;
        most = by_place[place] > by_place[most] ? place : most;
    }
    double share = (double)failed / v->requests->len;
    if (failed >= FAILED_MIN && share >= 0.02) {
        finding *x = findings_add(f, "failures");
        const place *p = place_at(v, most);
        uint32_t site = g_array_index(p->sites, uint32_t, 0), visited = 0;
        for (guint i = 0; i < p->sites->len; i++) {
            uint32_t n = g_array_index(p->sites, uint32_t, i);
            site = by_site[n] > by_site[site] ? n : site;
            visited += site_at(v, n)->count;
        }
        /* Name the host if it fails much more often than all other hosts together. */
        const struct site *at = site_at(v, site);
        double here = (double)by_site[site] / MAX(at->count, 1),
               others = (by_place[most] - by_site[site] + 0.5) / MAX((double)(visited - at->count), 0.5);
        if (p->sites->len > 1 && here > 3 * others)
            x->host = at->host;
        x->place = most;
        x->share = share;
        x->sure = 0.95;
        x->explained = (double)by_place[most] / failed;
        char *where = text_place(v, most, x->host), *part = text_share(share);
        x->answer = g_strdup_printf("%s of the requests fail, most of them in %s", part, where);
        x->advice = "look at the messages of the failed requests: nlstat --slowest, or nlv";
        finding_evidence(x, "%u of %u requests failed; in %u of them, this place failed first", failed,
                         v->requests->len, by_place[most]);
        finding_evidence(x, "%.1f %% of the visits to this place failed%s", 100 * here,
                         x->host != NULL ? " on this host" : "");
        g_free(where);
        g_free(part);
    }
    g_free(by_site);
    g_free(by_place);
}
