#include "config.h"

#include "scene/palette.h"

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
    return rgb((dark ? on_dark : light)[i % PALETTE_SERIES]);
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

color palette_alarm(void)
{
    return rgb(0xe00000);
}

void palette_set(cairo_t *cr, color c, double alpha)
{
    cairo_set_source_rgba(cr, c.red, c.green, c.blue, alpha);
}
