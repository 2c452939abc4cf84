#include "config.h"

#include "stat/compare.h"

#include "program/json_document.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * The rows that have the same name in several logs. Logs may assign different numbers to the same name, so the texts of
 * names are compared.
 */
typedef struct compared_row {
    char *name;
    tally_row **rows; /* one element per log; NULL: the log has no such row */
} compared_row;

static void compared_row_free(gpointer user)
{
    compared_row *row = user;
    g_free(row->name);
    g_free(row->rows);
    g_free(row);
}

/*
 * Returns the rows of all logs: first the rows of the first log in their order, then the remaining rows of the second
 * log, and so on.
 */
static GPtrArray *compare_rows(const report_subject *logs, int count)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(compared_row_free);
    GHashTable *by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = 0; i < count; i++)
        for (guint k = 0; k < logs[i].tally->rows->len; k++) {
            tally_row *own = g_ptr_array_index(logs[i].tally->rows, k);
            char *name = report_row_name(&logs[i], &own->key, true);
            compared_row *row = g_hash_table_lookup(by_name, name);
            if (row == NULL) {
                row = g_new0(compared_row, 1);
                row->name = name;
                row->rows = g_new0(tally_row *, count);
                g_hash_table_insert(by_name, name, row);
                g_ptr_array_add(all, row);
            } else {
                g_free(name);
            }
            row->rows[i] = row->rows[i] == NULL ? own : row->rows[i];
        }
    g_hash_table_destroy(by_name);
    return all;
}

/* Returns the last log's mean divided by the first log's mean, or -1 if one of them is missing or 0. */
static double ratio_of(const compared_row *row, int count)
{
    double first_ns = row->rows[0] != NULL ? nl_distribution_mean(&row->rows[0]->times) : 0;
    return first_ns > 0 && row->rows[count - 1] != NULL ? nl_distribution_mean(&row->rows[count - 1]->times) / first_ns
                                                        : -1;
}

static void compare_print_row(const report_subject *logs, int count, const compared_row *row)
{
    char text[UNITS_SIZE];
    for (int i = 0; i < count; i++) {
        double all_ns = logs[i].tally->totals.total;
        if (row->rows[i] == NULL) {
            printf(" %11s %11s %7s", "-", "-", "-");
            continue;
        }
        nl_distribution *times = &row->rows[i]->times;
        printf(" %11s", units_time(nl_distribution_mean(times), text));
        printf(" %11s %5.1f %%", units_time((double)nl_distribution_quantile(times, 0.99), text),
               all_ns > 0 ? 100 * row->rows[i]->path_ns / all_ns : 0);
    }
    double ratio = ratio_of(row, count);
    if (ratio >= 0)
        printf(" %8.2f\n", ratio);
    else
        printf(" %8s\n", "-");
}

void compare_print(const report_subject *logs, char *const *names, int count)
{
    char *ids = g_strjoinv(", ", (char **)logs[0].ids), text[UNITS_SIZE];
    int width = 0;
    printf("Requests by %s\n", ids);
    for (int i = 0; i < count; i++) {
        const tally *t = logs[i].tally;
        width = MAX(width, report_name_width(&logs[i], true));
        printf("  %d  ", i + 1);
        report_print_padded(names[i], 0);
        printf(": %" PRIu64 ", %s each", t->requests, units_time(nl_distribution_mean(&t->totals), text));
        printf("; %" PRIu64 " failed\n", t->failed);
    }
    printf("\n  %-*s", width, "span or edge");
    for (int i = 0; i < count; i++)
        printf(" %9s %d %9s %d %5s %d", "mean", i + 1, "p99", i + 1, "share", i + 1);
    printf(" %6s/1\n", "mean");
    GPtrArray *all = compare_rows(logs, count);
    for (guint i = 0; i < all->len; i++) {
        const compared_row *row = g_ptr_array_index(all, i);
        printf("  ");
        report_print_padded(row->name, width);
        compare_print_row(logs, count, row);
    }
    printf("\n");
    g_ptr_array_free(all, TRUE);
    g_free(ids);
}

json_object *compare_json(const report_subject *logs, char *const *names, int count)
{
    json_object *object = json_object_new_object(), *sources = json_object_new_array(), *rows = json_object_new_array();
    for (int i = 0; i < count; i++) {
        json_object *source = report_requests_json(&logs[i]);
        json_add_text(source, "source", names[i]);
        json_object_object_del(source, "rows");
        json_object_array_add(sources, source);
    }
    GPtrArray *all = compare_rows(logs, count);
    for (guint i = 0; i < all->len; i++) {
        const compared_row *compared = g_ptr_array_index(all, i);
        json_object *row = json_object_new_object(), *by_log = json_object_new_array();
        double ratio = ratio_of(compared, count);
        json_add_text(row, "name", compared->name);
        for (int k = 0; k < count; k++)
            json_object_array_add(by_log,
                                  compared->rows[k] != NULL ? report_row_json(&logs[k], compared->rows[k]) : NULL);
        json_object_object_add(row, "logs", by_log);
        if (ratio >= 0)
            json_add_double(row, "mean_ratio", ratio);
        json_object_array_add(rows, row);
    }
    json_object_object_add(object, "logs", sources);
    json_object_object_add(object, "rows", rows);
    g_ptr_array_free(all, TRUE);
    return object;
}
