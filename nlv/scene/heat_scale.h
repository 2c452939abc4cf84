/*
 * The logarithmic scale of durations that the heat map and its histogram share, and the areas that the user marks in
 * the heat map and the histogram. This module has no state.
 */
#ifndef NLV_HEAT_SCALE_H
#define NLV_HEAT_SCALE_H

#include "scene/layout.h"
#include "scene/palette.h"

/* The rows [low, high) of the map, and the y coordinates between which these rows are drawn. The row `low` also
 * contains the requests of lower rows. */
typedef struct heat_scale {
    unsigned low, high;
    double top, bottom;
    bool is_cut; /* there are requests below `low` */
} heat_scale;

/* Returns whether the strip is high enough for the counts at the top of the histogram. */
bool heat_scale_has_counts(const layout *l);

/* Returns the scale with all rows that have requests, and a margin. The scale omits the rows of a few requests that are
 * shorter than the others by several powers of ten. */
heat_scale heat_scale_of(const heat_map *h, const layout *l);

/* Returns the y coordinate of a row. `row` may have a fraction, which is the position within the row. */
double heat_scale_y(const heat_scale *s, double row);

/* Returns the row of a duration. The fraction is the position within the row. */
double heat_row_of_ns(double duration_ns);

/* Returns the color of the lines of a log's requests. Call the function only if request_list_has_logs returns true. */
color heat_scale_log_color(const model *m, unsigned log, bool dark);

/* Returns the lowest row of slow requests. */
unsigned heat_scale_slow_row(const heat_map *h);

/*
 * Returns the requests in the area between two points in the strip or in the histogram: the requests of all cells that
 * the area touches. If the points are nearly equal, returns the requests within a few units of the points. An area of
 * the histogram covers all times.
 */
request_choice heat_scale_area(const heat_map *h, const layout *l, double x0, double y0, double x1, double y1);

#endif
