/*
 * Compresses pictures for the page, as PNG. cairo's own function is several times slower, because it compresses more.
 * This module has no state. Any thread may call this function.
 */
#ifndef NLV_SERVE_PICTURE_H
#define NLV_SERVE_PICTURE_H

#include <cairo.h>
#include <glib.h>

/* Returns an image surface (CAIRO_FORMAT_RGB24) as PNG, or NULL if compression fails. The caller owns the result. */
GByteArray *picture_compress(cairo_surface_t *surface);

#endif
