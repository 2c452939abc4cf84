#include "config.h"

#include "diag/report.h"

#include "requests/printable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

/* A leg, or a resource, in both logs. */
typedef struct change {
    char *name;
    double before, after, weight; /* an object's time on it; a resource's mean */
} change;

static double objects_of(const observed *o)
{
    return MAX(observed_objects(o)->len, 1);
}

static void report_changes_add(GHashTable *changes, char *name, double value, bool is_after)
{
    change *c = g_hash_table_lookup(changes, name);
    if (c == NULL) {
        c = g_new0(change, 1);
        c->name = name;
        g_hash_table_insert(changes, c->name, c);
    } else {
        g_free(name);
    }
    *(is_after ? &c->after : &c->before) += value;
}

static void add_legs(GHashTable *changes, const observed *o, bool is_after)
{
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        report_changes_add(changes, text_leg(o, l), l->total_ns / objects_of(o), is_after);
    }
}

static void add_resources(GHashTable *changes, const observed *o, bool is_after)
{
    const GPtrArray *all = observed_resources(o);
    for (guint i = 0; i < all->len; i++) {
        const resource *r = g_ptr_array_index(all, i);
        double mean = resource_mean(r, observed_from_ns(o), observed_to_ns(o));
        if (!isnan(mean))
            report_changes_add(changes,
                               g_strdup_printf("%s %s%s%s on %s", r->event, r->field, *r->instance != '\0' ? " " : "",
                                               r->instance, observed_host(o, r->host)),
                               mean, is_after);
    }
}

static int compare_weights(const void *a, const void *b)
{
    const change *first = *(change *const *)a, *second = *(change *const *)b;
    return (fabs(first->weight) < fabs(second->weight)) - (fabs(first->weight) > fabs(second->weight));
}

static change **sorted(GHashTable *changes, guint *count)
{
    gpointer *values = g_hash_table_get_keys_as_array(changes, count);
    change **list = g_new(change *, *count + 1);
    for (guint i = 0; i < *count; i++)
        list[i] = g_hash_table_lookup(changes, values[i]);
    g_free(values);
    return list;
}

static void free_change(gpointer data)
{
    change *c = data;
    g_free(c->name);
    g_free(c);
}

static void print_legs(const observed *before, const observed *after)
{
    GHashTable *changes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_change);
    add_legs(changes, before, false);
    add_legs(changes, after, true);
    guint count;
    change **list = sorted(changes, &count);
    for (guint i = 0; i < count; i++)
        list[i]->weight = list[i]->after - list[i]->before;
    qsort(list, count, sizeof *list, compare_weights);
    printable_print("\nWhere an object's time changed:\n");
    for (guint i = 0; i < count && i < SHOWN; i++) {
        char *from = text_ns(list[i]->before), *to = text_ns(list[i]->after), *by = text_ns(fabs(list[i]->weight));
        printable_print("  %c%-9s %s: %s, was %s\n", list[i]->weight < 0 ? '-' : '+', by, list[i]->name, to, from);
        g_free(from);
        g_free(to);
        g_free(by);
    }
    g_free(list);
    g_hash_table_destroy(changes);
}

/* Those that changed by most of themselves. */
static void print_resources(const observed *before, const observed *after)
{
    GHashTable *changes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_change);
    add_resources(changes, before, false);
    add_resources(changes, after, true);
    guint count, shown = 0;
    change **list = sorted(changes, &count);
    for (guint i = 0; i < count; i++) {
        double most = MAX(fabs(list[i]->before), fabs(list[i]->after));
        list[i]->weight = most > 0 ? (list[i]->after - list[i]->before) / most : 0;
    }
    qsort(list, count, sizeof *list, compare_weights);
    for (guint i = 0; i < count && shown < SHOWN; i++) {
        if (fabs(list[i]->weight) < 0.3)
            break;
        printable_print("%s  %s: %.4g, was %.4g\n", shown++ == 0 ? "\nWhat else changed:\n" : "", list[i]->name,
                        list[i]->after, list[i]->before);
    }
    g_free(list);
    g_hash_table_destroy(changes);
}

void report_changes(const observed *before, const observed *after)
{
    char *was = text_ns(observed_total_ns(before) / objects_of(before)),
         *is = text_ns(observed_total_ns(after) / objects_of(after));
    double wall_before = (double)(observed_to_ns(before) - observed_from_ns(before)) / 1e9,
           wall_after = (double)(observed_to_ns(after) - observed_from_ns(after)) / 1e9;
    printable_print("An object takes %s on the average, it was %s; ", is, was);
    printable_print("%.4g objects/s, it was %.4g\n", wall_after > 0 ? objects_of(after) / wall_after : 0,
                    wall_before > 0 ? objects_of(before) / wall_before : 0);
    print_legs(before, after);
    print_resources(before, after);
    g_free(was);
    g_free(is);
}
