#include "config.h"

#include "scene/palette.h"

#include <glib.h>

static color rgb(unsigned hex)
{
    return (color){(hex >> 16 & 255) / 255.0, (hex >> 8 & 255) / 255.0, (hex & 255) / 255.0};
}

color palette_series(size_t i, bool dark)
{
    static const unsigned light[PALETTE_SERIES] = {0x0072b2, 0xd55e00, 0x009e73, 0xaa3377,
                                                   0xe69f00, 0x56b4e9, 0xcc79a7, 0x7f7f7f};
    static const unsigned on_dark[PALETTE_SERIES] = {0x4aa8e0, 0xff8a3d, 0x2fc99a, 0xe79bc5,
                                                     0xf5bf3f, 0x8fd0f7, 0xa98ddb, 0xaaaaaa};
    const unsigned *own = dark ? on_dark : light;
    if (i < PALETTE_SERIES)
        return rgb(own[i]);
    /* further colors have the same hues, alternately lighter and darker */
    color c = rgb(own[i % PALETTE_SERIES]);
    size_t turn = i / PALETTE_SERIES;
    double toward = turn % 2 == 1 ? (dark ? 1 : 0) : (dark ? 0.15 : 0.8);
    double share = 0.32 + 0.2 * (double)(turn / 2 % 3) / 3;
    return (color){c.red + (toward - c.red) * share, c.green + (toward - c.green) * share,
                   c.blue + (toward - c.blue) * share};
}

color palette_background(bool dark)
{
    return rgb(dark ? 0x1e1f22 : 0xffffff);
}

color palette_pane(bool dark)
{
    return rgb(dark ? 0x26282c : 0xfafafa);
}

color palette_grid(bool dark)
{
    return rgb(dark ? 0x3a3d42 : 0xe2e2e2);
}

color palette_text(bool dark)
{
    return rgb(dark ? 0xe6e6e6 : 0x222222);
}

color palette_muted(bool dark)
{
    return rgb(dark ? 0x9a9da3 : 0x6a6a6a);
}

color palette_mixed(bool dark)
{
    return rgb(dark ? 0x8a93a3 : 0x7b8494);
}

color palette_alarm(void)
{
    return rgb(0xe00000);
}

color palette_error(bool dark)
{
    return rgb(dark ? 0xff5fbf : 0xc2006b);
}

color palette_slow(bool dark)
{
    return rgb(dark ? 0xffa533 : 0xe66100);
}

color palette_accent(bool dark)
{
    return rgb(dark ? 0x6cb2ff : 0x1a5fb4);
}

uint32_t palette_pixel(color ink)
{
    return UINT32_C(0xff000000) | (uint32_t)(ink.red * 255) << 16 | (uint32_t)(ink.green * 255) << 8 |
           (uint32_t)(ink.blue * 255);
}

color palette_heat(double share, bool dark)
{
    static const color light[] = {{0.78, 0.86, 0.95}, {0.05, 0.23, 0.50}},
                       on_dark[] = {{0.18, 0.30, 0.44}, {0.70, 0.86, 1}};
    const color *ends = dark ? on_dark : light;
    return (color){ends[0].red + share * (ends[1].red - ends[0].red),
                   ends[0].green + share * (ends[1].green - ends[0].green),
                   ends[0].blue + share * (ends[1].blue - ends[0].blue)};
}

color palette_value(double share, bool dark)
{
    /* YlGnBu of ColorBrewer (C. Brewer), whose colors differ in hue and lightness; on dark, large values are light */
    static const unsigned scale[] = {0xedf8d9, 0xc7e9b4, 0x7fcdbb, 0x41b6c4, 0x1d91c0, 0x225ea8, 0x0c2c84};
    enum { STEPS = sizeof scale / sizeof *scale - 1 };
    const double at = (dark ? 1 - share : share) * STEPS;
    const int step = (int)CLAMP(at, 0, STEPS - 1);
    const color from = rgb(scale[step]), to = rgb(scale[step + 1]);
    return (color){from.red + (at - step) * (to.red - from.red), from.green + (at - step) * (to.green - from.green),
                   from.blue + (at - step) * (to.blue - from.blue)};
}

color palette_state(unsigned state, bool dark)
{
    /* running, runnable, disk, futex, lock, network, waiting */
    static const unsigned light[] = {0x3fa34d, 0xf0b400, 0x8c510a, 0x9467bd, 0x54278f, 0x1f77b4, 0xc4c6ca},
                          on_dark[] = {0x5fd07a, 0xf5c542, 0xc98a4b, 0xb99be0, 0x7d57c1, 0x5aa9e6, 0x5a5e66};
    return rgb((dark ? on_dark : light)[state < sizeof light / sizeof *light ? state : 0]);
}

void palette_set(cairo_t *cr, color c, double alpha)
{
    cairo_set_source_rgba(cr, c.red, c.green, c.blue, alpha);
}
