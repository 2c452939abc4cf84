#include "config.h"

#include "diag/span_parts.h"

#include "base/hash_bytes.h"
#include "diag/visits.h"

/* A part explains a finding if it contains at least this share of the time that the finding claims. */
#define PART_MIN 0.7

typedef struct part_name {
    const char *from, *to;
} part_name;

typedef struct part_time {
    uint32_t visit, name; /* index of the visit, and index in `names` */
    float ns, since_ns;   /* since_ns: from the start of the visit to the start of the part */
} part_time;

struct span_parts {
    GArray *names;       /* elements are part_name */
    GHashTable *indexes; /* maps a part_name to 1 plus its index in `names` */
    GArray *times;       /* elements are part_time, in the order of the requests */
};

static guint part_name_hash(gconstpointer key)
{
    return (guint)hash_bytes(0, (const char *)key, sizeof(part_name));
}

static gboolean part_name_equal(gconstpointer a, gconstpointer b)
{
    const part_name *x = a, *y = b;
    return x->from == y->from && x->to == y->to;
}

span_parts *span_parts_new(void)
{
    span_parts *p = g_new(span_parts, 1);
    p->names = g_array_new(FALSE, FALSE, sizeof(part_name));
    p->indexes = g_hash_table_new_full(part_name_hash, part_name_equal, g_free, NULL);
    p->times = g_array_new(FALSE, FALSE, sizeof(part_time));
    return p;
}

void span_parts_free(span_parts *p)
{
    g_array_free(p->names, TRUE);
    g_hash_table_destroy(p->indexes);
    g_array_free(p->times, TRUE);
    g_free(p);
}

size_t span_parts_memory(const span_parts *p)
{
    return p->times->len * sizeof(part_time);
}

void span_parts_add(span_parts *p, uint32_t visit, const char *from, const char *to, float since_ns, float ns)
{
    const part_name name = {from, to};
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(p->indexes, &name));
    if (found == 0) {
        g_array_append_val(p->names, name);
        found = p->names->len;
        g_hash_table_insert(p->indexes, g_memdup2(&name, sizeof name), GUINT_TO_POINTER(found));
    }
    const part_time time = {visit, found - 1, ns, since_ns};
    g_array_append_val(p->times, time);
}

void span_parts_move(span_parts *p, const uint32_t *moved)
{
    guint kept = 0;
    for (guint i = 0; i < p->times->len; i++) {
        part_time time = g_array_index(p->times, part_time, i);
        time.visit = moved[time.visit];
        if (time.visit != VISIT_NONE)
            g_array_index(p->times, part_time, kept++) = time;
    }
    g_array_set_size(p->times, kept);
}

/* For each part, computes the slope of the linear regression of its times on the values in `cut`. In a visit without
 * the part, its time is 0. */
bool span_parts_find(const visits *v, uint32_t place, const float *cut, const char **from, const char **to)
{
    const span_parts *p = v->parts;
    const struct place *at = place_at(v, place);
    double *slopes = g_new0(double, p->names->len + 1), mean = 0, variance = 0;
    for (uint32_t i = at->first; i < at->first + at->count; i++)
        mean += (double)cut[v->by_place[i]] / at->count;
    for (uint32_t i = at->first; i < at->first + at->count; i++) {
        double more = (double)cut[v->by_place[i]] - mean;
        variance += more * more;
    }
    for (guint i = 0; i < p->times->len && variance > 0; i++) {
        const part_time *time = &g_array_index(p->times, part_time, i);
        if (place_of_visit(v, visit_at(v, time->visit)) == place)
            slopes[time->name] += ((double)cut[time->visit] - mean) * (double)time->ns / variance;
    }
    guint best = 0;
    for (guint i = 1; i < p->names->len; i++)
        best = slopes[i] > slopes[best] ? i : best;
    bool found = slopes[best] >= PART_MIN;
    if (found) {
        *from = g_array_index(p->names, part_name, best).from;
        *to = g_array_index(p->names, part_name, best).to;
    }
    g_free(slopes);
    return found;
}

static int by_visit_and_time(gconstpointer a, gconstpointer b)
{
    const span_part *x = a, *y = b;
    if (x->visit != y->visit)
        return x->visit < y->visit ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

GArray *span_parts_list(const visits *v, uint32_t place)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(span_part));
    for (guint i = 0; i < v->parts->times->len; i++) {
        const part_time *time = &g_array_index(v->parts->times, part_time, i);
        const visit *x = visit_at(v, time->visit);
        if (place_of_visit(v, x) != place)
            continue;
        const part_name *name = &g_array_index(v->parts->names, part_name, time->name);
        const int64_t from_ns = x->from_ns + (int64_t)time->since_ns;
        const span_part part = {time->visit, name->from, name->to, from_ns, from_ns + (int64_t)time->ns};
        g_array_append_val(list, part);
    }
    g_array_sort(list, by_visit_and_time);
    return list;
}
