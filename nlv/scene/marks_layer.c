/* Bookmarks: draws a flag with the note at each bookmark's time, in several rows if the flags are too close. In the
 * overview, draws a tick. */
#include "config.h"

#include "scene/layers.h"

#include "model/session.h"
#include "scene/axis.h"
#include "scene/text.h"

#include <math.h>

enum { ROWS = 4 /* rows of notes */ };

static const double note_width_max = 220;

/* Returns the topmost row that is free at x, or the last row if no row is free. */
static unsigned row_for(const double ends[ROWS], double x)
{
    for (unsigned row = 0; row < ROWS; row++)
        if (ends[row] <= x)
            return row;
    return ROWS - 1;
}

static void draw_note(const layer_context *c, const char *note, double x, double y)
{
    bool dark = c->view->dark;
    double width = MIN(text_width(c->cr, note, TEXT_SMALL), note_width_max) + 8, height = text_height(TEXT_SMALL) + 3;
    palette_set(c->cr, palette_accent(dark), 1);
    cairo_rectangle(c->cr, x, y, width, height);
    cairo_fill(c->cr);
    text_draw(c->cr, note, TEXT_SMALL, palette_background(dark), TEXT_LEFT, x + 4, y + height / 2, note_width_max);
}

void marks_layer_draw(const layer_context *c)
{
    const layout *l = c->layout;
    const GArray *marks = c->view->marks;
    double ends[ROWS] = {0}, top = l->pane_count > 0 ? l->top : l->axis_y - 20;
    for (guint i = 0; marks != NULL && i < marks->len; i++) {
        const session_mark *mark = &g_array_index(marks, session_mark, i);
        if (l->overview_bottom > l->overview_top) {
            double at = floor(layout_overview_x(l, mark->time_ns)) + 0.5;
            palette_set(c->cr, palette_accent(c->view->dark), 1);
            cairo_rectangle(c->cr, CLAMP(at, l->left, l->right) - 1, l->overview_top - 4, 3, 5);
            cairo_fill(c->cr);
        }
        if (mark->time_ns < c->view->from_ns || mark->time_ns > c->view->to_ns)
            continue;
        double x = floor(layout_x(l, c->view, mark->time_ns)) + 0.5, dashes[] = {3, 3};
        const char *note = *mark->note != '\0' ? mark->note : "⚑";
        double wide = MIN(text_width(c->cr, note, TEXT_SMALL), note_width_max) + 8;
        double left = MIN(x, l->right - wide); /* place a note that does not fit at the right to the left of its time */
        unsigned row = row_for(ends, left);
        double y = top + row * (text_height(TEXT_SMALL) + 5);
        palette_set(c->cr, palette_accent(c->view->dark), 1);
        cairo_set_line_width(c->cr, 1);
        cairo_set_dash(c->cr, dashes, 2, 0);
        cairo_move_to(c->cr, x, y);
        cairo_line_to(c->cr, x, l->axis_y);
        cairo_stroke(c->cr);
        cairo_set_dash(c->cr, NULL, 0, 0);
        draw_note(c, note, left, y);
        ends[row] = left + wide + 4;
    }
}

void marks_layer_flash(const layer_context *c)
{
    const scene_view *view = c->view;
    const layout *l = c->layout;
    const GArray *flashes = view->flashes;
    if (flashes == NULL || flashes->len == 0)
        return;
    const scene_flash *newest = &g_array_index(flashes, scene_flash, flashes->len - 1);
    const color slow = palette_slow(view->dark);
    const double top = l->pane_count > 0 ? l->top : l->axis_y, left = l->right + 4;
    palette_set(c->cr, slow, newest->strength);
    cairo_rectangle(c->cr, left, top, view->width - left - 4, l->axis_y - top);
    cairo_fill(c->cr);
    for (guint i = 0; i < flashes->len; i++) {
        const scene_flash *f = &g_array_index(flashes, scene_flash, i);
        const double x = layout_x(l, view, f->end_ns);
        if (x < l->left || x > l->right)
            continue;
        palette_set(c->cr, slow, f->strength);
        cairo_move_to(c->cr, x - 5, top - 8);
        cairo_line_to(c->cr, x + 5, top - 8);
        cairo_line_to(c->cr, x, top);
        cairo_close_path(c->cr);
        cairo_fill(c->cr);
    }
    char duration[32], text[80];
    axis_span_label((double)newest->duration_ns, duration);
    if (flashes->len == 1)
        g_snprintf(text, sizeof text, "slow request: %s", duration);
    else
        g_snprintf(text, sizeof text, "%u slow requests, the last: %s", flashes->len, duration);
    const double width = text_width(c->cr, text, TEXT_NORMAL);
    palette_set(c->cr, palette_background(view->dark), 1); /* the legend may extend below the text */
    cairo_rectangle(c->cr, l->right - width - 8, l->legend_y - text_height(TEXT_NORMAL) / 2, width + 8,
                    text_height(TEXT_NORMAL));
    cairo_fill(c->cr);
    text_draw(c->cr, text, TEXT_NORMAL, slow, TEXT_RIGHT, l->right, l->legend_y, 0);
}
