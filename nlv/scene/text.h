/* Measures, ellipsizes and draws text with Pango. The module caches layouts, and is not thread-safe. */
#ifndef NLV_TEXT_H
#define NLV_TEXT_H

#include "scene/palette.h"

typedef enum text_size { TEXT_SMALL, TEXT_NORMAL, TEXT_TITLE } text_size;

/* The part of the text that is at x: the left edge, the middle or the right edge. The vertical middle of the text is
 * always at y. TEXT_START is like TEXT_LEFT, but a text that is too wide loses its end instead of its middle. */
typedef enum text_edge { TEXT_LEFT, TEXT_START, TEXT_CENTER, TEXT_RIGHT } text_edge;

/* Draws text, with an ellipsis if the text is wider than `max` units (0: no limit). Returns the width of the drawn text
 * in units. */
double text_draw(cairo_t *cr, const char *text, text_size size, color c, text_edge edge, double x, double y,
                 double max);

double text_width(cairo_t *cr, const char *text, text_size size);

/* Returns the height of a line of text in units. */
double text_height(text_size size);

/* text_paragraph_height returns the height of a paragraph with a given width. text_draw_paragraph draws a paragraph
 * at x, with its top at y. */
double text_paragraph_height(cairo_t *cr, const char *text, text_size size, double width);
void text_draw_paragraph(cairo_t *cr, const char *text, text_size size, color c, double x, double y, double width);

#endif
