/* Loadlines: a field's value over time as a curve of segments, one for each host, scaled to an axis of its own. */
#include "config.h"

#include "scene/layers.h"

#include "scene/axis.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

typedef struct curve {
    const layer_context *c;
    const pane *p;
    uint32_t event, field;
    double low, high; /* of the axis */
} curve;

/* The value of record i, when it belongs to this loadline. */
static bool value_of(const curve *k, size_t i, double *value)
{
    const trace *t = model_trace(k->c->model);
    const trace_record *record = trace_get(t, i);
    return record->event == k->event && trace_number(t, trace_value(t, record, k->field), value);
}

/* The axis: from zero when the values are near it, round numbers at both ends. */
static bool find_range(curve *k)
{
    double low = INFINITY, high = -INFINITY, value;
    size_t count = trace_count(model_trace(k->c->model));
    for (size_t i = 0; i < count; i++)
        if (value_of(k, i, &value)) {
            low = MIN(low, value);
            high = MAX(high, value);
        }
    if (low > high)
        return false;
    if (low > 0 && low < 0.7 * high)
        low = 0;
    double step = axis_step(MAX((high - low) / 2, fabs(high) * 1e-9));
    k->low = floor(low / step) * step;
    k->high = ceil(high / step) * step;
    if (k->low == k->high)
        k->high = k->low + step;
    return true;
}

static double y_of(const curve *k, double value)
{
    return k->p->bottom - (value - k->low) / (k->high - k->low) * (k->p->bottom - k->p->top);
}

char *loadlines_layer_name(const drawing_loadline *definition)
{
    return *definition->unit != '\0' ? g_strdup_printf("%s, %s", definition->name, definition->unit)
                                     : g_strdup(definition->name);
}

static void draw_axis(const curve *k, const drawing_loadline *definition, bool any)
{
    cairo_t *cr = k->c->cr;
    bool dark = k->c->view->dark;
    layer_pane(k->c, k->p);
    /* Both ends have their number, and the middle where there is room. */
    double step = (k->high - k->low) / (k->p->bottom - k->p->top > 3.5 * text_height(TEXT_SMALL) ? 2 : 1);
    if (!any)
        text_draw(cr, "the log has none of it", TEXT_SMALL, palette_muted(dark), TEXT_LEFT, k->c->layout->left + 10,
                  (k->p->top + k->p->bottom) / 2, 0);
    for (double value = k->low; any && value <= k->high + step / 1e6; value += step) {
        double y = y_of(k, value);
        char label[32];
        axis_number_label(fabs(value) < step / 1e6 ? 0 : value, step, label);
        palette_set(cr, palette_grid(dark), 1);
        cairo_set_line_width(cr, 1);
        cairo_move_to(cr, k->c->layout->left, floor(y) + 0.5);
        cairo_line_to(cr, k->c->layout->right, floor(y) + 0.5);
        cairo_stroke(cr);
        text_draw(cr, label, TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, k->c->layout->left - 6, y, 0);
    }
    char *name = loadlines_layer_name(definition);
    text_draw(cr, name, TEXT_NORMAL, palette_text(dark), TEXT_RIGHT, k->c->layout->left - 8 - LOADLINE_NUMBERS,
              (k->p->top + k->p->bottom) / 2, k->c->layout->left - 8 - LOADLINE_NUMBERS - 14);
    g_free(name);
}

/*
 * One host's curve. Where many values fall on one pixel their least and most are both drawn, so that a peak stays
 * visible however far one zooms out.
 */
static void draw_curve(const curve *k, uint32_t host)
{
    cairo_t *cr = k->c->cr;
    const trace *t = model_trace(k->c->model);
    double last_x = -1e9, low = 0, high = 0, value;
    bool started = false;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_record *record = trace_get(t, i);
        if (record->host != host || !value_of(k, i, &value))
            continue;
        double x = layout_x(k->c->layout, k->c->view, record->time_ns);
        if (started && x - last_x < 1) {
            low = MIN(low, value);
            high = MAX(high, value);
            continue;
        }
        if (started && low != high) {
            cairo_line_to(cr, last_x, y_of(k, low));
            cairo_line_to(cr, last_x, y_of(k, high));
        }
        if (started)
            cairo_line_to(cr, x, y_of(k, value));
        else
            cairo_move_to(cr, x, y_of(k, value));
        started = true;
        last_x = x;
        low = high = value;
    }
    palette_set(cr, layer_color(k->c, host), 0.95);
    cairo_set_line_width(cr, 1.5);
    cairo_stroke(cr);
}

void loadlines_layer_draw(const layer_context *c, const pane *p)
{
    const drawing_loadline *definition = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
    const trace *t = model_trace(c->model);
    curve k = {c, p, trace_find(t, definition->event), trace_find(t, definition->field), 0, 1};
    bool any = k.event != TRACE_NONE && find_range(&k);
    draw_axis(&k, definition, any);
    if (!any)
        return;
    GHashTable *hosts = g_hash_table_new(g_direct_hash, g_direct_equal);
    GArray *order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_record *record = trace_get(t, i);
        if (record->event == k.event && g_hash_table_add(hosts, GUINT_TO_POINTER(record->host)))
            g_array_append_val(order, record->host);
    }
    cairo_save(c->cr);
    cairo_rectangle(c->cr, c->layout->left, p->top - 1, c->layout->right - c->layout->left, p->bottom - p->top + 2);
    cairo_clip(c->cr);
    for (guint i = 0; i < order->len; i++)
        draw_curve(&k, g_array_index(order, uint32_t, i));
    cairo_restore(c->cr);
    g_array_free(order, TRUE);
    g_hash_table_destroy(hosts);
}
