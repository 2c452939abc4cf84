/*
 * Points: draws single events, with a row for each kind of event. Draws a glyph for each point. If there are many
 * points, draws a bar in each column instead; its height shows the number of points.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/density.h"
#include "scene/text.h"

#include <math.h>

enum { APART = 5 /* minimum distance between a glyph and other points, in units */, GLYPHS_MAX = 3000 };

static const drawing_point *point_of_row(const layer_context *c, unsigned row)
{
    return g_ptr_array_index(model_drawing(c->model)->points, row);
}

void points_layer_back(const layer_context *c, const pane *p)
{
    layer_pane(c, p);
    for (unsigned row = 0; row < p->rows; row++)
        layer_row(c, p, row, point_of_row(c, row)->name);
}

/* Draws a glyph. Rows use the glyphs in turn, so that adjacent rows differ in shape and color. */
static void glyph(cairo_t *cr, unsigned row, double x, double y, double size)
{
    switch (row % 3) {
    case 0: /* a diamond */
        cairo_move_to(cr, x, y - size);
        cairo_line_to(cr, x + size, y);
        cairo_line_to(cr, x, y + size);
        cairo_line_to(cr, x - size, y);
        break;
    case 1: /* a triangle */
        cairo_move_to(cr, x, y - size);
        cairo_line_to(cr, x + size, y + size);
        cairo_line_to(cr, x - size, y + size);
        break;
    default:
        cairo_rectangle(cr, x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
    }
    cairo_close_path(cr);
    cairo_fill(cr);
}

typedef struct points_row {
    const layer_context *c;
    const list *list;
    unsigned row;
    double y, half; /* middle and half of the row's height */
    double size;    /* size of a glyph */
    density *bars;
    unsigned *glyphs; /* number of glyphs drawn so far in all rows */
} points_row;

static unsigned color_of(const layer_context *c, uint32_t record)
{
    return model_host_color(c->model, store_host(c->store, record));
}

/* Returns the color of an entry, or of most entries in its node if `grain` is more than 1. */
static unsigned color_at(const points_row *r, size_t at, size_t grain)
{
    uint16_t known = grain > 1 ? list_node_of(r->list, at, grain)->color : LIST_COLOR_UNKNOWN;
    if (known == LIST_COLOR_UNKNOWN)
        return color_of(r->c, list_at(r->list, at)) % DENSITY_COLORS;
    return known == LIST_COLOR_MIXED ? DENSITY_MIXED : model_host_color(r->c->model, known) % DENSITY_COLORS;
}

static double bar_height(const points_row *r, size_t count)
{
    return r->half * MIN(0.35 + log10((double)count) / 6, 1);
}

static void draw_bars(const points_row *r, size_t from, size_t end, size_t grain)
{
    const layer_context *c = r->c;
    double unit = (c->layout->right - c->layout->left) / c->column_count;
    for (unsigned column = 0; column < c->column_count; column++) {
        size_t to = MIN(list_find_near(r->list, c->columns[column + 1], from, grain), end);
        double x = c->layout->left + (column + 0.5) * unit;
        if (to > from)
            density_line_on_top(r->bars, x, r->y - bar_height(r, to - from), x, r->y + bar_height(r, to - from),
                                color_at(r, from, grain));
        from = to;
    }
}

static void draw_column(const points_row *r, size_t from, size_t to, bool alone)
{
    const layer_context *c = r->c;
    uint32_t record = list_at(r->list, from);
    double x = layer_x(c, record);
    if (alone && *r->glyphs < GLYPHS_MAX) {
        ++*r->glyphs;
        palette_set(c->cr, palette_series(color_of(c, record), c->view->dark), 0.9);
        glyph(c->cr, r->row, x, r->y, r->size);
        return;
    }
    double height = bar_height(r, to - from);
    density_line_on_top(r->bars, floor(x) + 0.5, r->y - height, floor(x) + 0.5, r->y + height,
                        color_of(c, record) % DENSITY_COLORS);
}

static void draw_row(const points_row *r)
{
    const layer_context *c = r->c;
    size_t from = list_find(r->list, c->from, r->list->start), end = list_find(r->list, c->to, from);
    size_t grain = list_grain(end - from, c->column_count);
    if (grain > 1) {
        draw_bars(r, from, end, grain);
        return;
    }
    double last_x = -1e9;
    for (unsigned column = 0; column < c->column_count; column++) {
        size_t to = list_find(r->list, c->columns[column + 1], from);
        if (to == from)
            continue;
        double x = layer_x(c, list_at(r->list, from));
        double next_x = to < r->list->count ? layer_x(c, list_at(r->list, to)) : 1e9;
        draw_column(r, from, to, x - last_x >= APART && next_x - x >= APART);
        last_x = layer_x(c, list_at(r->list, to - 1));
        from = to;
    }
}

void points_layer_draw(const layer_context *c, const pane *p)
{
    double half = (p->bottom - p->top) / p->rows / 2, size = CLAMP(half / 1.5, 2, 4.5);
    unsigned glyphs = 0;
    density *bars = density_new(c->layout->left, p->top, c->layout->right, p->bottom, c->is_raster ? c->scale : 2);
    for (unsigned row = 0; row < p->rows && row < c->store->point_count; row++) {
        points_row r = {c, &c->store->points[row], row, layout_row_y(p, row), half * 0.9, size, bars, &glyphs};
        if (r.list->count == r.list->start)
            continue;
        size_t from = list_find(r.list, c->from, r.list->start), to = list_find(r.list, c->to, from);
        if (bars_draw(c, p, row, store_event(c->store, list_at(r.list, r.list->count - 1))) < to - from)
            draw_row(&r); /* some of the records are not spans */
    }
    if (density_work(bars) > 0)
        density_paint(bars, c->cr, c->view->dark, 1);
    density_free(bars);
}

void points_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found)
{
    int64_t from_ns = layout_time(c->layout, c->view, x - found->distance);
    for (unsigned row = 0; row < p->rows && row < c->store->point_count; row++) {
        const list *l = &c->store->points[row];
        double dy = fabs(layout_row_y(p, row) - y);
        if (l->count == l->start)
            continue;
        bars_find(c, p, row, store_event(c->store, list_at(l, l->count - 1)), x, y, found);
        if (dy >= found->distance)
            continue;
        for (size_t i = list_find(l, store_find_time(c->store, from_ns), l->start); i < l->count; i++) {
            double dx = layer_x(c, list_at(l, i)) - x;
            if (dx > found->distance)
                break;
            if (hypot(dx, dy) < found->distance)
                *found = (scene_found){hypot(dx, dy), list_at(l, i), -1, 0};
        }
    }
}
