#include "config.h"

#include "serve/views.h"

#include "base/error.h"
#include "base/time_internal.h"
#include "model/color_filter.h"
#include "model/request_name.h"
#include "program/json_document.h"
#include "requests/printable.h"
#include "scene/axis.h"
#include "scene/comparison_drawing.h"
#include "scene/layout.h"
#include "scene/waterfall_drawing.h"
#include "serve/picture.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NOTICES_MAX = 20, TEXT_MAX = 4000, NAME_MAX_SIZE = 200, ROWS_DESCRIBED = 20 };

struct views {
    model *model;
    views_look look;
    GThreadPool *drawing;
    GMutex lock; /* protects notices */
    GQueue notices;
};

/* The work to answer one HTTP request. If the work draws or measures text, the drawing thread does it. */
typedef struct task {
    views *views;
    const query *q;
    answer *a;
    void (*work)(struct task *t);
    cairo_surface_t *surface; /* set by tasks that draw */
    GMutex lock;
    GCond done;
    bool is_done;
} task;

/* ---- JSON ---- */

/* Adds nanoseconds as a string, because JavaScript's numbers cannot represent times in nanoseconds. */
static void add_ns(json_object *o, const char *name, int64_t ns)
{
    char text[32];
    g_snprintf(text, sizeof text, "%" PRId64, ns);
    json_add_text(o, name, text);
}

/* Adds text without control characters, cut to at most `max` bytes. */
static void add_cut(json_object *o, const char *name, const char *text, size_t max)
{
    char *valid = printable(text);
    if (strlen(valid) > max) {
        char *end = g_utf8_find_prev_char(valid, valid + max);
        g_strlcpy(end != NULL ? end : valid, "", 1);
    }
    json_add_text(o, name, valid);
    g_free(valid);
}

static void set_document(answer *a, json_object *o)
{
    const char *text = json_document_text(o, false);
    a->type = "application/json";
    a->body = g_byte_array_new();
    g_byte_array_append(a->body, (const guint8 *)text, (guint)strlen(text));
    json_object_put(o);
}

/* ---- the view ---- */

/*
 * Returns the view that a query describes. If the query has no time range, returns the first view. The model is locked.
 */
static scene_view view_of(const views *v, const query *q)
{
    scene_view view = q->has_from && q->has_to ? scene_fit(v->model, q->width, q->height)
                                               : scene_first(v->model, q->width, q->height);
    if (q->has_from && q->has_to) {
        view.from_ns = q->from_ns;
        view.to_ns = q->to_ns;
    } else {
        view.from_ns = v->look.since_ns != INT64_MIN ? v->look.since_ns : view.from_ns;
        view.to_ns = v->look.until_ns != INT64_MAX ? v->look.until_ns : view.to_ns;
    }
    if (view.from_ns >= view.to_ns)
        view = scene_fit(v->model, q->width, q->height);
    view.title = v->look.title;
    view.dark = q->is_dark;
    view.is_coarse = q->is_coarse;
    view.overview = view.histogram = view.collapses = view.scrolls = true;
    view.shows_threads = q->shows_threads;
    view.scroll = q->scroll;
    view.clock = (axis_clock)q->clock;
    view.track = q->track;
    track_set_read(&view.collapsed, q->collapsed);
    track_set_read(&view.expanded, q->expanded);
    track_set_read(&view.pinned, q->pinned);
    if (q->shows_threads)
        model_want_threads(v->model);
    view.has_color = q->color > 0;
    view.color = q->color > 0 ? q->color - 1 : 0;
    if (q->has_step)
        scene_select(&view, model_store(v->model), store_find_place(model_store(v->model), q->step_ns, q->place));
    return view;
}

static cairo_surface_t *new_surface(const query *q)
{
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(q->width * q->scale), (int)(q->height * q->scale));
    cairo_surface_set_device_scale(surface, q->scale, q->scale);
    return surface;
}

static cairo_t *new_measuring_context(void)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *cr = cairo_create(surface);
    cairo_surface_destroy(surface);
    return cr;
}

/*
 * Returns a JSON object with the positions of the parts of the picture, which the page needs to interpret the pointer.
 */
static char *describe_place(const views *v, const scene_view *view, cairo_t *cr)
{
    const layout l = layout_make(v->model, view, cr);
    const double top = l.pane_count > 0 ? l.top : l.axis_y;
    return g_strdup_printf(
        "{\"from\":\"%" PRId64 "\",\"to\":\"%" PRId64 "\",\"left\":%.2f,\"right\":%.2f,\"top\":%.0f,"
        "\"bottom\":%.0f,\"overviewTop\":%.0f,\"overviewBottom\":%.0f,\"overviewRight\":%.2f,\"wholeFrom\":\"%" PRId64
        "\","
        "\"wholeTo\":\"%" PRId64 "\",\"heat\":%s,\"generation\":%u,\"scroll\":%.0f,\"scrollMax\":%.0f,\"page\":%.0f}",
        view->from_ns, view->to_ns, l.left, l.right, top, l.axis_y, l.overview_top, l.overview_bottom, l.overview_right,
        l.whole_from_ns, l.whole_to_ns, l.has_heat ? "true" : "false", model_generation(v->model), l.scroll,
        l.scroll_max, l.scroll_bottom - l.scroll_top);
}

/* ---- tasks of the drawing thread ---- */

static void draw_picture(task *t)
{
    t->surface = new_surface(t->q);
    cairo_t *cr = cairo_create(t->surface);
    model_lock(t->views->model);
    const scene_view view = view_of(t->views, t->q);
    scene_draw(t->views->model, &view, cr);
    t->a->place = describe_place(t->views, &view, cr);
    model_unlock(t->views->model);
    cairo_destroy(cr);
}

static waterfall *read_waterfall(const task *t)
{
    model *m = t->views->model;
    model_lock(m);
    const store *s = model_store(m);
    waterfall *w =
        t->q->has_step ? waterfall_read(m, t->q->lifeline, store_find_place(s, t->q->step_ns, t->q->place)) : NULL;
    model_unlock(m);
    return w;
}

static void draw_request(task *t)
{
    waterfall *w = read_waterfall(t);
    if (w == NULL)
        return;
    t->surface = new_surface(t->q);
    cairo_t *cr = cairo_create(t->surface);
    cairo_translate(cr, 0, -(double)t->q->top);
    waterfall_draw(w, cr, t->q->width, 0, t->q->is_dark);
    cairo_destroy(cr);
    t->a->place = g_strdup_printf("{\"height\":%.0f}", waterfall_height(w));
    waterfall_free(w);
}

static void describe_span(task *t)
{
    waterfall *w = read_waterfall(t);
    const unsigned span = w != NULL ? waterfall_find(w, t->q->y) : G_MAXUINT;
    char *text = span != G_MAXUINT ? waterfall_describe(w, span) : g_strdup("");
    json_object *o = json_object_new_object();
    add_cut(o, "text", text, TEXT_MAX);
    set_document(t->a, o);
    g_free(text);
    waterfall_free(w);
}

/* Adds the requests of a choice as parameters of /requests. */
static void add_choice(json_object *o, const request_choice *choice)
{
    json_object *parameters = json_object_new_object();
    add_ns(parameters, "shortest", (int64_t)ceil(MAX(choice->shortest_ns, 0)));
    if (choice->only_errors)
        json_add_text(parameters, "errors", "yes");
    json_object_object_add(o, "list", parameters);
}

/* Describes the record or the entry of a legend at a position. */
static void find_record(task *t)
{
    bool is_more;
    model *m = t->views->model;
    cairo_t *cr = new_measuring_context();
    json_object *o = json_object_new_object();
    scene_found found;
    request_choice choice;
    model_lock(m);
    const scene_view view = view_of(t->views, t->q);
    const int color = scene_find_color(m, &view, cr, t->q->x, t->q->y, &is_more);
    const uint32_t track = scene_find_track(m, &view, cr, t->q->x, t->q->y);
    char *span = scene_describe_thread(m, &view, cr, t->q->x, t->q->y);
    if (scene_find_legend(m, &view, cr, t->q->x, t->q->y, &choice)) {
        add_choice(o, &choice);
    } else if (color >= 0) {
        json_add_int(o, is_more ? "more" : "color", color);
    } else if (track != 0) {
        json_add_int(o, "track", track);
    } else if (scene_find(m, &view, cr, t->q->x, t->q->y, &found)) {
        const store *s = model_store(m);
        char *text = scene_describe_record(m, view.clock, found.record);
        char *both = span != NULL && text != NULL ? g_strdup_printf("%s\n%s", span, text) : g_strdup(text);
        if (both != NULL)
            add_cut(o, "text", both, TEXT_MAX);
        g_free(both);
        g_free(text);
        add_ns(o, "step", store_time(s, found.record));
        add_ns(o, "place", (int64_t)store_place(s, found.record));
        if (found.object >= 0 || store_duration(s, found.record) != 0)
            json_add_int(o, "lifeline", found.object >= 0 ? (int64_t)found.lifeline : REQUEST_NO_LIFELINE);
    } else if (span != NULL) {
        add_cut(o, "text", span, TEXT_MAX);
    }
    g_free(span);
    model_unlock(m);
    cairo_destroy(cr);
    set_document(t->a, o);
}

static void add_tracks(json_object *o, const char *name, const track_set *tracks)
{
    char text[TRACK_SET_TEXT_SIZE];
    track_set_write(tracks, text);
    json_add_text(o, name, text);
}

/* Collapses, expands or pins a track, or finds another track. Returns the resulting view. */
static void change_track(task *t)
{
    model *m = t->views->model;
    const query *q = t->q;
    cairo_t *cr = new_measuring_context();
    json_object *o = json_object_new_object();
    model_lock(m);
    scene_view view = view_of(t->views, q);
    if (q->action == TRACK_TOGGLE)
        scene_toggle_track(m, &view, cr, q->track);
    else if (q->action == TRACK_PIN)
        scene_pin_track(m, &view, cr, q->track);
    else if (q->action == TRACK_EXPAND)
        json_add_bool(o, "any", scene_expand_next(m, &view, cr));
    else if (q->action != TRACK_FIND)
        view.track = scene_step_track(m, &view, cr, q->track, q->action == TRACK_NEXT ? 1 : -1);
    scene_show_track(m, &view, cr, view.track);
    scene_scroll(m, &view, cr, 0); /* limits the position */
    char *name = scene_track_name(m, &view, cr, view.track);
    model_unlock(m);
    cairo_destroy(cr);
    json_add_int(o, "track", view.track);
    add_cut(o, "name", name != NULL ? name : "", NAME_MAX_SIZE);
    json_add_int(o, "scroll", (int64_t)view.scroll);
    add_tracks(o, "collapsed", &view.collapsed);
    add_tracks(o, "expanded", &view.expanded);
    add_tracks(o, "pinned", &view.pinned);
    g_free(name);
    set_document(t->a, o);
}

/* ---- requests ---- */

/* Returns a JSON object about the request with an index in the list. The model is locked. */
static json_object *describe_request(const model *m, const request_list *l, uint32_t index, axis_clock clock)
{
    const request_summary *r = request_list_at(l, index);
    json_object *o = json_object_new_object();
    char took[32], begun[AXIS_TIME_SIZE];
    axis_span_label((double)r->duration_ns, took);
    scene_write_time(m, clock, r->start_ns, begun);
    add_ns(o, "start", r->start_ns);
    add_ns(o, "duration", r->duration_ns);
    json_add_text(o, "durationText", took);
    json_add_text(o, "startText", begun);
    add_cut(o, "slowest", names_text(l->names, r->slowest), NAME_MAX_SIZE);
    json_add_text(o, "error", request_errors_text(r->errors));
    json_add_int(o, "share", r->share);
    json_add_int(o, "position", r->position);
    json_add_int(o, "hosts", r->host_count);
    add_ns(o, "step", r->step_ns);
    add_ns(o, "place", (int64_t)r->step_place);
    json_add_int(o, "lifeline", r->lifeline);
    char *name = request_name_at(m, r->lifeline, r->step_place);
    add_cut(o, "name", name, NAME_MAX_SIZE);
    g_free(name);
    return o;
}

static void find_area(task *t)
{
    model *m = t->views->model;
    cairo_t *cr = new_measuring_context();
    json_object *o = json_object_new_object();
    request_choice area;
    model_lock(m);
    const scene_view view = view_of(t->views, t->q);
    const request_list *l = model_requests(m);
    if (l != NULL && scene_find_requests(m, &view, cr, (const double[]){t->q->x, t->q->y},
                                         (const double[]){t->q->end_x, t->q->end_y}, &area)) {
        uint32_t *found;
        if (area.from_ns != INT64_MIN) { /* the area is in the heat map, not in the histogram */
            add_ns(o, "from", area.from_ns);
            add_ns(o, "to", area.to_ns);
        }
        add_ns(o, "shortest", (int64_t)CLAMP(floor(area.shortest_ns), 0, 9e18));
        add_ns(o, "longest", area.longest_ns < 9e18 ? (int64_t)ceil(area.longest_ns) : INT64_MAX);
        if (request_list_sort(l, &area, REQUEST_BY_ERROR, true, 1, &found) > 0)
            json_object_object_add(o, "best", describe_request(m, l, found[0], view.clock));
        g_free(found);
    }
    model_unlock(m);
    cairo_destroy(cr);
    set_document(t->a, o);
}

static void list_requests(task *t)
{
    model *m = t->views->model;
    const query *q = t->q;
    const request_choice choice = {
        .from_ns = q->has_from ? q->from_ns : INT64_MIN,
        .to_ns = q->has_to ? q->to_ns : INT64_MAX,
        .shortest_ns = (double)q->shortest_ns,
        .longest_ns = q->longest_ns == INT64_MAX ? INFINITY : (double)q->longest_ns,
        .only_errors = q->only_errors,
        .text = q->text,
    };
    json_object *o = json_object_new_object(), *rows = json_object_new_array();
    model_lock(m);
    const request_list *l = model_requests(m);
    if (l != NULL) {
        uint32_t *found;
        const size_t all = request_list_sort(l, &choice, (request_column)q->sort, q->descending, q->rows, &found);
        for (size_t i = 0; i < MIN(all, q->rows); i++)
            json_object_array_add(rows, describe_request(m, l, found[i], (axis_clock)q->clock));
        g_free(found);
        json_add_int(o, "found", (int64_t)all);
        json_add_int(o, "total", (int64_t)l->heat.count);
        json_add_int(o, "dropped", (int64_t)l->dropped);
    }
    model_unlock(m);
    json_object_object_add(o, "rows", rows);
    set_document(t->a, o);
}

/* ---- the filter ---- */

static void add_toggled(json_object *o, const char *name, const model *m, size_t color, bool hides)
{
    char *filter = color_filter_toggle(m, color, hides);
    json_add_text(o, name, filter != NULL ? filter : "");
    g_free(filter);
}

/* Lists the colors of the legend. Each color has the filters that isolate and hide the color, or that show all colors
 * again. */
static void list_colors(task *t)
{
    model *m = t->views->model;
    cairo_t *cr = new_measuring_context();
    json_object *o = json_object_new_object(), *colors = json_object_new_array();
    bool is_hidden[COLOR_FILTER_MAX];
    model_lock(m);
    const scene_view view = view_of(t->views, t->q);
    const size_t known = color_filter_find_hidden(m, is_hidden);
    int color = -1;
    for (int next; (next = scene_step_color(m, &view, cr, color, 1)) != color;) {
        color = next;
        json_object *entry = json_object_new_object();
        json_add_int(entry, "color", color);
        add_cut(entry, "text", model_color_text(m, (size_t)color), NAME_MAX_SIZE);
        json_add_bool(entry, "hidden", (size_t)color < known && is_hidden[color]);
        add_toggled(entry, "isolate", m, (size_t)color, false);
        add_toggled(entry, "hide", m, (size_t)color, true);
        json_object_array_add(colors, entry);
    }
    model_unlock(m);
    cairo_destroy(cr);
    json_object_object_add(o, "colors", colors);
    set_document(t->a, o);
}

/* Sets the filter, which all pages share, because they share the model. An empty text removes the filter. */
static void set_filter(task *t)
{
    json_object *o = json_object_new_object();
    if (!model_set_filter(t->views->model, *t->q->text != '\0' ? t->q->text : NULL))
        add_cut(o, "error", nl_error_message(), TEXT_MAX);
    set_document(t->a, o);
}

/* ---- comparisons ---- */

/* Begins to compare two sides (model_compare). All pages share the comparison. */
static void begin_comparison(task *t)
{
    json_object *o = json_object_new_object();
    if (!model_compare(t->views->model, t->q->text, t->q->other))
        add_cut(o, "error", nl_error_message(), TEXT_MAX);
    set_document(t->a, o);
}

/* Describes the result of the comparison or, before the end, its progress. */
static void describe_comparison(task *t)
{
    model *m = t->views->model;
    json_object *o = json_object_new_object();
    model_lock(m);
    const comparison *c = model_comparison(m);
    if (c != NULL) {
        char *answer = comparison_describe(c), *left_out = comparison_describe_left_out(c);
        GString *text = g_string_new(answer);
        if (left_out != NULL)
            g_string_append_printf(text, " %s", left_out);
        for (guint i = 0; i < c->rows->len && i < ROWS_DESCRIBED && c->reason == NULL; i++) {
            char *row = comparison_describe_row(c, i);
            g_string_append_printf(text, "; %s", row);
            g_free(row);
        }
        add_cut(o, "text", text->str, TEXT_MAX);
        g_string_free(text, TRUE);
        g_free(left_out);
        g_free(answer);
    }
    json_add_bool(o, "done", c != NULL);
    json_add_double(o, "progress", model_find_progress(m));
    model_unlock(m);
    set_document(t->a, o);
}

static void draw_comparison(task *t)
{
    model *m = t->views->model;
    waterfall *typical[COMPARED_SIDES] = {NULL};
    model_lock(m);
    const comparison *c = model_comparison(m);
    if (c != NULL) {
        for (unsigned side = 0; side < COMPARED_SIDES && c->reason == NULL; side++)
            typical[side] = comparison_read_typical(m, c, side);
        const comparison_view view = {
            .width = t->q->width, .height = t->q->height, .dark = t->q->is_dark, .requests = {typical[0], typical[1]}};
        t->surface = new_surface(t->q);
        cairo_t *cr = cairo_create(t->surface);
        comparison_draw(c, &view, cr);
        cairo_destroy(cr);
    }
    model_unlock(m);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        waterfall_free(typical[side]);
}

/* ---- the state ---- */

static void describe_state(task *t)
{
    views *v = t->views;
    model *m = v->model;
    json_object *o = json_object_new_object(), *notices = json_object_new_array();
    int64_t from_ns = 0, to_ns = 0;
    model_lock(m);
    const request_list *l = model_requests(m);
    const scene_view all = scene_fit(m, t->q->width, t->q->height);
    add_cut(o, "name", model_name(m), NAME_MAX_SIZE);
    json_add_int(o, "records", (int64_t)model_count(m));
    json_add_int(o, "requests", l != NULL ? (int64_t)l->heat.count : 0);
    json_add_int(o, "failed", l != NULL ? (int64_t)l->heat.failed : 0);
    if (model_filter(m) != NULL)
        add_cut(o, "filter", model_filter(m), TEXT_MAX);
    model_time_range(m, &from_ns, &to_ns);
    model_unlock(m);
    json_add_int(o, "logs", (int64_t)model_log_count(m));
    add_ns(o, "first", from_ns);
    add_ns(o, "last", to_ns);
    add_ns(o, "allFrom", all.from_ns);
    add_ns(o, "allTo", all.to_ns);
    json_add_double(o, "progress", model_progress(m));
    json_add_double(o, "found", model_requests_progress(m));
    json_add_bool(o, "settled", model_is_settled(m));
    json_add_int(o, "generation", model_generation(m));
    json_add_bool(o, "dark", v->look.is_dark);
    json_add_bool(o, "threads", v->look.shows_threads);
    json_add_int(o, "threadsRead", (int64_t)(100 * model_threads_progress(m)));
    g_mutex_lock(&v->lock);
    for (const GList *at = v->notices.head; at != NULL; at = at->next)
        json_object_array_add(notices, json_text(at->data));
    g_mutex_unlock(&v->lock);
    json_object_object_add(o, "notices", notices);
    set_document(t->a, o);
}

/* ---- dispatch ---- */

typedef struct view_kind {
    const char *path;
    void (*work)(task *t);
    bool draws; /* draws or measures text, so it runs in the drawing thread */
} view_kind;

static const view_kind kinds[] = {
    {"/picture", draw_picture, true},
    {"/waterfall", draw_request, true},
    {"/span", describe_span, true},
    {"/find", find_record, true},
    {"/area", find_area, true},
    {"/requests", list_requests, false},
    {"/filter", set_filter, false},
    {"/state", describe_state, false},
    {"/colors", list_colors, true},
    {"/track", change_track, true},
    {"/compare", begin_comparison, false},
    {"/compared", describe_comparison, false},
    {"/comparison", draw_comparison, true},
};

static void run_in_drawing_thread(gpointer data, gpointer user)
{
    task *t = data;
    (void)user;
    t->work(t);
    g_mutex_lock(&t->lock);
    t->is_done = true;
    g_cond_signal(&t->done);
    g_mutex_unlock(&t->lock);
}

static void wait_for_drawing(task *t)
{
    g_thread_pool_push(t->views->drawing, t, NULL);
    g_mutex_lock(&t->lock);
    while (!t->is_done)
        g_cond_wait(&t->done, &t->lock);
    g_mutex_unlock(&t->lock);
}

static void compress_surface(task *t)
{
    cairo_surface_flush(t->surface);
    if (cairo_surface_status(t->surface) == CAIRO_STATUS_SUCCESS)
        t->a->body = picture_compress(t->surface);
    cairo_surface_destroy(t->surface);
    if (t->a->body != NULL)
        t->a->type = "image/png";
    else
        nl_error_set(NL_ERROR_MEMORY, "cannot compress the picture: not enough memory");
}

bool views_answer(views *v, const char *path, const query *q, answer *a)
{
    size_t i = 0;
    *a = (answer){0};
    while (i < G_N_ELEMENTS(kinds) && strcmp(path, kinds[i].path) != 0)
        i++;
    if (i == G_N_ELEMENTS(kinds))
        return false;
    task t = {.views = v, .q = q, .a = a, .work = kinds[i].work};
    g_mutex_init(&t.lock);
    g_cond_init(&t.done);
    if (kinds[i].draws)
        wait_for_drawing(&t);
    else
        t.work(&t);
    g_mutex_clear(&t.lock);
    g_cond_clear(&t.done);
    if (t.surface != NULL)
        compress_surface(&t);
    else if (a->type == NULL)
        nl_error_set(NL_ERROR_NOT_FOUND, "there is no such request or comparison");
    return true;
}

void answer_clear(answer *a)
{
    g_free(a->place);
    if (a->body != NULL)
        g_byte_array_free(a->body, TRUE);
    *a = (answer){0};
}

void views_tell(views *v, char *text)
{
    g_mutex_lock(&v->lock);
    g_queue_push_tail(&v->notices, text);
    if (v->notices.length > NOTICES_MAX)
        g_free(g_queue_pop_head(&v->notices));
    g_mutex_unlock(&v->lock);
}

views *views_new(model *m, const views_look *look)
{
    views *v = g_new0(views, 1);
    v->model = m;
    v->look = *look;
    v->drawing = g_thread_pool_new(run_in_drawing_thread, NULL, 1, TRUE, NULL);
    g_mutex_init(&v->lock);
    g_queue_init(&v->notices);
    return v;
}

void views_free(views *v)
{
    g_thread_pool_free(v->drawing, FALSE, TRUE);
    g_queue_clear_full(&v->notices, g_free);
    g_mutex_clear(&v->lock);
    g_free(v);
}
