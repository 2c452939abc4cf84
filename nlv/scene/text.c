#include "config.h"

#include "requests/printable.h"
#include "scene/text.h"

#include <pango/pangocairo.h>

enum { KEPT_MAX = 500 };

/* A cache of text layouts, because creating layouts is the most expensive part of a frame. */
static GHashTable *kept;

static PangoLayout *new_layout(cairo_t *cr, const char *text, text_size size)
{
    static const char *const fonts[] = {[TEXT_SMALL] = "DejaVu Sans, Sans 10px",
                                        [TEXT_NORMAL] = "DejaVu Sans, Sans 12px",
                                        [TEXT_TITLE] = "DejaVu Sans, Sans Bold 15px"};
    PangoLayout *layout = pango_cairo_create_layout(cr);
    PangoFontDescription *font = pango_font_description_from_string(fonts[size]);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    char *valid = printable(text);
    pango_layout_set_text(layout, valid, -1);
    g_free(valid);
    pango_layout_set_single_paragraph_mode(layout, TRUE);
    return layout;
}

/* Returns the layout of a text with a maximum width of `max` units; 0: no maximum. If the text is wider, the layout
 * omits the part `cuts`. The cache owns the layout. */
static PangoLayout *layout_of(cairo_t *cr, const char *text, text_size size, double max, PangoEllipsizeMode cuts)
{
    char *key = g_strdup_printf("%d %d %d %d %s", (int)cairo_surface_get_type(cairo_get_target(cr)), (int)size,
                                (int)max, (int)cuts, text);
    if (kept == NULL)
        kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    PangoLayout *layout = g_hash_table_lookup(kept, key);
    if (layout != NULL) {
        pango_cairo_update_layout(cr, layout);
        g_free(key);
        return layout;
    }
    if (g_hash_table_size(kept) >= KEPT_MAX)
        g_hash_table_remove_all(kept);
    layout = new_layout(cr, text, size);
    if (max > 0) {
        pango_layout_set_width(layout, (int)max * PANGO_SCALE);
        pango_layout_set_ellipsize(layout, cuts);
    }
    g_hash_table_insert(kept, key, layout);
    return layout;
}

double text_draw(cairo_t *cr, const char *text, text_size size, color c, text_edge edge, double x, double y, double max)
{
    PangoLayout *layout =
        layout_of(cr, text, size, max, edge == TEXT_START ? PANGO_ELLIPSIZE_END : PANGO_ELLIPSIZE_MIDDLE);
    PangoRectangle ink, logical;
    pango_layout_get_extents(layout, &ink, &logical);
    double width = (double)logical.width / PANGO_SCALE, height = (double)logical.height / PANGO_SCALE;
    double left = edge <= TEXT_START ? x : edge == TEXT_CENTER ? x - width / 2 : x - width;
    palette_set(cr, c, 1);
    cairo_move_to(cr, left - (double)logical.x / PANGO_SCALE, y - height / 2);
    pango_cairo_show_layout(cr, layout);
    return width;
}

double text_width(cairo_t *cr, const char *text, text_size size)
{
    PangoRectangle logical;
    pango_layout_get_extents(layout_of(cr, text, size, 0, PANGO_ELLIPSIZE_MIDDLE), NULL, &logical);
    return (double)logical.width / PANGO_SCALE;
}

double text_height(text_size size)
{
    return size == TEXT_SMALL ? 13 : size == TEXT_NORMAL ? 16 : 20;
}

static PangoLayout *paragraph(cairo_t *cr, const char *text, text_size size, double width)
{
    PangoLayout *layout = new_layout(cr, text, size);
    pango_layout_set_single_paragraph_mode(layout, FALSE);
    pango_layout_set_width(layout, (int)(width * PANGO_SCALE));
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    return layout;
}

double text_paragraph_height(cairo_t *cr, const char *text, text_size size, double width)
{
    PangoLayout *layout = paragraph(cr, text, size, width);
    int height;
    pango_layout_get_pixel_size(layout, NULL, &height);
    g_object_unref(layout);
    return height;
}

void text_draw_paragraph(cairo_t *cr, const char *text, text_size size, color c, double x, double y, double width)
{
    PangoLayout *layout = paragraph(cr, text, size, width);
    palette_set(cr, c, 1);
    cairo_move_to(cr, x, y);
    pango_cairo_show_layout(cr, layout);
    g_object_unref(layout);
}
