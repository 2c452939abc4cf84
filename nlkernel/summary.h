/*
 * Creates reports. Each [report] section of a rules file defines a table that has a row for each combination of the
 * values of some fields.
 *
 *   [report Delays] title = How long programs waited for a CPU of = RunQueue where DUR.NS > 0 the records to use by =
 *   PROG fields whose values distinguish rows; default: one row value = DUR.NS fields to sum, with a row for each
 *   field; default: the report counts records unit = ns unit of the values: ns, or a text that follows the numbers
 *   columns = count sum p50 p99 max any of count rate sum share cpu mean min p1 p10 p50 p90 p99 p999 max share = DUR.NS
 *   field whose sum is the total that shares refer to; default: all rows order = sum sum, count, max, or key top = 20
 *   maximum number of rows printed plot = cdf cdf, histogram, bars, series, points, or none
 *
 * The cpu column is the sum as a share of the time of all CPUs. If a report covers several recordings, cpu and rate use
 * only the recordings to which a row belongs. A recording does not belong to a row if its NetLogger.Record.Finish
 * record has another value of a `by` field. Not thread-safe.
 */
#ifndef NLKERNEL_SUMMARY_H
#define NLKERNEL_SUMMARY_H

#include "base/distribution.h"
#include "rules_file.h"

#include <glib.h>

enum { SUMMARY_FIELDS_MAX = 16, SUMMARY_COLUMNS_MAX = 12 };

typedef struct summary_point {
    int64_t time_ns;
    double value;
} summary_point;

typedef struct summary_row {
    /* The values of the `by` fields; if there are several values, also the name of the value. */
    char *labels[SUMMARY_FIELDS_MAX + 1];
    unsigned value; /* index into `values` of struct summary */
    uint64_t count;
    double sum;
    nl_distribution values;
    summary_point *points; /* for plots over time; every point_step-th point */
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
    unsigned value_count; /* 0: count records */
    const char *unit, *share;
    unsigned columns[SUMMARY_COLUMNS_MAX]; /* indices in summary_columns */
    unsigned column_count;
    summary_order order;
    unsigned long top;
    summary_plot plot;

    summary_row **rows; /* sorted by summaries_compute */
    size_t row_count, row_capacity;
    uint64_t left_out;     /* number of dropped values, because there were too many rows */
    GHashTable *by_labels; /* maps labels to rows */
    double sum;            /* sum of the first value; without values, the number of records */
    nl_distribution all;   /* distribution of the first value */
} summary;

typedef struct summary_recording {
    nl_record *finish; /* the NetLogger.Record.Finish record of the recording */
    double seconds;
} summary_recording;

typedef struct summaries {
    const rules_file *rules;
    summary *list;
    size_t count;
    uint64_t records, lost;
    int64_t from_ns, to_ns;
    double seconds; /* total length of all recordings; without recordings, the time from from_ns to to_ns */
    summary_recording *recordings;
    size_t recording_count;
    unsigned cpus;
} summaries;

typedef struct summary_column {
    const char *name;
    enum { COLUMN_COUNT, COLUMN_RATE, COLUMN_SUM, COLUMN_SHARE, COLUMN_CPU, COLUMN_MEAN, COLUMN_QUANTILE } what;
    char kind; /* v: value with a unit; n: number; %: share; r: number per second */
    double quantile;
} summary_column;

/* The table of columns, which ends with a column without a name. */
extern const summary_column summary_columns[];

/* Returns the value of a column in a row, in the units that `kind` describes. */
double summary_column_value(const summary_column *c, const summaries *all, const summary *s, summary_row *row);

/* Reads the reports of a rules file, which must outlive `all`. Returns false and sets the error on failure. */
bool summaries_read(summaries *all, const rules_file *of);

/* Adds a kernel record or a derived record. */
void summaries_take(summaries *all, const nl_record *record);

/* Sorts the rows. Sets `seconds`, unless a recording has set it. Call this function after the last record. */
void summaries_compute(summaries *all);
void summaries_free(summaries *all);

/* Return the number of labels of a row, and the name of a label. */
static inline unsigned summary_label_count(const summary *s)
{
    return s->by_count + (s->value_count > 1);
}

static inline const char *summary_label_name(const summary *s, unsigned i)
{
    return i < s->by_count ? s->by[i] : "value";
}

/* Formats a number for a column of the given kind. */
void summary_write(const summary *s, char kind, double value, char out[32]);

/* Prints the tables. `top` is the maximum number of rows; 0: all; negative: the number in the rules file. */
void summaries_print(summaries *all, long top);

/* Prints a JSON document. Returns false if writing failed. */
bool summaries_print_json(summaries *all);

/* Draws the reports into a .png or .svg file. Returns false and sets the error on failure. */
bool summaries_draw(summaries *all, const char *path);

#endif
