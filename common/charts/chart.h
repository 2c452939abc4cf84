/*
 * Draws charts with cairo, as PNG or SVG files. A chart is a plot with axes, or a histogram. Only one thread may use
 * the module.
 */
#ifndef NETLOGGER_ANALYSIS_CHART_H
#define NETLOGGER_ANALYSIS_CHART_H

#include "base/distribution.h"
#include "program/units.h"

#include <cairo.h>

/* A plot, with its scales. Positions are in pixels. */
typedef struct chart {
    cairo_t *cr;
    double x, y, width, height; /* position and size of the area within the axes */
    double from, to;            /* values at the ends of the x axis */
    double maximum;             /* value at the upper end of the y axis, which begins at 0 */
} chart;

/* Writes a value as text. Returns `out`. */
typedef const char *chart_write(double value, char out[UNITS_SIZE]);

/* Sets the color, which has the form 0xRRGGBB. `alpha` is from 0 to 1. */
void chart_color(cairo_t *cr, unsigned rgb, double alpha);

/*
 * Draws text of `size` pixels at the point x, y. The text begins at this point if `align` is 0, is centered there if
 * `align` is 0.5, and ends there if `align` is 1.
 */
void chart_text(cairo_t *cr, double x, double y, double align, double size, const char *text);

/* Return the position of a value on an axis. */
double chart_x(const chart *p, double value);
double chart_y(const chart *p, double value);

/* Returns the smallest round number (1, 2 or 5 times a power of ten) that is at least value. */
double chart_round_up(double value);

/* Draws the axes, and the title above the plot. */
void chart_frame(const chart *p, const char *title);

/* Draws value labels and grid lines at five heights of the y axis. */
void chart_heights(const chart *p, chart_write *write);

/* Draws times of day and the date below a plot whose x axis is in nanoseconds since 1970. */
void chart_times_of_day(const chart *p);

/* Draws a histogram of d, which must not be empty, with a logarithmic x axis. */
void chart_histogram(chart p, nl_distribution *d, const char *title, chart_write *write);

/* Returns whether the name of the file ends in .png or .svg. */
bool chart_knows(const char *path);

/*
 * Writes a file of width x height pixels. `draw` draws its content on a white background. On failure, returns false,
 * sets the error, and keeps the old content of the file.
 */
bool chart_save(const char *path, int width, int height, void (*draw)(cairo_t *cr, void *user), void *user);

#endif
