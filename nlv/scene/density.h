/*
 * Draws thousands of overlapping lines as a picture of their density: the number of lines that cross each pixel, and
 * the color of most of these lines. The color of a pixel is never a mixture, so that single lines stay visible. The
 * strength of a pixel grows with the logarithm of the number of lines.
 */
#ifndef NLV_DENSITY_H
#define NLV_DENSITY_H

#include "scene/palette.h"

#include <stdint.h>

typedef struct density density;

/*
 * Returns an empty picture of an area, whose edges are in user units. `scale` is the number of pixels per unit. The
 * caller frees the picture with density_free.
 */
density *density_new(double left, double top, double right, double bottom, double scale);
void density_free(density *d);

/*
 * density_band returns a band of an area, from `top` up to, but not including, `bottom` (in user units). Another thread
 * may draw into the band, which clips lines at its borders. density_join ends the band. The thread that owns the area
 * calls density_join.
 */
density *density_band(density *whole, double top, double bottom);
void density_join(density *band);

/* Sets the width of lines in units; the default is one pixel. */
void density_set_line_width(density *d, double width);

/* Draws `weight` lines between two points (in user units). `color` is less than DENSITY_COLORS, or is DENSITY_MIXED. */
enum { DENSITY_COLORS = 0xfe, DENSITY_MIXED = 0xfe, DENSITY_ALARM = 0xff };
void density_line(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color);

/* Draws a line in one color on top of all other lines. */
void density_line_on_top(density *d, double x0, double y0, double x1, double y1, unsigned color);

/* Returns the number of pixels drawn so far, as a measure of the cost of drawing. */
uint64_t density_work(const density *d);

/* Paints the picture. A pixel with `max` lines has full strength. If `max` is 0, uses the maximum in the picture. */
void density_paint(density *d, cairo_t *cr, bool dark, float max);

#endif
