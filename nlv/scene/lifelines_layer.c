/*
 * Lifelines: draws the edges of each request as lines, with a row for each event. Draws a few lifelines as lines with
 * marks, along the edges of each request's graph (request_lines.h). For many lifelines, uses the edges that the order
 * of rows implies (edges.h). In each column of the plot, the module then draws the shortest segment, the longest
 * segment and a sample of the other segments of each kind (density.h). The cost therefore depends on the size of the
 * picture, not on the size of the log. Draws impossible edges in red, in front.
 */
#include "config.h"

#include "scene/layers.h"

#include "model/checks.h"
#include "model/edges.h"
#include "model/request_lines.h"
#include "model/slow.h"
#include "scene/beside.h"
#include "scene/density.h"
#include "scene/text.h"

#include <math.h>
#include <stdatomic.h>

enum {
    LINES_ON_PIXELS = 400, /* maximum number of visible segments to draw as lines in a picture of pixels */
    LINES_ON_PAPER = 6000,
    MATCHES_DRAWN = 400, /* maximum number of found requests that the layer draws */
    GRAPHS_MAX = 2000,   /* maximum number of visible segments, and of visible first steps, for drawing along graphs */
    STEPS_MAX = 50000,   /* maximum total number of steps of the requests, for drawing along graphs */
    GRAPHS_ON_PIXELS = 150, /* maximum number of visible segments to draw along graphs with cairo */
    DASHED_MAX = 500,       /* with at most this number of segments, inferred lines are dashed, not pale */
    MARKS_UP_TO = 1200,     /* maximum number of segments that the layer draws with marks */
    BETWEEN = 2,            /* number of segments that the layer draws in a column besides the extremes */
    REACHING_MAX = 500,     /* maximum number of drawn segments of a kind that cross the right edge */
    WORK_MAX = 190000,      /* maximum total length of the lines of a frame, in units */
    FIND_MAX = 2000, /* maximum number of segments of a kind among which the search for the nearest segment chooses */
};

void lifelines_layer_back(const layer_context *c, const pane *p)
{
    const drawing_lifeline *definition = g_ptr_array_index(model_drawing(c->model)->lifelines, p->index);
    layer_pane(c, p);
    for (unsigned row = 0; row < p->rows; row++)
        layer_row(c, p, row, definition->events[row]);
}

/* One kind of segment: the segments between two rows. */
typedef struct kind {
    const list *list;
    unsigned from, to; /* rows */
    bool is_violation;
    bool is_inferred;  /* most of these lines are inferred: they are paler */
    size_t first, end; /* entries that end within the plot */
} kind;

typedef struct drawer {
    const layer_context *c;
    const pane *p;
    unsigned layer;
    GArray *kinds; /* kind */
    size_t visible;
    double pixel_ns;    /* nanoseconds per pixel */
    density *density;   /* NULL: draw vectors */
    double top, bottom; /* the area to draw in: the pane, or a band of it */
} drawer;

static void add_kinds(drawer *d, list *const *lists, unsigned rows, bool are_violations)
{
    for (unsigned from = 0; from < rows && lists != NULL; from++)
        for (unsigned to = 0; to < rows; to++) {
            const list *segments = lists[from * rows + to];
            if (segments == NULL || segments->count == segments->start)
                continue;
            kind k = {.list = segments,
                      .from = from,
                      .to = to,
                      .is_violation = are_violations,
                      .first = list_find(segments, d->c->from, segments->start)};
            k.end = list_find(segments, d->c->to, k.first);
            d->visible += k.end - k.first;
            g_array_append_val(d->kinds, k);
        }
}

/* Finds the kinds whose lines are usually inferred. */
static void find_inferred(drawer *d)
{
    for (guint i = 0; i < d->kinds->len; i++) {
        kind *k = &g_array_index(d->kinds, kind, i);
        k->is_inferred = !k->is_violation && request_lines_usually_inferred(d->c->model, d->p->index, k->from, k->to);
    }
}

static void find_kinds(drawer *d)
{
    const lifeline_lists *l = &d->c->store->lifelines[d->p->index];
    add_kinds(d, l->segments, l->rows, false);
    add_kinds(d, l->violations, l->rows, true);
}

static unsigned color_of(const drawer *d, uint32_t record)
{
    return model_object_color(d->c->model, d->p->index, store_object(d->c->store, record, d->layer));
}

/* Returns the x coordinate at which an entry begins. The list contains the duration as a float. If a float is too
 * imprecise for a long segment, looks up the record at which the segment begins. */
static double start_x(const drawer *d, const kind *k, size_t i)
{
    const double relative_error = 1.2e-7;
    const layer_context *c = d->c;
    uint32_t end = list_at(k->list, i);
    float long_ns = list_value(k->list, i);
    if ((double)long_ns * relative_error * 4 > d->pixel_ns) {
        uint32_t start = edges_find_start(c->store, end, d->layer, k->from, long_ns);
        if (start != STORE_NONE)
            return layer_x(c, start);
    }
    return layout_x(c->layout, c->view, store_time(c->store, end) - (int64_t)long_ns);
}

/* Returns the weight of a line in a picture of many lines. */
static float weight_of(const kind *k)
{
    const float pale = 0.25F;
    return k->is_inferred ? pale : 1;
}

static void draw_segment(const drawer *d, const kind *k, size_t i)
{
    const layer_context *c = d->c;
    uint32_t end = list_at(k->list, i);
    double x0 = start_x(d, k, i), x1 = layer_x(c, end);
    double y0 = layout_row_y(d->p, k->from), y1 = layout_row_y(d->p, k->to);
    if (d->density == NULL) {
        palette_set(c->cr, k->is_violation ? palette_alarm() : palette_series(color_of(d, end), c->view->dark),
                    k->is_inferred ? 0.4 : 0.85);
        cairo_move_to(c->cr, x0, y0);
        cairo_line_to(c->cr, x1, y1);
        cairo_stroke(c->cr);
    } else if (k->is_violation) {
        density_line_on_top(d->density, x0, y0, x1, y1, DENSITY_ALARM);
    } else {
        density_line(d->density, x0, y0, x1, y1, weight_of(k), color_of(d, end) % DENSITY_COLORS);
    }
}

static int ink_of_name(const drawer *d, uint16_t name)
{
    return name == LIST_COLOR_MIXED ? DENSITY_MIXED
                                    : (int)(model_name_color(d->c->model, d->p->index, name) % DENSITY_COLORS);
}

/*
 * Returns the color of most segments of a column, from the list's nodes or from a sample in the middle of the column.
 * Returns DENSITY_MIXED if no color prevails. `grain` is the number of entries per node.
 */
static int prevailing(const drawer *d, const kind *k, size_t from, size_t count, size_t grain)
{
    enum { ASKED = 5 };
    int colors[ASKED];
    size_t nodes = (count + grain - 1) / grain, asked = MIN(ASKED, nodes);
    for (unsigned i = 0; i < ASKED; i++) {
        size_t at = from + ((nodes - asked) / 2 + i % asked) * grain;
        uint16_t known = grain > 1 ? list_node_of(k->list, at, grain)->color : LIST_COLOR_UNKNOWN;
        colors[i] = known != LIST_COLOR_UNKNOWN ? ink_of_name(d, known)
                                                : (int)(color_of(d, list_at(k->list, at)) % DENSITY_COLORS);
    }
    for (unsigned i = 0; i < ASKED; i++) {
        unsigned same = 0;
        for (unsigned j = 0; j < ASKED; j++)
            same += colors[j] == colors[i];
        if (2 * same > ASKED + 1)
            return colors[i];
    }
    return DENSITY_MIXED;
}

/* Draws one of a column's many segments. The caller passes the position of the segment's end, exact to one pixel, and
 * the duration from the list, so the function does not access distant memory. */
static void draw_quickly(const drawer *d, const kind *k, double x, double long_ns, float weight, int ink)
{
    double x0 = x - MIN(long_ns / d->pixel_ns / d->c->scale, 1e6);
    double y0 = layout_row_y(d->p, k->from), y1 = layout_row_y(d->p, k->to);
    if (k->is_violation)
        density_line_on_top(d->density, x0, y0, x, y1, DENSITY_ALARM);
    else
        density_line(d->density, x0, y0, x, y1, weight * weight_of(k), (unsigned)ink);
}

/* Returns the duration of an entry in nanoseconds. If `grain` is more than 1, returns the duration of a nearby entry,
 * which the node has stored. */
static double long_ns_at(const kind *k, size_t i, size_t grain)
{
    return grain > 1 ? list_node_of(k->list, i, grain)->sample : list_value(k->list, i);
}

/* A column of the plot, and the segments that end in the column. */
typedef struct segment_column {
    double x, width;
    size_t from, to, grain;
    int ink; /* the color of most of these segments */
} segment_column;

/* Returns the x coordinate of an entry's end. If s->grain is more than 1, interpolates within the column. */
static double column_x(const drawer *d, const kind *k, const segment_column *s, size_t i)
{
    if (s->grain == 1)
        return layer_x(d->c, list_at(k->list, i));
    double share = ((double)i - (double)s->from) / (double)(s->to - s->from);
    return s->x + CLAMP(share, 0, 1) * s->width;
}

/* Returns the color of an entry that represents other entries. Uses the entry's own color if no color prevails
 * and the entry is in nearby memory. */
static int column_ink(const drawer *d, const kind *k, const segment_column *s, size_t i)
{
    if (s->ink != DENSITY_MIXED || s->grain > 1)
        return s->ink;
    return (int)(color_of(d, list_at(k->list, i)) % DENSITY_COLORS);
}

/* Draws all segments of a column. If there are many segments, draws the shortest segment, the longest segment and a
 * sample. */
static void draw_column(const drawer *d, const kind *k, segment_column s)
{
    size_t from = s.from, to = s.to, count = to - from;
    if (count <= BETWEEN + 2) {
        for (size_t i = from; i < to; i++)
            draw_segment(d, k, i);
        return;
    }
    s.ink = prevailing(d, k, from, count, s.grain);
    list_extremes e = list_find_extremes(k->list, from, to, NULL, NULL);
    if (e.sum / (double)e.count < d->pixel_ns) { /* nearly all segments are steep and overlap */
        draw_quickly(d, k, s.x + s.width / 2, 0, (float)count, s.ink);
    } else {
        for (size_t i = 0; i < BETWEEN; i++) {
            size_t at = from + (2 * i + 1) * count / (2 * BETWEEN);
            draw_quickly(d, k, column_x(d, k, &s, at), long_ns_at(k, at, s.grain), (float)(count - 2) / (float)BETWEEN,
                         column_ink(d, k, &s, at));
        }
        draw_quickly(d, k, column_x(d, k, &s, e.min_at), e.min, 1, column_ink(d, k, &s, e.min_at));
    }
    if (e.max >= d->pixel_ns)
        draw_quickly(d, k, column_x(d, k, &s, e.max_at), e.max, 1,
                     e.max_color != LIST_COLOR_UNKNOWN
                         ? ink_of_name(d, e.max_color)
                         : (int)(color_of(d, list_at(k->list, e.max_at)) % DENSITY_COLORS));
}

/* Returns the mean width of a kind's segments in units, from a sample. */
static double width_of(const drawer *d, const kind *k)
{
    const layer_context *c = d->c;
    double width = c->layout->right - c->layout->left, sum = 0;
    double per_ns = width / (double)(c->view->to_ns - c->view->from_ns);
    enum { LOOKED_AT = 16 };
    size_t grain = list_grain(k->end - k->first, c->column_count);
    for (size_t i = 0; i < LOOKED_AT; i++) {
        size_t at = k->first + i * (k->end - k->first) / LOOKED_AT;
        double long_ns = long_ns_at(k, at, grain);
        sum += MIN(long_ns * per_ns, width);
    }
    return sum / LOOKED_AT;
}

/* Draws the segments that end within the plot. */
static void draw_kind(const drawer *d, const kind *k)
{
    const layer_context *c = d->c;
    size_t count = k->end - k->first;
    if (count == 0)
        return;
    double width = width_of(d, k), height = fabs(layout_row_y(d->p, k->from) - layout_row_y(d->p, k->to));
    double lines = WORK_MAX / (double)MAX(d->kinds->len, 1) / MAX(MAX(width, height), 1);
    if (d->density == NULL || (double)count <= lines) {
        for (size_t i = k->first; i < k->end; i++)
            draw_segment(d, k, i);
        return;
    }
    /* skip columns only if segments slant, because a steep segment stays within its column and skipped columns would be
     * visible */
    double wanted = width * c->scale < 1 ? 0 : c->column_count * (BETWEEN + 2) / lines;
    unsigned step = (unsigned)CLAMP(ceil(wanted), 1, MAX(c->column_count / 8, 1));
    size_t from = k->first, grain = list_grain(count, c->column_count);
    double unit = (c->layout->right - c->layout->left) / c->column_count;
    for (unsigned column = 0; column < c->column_count; column += step) {
        bool is_last = column + step >= c->column_count;
        size_t to = is_last ? k->end : list_find_near(k->list, c->columns[column + step], from, grain);
        to = MIN(to, k->end);
        if (to > from)
            draw_column(d, k, (segment_column){c->layout->left + column * unit, step * unit, from, to, grain, 0});
        from = to;
    }
}

typedef void each_segment(const drawer *d, const kind *k, size_t i, void *user);

/* Calls `take` for at most REACHING_MAX segments that begin before the right edge and end beyond this edge. Finds these
 * segments by their durations. */
static void each_reaching(const drawer *d, const kind *k, each_segment *take, void *user)
{
    const store *s = d->c->store;
    const list *l = k->list;
    int64_t to_ns = d->c->view->to_ns;
    unsigned drawn = 0;
    for (size_t i = k->end; i < l->count && drawn < REACHING_MAX;) {
        double beyond_ns = (double)(store_time(s, list_at(l, i)) - to_ns);
        if (list_max(l) < beyond_ns)
            return;
        if (i % LIST_BLOCK == 0 && l->tops[i / LIST_BLOCK].max < beyond_ns) {
            i += LIST_BLOCK;
        } else if (i % LIST_NODE == 0 && l->blocks[i / LIST_BLOCK].nodes[i % LIST_BLOCK / LIST_NODE].max < beyond_ns) {
            i += LIST_NODE;
        } else {
            if (list_value(l, i) > beyond_ns) {
                take(d, k, i, user);
                drawn++;
            }
            i++;
        }
    }
}

static void draw_reaching_segment(const drawer *d, const kind *k, size_t i, void *user)
{
    (void)user;
    draw_segment(d, k, i);
}

/* Draws a dot where an object begins, so that an object with only one step is visible. */
static void draw_starts(const drawer *d)
{
    const layer_context *c = d->c;
    const lifeline_lists *l = &c->store->lifelines[d->p->index];
    for (unsigned row = 0; row < l->rows; row++) {
        const list *starts = l->starts[row];
        if (starts == NULL || starts->count == starts->start)
            continue;
        double y = layout_row_y(d->p, row), half = d->density != NULL ? 1.5 : 2;
        if (y + half <= d->top || y - half >= d->bottom)
            continue;
        size_t from = list_find(starts, c->from, starts->start);
        size_t grain = list_grain(list_find(starts, c->to, from) - from, c->column_count);
        double unit = (c->layout->right - c->layout->left) / c->column_count;
        for (unsigned column = 0; column < c->column_count; column++) {
            size_t to = list_find_near(starts, c->columns[column + 1], from, grain);
            if (to > from && d->density != NULL) {
                double x = to - from > 3 ? c->layout->left + (column + 0.5) * unit : layer_x(c, list_at(starts, from));
                density_line(d->density, x, y - half, x, y + half, (float)(to - from),
                             to - from > 3 ? DENSITY_MIXED : color_of(d, list_at(starts, from)) % DENSITY_COLORS);
            }
            for (size_t i = from; i < to && d->density == NULL; i++) {
                palette_set(c->cr, palette_series(color_of(d, list_at(starts, i)), c->view->dark), 0.85);
                cairo_arc(c->cr, layer_x(c, list_at(starts, i)), y, half, 0, 2 * G_PI);
                cairo_fill(c->cr);
            }
            from = to;
        }
    }
}

static void draw_marks(const drawer *d)
{
    const layer_context *c = d->c;
    for (guint i = 0; i < d->kinds->len; i++) {
        const kind *k = &g_array_index(d->kinds, kind, i);
        for (size_t at = k->first; at < k->end; at++) {
            uint32_t record = list_at(k->list, at);
            palette_set(c->cr, palette_series(color_of(d, record), c->view->dark), 0.85);
            cairo_arc(c->cr, layer_x(c, record), layout_row_y(d->p, k->to), 2, 0, 2 * G_PI);
            cairo_fill(c->cr);
        }
    }
}

static void fill_bar(const drawer *d, double left, double right, double y, double height)
{
    const layer_context *c = d->c;
    left = MAX(left, c->layout->left - 2);
    right = MIN(right, c->layout->right + 2);
    if (left >= right)
        return;
    cairo_rectangle(c->cr, left, y - height / 2, right - left, height);
    cairo_fill(c->cr);
}

/*
 * Draws the error of a record's time, if the error is wide enough to be visible. A bar covers the possible times. If
 * the logged time is outside the bar, a thin line connects the logged time and the bar.
 */
static void draw_clock_error(const drawer *d, uint32_t record, unsigned row)
{
    const layer_context *c = d->c;
    store_clock clock = store_clock_at(c->store, store_host(c->store, record), record);
    double unit = d->pixel_ns * c->scale, x = layer_x(c, record), y = layout_row_y(d->p, row);
    double left = x + clock.low_ns / unit, right = x + clock.high_ns / unit;
    if (!clock.is_known || MAX(right, x) - MIN(left, x) < 3)
        return;
    double wider = MAX(3 - (right - left), 0) / 2;
    palette_set(c->cr, palette_series(color_of(d, record), c->view->dark), 0.28);
    fill_bar(d, left - wider, right + wider, y, 7);
    palette_set(c->cr, palette_series(color_of(d, record), c->view->dark), 0.6);
    fill_bar(d, left > x ? x : right, left > x ? left : right < x ? x : right, y, 1.5);
}

static void draw_clock_errors(const drawer *d)
{
    for (guint i = 0; i < d->kinds->len; i++) {
        const kind *k = &g_array_index(d->kinds, kind, i);
        for (size_t at = k->first; at < k->end; at++)
            draw_clock_error(d, list_at(k->list, at), k->to);
    }
    const lifeline_lists *l = &d->c->store->lifelines[d->p->index];
    for (unsigned row = 0; row < l->rows; row++) {
        const list *starts = l->starts[row];
        size_t at = starts != NULL ? list_find(starts, d->c->from, starts->start) : 0, drawn = 0;
        for (; starts != NULL && at < starts->count && list_at(starts, at) < d->c->to && drawn < MARKS_UP_TO;
             at++, drawn++)
            draw_clock_error(d, list_at(starts, at), row);
    }
}

static double step_y(const drawer *d, uint32_t record)
{
    return layout_row_y(d->p, spec_step_of(d->c->store->spec, store_event(d->c->store, record), d->layer).row);
}

static void add_line(const drawer *d, const request_line *line)
{
    const layer_context *c = d->c;
    cairo_move_to(c->cr, layer_x(c, line->from), step_y(d, line->from));
    cairo_line_to(c->cr, layer_x(c, line->to), step_y(d, line->to));
}

/* ---- a few requests, along their graphs ---- */

static void add_object(const drawer *d, uint32_t record, GArray *objects)
{
    uint32_t object = store_object(d->c->store, record, d->layer);
    if (object != STORE_NONE)
        g_array_append_val(objects, object);
}

static void add_object_of_segment(const drawer *d, const kind *k, size_t i, void *user)
{
    add_object(d, list_at(k->list, i), user);
}

static gint by_object(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether the objects together have at most STEPS_MAX steps. */
static bool have_few_steps(const drawer *d, const GArray *objects)
{
    const store *s = d->c->store;
    size_t steps = 0;
    for (guint i = 0; i < objects->len && steps <= STEPS_MAX; i++) {
        uint32_t record = store_last_step(s, g_array_index(objects, uint32_t, i), d->layer);
        for (size_t own = 0; record != STORE_NONE && own <= REQUEST_LINES_STEPS_MAX; own++, steps++)
            record = store_previous(s, record, d->layer);
    }
    return steps <= STEPS_MAX;
}

/* Returns the visible objects (uint32_t) without repetitions, or NULL if there are too many objects for graphs. */
static GArray *find_few_objects(const drawer *d)
{
    const layer_context *c = d->c;
    const lifeline_lists *l = &c->store->lifelines[d->p->index];
    size_t starts = 0;
    GArray *objects = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (guint i = 0; i < d->kinds->len && d->visible <= GRAPHS_MAX; i++) {
        const kind *k = &g_array_index(d->kinds, kind, i);
        for (size_t at = k->first; at < k->end; at++)
            add_object(d, list_at(k->list, at), objects);
        each_reaching(d, k, add_object_of_segment, objects);
    }
    for (unsigned row = 0; row < l->rows && d->visible <= GRAPHS_MAX && starts <= GRAPHS_MAX; row++) {
        const list *of = l->starts[row];
        size_t at = of != NULL ? list_find(of, c->from, of->start) : 0;
        for (; of != NULL && at < of->count && list_at(of, at) < c->to && starts <= GRAPHS_MAX; at++, starts++)
            add_object(d, list_at(of, at), objects);
    }
    if (d->visible > GRAPHS_MAX || starts > GRAPHS_MAX) {
        g_array_free(objects, TRUE);
        return NULL;
    }
    g_array_sort(objects, by_object);
    guint count = 0;
    for (guint i = 0; i < objects->len; i++)
        if (i == 0 || g_array_index(objects, uint32_t, i) != g_array_index(objects, uint32_t, i - 1))
            g_array_index(objects, uint32_t, count++) = g_array_index(objects, uint32_t, i);
    g_array_set_size(objects, count);
    if (have_few_steps(d, objects))
        return objects;
    g_array_free(objects, TRUE);
    return NULL;
}

/* Adds the mark of a record to the path. */
static void add_dot(const drawer *d, uint32_t record)
{
    const layer_context *c = d->c;
    double x = layer_x(c, record);
    if (x < c->layout->left - 5 || x > c->layout->right + 5)
        return;
    cairo_new_sub_path(c->cr);
    cairo_arc(c->cr, x, step_y(d, record), 2, 0, 2 * G_PI);
}

/* The kinds of lines, in the order in which they are drawn. */
typedef enum line_kind { LINE_INFERRED, LINE_CERTAIN, LINE_IMPOSSIBLE, LINE_KINDS } line_kind;

static line_kind kind_of_line(const request_line *line)
{
    return line->is_impossible ? LINE_IMPOSSIBLE : line->is_inferred ? LINE_INFERRED : LINE_CERTAIN;
}

/* Strokes the lines of one kind of a request. Inferred lines are dashed if `has_dashes` is true. */
static void stroke_lines(const drawer *d, const request_drawn *request, line_kind kind, bool has_dashes)
{
    static const double dashes[] = {4, 3};
    bool any = false;
    for (guint i = 0; i < request->lines->len; i++) {
        const request_line *line = &g_array_index(request->lines, request_line, i);
        if (kind_of_line(line) != kind)
            continue;
        add_line(d, line);
        any = true;
    }
    if (!any)
        return;
    cairo_set_dash(d->c->cr, dashes, has_dashes && kind == LINE_INFERRED ? G_N_ELEMENTS(dashes) : 0, 0);
    cairo_stroke(d->c->cr);
    cairo_set_dash(d->c->cr, NULL, 0, 0);
}

/* Draws a line of a graph into the picture of pixels. */
static void put_line(const drawer *d, const request_line *line, unsigned ink, bool has_dashes)
{
    enum { DASH = 4, PERIOD = 7 };
    const layer_context *c = d->c;
    const float pale = 0.5F;
    const double x0 = layer_x(c, line->from), y0 = step_y(d, line->from), x1 = layer_x(c, line->to),
                 y1 = step_y(d, line->to), length = hypot(x1 - x0, y1 - y0);
    if (line->is_impossible) {
        density_line_on_top(d->density, x0, y0, x1, y1, DENSITY_ALARM);
    } else if (!line->is_inferred || !has_dashes) {
        density_line(d->density, x0, y0, x1, y1, line->is_inferred ? pale : 1, ink);
    } else {
        /* only the dashes of the visible part, because a line may be very long */
        const double share = x1 > x0 ? CLAMP((c->layout->left - x0) / (x1 - x0), 0, 1) : 0,
                     end = x1 > x0 ? length * CLAMP((c->layout->right - x0) / (x1 - x0), 0, 1) : length;
        for (double at = floor(share * length / PERIOD) * PERIOD; at < end; at += PERIOD) {
            const double from = at / length, to = MIN((at + DASH) / length, 1);
            density_line(d->density, x0 + from * (x1 - x0), y0 + from * (y1 - y0), x0 + to * (x1 - x0),
                         y0 + to * (y1 - y0), 1, ink);
        }
    }
}

/* Like draw_graphs, but draws into the picture of pixels, which takes a fraction of the time. */
static void put_graphs(const drawer *d, const GArray *objects)
{
    enum { MARK = 3 };
    const layer_context *c = d->c;
    const bool has_dashes = d->visible <= DASHED_MAX;
    density_set_line_width(d->density, 1);
    for (guint i = 0; i < objects->len; i++) {
        const uint32_t object = g_array_index(objects, uint32_t, i);
        const request_drawn *request = request_lines_find(c->model, d->p->index, object);
        const unsigned ink = model_object_color(c->model, d->p->index, object) % DENSITY_COLORS;
        for (guint j = 0; j < request->lines->len; j++)
            put_line(d, &g_array_index(request->lines, request_line, j), ink, has_dashes);
    }
    density_set_line_width(d->density, MARK);
    for (guint i = 0; i < objects->len; i++) {
        const uint32_t object = g_array_index(objects, uint32_t, i);
        const unsigned ink = model_object_color(c->model, d->p->index, object) % DENSITY_COLORS;
        for (uint32_t r = request_lines_find(c->model, d->p->index, object)->last; r != STORE_NONE;
             r = store_previous(c->store, r, d->layer)) {
            const double x = layer_x(c, r), y = step_y(d, r);
            if (x >= c->layout->left - MARK && x <= c->layout->right + MARK)
                density_line(d->density, x, y - MARK / 2.0, x, y + MARK / 2.0, 1, ink);
        }
    }
}

static void draw_graphs(const drawer *d, const GArray *objects)
{
    const layer_context *c = d->c;
    for (int impossible = 0; impossible < 2; impossible++) /* draw impossible edges in front */
        for (guint i = 0; i < objects->len; i++) {
            uint32_t object = g_array_index(objects, uint32_t, i);
            const request_drawn *request = request_lines_find(c->model, d->p->index, object);
            color ink = palette_series(model_object_color(c->model, d->p->index, object), c->view->dark);
            for (line_kind kind = LINE_INFERRED; kind < LINE_KINDS; kind++) {
                /* draw pale lines instead, because dashes of many lines would look like noise and take long to draw */
                const bool is_pale = kind == LINE_INFERRED && d->visible > DASHED_MAX;
                palette_set(c->cr, impossible ? palette_alarm() : ink, is_pale ? 0.4 : 0.85);
                if ((kind == LINE_IMPOSSIBLE) == (impossible == 1))
                    stroke_lines(d, request, kind, d->visible <= DASHED_MAX);
            }
            palette_set(c->cr, ink, 0.85);
            for (uint32_t r = request->last; r != STORE_NONE && impossible == 0;
                 r = store_previous(c->store, r, d->layer))
                add_dot(d, r);
            cairo_fill(c->cr); /* fill one path with all marks of a request, which takes a fraction of the time of
                                  single marks */
        }
}

static void draw_selected(const drawer *d)
{
    const layer_context *c = d->c;
    const scene_view *view = c->view;
    if (view->selected < 0 || view->selected_lifeline != d->p->index)
        return;
    uint32_t record = store_last_step(c->store, (uint32_t)view->selected, d->layer);
    if (record >= c->store->count)
        return;
    const request_drawn *request = request_lines_find(c->model, d->p->index, (uint32_t)view->selected);
    color ink = palette_series(model_object_color(c->model, d->p->index, (uint32_t)view->selected), view->dark);
    for (int pass = 0; pass < 2; pass++) { /* first draw a rim in the pane's color, then the lines */
        cairo_set_line_width(c->cr, pass == 0 ? 5 : 2.5);
        for (line_kind kind = LINE_INFERRED; kind < LINE_KINDS; kind++) {
            palette_set(c->cr,
                        pass == 0                 ? palette_pane(view->dark)
                        : kind == LINE_IMPOSSIBLE ? palette_alarm()
                                                  : ink,
                        1);
            stroke_lines(d, request, kind, pass == 1);
        }
    }
    palette_set(c->cr, ink, 1);
    for (uint32_t r = record; r != STORE_NONE; r = store_previous(c->store, r, d->layer)) {
        double x = layer_x(c, r);
        if (x < c->layout->left - 5 || x > c->layout->right + 5)
            continue;
        cairo_arc(c->cr, x, step_y(d, r), 3.2, 0, 2 * G_PI);
        cairo_fill(c->cr);
    }
}

/* Draws the line below the pointer in front of the other lines. */
static void draw_hovered(const drawer *d)
{
    const layer_context *c = d->c;
    const scene_view *view = c->view;
    const uint32_t record = view->hovered_record;
    if (view->hovered < 0 || view->hovered_lifeline != d->p->index || record < c->store->first ||
        record >= c->store->count || store_object(c->store, record, d->layer) != (uint32_t)view->hovered)
        return;
    const request_line *line =
        request_lines_cause(request_lines_find(c->model, d->p->index, (uint32_t)view->hovered), record);
    palette_set(c->cr, palette_series(color_of(d, record), view->dark), 1);
    cairo_set_line_width(c->cr, 3);
    if (line != NULL)
        add_line(d, line);
    cairo_stroke(c->cr);
    cairo_arc(c->cr, layer_x(c, record), step_y(d, record), 4, 0, 2 * G_PI);
    cairo_fill(c->cr);
}

/* ---- the requests that a search has found ---- */

/* Returns the objects (uint32_t) of the found requests that are visible, at most MATCHES_DRAWN. */
static GArray *find_matches(const drawer *d)
{
    const layer_context *c = d->c;
    const GArray *found = model_found_requests(c->model);
    GArray *objects = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    int64_t longest_ns = 0, first_ns;
    guint low = 0, high = found != NULL ? found->len : 0;
    for (guint i = 0; i < high; i++)
        longest_ns = MAX(longest_ns, g_array_index(found, request_match, i).duration_ns);
    if (__builtin_sub_overflow(c->view->from_ns, longest_ns, &first_ns))
        first_ns = INT64_MIN;
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(found, request_match, middle).time_ns < first_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (guint i = low; found != NULL && i < found->len && objects->len < MATCHES_DRAWN; i++) {
        const request_match *m = &g_array_index(found, request_match, i);
        if (m->time_ns > c->view->to_ns)
            break;
        const uint32_t record = store_find_place(c->store, m->time_ns, m->place);
        if (m->time_ns + m->duration_ns >= c->view->from_ns && record != STORE_NONE)
            add_object(d, record, objects);
    }
    return objects;
}

/* Draws the found requests in one color, in front of the other requests, which become pale. */
static void draw_matches(const drawer *d)
{
    const layer_context *c = d->c;
    if (model_found_requests(c->model) == NULL)
        return;
    GArray *objects = find_matches(d);
    palette_set(c->cr, palette_pane(c->view->dark), 0.7);
    cairo_rectangle(c->cr, c->layout->left, d->p->top, c->layout->right - c->layout->left, d->p->bottom - d->p->top);
    cairo_fill(c->cr);
    palette_set(c->cr, palette_accent(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1.6);
    for (guint i = 0; i < objects->len; i++) {
        const request_drawn *request = request_lines_find(c->model, d->p->index, g_array_index(objects, uint32_t, i));
        for (guint j = 0; j < request->lines->len; j++)
            add_line(d, &g_array_index(request->lines, request_line, j));
        cairo_stroke(c->cr);
        for (uint32_t r = request->last; r != STORE_NONE; r = store_previous(c->store, r, d->layer))
            add_dot(d, r);
        cairo_fill(c->cr);
    }
    g_array_free(objects, TRUE);
}

/* Returns whether segments of a kind touch the drawer's area. */
static bool is_here(const drawer *d, const kind *k)
{
    enum { LINE = 2 };
    double from = layout_row_y(d->p, k->from), to = layout_row_y(d->p, k->to);
    return MAX(from, to) + LINE > d->top && MIN(from, to) - LINE < d->bottom;
}

static void draw_kinds(const drawer *d)
{
    for (int violations = 0; violations < 2; violations++)
        for (guint i = 0; i < d->kinds->len; i++) {
            const kind *k = &g_array_index(d->kinds, kind, i);
            if (k->is_violation != (violations == 1) || !is_here(d, k))
                continue;
            draw_kind(d, k);
            each_reaching(d, k, draw_reaching_segment, NULL);
        }
    draw_starts(d);
}

/* The number of horizontal bands of the pane. A thread draws each band. More than two bands would not help, because
 * every thread must look up the segments that cross the borders of its band. */
enum { BANDS = 2 };
typedef struct bands {
    drawer drawers[BANDS];
    int count;
    atomic_int next;
} bands;

static void draw_bands(void *user)
{
    bands *b = user;
    for (int i; (i = b->next++) < b->count;)
        draw_kinds(&b->drawers[i]);
}

static void draw_in_bands(const drawer *d)
{
    const pane *p = d->p;
    bands b = {.count = (int)CLAMP(p->rows, 2, BANDS + 1) - 1};
    double bottom = p->bottom;
    for (int i = 0; i < b.count; i++) {
        drawer *band = &b.drawers[i];
        *band = *d;
        band->bottom = bottom;
        bottom = i + 1 < b.count ? layout_row_y(p, (unsigned)(i + 1) * (p->rows - 1) / (unsigned)b.count) : p->top;
        band->top = bottom;
        band->density = density_band(d->density, band->top, band->bottom);
    }
    beside_run(draw_bands, &b);
    for (int i = 0; i < b.count; i++)
        density_join(b.drawers[i].density);
}

static drawer drawer_of(const layer_context *c, const pane *p)
{
    double pixels = (c->layout->right - c->layout->left) * c->scale;
    return (drawer){.c = c,
                    .p = p,
                    .layer = c->store->spec->lifelines[p->index].layer,
                    .pixel_ns = (double)(c->view->to_ns - c->view->from_ns) / pixels,
                    .top = p->top,
                    .bottom = p->bottom,
                    .kinds = g_array_new(FALSE, FALSE, sizeof(kind))};
}

void lifelines_layer_draw(const layer_context *c, const pane *p)
{
    drawer d = drawer_of(c, p);
    find_kinds(&d);
    const drawing_lifeline *definition = g_ptr_array_index(model_drawing(c->model)->lifelines, p->index);
    for (unsigned row = 0; row < p->rows; row++)
        bars_draw(c, p, row, names_find(c->store->names.events, definition->events[row]));
    GArray *objects = find_few_objects(&d);
    if (objects == NULL)
        find_inferred(&d);
    if (d.visible > (!c->is_raster ? LINES_ON_PAPER : objects != NULL ? GRAPHS_ON_PIXELS : LINES_ON_PIXELS))
        d.density = density_new(c->layout->left, p->top, c->layout->right, p->bottom, c->is_raster ? c->scale : 2);
    cairo_set_line_width(c->cr, 1.1);
    cairo_set_line_cap(c->cr, CAIRO_LINE_CAP_ROUND);
    if (objects != NULL && d.density == NULL) {
        draw_graphs(&d, objects);
        draw_clock_errors(&d);
    } else if (d.density != NULL) {
        density_set_line_width(d.density, 1);
        if (objects != NULL)
            put_graphs(&d, objects);
        else
            draw_in_bands(&d);
        density_paint(d.density, c->cr, c->view->dark, 0);
        density_free(d.density);
        if (objects != NULL)
            draw_clock_errors(&d);
    } else {
        draw_kinds(&d);
        if (d.visible <= MARKS_UP_TO) {
            draw_clock_errors(&d);
            draw_marks(&d);
        }
    }
    if (objects != NULL)
        g_array_free(objects, TRUE);
    draw_matches(&d);
    draw_selected(&d);
    draw_hovered(&d);
    cairo_set_line_cap(c->cr, CAIRO_LINE_CAP_BUTT);
    g_array_free(d.kinds, TRUE);
}

/* Returns the text about a line: its duration, events and host. The caller frees it with g_free. */
static char *slowest_text(const layer_context *c, const slow_line *slow, unsigned from, unsigned to)
{
    const drawing_lifeline *definition = g_ptr_array_index(model_drawing(c->model)->lifelines, slow->lifeline);
    const bool is_bar = slow->from == slow->to;
    const double long_ns = is_bar ? store_duration(c->store, slow->to)
                                  : (double)(store_time(c->store, slow->to) - store_time(c->store, slow->from));
    char *took = checks_time_text(long_ns), *host = slow_hosts(c->model, slow);
    char *text =
        g_strdup_printf("%s, the longest in view: %s%s%s%s%s", took, definition->events[from], from == to ? "" : " → ",
                        is_bar       ? ""
                        : from == to ? " again"
                                     : definition->events[to],
                        *host != '\0' ? ", " : "", host);
    g_free(host);
    g_free(took);
    return text;
}

/*
 * Returns the middle of a text about a line whose middle is at line_y. If possible, places the text above the first row
 * or below the last row, where the text covers no lines and may extend into the gap beside the pane. `half` is half the
 * height of the text. Sets *is_free to whether the text covers no lines.
 */
static double place_text(const layer_context *c, const pane *p, double line_y, double half, bool *is_free)
{
    enum { GAP = 10, MARK = 3 };
    const drawing_lifeline *definition = g_ptr_array_index(model_drawing(c->model)->lifelines, p->index);
    double edges[] = {layout_row_y(p, p->rows - 1), layout_row_y(p, 0)}, best = -1;
    for (int below = 0; below < 2; below++) {
        const unsigned row = below ? 0 : p->rows - 1;
        const double mark = bars_height(c, p, names_find(c->store->names.events, definition->events[row])) / 2 + MARK,
                     outer = below ? p->bottom + GAP - half : p->top - GAP + half,
                     inner = below ? edges[1] + mark + half : edges[0] - mark - half;
        if ((below ? outer < inner : outer > inner))
            continue;
        const double y = (outer + inner) / 2;
        best = best < 0 || fabs(y - line_y) < fabs(best - line_y) ? y : best;
    }
    *is_free = best >= 0;
    return best;
}

/* Draws a line in front of all other lines. Writes the line's events, host and duration, with a sample of the line. The
 * text is above or below all lines or, if there is no space, directly above the line. */
static void name_line(const layer_context *c, const pane *p, const slow_line *slow)
{
    enum { SAMPLE = 22 };
    unsigned layer = c->store->spec->lifelines[slow->lifeline].layer;
    unsigned from = spec_step_of(c->store->spec, store_event(c->store, slow->from), layer).row,
             to = spec_step_of(c->store->spec, store_event(c->store, slow->to), layer).row;
    const double bar_ns = slow->from == slow->to ? store_duration(c->store, slow->to) : 0;
    double x0 = layout_x(c->layout, c->view, store_time(c->store, slow->from) - (int64_t)bar_ns),
           y0 = layout_row_y(p, from), x1 = layer_x(c, slow->to), y1 = layout_row_y(p, to);
    char *text = slowest_text(c, slow, from, to);
    double width = MIN(text_width(c->cr, text, TEXT_NORMAL) + SAMPLE + 10, c->layout->right - c->layout->left);
    double half = text_height(TEXT_NORMAL) / 2;
    double x = CLAMP((x0 + x1) / 2 - width / 2, c->layout->left, c->layout->right - width);
    bool is_free;
    double y = place_text(c, p, (y0 + y1) / 2, half, &is_free), top, bottom;
    if (!layout_visible(c->layout, p, &top, &bottom) || MAX(y0, y1) < top || MIN(y0, y1) > bottom)
        return;
    const bool is_cut = (top > p->top && y - half < top) || (bottom < p->bottom && y + half > bottom);
    if (!is_free || is_cut)
        y = CLAMP(MIN(y0, y1) - half - 6, top + half, bottom - half);
    palette_set(c->cr, palette_text(c->view->dark), 1);
    cairo_save(c->cr);
    cairo_rectangle(c->cr, c->layout->left, top, c->layout->right - c->layout->left, bottom - top);
    cairo_clip(c->cr);
    cairo_set_line_width(c->cr, 3);
    cairo_move_to(c->cr, x0, y0);
    cairo_line_to(c->cr, x1, y1);
    cairo_stroke(c->cr);
    cairo_restore(c->cr);
    palette_set(c->cr, palette_pane(c->view->dark), 0.9);
    cairo_rectangle(c->cr, x, y - half, width, 2 * half);
    cairo_fill(c->cr);
    palette_set(c->cr, palette_text(c->view->dark), 1);
    cairo_rectangle(c->cr, x + 4, y - 1.5, SAMPLE - 6, 3);
    cairo_fill(c->cr);
    text_draw(c->cr, text, TEXT_NORMAL, palette_text(c->view->dark), TEXT_START, x + SAMPLE + 4, y,
              width - SAMPLE - 10);
    g_free(text);
}

void lifelines_layer_name_slowest(const layer_context *c)
{
    slow_line slow = slow_find_longest(c->model, c->view->from_ns, c->view->to_ns);
    for (unsigned i = 0; slow.is_found && !slow.is_sampled && i < c->layout->pane_count; i++)
        if (c->layout->panes[i].kind == PANE_LIFELINES && c->layout->panes[i].index == slow.lifeline)
            name_line(c, &c->layout->panes[i], &slow);
}

static void consider(scene_found *found, double distance, uint32_t record, int64_t object, size_t lifeline)
{
    if (distance >= found->distance)
        return;
    *found = (scene_found){distance, record, object, lifeline};
}

/*
 * Stores a segment in `found` if the segment is nearer to (x, y) than the previous result. Near the ends of a segment,
 * the distance counts as smaller.
 */
static void consider_line(const drawer *d, uint32_t start, double x0, double y0, uint32_t end, double x, double y,
                          scene_found *found)
{
    const layer_context *c = d->c;
    int64_t object = store_object(c->store, end, d->layer);
    double x1 = layer_x(c, end), y1 = step_y(d, end);
    if (start != STORE_NONE)
        consider(found, hypot(x - x0, y - y0), start, object, d->p->index);
    consider(found, hypot(x - x1, y - y1), end, object, d->p->index);
    double square = (x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0);
    double share = square > 0 ? CLAMP(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / square, 0, 1) : 0;
    consider(found, hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0)) + 1.5, end, object, d->p->index);
}

static void consider_segment(const drawer *d, const kind *k, size_t i, double x, double y, scene_found *found)
{
    uint32_t end = list_at(k->list, i),
             start = edges_find_start(d->c->store, end, d->layer, k->from, list_value(k->list, i));
    consider_line(d, start, start_x(d, k, i), layout_row_y(d->p, k->from), end, x, y, found);
}

static void consider_graphs(const drawer *d, const GArray *objects, double x, double y, scene_found *found)
{
    for (guint i = 0; i < objects->len; i++) {
        const request_drawn *request =
            request_lines_find(d->c->model, d->p->index, g_array_index(objects, uint32_t, i));
        for (guint j = 0; j < request->lines->len; j++) {
            const request_line *line = &g_array_index(request->lines, request_line, j);
            consider_line(d, line->from, layer_x(d->c, line->from), step_y(d, line->from), line->to, x, y, found);
        }
    }
}

void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found)
{
    drawer d = drawer_of(c, p);
    find_kinds(&d);
    GArray *objects = find_few_objects(&d);
    if (objects != NULL) {
        consider_graphs(&d, objects, x, y, found);
        g_array_free(objects, TRUE);
        d.kinds = g_array_set_size(d.kinds, 0); /* without kinds, the rest of the function considers only the starts */
    }
    int64_t reach_ns = layout_time(c->layout, c->view, x - found->distance);
    for (guint i = 0; i < d.kinds->len; i++) {
        const kind *k = &g_array_index(d.kinds, kind, i);
        double low = layout_row_y(p, k->from), high = layout_row_y(p, k->to);
        if (y > MAX(low, high) + found->distance || y < MIN(low, high) - found->distance)
            continue;
        size_t at = list_find(k->list, store_find_time(c->store, reach_ns), k->list->start);
        for (unsigned looked = 0; at < k->list->count && looked < FIND_MAX; at++, looked++) {
            uint32_t record = list_at(k->list, at);
            if ((double)(store_time(c->store, record) - layout_time(c->layout, c->view, x + found->distance)) >
                list_max(k->list))
                break;
            consider_segment(&d, k, at, x, y, found);
        }
    }
    const lifeline_lists *l = &c->store->lifelines[p->index];
    for (unsigned row = 0; row < l->rows; row++) {
        double dy = fabs(layout_row_y(p, row) - y);
        if (l->starts[row] == NULL || dy > found->distance)
            continue;
        size_t at = list_find(l->starts[row], store_find_time(c->store, reach_ns), l->starts[row]->start);
        for (unsigned looked = 0; at < l->starts[row]->count && looked < FIND_MAX; at++, looked++) {
            uint32_t record = list_at(l->starts[row], at);
            double dx = layer_x(c, record) - x;
            if (dx > found->distance)
                break;
            consider(found, hypot(dx, dy), record, store_object(c->store, record, d.layer), p->index);
        }
    }
    g_array_free(d.kinds, TRUE);
}
