/* What was found out, as text for people or JSON for programs, on standard output. */
#ifndef NLSTAT_REPORT_H
#define NLSTAT_REPORT_H

#include "stat/measure.h"
#include "stat/throughput.h"

#include "program/units.h"

#include <json-c/json.h>

/* The name of a segment or of a repeated event, to be freed with g_free. */
char *report_segment_name(const measure *m, uint16_t from, uint16_t to);

/* Tables. by is the field that objects are told apart by, or NULL. */
void report_measure(const measure *m, const char *by);
void report_throughput(throughput *t, int64_t interval_ns);

/*
 * Several logs side by side: count of them with the names of their files, all with the same lifeline. Means and 99th
 * percentiles of each segment, and how the last log's mean compares with the first's.
 */
void report_comparison(measure *const *logs, char *const *names, int count);

/* The same as JSON, for json_object_put. */
json_object *report_measure_json(const measure *m);
json_object *report_throughput_json(throughput *t, int64_t interval_ns);

#endif
