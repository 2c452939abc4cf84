/* Text through Pango: measured, ellipsised, placed by its edge. For one thread: what was laid out is kept. */
#ifndef NLV_TEXT_H
#define NLV_TEXT_H

#include "scene/palette.h"

typedef enum text_size { TEXT_SMALL, TEXT_NORMAL, TEXT_TITLE } text_size;

/* Where x says the text is. y is always its middle. */
typedef enum text_edge { TEXT_LEFT, TEXT_CENTER, TEXT_RIGHT } text_edge;

/* Draws text, cut with an ellipsis beyond most pixels (0: never cut). Returns the width that it took. */
double text_draw(cairo_t *cr, const char *text, text_size size, color c, text_edge edge, double x, double y,
                 double most);

/* The width that text would take. */
double text_width(cairo_t *cr, const char *text, text_size size);

/* The height of a line. */
double text_height(text_size size);

/* Several lines, as wide as given: how high they are; draws them from x and the top y on. */
double text_paragraph_height(cairo_t *cr, const char *text, text_size size, double width);
void text_draw_paragraph(cairo_t *cr, const char *text, text_size size, color c, double x, double y, double width);

#endif
