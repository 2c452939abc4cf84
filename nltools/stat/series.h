/*
 * A sum over time, in intervals of one width: how much of something there was in each.
 *
 * The intervals begin as a millisecond each and become twice as wide whenever there would be more than SERIES_MAX, so
 * that memory is bounded whatever times come, in whatever order. One thread at a time.
 */
#ifndef NLSTAT_SERIES_H
#define NLSTAT_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum { SERIES_MAX = 1 << 16 };

typedef struct series_interval {
    double sum;
    uint64_t count;
} series_interval;

typedef struct series {
    int64_t from_ns; /* where the first interval begins */
    int64_t width_ns;
    series_interval *intervals;
    size_t count;
} series;

/* A series begins as all zeros. */
void series_add(series *s, int64_t time_ns, double value);

/* Makes the intervals at least width_ns wide (as near above as doubling and joining get), for looking at. Nothing may
 * be added afterwards. */
void series_widen(series *s, int64_t width_ns);

/* Where an interval begins. */
int64_t series_from_ns(const series *s, size_t i);

/* Frees what it holds; it is as at the beginning then. */
void series_clear(series *s);

#endif
