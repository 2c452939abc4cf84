/*
 * Draws the waterfall of a request (model/waterfall.h): a bar for each span and wait, one below another in the order of
 * the tree.
 *
 * The bar of a span is pale where the span waits, and has the full color where the span itself runs. The bar of a wait
 * is an outline, which is dashed if the order of its two events is inferred. A line under the bars follows the critical
 * path. The duration is beside the bar. The difference from the median duration of spans or waits of the same kind is
 * at the right. In the bar of a much slower span or wait, a tick marks the time at which the span or wait would have
 * ended after the median duration. The records follow, one in each line.
 */
#ifndef NLV_WATERFALL_DRAWING_H
#define NLV_WATERFALL_DRAWING_H

#include "model/waterfall.h"

#include <cairo.h>

/* Returns the height of the drawing in units. */
double waterfall_height(const waterfall *w);

/*
 * Draws into [0, width) x [0, waterfall_height). The width of the bars represents `length_ns`, which is at least
 * w->length_ns. To compare requests, draw them with the same length.
 */
void waterfall_draw(const waterfall *w, cairo_t *cr, double width, int64_t length_ns, bool dark);

/* Returns the index of the row at a y coordinate, or G_MAXUINT. */
unsigned waterfall_find(const waterfall *w, double y);

/* Returns a sentence about a row, which the caller frees with g_free. */
char *waterfall_describe(const waterfall *w, unsigned row);

#endif
