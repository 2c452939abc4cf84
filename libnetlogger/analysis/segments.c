#include "config.h"

#include "analysis/segments.h"

#include <math.h>

typedef struct measuring {
    GHashTable *by_key; /* to segment */
    GPtrArray *all;
    bool by_color;
} measuring;

static void add(measuring *m, uint32_t from, uint32_t to, uint32_t color, int64_t time_ns)
{
    char key[48];
    color = m->by_color ? color : TRACE_NONE;
    g_snprintf(key, sizeof key, "%u %u %u", from, to, color);
    segment *s = g_hash_table_lookup(m->by_key, key);
    if (s == NULL) {
        s = g_new0(segment, 1);
        *s = (segment){from, to, color, g_array_new(FALSE, FALSE, sizeof(int64_t)), 0};
        g_hash_table_insert(m->by_key, g_strdup(key), s);
        g_ptr_array_add(m->all, s);
    }
    g_array_append_val(s->times_ns, time_ns);
    s->total_ns += (double)time_ns;
}

static void measure_object(measuring *m, const trace *t, const lifelines *l, const lifeline_object *object)
{
    const lifeline_step *steps = &l->steps[object->first_step];
    uint32_t i = 0;
    while (i < object->step_count) {
        uint32_t last = i;
        while (last + 1 < object->step_count && steps[last + 1].event == steps[i].event)
            last++;
        int64_t last_ns = lifelines_time_ns(l, t, &steps[last]);
        if (last > i)
            add(m, steps[i].event, steps[i].event, object->color, last_ns - lifelines_time_ns(l, t, &steps[i]));
        if (last + 1 < object->step_count)
            add(m, steps[i].event, steps[last + 1].event, object->color,
                lifelines_time_ns(l, t, &steps[last + 1]) - last_ns);
        i = last + 1;
    }
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    const int64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static gint compare_segments(gconstpointer a, gconstpointer b)
{
    const segment *first = *(segment *const *)a, *second = *(segment *const *)b;
    if (first->from != second->from)
        return first->from < second->from ? -1 : 1;
    if (first->to != second->to)
        return first->to < second->to ? -1 : 1;
    return (first->color > second->color) - (first->color < second->color);
}

GPtrArray *segments_measure(const trace *t, const lifelines *l, bool by_color)
{
    measuring m = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL), g_ptr_array_new(), by_color};
    for (size_t i = 0; i < l->object_count; i++)
        measure_object(&m, t, l, &l->objects[i]);
    for (guint i = 0; i < m.all->len; i++)
        g_array_sort(((segment *)g_ptr_array_index(m.all, i))->times_ns, compare_times);
    g_ptr_array_sort(m.all, compare_segments);
    g_hash_table_destroy(m.by_key);
    return m.all;
}

void segments_free(GPtrArray *segments)
{
    for (guint i = 0; i < segments->len; i++) {
        segment *s = g_ptr_array_index(segments, i);
        g_array_free(s->times_ns, TRUE);
        g_free(s);
    }
    g_ptr_array_free(segments, TRUE);
}

int64_t segment_quantile_ns(const segment *s, double share)
{
    guint rank = (guint)ceil(share * s->times_ns->len);
    rank = rank < 1 ? 1 : rank > s->times_ns->len ? s->times_ns->len : rank;
    return g_array_index(s->times_ns, int64_t, rank - 1);
}
