/* nlstat --connections: prints what limits each TCP connection (connections/connection_causes.h). Not thread-safe. */
#ifndef NLSTAT_CONNECTIONS_H
#define NLSTAT_CONNECTIONS_H

#include "stat/subject.h"

typedef struct connections_options {
    bool json;
    const char *by; /* "hosts", "program" or "port": one row per group and distance; NULL: one row per connection */
} connections_options;

/* Returns whether connections can be grouped by this name. */
bool connections_can_group(const char *by);

/* Reads the files and prints the report. Returns a program_status. */
int connections_report(const connections_options *options, subject_options *subject, char **files, int count);

#endif
