#include "config.h"

#include "diag/compare.h"

#include "program/json_document.h"
#include "requests/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, RESAMPLES = 1000, REQUESTS_EACH_MIN = 20, CHANGES_SHOWN = 10 };

/* The sums for a place in one of the logs, for each block of requests. */
typedef struct place_sums {
    double time_ns[BLOCKS], visits[BLOCKS];
} place_sums;

/* The requests of one side, in blocks by their order. */
typedef struct side {
    const visits *v;
    place_sums *places; /* indexed by the number of the place */
    double requests[BLOCKS], time_ns[BLOCKS];
} side;

typedef struct change {
    char *name;
    double before_ns, after_ns;         /* mean per request */
    double before_visits, after_visits; /* mean per request */
    double low_ns, high_ns;             /* interval of the difference */
} change;

static side *side_new(const visits *v)
{
    side *s = g_new0(side, 1);
    s->v = v;
    s->places = g_new0(place_sums, v->places->len + 1);
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        guint block = (guint)((uint64_t)i * BLOCKS / v->requests->len);
        s->requests[block]++;
        s->time_ns[block] += (double)(q->to_ns - q->from_ns);
        for (uint32_t n = 0; n < q->count; n++) {
            const visit *x = visit_at(v, q->first + n);
            place_sums *p = &s->places[place_of_visit(v, x)];
            p->time_ns[block] += (double)x->path_ns;
            p->visits[block]++;
        }
    }
    return s;
}

static void side_free(side *s)
{
    g_free(s->places);
    g_free(s);
}

static double ratio_of(const double *sums, const double *requests, const uint8_t *blocks)
{
    double sum = 0, count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        int b = blocks != NULL ? blocks[i] : i;
        sum += sums[b];
        count += requests[b];
    }
    return count > 0 ? sum / count : 0;
}

/* Computes the interval of the difference of the means per request. A side without visits has NULL instead of sums. */
static void bootstrap(const side *before, const double *old, const side *after, const double *new, double *low,
                      double *high)
{
    double differences[RESAMPLES];
    GRand *random = g_rand_new_with_seed(1);
    for (int n = 0; n < RESAMPLES; n++) {
        uint8_t blocks[2][BLOCKS];
        for (int i = 0; i < 2 * BLOCKS; i++)
            blocks[i / BLOCKS][i % BLOCKS] = (uint8_t)g_rand_int_range(random, 0, BLOCKS);
        differences[n] = (new != NULL ? ratio_of(new, after->requests, blocks[1]) : 0) -
                         (old != NULL ? ratio_of(old, before->requests, blocks[0]) : 0);
    }
    g_rand_free(random);
    qsort(differences, RESAMPLES, sizeof *differences, compare_double);
    *low = differences[RESAMPLES / 200];
    *high = differences[RESAMPLES - 1 - RESAMPLES / 200];
}

static int by_difference(const void *a, const void *b)
{
    const change *x = a, *y = b;
    double first = fabs(x->after_ns - x->before_ns), second = fabs(y->after_ns - y->before_ns);
    return (first < second) - (first > second);
}

static change make_change(const side *before, const place_sums *old, const side *after, const place_sums *new,
                          char *name)
{
    change c = {.name = name};
    if (old != NULL) {
        c.before_ns = ratio_of(old->time_ns, before->requests, NULL);
        c.before_visits = ratio_of(old->visits, before->requests, NULL);
    }
    if (new != NULL) {
        c.after_ns = ratio_of(new->time_ns, after->requests, NULL);
        c.after_visits = ratio_of(new->visits, after->requests, NULL);
    }
    bootstrap(before, old != NULL ? old->time_ns : NULL, after, new != NULL ? new->time_ns : NULL, &c.low_ns,
              &c.high_ns);
    return c;
}

/* Returns the places that have changed, the largest change first. Ignores hosts and connections: peers are one
 * place. */
static GArray *find_changes(const side *before, const side *after)
{
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(change));
    GHashTable *new = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < after->v->places->len; i++)
        g_hash_table_insert(new, text_place(after->v, i, NULL), &after->places[i]);
    for (guint i = 0; i < before->v->places->len; i++) {
        char *name = text_place(before->v, i, NULL);
        change c = make_change(before, &before->places[i], after, g_hash_table_lookup(new, name), name);
        g_hash_table_remove(new, name);
        g_array_append_val(changes, c);
    }
    GHashTableIter iterator;
    gpointer name, sums;
    g_hash_table_iter_init(&iterator, new);
    while (g_hash_table_iter_next(&iterator, &name, &sums)) {
        change c = make_change(before, NULL, after, sums, g_strdup(name));
        g_array_append_val(changes, c);
    }
    g_hash_table_destroy(new);
    guint kept = 0;
    for (guint i = 0; i < changes->len; i++) {
        change c = g_array_index(changes, change, i);
        if (c.low_ns > 0 || c.high_ns < 0)
            g_array_index(changes, change, kept++) = c;
        else
            g_free(c.name);
    }
    g_array_set_size(changes, kept);
    if (kept > 0)
        qsort(changes->data, kept, sizeof(change), by_difference);
    return changes;
}

static void print_change(const change *c)
{
    double difference = c->after_ns - c->before_ns;
    char *by = text_ns(difference), *low = text_ns(c->low_ns), *high = text_ns(c->high_ns),
         *old = text_ns(c->before_visits > 0 ? c->before_ns / c->before_visits : 0),
         *new = text_ns(c->after_visits > 0 ? c->after_ns / c->after_visits : 0);
    printable_print("  %s%s a request (%s to %s): %s\n      %.2f visits of %s, before %.2f of %s\n",
                    difference > 0 ? "+" : "", by, low, high, c->name, c->after_visits, new, c->before_visits, old);
    g_free(by);
    g_free(low);
    g_free(high);
    g_free(old);
    g_free(new);
}

static void print_changes_text(const change *all, const GArray *changes, compare_result result, guint requests_before,
                               guint requests_after)
{
    static const char *const results[] = {"no change found", "slower", "faster"};
    double relative = (all->after_ns - all->before_ns) / all->before_ns;
    char *old = text_ns(all->before_ns), *new = text_ns(all->after_ns);
    printable_print("%s: a request takes %s, before %s (%+.1f %%; 99 %% interval %+.1f to %+.1f %%)\n", results[result],
                    new, old, 100 * relative, 100 * all->low_ns / all->before_ns, 100 * all->high_ns / all->before_ns);
    printable_print("%u requests before, %u after\n", requests_before, requests_after);
    g_free(old);
    g_free(new);
    if (changes->len > 0)
        printable_print("\nWhat changed:\n");
    for (guint i = 0; i < changes->len && i < CHANGES_SHOWN; i++)
        print_change(&g_array_index(changes, change, i));
}

static json_object *change_object(const change *c)
{
    json_object *object = json_object_new_object();
    json_add_text(object, "place", c->name);
    json_add_double(object, "before_ns", c->before_ns);
    json_add_double(object, "after_ns", c->after_ns);
    json_add_double(object, "low_ns", c->low_ns);
    json_add_double(object, "high_ns", c->high_ns);
    json_add_double(object, "visits_before", c->before_visits);
    json_add_double(object, "visits_after", c->after_visits);
    return object;
}

static void print_changes_json(const change *all, const GArray *changes, compare_result result)
{
    static const char *const results[] = {"equal", "slower", "faster"};
    json_object *document = json_object_new_object(), *list = json_object_new_array();
    json_add_text(document, "verdict", results[result]);
    json_object_object_add(document, "request", change_object(all));
    for (guint i = 0; i < changes->len; i++)
        json_object_array_add(list, change_object(&g_array_index(changes, change, i)));
    json_object_object_add(document, "changes", list);
    json_document_write(document, stdout);
}

compare_result compare_print(const visits *before, const visits *after, bool json)
{
    if (before->requests->len < REQUESTS_EACH_MIN || after->requests->len < REQUESTS_EACH_MIN ||
        before->total_ns <= 0) {
        printable_print("cannot tell: a comparison needs at least %d requests before and after; there are %u and %u\n",
                        REQUESTS_EACH_MIN, before->requests->len, after->requests->len);
        return COMPARE_CANNOT_TELL;
    }
    side *old = side_new(before), *new = side_new(after);
    change all = {.before_ns = ratio_of(old->time_ns, old->requests, NULL),
                  .after_ns = ratio_of(new->time_ns, new->requests, NULL)};
    bootstrap(old, old->time_ns, new, new->time_ns, &all.low_ns, &all.high_ns);
    compare_result result = all.low_ns > 0 ? COMPARE_SLOWER : all.high_ns < 0 ? COMPARE_FASTER : COMPARE_EQUAL;
    GArray *changes = find_changes(old, new);
    if (json)
        print_changes_json(&all, changes, result);
    else
        print_changes_text(&all, changes, result, before->requests->len, after->requests->len);
    for (guint i = 0; i < changes->len; i++)
        g_free(g_array_index(changes, change, i).name);
    g_array_free(changes, TRUE);
    side_free(old);
    side_free(new);
    return result;
}
