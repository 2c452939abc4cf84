/*
 * Counts the requests of a log by start and by duration, for the heat map. The map has HEAT_COLUMNS columns of equal
 * width. When a request starts outside of the columns, the width doubles, so that the map always covers all requests
 * and needs constant memory. Four rows cover each doubling of the duration in nanoseconds. request_list.h adds
 * requests, and scene/heat_layer.c draws the map. The owner of the map locks it.
 */
#ifndef NLV_HEAT_MAP_H
#define NLV_HEAT_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { HEAT_COLUMNS = 1024, HEAT_ROWS = 256 };

typedef struct heat_cell {
    uint32_t count, failed;
} heat_cell;

typedef struct heat_map {
    unsigned number;  /* unique number of the map in this process */
    int64_t from_ns;  /* the start of the first column */
    int64_t width_ns; /* width of a column; 0: the map is empty */
    heat_cell (*columns)[HEAT_ROWS];
    bool is_used[HEAT_COLUMNS];   /* the column has requests */
    uint64_t totals[HEAT_ROWS];   /* number of requests by duration */
    uint64_t failures[HEAT_ROWS]; /* number of failed requests by duration */
    uint64_t count, failed;
    int64_t max_ns; /* the longest duration */
} heat_map;

void heat_map_init(heat_map *h);
void heat_map_clear(heat_map *h); /* frees the members, not the map */

/* Adds a request. `duration_ns` is at least 0. */
void heat_map_add(heat_map *h, int64_t start_ns, int64_t duration_ns, bool is_failed);

/* Returns the row of a duration. */
unsigned heat_row(int64_t duration_ns);

/* Returns the smallest duration of a row in nanoseconds. `row` is at most HEAT_ROWS. */
double heat_row_ns(unsigned row);

/* Returns the column at a time. The number may have a fraction, and may be outside of the map. */
double heat_map_column(const heat_map *h, int64_t time_ns);

/*
 * Returns a quantile in nanoseconds: the duration that a share (0 to 1) of the requests does not exceed. counts[row] is
 * the number of requests in a row. Interpolates in the row, so that the result can exceed the longest duration of the
 * row. Returns 0 if all counts are 0.
 */
double heat_quantile(const uint64_t counts[HEAT_ROWS], double share);

/*
 * Returns the duration in nanoseconds above which a request is an outlier. The logarithm of this limit is three
 * interquartile ranges above the third quartile of the logarithms of all durations (Tukey, Exploratory Data Analysis,
 * 1977). The result is at least twice the third quartile, and at least the 99th percentile.
 */
double heat_map_slow_ns(const heat_map *h);

#endif
