/* nldiag --compare: what changed from one log to another. */
#include "config.h"

#include "diag/report.h"

#include "requests/printable.h"

#include <math.h>

enum { SHOWN = 8 };
#define CHANGE_MIN 0.3

/* A leg or a resource in both logs. */
typedef struct change {
    const char *name;
    double before, after; /* time per object on the leg; mean of the resource */
    double weight;
} change;

typedef struct changes {
    GHashTable *by_name; /* names are interned */
    GPtrArray *list;
} changes;

static double objects_of(const observed *o)
{
    return MAX(observed_objects(o)->len, 1);
}

static void changes_add(changes *all, const char *name, double value, bool is_after)
{
    change *c = g_hash_table_lookup(all->by_name, name);
    if (c == NULL) {
        c = g_new0(change, 1);
        c->name = name;
        g_hash_table_insert(all->by_name, (gpointer)name, c);
        g_ptr_array_add(all->list, c);
    }
    *(is_after ? &c->after : &c->before) += value;
}

static void add_legs(changes *all, const observed *o, bool is_after)
{
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        changes_add(all, text_leg(o, l), l->total_ns / objects_of(o), is_after);
    }
}

static void add_resources(changes *all, const observed *o, bool is_after)
{
    const GPtrArray *resources = observed_resources(o);
    for (guint i = 0; i < resources->len; i++) {
        const resource *r = g_ptr_array_index(resources, i);
        double mean = resource_mean(r, observed_from_ns(o), observed_to_ns(o));
        if (!isnan(mean))
            changes_add(all,
                        text_format("%s %s%s%s on %s", r->event, r->field, *r->instance != '\0' ? " " : "", r->instance,
                                    observed_host(o, r->host)),
                        mean, is_after);
    }
}

static gint compare_weights(gconstpointer a, gconstpointer b)
{
    const change *first = *(change *const *)a, *second = *(change *const *)b;
    return (fabs(first->weight) < fabs(second->weight)) - (fabs(first->weight) > fabs(second->weight));
}

/* Returns the changes, the largest first; relative ones, or else absolute ones. */
static GPtrArray *compare_logs(const observed *before, const observed *after,
                               void (*add)(changes *all, const observed *o, bool is_after), bool relative)
{
    changes all = {g_hash_table_new(g_direct_hash, g_direct_equal), g_ptr_array_new_with_free_func(g_free)};
    add(&all, before, false);
    add(&all, after, true);
    for (guint i = 0; i < all.list->len; i++) {
        change *c = g_ptr_array_index(all.list, i);
        double most = relative ? MAX(fabs(c->before), fabs(c->after)) : 1;
        c->weight = most > 0 ? (c->after - c->before) / most : 0;
    }
    g_ptr_array_sort(all.list, compare_weights);
    g_hash_table_destroy(all.by_name);
    return all.list;
}

static void print_legs(const observed *before, const observed *after)
{
    GPtrArray *list = compare_logs(before, after, add_legs, false);
    printable_print("\nWhere an object's time changed:\n");
    for (guint i = 0; i < list->len && i < SHOWN; i++) {
        const change *c = g_ptr_array_index(list, i);
        printable_print("  %c%-9s %s: %s, was %s\n", c->weight < 0 ? '-' : '+', text_ns(fabs(c->weight)), c->name,
                        text_ns(c->after), text_ns(c->before));
    }
    g_ptr_array_free(list, TRUE);
}

static void print_resources(const observed *before, const observed *after)
{
    GPtrArray *list = compare_logs(before, after, add_resources, true);
    for (guint i = 0; i < list->len && i < SHOWN; i++) {
        const change *c = g_ptr_array_index(list, i);
        if (fabs(c->weight) < CHANGE_MIN)
            break;
        printable_print("%s  %s: %.4g, was %.4g\n", i == 0 ? "\nWhat else changed:\n" : "", c->name, c->after,
                        c->before);
    }
    g_ptr_array_free(list, TRUE);
}

static double objects_per_second(const observed *o)
{
    double wall = (double)(observed_to_ns(o) - observed_from_ns(o)) / 1e9;
    return wall > 0 ? objects_of(o) / wall : 0;
}

void report_changes(const observed *before, const observed *after)
{
    printable_print("An object takes %s on average, was %s; ", text_ns(observed_total_ns(after) / objects_of(after)),
                    text_ns(observed_total_ns(before) / objects_of(before)));
    printable_print("%.4g objects/s, was %.4g\n", objects_per_second(after), objects_per_second(before));
    print_legs(before, after);
    print_resources(before, after);
}
