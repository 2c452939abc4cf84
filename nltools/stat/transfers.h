/*
 * Measures transfers: outermost spans with a number of bytes. The module determines their rates, the number of
 * simultaneous transfers, and the throughput over time. For the throughput, the module spreads the bytes of each
 * transfer evenly over its duration.
 *
 * To bound memory, the module keeps at most TRANSFERS_MAX transfers, and only counts the others. Not thread-safe.
 */
#ifndef NLSTAT_TRANSFERS_H
#define NLSTAT_TRANSFERS_H

#include "base/distribution.h"

#include <glib.h>
#include <json-c/json.h>

enum { TRANSFERS_MAX = 1 << 20, TRANSFER_NAMES_MAX = 1000, TRANSFER_PACKET = 1460 /* bytes of a packet */ };

typedef struct transfers transfers;

transfers *transfers_new(void);
void transfers_free(transfers *t); /* t may be NULL */

/* Adds a transfer. `what` is the name of the transferred object, such as a file. The module keeps only the first
 * TRANSFER_NAMES_MAX names. */
void transfers_add(transfers *t, int64_t begin_ns, int64_t end_ns, double bytes, const char *host, const char *what);

/* Returns the number of transfers to report. Returns 0 if their mean size is at most TRANSFER_PACKET, because the rate
 * of messages of one packet says nothing about the network. */
size_t transfers_count(const transfers *t);

/* transfers_print prints a table. transfers_json returns JSON, which the caller frees with json_object_put.
 * `interval_ns` is the length of intervals. If `interval_ns` is 0 or too short, the functions choose a length. */
void transfers_print(transfers *t, int64_t interval_ns);
json_object *transfers_json(transfers *t, int64_t interval_ns);

/* An interval of the throughput over time. */
typedef struct transfers_interval {
    int64_t from_ns;
    double bytes;
    double concurrency; /* mean number of simultaneous transfers */
} transfers_interval;

/*
 * Returns the throughput over time, which the caller frees with g_free. Sets *count to the number of intervals. If
 * *interval_ns is 0 or would result in too many intervals, sets *interval_ns to a suitable length. There must be at
 * least one transfer.
 */
transfers_interval *transfers_over_time(transfers *t, int64_t *interval_ns, size_t *count);

#endif
