/* Reports of nldiag, on standard output or in a file. */
#ifndef NLDIAG_REPORT_H
#define NLDIAG_REPORT_H

#include "diag/findings.h"

/* The sources on the command line. The commands that nldiag proposes contain them. */
typedef struct report_sources {
    char *const *names;
    int count;
    const char *config; /* NULL without --config */
    bool fix_clocks;    /* the log has measurements of wrong clocks, which --fix-clocks corrects */
} report_sources;

/* Returns the answer in one sentence. The caller frees it with g_free. */
char *report_answer(const findings *f);

/*
 * Returns a text about the requests that the verdict does not cover because of limits, or NULL. The caller frees the
 * text with g_free.
 */
char *report_limits(const visits *v);

/* Returns a line with the numbers of records and requests, and their times. The caller frees it with g_free. */
char *report_counts(const visits *v);

void report_text(const findings *f, const report_sources *sources, bool explain);
void report_json(const findings *f, const report_sources *sources);

/*
 * Prints a finding's answer, evidence, advice, gain and confidence. If `sources` is not NULL, also prints the command
 * that shows the finding. If `explain` is true, prints all evidence.
 */
void report_finding(const findings *f, const finding *x, const report_sources *sources, bool explain);

/* Returns a finding as a JSON object, which the caller owns. If `sources` is NULL, the object has no command. */
struct json_object *report_finding_object(const findings *f, const finding *x, const report_sources *sources);

/* Writes a self-contained HTML page, which contains pictures if nlv is installed. Returns false and sets the error on
 * failure. */
bool report_html(const findings *f, const report_sources *sources, const char *path);

/*
 * Return the command that shows a finding in nlv, as arguments or as a line for a shell. The command has no time range
 * if the finding covers almost all requests. The caller frees the results with g_ptr_array_free and g_free,
 * respectively.
 */
GPtrArray *report_command(const finding *x, const visits *v, const report_sources *sources);
char *report_view(const finding *x, const visits *v, const report_sources *sources);

/* Returns the number of a finding in the report, from 1. */
guint report_number(const findings *f, const finding *x);

/* Returns the indices of the places in descending order of their shares of the time. The caller frees the array with
 * g_free. */
uint32_t *report_places(const visits *v);

/* Texts about a place, for a table. */
typedef struct report_place_row {
    char *share; /* share of the requests' time */
    char *name;
    char *mean;          /* mean time of a visit, or of a series of visits */
    char *explained;     /* share that findings explain; NULL: no finding explains a share */
    bool is_unexplained; /* most of the requests' time is at this place, and no finding explains it */
} report_place_row;

/* Describes a place. The caller frees the texts with report_place_row_clear. */
report_place_row report_describe_place(const findings *f, uint32_t place);
void report_place_row_clear(report_place_row *row);

#endif
