/* The whole log in a strip below the plot: how many records there are when, and which part of it is visible. */
#include "config.h"

#include "scene/layers.h"

#include "scene/text.h"

#include <math.h>

static void draw_bars(const layer_context *c)
{
    const layout *l = c->layout;
    const store *s = c->store;
    unsigned width = (unsigned)MAX(l->right - l->left, 1);
    double most = 0, *counts = g_new0(double, width + 1);
    uint32_t before = s->first;
    for (unsigned x = 0; x < width; x++) {
        uint32_t next = x + 1 < width ? store_find_time(s, layout_overview_time(l, l->left + x + 1)) : s->count;
        counts[x] = log1p(next > before ? next - before : 0);
        most = MAX(most, counts[x]);
        before = MAX(before, next);
    }
    double height = l->overview_bottom - l->overview_top - 2;
    for (unsigned x = 0; x < width && most > 0; x++)
        if (counts[x] > 0) {
            double own = MAX(height * counts[x] / most, 2);
            cairo_rectangle(c->cr, floor(l->left) + x, floor(l->overview_bottom - own), 1, ceil(own));
        }
    palette_set(c->cr, palette_muted(c->view->dark), 0.8);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_NONE);
    cairo_fill(c->cr);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_DEFAULT);
    g_free(counts);
}

void overview_layer_draw(const layer_context *c)
{
    const layout *l = c->layout;
    cairo_t *cr = c->cr;
    bool dark = c->view->dark;
    if (l->overview_bottom <= l->overview_top)
        return;
    double height = l->overview_bottom - l->overview_top;
    cairo_rectangle(cr, l->left, l->overview_top, l->right - l->left, height);
    palette_set(cr, palette_pane(dark), 1);
    cairo_fill(cr);
    draw_bars(c);
    double from = CLAMP(layout_overview_x(l, c->view->from_ns), l->left, l->right - 2);
    double to = CLAMP(layout_overview_x(l, c->view->to_ns), from + 2, l->right);
    palette_set(cr, palette_background(dark), 0.6); /* what is not visible steps back */
    cairo_rectangle(cr, l->left, l->overview_top, from - l->left, height);
    cairo_rectangle(cr, to, l->overview_top, l->right - to, height);
    cairo_fill(cr);
    palette_set(cr, palette_accent(dark), 1);
    cairo_set_line_width(cr, 1.5);
    cairo_rectangle(cr, floor(from) + 0.5, floor(l->overview_top) + 0.5, MAX(floor(to - from) - 1, 1), height - 1);
    cairo_stroke(cr);
    text_draw(cr, "whole log", TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, l->left - 8, l->overview_top + height / 2,
              0);
}
