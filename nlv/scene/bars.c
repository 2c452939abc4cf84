/*
 * Draws the spans of records that contain durations as bars. Draws overlapping spans of points in several lanes. If
 * many spans end in the view, draws only the longest span of each column, so that the cost depends on the size of the
 * picture. Draws the thin bars of one color together, which takes a fraction of the time of single bars. To limit the
 * time, the module examines at most BEYOND_MAX spans that end after the view.
 */
#include "config.h"

#include "scene/layers.h"

#include "model/edges.h"

#include <math.h>
#include <stdlib.h>

enum {
    BARS_MAX = 3000,
    BEYOND_MAX = 500, /* maximum number of spans that the module examines beyond an edge of the view */
    LANES_MAX = 32,
    LANE_HEIGHT_MIN = 5,
};

typedef struct bar {
    int64_t begin_ns, end_ns;
    uint32_t record;
    unsigned lane;
} bar;

typedef struct bars {
    const layer_context *c;
    const pane *p;
    const list *list;
    unsigned row, layer;
    bool is_lifeline;
    bar all[BARS_MAX + 2 * BEYOND_MAX];
    size_t count;
    size_t ended; /* number of spans that end in the view */
    unsigned lanes;
    double top, pitch, height; /* top of the first lane, distance between lanes, and height of a bar */
} bars;

/* Returns the number of the color of a record's bar. */
static unsigned bar_color(const bars *b, uint32_t record)
{
    const layer_context *c = b->c;
    return b->is_lifeline ? model_object_color(c->model, b->p->index, store_object(c->store, record, b->layer))
                          : model_host_color(c->model, store_host(c->store, record));
}

static double alpha_of(const bars *b)
{
    return b->is_lifeline ? 0.4 : 0.75;
}

/* Returns whether to omit the bar of a record in a lifeline's row, because the span is already drawn as a line from its
 * start, or the record belongs to no lifeline. */
static bool is_drawn_elsewhere(const bars *b, uint32_t record)
{
    const store *s = b->c->store;
    if (!b->is_lifeline)
        return false;
    const spec_order *order = s->spec->lifelines[b->p->index].order;
    return store_object(s, record, b->layer) == STORE_NONE ||
           (order != NULL && order->begin_of[b->row] >= 0 && edges_find_begin(s, record, b->layer) != STORE_NONE);
}

static void add_bar(bars *b, size_t i)
{
    uint32_t record = list_at(b->list, i);
    int64_t time_ns = store_time(b->c->store, record), other_ns = time_ns - (int64_t)list_value(b->list, i);
    bar found = {MIN(time_ns, other_ns), MAX(time_ns, other_ns), record, 0};
    if (found.end_ns >= b->c->view->from_ns && found.begin_ns <= b->c->view->to_ns && !is_drawn_elsewhere(b, record))
        b->all[b->count++] = found;
}

/* Finds the bars of the view. Returns the number of spans that end in the view. */
static size_t find_bars(bars *b)
{
    const layer_context *c = b->c;
    size_t from = list_find(b->list, c->from, b->list->start), to = list_find(b->list, c->to, from), at = from;
    for (size_t i = from; i > b->list->start && from - i < BEYOND_MAX; i--)
        add_bar(b, i - 1);
    for (size_t i = to; i < b->list->count && i - to < BEYOND_MAX; i++)
        add_bar(b, i);
    if (to - from <= BARS_MAX) {
        for (size_t i = from; i < to; i++)
            add_bar(b, i);
        return to - from;
    }
    /* a bar has at least the width of a unit */
    const unsigned columns = MIN(MIN(c->column_count, (unsigned)(c->layout->right - c->layout->left)), BARS_MAX);
    for (unsigned i = 0; i < columns; i++) {
        size_t end = list_find(b->list, c->columns[(size_t)(i + 1) * c->column_count / columns], at);
        if (end > at)
            add_bar(b, list_find_extremes(b->list, at, end, NULL, NULL).max_at);
        at = end;
    }
    return to - from;
}

static int by_begin(const void *a, const void *b)
{
    const bar *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/*
 * Assigns a free lane to each bar. If no lane is free, assigns the lane that becomes free first. Returns the number of
 * lanes.
 */
static unsigned place_in_lanes(bars *b, unsigned lanes_max)
{
    int64_t free_ns[LANES_MAX] = {0};
    unsigned lanes = 0;
    qsort(b->all, b->count, sizeof *b->all, by_begin);
    for (size_t i = 0; i < b->count; i++) {
        unsigned lane = 0, earliest = 0;
        for (; lane < lanes && free_ns[lane] > b->all[i].begin_ns; lane++)
            earliest = free_ns[lane] < free_ns[earliest] ? lane : earliest;
        if (lane == lanes_max)
            lane = earliest;
        lanes = MAX(lanes, lane + 1);
        b->all[i].lane = lane;
        free_ns[lane] = b->all[i].end_ns;
    }
    return lanes;
}

static void draw_single(const bars *b, const bar *one)
{
    const layer_context *c = b->c;
    double left = MAX(layout_x(c->layout, c->view, one->begin_ns), c->layout->left - 2),
           right = MIN(layout_x(c->layout, c->view, one->end_ns), c->layout->right + 2);
    palette_set(c->cr, palette_series(bar_color(b, one->record), c->view->dark), alpha_of(b));
    cairo_rectangle(c->cr, left, b->top + one->lane * b->pitch, MAX(right - left, 1), b->height);
    cairo_fill(c->cr);
}

/* Sets a color that looks like the color of a transparent bar, or of two bars that overlap, in a pane. Opaque colors
 * take less time to fill. */
static void set_opaque(const bars *b, unsigned number, bool overlaps)
{
    const layer_context *c = b->c;
    const color ink = palette_series(number, c->view->dark), pane = palette_pane(c->view->dark);
    const double alpha = alpha_of(b), share = overlaps ? 1 - (1 - alpha) * (1 - alpha) : alpha;
    palette_set(c->cr,
                (color){pane.red + share * (ink.red - pane.red), pane.green + share * (ink.green - pane.green),
                        pane.blue + share * (ink.blue - pane.blue)},
                1);
}

/* The thin bars of a column of a lane. */
typedef struct bar_cell {
    unsigned color; /* number of the color of the last bar */
    uint8_t count;  /* number of bars, at most 2 */
} bar_cell;

/* Adjacent columns of a lane with equal cells. */
typedef struct bar_run {
    bar_cell cell;
    unsigned lane, first, end;
} bar_run;

static gint by_color(gconstpointer a, gconstpointer b)
{
    const bar_cell *x = &((const bar_run *)a)->cell, *y = &((const bar_run *)b)->cell;
    return x->color != y->color ? (x->color > y->color) - (x->color < y->color) : x->count - y->count;
}

/* Draws the bars that are thinner than about a pixel, at whole pixels. A column has the color of its last bar. */
static void draw_thin(const bars *b, double thin_ns)
{
    const layer_context *c = b->c;
    const double unit = MAX(1, 1 / c->scale), pixel = 1 / c->scale; /* width of a column, and of a pixel */
    const unsigned columns = (unsigned)((c->layout->right - c->layout->left) / unit) + 1;
    bar_cell *cells = g_new0(bar_cell, (size_t)columns * b->lanes);
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(bar_run));
    for (size_t i = 0; i < b->count; i++) {
        const bar *one = &b->all[i];
        const double x = layout_x(c->layout, c->view, one->begin_ns) - c->layout->left;
        if ((double)(one->end_ns - one->begin_ns) >= thin_ns || x < 0 || x / unit >= columns)
            continue;
        bar_cell *cell = &cells[one->lane * columns + (unsigned)(x / unit)];
        *cell = (bar_cell){bar_color(b, one->record), (uint8_t)MIN(cell->count + 1, 2)};
    }
    for (unsigned lane = 0; lane < b->lanes; lane++)
        for (unsigned at = 0, end; at < columns; at = end) {
            const bar_cell *own = cells + (size_t)lane * columns, cell = own[at];
            for (end = at + 1; end < columns && own[end].color == cell.color && own[end].count == cell.count; end++)
                ;
            const bar_run run = {cell, lane, at, end};
            if (cell.count > 0)
                g_array_append_val(runs, run);
        }
    g_array_sort(runs, by_color);
    for (guint i = 0; i < runs->len; i++) {
        const bar_run *run = &g_array_index(runs, bar_run, i);
        const double top = round((b->top + run->lane * b->pitch) * c->scale) * pixel,
                     left = floor((c->layout->left + run->first * unit) * c->scale) * pixel;
        cairo_rectangle(c->cr, left, top, (run->end - run->first) * unit,
                        MAX(round(b->height * c->scale) * pixel, pixel));
        if (i + 1 < runs->len && by_color(run, run + 1) == 0)
            continue;
        set_opaque(b, run->cell.color, run->cell.count > 1);
        cairo_fill(c->cr);
    }
    g_array_free(runs, TRUE);
    g_free(cells);
}

static void draw_all(const bars *b)
{
    const layer_context *c = b->c;
    const double thin_ns =
        c->is_raster ? 1.5 * (double)(c->view->to_ns - c->view->from_ns) / (c->layout->right - c->layout->left) : 0;
    bool any = false;
    for (size_t i = 0; i < b->count && !any; i++)
        any = (double)(b->all[i].end_ns - b->all[i].begin_ns) < thin_ns;
    if (any)
        draw_thin(b, thin_ns);
    for (size_t i = 0; i < b->count; i++)
        if ((double)(b->all[i].end_ns - b->all[i].begin_ns) >= thin_ns)
            draw_single(b, &b->all[i]);
}

/* Returns the height of a bar in a lifeline, in units. */
static double lifeline_bar_height(const pane *p)
{
    return CLAMP((p->bottom - p->top) / p->rows * 0.8, 2, 14);
}

double bars_height(const layer_context *c, const pane *p, uint16_t event)
{
    return store_durations(c->store, event) != NULL ? lifeline_bar_height(p) : 0;
}

/* Returns the bars of an event's spans in a row, or NULL if the event has no spans. The caller frees them with g_free.
 */
static bars *bars_place(const layer_context *c, const pane *p, unsigned row, uint16_t event)
{
    const list *durations = store_durations(c->store, event);
    if (durations == NULL)
        return NULL;
    bars *b = g_new(bars, 1);
    b->c = c;
    b->p = p;
    b->list = durations;
    b->row = row;
    b->is_lifeline = p->kind == PANE_LIFELINES;
    b->layer = b->is_lifeline ? c->store->spec->lifelines[p->index].layer : 0;
    b->count = 0;
    b->ended = find_bars(b);
    double space = (p->bottom - p->top) / p->rows * 0.8;
    b->lanes = 1;
    b->pitch = lifeline_bar_height(p);
    if (!b->is_lifeline) {
        b->lanes = place_in_lanes(b, (unsigned)CLAMP(space / LANE_HEIGHT_MIN, 1, LANES_MAX));
        b->pitch = MIN(space / b->lanes, 14);
    }
    b->top = layout_row_y(p, row) - b->lanes * b->pitch / 2;
    b->height = b->lanes > 1 ? b->pitch - 1 : b->pitch;
    return b;
}

/* Draws an outline around the bar of the emphasized request. */
static void outline_single(const bars *b)
{
    const layer_context *c = b->c;
    for (size_t i = 0; c->view->has_single && i < b->count; i++) {
        const bar *one = &b->all[i];
        if (store_time(c->store, one->record) != c->view->single_ns ||
            store_place(c->store, one->record) != c->view->single_place)
            continue;
        const double left = MAX(layout_x(c->layout, c->view, one->begin_ns), c->layout->left - 2),
                     right = MIN(layout_x(c->layout, c->view, one->end_ns), c->layout->right + 2);
        palette_set(c->cr, palette_text(c->view->dark), 1);
        cairo_set_line_width(c->cr, 2);
        cairo_rectangle(c->cr, left - 2, b->top + one->lane * b->pitch - 2, MAX(right - left, 1) + 4, b->height + 4);
        cairo_stroke(c->cr);
    }
}

size_t bars_draw(const layer_context *c, const pane *p, unsigned row, uint16_t event)
{
    bars *b = bars_place(c, p, row, event);
    if (b == NULL)
        return 0;
    draw_all(b);
    outline_single(b);
    const size_t ended = b->ended;
    g_free(b);
    return ended;
}

void bars_find(const layer_context *c, const pane *p, unsigned row, uint16_t event, double x, double y,
               scene_found *found)
{
    bars *b = bars_place(c, p, row, event);
    for (size_t i = 0; b != NULL && i < b->count; i++) {
        const bar *one = &b->all[i];
        const double left = layout_x(c->layout, c->view, one->begin_ns),
                     right = layout_x(c->layout, c->view, one->end_ns), top = b->top + one->lane * b->pitch,
                     dx = MAX(MAX(left - x, x - right), 0), dy = MAX(MAX(top - y, y - top - b->height), 0);
        if (hypot(dx, dy) < found->distance)
            *found = (scene_found){hypot(dx, dy), one->record, -1, 0};
    }
    g_free(b);
}
