/*
 * Lifelines: one polyline an object, a row an event. Thousands of them overlap: lines are the fainter the more there
 * are, so that density shows, and a line that would repeat another's very pixels is drawn a few times only, which
 * bounds the cost by the size of the picture and not by that of the log. Where time runs backwards from one event to a
 * later one, the piece is red.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/text.h"

#include <math.h>

enum { CULL_FROM = 20000, REPEATS = 4, MARKS_UP_TO = 150 };

void lifelines_layer_back(const layer_context *c, const pane *p)
{
    const drawing_lifeline *definition = g_ptr_array_index(model_drawing(c->model)->lifelines, p->index);
    layer_pane(c, p);
    double row_height = (p->bottom - p->top) / p->rows;
    /* Where rows are narrower than a line of text only some have their label. */
    unsigned every = (unsigned)ceil(text_height(TEXT_NORMAL) / row_height);
    for (unsigned row = 0; row < p->rows; row++)
        layer_row(c, p, row, row % every == 0 ? definition->events[row] : "");
}

typedef struct drawer {
    const layer_context *c;
    const pane *p;
    const lifelines *l;
    GHashTable *drawn; /* pixels of a piece of line, to how often; NULL when there are few lines */
} drawer;

/* Whether a piece of line adds nothing that can be seen any more. */
static bool is_culled(const drawer *d, double x0, uint32_t row0, double x1, uint32_t row1, uint32_t color)
{
    if (d->drawn == NULL)
        return false;
    guint64 key =
        ((guint64)(guint16)x0 << 48 | (guint64)(guint16)x1 << 32 | (row0 & 0xff) << 24 | (row1 & 0xff) << 16) ^ color;
    guint count = GPOINTER_TO_UINT(g_hash_table_lookup(d->drawn, GSIZE_TO_POINTER(key)));
    if (count >= REPEATS)
        return true;
    g_hash_table_insert(d->drawn, GSIZE_TO_POINTER(key), GUINT_TO_POINTER(count + 1));
    return false;
}

/*
 * Draws what is visible of an object, forward pieces or those where a later event comes before an earlier one. Returns
 * whether there are any of the other sort.
 */
static bool draw_object(const drawer *d, const lifeline_object *object, bool backwards)
{
    cairo_t *cr = d->c->cr;
    const trace *t = model_trace(d->c->model);
    const scene_view *view = d->c->view;
    bool others = false, started = false;
    for (uint32_t s = 0; s + 1 < object->step_count; s++) {
        const lifeline_step *from = &d->l->steps[object->first_step + s], *to = from + 1;
        int64_t from_ns = lifelines_time_ns(d->l, t, from), to_ns = lifelines_time_ns(d->l, t, to);
        bool is_backwards = to->event < from->event;
        if (to_ns < view->from_ns || from_ns > view->to_ns || is_backwards != backwards) {
            others = others || is_backwards != backwards;
            started = false;
            continue;
        }
        double x0 = layout_x(d->c->layout, view, from_ns), x1 = layout_x(d->c->layout, view, to_ns);
        if (is_culled(d, x0, from->event, x1, to->event, object->color)) {
            started = false;
            continue;
        }
        if (!started)
            cairo_move_to(cr, x0, layout_row_y(d->p, from->event));
        cairo_line_to(cr, x1, layout_row_y(d->p, to->event));
        started = true;
    }
    cairo_stroke(cr);
    return others;
}

static void draw_marks(const drawer *d, const lifeline_object *object)
{
    cairo_t *cr = d->c->cr;
    const trace *t = model_trace(d->c->model);
    for (uint32_t s = 0; s < object->step_count; s++) {
        const lifeline_step *step = &d->l->steps[object->first_step + s];
        int64_t time_ns = lifelines_time_ns(d->l, t, step);
        if (time_ns < d->c->view->from_ns || time_ns > d->c->view->to_ns)
            continue;
        cairo_arc(cr, layout_x(d->c->layout, d->c->view, time_ns), layout_row_y(d->p, step->event), 2, 0, 2 * G_PI);
        cairo_fill(cr);
    }
}

static bool is_visible(const drawer *d, const lifeline_object *object)
{
    const trace *t = model_trace(d->c->model);
    return lifelines_time_ns(d->l, t, &d->l->steps[object->first_step + object->step_count - 1]) >=
               d->c->view->from_ns &&
           lifelines_time_ns(d->l, t, &d->l->steps[object->first_step]) <= d->c->view->to_ns;
}

void lifelines_layer_draw(const layer_context *c, const pane *p)
{
    drawer d = {c, p, model_lifelines(c->model, p->index), NULL};
    size_t visible = 0, steps = 0;
    for (size_t i = 0; i < d.l->object_count; i++)
        if (is_visible(&d, &d.l->objects[i])) {
            visible++;
            steps += d.l->objects[i].step_count;
        }
    if (steps > CULL_FROM)
        d.drawn = g_hash_table_new(g_direct_hash, g_direct_equal);
    double per_pixel = (double)visible / (c->layout->right - c->layout->left);
    double alpha = CLAMP(0.85 / sqrt(1 + 3 * per_pixel), 0.12, 0.85);
    cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < d.l->object_count; i++) {
        const lifeline_object *object = &d.l->objects[i];
        if (!is_visible(&d, object))
            continue;
        bool selected = p->index == 0 && c->view->selected == (int64_t)i;
        cairo_set_line_width(c->cr, selected ? 2.5 : 1.1);
        palette_set(c->cr, layer_color(c, object->color), selected ? 1 : alpha);
        bool backwards = draw_object(&d, object, false);
        if (visible <= MARKS_UP_TO || selected)
            draw_marks(&d, object);
        if (backwards) {
            palette_set(c->cr, palette_alarm(), MAX(alpha, 0.6));
            draw_object(&d, object, true);
        }
    }
    if (d.drawn != NULL)
        g_hash_table_destroy(d.drawn);
}

void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, double *distance, size_t *record,
                          int64_t *object)
{
    drawer d = {c, p, model_lifelines(c->model, p->index), NULL};
    const trace *t = model_trace(c->model);
    for (size_t i = 0; i < d.l->step_count; i++) {
        const lifeline_step *step = &d.l->steps[i];
        double dy = fabs(layout_row_y(p, step->event) - y);
        if (dy >= *distance)
            continue;
        double away = hypot(layout_x(c->layout, c->view, lifelines_time_ns(d.l, t, step)) - x, dy);
        if (away < *distance) {
            *distance = away;
            *record = step->record;
            *object = p->index == 0 ? d.l->object_of_record[step->record] : -1;
        }
    }
}
