/*
 * Sums values over time, in intervals of equal width.
 *
 * The width is 1 ms at first. The module doubles the width when the times require more than SERIES_MAX intervals, so
 * that memory is bounded for any times in any order. Initialize a series with zeros. Not thread-safe.
 */
#ifndef NLSTAT_SERIES_H
#define NLSTAT_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum { SERIES_MAX = 1 << 16, SERIES_ROWS_MAX = 30 };

typedef struct series_interval {
    double sum;
    uint64_t count;
} series_interval;

typedef struct series {
    int64_t from_ns; /* start of the first interval */
    int64_t width_ns;
    series_interval *intervals;
    size_t count;
} series;

/* Adds a value at the time `time_ns`. */
void series_add(series *s, int64_t time_ns, double value);

/* Joins intervals until they are at least width_ns wide. Do not add values after this call. */
void series_widen(series *s, int64_t width_ns);

/*
 * Returns a width in nanoseconds that divides a duration of span_ns into at most SERIES_ROWS_MAX intervals. The width
 * is at least 1 ms, and is a power of ten multiplied by 1, 2 or 5.
 */
int64_t series_nice_width_ns(double span_ns);

/* Returns the start time of an interval. */
int64_t series_from_ns(const series *s, size_t i);

/* Frees the intervals. The series is empty afterwards. */
void series_clear(series *s);

#endif
