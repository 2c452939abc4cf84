/* Points: single happenings, a row for each kind, a glyph for each; those that fall on one pixel are drawn once. */
#include "config.h"

#include "scene/layers.h"

#include "scene/text.h"

#include <math.h>

static const drawing_point *point_of_row(const layer_context *c, unsigned row)
{
    return g_ptr_array_index(model_drawing(c->model)->points, row);
}

void points_layer_back(const layer_context *c, const pane *p)
{
    layer_pane(c, p);
    double row_height = (p->bottom - p->top) / p->rows;
    unsigned every = (unsigned)ceil(text_height(TEXT_NORMAL) / row_height);
    for (unsigned row = 0; row < p->rows; row++)
        layer_row(c, p, row, row % every == 0 ? point_of_row(c, row)->name : "");
}

/* A glyph for each row in turn, so that neighbours differ in shape as well as in colour. */
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

void points_layer_draw(const layer_context *c, const pane *p)
{
    const trace *t = model_trace(c->model);
    double size = CLAMP((p->bottom - p->top) / p->rows / 3, 2, 4.5);
    for (unsigned row = 0; row < p->rows; row++) {
        uint32_t event = trace_find(t, point_of_row(c, row)->event);
        double last_x = -1e9;
        for (size_t i = model_find_time(c->model, c->view->from_ns); event != TRACE_NONE && i < trace_count(t); i++) {
            const trace_record *record = trace_get(t, i);
            if (record->time_ns > c->view->to_ns)
                break;
            double x = layout_x(c->layout, c->view, record->time_ns);
            if (record->event != event || x - last_x < 0.5)
                continue;
            palette_set(c->cr, layer_color(c, record->host), 0.9);
            glyph(c->cr, row, x, layout_row_y(p, row), size);
            last_x = x;
        }
    }
}

void points_layer_find(const layer_context *c, const pane *p, double x, double y, double *distance, size_t *record)
{
    const trace *t = model_trace(c->model);
    for (unsigned row = 0; row < p->rows; row++) {
        uint32_t event = trace_find(t, point_of_row(c, row)->event);
        double dy = fabs(layout_row_y(p, row) - y);
        if (event == TRACE_NONE || dy >= *distance)
            continue;
        for (size_t i = model_find_time(c->model, c->view->from_ns); i < trace_count(t); i++) {
            const trace_record *r = trace_get(t, i);
            if (r->time_ns > c->view->to_ns)
                break;
            double away = hypot(layout_x(c->layout, c->view, r->time_ns) - x, dy);
            if (r->event == event && away < *distance) {
                *distance = away;
                *record = i;
            }
        }
    }
}
