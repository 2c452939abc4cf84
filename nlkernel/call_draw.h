/* Pictures of calls, by libgvc: .pdf, .svg, .png and .dot. One thread. */
#ifndef NLKERNEL_CALL_DRAW_H
#define NLKERNEL_CALL_DRAW_H

#include "call_view.h"

/* Whether the name says a format that can be drawn. False with the reason in nl_error_message(). */
bool call_draw_knows(const char *path);

/* The shown functions and their calls of each other, hot ones redder. False after having said why. */
bool call_draw_graph(const call_view *v, const char *path);

/* How often the shown functions were called, as bars. False after having said why. */
bool call_draw_bars(const call_view *v, const char *path);

#endif
