/*
 * The heat map of requests (heat_map.h), in place of the overview: time by duration, on a logarithmic scale, over the
 * whole log. Slow and failed requests have marks that are visible even if a mark stands for one request of a million.
 * The picture is cached until requests are added or the size changes, so that a frame usually only copies this picture.
 */
#include "config.h"

#include "base/text.h"
#include "scene/axis.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

enum { GROUP_REQUESTS = 500, GROUP_WIDTH = 8, ROWS_MIN = 16, ROWS_MARGIN = 2, LEGEND_GAP = 14, PIXELS_MAX = 16000 };

static const double pick_distance = 4;

/* The scale of durations: the rows [low, high) of the map over the height of the strip. */
typedef struct heat_scale {
    unsigned low, high;
    double top, bottom;
} heat_scale;

/* What the cached picture depends on. */
typedef struct heat_key {
    unsigned map; /* its number */
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

/* Draws a mark at whole units, so that it has its full colour: a square, with arms for a failed request. */
static void draw_mark(cairo_t *cr, double x, double y, bool is_failed, bool dark)
{
    const double left = floor(x) - 1, top = floor(y) - 1, size = 3, arm = 2;
    palette_set(cr, is_failed ? palette_error(dark) : palette_slow(dark), 1);
    cairo_rectangle(cr, left - !is_failed, top, size + !is_failed, size + !is_failed);
    cairo_fill(cr);
    if (!is_failed)
        return;
    cairo_set_line_width(cr, 2);
    cairo_move_to(cr, left - arm, top - arm);
    cairo_line_to(cr, left + size + arm, top + size + arm);
    cairo_move_to(cr, left - arm, top + size + arm);
    cairo_line_to(cr, left + size + arm, top - arm);
    cairo_stroke(cr);
}

/* Adds the cells of the columns [from, to) and the rows [low, high) to sums[0] and so on. */
static void sum_cells(const heat_map *h, unsigned from, unsigned to, unsigned low, unsigned high, heat_cell *sums)
{
    memset(sums, 0, (high - low) * sizeof *sums);
    for (unsigned column = from; column < to; column++)
        for (unsigned row = low; row < high; row++) {
            sums[row - low].count += h->columns[column][row].count;
            sums[row - low].failed += h->columns[column][row].failed;
        }
}

/* The counts of each column of pixels, by row of the scale. */
typedef struct heat_pixels {
    heat_cell *cells; /* [column * rows + row - low] */
    unsigned columns, rows;
    uint32_t max; /* the largest count */
} heat_pixels;

static heat_pixels pixels_of(const layer_context *c, const heat_scale *s, unsigned columns)
{
    heat_pixels p = {NULL, columns, s->high - s->low, 1};
    p.cells = g_new(heat_cell, (size_t)columns * p.rows);
    for (unsigned x = 0; x < columns; x++) {
        unsigned from, to;
        heat_cell *cells = &p.cells[(size_t)x * p.rows];
        columns_between(c, c->layout->left + x / c->scale, c->layout->left + (x + 1) / c->scale, &from, &to);
        sum_cells(map_of(c), from, to, s->low, s->high, cells);
        for (unsigned row = 0; row < p.rows; row++)
            p.max = MAX(p.max, cells[row].count);
    }
    return p;
}

static uint32_t pixel_of(color ink)
{
    return UINT32_C(0xff000000) | (uint32_t)(ink.red * 255) << 16 | (uint32_t)(ink.green * 255) << 8 |
           (uint32_t)(ink.blue * 255);
}

/* Paints the cells directly into the picture, because cairo would need a path for each cell. */
static void paint_cells(const layer_context *c, const heat_scale *s, const heat_pixels *p, cairo_surface_t *picture)
{
    enum { SHADES = 64 };
    uint32_t shades[SHADES];
    for (unsigned i = 0; i < SHADES; i++)
        shades[i] = pixel_of(heat_color(i / (SHADES - 1.0), c->view->dark));
    cairo_surface_flush(picture);
    unsigned char *data = cairo_image_surface_get_data(picture);
    const size_t stride = (size_t)cairo_image_surface_get_stride(picture);
    const double factor = (SHADES - 1) / log1p(p->max), top = c->layout->overview_top;
    const int height = cairo_image_surface_get_height(picture);
    for (unsigned row = 0; row < p->rows; row++) {
        const int first = (int)floor((row_y(s, s->low + row + 1) - top) * c->scale),
                  end = MAX((int)floor((row_y(s, s->low + row) - top) * c->scale), first + 1);
        for (unsigned x = 0; x < p->columns; x++) {
            const heat_cell *cell = &p->cells[(size_t)x * p->rows + row];
            const uint32_t count =
                cell->count > 0 || x == 0 ? cell->count : (cell - p->rows)->count; /* 2 pixels wide */
            const uint32_t shade = count > 0 ? shades[(unsigned)(log1p(count) * factor)] : 0;
            for (int y = MAX(first, 0); count > 0 && y < MIN(end, height); y++)
                memcpy(data + (size_t)y * stride + 4 * (size_t)x, &shade, sizeof shade);
        }
    }
    cairo_surface_mark_dirty(picture);
}

/* Draws the marks of the slow or of the failed requests, at most one in MARK_GAP units of a row. */
static void draw_marks(const layer_context *c, cairo_t *cr, const heat_scale *s, const heat_pixels *p, bool failed)
{
    enum { MARK_GAP = 2 };
    const double slow = ceil(row_of_ns(heat_map_slow_ns(map_of(c))));
    for (unsigned row = 0; row < p->rows; row++) {
        double last = -MARK_GAP;
        for (unsigned x = 0; x < p->columns && (failed || s->low + row >= slow); x++) {
            const heat_cell *cell = &p->cells[(size_t)x * p->rows + row];
            const double at = (x + 0.5) / c->scale;
            if ((failed ? cell->failed : cell->count - cell->failed) == 0 || at - last < MARK_GAP)
                continue;
            last = at;
            draw_mark(cr, c->layout->left + at, row_y(s, s->low + row + 0.5), failed, c->view->dark);
        }
    }
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
        sum_cells(h, from, to, 0, HEAT_ROWS, sums);
        uint64_t any = 0;
        for (unsigned row = 0; row < HEAT_ROWS; row++)
            any += counts[row] = sums[row].count;
        if (any == 0)
            continue;
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

/* Returns the corner of the picture, at a whole pixel. */
static double whole_pixel(const layer_context *c, double place)
{
    return floor(place * c->scale) / c->scale;
}

static void draw_map(const layer_context *c, const heat_scale *s, cairo_surface_t *picture)
{
    const heat_pixels p = pixels_of(c, s, (unsigned)cairo_image_surface_get_width(picture));
    paint_cells(c, s, &p, picture);
    cairo_t *cr = cairo_create(picture);
    cairo_translate(cr, -whole_pixel(c, c->layout->left), -whole_pixel(c, c->layout->overview_top));
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
    draw_marks(c, cr, s, &p, false);
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
    draw_curve(c, cr, s, 0.5, false);
    draw_curve(c, cr, s, 0.99, true);
    draw_marks(c, cr, s, &p, true);
    cairo_destroy(cr);
    g_free(p.cells);
}

/* Draws the map from the cached picture, which is drawn again if it is out of date. */
static void draw_kept(const layer_context *c, const heat_scale *s)
{
    const layout *l = c->layout;
    const heat_map *h = map_of(c);
    const double width = l->right - l->left, height = l->overview_bottom - l->overview_top;
    const heat_key key = {h->number, h->count, l->whole_from_ns, l->whole_to_ns,
                          width,     height,   c->scale,         c->view->dark};
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
        draw_map(c, s, kept_heat.picture);
        kept_heat.key = key;
    }
    cairo_set_source_surface(c->cr, kept_heat.picture, whole_pixel(c, l->left), whole_pixel(c, l->overview_top));
    cairo_paint(c->cr);
}

/* ---- the axis, the legend and marks of the user ---- */

static void draw_duration(const layer_context *c, double ns, double y)
{
    char label[32];
    axis_span_label(ns, label);
    palette_set(c->cr, palette_grid(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1);
    cairo_move_to(c->cr, c->layout->left, floor(y) + 0.5);
    cairo_line_to(c->cr, c->layout->right, floor(y) + 0.5);
    cairo_stroke(c->cr);
    text_draw(c->cr, label, TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, c->layout->left - 8, y, 0);
}

/* Draws the labels of durations: powers of ten up to 10 s, minutes and hours, and round values between them if they
 * fit. */
static void draw_durations(const layer_context *c, const heat_scale *s)
{
    static const double seconds[] = {1,   2,    5,    10,   20,    30,    60,    120,   300,
                                     600, 1800, 3600, 7200, 18000, 36000, 86400, 864000};
    const double low_ns = MAX(heat_row_ns(s->low), 1), high_ns = heat_row_ns(s->high),
                 half = text_height(TEXT_SMALL) / 2;
    const bool is_wide = high_ns / low_ns > 300;
    double above = INFINITY, unit_ns = pow(10, fmin(floor(log10(low_ns)), 9));
    for (size_t i = 0; i < G_N_ELEMENTS(seconds); i++) {
        const double ns = seconds[i] * unit_ns, y = row_y(s, row_of_ns(ns));
        const bool is_round = seconds[i] == 1 || seconds[i] == 10 || seconds[i] == 60 || seconds[i] == 600 ||
                              seconds[i] == 3600 || seconds[i] == 36000;
        if ((is_round || !is_wide) && ns >= low_ns && ns < high_ns && y + half <= above && y - half >= s->top - 4 &&
            y + half <= s->bottom + 4) {
            draw_duration(c, ns, y);
            above = y - half;
        }
        if (seconds[i] == 5 && unit_ns < 1e9) { /* minutes follow only seconds */
            unit_ns *= 10;
            i = (size_t)-1;
        }
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
