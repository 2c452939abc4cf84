#include "config.h"

#include "scene/text.h"

#include <pango/pangocairo.h>

static PangoLayout *new_layout(cairo_t *cr, const char *text, text_size size)
{
    static const char *const fonts[] = {[TEXT_SMALL] = "DejaVu Sans, Sans 10px",
                                        [TEXT_NORMAL] = "DejaVu Sans, Sans 12px",
                                        [TEXT_TITLE] = "DejaVu Sans, Sans Bold 15px"};
    PangoLayout *layout = pango_cairo_create_layout(cr);
    PangoFontDescription *font = pango_font_description_from_string(fonts[size]);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    char *valid = g_utf8_make_valid(text, -1);
    pango_layout_set_text(layout, valid, -1);
    g_free(valid);
    pango_layout_set_single_paragraph_mode(layout, TRUE);
    return layout;
}

double text_draw(cairo_t *cr, const char *text, text_size size, color c, text_edge edge, double x, double y,
                 double most)
{
    PangoLayout *layout = new_layout(cr, text, size);
    if (most > 0) {
        pango_layout_set_width(layout, (int)(most * PANGO_SCALE));
        pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_MIDDLE);
    }
    PangoRectangle ink, logical;
    pango_layout_get_extents(layout, &ink, &logical);
    double width = (double)logical.width / PANGO_SCALE, height = (double)logical.height / PANGO_SCALE;
    double left = edge == TEXT_LEFT ? x : edge == TEXT_CENTER ? x - width / 2 : x - width;
    palette_set(cr, c, 1);
    cairo_move_to(cr, left - (double)logical.x / PANGO_SCALE, y - height / 2);
    pango_cairo_show_layout(cr, layout);
    g_object_unref(layout);
    return width;
}

double text_width(cairo_t *cr, const char *text, text_size size)
{
    PangoLayout *layout = new_layout(cr, text, size);
    PangoRectangle logical;
    pango_layout_get_extents(layout, NULL, &logical);
    g_object_unref(layout);
    return (double)logical.width / PANGO_SCALE;
}

double text_height(text_size size)
{
    return size == TEXT_SMALL ? 13 : size == TEXT_NORMAL ? 16 : 20;
}
