/* The functions of cairo. chart_save loads cairo, because most runs of the programs draw no chart. */
#ifndef NETLOGGER_CHARTS_CAIRO_LIBRARY_H
#define NETLOGGER_CHARTS_CAIRO_LIBRARY_H

#include "base/library.h"

#include <cairo-svg.h>
#include <cairo.h>

#define CAIRO_FUNCTIONS(FUNCTION)                                                                                      \
    FUNCTION(cairo_, arc)                                                                                              \
    FUNCTION(cairo_, create)                                                                                           \
    FUNCTION(cairo_, destroy)                                                                                          \
    FUNCTION(cairo_, fill)                                                                                             \
    FUNCTION(cairo_, image_surface_create)                                                                             \
    FUNCTION(cairo_, line_to)                                                                                          \
    FUNCTION(cairo_, move_to)                                                                                          \
    FUNCTION(cairo_, new_path)                                                                                         \
    FUNCTION(cairo_, paint)                                                                                            \
    FUNCTION(cairo_, rectangle)                                                                                        \
    FUNCTION(cairo_, select_font_face)                                                                                 \
    FUNCTION(cairo_, set_font_size)                                                                                    \
    FUNCTION(cairo_, set_line_width)                                                                                   \
    FUNCTION(cairo_, set_source_rgba)                                                                                  \
    FUNCTION(cairo_, show_text)                                                                                        \
    FUNCTION(cairo_, status)                                                                                           \
    FUNCTION(cairo_, status_to_string)                                                                                 \
    FUNCTION(cairo_, stroke)                                                                                           \
    FUNCTION(cairo_, surface_destroy)                                                                                  \
    FUNCTION(cairo_, surface_finish)                                                                                   \
    FUNCTION(cairo_, surface_status)                                                                                   \
    FUNCTION(cairo_, surface_write_to_png_stream)                                                                      \
    FUNCTION(cairo_, svg_surface_create_for_stream)                                                                    \
    FUNCTION(cairo_, text_extents)

NL_LIBRARY_DECLARE(cairo, CAIRO_FUNCTIONS);

#endif
