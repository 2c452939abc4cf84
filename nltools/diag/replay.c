/*
 * Computes the gain of a finding: replays the requests with shorter visits. Within its parent, a visit begins some time
 * after the latest earlier event, which is the parent's start or the end of another child. In the replay, both events
 * may come earlier, but the time between them stays the same (Curtsinger and Berger, "Coz", SOSP 2015; CRISP, USENIX
 * ATC 2022).
 */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <stdlib.h>

typedef struct replayed {
    const visits *v;
    const float *cut;
    GArray *order;  /* uint32_t: visits of the request, sorted by begin */
    double *begins; /* new times, indexed by the visit in the request */
    double *ends;
} replayed;

static int by_begin(const void *a, const void *b, void *user)
{
    const visits *v = user;
    const visit *x = visit_at(v, *(const uint32_t *)a), *y = visit_at(v, *(const uint32_t *)b);
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return (x->to_ns < y->to_ns) - (x->to_ns > y->to_ns);
}

/* Replays the children of a visit or of the request. Returns the new end of the visit or request, in nanoseconds. */
static double replay_inside(replayed *r, uint32_t parent, double begin, int64_t from_ns, int64_t to_ns, double cut,
                            uint32_t first, int depth)
{
    /* the ends of the earlier children; the latest event before a child determines by how much the child moves */
    GArray *ends = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    double left = cut;
    int64_t covered_ns = from_ns;
    for (guint i = 0; i < r->order->len; i++) {
        uint32_t index = g_array_index(r->order, uint32_t, i);
        const visit *x = visit_at(r->v, index);
        if (x->parent != parent)
            continue;
        int64_t latest_ns = from_ns;
        double latest = begin;
        for (guint k = 0; k < ends->len; k++) {
            uint32_t other = g_array_index(ends, uint32_t, k);
            const visit *y = visit_at(r->v, other);
            if (y->to_ns <= x->from_ns && y->to_ns >= latest_ns) {
                latest_ns = y->to_ns;
                latest = r->ends[other - first];
            }
        }
        double gap = (double)(x->from_ns - latest_ns), saved = x->from_ns > covered_ns ? MIN(left, MAX(gap, 0)) : 0;
        left -= saved;
        double starts = latest + gap - saved;
        r->ends[index - first] =
            depth < 64 ? replay_inside(r, index, starts, x->from_ns, x->to_ns, (double)r->cut[index], first, depth + 1)
                       : starts + (double)(x->to_ns - x->from_ns);
        covered_ns = MAX(covered_ns, x->to_ns);
        g_array_append_val(ends, index);
    }
    int64_t latest_ns = from_ns;
    double latest = begin, earliest = begin;
    for (guint k = 0; k < ends->len; k++) {
        uint32_t other = g_array_index(ends, uint32_t, k);
        const visit *y = visit_at(r->v, other);
        earliest = MAX(earliest, y->to_ns <= to_ns ? r->ends[other - first] : begin);
        if (y->to_ns <= to_ns && y->to_ns >= latest_ns) {
            latest_ns = y->to_ns;
            latest = r->ends[other - first];
        }
    }
    double end = latest + MAX(0, (double)(to_ns - latest_ns) - MAX(0, left));
    g_array_free(ends, TRUE);
    return MAX(end, earliest);
}

double replay_gain(const visits *v, const float *cut, double scale)
{
    enum { VISITS_MAX = 4000 }; /* maximum number of visits per request; longer requests count as chains */
    replayed r = {v, cut, g_array_new(FALSE, FALSE, sizeof(uint32_t)), NULL, NULL};
    double saved = 0;
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        double sum = 0;
        for (uint32_t n = 0; n < q->count; n++)
            sum += (double)cut[q->first + n] * path_weight(visit_at(v, q->first + n));
        if (sum <= 0)
            continue;
        if (q->count > VISITS_MAX) {
            saved += sum;
            continue;
        }
        g_array_set_size(r.order, 0);
        for (uint32_t n = 0; n < q->count; n++) {
            uint32_t index = q->first + n;
            g_array_append_val(r.order, index);
        }
        g_qsort_with_data(r.order->data, (gint)r.order->len, sizeof(uint32_t), by_begin, (gpointer)v);
        r.ends = g_new0(double, q->count + 1);
        double end = replay_inside(&r, VISIT_NONE, 0, q->from_ns, q->to_ns, 0, q->first, 0);
        saved += MAX(0, (double)(q->to_ns - q->from_ns) - end);
        g_free(r.ends);
    }
    g_array_free(r.order, TRUE);
    return v->total_ns > 0 ? MIN(1, saved * scale / v->total_ns) : 0;
}
