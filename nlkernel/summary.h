/*
 * What is reported of records: for each [report] of a rules file a table, by the values of some fields.
 *
 *   [report Delays]
 *   title = How long programs waited for a CPU
 *   of = RunQueue where DUR.NS > 0     the records that are meant
 *   by = PROG                          a row for each of its values; several, with commas; none: one row
 *   value = DUR.NS                     what is summed; several: a row for each; none: records are counted
 *   unit = ns                          what it is: ns, or what stands behind the numbers
 *   columns = count sum p50 p99 max    of: count rate sum share cpu mean min p1 p10 p50 p90 p99 p999 max
 *   share = DUR.NS                     the value that share is of; otherwise the sum over all rows
 *   order = sum                        count, sum, max, or key; the rest is told from what comes first
 *   top = 20
 *   plot = cdf                         cdf, histogram, bars, series, points, or none
 *
 * cpu is the sum as a share of the time of all CPUs. It and rate are of the recordings that a row is about: of those
 * whose NetLogger.Record.Finish has a field that the row is by, the ones with the row's value of it. One thread.
 */
#ifndef NLKERNEL_SUMMARY_H
#define NLKERNEL_SUMMARY_H

#include "base/distribution.h"
#include "rules_file.h"

enum { SUMMARY_FIELDS_MAX = 16, SUMMARY_COLUMNS_MAX = 12 };

typedef struct summary_point {
    int64_t time_ns;
    double value;
} summary_point;

typedef struct summary_row {
    char *labels[SUMMARY_FIELDS_MAX]; /* what it is by, and, when there are several values, which one */
    unsigned value;                   /* which one */
    uint64_t count;
    double sum;
    nl_distribution values;
    summary_point *points; /* for plots over time: some of them, when there are many */
    size_t point_count, point_capacity, point_step, point_skipped;
} summary_row;

typedef enum summary_plot { PLOT_NONE, PLOT_CDF, PLOT_HISTOGRAM, PLOT_BARS, PLOT_SERIES, PLOT_POINTS } summary_plot;
typedef enum summary_order { ORDER_SUM, ORDER_COUNT, ORDER_MAX, ORDER_KEY } summary_order;

typedef struct summary {
    const char *name, *title;
    char *event; /* a glob */
    nl_filter *where;
    char *by[SUMMARY_FIELDS_MAX];
    unsigned by_count;
    char *values[SUMMARY_FIELDS_MAX];
    unsigned value_count; /* 0: records are counted */
    const char *unit, *share;
    unsigned columns[SUMMARY_COLUMNS_MAX]; /* places in summary_columns */
    unsigned column_count;
    summary_order order;
    unsigned long top;
    summary_plot plot;

    summary_row **rows; /* once computed: in their order */
    size_t row_count, row_capacity;
    uint64_t left_out;   /* values of rows that there was no room for */
    void *tree;          /* of rows, by labels */
    double sum;          /* of the first value */
    nl_distribution all; /* of it */
} summary;

/* One of several recordings that are reported together: how long it took, and what its records say besides. */
typedef struct summary_run {
    nl_record *finish;
    double seconds;
} summary_run;

typedef struct summaries {
    const rules_file *rules;
    summary *list;
    size_t count;
    uint64_t records, lost;
    int64_t from_ns, to_ns;
    double seconds; /* that were recorded */
    summary_run *runs;
    size_t run_count;
    unsigned cpus;
} summaries;

typedef struct summary_column {
    const char *name;
    double (*of)(const summaries *all, const summary *s, summary_row *row);
    char kind; /* v: a value, with the unit; n: a number; %: a share; r: a number a second */
} summary_column;

extern const summary_column summary_columns[];

/* Reads the rules file's reports. False with the reason in nl_error_message(). */
bool summaries_read(summaries *all, const rules_file *of);

/* Takes a record, the kernel's or one that was made of it. */
void summaries_take(summaries *all, const nl_record *record);

/* Puts the rows in their order. */
void summaries_compute(summaries *all);
void summaries_free(summaries *all);

/* How many labels a row has, and what each is. */
static inline unsigned summary_label_count(const summary *s)
{
    return s->by_count + (s->value_count > 1);
}

static inline const char *summary_label_name(const summary *s, unsigned i)
{
    return i < s->by_count ? s->by[i] : "value";
}

/* A number of a column as people read it. */
void summary_write(const summary *s, char kind, double value, char out[32]);

/* Says them, on standard output; top: so many rows at most, 0: all; negative: what the rules say. */
void summaries_print(summaries *all, long top);
void summaries_print_json(summaries *all);

/* Draws them: .png or .svg. False with the reason in nl_error_message(). */
bool summaries_draw(summaries *all, const char *path);

#endif
