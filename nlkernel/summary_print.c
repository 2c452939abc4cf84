/* Prints reports as text and as JSON. */
#include "config.h"

#include "base/text.h"
#include "program/json_document.h"
#include "program/units.h"
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_WIDTH_MIN = 12, LABEL_WIDTH_MAX = 48, COLUMN_WIDTH = 11 };

void summary_write(const summary *s, char kind, double value, char out[32])
{
    if (kind == '%') {
        snprintf(out, 32, "%.2f %%", value * 100);
    } else if (kind == 'v' && strcmp(s->unit, "ns") == 0) {
        units_time(value, out);
    } else {
        units_quantity(value, out);
        size_t size = strlen(out);
        const char *unit = kind == 'v' ? s->unit : kind == 'r' ? "/s" : "";
        bool has_prefix = strchr(out, ' ') != NULL;
        if (*unit != '\0')
            snprintf(out + size, 32 - size, "%s%.8s", has_prefix ? "" : " ", unit);
    }
}

/* ---- text ---- */

/* Prints a label, padded to `width` columns, with ? in place of control characters. A label may be the name of any
 * thread, and a terminal would execute its control characters. */
static void print_label(const char *label, int width)
{
    int size = 0;
    for (; size < LABEL_WIDTH_MAX && label[size] != '\0'; size++)
        putchar((unsigned char)label[size] < ' ' || label[size] == 127 ? '?' : label[size]);
    printf("%*s", width - size + 2, "");
}

static int label_width(const summary *s, unsigned label, size_t rows)
{
    size_t width = strlen(summary_label_name(s, label));
    for (size_t i = 0; i < rows; i++)
        if (strlen(s->rows[i]->labels[label]) > width)
            width = strlen(s->rows[i]->labels[label]);
    return width < LABEL_WIDTH_MIN ? LABEL_WIDTH_MIN : width > LABEL_WIDTH_MAX ? LABEL_WIDTH_MAX : (int)width;
}

static void print_row(const summaries *all, const summary *s, size_t index, const int *widths)
{
    char text[32];
    summary_row *row = s->rows[index];
    for (unsigned i = 0; i < summary_label_count(s); i++)
        print_label(row->labels[i], widths[i]);
    for (unsigned i = 0; i < s->column_count; i++) {
        const summary_column *column = &summary_columns[s->columns[i]];
        summary_write(s, column->kind, summary_column_value(column, all, s, row), text);
        printf(" %*s", COLUMN_WIDTH, text);
    }
    putchar('\n');
}

static void print_table(const summaries *all, const summary *s, long top)
{
    int widths[SUMMARY_FIELDS_MAX] = {0};
    size_t limit = top < 0 ? s->top : (size_t)top, rows = limit == 0 || s->row_count < limit ? s->row_count : limit;
    printf("\n%s\n", s->title);
    if (rows == 0) {
        printf("  (no records)\n");
        return;
    }
    for (unsigned i = 0; i < summary_label_count(s); i++) {
        widths[i] = label_width(s, i, rows);
        print_label(summary_label_name(s, i), widths[i]);
    }
    for (unsigned i = 0; i < s->column_count; i++)
        printf(" %*s", COLUMN_WIDTH, summary_columns[s->columns[i]].name);
    putchar('\n');
    for (size_t i = 0; i < rows; i++)
        print_row(all, s, i, widths);
    if (rows < s->row_count)
        printf("  (%zu more row%s; --top 0 prints all)\n", s->row_count - rows, nl_plural(s->row_count - rows));
    if (s->left_out > 0)
        printf("  (%" PRIu64 " value%s omitted: the maximum is 100000 rows)\n", s->left_out, nl_plural(s->left_out));
}

void summaries_print(summaries *all, long top)
{
    printf("%s\n%.3f s, %u CPU%s, %" PRIu64 " record%s, %" PRIu64 " event%s lost\n", all->rules->title, all->seconds,
           all->cpus, nl_plural(all->cpus), all->records, nl_plural(all->records), all->lost, nl_plural(all->lost));
    for (size_t i = 0; i < all->count; i++)
        print_table(all, &all->list[i], top);
}

/* ---- JSON ---- */

static json_object *json_number(double value)
{
    bool is_integer = isfinite(value) && value == floor(value) && fabs(value) < 9e15;
    return is_integer ? json_object_new_int64((int64_t)value) : json_object_new_double(isfinite(value) ? value : 0);
}

static json_object *describe_row(const summaries *all, const summary *s, summary_row *row)
{
    json_object *about = json_object_new_object(), *by = json_object_new_object();
    json_object_object_add(about, "by", by);
    for (unsigned i = 0; i < s->by_count; i++)
        json_object_object_add(by, s->by[i], json_text(row->labels[i]));
    if (s->value_count > 0)
        json_object_object_add(about, "value", json_text(s->values[row->value]));
    for (const summary_column *c = summary_columns; c->name != NULL; c++)
        if (s->value_count > 0 || c->kind != 'v')
            json_object_object_add(about, c->name, json_number(summary_column_value(c, all, s, row)));
    return about;
}

static json_object *describe_summary(const summaries *all, const summary *s)
{
    json_object *about = json_object_new_object(), *rows = json_object_new_array();
    json_object_object_add(about, "report", json_text(s->name));
    json_object_object_add(about, "title", json_text(s->title));
    json_object_object_add(about, "unit", json_text(s->unit));
    json_object_object_add(about, "left_out", json_object_new_uint64(s->left_out));
    json_object_object_add(about, "rows", rows);
    for (size_t i = 0; i < s->row_count; i++)
        json_object_array_add(rows, describe_row(all, s, s->rows[i]));
    return about;
}

bool summaries_print_json(summaries *all)
{
    json_object *document = json_object_new_object(), *reports = json_object_new_array();
    json_object_object_add(document, "rules", json_text(all->rules->name));
    json_object_object_add(document, "title", json_text(all->rules->title));
    json_object_object_add(document, "seconds", json_object_new_double(all->seconds));
    json_object_object_add(document, "cpus", json_object_new_int64(all->cpus));
    json_object_object_add(document, "records", json_object_new_uint64(all->records));
    json_object_object_add(document, "lost", json_object_new_uint64(all->lost));
    json_object_object_add(document, "reports", reports);
    for (size_t i = 0; i < all->count; i++)
        json_object_array_add(reports, describe_summary(all, &all->list[i]));
    return json_document_write(document, stdout);
}
