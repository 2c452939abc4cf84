/*
 * Finds wrong clocks from messages: two successive steps of an object, on hosts A and B, cannot be in reverse order. If
 * B's clock is ahead by x, the time from A to B seems x longer, and the time back x shorter. The shortest times in both
 * directions are therefore bounds of x (Duda, Harrus, Haddad, Bernard, "Estimating Global Time in Distributed Systems",
 * ICDCS 1987; this module does not estimate drift). A clock is corrected only if the share VIOLATIONS of its messages
 * is reversed, because some steps are not really successive.
 */
#include "config.h"

#include "diag/numbers.h"
#include "diag/observed_inside.h"

#include "requests/hash64.h"

#include <math.h>

enum { DELTAS_MAX = 1 << 16, DELTAS_MIN = 5 };
#define VIOLATIONS 0.1

/* The apparent times of messages from one host to another. */
typedef struct way {
    guint64 key; /* from host, to host */
    GArray *took_ns;
    uint64_t count, violations;
} way;

static guint64 key_of(guint from, guint to)
{
    return (guint64)from << 32 | to;
}

static void free_way(gpointer data)
{
    way *w = data;
    g_array_free(w->took_ns, TRUE);
    g_free(w);
}

static void add_message(GHashTable *ways, guint from, guint to, int64_t took_ns)
{
    guint64 key = key_of(from, to);
    way *w = g_hash_table_lookup(ways, &key);
    if (w == NULL) {
        w = g_new0(way, 1);
        w->key = key;
        w->took_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
        g_hash_table_insert(ways, &w->key, w);
    }
    w->count++;
    w->violations += took_ns < 0;
    if (w->took_ns->len < DELTAS_MAX)
        g_array_append_val(w->took_ns, took_ns);
}

/* By place, then time: only the first step at each place counts. */
static gint compare_places(gconstpointer a, gconstpointer b)
{
    const step *first = a, *second = b;
    if (first->place != second->place)
        return first->place < second->place ? -1 : 1;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

int step_compare(const void *a, const void *b)
{
    const step *first = a, *second = b;
    if (first->time_ns != second->time_ns)
        return first->time_ns < second->time_ns ? -1 : 1;
    return (int)first->place - (int)second->place;
}

static GHashTable *find_messages(const walks *all, guint reference)
{
    GHashTable *ways = g_hash_table_new_full(hash64, g_int64_equal, NULL, free_way);
    GArray *ordered = g_array_new(FALSE, FALSE, sizeof(step));
    for (guint i = 0; i < all->objects->len; i++) {
        const object *of = walks_object(all, i);
        g_array_set_size(ordered, 0);
        g_array_append_vals(ordered, walks_steps(all, of), of->step_count);
        g_array_sort(ordered, compare_places);
        const step *before = NULL;
        for (guint k = 0; k < ordered->len; k++) {
            const step *now = &g_array_index(ordered, step, k);
            if (before != NULL && now->place == before->place)
                continue;
            if (before != NULL && now->host != 0 && before->host != 0 && now->host != before->host &&
                (now->host == reference || before->host == reference))
                add_message(ways, before->host, now->host, now->time_ns - before->time_ns);
            before = now;
        }
    }
    g_array_free(ordered, TRUE);
    return ways;
}

/* Finds the shortest time without the shortest hundredth, whose steps may not be successive. */
static bool shortest(GHashTable *ways, guint from, guint to, int64_t *took_ns, uint64_t *count, uint64_t *violations)
{
    guint64 key = key_of(from, to);
    way *w = g_hash_table_lookup(ways, &key);
    if (w == NULL || w->took_ns->len < DELTAS_MIN)
        return false;
    g_array_sort(w->took_ns, compare_ns);
    *took_ns = g_array_index(w->took_ns, int64_t, w->took_ns->len / 100);
    *count += w->count;
    *violations += w->violations;
    return true;
}

/* Finds the error of a host's clock against that of reference. Returns false if none exists. */
static bool find_error(GHashTable *ways, guint host, guint reference, clock_error *found)
{
    int64_t there, back;
    uint64_t count = 0, violations = 0;
    bool has_there = shortest(ways, reference, host, &there, &count, &violations);
    bool has_back = shortest(ways, host, reference, &back, &count, &violations);
    if ((!has_there && !has_back) || (double)violations < VIOLATIONS * (double)count)
        return false;
    /* Without a way back, the smallest error that explains the times. */
    int64_t most = has_there ? there : MAX(-back, 0), least = has_back ? -back : MIN(there, 0);
    *found = (clock_error){.host = host,
                           .reference = reference,
                           .least_ns = MIN(least, most),
                           .most_ns = MAX(least, most),
                           .violations = violations};
    found->taken_ns = found->least_ns / 2 + found->most_ns / 2;
    return true;
}

/* Returns the host with the most steps, mostly the client. */
static guint reference_host(const walks *all, guint host_count)
{
    uint64_t *visits = g_new0(uint64_t, host_count + 1);
    guint most = 0;
    for (size_t i = 0; i < all->steps->len; i++)
        visits[g_array_index(all->steps, step, i).host]++;
    for (guint h = 1; h < host_count; h++)
        if (most == 0 || visits[h] > visits[most])
            most = h;
    g_free(visits);
    return most;
}

int64_t clocks_taken_ns(const GArray *errors, guint host)
{
    for (guint i = 0; i < errors->len; i++)
        if (g_array_index(errors, clock_error, i).host == host)
            return g_array_index(errors, clock_error, i).taken_ns;
    return 0;
}

static void apply(walks *all, const GArray *errors, guint host_count)
{
    int64_t *taken = g_new0(int64_t, host_count + 1);
    for (guint h = 0; h < host_count; h++)
        taken[h] = clocks_taken_ns(errors, h);
    for (guint i = 0; i < all->objects->len; i++) {
        const object *of = walks_object(all, i);
        step *steps = walks_steps(all, of);
        for (guint k = 0; k < of->step_count; k++)
            steps[k].time_ns -= taken[steps[k].host];
        qsort(steps, of->step_count, sizeof *steps, step_compare);
    }
    g_free(taken);
}

GArray *clocks_correct(walks *all, guint host_count)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(clock_error));
    guint reference = host_count > 2 ? reference_host(all, host_count) : 0;
    if (reference == 0)
        return errors;
    GHashTable *ways = find_messages(all, reference);
    for (guint h = 1; h < host_count; h++) {
        clock_error found;
        if (h != reference && find_error(ways, h, reference, &found))
            g_array_append_val(errors, found);
    }
    g_hash_table_destroy(ways);
    if (errors->len > 0)
        apply(all, errors, host_count);
    return errors;
}
