/*
 * The heat map of requests (heat_map.h), in place of the overview: time by duration, on a logarithmic scale, over the
 * whole log. Slow and failed requests have marks that are visible even if a mark stands for one request of a million.
 * The picture is cached until requests are added or the size changes, so that a frame costs one copy of it.
 */
#include "config.h"

#include "base/text.h"
#include "scene/axis.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

enum { GROUP_REQUESTS = 500, GROUP_WIDTH = 8, ROWS_MIN = 16, ROWS_MARGIN = 2, LEGEND_GAP = 14, PIXELS_MAX = 16000 };

static const double mark_size = 4, pick_distance = 4;

/* The scale of durations: the rows [low, high) of the map over the height of the strip. */
typedef struct heat_scale {
    unsigned low, high;
    double top, bottom;
} heat_scale;

/* What the cached picture depends on. */
typedef struct heat_key {
    const heat_map *map;
    uint64_t count;
    int64_t from_ns, to_ns;
    double width, height, scale;
    bool dark;
} heat_key;

static struct {
    heat_key key;
    cairo_surface_t *picture;
} kept_heat;

static const heat_map *map_of(const layer_context *c)
{
    return &model_requests(c->model)->heat;
}

static heat_scale scale_of(const heat_map *h, const layout *l)
{
    heat_scale s = {HEAT_ROWS, 0, l->overview_top + 2, l->overview_bottom - 1};
    for (unsigned row = 0; row < HEAT_ROWS; row++)
        if (h->totals[row] > 0) {
            s.low = MIN(s.low, row);
            s.high = row + 1;
        }
    const unsigned missing = s.high - s.low < ROWS_MIN ? ROWS_MIN - (s.high - s.low) : 0;
    s.low -= MIN(s.low, ROWS_MARGIN + missing / 2);
    s.high = MIN(HEAT_ROWS, s.high + ROWS_MARGIN + missing / 2);
    return s;
}

static double row_y(const heat_scale *s, double row)
{
    return s->bottom - (row - s->low) / (s->high - s->low) * (s->bottom - s->top);
}

/* Returns the place of a duration among the rows, with its fraction. */
static double row_of_ns(double duration_ns)
{
    const unsigned row = heat_row((int64_t)CLAMP(duration_ns, 0, 9e18));
    return row + (duration_ns - heat_row_ns(row)) / (heat_row_ns(row + 1) - heat_row_ns(row));
}

/* Sets the map's columns [*from, *to) between two places of the strip. */
static void columns_between(const layer_context *c, double left, double right, unsigned *from, unsigned *to)
{
    const heat_map *h = map_of(c);
    const double first = floor(heat_map_column(h, layout_overview_time(c->layout, left))),
                 end = floor(heat_map_column(h, layout_overview_time(c->layout, right)));
    *from = (unsigned)CLAMP(first, 0, HEAT_COLUMNS);
    *to = (unsigned)CLAMP(MAX(end, first + 1), 0, HEAT_COLUMNS);
}

/* ---- the cached picture ---- */

static color heat_color(double share, bool dark)
{
    static const color light[] = {{0.78, 0.86, 0.95}, {0.05, 0.23, 0.50}},
                       on_dark[] = {{0.18, 0.30, 0.44}, {0.70, 0.86, 1}};
    const color *ends = dark ? on_dark : light;
    return (color){ends[0].red + share * (ends[1].red - ends[0].red),
                   ends[0].green + share * (ends[1].green - ends[0].green),
                   ends[0].blue + share * (ends[1].blue - ends[0].blue)};
}

static void draw_mark(cairo_t *cr, double x, double y, bool is_failed, bool dark)
{
    const double half = mark_size / 2;
    palette_set(cr, is_failed ? palette_error(dark) : palette_slow(dark), 1);
    if (!is_failed) {
        cairo_rectangle(cr, x - half, y - half, mark_size, mark_size);
        cairo_fill(cr);
        return;
    }
    cairo_set_line_width(cr, 2);
    cairo_move_to(cr, x - half - 1, y - half - 1);
    cairo_line_to(cr, x + half + 1, y + half + 1);
    cairo_move_to(cr, x - half - 1, y + half + 1);
    cairo_line_to(cr, x + half + 1, y - half - 1);
    cairo_stroke(cr);
}

/* Adds the cells of the columns [from, to). Returns the largest count of a row. */
static uint32_t sum_cells(const heat_map *h, unsigned from, unsigned to, heat_cell sums[HEAT_ROWS])
{
    uint32_t max = 0;
    memset(sums, 0, HEAT_ROWS * sizeof *sums);
    for (unsigned column = from; column < to; column++)
        for (unsigned row = 0; row < HEAT_ROWS; row++) {
            sums[row].count += h->columns[column][row].count;
            sums[row].failed += h->columns[column][row].failed;
            max = MAX(max, sums[row].count);
        }
    return max;
}

typedef enum heat_pass { HEAT_COUNT, HEAT_CELLS, HEAT_SLOW, HEAT_FAILED } heat_pass;

/*
 * Draws the cells, or the marks of slow or of failed requests, in all columns of pixels; HEAT_COUNT draws nothing.
 * `max` is the largest count of a cell. Returns the largest count in the strip.
 */

static uint32_t draw_pass(const layer_context *c, cairo_t *cr, const heat_scale *s, heat_pass pass, uint32_t max)
{
    const heat_map *h = map_of(c);
    const layout *l = c->layout;
    const double step = pass == HEAT_SLOW || pass == HEAT_FAILED ? 2 : 1 / c->scale;
    const unsigned slow_row = (unsigned)ceil(row_of_ns(heat_map_slow_ns(h)));
    uint32_t found = 0;
    heat_cell sums[HEAT_ROWS];
    for (double x = l->left; x < l->right; x += step) {
        unsigned from, to;
        columns_between(c, x, x + step, &from, &to);
        found = MAX(found, sum_cells(h, from, to, sums));
        for (unsigned row = s->low; row < s->high && pass != HEAT_COUNT; row++) {
            const double y = row_y(s, row + 1), height = row_y(s, row) - y;
            if (pass == HEAT_CELLS && sums[row].count > 0) {
                palette_set(cr, heat_color(log1p(sums[row].count) / log1p(max), c->view->dark), 1);
                cairo_rectangle(cr, x, y, step, MAX(height, 1 / c->scale));
                cairo_fill(cr);
            } else if ((pass == HEAT_SLOW && row >= slow_row && sums[row].count > sums[row].failed) ||
                       (pass == HEAT_FAILED && sums[row].failed > 0)) {
                draw_mark(cr, x + step / 2, y + height / 2, pass == HEAT_FAILED, c->view->dark);
            }
        }
    }
    return found;
}

static void draw_curve(const layer_context *c, cairo_t *cr, const heat_scale *s, double share, bool is_dashed)
{
    const heat_map *h = map_of(c);
    const layout *l = c->layout;
    const double plot = l->right - l->left,
                 groups = CLAMP(floor((double)h->count / GROUP_REQUESTS), 1, MAX(floor(plot / GROUP_WIDTH), 1));
    heat_cell sums[HEAT_ROWS];
    uint64_t counts[HEAT_ROWS];
    for (double group = 0; group < groups; group++) {
        const double left = l->left + plot * group / groups, right = l->left + plot * (group + 1) / groups;
        unsigned from, to;
        columns_between(c, left, right, &from, &to);
        if (sum_cells(h, from, to, sums) == 0)
            continue;
        for (unsigned row = 0; row < HEAT_ROWS; row++)
            counts[row] = sums[row].count;
        const double y = row_y(s, row_of_ns(heat_quantile(counts, share)));
        if (groups == 1)
            cairo_move_to(cr, left, y);
        cairo_line_to(cr, groups == 1 ? right : (left + right) / 2, y);
    }
    const double dashes[] = {4, 3};
    palette_set(cr, palette_background(c->view->dark), 0.6); /* for contrast with the cells */
    cairo_set_line_width(cr, 3.2);
    cairo_stroke_preserve(cr);
    cairo_set_dash(cr, dashes, is_dashed ? 2 : 0, 0);
    cairo_set_line_width(cr, 1.2);
    palette_set(cr, palette_text(c->view->dark), 1);
    cairo_stroke(cr);
    cairo_set_dash(cr, NULL, 0, 0);
}

static void draw_map(const layer_context *c, cairo_t *cr, const heat_scale *s)
{
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
    draw_pass(c, cr, s, HEAT_CELLS, draw_pass(c, cr, s, HEAT_COUNT, 0));
    draw_pass(c, cr, s, HEAT_SLOW, 0);
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
    draw_curve(c, cr, s, 0.5, false);
    draw_curve(c, cr, s, 0.99, true);
    draw_pass(c, cr, s, HEAT_FAILED, 0);
}

/* Draws the map from the cached picture, which is drawn again if it is out of date. */
static void draw_kept(const layer_context *c, const heat_scale *s)
{
    const layout *l = c->layout;
    const heat_map *h = map_of(c);
    const double width = l->right - l->left, height = l->overview_bottom - l->overview_top;
    const heat_key key = {h, h->count, l->whole_from_ns, l->whole_to_ns, width, height, c->scale, c->view->dark};
    const heat_key *old = &kept_heat.key;
    if (kept_heat.picture == NULL || old->map != key.map || old->count != key.count || old->from_ns != key.from_ns ||
        old->to_ns != key.to_ns || old->width != key.width || old->height != key.height || old->scale != key.scale ||
        old->dark != key.dark) {
        if (kept_heat.picture != NULL)
            cairo_surface_destroy(kept_heat.picture);
        kept_heat.picture =
            cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)MIN(ceil(width * c->scale), PIXELS_MAX),
                                       (int)MIN(ceil(height * c->scale), PIXELS_MAX));
        cairo_surface_set_device_scale(kept_heat.picture, c->scale, c->scale);
        cairo_t *cr = cairo_create(kept_heat.picture);
        cairo_translate(cr, -l->left, -l->overview_top);
        draw_map(c, cr, s);
        cairo_destroy(cr);
        kept_heat.key = key;
    }
    cairo_set_source_surface(c->cr, kept_heat.picture, l->left, l->overview_top);
    cairo_paint(c->cr);
}

/* ---- the axis, the legend and marks of the user ---- */

/* Draws the labels of durations: powers of ten, and 2 and 5 between them if there are few. */
static void draw_durations(const layer_context *c, const heat_scale *s)
{
    static const double steps[] = {1, 2, 5};
    const double high_ns = heat_row_ns(s->high), low_ns = MAX(heat_row_ns(s->low), 1);
    const size_t step_count = high_ns / low_ns > 300 ? 1 : G_N_ELEMENTS(steps);
    double above = INFINITY;
    for (double power = pow(10, floor(log10(low_ns))); power < high_ns; power *= 10)
        for (size_t i = 0; i < step_count; i++) {
            const double ns = power * steps[i], y = row_y(s, row_of_ns(ns)), half = text_height(TEXT_SMALL) / 2;
            if (ns < low_ns || ns >= high_ns || y + half > above || y - half < s->top - 4 || y + half > s->bottom + 4)
                continue;
            char label[32];
            axis_span_label(ns, label);
            above = y - half;
            palette_set(c->cr, palette_grid(c->view->dark), 1);
            cairo_set_line_width(c->cr, 1);
            cairo_move_to(c->cr, c->layout->left, floor(y) + 0.5);
            cairo_line_to(c->cr, c->layout->right, floor(y) + 0.5);
            cairo_stroke(c->cr);
            text_draw(c->cr, label, TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, c->layout->left - 8, y, 0);
        }
}

static void draw_view(const layer_context *c)
{
    const layout *l = c->layout;
    const double from = CLAMP(layout_overview_x(l, c->view->from_ns), l->left, l->right - 2),
                 to = CLAMP(layout_overview_x(l, c->view->to_ns), from + 2, l->right),
                 height = l->overview_bottom - l->overview_top;
    cairo_rectangle(c->cr, floor(from) + 0.5, floor(l->overview_top) + 0.5, MAX(floor(to - from) - 1, 1), height - 1);
    palette_set(c->cr, palette_accent(c->view->dark), 0.08);
    cairo_fill_preserve(c->cr);
    palette_set(c->cr, palette_accent(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1.5);
    cairo_stroke(c->cr);
}

static void draw_brush(const layer_context *c)
{
    const scene_view *v = c->view;
    if (!v->has_brush)
        return;
    cairo_rectangle(c->cr, v->brush_x[0], v->brush_y[0], v->brush_x[1] - v->brush_x[0], v->brush_y[1] - v->brush_y[0]);
    palette_set(c->cr, palette_accent(v->dark), 0.2);
    cairo_fill_preserve(c->cr);
    palette_set(c->cr, palette_accent(v->dark), 1);
    cairo_set_line_width(c->cr, 1);
    cairo_stroke(c->cr);
}

static uint64_t count_slow(const heat_map *h)
{
    uint64_t slow = 0;
    for (unsigned row = (unsigned)ceil(row_of_ns(heat_map_slow_ns(h))); row < HEAT_ROWS; row++)
        slow += h->totals[row];
    return slow;
}

double heat_layer_legend(const layer_context *c, double right)
{
    if (!c->layout->has_heat)
        return right;
    const heat_map *h = map_of(c);
    const double y = c->layout->caption_y, sample = 18;
    char texts[5][48];
    const uint64_t slow = count_slow(h);
    g_snprintf(texts[0], sizeof texts[0], "of %" G_GUINT64_FORMAT " request%s", h->count, nl_plural(h->count));
    g_snprintf(texts[1], sizeof texts[1], "%" G_GUINT64_FORMAT " failed or incomplete", h->failed);
    g_snprintf(texts[2], sizeof texts[2], "%" G_GUINT64_FORMAT " slow", slow);
    g_snprintf(texts[3], sizeof texts[3], "p99");
    g_snprintf(texts[4], sizeof texts[4], "p50");
    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        if ((i == 1 && h->failed == 0) || (i == 2 && slow == 0))
            continue;
        right -= text_draw(c->cr, texts[i], TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, right, y, 0);
        right -= i == 0 ? 8 : sample;
        const double dashes[] = {4, 3};
        if (i == 1 || i == 2)
            draw_mark(c->cr, right + sample - 9, y, i == 1, c->view->dark);
        if (i > 2) {
            cairo_set_dash(c->cr, dashes, i == 3 ? 2 : 0, 0);
            palette_set(c->cr, palette_text(c->view->dark), 0.9);
            cairo_set_line_width(c->cr, 1.2);
            cairo_move_to(c->cr, right + 1, y);
            cairo_line_to(c->cr, right + sample - 4, y);
            cairo_stroke(c->cr);
            cairo_set_dash(c->cr, NULL, 0, 0);
        }
        right -= i == 0 ? 0 : LEGEND_GAP;
    }
    return right;
}

void heat_layer_draw(const layer_context *c)
{
    const heat_scale s = scale_of(map_of(c), c->layout);
    draw_durations(c, &s);
    draw_view(c); /* behind the marks, which it would hide */
    draw_kept(c, &s);
    draw_brush(c);
}

/* ---- selection ---- */

/* Returns the duration at a place of the strip in nanoseconds. */
static double duration_at(const heat_scale *s, double y)
{
    const double row = CLAMP(s->low + (s->bottom - y) / (s->bottom - s->top) * (s->high - s->low), 0, HEAT_ROWS - 1),
                 low = heat_row_ns((unsigned)row), high = heat_row_ns((unsigned)row + 1);
    return low + (row - floor(row)) * (high - low);
}

request_choice heat_layer_area(const heat_map *h, const layout *l, double x0, double y0, double x1, double y1)
{
    const heat_scale s = scale_of(h, l);
    const double left = MIN(x0, x1) - pick_distance, right = MAX(x0, x1) + pick_distance,
                 top = MIN(y0, y1) - pick_distance, bottom = MAX(y0, y1) + pick_distance;
    request_choice area = request_choice_all;
    area.from_ns = layout_overview_time(l, left);
    area.to_ns = layout_overview_time(l, right);
    if (top > l->overview_top)
        area.longest_ns = duration_at(&s, top);
    if (bottom < l->overview_bottom)
        area.shortest_ns = duration_at(&s, bottom);
    return area;
}
