/*
 * Draws a comparison (model/comparison.h): the answer in a sentence, the overlaid histograms of durations, and a table
 * of spans with their differences. Also draws, side by side, a request of median duration from each side. This module
 * has no state.
 */
#ifndef NLV_COMPARISON_DRAWING_H
#define NLV_COMPARISON_DRAWING_H

#include "model/comparison.h"
#include "model/waterfall.h"

#include <cairo.h>

typedef struct comparison_view {
    double width, height; /* in units */
    bool dark;
    const waterfall *requests[COMPARED_SIDES]; /* the typical requests, or NULL */
} comparison_view;

void comparison_draw(const comparison *c, const comparison_view *view, cairo_t *cr);

/* Returns the answer as a sentence, which the caller frees with g_free. */
char *comparison_describe(const comparison *c);

/* Returns sentences about requests that the comparison omits or contains only in part, or NULL if it contains all
 * requests completely. The caller frees the result with g_free. */
char *comparison_describe_left_out(const comparison *c);

/* Returns a row of the table as a sentence, for screen readers. The caller frees it with g_free. */
char *comparison_describe_row(const comparison *c, guint row);

/* Returns the waterfall of a side's typical request. The caller locks the model, and frees the result. */
waterfall *comparison_read_typical(const model *m, const comparison *c, unsigned side);

#endif
