/*
 * The histogram of the requests' durations, at the right of the heat map (heat_layer.c), with the same scale of
 * durations. The bars extend to the right. The length of a bar is the logarithm of the count, so that a single request
 * is visible beside a million requests. This module has no state.
 */
#include "config.h"

#include "scene/axis.h"
#include "scene/heat_scale.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>

/* The scale of counts, from 0 to `max`. */
typedef struct count_scale {
    double left, width, max;
} count_scale;

static double count_x(const count_scale *s, double count)
{
    return s->left + s->width * log1p(count) / log1p(s->max);
}

static void write_count(double count, char text[16])
{
    if (count >= 1e9)
        g_snprintf(text, 16, "%g G", count / 1e9);
    else if (count >= 1e6)
        g_snprintf(text, 16, "%g M", count / 1e6);
    else if (count >= 1e3)
        g_snprintf(text, 16, "%g k", count / 1e3);
    else
        g_snprintf(text, 16, "%g", count);
}

/* Draws lines for counts that are powers of ten, and as many labels as fit. */
static void draw_counts(const layer_context *c, const count_scale *s)
{
    const layout *l = c->layout;
    double free = s->left;
    for (double count = 1; count <= s->max; count *= 10) {
        char label[16];
        const double x = floor(count_x(s, count)) + 0.5;
        palette_set(c->cr, palette_grid(c->view->dark), 1);
        cairo_set_line_width(c->cr, 1);
        cairo_move_to(c->cr, x, l->overview_top);
        cairo_line_to(c->cr, x, l->overview_bottom);
        cairo_stroke(c->cr);
        write_count(count, label);
        const double width = text_width(c->cr, label, TEXT_SMALL);
        /* omit the label 1, which the bar of an outlier may cover, and all labels that would overlap the bars */
        if (count == 1 || x - width - 2 < free || !heat_scale_has_counts(l))
            continue;
        text_draw(c->cr, label, TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, x - 2,
                  l->overview_top + text_height(TEXT_SMALL) / 2, 0);
        free = x + 2;
    }
}

static void fill_bar_of(const layer_context *c, const count_scale *s, double top, double bottom, double count)
{
    cairo_rectangle(c->cr, s->left, top, MAX(2, floor(count_x(s, count) - s->left)), MAX(1, bottom - top));
    cairo_fill(c->cr);
}

/* Returns the number of requests that the histogram shows in a row. */
static double count_in_row(const uint64_t counts[HEAT_ROWS], const heat_scale *s, unsigned row)
{
    uint64_t sum = 0;
    for (unsigned i = row > s->low ? row : 0; i <= row; i++)
        sum += counts[i];
    return (double)sum;
}

static void draw_rows_of(const layer_context *c, const heat_scale *durations, const count_scale *counts, unsigned slow)
{
    const request_list *l = model_requests(c->model);
    const heat_map *h = &l->heat;
    const bool dark = c->view->dark;
    /* the outlines of logs already have the colors of the series */
    const color ink = request_list_has_logs(l) ? palette_grid(dark) : palette_series(0, dark);
    for (unsigned row = durations->low; row < durations->high; row++) {
        const double top = floor(heat_scale_y(durations, row + 1)), bottom = floor(heat_scale_y(durations, row));
        const double count = count_in_row(h->totals, durations, row),
                     failed = count_in_row(h->failures, durations, row);
        if (count == 0)
            continue;
        palette_set(c->cr, row >= slow ? palette_slow(dark) : ink, 1);
        fill_bar_of(c, counts, top, bottom - 1, count);
        if (failed == 0)
            continue;
        palette_set(c->cr, palette_error(dark), 1);
        fill_bar_of(c, counts, top, (top + bottom) / 2, failed);
    }
}

/* Draws the counts of each log as an outline in the log's color. */
static void draw_outlines(const layer_context *c, const heat_scale *durations, const count_scale *counts)
{
    const request_list *l = model_requests(c->model);
    for (unsigned i = 0; i < l->log_count; i++) {
        palette_set(c->cr, heat_scale_log_color(c->model, i, c->view->dark), 1);
        cairo_set_line_width(c->cr, 1.5);
        cairo_move_to(c->cr, counts->left, durations->bottom);
        for (unsigned row = durations->low; row < durations->high; row++) {
            const double x = count_x(counts, count_in_row(l->logs[i].heat.totals, durations, row));
            cairo_line_to(c->cr, x, heat_scale_y(durations, row));
            cairo_line_to(c->cr, x, heat_scale_y(durations, row + 1));
        }
        cairo_stroke(c->cr);
    }
}

/* Draws the duration above which requests are slow. */
static void draw_limit(const layer_context *c, const heat_scale *durations, unsigned slow)
{
    const layout *l = c->layout;
    const double y = floor(heat_scale_y(durations, slow)) + 0.5, dashes[] = {3, 3};
    char duration[32], label[48];
    if (y < l->overview_top + text_height(TEXT_SMALL) || slow < durations->low)
        return;
    axis_span_label(heat_row_ns(slow), duration);
    g_snprintf(label, sizeof label, "> %s", duration);
    palette_set(c->cr, palette_slow(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1);
    cairo_set_dash(c->cr, dashes, 2, 0);
    cairo_move_to(c->cr, l->histogram_left, y);
    cairo_line_to(c->cr, l->right, y);
    cairo_stroke(c->cr);
    cairo_set_dash(c->cr, NULL, 0, 0);
    text_draw(c->cr, label, TEXT_SMALL, palette_slow(c->view->dark), TEXT_RIGHT, l->right - 2,
              y - text_height(TEXT_SMALL) / 2, 0);
}

void histogram_layer_draw(const layer_context *c)
{
    const layout *l = c->layout;
    const heat_map *h = &model_requests(c->model)->heat;
    if (l->histogram_left >= l->right)
        return;
    cairo_save(c->cr);
    cairo_rectangle(c->cr, l->histogram_left, l->overview_top, l->right - l->histogram_left,
                    l->overview_bottom - l->overview_top);
    palette_set(c->cr, palette_pane(c->view->dark), 1);
    cairo_fill_preserve(c->cr);
    cairo_clip(c->cr);
    const heat_scale durations = heat_scale_of(h, l);
    const unsigned slow = heat_scale_slow_row(h);
    count_scale counts = {.left = l->histogram_left, .width = l->right - l->histogram_left - 4, .max = 1};
    uint64_t slow_count = 0;
    for (unsigned row = 0; row < HEAT_ROWS; row++) {
        counts.max = MAX(counts.max, (double)h->totals[row]);
        slow_count += row >= slow ? h->totals[row] : 0;
    }
    draw_counts(c, &counts);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_NONE);
    draw_rows_of(c, &durations, &counts, slow);
    cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_DEFAULT);
    if (request_list_has_logs(model_requests(c->model)))
        draw_outlines(c, &durations, &counts);
    if (slow_count > 0)
        draw_limit(c, &durations, slow);
    cairo_restore(c->cr);
}
