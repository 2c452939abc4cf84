/*
 * The numbers that records outside of requests report over time: sensors, kernel states. A series is one numeric field
 * of one event on one host, and of one instance, such as a disk, named by the record's text fields. Memory is bounded:
 * a long series is thinned by joining neighbours. One thread at a time.
 */
#ifndef NLDIAG_SERIES_H
#define NLDIAG_SERIES_H

#include <glib.h>
#include <netlogger.h>

enum { SERIES_MAX = 4096, SERIES_SAMPLES_MAX = 1024, INSTANCE_SIZE_MAX = 200 };

typedef struct series_sample {
    int64_t time_ns;
    double value;
} series_sample;

typedef struct sensor_series {
    char *event, *field, *host, *instance; /* instance "": none */
    GArray *samples;                       /* series_sample; by time after series_finish */
    guint joined, waiting;
    double sum;
} sensor_series;

typedef struct series_set series_set;

series_set *series_new(void);
void series_free(series_set *s);
void series_set_add(series_set *s, const nl_record *record);
void series_finish(series_set *s);
const GPtrArray *series_all(const series_set *s); /* sensor_series */

/* Returns the value at a time: the latest sample, or the next one within one interval. NAN without one. */
double series_at(const sensor_series *s, int64_t time_ns);

#endif
