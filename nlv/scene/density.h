/*
 * Thousands of overlapping lines as a picture: how many cross each pixel, and which colour most of them have there.
 * A pixel shows one colour pure, the more of it the more lines there are (by the logarithm), so that colours never mix
 * to mud, and one line is still seen where there is nothing else.
 */
#ifndef NLV_DENSITY_H
#define NLV_DENSITY_H

#include "scene/palette.h"

#include <stdint.h>

typedef struct density density;

/* Pixels of the area; scale is how many there are to a unit of the user's. Freed with density_free. */
density *density_new(double left, double top, double right, double bottom, double scale);
void density_free(density *d);

/*
 * The part of an area from top to before bottom (units), to draw lines into that belong there: of others only what lies
 * in the part is drawn. Bands that do not overlap may be drawn into by one thread each. Ended with density_join, by the
 * thread that has the whole.
 */
density *density_band(density *whole, double top, double bottom);
void density_join(density *band);

/* How wide lines are, in units; at first they are a pixel wide, whatever a unit is. */
void density_set_line_width(density *d, double width);

/* Adds weight lines from one place to the other (user's units), in a colour below DENSITY_COLORS, or that of what is of
 * many. */
enum { DENSITY_COLORS = 0xfe, DENSITY_MIXED = 0xfe, DENSITY_ALARM = 0xff };
void density_line(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color);

/* The same of a line that stands before all others, in one colour whatever lies behind. */
void density_line_on_top(density *d, double x0, double y0, double x1, double y1, unsigned color);

/* How many pixels were touched so far: what the drawing costs. */
uint64_t density_work(const density *d);

/* Puts the picture in its place. most: so many lines are as dark as it gets; 0: as many as there are. */
void density_paint(density *d, cairo_t *cr, bool dark, float most);

#endif
