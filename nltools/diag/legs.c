/* Makes the legs: groups the passages of all objects by events and hosts. */
#include "config.h"

#include "diag/numbers.h"
#include "diag/observed_inside.h"

#include "requests/hash64.h"

#include <stdlib.h>

enum { LIFELINES_MAX = 1 << 8, LEGS_MAX = 1 << 14 };

typedef struct maker {
    GHashTable *by_key; /* a leg's key to its number + 1; owned by the table */
    GArray *keys;       /* guint64, by number */
    GArray *ends;       /* size_t, by number: the passages counted so far; then the end of a leg's passages */
    passage *passages;  /* NULL while passages are only counted */
    uint64_t left_out;
} maker;

static guint64 key_of(guint lifeline, const step *from, const step *to)
{
    return (guint64)lifeline << 56 | (guint64)from->place << 44 | (guint64)to->place << 32 | (guint64)from->host << 16 |
           to->host;
}

/* Returns a leg's number + 1, or 0 if there are too many legs. */
static guint number_of(maker *m, guint64 key)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(m->by_key, &key));
    if (number > 0 || m->keys->len == LEGS_MAX)
        return number;
    size_t none = 0;
    g_array_append_val(m->keys, key);
    g_array_append_val(m->ends, none);
    g_hash_table_insert(m->by_key, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(m->keys->len));
    return m->keys->len;
}

static void pass(maker *m, guint object, guint lifeline, const step *from, const step *to)
{
    guint number = number_of(m, key_of(lifeline, from, to));
    if (number == 0) {
        m->left_out += m->passages == NULL;
        return;
    }
    size_t *end = &g_array_index(m->ends, size_t, number - 1);
    if (m->passages != NULL)
        m->passages[*end] = (passage){from->time_ns, to->time_ns - from->time_ns, object, number - 1};
    ++*end;
}

/* Passes the legs of an object. The first to the last step of a repeated event is one passage, so that the passages add
 * up to the whole time of the object. */
static void pass_object(maker *m, guint index, const object *of, const step *steps)
{
    for (guint i = 0; i < of->step_count;) {
        guint last = i;
        while (last + 1 < of->step_count && steps[last + 1].place == steps[i].place &&
               steps[last + 1].host == steps[i].host)
            last++;
        if (last > i)
            pass(m, index, of->lifeline, &steps[i], &steps[last]);
        if (last + 1 < of->step_count)
            pass(m, index, of->lifeline, &steps[last], &steps[last + 1]);
        i = last + 1;
    }
}

static void pass_all(maker *m, const walks *all)
{
    for (guint i = 0; i < all->objects->len; i++)
        if (walks_object(all, i)->lifeline < LIFELINES_MAX)
            pass_object(m, i, walks_object(all, i), walks_steps(all, walks_object(all, i)));
}

/* ---- grouping ---- */

static int compare_passages(const void *a, const void *b)
{
    const passage *first = a, *second = b;
    return (first->from_ns > second->from_ns) - (first->from_ns < second->from_ns);
}

static void sum_up(leg *l)
{
    int64_t *took = g_new(int64_t, l->count);
    for (size_t i = 0; i < l->count; i++) {
        took[i] = l->passages[i].took_ns;
        l->total_ns += (double)took[i];
    }
    qsort(took, l->count, sizeof *took, compare_ns);
    l->mean_ns = l->total_ns / (double)l->count;
    l->min_ns = took[0];
    l->low_ns = took[l->count / 10];
    l->median_ns = took[l->count / 2];
    l->high_ns = took[l->count - 1 - l->count / 10];
    l->max_ns = took[l->count - 1];
    g_free(took);
}

static leg *make_leg(const drawing *d, guint64 key, passage *passages, size_t count)
{
    leg *l = g_new0(leg, 1);
    l->lifeline = g_ptr_array_index(d->lifelines, key >> 56);
    l->from_place = key >> 44 & 0xfff;
    l->to_place = key >> 32 & 0xfff;
    l->from = l->lifeline->events[l->from_place];
    l->to = l->lifeline->events[l->to_place];
    l->from_host = key >> 16 & 0xffff;
    l->to_host = key & 0xffff;
    l->passages = passages;
    l->count = count;
    qsort(passages, count, sizeof *passages, compare_passages);
    sum_up(l);
    return l;
}

/* Makes each leg's count of passages the begin of its passages; returns how many passages there are. */
static size_t place_passages(maker *m)
{
    size_t total = 0;
    for (guint i = 0; i < m->ends->len; i++) {
        size_t *end = &g_array_index(m->ends, size_t, i), count = *end;
        *end = total;
        total += count;
    }
    return total;
}

static GPtrArray *make_legs(const maker *m, const drawing *d)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < m->keys->len; i++) {
        size_t first = i > 0 ? g_array_index(m->ends, size_t, i - 1) : 0;
        g_ptr_array_add(list, make_leg(d, g_array_index(m->keys, guint64, i), m->passages + first,
                                       g_array_index(m->ends, size_t, i) - first));
    }
    return list;
}

static gint compare_legs(gconstpointer a, gconstpointer b)
{
    const leg *first = *(leg *const *)a, *second = *(leg *const *)b;
    if (first->lifeline != second->lifeline)
        return first->lifeline < second->lifeline ? -1 : 1;
    if (first->from_place != second->from_place)
        return (int)first->from_place - (int)second->from_place;
    if (first->to_place != second->to_place)
        return (int)first->to_place - (int)second->to_place;
    if (first->from_host != second->from_host)
        return (int)first->from_host - (int)second->from_host;
    return (int)first->to_host - (int)second->to_host;
}

/* A place and a host in 64 bits. */
static guint64 legs_place_of(const leg *l, bool end)
{
    return (guint64)(end ? l->to_place : l->from_place) << 16 | (end ? l->to_host : l->from_host);
}

/* Sets sends in the legs of a lifeline that end where most passages leave for another host. */
static void mark_senders(GPtrArray *list, const drawing_lifeline *lifeline)
{
    GHashTable *leaving = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < list->len; i++) {
        const leg *l = g_ptr_array_index(list, i);
        guint64 place = legs_place_of(l, false);
        if (l->lifeline != lifeline || l->from_host == l->to_host)
            continue;
        if (l->count > GPOINTER_TO_SIZE(g_hash_table_lookup(leaving, &place)))
            g_hash_table_insert(leaving, g_memdup2(&place, sizeof place), GSIZE_TO_POINTER(l->count));
    }
    for (guint i = 0; i < list->len; i++) {
        leg *l = g_ptr_array_index(list, i);
        guint64 place = legs_place_of(l, true);
        if (l->lifeline == lifeline && l->from_host == l->to_host)
            l->sends = GPOINTER_TO_SIZE(g_hash_table_lookup(leaving, &place)) > l->count / 2;
    }
    g_hash_table_destroy(leaving);
}

GPtrArray *legs_make(const walks *all, const drawing *d, passage **passages, uint64_t *left_out)
{
    maker m = {.by_key = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
               .keys = g_array_new(FALSE, FALSE, sizeof(guint64)),
               .ends = g_array_new(FALSE, FALSE, sizeof(size_t))};
    pass_all(&m, all);
    m.passages = g_new(passage, place_passages(&m) + 1);
    pass_all(&m, all);
    GPtrArray *list = make_legs(&m, d);
    g_ptr_array_sort(list, compare_legs);
    for (guint i = 0; i < d->lifelines->len; i++)
        mark_senders(list, g_ptr_array_index(d->lifelines, i));
    for (guint i = 0; i < list->len; i++) {
        leg *l = g_ptr_array_index(list, i);
        for (size_t k = 0; k < l->count; k++)
            l->passages[k].leg = i;
    }
    g_hash_table_destroy(m.by_key);
    g_array_free(m.keys, TRUE);
    g_array_free(m.ends, TRUE);
    *passages = m.passages;
    *left_out = m.left_out;
    return list;
}
