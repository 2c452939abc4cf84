#include "config.h"

#include "stat/connection_rows.h"

#include <stdlib.h>
#include <string.h>

static const char *const groups[] = {"hosts", "program", "port"};

bool connections_can_group(const char *by)
{
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++)
        if (strcmp(by, groups[i]) == 0)
            return true;
    return false;
}

/* Returns the address of ADDRESS:PORT, which the caller frees. */
static char *address_of(const char *end)
{
    const char *colon = strrchr(end, ':');
    return g_strndup(end, colon != NULL ? (size_t)(colon - end) : strlen(end));
}

static int port_of(const char *end)
{
    const char *colon = strrchr(end, ':');
    return colon != NULL ? atoi(colon + 1) : 0;
}

/* Returns the name of the row to which a connection belongs. The caller frees it. */
static char *row_name(const connection_result *r, const char *by)
{
    if (by == NULL)
        return g_strdup_printf("%s > %s", r->local, r->peer);
    if (strcmp(by, "program") == 0)
        return g_strdup(r->program[0] != '\0' ? r->program : "(unknown)");
    if (strcmp(by, "port") == 0) /* assume that the service is at the end with the smaller port */
        return g_strdup_printf("%d", MIN(port_of(r->local), port_of(r->peer)));
    char *from = address_of(r->local), *to = address_of(r->peer), *name = g_strdup_printf("%s > %s", from, to);
    g_free(from);
    g_free(to);
    return name;
}

/* Merges two lists of slices in order of time, and adds up slices with the same index. Returns the sum, and frees
 * `into`. */
static GArray *add_slices(GArray *into, const GArray *from)
{
    static const connection_slice end = {.index = INT64_MAX};
    GArray *sum = g_array_new(FALSE, TRUE, sizeof(connection_slice));
    guint a = 0, b = 0;
    while (a < into->len || b < from->len) {
        const connection_slice *x = a < into->len ? &g_array_index(into, connection_slice, a) : &end;
        const connection_slice *y = b < from->len ? &g_array_index(from, connection_slice, b) : &end;
        connection_slice slice = y->index < x->index ? *y : *x;
        if (x->index == y->index) {
            slice.bytes += y->bytes;
            slice.retransmitted += y->retransmitted;
            for (int c = 0; c < CAUSE_COUNT; c++)
                slice.cause_ns[c] += y->cause_ns[c];
        }
        a += x->index == slice.index;
        b += y->index == slice.index;
        g_array_append_val(sum, slice);
    }
    g_array_unref(into);
    return sum;
}

static void row_add(connections_row *row, const connection_result *r)
{
    connection_result *sum = &row->sum;
    if (row->connections++ == 0) {
        *sum = *r;
        if (r->slices != NULL)
            g_array_ref(r->slices);
        return;
    }
    if (r->slices != NULL)
        sum->slices = add_slices(sum->slices, r->slices);
    sum->wall_ns += r->wall_ns;
    sum->bytes += r->bytes;
    sum->total += r->total;
    sum->intervals += r->intervals;
    /* a row has connections of one distance, so either all or none of its round-trip times are 0 (unknown) */
    sum->rtt_min_ns = MIN(sum->rtt_min_ns, r->rtt_min_ns);
    sum->segments += r->segments;
    sum->retransmitted += r->retransmitted;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        sum->cause_ns[c] += r->cause_ns[c];
        sum->estimated_ns[c] += r->estimated_ns[c];
        sum->first = sum->cause_ns[c] > sum->cause_ns[sum->first] ? (connection_cause)c : sum->first;
    }
    sum->rate = sum->wall_ns > 0 ? sum->bytes / sum->wall_ns * 1e9 : 0;
}

/* Returns the key for sorting results in descending order. */
static double sort_value(const connection_result *r, connections_sort sort)
{
    switch (sort) {
    case SORT_RATE:
        return -r->rate;
    case SORT_TIME:
        return r->wall_ns;
    case SORT_RTT:
        return r->rtt_min_ns;
    case SORT_RETRANSMITS:
        return r->retransmitted;
    default:
        return r->total;
    }
}

static int compare_results(const connection_result *x, const connection_result *y, connections_sort sort)
{
    double a = sort_value(x, sort), b = sort_value(y, sort);
    if (a != b)
        return a > b ? -1 : 1;
    int order = strcmp(x->local, y->local);
    return order != 0 ? order : strcmp(x->peer, y->peer);
}

static int compare_rows(gconstpointer a, gconstpointer b, gpointer sort)
{
    return compare_results(&(*(connections_row *const *)a)->sum, &(*(connections_row *const *)b)->sum,
                           *(connections_sort *)sort);
}

static int compare_pointers(gconstpointer a, gconstpointer b, gpointer sort)
{
    return compare_results(*(connection_result *const *)a, *(connection_result *const *)b, *(connections_sort *)sort);
}

void connection_results_sort(GPtrArray *results, connections_sort sort)
{
    g_ptr_array_sort_with_data(results, compare_pointers, &sort);
}

static void row_free(gpointer data)
{
    connections_row *row = data;
    g_clear_pointer(&row->sum.slices, g_array_unref);
    g_free((char *)row->name);
    g_free(row);
}

GPtrArray *connection_rows_new(const GPtrArray *results, const char *by, connections_sort sort)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(row_free);
    GHashTable *known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < results->len; i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        char *name = row_name(r, by), *key = g_strdup_printf("%d %s", (int)r->distance, name);
        connections_row *row = by != NULL ? g_hash_table_lookup(known, key) : NULL;
        if (row == NULL) {
            row = g_new0(connections_row, 1);
            row->name = g_strdup(name);
            g_hash_table_replace(known, g_strdup(key), row);
            g_ptr_array_add(rows, row);
        }
        row_add(row, r);
        g_free(key);
        g_free(name);
    }
    g_hash_table_destroy(known);
    g_ptr_array_sort_with_data(rows, compare_rows, &sort);
    return rows;
}
