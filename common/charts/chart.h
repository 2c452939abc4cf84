/*
 * What charts are drawn with, as PNG or SVG, by cairo: a rectangle with its axes, and what is usual within. For
 * programs only; uses GLib. One thread.
 */
#ifndef NETLOGGER_ANALYSIS_CHART_H
#define NETLOGGER_ANALYSIS_CHART_H

#include "base/distribution.h"
#include "program/units.h"

#include <cairo.h>

/* A rectangle to draw in, with its scales. */
typedef struct chart {
    cairo_t *cr;
    double x, y, width, height; /* of the plot, within its axes */
    double from, to;            /* what x goes from and to */
    double most;                /* what y goes to, from 0 */
} chart;

void chart_color(cairo_t *cr, unsigned rgb, double alpha);

/* Text at x, y: align 0 begins there, 0.5 is centred, 1 ends there. */
void chart_text(cairo_t *cr, double x, double y, double align, double size, const char *text);

/* Where values are. */
double chart_x(const chart *p, double value);
double chart_y(const chart *p, double value);

/* A round number of at least value: 1, 2 or 5 times a power of ten. */
double chart_round_up(double value);

/* The axes, and the title above. */
void chart_frame(const chart *p, const char *title);

/* What y is at four heights, said by write. */
void chart_heights(const chart *p, void (*write)(double value, char out[UNITS_SIZE]));
void chart_write_count(double value, char out[UNITS_SIZE]);
void chart_write_time(double value, char out[UNITS_SIZE]);
void chart_write_quantity(double value, char out[UNITS_SIZE]);

/* Times of day below a rectangle whose x is nanoseconds since 1970, and the day. */
void chart_times_of_day(const chart *p);

/* How often d had which value, on a logarithmic scale, whose values write says. d has some. */
void chart_histogram(chart p, nl_distribution *d, const char *title, void (*write)(double value, char out[UNITS_SIZE]));

/* Whether the name says a format that can be drawn: .png or .svg. */
bool chart_knows(const char *path);

/*
 * Makes a file of what draw draws on white. Returns false on failure.
 */
bool chart_save(const char *path, int width, int height, void (*draw)(cairo_t *cr, void *user), void *user);

#endif
