/*
 * Loadlines: draws the values of a field over time as a curve for each host, with a separate axis. If a column contains
 * many values, draws their mean and, behind it, a band from their minimum to their maximum, so that peaks stay visible
 * at every scale. More than STORE_CURVES_MAX curves would be illegible. With more hosts, each host has a strip, whose
 * color shows the maximum in each column.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/axis.h"
#include "scene/beside.h"
#include "scene/density.h"
#include "scene/text.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of values that the module draws as one line with cairo. For pictures with pixels (STROKED_RASTER_MAX),
 * the number is smaller, because antialiasing takes time. */
enum { STROKED_MAX = 250, STROKED_RASTER_MAX = 50 };

typedef struct curve {
    const layer_context *c;
    const pane *p;
    double low, high; /* ends of the axis */
    density *pixels;
} curve;

/*
 * Finds the range of the axis, with round numbers at both ends. If all values are equal, or if the smallest value is
 * positive and below 70 % of the largest value, the range also includes zero. The range depends on the whole log, so
 * that it does not change when the view moves. Returns false if there are no values.
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
    /* draw the numbers at both ends and, in a high pane, a number in the middle; in a pane that is lower than a line of
     * text, draw only the number at the top */
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

/* Fills `columns` with the columns that have values, and with the values before and after the view. Returns the number
 * of columns. */
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
        /* in large lists, use the middle of the column, to avoid an access to distant memory for the record's time */
        double x = grain > 1 || c->is_near ? c->layout->left + (column + 0.5) * unit
                                           : floor(layer_x(c, list_at(l, from))) + 0.5;
        columns[count++] = (column_values){x, e.sum / (double)e.count, e.min, e.max};
        from = to;
    }
    if (from < l->count)
        columns[count++] = value_at(k, l, from);
    return count;
}

/* The work of two threads that prepare the curves of a loadline, one for each host. */
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

/* Draws a few values as a line, and many values as a band with the line of the means in front. */
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

/* ---- strips ---- */

enum { STRIPS_HEAD = LAYOUT_STRIPS_HEAD, STRIP_HEIGHT_MIN = 2, STRIP_LABEL = 11, SCALE_WIDTH = 80 };

/* The strips of a pane. Row 0 is at the top, and shows the hosts [0, count / rows) by name. */
typedef struct strips {
    const host_list **hosts; /* sorted by name */
    size_t count, rows;
    double top, height; /* the top of the first strip, and the height of a strip */
} strips;

static int by_host_name(const void *a, const void *b, void *names)
{
    return strverscmp(names_text(names, (*(const host_list *const *)a)->host),
                      names_text(names, (*(const host_list *const *)b)->host));
}

static strips strips_make(const layer_context *c, const pane *p)
{
    const loadline_lists *l = &c->store->loadlines[p->index];
    strips s = {.hosts = g_new(const host_list *, l->count), .count = l->count, .top = p->top + STRIPS_HEAD};
    for (size_t i = 0; i < l->count; i++)
        s.hosts[i] = &l->hosts[i];
    g_qsort_with_data(s.hosts, (gint)l->count, sizeof *s.hosts, by_host_name, c->store->names.hosts);
    const double height = MAX(p->bottom - s.top, 1);
    s.rows = MIN(l->count, (size_t)MAX(height / STRIP_HEIGHT_MIN, 1));
    s.height = height / (double)s.rows;
    return s;
}

/* Returns the first host of a row. */
static size_t strips_first(const strips *s, size_t row)
{
    return row * s->count / s->rows;
}

static void add_value(float *cell, double value)
{
    if (isnan(*cell) || value > (double)*cell)
        *cell = (float)value;
}

/* Stores the values of a host in the cells of its row. A value fills the columns up to the next value, but at most
 * three times the usual distance, so that a long time without values stays empty. */
static void fill_row(const curve *k, const column_values *columns, unsigned count, float *cells)
{
    enum { GAP = 3 };
    const layer_context *c = k->c;
    const double unit = (c->layout->right - c->layout->left) / c->column_count;
    const double usual = count > 1 ? (columns[count - 1].x - columns[0].x) / unit / (count - 1) : 1;
    for (unsigned i = 0; i < count; i++) {
        const double value = columns[i].min <= columns[i].max ? columns[i].max : columns[i].mean,
                     from = (columns[i].x - c->layout->left) / unit,
                     next = i + 1 < count ? (columns[i + 1].x - c->layout->left) / unit : from + usual,
                     end = MAX(MIN(next, from + GAP * usual + 1), floor(from) + 1);
        for (double column = MAX(floor(from), 0); column < MIN(end, c->column_count); column++)
            add_value(&cells[(size_t)column], value);
    }
}

/* Returns a picture with a pixel for each column and strip. */
static cairo_surface_t *paint_strips(const curve *k, const strips *s)
{
    const layer_context *c = k->c;
    host_list *sorted = g_new(host_list, s->count);
    for (size_t i = 0; i < s->count; i++)
        sorted[i] = *s->hosts[i];
    const loadline_lists lists = {sorted, s->count};
    curves all = {.shared = k,
                  .lists = &lists,
                  .columns = g_new0(column_values *, s->count),
                  .counts = g_new0(unsigned, s->count)};
    beside_run(look_up_curves, &all);
    cairo_surface_t *picture = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)c->column_count, (int)s->rows);
    cairo_surface_flush(picture);
    unsigned char *data = cairo_image_surface_get_data(picture);
    float *cells = g_new(float, c->column_count);
    for (size_t row = 0; row < s->rows; row++) {
        for (unsigned i = 0; i < c->column_count; i++)
            cells[i] = NAN;
        for (size_t host = strips_first(s, row); host < strips_first(s, row + 1); host++)
            if (all.columns[host] != NULL)
                fill_row(k, all.columns[host], all.counts[host], cells);
        uint32_t *pixels = (uint32_t *)(void *)(data + row * (size_t)cairo_image_surface_get_stride(picture));
        for (unsigned i = 0; i < c->column_count; i++)
            if (!isnan(cells[i]))
                pixels[i] = palette_pixel(
                    palette_value(CLAMP(((double)cells[i] - k->low) / (k->high - k->low), 0, 1), c->view->dark));
    }
    cairo_surface_mark_dirty(picture);
    for (size_t i = 0; i < s->count; i++)
        g_free(all.columns[i]);
    g_free(all.columns);
    g_free(all.counts);
    g_free(cells);
    g_free(sorted);
    return picture;
}

/* Draws the name of the loadline, and the scale of colors. */
static void draw_strips_head(const curve *k, const strips *s)
{
    const layer_context *c = k->c;
    const bool dark = c->view->dark;
    char *name = loadlines_layer_name(g_ptr_array_index(model_drawing(c->model)->loadlines, k->p->index)), low[32],
         high[32];
    char *text = s->rows < s->count ? g_strdup_printf("%s (maximum of %zu hosts in each strip)", name,
                                                      (s->count + s->rows - 1) / s->rows)
                                    : g_strdup(name);
    axis_number_label(k->low, k->high - k->low, low);
    axis_number_label(k->high, k->high - k->low, high);
    const double y = k->p->top + STRIPS_HEAD / 2.0, right = c->layout->right - text_width(c->cr, high, TEXT_SMALL) - 6;
    text_draw(c->cr, high, TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, c->layout->right, y, 0);
    for (int i = 0; i < SCALE_WIDTH; i++) {
        palette_set(c->cr, palette_value(i / (SCALE_WIDTH - 1.0), dark), 1);
        cairo_rectangle(c->cr, floor(right) - SCALE_WIDTH + i, floor(y) - 4, 1, 9);
        cairo_fill(c->cr);
    }
    const double left = floor(right) - SCALE_WIDTH - 6;
    text_draw(c->cr, low, TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, left, y, 0);
    text_draw(c->cr, text, TEXT_NORMAL, palette_text(dark), TEXT_LEFT, c->layout->left, y,
              left - text_width(c->cr, low, TEXT_SMALL) - 10 - c->layout->left);
    g_free(text);
    g_free(name);
}

static void draw_strips(const curve *k)
{
    const layer_context *c = k->c;
    strips s = strips_make(c, k->p);
    const double width = c->layout->right - c->layout->left;
    palette_set(c->cr, palette_background(c->view->dark), 1);
    cairo_rectangle(c->cr, c->layout->left, k->p->top, width, STRIPS_HEAD);
    cairo_fill(c->cr);
    draw_strips_head(k, &s);
    cairo_surface_t *picture = paint_strips(k, &s);
    cairo_save(c->cr);
    cairo_rectangle(c->cr, c->layout->left, s.top, width, s.height * (double)s.rows);
    cairo_clip(c->cr);
    cairo_translate(c->cr, c->layout->left, s.top);
    cairo_scale(c->cr, width / c->column_count, s.height);
    cairo_set_source_surface(c->cr, picture, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c->cr), CAIRO_FILTER_NEAREST);
    cairo_paint(c->cr);
    cairo_restore(c->cr);
    cairo_surface_destroy(picture);
    double free_y = s.top;
    for (size_t row = 0; row < s.rows; row++) {
        const double y = s.top + ((double)row + 0.5) * s.height;
        if (s.height >= 6 && row > 0) { /* leave a gap between strips */
            palette_set(c->cr, palette_background(c->view->dark), 1);
            cairo_rectangle(c->cr, c->layout->left, floor(y - s.height / 2), width, 1);
            cairo_fill(c->cr);
        }
        if (y - STRIP_LABEL / 2.0 < free_y - 1 && row > 0)
            continue;
        text_draw(c->cr, names_text(c->store->names.hosts, s.hosts[strips_first(&s, row)]->host), TEXT_SMALL,
                  palette_text(c->view->dark), TEXT_RIGHT, c->layout->left - 8, y, c->layout->left - 8 - 14);
        free_y = y + STRIP_LABEL / 2.0;
    }
    g_free(s.hosts);
}

enum { FIND_MAX = 2000 }; /* maximum number of a host's values that find_in_strips examines */

/* Finds the value nearest to x among the values of the hosts in the row at y. */
static void find_in_strips(const layer_context *c, const pane *p, double x, double y, scene_found *found)
{
    strips s = strips_make(c, p);
    const double row = floor((y - s.top) / s.height);
    const int64_t from_ns = layout_time(c->layout, c->view, x - found->distance);
    for (size_t host = row >= 0 && row < (double)s.rows ? strips_first(&s, (size_t)row) : s.count;
         host < s.count && host < strips_first(&s, (size_t)row + 1); host++) {
        const list *values = s.hosts[host]->list;
        if (values->count == values->start)
            continue;
        size_t i = list_find(values, store_find_time(c->store, from_ns), values->start);
        for (unsigned looked = 0; i < values->count && looked < FIND_MAX; i++, looked++) {
            const double dx = layer_x(c, list_at(values, i)) - x;
            if (fabs(dx) < found->distance)
                *found = (scene_found){fabs(dx), list_at(values, i), -1, 0};
            if (dx >= 0)
                break;
        }
    }
    g_free(s.hosts);
}

char *loadlines_layer_value(const layer_context *c, const pane *p)
{
    const drawing_loadline *definition = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
    const loadline_lists *l = &c->store->loadlines[p->index];
    const uint32_t end = store_find_time(c->store, c->view->crosshair_ns + 1);
    double value = -INFINITY;
    uint16_t host = 0;
    for (size_t i = 0; i < l->count && !definition->rate; i++) {
        const list *own = l->hosts[i].list;
        const size_t after = own->count > own->start ? list_find(own, end, own->start) : own->start;
        if (after == own->start || list_value(own, after - 1) <= value)
            continue;
        value = list_value(own, after - 1);
        host = l->hosts[i].host;
    }
    if (isinf(value))
        return NULL;
    char number[32];
    g_snprintf(number, sizeof number, "%.4g", value); /* four digits, because the list contains floats */
    value = strtod(number, NULL);
    axis_number_label(value, fabs(value) / 1000, number);
    return g_strdup_printf("%s%s%s%s%s%s", l->count > 1 ? "max " : "", number, *definition->unit != '\0' ? " " : "",
                           definition->unit, l->count > 1 ? ", " : "",
                           l->count > 1 ? names_text(c->store->names.hosts, host) : "");
}

void loadlines_layer_draw(const layer_context *c, const pane *p)
{
    const loadline_lists *l = &c->store->loadlines[p->index];
    curve k = {c, p, 0, 1, NULL};
    bool any = find_range(&k, l);
    if (any && store_has_strips(c->store, p->index)) {
        draw_strips(&k);
        return;
    }
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
    const drawing_loadline *definition = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
    curve k = {c, p, 0, 1, NULL};
    int64_t from_ns = layout_time(c->layout, c->view, x - found->distance);
    if (store_has_strips(c->store, p->index) && !definition->rate) {
        find_in_strips(c, p, x, y, found);
        return;
    }
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
