/* Reports as text and as JSON. */
#include "config.h"

#include "json.h"
#include "program/units.h"
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MIN = 12, LABEL_MAX = 48, COLUMN = 11 };

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

/* Names of threads are anybody's: a control character would be the terminal's to obey. */
static void print_label(const char *label, int width)
{
    int size = 0;
    for (; size < LABEL_MAX && label[size] != '\0'; size++)
        putchar((unsigned char)label[size] < ' ' || label[size] == 127 ? '?' : label[size]);
    printf("%*s", width - size + 2, "");
}

static int width_of(const summary *s, unsigned label, size_t rows)
{
    size_t width = strlen(summary_label_name(s, label));
    for (size_t i = 0; i < rows; i++)
        if (strlen(s->rows[i]->labels[label]) > width)
            width = strlen(s->rows[i]->labels[label]);
    return width < LABEL_MIN ? LABEL_MIN : width > LABEL_MAX ? LABEL_MAX : (int)width;
}

static void print_row(const summaries *all, const summary *s, size_t at, const int *widths)
{
    char text[32];
    summary_row *row = s->rows[at];
    for (unsigned i = 0; i < summary_label_count(s); i++)
        print_label(row->labels[i], widths[i]);
    for (unsigned i = 0; i < s->column_count; i++) {
        const summary_column *column = &summary_columns[s->columns[i]];
        summary_write(s, column->kind, column->of(all, s, row), text);
        printf(" %*s", COLUMN, text);
    }
    putchar('\n');
}

static void print_table(const summaries *all, const summary *s, long top)
{
    int widths[SUMMARY_FIELDS_MAX] = {0};
    size_t most = top < 0 ? s->top : (size_t)top, rows = most == 0 || s->row_count < most ? s->row_count : most;
    printf("\n%s\n", s->title);
    if (rows == 0) {
        printf("  (there was nothing of that)\n");
        return;
    }
    for (unsigned i = 0; i < summary_label_count(s); i++) {
        widths[i] = width_of(s, i, rows);
        print_label(summary_label_name(s, i), widths[i]);
    }
    for (unsigned i = 0; i < s->column_count; i++)
        printf(" %*s", COLUMN, summary_columns[s->columns[i]].name);
    putchar('\n');
    for (size_t i = 0; i < rows; i++)
        print_row(all, s, i, widths);
    if (rows < s->row_count)
        printf("  (%zu more: --top 0 shows all)\n", s->row_count - rows);
    if (s->left_out > 0)
        printf("  (and %" PRIu64 " that would be in more rows than are kept)\n", s->left_out);
}

void summaries_print(summaries *all, long top)
{
    printf("%s\n%.3f s, %u CPU%s, %" PRIu64 " records, %" PRIu64 " events lost\n", all->rules->title, all->seconds,
           all->cpus, all->cpus == 1 ? "" : "s", all->records, all->lost);
    for (size_t i = 0; i < all->count; i++)
        print_table(all, &all->list[i], top);
}

/* ---- JSON ---- */

static void print_number(double value)
{
    if (isfinite(value) && value == floor(value) && fabs(value) < 9e15)
        printf("%.0f", value);
    else
        printf("%.9g", isfinite(value) ? value : 0);
}

static void print_json_row(const summaries *all, const summary *s, summary_row *row)
{
    printf("{\"by\":{");
    for (unsigned i = 0; i < s->by_count; i++) {
        printf("%s", i > 0 ? "," : "");
        json_print_string(s->by[i]);
        putchar(':');
        json_print_string(row->labels[i]);
    }
    putchar('}');
    if (s->value_count > 0) {
        printf(",\"value\":");
        json_print_string(s->values[row->value]);
    }
    for (unsigned i = 0; summary_columns[i].name != NULL; i++) {
        if (s->value_count == 0 && summary_columns[i].kind == 'v')
            continue;
        printf(",\"%s\":", summary_columns[i].name);
        print_number(summary_columns[i].of(all, s, row));
    }
    putchar('}');
}

void summaries_print_json(summaries *all)
{
    printf("{\"rules\":");
    json_print_string(all->rules->name);
    printf(",\"title\":");
    json_print_string(all->rules->title);
    printf(",\"seconds\":%.9f,\"cpus\":%u,\"records\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"reports\":[", all->seconds,
           all->cpus, all->records, all->lost);
    for (size_t i = 0; i < all->count; i++) {
        const summary *s = &all->list[i];
        printf("%s\n {\"report\":", i > 0 ? "," : "");
        json_print_string(s->name);
        printf(",\"title\":");
        json_print_string(s->title);
        printf(",\"unit\":");
        json_print_string(s->unit);
        printf(",\"left_out\":%" PRIu64 ",\"rows\":[", s->left_out);
        for (size_t j = 0; j < s->row_count; j++) {
            printf("%s\n  ", j > 0 ? "," : "");
            print_json_row(all, s, s->rows[j]);
        }
        printf("]}");
    }
    printf("]}\n");
}
