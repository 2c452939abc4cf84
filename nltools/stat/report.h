/* Reports measures, as text on standard output or as JSON. */
#ifndef NLSTAT_REPORT_H
#define NLSTAT_REPORT_H

#include "stat/tally.h"
#include "stat/throughput.h"

#include "program/units.h"

#include <json-c/json.h>

/* The requests of one lifeline. */
typedef struct report_subject {
    char *const *ids; /* the ID fields, ended by NULL */
    const char *by;   /* the field that groups requests, or NULL */
    assembler *assembler;
    tally *tally;
} report_subject;

/* Print tables. */
void report_requests(const report_subject *r);
void report_throughput(throughput *t, int64_t interval_ns);

/* Returns the name of a span, edge or part, for g_free. with_program: a span's program too. */
char *report_row_name(const report_subject *r, const tally_key *key, bool with_program);

/* Returns the width of the column of names. */
int report_name_width(const report_subject *r, bool with_programs);

/* Prints a text from the log without control characters, and spaces up to a width. */
void report_print_padded(const char *text, int width);

/* Returns the report on requests as JSON, for json_object_put. */
json_object *report_requests_json(const report_subject *r);
json_object *report_row_json(const report_subject *r, tally_row *row);
json_object *report_throughput_json(throughput *t, int64_t interval_ns);

#endif
