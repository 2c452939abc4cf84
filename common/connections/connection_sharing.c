/*
 * Finds the connections that share a path: those between the same two addresses at the same time. For each pair of
 * addresses, the module computes the bytes that all its connections have carried up to a time. The module assumes that
 * the rate of each connection is constant from its first to its last record.
 */
#include "config.h"

#include "connections/connection_entry.h"

#include <string.h>

/* A connection counts only if it carried at least this share of the bytes between its two addresses. */
#define SHARE_MIN 0.01

/* The start or the end of a connection. */
typedef struct sharing_step {
    int64_t time_ns;
    double rate;  /* change of the rate, bytes per nanosecond */
    double bytes; /* bytes carried by all connections up to this time */
    double sum;   /* rate of all connections after this time, bytes per nanosecond */
    bool begins;
    guint begun, ended; /* numbers of connections that have begun and ended up to this time */
} sharing_step;

static gint compare_steps(gconstpointer a, gconstpointer b)
{
    const sharing_step *x = a, *y = b;
    return x->time_ns != y->time_ns ? (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns) : y->begins - x->begins;
}

/*
 * Returns the last step at or before the time or, if `before` is true, the last step before the time. Returns NULL if
 * there is no such step.
 */
static const sharing_step *find_step(const GArray *steps, int64_t time_ns, bool before)
{
    guint low = 0, high = steps->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        int64_t at_ns = g_array_index(steps, sharing_step, middle).time_ns;
        if (before ? at_ns < time_ns : at_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &g_array_index(steps, sharing_step, low - 1) : NULL;
}

static double bytes_until(const GArray *steps, int64_t time_ns)
{
    const sharing_step *step = find_step(steps, time_ns, false);
    return step != NULL ? step->bytes + step->sum * (double)((uint64_t)time_ns - (uint64_t)step->time_ns) : 0;
}

static void add_steps(GArray *steps, const connection_result *r)
{
    double rate = r->bytes / (double)((uint64_t)r->end_ns - (uint64_t)r->begin_ns);
    sharing_step begin = {.time_ns = r->begin_ns, .rate = rate, .begins = true},
                 end = {.time_ns = r->end_ns, .rate = -rate};
    g_array_append_val(steps, begin);
    g_array_append_val(steps, end);
}

static void sum_steps(GArray *steps)
{
    g_array_sort(steps, compare_steps);
    const sharing_step *last = NULL;
    for (guint i = 0; i < steps->len; i++) {
        sharing_step *step = &g_array_index(steps, sharing_step, i);
        step->sum = step->rate;
        step->begun = step->begins;
        step->ended = !step->begins;
        if (last != NULL) {
            step->bytes = last->bytes + last->sum * (double)((uint64_t)step->time_ns - (uint64_t)last->time_ns);
            step->sum += last->sum;
            step->begun += last->begun;
            step->ended += last->ended;
        }
        last = step;
    }
}

static void share_pair(const GPtrArray *pair)
{
    double all_bytes = 0;
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(sharing_step));
    for (guint i = 0; i < pair->len; i++)
        all_bytes += ((const connection_result *)g_ptr_array_index(pair, i))->bytes;
    for (guint i = 0; i < pair->len; i++) {
        const connection_result *r = g_ptr_array_index(pair, i);
        if (r->end_ns > r->begin_ns && r->bytes >= SHARE_MIN * all_bytes)
            add_steps(steps, r);
    }
    sum_steps(steps);
    for (guint i = 0; i < pair->len; i++) {
        connection_result *r = g_ptr_array_index(pair, i);
        if (r->end_ns <= r->begin_ns || r->bytes < SHARE_MIN * all_bytes)
            continue;
        const sharing_step *begun = find_step(steps, r->end_ns, true), *ended = find_step(steps, r->begin_ns, false);
        r->sharing = begun->begun - ended->ended - 1;
        r->shared_rate = (bytes_until(steps, r->end_ns) - bytes_until(steps, r->begin_ns)) /
                         (double)((uint64_t)r->end_ns - (uint64_t)r->begin_ns) * 1e9;
    }
    g_array_unref(steps);
}

void connection_find_sharing(const GPtrArray *results)
{
    GHashTable *pairs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < results->len; i++) {
        connection_result *r = g_ptr_array_index(results, i);
        char *name = connection_pair_name(r);
        GPtrArray *pair = g_hash_table_lookup(pairs, name);
        if (pair == NULL) {
            pair = g_ptr_array_new();
            g_hash_table_insert(pairs, g_strdup(name), pair);
        }
        g_ptr_array_add(pair, r);
        g_free(name);
    }
    GHashTableIter iter;
    gpointer pair;
    g_hash_table_iter_init(&iter, pairs);
    while (g_hash_table_iter_next(&iter, NULL, &pair))
        share_pair(pair);
    g_hash_table_destroy(pairs);
}
