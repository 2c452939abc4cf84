/* Colors. The colors of series (palette_series) are the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/),
 * which color-blind people can distinguish, plus a darker purple before the light purple. This module has no state. */
#ifndef NLV_PALETTE_H
#define NLV_PALETTE_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct color {
    double red, green, blue;
} color;

enum { PALETTE_SERIES = 8 };

/* Returns the color of series i. After PALETTE_SERIES colors, darker and lighter colors of the same hues follow. */
color palette_series(size_t i, bool dark);

color palette_background(bool dark);
color palette_pane(bool dark); /* behind a pane */
color palette_grid(bool dark); /* thin lines */
color palette_text(bool dark);
color palette_muted(bool dark); /* less important text */
color palette_mixed(bool dark); /* for a mixture of colors without a prevailing color */
color palette_alarm(void);      /* impossible data, such as time that runs backwards */

color palette_error(bool dark); /* failed requests */
color palette_slow(bool dark);  /* requests that are much slower than most others */

color palette_accent(bool dark); /* marked by the user */

/* Returns an opaque pixel of a cairo picture (CAIRO_FORMAT_ARGB32). */
uint32_t palette_pixel(color ink);

/* Returns a color of the scale from a small (share = 0) to a large number (share = 1) of requests. */
color palette_heat(double share, bool dark);

/* Like palette_heat, for values of a measurement. The colors differ more, so that a reader can compare values. */
color palette_value(double share, bool dark);

/* Returns the color of a state of a thread (thread_state). */
color palette_state(unsigned state, bool dark);

void palette_set(cairo_t *cr, color c, double alpha);

#endif
