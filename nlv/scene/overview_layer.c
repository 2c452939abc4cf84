/*
 * The overview: a strip below the plot with the whole log and the visible part. The strip is the heat map of requests,
 * or the density of records if the log has no requests.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/text.h"

#include <math.h>

/* The densities of records. The layer caches the densities until the log or the width changes, because counting the
 * records takes as long as drawing the plot. */
static struct {
    const store *store;
    uint32_t first, count;
    int64_t from_ns, to_ns;
    unsigned width;
    double *heights; /* height of each column, 0 to 1 */
} kept;

static void count_records(const layer_context *c, unsigned width)
{
    const layout *l = c->layout;
    const store *s = c->store;
    double max = 0;
    uint32_t before = s->first;
    bool near = (s->count - s->first) / width >= 8 * STORE_MARK;
    if (kept.store == s && kept.first == s->first && kept.count == s->count && kept.width == width &&
        kept.from_ns == l->whole_from_ns && kept.to_ns == l->whole_to_ns)
        return;
    kept.store = s;
    kept.first = s->first;
    kept.count = s->count;
    kept.width = width;
    kept.from_ns = l->whole_from_ns;
    kept.to_ns = l->whole_to_ns;
    kept.heights = g_renew(double, kept.heights, width + 1);
    for (unsigned x = 0; x < width; x++) {
        int64_t end_ns = layout_overview_time(l, l->left + x + 1);
        uint32_t next = x + 1 == width ? s->count : near ? store_find_time_near(s, end_ns) : store_find_time(s, end_ns);
        kept.heights[x] = log1p(next > before ? next - before : 0);
        max = MAX(max, kept.heights[x]);
        before = MAX(before, next);
    }
    for (unsigned x = 0; x < width && max > 0; x++)
        kept.heights[x] /= max;
}

static void draw_bars(const layer_context *c)
{
    const layout *l = c->layout;
    unsigned width = (unsigned)MAX(l->overview_right - l->left, 1);
    double height = l->overview_bottom - l->overview_top - 2;
    count_records(c, width);
    for (unsigned x = 0; x < width; x++)
        if (kept.heights[x] > 0) {
            double own = MAX(height * kept.heights[x], 2);
            cairo_rectangle(c->cr, floor(l->left) + x, floor(l->overview_bottom - own), 1, ceil(own));
        }
    palette_set(c->cr, palette_muted(c->view->dark), 0.8);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_NONE);
    cairo_fill(c->cr);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_DEFAULT);
}

/* Draws the message that the heat map will appear later. */
static void draw_finding(const layer_context *c)
{
    static const char *const text = "finding the requests\342\200\246";
    const layout *l = c->layout;
    const double middle = (l->left + l->overview_right) / 2, half = text_width(c->cr, text, TEXT_NORMAL) / 2 + 8,
                 y = (l->overview_top + l->overview_bottom) / 2, height = text_height(TEXT_NORMAL) + 4;
    palette_set(c->cr, palette_background(c->view->dark), 0.9);
    cairo_rectangle(c->cr, middle - half, y - height / 2, 2 * half, height);
    cairo_fill(c->cr);
    text_draw(c->cr, text, TEXT_NORMAL, palette_text(c->view->dark), TEXT_CENTER, middle, y, 0);
}

void overview_layer_draw(const layer_context *c)
{
    const layout *l = c->layout;
    cairo_t *cr = c->cr;
    bool dark = c->view->dark;
    if (l->overview_bottom <= l->overview_top)
        return;
    double height = l->overview_bottom - l->overview_top;
    cairo_rectangle(cr, l->left, l->overview_top, l->overview_right - l->left, height);
    palette_set(cr, palette_pane(dark), 1);
    cairo_fill(cr);
    if (l->has_heat) {
        heat_layer_draw(c);
        histogram_layer_draw(c);
        heat_layer_draw_area(c); /* the area may cover parts of the heat map and of the histogram */
        return;
    }
    draw_bars(c);
    double from = CLAMP(layout_overview_x(l, c->view->from_ns), l->left, l->overview_right - 2);
    double to = CLAMP(layout_overview_x(l, c->view->to_ns), from + 2, l->overview_right);
    palette_set(cr, palette_background(dark), 0.6); /* dims the invisible part */
    cairo_rectangle(cr, l->left, l->overview_top, from - l->left, height);
    cairo_rectangle(cr, to, l->overview_top, l->overview_right - to, height);
    cairo_fill(cr);
    palette_set(cr, palette_accent(dark), 1);
    cairo_set_line_width(cr, 1.5);
    cairo_rectangle(cr, floor(from) + 0.5, floor(l->overview_top) + 0.5, MAX(floor(to - from) - 1, 1), height - 1);
    cairo_stroke(cr);
    text_draw(cr, "whole log", TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, l->left - 8, l->overview_top + height / 2,
              0);
    const double progress = model_requests_progress(c->model);
    if (progress > 0 && progress < 1)
        draw_finding(c);
}
