/*
 * Collects the numbers in records that do not belong to requests, such as records of sensors and of the kernel's state.
 * A series contains the values of one numeric field of one event, for one host and one instance, such as a disk. The
 * record's text fields name the instance. Memory is bounded, because the module joins adjacent samples of a long
 * series. Not thread-safe.
 */
#ifndef NLDIAG_SERIES_H
#define NLDIAG_SERIES_H

#include <glib.h>
#include <netlogger.h>
#include <stdbool.h>

enum { SERIES_MAX = 4096, SERIES_SAMPLES_MAX = 1024, INSTANCE_SIZE_MAX = 200 };

typedef struct series_sample {
    int64_t time_ns;
    double value;
} series_sample;

typedef struct sensor_series {
    char *event, *field, *host, *instance; /* instance is "" if the sensor has only one instance */
    GArray *samples;                       /* elements are series_sample; sorted by time after series_finish */
    guint joined, waiting;
    double sum;
    double lowest, highest;     /* smallest and largest value of the samples; set by series_finish */
    bool is_first;              /* first series with its event, field and instance; set by series_finish */
    struct sensor_series *next; /* next series with the same event, field and instance, from another host */
} sensor_series;

typedef struct series_set series_set;

series_set *series_new(void);
void series_free(series_set *s);
void series_set_add(series_set *s, const nl_record *record);
void series_finish(series_set *s);
const GPtrArray *series_all(const series_set *s); /* elements are sensor_series */

/* Returns the series of a host, whose elements are sensor_series, or NULL if the host has no series. */
const GPtrArray *series_of_host(const series_set *s, const char *host);

/* Returns the index of the first sample at or after a time, or the number of samples if all samples are earlier. */
guint series_index(const sensor_series *s, int64_t time_ns);

/* Returns the value of the first sample at or after a time, because a sample contains the mean over the time before it.
 * Returns NAN if all samples are earlier. */
double series_at(const sensor_series *s, int64_t time_ns);

#endif
