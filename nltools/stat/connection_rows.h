/* The rows of nlstat --connections: connections, or groups of connections with the same distance (local, LAN, WAN or
 * unknown). Not thread-safe. */
#ifndef NLSTAT_CONNECTION_ROWS_H
#define NLSTAT_CONNECTION_ROWS_H

#include "connections/connection_causes.h"
#include "stat/connections.h"

/* A connection, or the sum of a group of connections with the same distance. */
typedef struct connections_row {
    const char *name;
    uint64_t connections;
    connection_result sum;
} connections_row;

/* Sorts the results (connection_result *). */
void connection_results_sort(GPtrArray *results, connections_sort sort);

/* Returns the sorted rows (connections_row *). If `by` is NULL, each result is a row. The caller frees the array, which
 * frees its rows. The texts in `sum` belong to the results. */
GPtrArray *connection_rows_new(const GPtrArray *results, const char *by, connections_sort sort);

#endif
