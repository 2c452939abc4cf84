/*
 * The heat map of requests (heat_map.h), which replaces the overview. The heat map shows the times of all requests in
 * the log, and their durations on a logarithmic scale. The marks of slow and failed requests are visible even if only
 * one of a million requests is slow. The module caches the picture until requests are added or the size changes, so
 * that a frame usually only copies this picture.
 */
#include "config.h"

#include "base/text.h"
#include "scene/axis.h"
#include "scene/heat_scale.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

enum {
    GROUP_REQUESTS = 500,
    GROUP_WIDTH = 8,
    LEGEND_GAP = 14,
    PIXELS_MAX = 16000,
    P50_REQUESTS_MIN = 20, /* minimum number of requests for the curve of the median */
    P99_REQUESTS_MIN = 100,
    CELL_HEIGHT_MIN = 3,   /* units */
    CELL_WIDTH = 2,        /* pixels */
    CELL_WIDTH_SPARSE = 4, /* width of the cells in pixels if there are at most SPARSE_MAX requests */
    SPARSE_MAX = 1000,
};

/* The values that determine the cached picture. */
typedef struct heat_key {
    unsigned map; /* heat_map.number */
    uint64_t count;
    int64_t from_ns, to_ns;
    double width, height, scale;
    bool dark;
    color logs[REQUEST_LOGS_MAX]; /* the colors of the logs' curves */
} heat_key;

static struct {
    heat_key key;
    cairo_surface_t *picture;
} kept_heat;

static bool is_same_key(const heat_key *a, const heat_key *b)
{
    for (unsigned i = 0; i < REQUEST_LOGS_MAX; i++)
        if (palette_pixel(a->logs[i]) != palette_pixel(b->logs[i]))
            return false;
    return a->map == b->map && a->count == b->count && a->from_ns == b->from_ns && a->to_ns == b->to_ns &&
           a->width == b->width && a->height == b->height && a->scale == b->scale && a->dark == b->dark;
}

static const heat_map *map_of(const layer_context *c)
{
    return &model_requests(c->model)->heat;
}

/* Sets *from and *to to the map's columns [*from, *to) between two x coordinates of the strip. */
static void columns_between(const layer_context *c, const heat_map *h, double left, double right, unsigned *from,
                            unsigned *to)
{
    const double first = floor(heat_map_column(h, layout_overview_time(c->layout, left))),
                 end = floor(heat_map_column(h, layout_overview_time(c->layout, right)));
    *from = (unsigned)CLAMP(first, 0, HEAT_COLUMNS);
    /* at the right edge, include the column that the edge cuts, because this column has the last requests */
    *to = right < c->layout->overview_right ? (unsigned)CLAMP(MAX(end, first + 1), 0, HEAT_COLUMNS) : HEAT_COLUMNS;
}

/* ---- the cached picture ---- */

/* Draws a mark at whole units, so that the mark has its full color: a square, with arms and an outline for a failed
 * request. */
static void draw_mark(cairo_t *cr, double x, double y, bool is_failed, bool dark)
{
    const double left = floor(x) - 1, top = floor(y) - 1, size = 3, arm = 2;
    if (is_failed) {
        palette_set(cr, palette_background(dark), 0.8);
        cairo_rectangle(cr, left - arm - 1, top - arm - 1, size + 2 * arm + 2, size + 2 * arm + 2);
        cairo_fill(cr);
    }
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

/*
 * Sets sums[0], sums[1], ... to the sums of the rows low, low + 1, ... up to high - 1, over the columns [from, to).
 * Adds the rows below `low` to sums[0].
 */
static void sum_cells(const heat_map *h, unsigned from, unsigned to, unsigned low, unsigned high, heat_cell *sums)
{
    memset(sums, 0, (high - low) * sizeof *sums);
    for (unsigned column = from; column < to; column++)
        for (unsigned row = 0; row < high && h->is_used[column]; row++) {
            heat_cell *sum = &sums[MAX(row, low) - low];
            sum->count += h->columns[column][row].count;
            sum->failed += h->columns[column][row].failed;
        }
}

/* The counts of requests in each column of pixels and row of the scale. */
typedef struct heat_pixels {
    heat_cell *cells; /* [column * rows + row - low] */
    unsigned columns, rows;
    uint32_t max; /* the largest count of a cell */
} heat_pixels;

static heat_pixels pixels_of(const layer_context *c, const heat_scale *s, unsigned columns)
{
    heat_pixels p = {NULL, columns, s->high - s->low, 1};
    p.cells = g_new(heat_cell, (size_t)columns * p.rows);
    for (unsigned x = 0; x < columns; x++) {
        unsigned from, to;
        heat_cell *cells = &p.cells[(size_t)x * p.rows];
        columns_between(c, map_of(c), c->layout->left + x / c->scale, c->layout->left + (x + 1) / c->scale, &from, &to);
        sum_cells(map_of(c), from, to, s->low, s->high, cells);
        for (unsigned row = 0; row < p.rows; row++)
            p.max = MAX(p.max, cells[row].count);
    }
    return p;
}

/* Paints the cells directly into the picture, because cairo would need a path for each cell. */
static void paint_cells(const layer_context *c, const heat_scale *s, const heat_pixels *p, cairo_surface_t *picture)
{
    enum { SHADES = 64 };
    uint32_t shades[SHADES];
    for (unsigned i = 0; i < SHADES; i++) {
        color shade = palette_heat(i / (SHADES - 1.0), c->view->dark);
        if (request_list_has_logs(model_requests(c->model))) /* gray, so that the colors of the logs stand out */
            shade.red = shade.blue = shade.green;
        shades[i] = palette_pixel(shade);
    }
    cairo_surface_flush(picture);
    unsigned char *data = cairo_image_surface_get_data(picture);
    const size_t stride = (size_t)cairo_image_surface_get_stride(picture);
    const double factor = (SHADES - 1) / log1p(p->max), top = c->layout->overview_top;
    const int height = cairo_image_surface_get_height(picture);
    const unsigned width = map_of(c)->count > SPARSE_MAX ? CELL_WIDTH : CELL_WIDTH_SPARSE;
    for (unsigned row = 0; row < p->rows; row++) {
        const int first = (int)floor((heat_scale_y(s, s->low + row + 1) - top) * c->scale),
                  end = MAX((int)floor((heat_scale_y(s, s->low + row) - top) * c->scale),
                            first + (int)ceil(CELL_HEIGHT_MIN * c->scale));
        for (unsigned x = 0; x < p->columns; x++) {
            const heat_cell *cell = &p->cells[(size_t)x * p->rows + row];
            uint32_t count = cell->count;
            for (unsigned left = 1; count == 0 && left < MIN(width, x + 1); left++)
                count = (cell - (size_t)left * p->rows)->count;
            const uint32_t shade = count > 0 ? shades[(unsigned)(log1p(count) * factor)] : 0;
            for (int y = MAX(first, 0); count > 0 && y < MIN(end, height); y++)
                memcpy(data + (size_t)y * stride + 4 * (size_t)x, &shade, sizeof shade);
        }
    }
    cairo_surface_mark_dirty(picture);
}

/* Draws the marks of the slow requests or, if `failed` is true, of the failed requests. Draws at most one mark in
 * MARK_GAP units of a row. */
static void draw_marks(const layer_context *c, cairo_t *cr, const heat_scale *s, const heat_pixels *p, bool failed)
{
    enum { MARK_GAP = 2 };
    const unsigned slow = heat_scale_slow_row(map_of(c));
    for (unsigned row = 0; row < p->rows; row++) {
        double last = -MARK_GAP;
        for (unsigned x = 0; x < p->columns && (failed || s->low + row >= slow); x++) {
            const heat_cell *cell = &p->cells[(size_t)x * p->rows + row];
            const double at = (x + 0.5) / c->scale;
            if ((failed ? cell->failed : cell->count - cell->failed) == 0 || at - last < MARK_GAP)
                continue;
            last = at;
            draw_mark(cr, c->layout->left + at, heat_scale_y(s, s->low + row + 0.5), failed, c->view->dark);
        }
    }
}

static double place_of_column(const layer_context *c, const heat_map *h, unsigned column)
{
    return CLAMP(layout_overview_x(c->layout, h->from_ns + (int64_t)column * h->width_ns), c->layout->left,
                 c->layout->overview_right);
}

/*
 * Draws the quantile `share` of the durations of a map over time. A point of the curve stands for the requests of a
 * group of columns, and is in the middle of those columns that have requests. The curve has a gap where a long range of
 * time has no requests.
 */
static void draw_curve(const layer_context *c, cairo_t *cr, const heat_scale *s, const heat_map *h, color ink,
                       double share, bool is_dashed)
{
    enum { GAP_SHARE = 8 };
    const layout *l = c->layout;
    const double plot = l->overview_right - l->left,
                 groups = CLAMP(floor((double)h->count / GROUP_REQUESTS), 1, MAX(floor(plot / GROUP_WIDTH), 1));
    heat_cell sums[HEAT_ROWS];
    uint64_t counts[HEAT_ROWS];
    double end = -INFINITY, y = 0;
    for (double group = 0; group < groups; group++) {
        unsigned from, to;
        columns_between(c, h, l->left + plot * group / groups, l->left + plot * (group + 1) / groups, &from, &to);
        sum_cells(h, from, to, 0, HEAT_ROWS, sums);
        uint64_t any = 0;
        for (unsigned row = 0; row < HEAT_ROWS; row++)
            any += counts[row] = sums[row].count;
        if (any == 0)
            continue;
        while (!h->is_used[from])
            from++;
        while (!h->is_used[to - 1])
            to--;
        const double left = place_of_column(c, h, from), right = place_of_column(c, h, to);
        const bool is_continued = left - end <= plot / GAP_SHARE;
        if (!is_continued && group > 0 && !isinf(end))
            cairo_line_to(cr, end, y);
        const double ns = fmin(heat_quantile(counts, share), (double)h->max_ns);
        y = heat_scale_y(s, MAX(heat_row_of_ns(ns), s->low));
        if (!is_continued)
            cairo_move_to(cr, left, y);
        cairo_line_to(cr, (left + right) / 2, y);
        end = right;
    }
    if (!isinf(end))
        cairo_line_to(cr, end, y);
    const double dashes[] = {4, 3};
    palette_set(cr, palette_background(c->view->dark), 0.6); /* an outline, for contrast with the cells */
    cairo_set_line_width(cr, 3.2);
    cairo_stroke_preserve(cr);
    cairo_set_dash(cr, dashes, is_dashed ? 2 : 0, 0);
    cairo_set_line_width(cr, 1.2);
    palette_set(cr, ink, 1);
    cairo_stroke(cr);
    cairo_set_dash(cr, NULL, 0, 0);
}

/* Draws the median and the 99th percentile of all requests. If the logs have different colors, draws a curve for each
 * log instead. */
static void draw_curves(const layer_context *c, cairo_t *cr, const heat_scale *s, const heat_key *key)
{
    const request_list *l = model_requests(c->model);
    const bool has_logs = request_list_has_logs(l);
    for (unsigned i = 0; i < (has_logs ? l->log_count : 1); i++) {
        const heat_map *h = has_logs ? &l->logs[i].heat : &l->heat;
        const color ink = has_logs ? key->logs[i] : palette_text(c->view->dark);
        if (h->count >= P50_REQUESTS_MIN)
            draw_curve(c, cr, s, h, ink, 0.5, false);
        if (h->count >= P99_REQUESTS_MIN)
            draw_curve(c, cr, s, h, ink, 0.99, true);
    }
}

/* Rounds a coordinate in units down to a whole pixel. */
static double whole_pixel(const layer_context *c, double place)
{
    return floor(place * c->scale) / c->scale;
}

static void draw_map(const layer_context *c, const heat_scale *s, const heat_key *key, cairo_surface_t *picture)
{
    const heat_pixels p = pixels_of(c, s, (unsigned)cairo_image_surface_get_width(picture));
    paint_cells(c, s, &p, picture);
    cairo_t *cr = cairo_create(picture);
    cairo_translate(cr, -whole_pixel(c, c->layout->left), -whole_pixel(c, c->layout->overview_top));
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
    draw_marks(c, cr, s, &p, false);
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
    draw_curves(c, cr, s, key);
    draw_marks(c, cr, s, &p, true);
    cairo_destroy(cr);
    g_free(p.cells);
}

/* Draws the map from the cached picture. Redraws this picture first if it is outdated. */
static void draw_kept(const layer_context *c, const heat_scale *s)
{
    const layout *l = c->layout;
    const heat_map *h = map_of(c);
    const double width = l->overview_right - l->left, height = l->overview_bottom - l->overview_top;
    heat_key key = {.map = h->number,
                    .count = h->count,
                    .from_ns = l->whole_from_ns,
                    .to_ns = l->whole_to_ns,
                    .width = width,
                    .height = height,
                    .scale = c->scale,
                    .dark = c->view->dark};
    const request_list *requests = model_requests(c->model);
    for (unsigned i = 0; request_list_has_logs(requests) && i < requests->log_count; i++)
        key.logs[i] = heat_scale_log_color(c->model, i, c->view->dark);
    if (kept_heat.picture == NULL || !is_same_key(&kept_heat.key, &key)) {
        if (kept_heat.picture != NULL)
            cairo_surface_destroy(kept_heat.picture);
        kept_heat.picture =
            cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)MIN(ceil(width * c->scale), PIXELS_MAX),
                                       (int)MIN(ceil(height * c->scale), PIXELS_MAX));
        cairo_surface_set_device_scale(kept_heat.picture, c->scale, c->scale);
        draw_map(c, s, &key, kept_heat.picture);
        kept_heat.key = key;
    }
    cairo_set_source_surface(c->cr, kept_heat.picture, whole_pixel(c, l->left), whole_pixel(c, l->overview_top));
    cairo_paint(c->cr);
}

/* ---- the axis and the legend ---- */

static void draw_duration(const layer_context *c, double ns, double y)
{
    char label[32];
    axis_span_label(ns, label);
    palette_set(c->cr, palette_grid(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1);
    cairo_move_to(c->cr, c->layout->left, floor(y) + 0.5);
    cairo_line_to(c->cr, c->layout->overview_right, floor(y) + 0.5);
    cairo_stroke(c->cr);
    text_draw(c->cr, label, TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, c->layout->left - 8, y, 0);
}

/* Draws the labels of durations: powers of ten up to 10 s, minutes and hours. Adds round values between these labels if
 * there is space. */
static void draw_durations(const layer_context *c, const heat_scale *s)
{
    static const double seconds[] = {1,   2,    5,    10,   20,    30,    60,    120,   300,
                                     600, 1800, 3600, 7200, 18000, 36000, 86400, 864000};
    const double low_ns = MAX(heat_row_ns(s->low), 1), high_ns = heat_row_ns(s->high),
                 half = text_height(TEXT_SMALL) / 2;
    const bool is_wide = high_ns / low_ns > 300;
    double above = INFINITY;
    if (s->is_cut) {
        above = s->bottom - 2 * half;
        text_draw(c->cr, "shorter", TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, c->layout->left - 8,
                  s->bottom - half, 0);
    }
    double unit_ns = pow(10, fmin(floor(log10(low_ns)), 9));
    for (size_t i = 0; i < G_N_ELEMENTS(seconds); i++) {
        const double ns = seconds[i] * unit_ns, y = heat_scale_y(s, heat_row_of_ns(ns));
        const bool is_round = seconds[i] == 1 || seconds[i] == 10 || seconds[i] == 60 || seconds[i] == 600 ||
                              seconds[i] == 3600 || seconds[i] == 36000;
        if ((is_round || !is_wide) && ns >= low_ns && ns < high_ns && y + half <= above && y - half >= s->top - 4 &&
            y + half <= s->bottom + 4) {
            draw_duration(c, ns, y);
            above = y - half;
        }
        if (seconds[i] == 5 &&
            unit_ns < 1e9) { /* the steps above 5 are minutes and hours, so use them only with the unit second */
            unit_ns *= 10;
            i = (size_t)-1;
        }
    }
}

static void draw_view(const layer_context *c)
{
    const layout *l = c->layout;
    const double from = CLAMP(layout_overview_x(l, c->view->from_ns), l->left, l->overview_right - 2),
                 to = CLAMP(layout_overview_x(l, c->view->to_ns), from + 2, l->overview_right),
                 height = l->overview_bottom - l->overview_top;
    cairo_rectangle(c->cr, floor(from) + 0.5, floor(l->overview_top) + 0.5, MAX(floor(to - from) - 1, 1), height - 1);
    palette_set(c->cr, palette_accent(c->view->dark), 0.08);
    cairo_fill_preserve(c->cr);
    palette_set(c->cr, palette_accent(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1.5);
    cairo_stroke(c->cr);
}

static uint64_t count_slow(const heat_map *h)
{
    uint64_t slow = 0;
    for (unsigned row = heat_scale_slow_row(h); row < HEAT_ROWS; row++)
        slow += h->totals[row];
    return slow;
}

/* An entry of the legend: a sample of a mark or curve, and a text. */
typedef enum legend_kind { LEGEND_COUNT, LEGEND_ERRORS, LEGEND_SLOW, LEGEND_P99, LEGEND_P50, LEGEND_KINDS } legend_kind;

enum { SAMPLE_WIDTH = 18 };

typedef struct legend_entry {
    char text[48]; /* "": omit the entry */
    double left, right;
} legend_entry;

/* Places the entries from the right edge `right` to the left. Returns the left edge of the legend. */
static double place_legend(const layer_context *c, double right, legend_entry entries[LEGEND_KINDS])
{
    const heat_map *h = map_of(c);
    const uint64_t slow = count_slow(h);
    memset(entries, 0, LEGEND_KINDS * sizeof *entries);
    g_snprintf(entries[LEGEND_COUNT].text, sizeof entries->text, "of %" G_GUINT64_FORMAT " request%s", h->count,
               nl_plural(h->count));
    if (h->failed > 0)
        g_snprintf(entries[LEGEND_ERRORS].text, sizeof entries->text, "%" G_GUINT64_FORMAT " failed or incomplete",
                   h->failed);
    if (slow > 0)
        g_snprintf(entries[LEGEND_SLOW].text, sizeof entries->text, "%" G_GUINT64_FORMAT " slow", slow);
    if (h->count >= P99_REQUESTS_MIN)
        g_snprintf(entries[LEGEND_P99].text, sizeof entries->text, "p99");
    if (h->count >= P50_REQUESTS_MIN)
        g_snprintf(entries[LEGEND_P50].text, sizeof entries->text, "p50");
    for (legend_kind i = 0; i < LEGEND_KINDS; i++) {
        legend_entry *e = &entries[i];
        if (*e->text == '\0')
            continue;
        const bool has_sample = i != LEGEND_COUNT;
        e->right = right;
        e->left = right - text_width(c->cr, e->text, TEXT_SMALL) - (has_sample ? SAMPLE_WIDTH : 0);
        right = e->left - (has_sample ? LEGEND_GAP : LEGEND_GAP / 2.0);
    }
    return right;
}

double heat_layer_legend(const layer_context *c, double right)
{
    legend_entry entries[LEGEND_KINDS];
    if (!c->layout->has_heat)
        return right;
    const double left = place_legend(c, right, entries), y = c->layout->caption_y, dashes[] = {4, 3};
    for (legend_kind i = 0; i < LEGEND_KINDS; i++) {
        const legend_entry *e = &entries[i];
        if (*e->text == '\0')
            continue;
        text_draw(c->cr, e->text, TEXT_SMALL, palette_muted(c->view->dark), TEXT_RIGHT, e->right, y, 0);
        if (i == LEGEND_ERRORS || i == LEGEND_SLOW)
            draw_mark(c->cr, e->left + SAMPLE_WIDTH - 9, y, i == LEGEND_ERRORS, c->view->dark);
        if (i == LEGEND_P99 || i == LEGEND_P50) {
            cairo_set_dash(c->cr, dashes, i == LEGEND_P99 ? 2 : 0, 0);
            palette_set(c->cr, palette_text(c->view->dark), 0.9);
            cairo_set_line_width(c->cr, 1.2);
            cairo_move_to(c->cr, e->left + 1, y);
            cairo_line_to(c->cr, e->left + SAMPLE_WIDTH - 4, y);
            cairo_stroke(c->cr);
            cairo_set_dash(c->cr, NULL, 0, 0);
        }
    }
    return left;
}

heat_legend heat_layer_find_legend(const layer_context *c, double x, double y)
{
    legend_entry entries[LEGEND_KINDS];
    if (!c->layout->has_heat || fabs(y - c->layout->caption_y) > text_height(TEXT_SMALL) / 2 + 3)
        return HEAT_LEGEND_OTHER;
    place_legend(c, c->layout->right, entries);
    const legend_entry *errors = &entries[LEGEND_ERRORS], *slow = &entries[LEGEND_SLOW];
    return *errors->text != '\0' && x >= errors->left && x <= errors->right ? HEAT_LEGEND_ERRORS
           : *slow->text != '\0' && x >= slow->left && x <= slow->right     ? HEAT_LEGEND_SLOW
                                                                            : HEAT_LEGEND_OTHER;
}

void heat_layer_draw(const layer_context *c)
{
    const heat_scale s = heat_scale_of(map_of(c), c->layout);
    draw_durations(c, &s);
    draw_view(c); /* draw the frame of the visible interval first, so that it does not cover the marks */
    draw_kept(c, &s);
}

/* ---- the user's selection ---- */

void heat_layer_draw_area(const layer_context *c)
{
    const scene_view *v = c->view;
    const layout *l = c->layout;
    if (!v->has_brush && !v->has_area)
        return;
    double x0 = v->brush_x[0], x1 = v->brush_x[1], y0 = v->brush_y[0], y1 = v->brush_y[1];
    if (!v->has_brush) {
        const heat_scale s = heat_scale_of(map_of(c), l);
        x0 = CLAMP(layout_overview_x(l, v->area.from_ns), l->left, l->overview_right);
        x1 = CLAMP(layout_overview_x(l, v->area.to_ns), x0, l->overview_right);
        y0 = isinf(v->area.longest_ns) ? s.top : heat_scale_y(&s, heat_row_of_ns(v->area.longest_ns));
        y1 = isinf(v->area.shortest_ns) ? s.bottom : heat_scale_y(&s, heat_row_of_ns(v->area.shortest_ns));
        y0 = CLAMP(y0, s.top, s.bottom);
        y1 = CLAMP(y1, y0, s.bottom);
    }
    cairo_rectangle(c->cr, floor(x0) + 0.5, floor(y0) + 0.5, floor(x1) - floor(x0), floor(y1) - floor(y0));
    palette_set(c->cr, palette_accent(v->dark), 0.2);
    cairo_fill_preserve(c->cr);
    palette_set(c->cr, palette_accent(v->dark), 1);
    cairo_set_line_width(c->cr, v->has_brush ? 1 : 2);
    cairo_stroke(c->cr);
}
