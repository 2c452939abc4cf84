/* Compares the requests of several logs. Shows the same spans and edges side by side. */
#ifndef NLSTAT_COMPARE_H
#define NLSTAT_COMPARE_H

#include "stat/report.h"

/*
 * Prints the requests of count `logs` side by side: for each span and edge, the means, 99th percentiles and shares, and
 * the ratio of the last log's mean to that of the first log. `names` contains the names of the logs.
 */
void compare_print(const report_subject *logs, char *const *names, int count);

/* Returns the comparison as JSON. The caller frees it with json_object_put. */
json_object *compare_json(const report_subject *logs, char *const *names, int count);

#endif
