/*
 * Loadlines: draws the values of a field over time as a curve for each host, with a separate axis. If a column contains
 * many values, draws their mean and, behind it, a band from their minimum to their maximum, so that peaks stay visible
 * at every scale.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/axis.h"
#include "scene/beside.h"
#include "scene/density.h"
#include "scene/text.h"

#include <math.h>
#include <stdatomic.h>

/*
 * Maximum number of values that the module draws as one line with cairo. In pictures with pixels, the number is
 * smaller, because antialiasing takes time.
 */
enum { STROKED_MAX = 250, STROKED_RASTER_MAX = 50 };

typedef struct curve {
    const layer_context *c;
    const pane *p;
    double low, high; /* ends of the axis */
    density *pixels;
} curve;

/*
 * Finds the range of the axis, with round numbers at both ends. The range includes zero if the smallest value is below
 * 70 % of the largest value, or if all values are equal. The range depends on the whole log, so that it does not change
 * when the view moves. Returns false if there are no values.
 */
static bool find_range(curve *k, const loadline_lists *l)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < l->count; i++) {
        const list *values = l->hosts[i].list;
        if (values->count == values->start)
            continue;
        list_extremes e = list_find_extremes(values, values->start, values->count, NULL, NULL);
        low = MIN(low, e.min);
        high = MAX(high, e.max);
    }
    if (low > high)
        return false;
    if ((low > 0 && low < 0.7 * high) || low == high) {
        low = fmin(low, 0);
        high = fmax(high, 0);
    }
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

void loadlines_layer_axis(const layer_context *c, const pane *p, double low, double high, bool any)
{
    const drawing_loadline *definition = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
    const curve k = {c, p, low, high, NULL};
    cairo_t *cr = c->cr;
    bool dark = c->view->dark;
    layer_pane(c, p);
    /* Draw the numbers at both ends, and a third number in the middle if there is enough height. In a pane that is
     * lower than a line of text, draw only the number at the top. */
    const double height = p->bottom - p->top;
    const int parts = height > 3.5 * text_height(TEXT_SMALL) ? 2 : 1;
    const int first = height < text_height(TEXT_SMALL) ? parts : 0;
    double step = (high - low) / parts;
    if (!any)
        text_draw(cr, "no values in the log", TEXT_SMALL, palette_muted(dark), TEXT_LEFT, c->layout->left + 10,
                  (p->top + p->bottom) / 2, 0);
    for (int i = first; any && i <= parts; i++) {
        double value = low + i * step;
        double y = y_of(&k, value);
        char label[32];
        axis_number_label(fabs(value) < step / 1e6 ? 0 : value, step, label);
        palette_set(cr, palette_grid(dark), 1);
        cairo_set_line_width(cr, 1);
        cairo_move_to(cr, c->layout->left, floor(y) + 0.5);
        cairo_line_to(cr, c->layout->right, floor(y) + 0.5);
        cairo_stroke(cr);
        text_draw(cr, label, TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, c->layout->left - 6, y, 0);
    }
    char *name = loadlines_layer_name(definition);
    text_draw(cr, name, TEXT_NORMAL, palette_text(dark), TEXT_RIGHT, c->layout->left - 8 - LOADLINE_NUMBERS,
              (p->top + p->bottom) / 2, c->layout->left - 8 - LOADLINE_NUMBERS - 14);
    g_free(name);
}

/* Draws the visible values, and one value beyond each edge, as a line. */
static void stroke_curve(const curve *k, const list *l, size_t from, size_t to, color ink)
{
    cairo_t *cr = k->c->cr;
    from = from > l->start ? from - 1 : from;
    to = MIN(to + 1, l->count);
    for (size_t i = from; i < to; i++)
        cairo_line_to(cr, layer_x(k->c, list_at(l, i)), y_of(k, list_value(l, i)));
    palette_set(cr, ink, 0.95);
    cairo_set_line_width(cr, 1.5);
    cairo_stroke(cr);
    for (size_t i = from; i < to && to - from < 40; i++) {
        cairo_arc(cr, layer_x(k->c, list_at(l, i)), y_of(k, list_value(l, i)), 2, 0, 2 * G_PI);
        cairo_fill(cr);
    }
}

/* The values of a curve in a column of the plot. */
typedef struct column_values {
    double x, mean, min, max;
} column_values;

/* Returns the values of a column that contains only one value. */
static column_values value_at(const curve *k, const list *l, size_t i)
{
    return (column_values){layer_x(k->c, list_at(l, i)), list_value(l, i), INFINITY, -INFINITY};
}

/* Fills `columns` with the columns that have values, and with the values before and after the view. Returns their
 * number. */
static unsigned find_columns(const curve *k, const list *l, size_t from, column_values *columns)
{
    const layer_context *c = k->c;
    unsigned count = 0;
    size_t grain = list_grain(list_find(l, c->to, from) - from, c->column_count);
    double unit = (c->layout->right - c->layout->left) / c->column_count;
    if (from > l->start)
        columns[count++] = value_at(k, l, from - 1);
    for (unsigned column = 0; column < c->column_count; column++) {
        size_t to = list_find_near(l, c->columns[column + 1], from, grain);
        if (to == from)
            continue;
        list_extremes e = list_find_extremes(l, from, to, NULL, NULL);
        /* in large lists, use the middle of the column, because accessing the record's time would read distant memory
         */
        double x = grain > 1 || c->is_near ? c->layout->left + (column + 0.5) * unit
                                           : floor(layer_x(c, list_at(l, from))) + 0.5;
        columns[count++] = (column_values){x, e.sum / (double)e.count, e.min, e.max};
        from = to;
    }
    if (from < l->count)
        columns[count++] = value_at(k, l, from);
    return count;
}

/* The curves of a loadline, one for each host, that two threads prepare. */
typedef struct curves {
    const curve *shared;
    const loadline_lists *lists;
    size_t stroked_max;
    column_values **columns; /* columns of each host; NULL: few or no values */
    unsigned *counts;
    atomic_size_t next; /* the next host */
} curves;

static void look_up_curves(void *user)
{
    curves *all = user;
    const layer_context *c = all->shared->c;
    for (size_t i; (i = all->next++) < all->lists->count;) {
        const list *l = all->lists->hosts[i].list;
        size_t from = l->count > l->start ? list_find(l, c->from, l->start) : 0;
        if (l->count == l->start || list_find(l, c->to, from) - from <= all->stroked_max)
            continue;
        all->columns[i] = g_new(column_values, c->column_count + 2);
        all->counts[i] = find_columns(all->shared, l, from, all->columns[i]);
    }
}

static void draw_bands(const curve *k, const column_values *columns, unsigned count, unsigned number)
{
    for (unsigned i = 0; i < count; i++)
        if (columns[i].min <= columns[i].max)
            density_line(k->pixels, columns[i].x, y_of(k, columns[i].min) + 0.5, columns[i].x,
                         y_of(k, columns[i].max) - 0.5, 0.45f, number);
}

static void draw_means(const curve *k, const column_values *columns, unsigned count, unsigned number)
{
    for (unsigned i = 1; i < count; i++)
        density_line_on_top(k->pixels, columns[i - 1].x, y_of(k, columns[i - 1].mean), columns[i].x,
                            y_of(k, columns[i].mean), number);
}

static unsigned loadlines_layer_number_of(const curves *all, size_t i)
{
    return model_host_color(all->shared->c->model, all->lists->hosts[i].host);
}

/* Draws a few values as a line, and many values as bands with their means in front. */
static void draw_curves(const curve *k, const loadline_lists *lists)
{
    const layer_context *c = k->c;
    curves all = {.shared = k,
                  .lists = lists,
                  .stroked_max = c->is_raster ? STROKED_RASTER_MAX : STROKED_MAX,
                  .columns = g_new0(column_values *, lists->count),
                  .counts = g_new0(unsigned, lists->count)};
    beside_run(look_up_curves, &all);
    for (size_t i = 0; i < lists->count; i++)
        draw_bands(k, all.columns[i], all.counts[i], loadlines_layer_number_of(&all, i) % DENSITY_COLORS);
    for (size_t i = 0; i < lists->count; i++)
        draw_means(k, all.columns[i], all.counts[i], loadlines_layer_number_of(&all, i) % DENSITY_COLORS);
    if (density_work(k->pixels) > 0)
        density_paint(k->pixels, c->cr, c->view->dark, 1);
    for (size_t i = 0; i < lists->count; i++) {
        const list *l = lists->hosts[i].list;
        if (l->count > l->start && all.columns[i] == NULL) {
            size_t from = list_find(l, c->from, l->start);
            stroke_curve(k, l, from, list_find(l, c->to, from),
                         palette_series(loadlines_layer_number_of(&all, i), c->view->dark));
        }
        g_free(all.columns[i]);
    }
    g_free(all.columns);
    g_free(all.counts);
}

void loadlines_layer_draw(const layer_context *c, const pane *p)
{
    const loadline_lists *l = &c->store->loadlines[p->index];
    curve k = {c, p, 0, 1, NULL};
    bool any = find_range(&k, l);
    loadlines_layer_axis(c, p, k.low, k.high, any);
    if (!any)
        return;
    cairo_save(c->cr);
    cairo_rectangle(c->cr, c->layout->left, p->top - 1, c->layout->right - c->layout->left, p->bottom - p->top + 2);
    cairo_clip(c->cr);
    k.pixels = density_new(c->layout->left, p->top - 1, c->layout->right, p->bottom + 1, c->is_raster ? c->scale : 2);
    draw_curves(&k, l);
    density_free(k.pixels);
    cairo_restore(c->cr);
}

void loadlines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found)
{
    const loadline_lists *l = &c->store->loadlines[p->index];
    curve k = {c, p, 0, 1, NULL};
    int64_t from_ns = layout_time(c->layout, c->view, x - found->distance);
    enum { FIND_MAX = 2000 };
    if (!find_range(&k, l))
        return;
    for (size_t h = 0; h < l->count; h++) {
        const list *values = l->hosts[h].list;
        if (values->count == values->start)
            continue;
        size_t i = list_find(values, store_find_time(c->store, from_ns), values->start);
        for (unsigned looked = 0; i < values->count && looked < FIND_MAX; i++, looked++) {
            double dx = layer_x(c, list_at(values, i)) - x, dy = y_of(&k, list_value(values, i)) - y;
            if (dx > found->distance)
                break;
            if (hypot(dx, dy) < found->distance)
                *found = (scene_found){hypot(dx, dy), list_at(values, i), -1, 0};
        }
    }
}
