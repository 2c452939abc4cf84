/* Reports the results of nlstat as text on standard output or as JSON. */
#ifndef NLSTAT_REPORT_H
#define NLSTAT_REPORT_H

#include "stat/tally.h"
#include "stat/throughput.h"

#include "program/units.h"

#include <json-c/json.h>

/* The requests of one lifeline. */
typedef struct report_subject {
    char *const *ids; /* the ID fields, NULL-terminated */
    const char *by;   /* the field that groups requests, or NULL */
    assembler *assembler;
    tally *tally;
    bool selects_records; /* the requests consist only of records that match --where */
} report_subject;

/* The text that follows the number of overlapping spans (assembler_overlapping) in messages. */
#define REPORT_OVERLAPPING_SPANS                                                                                       \
    "spans without a request ID overlap and cannot be told apart, or ends of spans are missing; log TRACE.ID, "        \
    "or name an ID field with --id"

/* Print the report on requests and on the throughput as tables. */
void report_requests(const report_subject *r);
void report_throughput(throughput *t, int64_t interval_ns);

/* Returns the name of the group with the number `by`. */
const char *report_group(const report_subject *r, uint32_t by);

/* Returns the report on requests as JSON. The caller frees it with json_object_put. */
json_object *report_requests_json(const report_subject *r);
json_object *report_throughput_json(throughput *t, int64_t interval_ns);

#endif
