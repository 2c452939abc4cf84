/* How much there was of what a field counts (bytes, most often), over time. One thread at a time. */
#ifndef NLSTAT_THROUGHPUT_H
#define NLSTAT_THROUGHPUT_H

#include "stat/series.h"

#include <netlogger.h>

typedef struct throughput {
    const char *field;
    series series;
    double total;
    uint64_t records;  /* with the field */
    uint64_t unusable; /* whose field is no number */
    int64_t from_ns, to_ns;
} throughput;

/* A throughput begins as all zeros but for the field. */
void throughput_add(throughput *t, const nl_record *record);

/* The same per second of the whole time; 0 when that is none. */
double throughput_mean(const throughput *t);

void throughput_clear(throughput *t);

#endif
