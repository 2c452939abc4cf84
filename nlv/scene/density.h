/*
 * Draws thousands of overlapping lines as a picture of their density: the number of lines that cross each pixel, and
 * the colour of most of these lines. A pixel has one pure colour, stronger with more lines (by the logarithm), so that
 * colours do not mix and a single line stays visible.
 */
#ifndef NLV_DENSITY_H
#define NLV_DENSITY_H

#include "scene/palette.h"

#include <stdint.h>

typedef struct density density;

/*
 * Creates a picture of an area, given in user units. scale is the number of pixels per unit. Free the result with
 * density_free.
 */
density *density_new(double left, double top, double right, double bottom, double scale);
void density_free(density *d);

/*
 * Returns a band of an area, from top up to, but not including, bottom (in units). Another thread may draw into the
 * band. Lines are clipped at its borders. The owner of the area ends the band with density_join.
 */
density *density_band(density *whole, double top, double bottom);
void density_join(density *band);

/* Sets the width of lines in units; the default is one pixel. */
void density_set_line_width(density *d, double width);

/* Draws `weight` lines between two places (in user units). color is below DENSITY_COLORS, or DENSITY_MIXED. */
enum { DENSITY_COLORS = 0xfe, DENSITY_MIXED = 0xfe, DENSITY_ALARM = 0xff };
void density_line(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color);

/* Draws a line on top of all others in one colour. */
void density_line_on_top(density *d, double x0, double y0, double x1, double y1, unsigned color);

/* Returns the number of pixels touched so far, which is the cost of drawing. */
uint64_t density_work(const density *d);

/* Paints the picture. max is the number of lines with full strength; 0 means the maximum in the picture. */
void density_paint(density *d, cairo_t *cr, bool dark, float max);

#endif
