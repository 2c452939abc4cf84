/* nlstat --connections: prints what limits each TCP connection (connections/connection_causes.h). Not thread-safe. */
#ifndef NLSTAT_CONNECTIONS_H
#define NLSTAT_CONNECTIONS_H

#include "stat/subject.h"

/* The order of the rows: the largest value first; for "rate", the lowest rate first. */
#define CONNECTIONS_SORTS "bytes|rate|time|rtt|retransmits"
typedef enum connections_sort { SORT_BYTES, SORT_RATE, SORT_TIME, SORT_RTT, SORT_RETRANSMITS } connections_sort;

typedef struct connections_options {
    bool json;
    connections_sort sort;
    int64_t interval_ns; /* > 0: also report the rate in intervals of this length */
    const char *derived; /* file for the records of connection_records.h; NULL: no file */
    const char *by;      /* "hosts", "program" or "port": rows for groups; NULL: a row for each connection */
} connections_options;

/* Returns whether `by` is "hosts", "program" or "port". */
bool connections_can_group(const char *by);

/* Reads the files, or standard input if `count` is 0, and prints the report. Returns a program_status. */
int connections_report(const connections_options *options, subject_options *subject, char **files, int count);

#endif
