/* Reports measures, as text on standard output or as JSON. */
#ifndef NLSTAT_REPORT_H
#define NLSTAT_REPORT_H

#include "stat/measure.h"
#include "stat/throughput.h"

#include "program/units.h"

#include <json-c/json.h>

/* Returns the name of a segment, for g_free. */
char *report_segment_name(const measure *m, uint16_t from, uint16_t to);

/* Print tables. by is the field that groups requests, or NULL. */
void report_measure(const measure *m, const char *by);
void report_throughput(throughput *t, int64_t interval_ns);

/*
 * Prints the measures of one lifeline in count logs side by side: for each segment, the means and 99th percentiles, and
 * the ratio of the last log's mean to the first's. names are those of the logs.
 */
void report_comparison(measure *const *logs, char *const *names, int count);

/* The same as JSON, for json_object_put. */
json_object *report_measure_json(const measure *m);
json_object *report_throughput_json(throughput *t, int64_t interval_ns);

#endif
