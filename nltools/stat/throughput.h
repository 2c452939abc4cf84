/* Sums a field, usually a number of bytes, over time. Not thread-safe. */
#ifndef NLSTAT_THROUGHPUT_H
#define NLSTAT_THROUGHPUT_H

#include "stat/series.h"

#include <netlogger.h>

typedef struct throughput {
    const char *field;
    series series;
    double total;
    uint64_t records;  /* number of records whose field is a number */
    uint64_t unusable; /* number of records whose field is not a number */
    int64_t from_ns, to_ns;
} throughput;

/* Adds a record. Before the first call, set `field`, and set the other members to zero. */
void throughput_add(throughput *t, const nl_record *record);

/* Returns the mean sum per second, or 0 if all records have the same time. */
double throughput_mean(const throughput *t);

void throughput_clear(throughput *t);

#endif
