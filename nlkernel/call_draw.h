/* The call graph, drawn by libgvc: .pdf, .svg, .png and .dot. One thread. */
#ifndef NLKERNEL_CALL_DRAW_H
#define NLKERNEL_CALL_DRAW_H

#include "call_view.h"

/* Returns whether a file with a name can be drawn; otherwise sets the error. */
bool call_draw_knows(const char *path);

/* Draws the selected functions and the calls between them. Returns false after reporting the problem. */
bool call_draw_graph(const call_view *v, const char *path);

#endif
