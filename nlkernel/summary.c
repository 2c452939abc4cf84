#include "config.h"

#include "summary.h"

#include "base/memory.h"
#include "base/text.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_SEPARATOR "\x1f"

enum { TOP_DEFAULT = 20, POINTS_MAX = 50000, ROWS_MAX = 100000 };

/* ---- columns ---- */

/* Returns whether `row` belongs to a recording. A recording that lacks a field of `by` belongs to every row. */
static bool row_is_of_recording(const summary *s, const summary_row *row, const summary_recording *recording)
{
    for (unsigned i = 0; i < s->by_count; i++)
        for (size_t j = 0; j < recording->finish->field_count; j++) {
            const nl_field *field = &recording->finish->fields[j];
            char scratch[NL_FIELD_TEXT_SIZE];
            nl_string text = nl_field_text(field, scratch);
            if (nl_string_is(field->name, s->by[i]) && !nl_string_is(text, row->labels[i]))
                return false;
        }
    return true;
}

/* Returns the total length in seconds of the recordings to which `row` belongs, or the length of the whole log if the
 * log has no such recording. */
static double row_seconds(const summaries *all, const summary *s, const summary_row *row)
{
    double seconds = 0;
    for (size_t i = 0; i < all->recording_count; i++)
        if (row_is_of_recording(s, row, &all->recordings[i]))
            seconds += all->recordings[i].seconds;
    return seconds > 0 ? seconds : all->seconds;
}

/* Returns the sum of the field `share` for the row's values of the `by` fields, or 0 if there is no such sum. */
static double share_base(const summary *s, const summary_row *row)
{
    char *labels[SUMMARY_FIELDS_MAX + 1];
    memcpy(labels, row->labels, sizeof labels);
    if (s->value_count > 1)
        labels[s->by_count] = (char *)s->share;
    char *key = g_strjoinv(LABEL_SEPARATOR, labels);
    const summary_row *found = g_hash_table_lookup(s->by_labels, key);
    g_free(key);
    return found != NULL ? found->sum : 0;
}

static double row_share(const summary *s, const summary_row *row)
{
    double whole = s->share != NULL && s->value_count > 0 ? share_base(s, row) : s->sum;
    double part = s->value_count > 0 ? row->sum : (double)row->count;
    return whole > 0 ? part / whole : 0;
}

const summary_column summary_columns[] = {
    {"count", COLUMN_COUNT, 'n', 0},       {"rate", COLUMN_RATE, 'r', 0},      {"sum", COLUMN_SUM, 'v', 0},
    {"share", COLUMN_SHARE, '%', 0},       {"cpu", COLUMN_CPU, '%', 0},        {"mean", COLUMN_MEAN, 'v', 0},
    {"min", COLUMN_QUANTILE, 'v', 0},      {"p1", COLUMN_QUANTILE, 'v', 0.01}, {"p10", COLUMN_QUANTILE, 'v', 0.1},
    {"p50", COLUMN_QUANTILE, 'v', 0.5},    {"p90", COLUMN_QUANTILE, 'v', 0.9}, {"p99", COLUMN_QUANTILE, 'v', 0.99},
    {"p999", COLUMN_QUANTILE, 'v', 0.999}, {"max", COLUMN_QUANTILE, 'v', 1},   {0}};

double summary_column_value(const summary_column *c, const summaries *all, const summary *s, summary_row *row)
{
    double seconds;
    switch (c->what) {
    case COLUMN_COUNT:
        return (double)row->count;
    case COLUMN_RATE:
        seconds = row_seconds(all, s, row);
        return seconds > 0 ? (double)row->count / seconds : 0;
    case COLUMN_SUM:
        return row->sum;
    case COLUMN_SHARE:
        return row_share(s, row);
    case COLUMN_CPU:
        seconds = row_seconds(all, s, row) * (all->cpus > 0 ? all->cpus : 1);
        return seconds > 0 ? row->sum / 1e9 / seconds : 0;
    case COLUMN_MEAN:
        return row->count > 0 ? row->sum / (double)row->count : 0;
    case COLUMN_QUANTILE:
        return (double)nl_distribution_quantile(&row->values, c->quantile);
    }
    return 0;
}

/* ---- reading ---- */

typedef struct reading {
    const rules_file *rules;
    const nl_setting *setting;
} reading;

#define WRONG(r, ...) nl_sections_error(&(r)->rules->sections, (r)->setting->line, __VA_ARGS__)

static bool read_fields(const reading *r, char **list, unsigned *count)
{
    const char *at = r->setting->value;
    char *word;
    while ((word = nl_word_next(&at, ",")) != NULL) {
        /* with several values, an additional label contains the name of each row's value */
        if (*count == SUMMARY_FIELDS_MAX - 1) {
            free(word);
            return WRONG(r, "too many fields; the maximum is %d", SUMMARY_FIELDS_MAX - 1);
        }
        list[(*count)++] = word;
    }
    return true;
}

static bool read_columns(const reading *r, summary *s)
{
    const char *at = r->setting->value;
    char *word;
    while ((word = nl_word_next(&at, ",")) != NULL) {
        unsigned i = 0;
        while (summary_columns[i].name != NULL && strcmp(summary_columns[i].name, word) != 0)
            i++;
        bool ok = summary_columns[i].name != NULL && s->column_count < SUMMARY_COLUMNS_MAX;
        if (ok)
            s->columns[s->column_count++] = i;
        else if (summary_columns[i].name == NULL)
            WRONG(r, "unknown column \"%s\"", word);
        else
            WRONG(r, "too many columns; the maximum is %d", SUMMARY_COLUMNS_MAX);
        free(word);
        if (!ok)
            return false;
    }
    return true;
}

static bool read_of(const reading *r, summary *s)
{
    const char *at = r->setting->value;
    s->event = nl_word_next(&at, "");
    char *word = nl_word_next(&at, "");
    bool ok = s->event != NULL && (word == NULL || strcmp(word, "where") == 0);
    if (!ok)
        WRONG(r, "expected \"of = EVENT\" or \"of = EVENT where EXPRESSION\"");
    else if (word != NULL)
        s->where = nl_filter_parse(at);
    if (ok && word != NULL && s->where == NULL)
        ok = WRONG(r, "%s", nl_error_message());
    char *colon = s->event != NULL ? strchr(s->event, ':') : NULL;
    if (colon != NULL)
        *colon = '.';
    free(word);
    return ok;
}

static bool read_word(const reading *r, const char *const *names, unsigned *number)
{
    for (*number = 0; names[*number] != NULL; (*number)++)
        if (strcmp(names[*number], r->setting->value) == 0)
            return true;
    return WRONG(r, "%s: unknown value \"%s\"", r->setting->key, r->setting->value);
}

static bool read_setting(const reading *r, summary *s)
{
    static const char *const plots[] = {"none", "cdf", "histogram", "bars", "series", "points", NULL};
    static const char *const orders[] = {"sum", "count", "max", "key", NULL};
    const char *key = r->setting->key, *value = r->setting->value;
    unsigned number = 0;
    bool ok = true;
    if (strcmp(key, "title") == 0)
        s->title = value;
    else if (strcmp(key, "of") == 0)
        ok = read_of(r, s);
    else if (strcmp(key, "by") == 0)
        ok = read_fields(r, s->by, &s->by_count);
    else if (strcmp(key, "value") == 0)
        ok = read_fields(r, s->values, &s->value_count);
    else if (strcmp(key, "unit") == 0)
        s->unit = value;
    else if (strcmp(key, "share") == 0)
        s->share = value;
    else if (strcmp(key, "columns") == 0)
        ok = read_columns(r, s);
    else if (strcmp(key, "top") == 0)
        s->top = strtoul(value, NULL, 10);
    else if (strcmp(key, "plot") == 0 && (ok = read_word(r, plots, &number)))
        s->plot = (summary_plot)number;
    else if (strcmp(key, "order") == 0 && (ok = read_word(r, orders, &number)))
        s->order = (summary_order)number;
    else if (ok)
        ok = WRONG(r, "a [report] section has no setting \"%s\"", key);
    return ok;
}

static bool read_summary(summary *s, const rules_file *of, const nl_section *section)
{
    *s = (summary){.name = section->name,
                   .title = section->name,
                   .unit = "",
                   .top = TOP_DEFAULT,
                   .by_labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    for (size_t i = 0; i < section->setting_count; i++)
        if (!read_setting(&(reading){of, &section->settings[i]}, s))
            return false;
    if (s->event == NULL)
        return nl_sections_error(&of->sections, section->line, "[report %s]: missing of =", section->name);
    if (s->column_count == 0)
        s->columns[s->column_count++] = 0;
    if (s->value_count == 0 && s->order == ORDER_SUM)
        s->order = ORDER_COUNT;
    return true;
}

bool summaries_read(summaries *all, const rules_file *of)
{
    *all = (summaries){.rules = of, .list = nl_memory_check(calloc(of->sections.count + 1, sizeof *all->list))};
    for (size_t i = 0; i < of->sections.count; i++)
        if (strcmp(of->sections.list[i].kind, "report") == 0 &&
            !read_summary(&all->list[all->count++], of, &of->sections.list[i])) {
            summaries_free(all);
            return false;
        }
    return true;
}

/* ---- records ---- */

static char *record_label(const nl_record *record, const char *name)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    if (!nl_record_find(record, name, &field))
        return strdup("-");
    nl_string text = nl_field_text(&field, scratch);
    return strndup(text.data != NULL ? text.data : "", text.size);
}

static void free_row(summary_row *row)
{
    for (unsigned i = 0; i < SUMMARY_FIELDS_MAX; i++)
        free(row->labels[i]);
    nl_distribution_clear(&row->values);
    free(row->points);
    free(row);
}

/* Finds or adds the row for the labels of `record` and the value with the index `value`. Returns NULL if the table is
 * full. */
static summary_row *find_or_add_row(summary *s, const nl_record *record, unsigned value)
{
    summary_row *row = nl_memory_check(calloc(1, sizeof *row));
    for (unsigned i = 0; i < s->by_count; i++)
        row->labels[i] = record_label(record, s->by[i]);
    if (s->value_count > 1)
        row->labels[s->by_count] = strdup(s->values[value]);
    char *key = g_strjoinv(LABEL_SEPARATOR, row->labels);
    summary_row *found = g_hash_table_lookup(s->by_labels, key);
    if (found != NULL || s->row_count >= ROWS_MAX) {
        s->left_out += found == NULL;
        free_row(row);
        g_free(key);
        return found;
    }
    NL_ARRAY_GROW(s->rows, s->row_count, s->row_capacity);
    row->value = value;
    row->point_step = 1;
    s->rows[s->row_count++] = row;
    g_hash_table_insert(s->by_labels, key, row);
    return row;
}

/* Adds a point, but keeps at most POINTS_MAX points. When the list is full, drops every second point, and afterwards
 * keeps only every second, fourth, ... new point. */
static void add_point(summary_row *row, int64_t time_ns, double value)
{
    if (++row->point_skipped < row->point_step)
        return;
    row->point_skipped = 0;
    if (row->point_count == POINTS_MAX) {
        for (size_t i = 0; 2 * i < row->point_count; i++)
            row->points[i] = row->points[2 * i];
        row->point_count = (row->point_count + 1) / 2;
        row->point_step *= 2;
    }
    NL_ARRAY_GROW(row->points, row->point_count, row->point_capacity);
    row->points[row->point_count++] = (summary_point){time_ns, value};
}

static void add_value(summary *s, const nl_record *record, unsigned value, double number)
{
    summary_row *row = find_or_add_row(s, record, value);
    if (row == NULL)
        return;
    int64_t whole = number < 0 ? 0 : number > 9e18 ? INT64_MAX : (int64_t)(number + 0.5);
    row->count++;
    row->sum += number;
    if (s->value_count > 0)
        nl_distribution_add(&row->values, whole);
    if (value == 0) {
        s->sum += s->value_count > 0 ? number : 1;
        if (s->value_count > 0)
            nl_distribution_add(&s->all, whole);
    }
    if (s->plot == PLOT_SERIES || s->plot == PLOT_POINTS)
        add_point(row, record->time_ns, s->value_count > 0 ? number : 1);
}

static void summary_take(summary *s, const nl_record *record, const char *event)
{
    if (fnmatch(s->event, event, 0) != 0 || !nl_filter_matches(s->where, record))
        return;
    if (s->value_count == 0)
        add_value(s, record, 0, 0);
    for (unsigned i = 0; i < s->value_count; i++) {
        nl_field field;
        double number;
        if (nl_record_find(record, s->values[i], &field) && nl_field_double(&field, &number) && !isnan(number))
            add_value(s, record, i, number);
    }
}

static bool find_number(const nl_record *record, const char *name, double *number)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_double(&field, number);
}

static void add_recording(summaries *all, const nl_record *finish, double seconds)
{
    all->recordings = nl_memory_check(reallocarray(all->recordings, all->recording_count + 1, sizeof *all->recordings));
    all->recordings[all->recording_count] = (summary_recording){nl_record_new(), seconds};
    nl_record_copy(all->recordings[all->recording_count++].finish, finish);
    all->seconds += seconds;
}

/* Reads a record in which the recorder describes its recording. */
static void take_recorder_record(summaries *all, const nl_record *record, const char *event)
{
    double number;
    if (strcmp(event, "NetLogger.Lost") == 0 && find_number(record, "COUNT", &number))
        all->lost += (uint64_t)number;
    else if (strcmp(event, "NetLogger.Record.Begin") == 0 && find_number(record, "CPUS", &number))
        all->cpus = number > 0 && number < 1e6 ? (unsigned)number : 1;
    else if (strcmp(event, "NetLogger.Record.Finish") == 0 && find_number(record, "SECONDS", &number))
        add_recording(all, record, number);
}

void summaries_take(summaries *all, const nl_record *record)
{
    char event[256];
    size_t size = record->event.size < sizeof event ? record->event.size : sizeof event - 1;
    memcpy(event, record->event.data != NULL ? record->event.data : "", size);
    event[size] = '\0';
    all->from_ns = all->records == 0 || record->time_ns < all->from_ns ? record->time_ns : all->from_ns;
    all->to_ns = all->records == 0 || record->time_ns > all->to_ns ? record->time_ns : all->to_ns;
    all->records++;
    if (strncmp(event, "NetLogger.", 10) == 0)
        take_recorder_record(all, record, event);
    nl_field field;
    int64_t cpu;
    if (nl_record_find(record, "CPU", &field) && nl_field_int(&field, &cpu) && cpu >= 0 && cpu < 8192 &&
        cpu >= (int64_t)all->cpus)
        all->cpus = (unsigned)cpu + 1;
    for (size_t i = 0; i < all->count; i++)
        summary_take(&all->list[i], record, event);
}

/* ---- order ---- */

static double rank_of(const summary_row *row, summary_order order)
{
    return order == ORDER_SUM ? row->sum : order == ORDER_COUNT ? (double)row->count : (double)row->values.maximum;
}

static int order_rows(const void *a, const void *b, void *user)
{
    const summary_row *left = *(summary_row *const *)a, *right = *(summary_row *const *)b;
    const summary *s = user;
    if (s->order != ORDER_KEY && rank_of(left, s->order) != rank_of(right, s->order))
        return rank_of(left, s->order) > rank_of(right, s->order) ? -1 : 1;
    for (unsigned i = 0; i < s->by_count; i++) {
        int order = strcmp(left->labels[i], right->labels[i]);
        if (order != 0)
            return order;
    }
    return (int)left->value - (int)right->value; /* finally, in the order of the values in the rules file */
}

void summaries_compute(summaries *all)
{
    if (all->seconds <= 0)
        all->seconds = (double)(all->to_ns - all->from_ns) / 1e9;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].row_count > 0)
            qsort_r(all->list[i].rows, all->list[i].row_count, sizeof(summary_row *), order_rows, &all->list[i]);
}

void summaries_free(summaries *all)
{
    for (size_t i = 0; i < all->count; i++) {
        summary *s = &all->list[i];
        if (s->by_labels != NULL)
            g_hash_table_destroy(s->by_labels);
        for (size_t j = 0; j < s->row_count; j++)
            free_row(s->rows[j]);
        for (unsigned j = 0; j < SUMMARY_FIELDS_MAX; j++) {
            free(s->by[j]);
            free(s->values[j]);
        }
        nl_distribution_clear(&s->all);
        nl_filter_free(s->where);
        free(s->event);
        free(s->rows);
    }
    for (size_t i = 0; i < all->recording_count; i++)
        nl_record_free(all->recordings[i].finish);
    free(all->recordings);
    free(all->list);
    *all = (summaries){0};
}
