/*
 * Finds queues in a part of a span.
 *
 * If a program logs events inside a span, such as before it waits for a lock and after it releases the lock, only the
 * time between these events depends on other visits. The work before and after this time hides the queue, and would
 * remain without the queue. The module therefore treats the parts of a span as visits, and searches them for a queue. A
 * part is the time between two successive events. A program may also log an event when it gets the lock, so the time
 * between the first and the third of three successive events is a part, too. No state.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/mechanisms.h"

#include <stdlib.h>

/* A part must occur once in at least this share of the span's visits. */
#define PART_VISITS_MIN 0.9

/* An event is inside a wait if the time from the event to the wait's end is more than this part of the wait. */
#define EARLY_MIN 0.05

enum { PART_NAMES_MAX = 12 };

/* A kind of parts: all parts between the same two events. */
typedef struct part_kind {
    const char *from, *to;
    GArray *parts;    /* elements are span_part, at most one for each visit */
    bool is_repeated; /* some visits have several parts of this kind */
} part_kind;

static void add_part(GArray *kinds, const span_part *part)
{
    part_kind *k = NULL;
    for (guint i = 0; i < kinds->len && k == NULL; i++) {
        part_kind *of = &g_array_index(kinds, part_kind, i);
        k = of->from == part->from && of->to == part->to ? of : NULL;
    }
    if (k == NULL) {
        const part_kind new_kind = {part->from, part->to, g_array_new(FALSE, FALSE, sizeof(span_part)), false};
        if (kinds->len == PART_NAMES_MAX)
            return;
        g_array_append_val(kinds, new_kind);
        k = &g_array_index(kinds, part_kind, kinds->len - 1);
    }
    if (k->parts->len > 0 && g_array_index(k->parts, span_part, k->parts->len - 1).visit == part->visit)
        k->is_repeated = true;
    else
        g_array_append_val(k->parts, *part);
}

/* Returns whether the part `next` begins at the end of `part`. The times are rounded to the precision of a float, which
 * is better than a millionth of the time since the start of the visit. */
static bool is_next(const visits *v, const span_part *part, const span_part *next)
{
    const int64_t since_ns = next->from_ns - visit_at(v, next->visit)->from_ns,
                  error_ns = 1 + MAX(since_ns, 0) / 1000000;
    return next->visit == part->visit && next->from == part->to && llabs(next->from_ns - part->to_ns) <= error_ns;
}

/* Returns the kinds of parts (elements are part_kind). `all` has the parts of a place. */
static GArray *find_kinds(const visits *v, const GArray *all)
{
    GArray *kinds = g_array_new(FALSE, FALSE, sizeof(part_kind));
    for (guint i = 0; i < all->len; i++) {
        const span_part *part = &g_array_index(all, span_part, i), *next = part + 1;
        add_part(kinds, part);
        if (i + 1 < all->len && is_next(v, part, next)) {
            const span_part both = {part->visit, part->from, next->to, part->from_ns, next->to_ns};
            add_part(kinds, &both);
        }
    }
    return kinds;
}

/* Returns whether most of the waiting visits log an event inside their spans while they wait. `all` has the parts of
 * their place. The waits begin with the parts of kind `k` or, if `k` is NULL, with the visits. */
static bool are_events_in_waits(const visits *v, const GArray *all, const part_kind *k, const float *waits)
{
    int64_t *begins_ns = g_new(int64_t, v->all->len + 1);
    bool *is_early = g_new0(bool, v->all->len + 1);
    uint32_t waiting = 0, early = 0;
    for (guint i = 0; i < v->all->len; i++) {
        begins_ns[i] = visit_at(v, i)->from_ns;
        waiting += waits[i] > 0;
    }
    for (guint i = 0; k != NULL && i < k->parts->len; i++)
        begins_ns[g_array_index(k->parts, span_part, i).visit] = g_array_index(k->parts, span_part, i).from_ns;
    for (guint i = 0; i < all->len; i++) {
        const span_part *part = &g_array_index(all, span_part, i);
        const double since_ns = (double)(part->to_ns - begins_ns[part->visit]), wait_ns = (double)waits[part->visit];
        if (since_ns <= 0 || since_ns >= (1 - EARLY_MIN) * wait_ns || is_early[part->visit])
            continue;
        is_early[part->visit] = true;
        early++;
    }
    g_free(begins_ns);
    g_free(is_early);
    return 2 * early > waiting;
}

bool queue_is_in_part(const visits *v, uint32_t place, const float *waits)
{
    GArray *all = span_parts_list(v, place);
    bool is = are_events_in_waits(v, all, NULL, waits);
    g_array_free(all, TRUE);
    return is;
}

static bool takes_time(const visits *v, const part_kind *k)
{
    double sum_ns = 0;
    for (guint i = 0; i < k->parts->len; i++) {
        const span_part *part = &g_array_index(k->parts, span_part, i);
        sum_ns += (double)(part->to_ns - part->from_ns) * path_weight(visit_at(v, part->visit));
    }
    return sum_ns >= FINDING_MIN * v->total_ns;
}

static int by_begin(gconstpointer a, gconstpointer b)
{
    int64_t x = ((const span_part *)a)->from_ns, y = ((const span_part *)b)->from_ns;
    return (x > y) - (x < y);
}

/* Searches a kind of parts for a queue, as if the log contained only these parts. The index of a wait is the index of
 * the visit that contains the part. */
static mechanism find_queue_of_kind(const visits *v, uint32_t number, const part_kind *k)
{
    const guint count = k->parts->len;
    visits only = *v;
    only.all = g_array_sized_new(FALSE, FALSE, sizeof(visit), count);
    only.places = g_array_copy(v->places);
    only.requests = g_array_copy(v->requests);
    only.by_place = only.by_work = g_new(uint32_t, count + 1);
    g_array_sort(k->parts, by_begin);
    for (guint i = 0; i < only.requests->len; i++) /* the search must not look for other visits of a request */
        request_at(&only, i)->count = 0;
    for (guint i = 0; i < count; i++) {
        const span_part *part = &g_array_index(k->parts, span_part, i);
        visit x = *visit_at(v, part->visit);
        const float own_ns = (float)(part->to_ns - part->from_ns);
        x.path_ns = (float)path_weight(&x) * own_ns;
        x.own_ns = own_ns;
        x.from_ns = part->from_ns;
        x.to_ns = part->to_ns;
        x.parent = x.span = VISIT_NONE;
        g_array_append_val(only.all, x);
        only.by_place[i] = i;
    }
    place *p = place_at(&only, number);
    p->first = 0;
    p->count = p->work_count = count;
    mechanism m = find_queue(&only, number);
    if (m.waits != NULL) {
        float *waits = g_new0(float, v->all->len + 1);
        for (guint i = 0; i < count; i++)
            waits[g_array_index(k->parts, span_part, i).visit] = m.waits[i];
        g_free(m.waits);
        m.waits = waits;
    }
    g_array_free(only.all, TRUE);
    g_array_free(only.places, TRUE);
    g_array_free(only.requests, TRUE);
    g_free(only.by_place);
    return m;
}

mechanism find_queue_in_part(const visits *v, uint32_t number)
{
    mechanism best = {0};
    const place *p = place_at(v, number);
    if (p->kind != PLACE_SPAN || p->has_children)
        return best;
    GArray *all = span_parts_list(v, number), *kinds = find_kinds(v, all);
    for (guint i = 0; i < kinds->len; i++) {
        const part_kind *k = &g_array_index(kinds, part_kind, i);
        mechanism m = {0};
        if (!k->is_repeated && k->parts->len >= PART_VISITS_MIN * p->count && takes_time(v, k))
            m = find_queue_of_kind(v, number, k);
        m.p *= kinds->len;
        if (m.waits != NULL && are_events_in_waits(v, all, k, m.waits))
            g_clear_pointer(&m.waits, g_free);
        bool is_better = m.waits != NULL && (best.waits == NULL || m.likelihood > best.likelihood);
        g_free(is_better ? best.waits : m.waits);
        if (is_better)
            best = m;
        g_array_free(k->parts, TRUE);
    }
    g_array_free(kinds, TRUE);
    g_array_free(all, TRUE);
    return best;
}
