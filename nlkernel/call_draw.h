/* Draws the call graph with libgvc, as a .pdf, .svg, .png or .dot file. Not thread-safe. */
#ifndef NLKERNEL_CALL_DRAW_H
#define NLKERNEL_CALL_DRAW_H

#include "call_view.h"

/* Returns whether the module supports the extension of a file name. If not, sets the error. */
bool call_draw_knows(const char *path);

/* Draws the selected functions and the calls between them. On failure, reports the problem and returns false. */
bool call_draw_graph(const call_view *v, const char *path);

#endif
