#include "config.h"

#include "scene/scene.h"

#include "base/text.h"
#include "model/checks.h"
#include "model/slow.h"
#include "model/threads.h"
#include "scene/axis.h"
#include "scene/heat_scale.h"
#include "scene/layers.h"
#include "scene/text.h"
#include "base/time_internal.h"

#include <math.h>
#include <string.h>

static const double find_distance = 9; /* maximum distance in units between the pointer and a mark */

scene_view scene_fit(const model *m, double width, double height)
{
    scene_view view = {.width = width, .height = height, .selected = -1, .hovered = -1};
    int64_t from_ns = 0, to_ns = 0;
    model_time_range(m, &from_ns, &to_ns);
    int64_t capacity = to_ns / 50 - from_ns / 50;
    capacity = capacity > 0 ? capacity : 500000; /* if all records have the same time, the view shows half a millisecond
                                                    on each side of this time */
    if (__builtin_sub_overflow(from_ns, capacity, &view.from_ns))
        view.from_ns = INT64_MIN / 2;
    if (__builtin_add_overflow(to_ns, capacity, &view.to_ns))
        view.to_ns = INT64_MAX / 2;
    return view;
}

/* If the view contains a gap that covers nearly the whole log, reduces the view to the part before or after the gap,
 * whichever the records cover more evenly. */
static void leave_gap(const store *s, scene_view *view)
{
    checks_gap gap;
    if (!checks_find_gap(s, &gap) || view->from_ns > gap.from_ns || view->to_ns < gap.to_ns)
        return;
    const int64_t first_ns = store_time(s, s->first), last_ns = store_time(s, s->count - 1);
    const int64_t length_ns = gap.is_end_busier ? last_ns - gap.to_ns : gap.from_ns - first_ns;
    const int64_t margin_ns = length_ns / 25 + NL_NS_PER_SECOND / 1000;
    view->from_ns = (gap.is_end_busier ? gap.to_ns : first_ns) - margin_ns;
    view->to_ns = (gap.is_end_busier ? last_ns : gap.from_ns) + margin_ns;
}

/* If the log has many requests, or is much longer than about 25 requests, reduces the view to about 25 requests around
 * the slowest line. */
static void show_neighbours(const model *m, const slow_line *slow, scene_view *view)
{
    enum { SHOWN = 25 };
    int64_t from_ns, to_ns;
    slow_find_neighbours(model_store(m), slow, SHOWN, &from_ns, &to_ns);
    const int64_t margin_ns = (to_ns - from_ns) / 25 + 1;
    if (slow->requests > 2 * SHOWN ||
        (double)view->to_ns - (double)view->from_ns > 3 * ((double)to_ns - (double)from_ns)) {
        view->from_ns = MAX(view->from_ns, from_ns - margin_ns);
        view->to_ns = MIN(view->to_ns, to_ns + margin_ns);
    }
}

scene_view scene_first(const model *m, double width, double height)
{
    enum { REQUESTS_MIN = 20 };
    scene_view view = scene_fit(m, width, height);
    const slow_line slow = slow_find(m, INT64_MIN, INT64_MAX);
    view.names_slowest = slow.is_found && slow.requests >= REQUESTS_MIN;
    if (view.names_slowest)
        show_neighbours(m, &slow, &view);
    leave_gap(model_store(m), &view);
    return view;
}

void scene_select(scene_view *view, const store *s, uint32_t record)
{
    view->selected = -1;
    view->has_single = record < s->count;
    for (unsigned layer = 0; view->has_single && layer < s->spec->layers; layer++) {
        const spec_step step = spec_step_of(s->spec, store_event(s, record), layer);
        const uint32_t object = store_object(s, record, layer);
        if (step.lifeline == SPEC_NONE || object == STORE_NONE)
            continue;
        view->selected = object;
        view->selected_lifeline = step.lifeline;
        view->has_single = false;
    }
    if (view->has_single) {
        view->single_ns = store_time(s, record);
        view->single_place = store_place(s, record);
    }
}

bool scene_find_selected(const scene_view *view, const store *s, size_t *lifeline, uint32_t *record)
{
    *record = STORE_NONE;
    *lifeline = view->selected >= 0 ? view->selected_lifeline : REQUEST_NO_LIFELINE;
    if (view->selected >= 0 && view->selected_lifeline < s->spec->lifeline_count)
        *record = store_last_step(s, (uint32_t)view->selected, s->spec->lifelines[view->selected_lifeline].layer);
    else if (view->has_single)
        *record = store_find_place(s, view->single_ns, view->single_place);
    return *record < s->count;
}

double layer_x(const layer_context *c, uint32_t record)
{
    return layout_x(c->layout, c->view, store_time(c->store, record));
}

void layer_pane(const layer_context *c, const pane *p)
{
    cairo_rectangle(c->cr, c->layout->left, p->top, c->layout->right - c->layout->left, p->bottom - p->top);
    palette_set(c->cr, palette_pane(c->view->dark), 1);
    cairo_fill(c->cr);
}

enum { SMALL_ROW = 11 /* minimum distance of labels in small text */ };

void layer_row(const layer_context *c, const pane *p, unsigned row, const char *label)
{
    double y = layout_row_y(p, row);
    palette_set(c->cr, palette_grid(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1);
    cairo_move_to(c->cr, c->layout->left, floor(y) + 0.5);
    cairo_line_to(c->cr, c->layout->right, floor(y) + 0.5);
    cairo_stroke(c->cr);
    /* write small labels in low rows; if rows are lower than a line of small text, label only some rows */
    const double height = (p->bottom - p->top) / p->rows;
    const text_size size = height < text_height(TEXT_NORMAL) ? TEXT_SMALL : TEXT_NORMAL;
    if (row % (unsigned)ceil((size == TEXT_SMALL ? SMALL_ROW : text_height(size)) / height) == 0)
        text_draw(c->cr, label, size, palette_text(c->view->dark), TEXT_RIGHT, c->layout->left - 8, y,
                  c->layout->left - 8 - 14);
}

static void write_time(const layer_context *c, int64_t time_ns, int64_t step_ns, char label[NL_TIME_TEXT_SIZE])
{
    const int64_t shift_ns = axis_shift_ns(c->view->clock, time_ns, c->layout->origin_ns);
    if (__builtin_add_overflow(time_ns, shift_ns, &time_ns))
        time_ns = 0;
    (c->view->clock == AXIS_RELATIVE ? axis_relative_label : axis_time_label)(time_ns, step_ns, label);
}

static void draw_time_axis(const layer_context *c)
{
    const scene_view *view = c->view;
    cairo_t *cr = c->cr;
    double plot = c->layout->right - c->layout->left;
    double max = MAX(2, floor(plot / 110)); /* number of labels that fit side by side */
    int64_t step_ns = axis_time_step_ns((int64_t)(((double)view->to_ns - (double)view->from_ns) / max));
    double top = c->layout->pane_count > 0 ? c->layout->top : c->layout->axis_y;
    /* place ticks at whole steps of the clock */
    const int64_t shift_ns = axis_shift_ns(view->clock, view->from_ns, c->layout->origin_ns);
    int64_t shifted_ns;
    if (__builtin_add_overflow(view->from_ns, shift_ns, &shifted_ns))
        return;
    for (int64_t tick_ns = axis_first_tick_ns(shifted_ns, step_ns) - shift_ns; tick_ns <= view->to_ns;) {
        double x = floor(layout_x(c->layout, view, tick_ns)) + 0.5;
        char label[NL_TIME_TEXT_SIZE];
        palette_set(cr, palette_grid(view->dark), 1);
        cairo_set_line_width(cr, 1);
        cairo_move_to(cr, x, top);
        cairo_line_to(cr, x, c->layout->axis_y);
        cairo_stroke(cr);
        write_time(c, tick_ns, step_ns, label);
        double half = text_width(cr, label, TEXT_SMALL) / 2;
        if (x - half > 0 && x + half < view->width)
            text_draw(cr, label, TEXT_SMALL, palette_text(view->dark), TEXT_CENTER, x, c->layout->axis_y + 9, 0);
        if (__builtin_add_overflow(tick_ns, step_ns, &tick_ns))
            break;
    }
}

static void draw_title(const layer_context *c)
{
    const drawing *d = model_drawing(c->model);
    const char *title = c->view->title != NULL ? c->view->title : d->title != NULL ? d->title : model_name(c->model);
    text_draw(c->cr, title, TEXT_TITLE, palette_text(c->view->dark), TEXT_LEFT, 14, 14 + text_height(TEXT_TITLE) / 2,
              c->view->width - 28);
}

/* Returns the date of the view and the clock of the axis. The caller frees the text with g_free. */
static char *clock_text(const layer_context *c)
{
    char iso[NL_TIME_TEXT_SIZE];
    if (c->view->clock == AXIS_RELATIVE) {
        nl_time_format_iso(c->layout->origin_ns, iso);
        return g_strdup_printf("since %.10s %.8s UTC", iso, iso + 11);
    }
    /* use the log's first day, even if the view begins on the previous day */
    const int64_t from_ns = MAX(c->view->from_ns, c->layout->origin_ns),
                  shift_ns = axis_shift_ns(c->view->clock, from_ns, 0), minutes = shift_ns / NL_NS_PER_SECOND / 60;
    int64_t shown_ns;
    nl_time_format_iso(__builtin_add_overflow(from_ns, shift_ns, &shown_ns) ? from_ns : shown_ns, iso);
    if (c->view->clock == AXIS_UTC)
        return g_strdup_printf("%.10s UTC", iso);
    return g_strdup_printf("%.10s UTC%c%02d:%02d", iso, minutes < 0 ? '-' : '+', abs((int)minutes) / 60,
                           abs((int)minutes) % 60);
}

static void draw_caption(const layer_context *c)
{
    char span[32], *clock = clock_text(c);
    axis_span_label((double)c->view->to_ns - (double)c->view->from_ns, span);
    const char *filter = model_filter(c->model);
    char *text = g_strdup_printf("%s   %s shown   %zu record%s   %s%s%s%s%s", clock, span, model_count(c->model),
                                 nl_plural(model_count(c->model)), model_name(c->model),
                                 model_has_right_clocks(c->model) ? "   clocks corrected" : "",
                                 model_has_right_zones(c->model) ? "   time zones corrected" : "",
                                 filter != NULL ? "   only " : "", filter != NULL ? filter : "");
    g_free(clock);
    const double right = heat_layer_legend(c, c->layout->right);
    const double width = right - c->layout->left - 10;
    if (width > 100) /* if the picture is narrower, only the legend fits */
        text_draw(c->cr, text, TEXT_SMALL, palette_muted(c->view->dark), TEXT_START, c->layout->left,
                  c->layout->caption_y, width);
    g_free(text);
    if (c->view->caption != NULL)
        text_draw_paragraph(c->cr, c->view->caption, TEXT_NORMAL, palette_text(c->view->dark), c->layout->left,
                            c->layout->caption_text_y, c->layout->right - c->layout->left);
}

/* Returns the name of a pane. The caller frees it with g_free. */
static char *pane_name(const model *m, const pane *p)
{
    const drawing *d = model_drawing(m);
    if (p->kind == PANE_LIFELINES) {
        const drawing_lifeline *l = g_ptr_array_index(d->lifelines, p->index);
        return g_strdup_printf("%s (%u events)", *l->name != '\0' ? l->name : "requests", p->rows);
    }
    if (p->kind == PANE_POINTS)
        return g_strdup_printf("other events (%u)", p->rows);
    char *name = loadlines_layer_name(g_ptr_array_index(d->loadlines, p->index));
    char *text = p->rows > 1 ? g_strdup_printf("%s (%u hosts)", name, p->rows) : g_strdup(name);
    g_free(name);
    return text;
}

/* Draws a collapsed pane: its name. */
static void draw_collapsed(const layer_context *c, const pane *p)
{
    const bool is_chosen = c->view->track != 0 && c->view->track == p->track;
    char *name = pane_name(c->model, p), *text = g_strdup_printf("\342\226\270 %s", name);
    text_draw(c->cr, text, TEXT_SMALL, is_chosen ? palette_accent(c->view->dark) : palette_muted(c->view->dark),
              TEXT_LEFT, c->layout->left, (p->top + p->bottom) / 2, c->layout->right - c->layout->left);
    g_free(text);
    g_free(name);
}

/* Limits drawing to the visible part of a pane. Returns false if it is invisible. */
static bool clip_pane(const layer_context *c, const pane *p)
{
    const double margin = 8; /* space for labels of the first and the last row */
    double top, bottom;
    if (!layout_visible(c->layout, p, &top, &bottom))
        return false;
    cairo_save(c->cr);
    cairo_rectangle(c->cr, 0, MAX(top - margin, p->is_pinned ? 0 : c->layout->scroll_top - margin), c->view->width,
                    MIN(bottom + margin, c->layout->scroll_bottom + margin) - MAX(top - margin, 0));
    cairo_clip(c->cr);
    return true;
}

static void draw_back(const layer_context *c, const pane *p)
{
    if (p->is_collapsed || !clip_pane(c, p))
        return;
    if (p->kind == PANE_LIFELINES)
        lifelines_layer_back(c, p);
    else if (p->kind == PANE_POINTS)
        points_layer_back(c, p);
    else
        layer_pane(c, p);
    if (c->view->track != 0 && c->view->track == p->track) {
        palette_set(c->cr, palette_accent(c->view->dark), 1);
        cairo_rectangle(c->cr, 2, p->top, 3, p->bottom - p->top);
        cairo_fill(c->cr);
    }
    cairo_restore(c->cr);
}

static void draw_pane(const layer_context *c, const pane *p)
{
    if (!clip_pane(c, p))
        return;
    if (p->is_collapsed) {
        draw_collapsed(c, p);
    } else if (p->kind == PANE_THREADS) {
        threads_layer_draw(c, p);
    } else if (p->kind == PANE_LOADLINE) {
        const drawing_loadline *l = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
        (l->rate ? throughput_layer_draw : loadlines_layer_draw)(c, p);
    } else {
        cairo_rectangle(c->cr, c->layout->left, p->top, c->layout->right - c->layout->left, p->bottom - p->top);
        cairo_clip(c->cr);
        (p->kind == PANE_LIFELINES ? lifelines_layer_draw : points_layer_draw)(c, p);
    }
    cairo_restore(c->cr);
}

/* Draws the line between the pinned panes and the others, and the scroll bar. */
static void draw_scroll(const layer_context *c)
{
    enum { BAR_WIDTH = 6, BAR_MIN = 16 };
    const layout *l = c->layout;
    const double height = l->scroll_bottom - l->scroll_top;
    palette_set(c->cr, palette_muted(c->view->dark), 0.6);
    if (l->pane_count > 0 && l->panes[0].is_pinned) {
        cairo_rectangle(c->cr, 4, l->scroll_top - 4, l->right - 4, 1);
        cairo_fill(c->cr);
    }
    if (l->scroll_max <= 0 || height <= 0)
        return;
    const double own = MAX(height * height / (height + l->scroll_max), BAR_MIN),
                 top = l->scroll_top + l->scroll / l->scroll_max * (height - own);
    cairo_rectangle(c->cr, c->view->width - BAR_WIDTH - 2, top, BAR_WIDTH, own);
    cairo_fill(c->cr);
}

/* Draws the marked time range with its length, and the time of a search match. */
static void draw_marked(const layer_context *c)
{
    const scene_view *view = c->view;
    const layout *l = c->layout;
    cairo_t *cr = c->cr;
    color accent = palette_accent(view->dark);
    double top = l->pane_count > 0 ? l->top - 3 : l->axis_y, height = l->axis_y - top;
    if (view->has_range) {
        int64_t from_ns = MIN(view->range_from_ns, view->range_to_ns);
        int64_t to_ns = MAX(view->range_from_ns, view->range_to_ns);
        double from = CLAMP(layout_x(l, view, from_ns), l->left, l->right);
        double to = CLAMP(layout_x(l, view, to_ns), l->left, l->right);
        palette_set(cr, accent, view->is_zooming ? 0.22 : 0.12);
        cairo_rectangle(cr, from, top, to - from, height);
        cairo_fill(cr);
        palette_set(cr, accent, 0.9);
        cairo_set_line_width(cr, 1);
        cairo_move_to(cr, floor(from) + 0.5, top);
        cairo_line_to(cr, floor(from) + 0.5, top + height);
        cairo_move_to(cr, floor(to) + 0.5, top);
        cairo_line_to(cr, floor(to) + 0.5, top + height);
        cairo_stroke(cr);
        char span[32];
        axis_span_label((double)(to_ns - from_ns), span);
        double half = text_width(cr, span, TEXT_SMALL) / 2 + 5;
        double middle = CLAMP((from + to) / 2, l->left + half, l->right - half);
        palette_set(cr, accent, 1);
        cairo_rectangle(cr, middle - half, top, 2 * half, text_height(TEXT_SMALL) + 3);
        cairo_fill(cr);
        text_draw(cr, span, TEXT_SMALL, palette_background(view->dark), TEXT_CENTER, middle,
                  top + text_height(TEXT_SMALL) / 2 + 1.5, 0);
    }
    if (view->has_mark && view->mark_ns >= view->from_ns && view->mark_ns <= view->to_ns) {
        double x = floor(layout_x(l, view, view->mark_ns)) + 0.5;
        palette_set(cr, accent, 1);
        cairo_set_line_width(cr, 1);
        cairo_move_to(cr, x, top);
        cairo_line_to(cr, x, l->axis_y);
        cairo_stroke(cr);
        cairo_move_to(cr, x - 5, top - 5);
        cairo_line_to(cr, x + 5, top - 5);
        cairo_line_to(cr, x, top + 2);
        cairo_close_path(cr);
        cairo_fill(cr);
    }
}

/* Draws a text in a box beside x or centered on x. The box stays within the plot. */
static void draw_boxed(const layer_context *c, const char *text, double x, double y, bool is_beside)
{
    const double margin = is_beside ? 3 : 10, width = text_width(c->cr, text, TEXT_SMALL) + 2 * margin,
                 half = text_height(TEXT_SMALL) / 2, left = is_beside ? x + 3 : x - width / 2,
                 right = c->layout->right - width,
                 at = left <= right ? MAX(left, c->layout->left)
                      : is_beside   ? x - 3 - width
                                    : right;
    palette_set(c->cr, palette_background(c->view->dark), 0.9);
    cairo_rectangle(c->cr, at, y - half, width, 2 * half);
    cairo_fill(c->cr);
    text_draw(c->cr, text, TEXT_SMALL, palette_text(c->view->dark), TEXT_START, at + margin, y, width);
}

static void draw_crosshair(const layer_context *c)
{
    const layout *l = c->layout;
    const double x = floor(layout_x(l, c->view, c->view->crosshair_ns)) + 0.5;
    char time[NL_TIME_TEXT_SIZE];
    if (!c->view->has_crosshair || l->pane_count == 0 || x < l->left || x > l->right)
        return;
    palette_set(c->cr, palette_muted(c->view->dark), 0.8);
    cairo_set_line_width(c->cr, 1);
    cairo_move_to(c->cr, x, l->top);
    cairo_line_to(c->cr, x, l->axis_y);
    cairo_stroke(c->cr);
    /* use as many decimal places as the pixels distinguish */
    const double pixel_ns = ((double)c->view->to_ns - (double)c->view->from_ns) / (l->right - l->left);
    int64_t step_ns = 1;
    while (step_ns < NL_NS_PER_SECOND && (double)step_ns * 10 <= pixel_ns)
        step_ns *= 10;
    write_time(c, c->view->crosshair_ns, step_ns, time);
    draw_boxed(c, time, x, l->axis_y + 9, false);
    for (unsigned i = 0; i < l->pane_count; i++) {
        const pane *p = &l->panes[i];
        double top, bottom;
        const bool is_shown = layout_visible(l, p, &top, &bottom) && top <= p->top + 1;
        char *value = p->kind == PANE_LOADLINE && !p->is_collapsed && is_shown ? loadlines_layer_value(c, p) : NULL;
        if (value != NULL)
            draw_boxed(c, value, x, p->top + (p->rows > 1 ? LAYOUT_STRIPS_HEAD : text_height(TEXT_SMALL)) / 2.0, true);
        g_free(value);
    }
}

static void find_pixels(layer_context *c)
{
    cairo_surface_type_t type = cairo_surface_get_type(cairo_get_target(c->cr));
    double unit_x = 1, unit_y = 0;
    c->is_raster = type != CAIRO_SURFACE_TYPE_SVG && type != CAIRO_SURFACE_TYPE_PDF && type != CAIRO_SURFACE_TYPE_PS;
    cairo_user_to_device_distance(c->cr, &unit_x, &unit_y);
    double device_x = 1, device_y = 1;
    cairo_surface_get_device_scale(cairo_get_target(c->cr), &device_x, &device_y);
    double pixels = fabs(unit_x) * device_x;
    c->scale = c->is_raster ? CLAMP(c->view->is_coarse ? MIN(pixels / 2, 1) : pixels, 0.5, 8) : 1;
}

/* Finds the visible records, and the first record in each column. */
static void find_columns(layer_context *c)
{
    const layout *l = c->layout;
    c->column_count = (unsigned)CLAMP((l->right - l->left) * MIN(c->scale, 2), 1, 16000);
    c->columns = g_new(uint32_t, c->column_count + 1);
    double width = (l->right - l->left) / c->column_count;
    c->from = store_find_time(c->store, c->view->from_ns);
    c->to = c->view->to_ns == INT64_MAX ? c->store->count : store_find_time(c->store, c->view->to_ns + 1);
    /* if the columns have many records, approximate limits are sufficient */
    c->is_near = (c->to - c->from) / c->column_count >= 8 * STORE_MARK;
    for (unsigned i = 0; i < c->column_count; i++) {
        int64_t time_ns = layout_time(l, c->view, l->left + i * width);
        uint32_t min = i > 0 ? c->columns[i - 1] : c->from;
        uint32_t record = c->is_near ? store_find_time_near(c->store, time_ns) : store_find_time(c->store, time_ns);
        if (c->is_near && record <= min) /* this column has few records */
            record = store_find_time(c->store, time_ns);
        c->columns[i] = CLAMP(record, min, c->to);
    }
    c->columns[0] = c->from;
    c->columns[c->column_count] = c->to;
}

static layer_context scene_begin(const model *m, const scene_view *view, cairo_t *cr, layout *l)
{
    *l = layout_make(m, view, cr);
    layer_context c = {.model = m, .store = model_store(m), .view = view, .layout = l, .cr = cr};
    find_pixels(&c);
    return c;
}

void scene_draw(const model *m, const scene_view *view, cairo_t *cr)
{
    layout l;
    layer_context c = scene_begin(m, view, cr, &l);
    find_columns(&c);
    palette_set(cr, palette_background(view->dark), 1);
    cairo_paint(cr);
    for (unsigned i = 0; i < l.pane_count; i++)
        draw_back(&c, &l.panes[i]);
    int64_t first_ns, last_ns;
    bool has_records = model_time_range(m, &first_ns, &last_ns);
    if (has_records)
        draw_time_axis(&c);
    for (unsigned i = 0; i < l.pane_count; i++)
        draw_pane(&c, &l.panes[i]);
    draw_scroll(&c);
    if (view->names_slowest && !view->shows_threads)
        lifelines_layer_name_slowest(&c);
    draw_marked(&c);
    draw_crosshair(&c);
    overview_layer_draw(&c);
    marks_layer_draw(&c);
    marks_layer_flash(&c);
    if (l.has_title)
        draw_title(&c);
    if (l.has_title)
        threads_layer_draw_legend(&c);
    legend_layer_draw(&c);
    if (has_records)
        draw_caption(&c);
    g_free(c.columns);
}

void scene_plot_extents(const model *m, const scene_view *view, cairo_t *cr, double *left, double *right)
{
    layout l = layout_make(m, view, cr);
    *left = l.left;
    *right = l.right;
}

bool scene_find(const model *m, const scene_view *view, cairo_t *cr, double x, double y, scene_found *found)
{
    layout l;
    layer_context c = scene_begin(m, view, cr, &l);
    *found = (scene_found){.distance = find_distance, .object = -1};
    find_columns(&c);
    for (unsigned i = 0; i < l.pane_count && c.store->count > c.store->first; i++) {
        const pane *p = &l.panes[i];
        double top, bottom;
        if (!layout_visible(&l, p, &top, &bottom) || y < top || y > bottom || p->is_collapsed)
            continue;
        if (p->kind == PANE_THREADS)
            threads_layer_find(&c, p, x, y, found);
        else if (p->kind == PANE_LIFELINES)
            lifelines_layer_find(&c, p, x, y, found);
        else if (p->kind == PANE_POINTS)
            points_layer_find(&c, p, x, y, found);
        else
            loadlines_layer_find(&c, p, x, y, found);
    }
    g_free(c.columns);
    return found->distance < find_distance;
}

/* ---- tracks ---- */

/* A track in the order of the picture. */
typedef struct track_place {
    uint32_t key;
    double top, bottom;
    bool is_pinned, is_collapsed, is_host;
    const pane *pane; /* NULL: a thread or a host */
    guint row;        /* index of the thread */
} track_place;

/* Returns all tracks (track_place). The caller frees the array. `l` must stay valid. */
static GArray *find_tracks(const model *m, const scene_view *view, const layout *l)
{
    GArray *tracks = g_array_new(FALSE, FALSE, sizeof(track_place));
    for (unsigned i = 0; i < l->pane_count; i++) {
        const pane *p = &l->panes[i];
        if (p->kind != PANE_THREADS) {
            const track_place own = {.key = p->track,
                                     .top = p->top,
                                     .bottom = p->bottom,
                                     .is_pinned = p->is_pinned,
                                     .is_collapsed = p->is_collapsed,
                                     .pane = p};
            g_array_append_val(tracks, own);
            continue;
        }
        GArray *slots = threads_layer_slots(m, view, p->is_pinned);
        for (guint j = 0; j < slots->len; j++) {
            const thread_slot *slot = &g_array_index(slots, thread_slot, j);
            const track_place own = {.key = threads_layer_track(m, slot),
                                     .top = p->top + slot->top,
                                     .bottom = p->top + slot->top + slot->height,
                                     .is_pinned = p->is_pinned,
                                     .is_collapsed = slot->is_collapsed,
                                     .is_host = slot->is_host,
                                     .row = slot->row};
            g_array_append_val(tracks, own);
        }
        g_array_free(slots, TRUE);
    }
    return tracks;
}

/* Sets *found to a track. Returns false if there is no such track. */
static bool find_track(const model *m, const scene_view *view, const layout *l, uint32_t key, track_place *found)
{
    GArray *tracks = find_tracks(m, view, l);
    guint i = 0;
    while (i < tracks->len && g_array_index(tracks, track_place, i).key != key)
        i++;
    const bool is_found = key != 0 && i < tracks->len;
    if (is_found)
        *found = g_array_index(tracks, track_place, i);
    g_array_free(tracks, TRUE);
    return is_found;
}

uint32_t scene_find_track(const model *m, const scene_view *view, cairo_t *cr, double x, double y)
{
    const layout l = layout_make(m, view, cr);
    GArray *tracks = find_tracks(m, view, &l);
    uint32_t key = 0;
    for (guint i = 0; i < tracks->len && key == 0; i++) {
        const track_place *t = &g_array_index(tracks, track_place, i);
        const bool is_strips = t->pane != NULL && t->pane->kind == PANE_LOADLINE && t->pane->rows > 1,
                   is_name = x < l.left || (t->pane != NULL && t->is_collapsed) || t->is_host ||
                             (is_strips && y < t->top + LAYOUT_STRIPS_HEAD),
                   is_visible = t->is_pinned || (y >= l.scroll_top && y < l.scroll_bottom);
        if (is_visible && is_name && y >= t->top && y < t->bottom)
            key = t->key;
    }
    g_array_free(tracks, TRUE);
    return key;
}

uint32_t scene_step_track(const model *m, const scene_view *view, cairo_t *cr, uint32_t track, int by)
{
    const layout l = layout_make(m, view, cr);
    GArray *tracks = find_tracks(m, view, &l);
    guint i = 0;
    while (i < tracks->len && g_array_index(tracks, track_place, i).key != track)
        i++;
    uint32_t next = track;
    if (i == tracks->len)
        next = tracks->len > 0 ? g_array_index(tracks, track_place, 0).key : 0;
    else if (by > 0 ? i + 1 < tracks->len : i > 0)
        next = g_array_index(tracks, track_place, i + (by > 0 ? 1 : -1)).key;
    g_array_free(tracks, TRUE);
    return next;
}

char *scene_track_name(const model *m, const scene_view *view, cairo_t *cr, uint32_t track)
{
    const layout l = layout_make(m, view, cr);
    track_place t;
    if (!find_track(m, view, &l, track, &t))
        return NULL;
    if (t.pane != NULL)
        return pane_name(m, t.pane);
    const thread_row *r = g_ptr_array_index(model_threads(m)->rows, t.row);
    return t.is_host ? g_strdup(r->host) : g_strdup_printf("%s %s %s", r->host, r->program, r->thread);
}

void scene_toggle_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track)
{
    const layout l = layout_make(m, view, cr);
    track_place t;
    if (!find_track(m, view, &l, track, &t))
        return;
    track_set_put(&view->expanded, track, t.is_collapsed);
    track_set_put(&view->collapsed, track, !t.is_collapsed);
}

bool scene_pin_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track)
{
    const layout l = layout_make(m, view, cr);
    track_place t;
    if (!find_track(m, view, &l, track, &t) || t.is_host)
        return false;
    track_set_put(&view->pinned, track, !t.is_pinned);
    return true;
}

bool scene_expand_next(const model *m, scene_view *view, cairo_t *cr)
{
    const layout l = layout_make(m, view, cr);
    GArray *tracks = find_tracks(m, view, &l);
    uint32_t first = 0, next = 0;
    bool is_after = false;
    for (guint i = 0; i < tracks->len; i++) {
        const track_place *t = &g_array_index(tracks, track_place, i);
        if (track_set_has(&view->expanded, t->key)) {
            is_after = true;
            next = 0;
        }
        if (!t->is_collapsed)
            continue;
        first = first == 0 ? t->key : first;
        if (next == 0 && is_after)
            next = t->key;
    }
    g_array_free(tracks, TRUE);
    next = next != 0 ? next : first;
    if (next == 0)
        return false;
    view->expanded.count = 0;
    track_set_put(&view->expanded, next, true);
    track_set_put(&view->collapsed, next, false);
    return true;
}

void scene_scroll(const model *m, scene_view *view, cairo_t *cr, double by)
{
    const layout l = layout_make(m, view, cr);
    view->scroll = CLAMP(l.scroll + by, 0, l.scroll_max);
}

double scene_scroll_page(const model *m, const scene_view *view, cairo_t *cr)
{
    const layout l = layout_make(m, view, cr);
    return l.scroll_max > 0 ? l.scroll_bottom - l.scroll_top : 0;
}

void scene_show_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track)
{
    const layout l = layout_make(m, view, cr);
    track_place t;
    if (!find_track(m, view, &l, track, &t) || t.is_pinned)
        return;
    const double by = t.bottom > l.scroll_bottom ? MIN(t.bottom - l.scroll_bottom, t.top - l.scroll_top) : 0;
    view->scroll = CLAMP(l.scroll + (t.top < l.scroll_top ? t.top - l.scroll_top : by), 0, l.scroll_max);
}

static int64_t origin_of(const model *m)
{
    int64_t from_ns = 0, to_ns;
    model_time_range(m, &from_ns, &to_ns);
    return from_ns;
}

void scene_write_time(const model *m, axis_clock clock, int64_t time_ns, char out[AXIS_TIME_SIZE])
{
    axis_write_time(clock, origin_of(m), time_ns, out);
}

char *scene_describe_record(const model *m, axis_clock clock, uint32_t record)
{
    char time[AXIS_TIME_SIZE];
    axis_write_clock(clock, origin_of(m), store_time(model_store(m), record), time);
    return model_describe(m, record, time);
}

char *scene_describe_thread(const model *m, const scene_view *view, cairo_t *cr, double x, double y)
{
    layout l;
    layer_context c = scene_begin(m, view, cr, &l);
    char *text = NULL;
    for (unsigned i = 0; i < l.pane_count && text == NULL; i++) {
        double top, bottom;
        if (l.panes[i].kind == PANE_THREADS && layout_visible(&l, &l.panes[i], &top, &bottom) && y >= top && y < bottom)
            text = threads_layer_describe(&c, &l.panes[i], x, y);
    }
    return text;
}

bool scene_is_overview(const model *m, const scene_view *view, cairo_t *cr, double x, double y, int64_t *time_ns)
{
    layout l = layout_make(m, view, cr);
    *time_ns = layout_overview_time(&l, x);
    return y >= l.overview_top && y < l.overview_bottom && x >= l.left - 2 && x <= l.overview_right + 2;
}

bool scene_find_requests(const model *m, const scene_view *view, cairo_t *cr, const double from[2], const double to[2],
                         request_choice *area)
{
    const layout l = layout_make(m, view, cr);
    if (!l.has_heat || from[1] < l.overview_top || from[1] >= l.overview_bottom || from[0] < l.left - 4 ||
        from[0] > l.right + 4)
        return false;
    *area = heat_scale_area(&model_requests(m)->heat, &l, from[0], from[1], to[0], to[1]);
    return true;
}

request_choice scene_choose_requests(const model *m, bool errors)
{
    request_choice choice = request_choice_all;
    const request_list *l = model_requests(m);
    choice.only_errors = errors;
    if (!errors && l != NULL)
        choice.shortest_ns = heat_row_ns(heat_scale_slow_row(&l->heat));
    return choice;
}

bool scene_find_legend(const model *m, const scene_view *view, cairo_t *cr, double x, double y, request_choice *choice)
{
    layout l;
    const layer_context c = scene_begin(m, view, cr, &l);
    const heat_legend which = heat_layer_find_legend(&c, x, y);
    if (which == HEAT_LEGEND_OTHER)
        return false;
    *choice = scene_choose_requests(m, which == HEAT_LEGEND_ERRORS);
    return true;
}

int scene_find_color(const model *m, const scene_view *view, cairo_t *cr, double x, double y, bool *is_more)
{
    layout l;
    layer_context c = scene_begin(m, view, cr, &l);
    c.from = store_find_time(c.store, view->from_ns);
    return legend_layer_find(&c, x, y, is_more);
}

int scene_step_color(const model *m, const scene_view *view, cairo_t *cr, int from, int by)
{
    layout l;
    layer_context c = scene_begin(m, view, cr, &l);
    c.from = store_find_time(c.store, view->from_ns);
    return legend_layer_step(&c, from, by);
}

bool scene_find_heat(const model *m, const scene_view *view, cairo_t *cr, scene_heat *places)
{
    const layout l = layout_make(m, view, cr);
    if (!l.has_heat)
        return false;
    const heat_map *h = &model_requests(m)->heat;
    const heat_scale s = heat_scale_of(h, &l);
    const double slow = heat_scale_y(&s, heat_scale_slow_row(h));
    *places = (scene_heat){l.left, l.overview_right, l.overview_top, l.overview_bottom,
                           CLAMP(slow, l.overview_top + 1, l.overview_bottom)};
    return true;
}

void scene_zoom(scene_view *view, double factor, double share)
{
    double width = (double)(view->to_ns - view->from_ns);
    double center = share * width;
    double wanted = CLAMP(width * factor, 100, 9e18);
    double from = center - share * wanted;
    int64_t from_ns, to_ns;
    if (__builtin_add_overflow(view->from_ns, (int64_t)CLAMP(from, -9e18, 9e18), &from_ns) ||
        __builtin_add_overflow(from_ns, (int64_t)wanted, &to_ns))
        return;
    view->from_ns = from_ns;
    view->to_ns = to_ns;
}

void scene_pan(scene_view *view, double share)
{
    int64_t by = (int64_t)(share * (double)(view->to_ns - view->from_ns)), from_ns, to_ns;
    if (__builtin_add_overflow(view->from_ns, by, &from_ns) || __builtin_add_overflow(view->to_ns, by, &to_ns))
        return;
    view->from_ns = from_ns;
    view->to_ns = to_ns;
}
