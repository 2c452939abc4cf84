#include "config.h"

#include "view/side_panel.h"

#include "base/text.h"
#include "model/request_lines.h"
#include "model/request_name.h"

#include "model/statistics.h"
#include "requests/request_reader.h"
#include "scene/axis.h"
#include "scene/palette.h"
#include "view/table.h"
#include "base/time_internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    STEPS_MAX = 200,
    EVENTS_MAX = 40,
    WIDTH = 430,     /* initial width in pixels, if the window is at least twice as wide */
    WIDTH_MIN = 200, /* minimum width in pixels */
};

struct side_panel {
    model *model;
    side_panel_go *go;
    void *user;
    axis_clock clock;
    bool dark;
    GtkWidget *widget;
    GtkWidget *content;
};

static gint compare_places(gconstpointer a, gconstpointer b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void side_panel_begin(side_panel *p)
{
    GList *children = gtk_container_get_children(GTK_CONTAINER(p->content));
    g_list_free_full(children, (GDestroyNotify)(void (*)(void))gtk_widget_destroy);
}

static void side_panel_add(side_panel *p, GtkWidget *widget)
{
    gtk_box_pack_start(GTK_BOX(p->content), widget, FALSE, FALSE, 0);
}

static void side_panel_add_text(side_panel *p, const char *markup)
{
    GtkWidget *label = gtk_label_new(NULL);
    gtk_label_set_markup(GTK_LABEL(label), markup);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
    gtk_label_set_line_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
    gtk_label_set_selectable(GTK_LABEL(label), TRUE);
    gtk_widget_set_can_focus(label, FALSE);
    side_panel_add(p, label);
}

static void show(side_panel *p)
{
    gtk_widget_show_all(p->content);
}

/* ---- the chosen request ---- */

typedef struct chosen_request {
    size_t lifeline;  /* or REQUEST_NO_LIFELINE */
    int64_t object;   /* -1: the records belong to no object */
    GArray *steps;    /* uint32_t: the latest records of the request, at most STEPS_MAX, by time */
    bool *has_failed; /* for each step, whether the record reports a failure */
    bool fails;       /* at least one of these records reports a failure */
} chosen_request;

/* Returns the indices of an object's latest records, at most STEPS_MAX, in order of time. */
static GArray *steps_of(const store *s, uint32_t object, unsigned layer)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t record = store_last_step(s, object, layer);
    for (; record < s->count && steps->len < STEPS_MAX; record = store_previous(s, record, layer))
        g_array_prepend_val(steps, record);
    return steps;
}

/* Returns the records of a request that belongs to no object. If there are too many records, returns only `record`. */
static GArray *steps_of_span(const model *m, uint32_t record)
{
    GArray *steps = request_lines_steps(m, REQUEST_NO_LIFELINE, record);
    if (steps == NULL) {
        steps = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_array_append_val(steps, record);
    }
    if (steps->len > STEPS_MAX)
        g_array_remove_range(steps, 0, steps->len - STEPS_MAX);
    return steps;
}

static void find_failures(const model *m, chosen_request *r)
{
    request_reader *reader;
    const request_graph *g = request_lines_graph(m, r->lifeline, r->steps, &reader);
    r->has_failed = g_new0(bool, r->steps->len + 1);
    for (size_t i = 0; g != NULL && i < g->event_count; i++) {
        r->has_failed[g->events[i].payload] = g->events[i].failed;
        r->fails = r->fails || g->events[i].failed;
    }
}

/* Returns the reasons why the request counts as an error (request_summary.errors). Uses the reasons in the table of
 * requests, so that table and panel agree. If the table does not have the request yet, uses the request's records. */
static uint8_t errors_of(const model *m, const chosen_request *r)
{
    const request_list *l = model_requests(m);
    const store *s = model_store(m);
    GArray *places = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (guint i = 0; i < r->steps->len; i++) {
        const uint64_t place = store_place(s, g_array_index(r->steps, uint32_t, i));
        g_array_append_val(places, place);
    }
    g_array_sort(places, compare_places);
    bool is_listed = false;
    uint8_t errors = l != NULL ? request_list_find_errors(l, (uint8_t)r->lifeline, places, &is_listed) : 0;
    g_array_free(places, TRUE);
    return is_listed ? errors : r->fails ? REQUEST_FAILED : 0;
}

/* Appends a record to markup. */
static void add_record(const side_panel *p, GString *markup, uint32_t record)
{
    char *line = scene_describe_record(p->model, p->clock, record), *escaped = g_markup_escape_text(line, -1);
    g_string_append_printf(markup, "\n<small>%s</small>", escaped);
    g_free(escaped);
    g_free(line);
}

/* Shows why the request counts as an error, and the records that report the failure. */
static void add_errors(side_panel *p, const chosen_request *r)
{
    const uint8_t errors = errors_of(p->model, r);
    if (errors == 0)
        return;
    GString *text = g_string_new(NULL);
    g_string_printf(text, "<span foreground=\"#%06x\">", palette_pixel(palette_error(p->dark)) & 0xffffff);
    if (errors & REQUEST_FAILED)
        g_string_append(text, "<b>Failed</b>");
    for (guint i = 0; i < r->steps->len && (errors & REQUEST_FAILED); i++)
        if (r->has_failed[i])
            add_record(p, text, g_array_index(r->steps, uint32_t, i));
    if (errors & REQUEST_INCOMPLETE)
        g_string_append_printf(text,
                               "%s<b>Incomplete</b>\n<small>The start, the end, or an event that similar requests have "
                               "is missing.</small>",
                               errors & REQUEST_FAILED ? "\n" : "");
    g_string_append(text, "</span>");
    side_panel_add_text(p, text->str);
    g_string_free(text, TRUE);
}

/* Writes the time from a record's cause to the record into `took`, and describes the cause in `since`. The description
 * omits the name of the cause if the cause is `above`, the record in the row above. Without a cause, writes the
 * duration of the record's span. */
static void describe_took(const store *s, const request_drawn *drawn, uint32_t above, uint32_t record, char took[32],
                          GString *since)
{
    const request_line *line = drawn != NULL ? request_lines_cause(drawn, record) : NULL;
    const double duration_ns = fabs(store_duration(s, record));
    g_string_truncate(since, 0);
    *took = '\0';
    if (line != NULL) {
        axis_span_label((double)(store_time(s, record) - store_time(s, line->from)), took);
        if (line->from != above)
            g_string_append_printf(since, "%s%s", names_text(s->names.events, store_event(s, line->from)),
                                   line->is_inferred ? ", " : "");
        if (line->is_inferred)
            g_string_append_printf(since, "inferred %.0f %%", floor(100 * (double)line->certainty));
    } else if (duration_ns > 0) {
        axis_span_label(duration_ns, took);
    }
}

static void add_segments(side_panel *p, const store *s, const chosen_request *r, const char *title)
{
    static const char *const columns[] = {"Event", "Host", "#after", "#took", "since", NULL};
    const request_drawn *drawn = r->object >= 0 ? request_lines_find(p->model, r->lifeline, (uint32_t)r->object) : NULL;
    GtkWidget *table = table_new(title, columns);
    GString *since = g_string_new(NULL);
    int64_t first_ns = r->steps->len > 0 ? store_time(s, g_array_index(r->steps, uint32_t, 0)) : 0;
    for (guint i = 0; i < r->steps->len; i++) {
        const uint32_t record = g_array_index(r->steps, uint32_t, i),
                       above = i > 0 ? g_array_index(r->steps, uint32_t, i - 1) : (uint32_t)STORE_NONE;
        char after[32], took[32];
        axis_span_label((double)(store_time(s, record) - first_ns), after);
        describe_took(s, drawn, above, record, took, since);
        const char *texts[] = {names_text(s->names.events, store_event(s, record)),
                               names_text(s->names.hosts, store_host(s, record)), after, took, since->str};
        table_add(table, texts);
    }
    g_string_free(since, TRUE);
    side_panel_add(p, table);
}

static void add_records(side_panel *p, const GArray *steps)
{
    GString *text = g_string_new("<b>Records</b>");
    for (guint i = 0; i < steps->len; i++)
        add_record(p, text, g_array_index(steps, uint32_t, i));
    side_panel_add_text(p, text->str);
    g_string_free(text, TRUE);
}

/* Returns the title of a request: its lifeline and its ID or, without a lifeline, the name of its last record's event.
 * The caller frees it with g_free. */
static char *title_of(const model *m, const chosen_request *r, uint32_t record)
{
    const store *s = model_store(m);
    const drawing_lifeline *definition = model_lifeline(m, r->lifeline);
    if (definition->name == NULL)
        return g_strdup(names_text(s->names.events, store_event(s, record)));
    char *name = request_name_at(m, r->lifeline, store_place(s, record)),
         *title = g_strdup_printf("%s %s", definition->name, name);
    g_free(name);
    return title;
}

bool side_panel_show_request(side_panel *p, const scene_view *view)
{
    chosen_request r = {.object = view->selected};
    uint32_t record;
    model_lock(p->model);
    const store *s = model_store(p->model);
    const bool is_chosen = scene_find_selected(view, s, &r.lifeline, &record);
    if (is_chosen) {
        side_panel_begin(p);
        r.steps = r.object >= 0 ? steps_of(s, (uint32_t)r.object, s->spec->lifelines[r.lifeline].layer)
                                : steps_of_span(p->model, record);
        find_failures(p->model, &r);
        char *title = title_of(p->model, &r, record);
        add_errors(p, &r);
        add_segments(p, s, &r, title);
        add_records(p, r.steps);
        g_array_free(r.steps, TRUE);
        g_free(r.has_failed);
        g_free(title);
    }
    model_unlock(p->model);
    if (is_chosen)
        show(p);
    return is_chosen;
}

/* ---- the marked time range ---- */

/* Makes the maximum in a column of the latest row a link to its record. */
static void link_record(side_panel *p, GtkWidget *table, int column, const store *s, uint32_t record)
{
    table_link(table, column, p->go, p->user, store_time(s, record), store_place(s, record));
}

static void add_request_statistics(side_panel *p, const request_statistics *of)
{
    static const char *const columns[] = {"", "#n", "#p50", "#p99", "#max", NULL};
    char count[32], p50[32], p99[32], max[32];
    if (of->count == 0 && of->is_partial)
        side_panel_add_text(p, "nlv is still reading the requests.");
    if (of->count == 0)
        return;
    GtkWidget *table = table_new("Whole requests that end in this time", columns);
    const request_summary *longest = request_list_at(model_requests(p->model), of->max_index);
    char *name = of->failed > 0 ? g_strdup_printf("duration (%zu failed)", of->failed) : g_strdup("duration");
    g_snprintf(count, sizeof count, "%s%zu", of->is_partial ? "\342\211\245" : "", of->count);
    axis_span_label(of->p50_ns, p50);
    axis_span_label(of->p99_ns, p99);
    axis_span_label(of->max_ns, max);
    const char *texts[] = {name, count, p50, p99, max};
    table_add(table, texts);
    table_link(table, 4, p->go, p->user, longest->step_ns, longest->step_place);
    side_panel_add(p, table);
    g_free(name);
}

/* Returns the sum of the times of a lifeline's segments. */
static double sum_of_segments(const statistics *of, size_t lifeline)
{
    double sum_ns = 0;
    for (guint i = 0; i < of->segments->len; i++) {
        const segment_statistics *one = &g_array_index(of->segments, segment_statistics, i);
        sum_ns += one->lifeline == lifeline && !one->is_span ? one->sum_ns : 0;
    }
    return sum_ns;
}

static void add_segment_statistics(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Segment", "#n", "#share", "#p50", "#p99", "#max", NULL};
    const drawing *d = model_drawing(p->model);
    size_t shown = SIZE_MAX;
    GtkWidget *table = NULL;
    double all_ns = 0;
    for (guint i = 0; i < of->segments->len; i++) {
        const segment_statistics *one = &g_array_index(of->segments, segment_statistics, i);
        const drawing_lifeline *definition = g_ptr_array_index(d->lifelines, one->lifeline);
        if (one->lifeline != shown) {
            table = table_new(definition->name, columns);
            side_panel_add(p, table);
            shown = one->lifeline;
            all_ns = sum_of_segments(of, shown);
        }
        char *name = one->is_span
                         ? g_strdup_printf("%s … %s", definition->events[one->from], definition->events[one->to])
                         : g_strdup_printf("%s → %s", definition->events[one->from], definition->events[one->to]);
        char count[32], share[32], p50[32], p99[32], max[32];
        g_snprintf(count, sizeof count, "%zu", one->count);
        g_snprintf(share, sizeof share, "%.1f %%", all_ns > 0 ? 100 * one->sum_ns / all_ns : 0);
        axis_span_label(one->p50_ns, p50);
        axis_span_label(one->p99_ns, p99);
        axis_span_label(one->max_ns, max);
        const char *texts[] = {name, count, one->is_span ? "" : share, p50, p99, max};
        table_add(table, texts);
        link_record(p, table, 5, s, one->max_record);
        g_free(name);
    }
}

/* Writes a value of a measurement with a prefix, such as "1.5 G". */
static void write_value(double value, char text[32])
{
    g_snprintf(text, 32, "%.4g", value);
    value = strtod(text, NULL);
    axis_number_label(value, fabs(value) / 1000, text);
}

static void add_loadline_statistics(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Measurement", "Host", "#min", "#mean", "#max", NULL};
    if (of->loadlines->len == 0)
        return;
    GtkWidget *table = table_new("Measurements", columns);
    for (guint i = 0; i < of->loadlines->len; i++) {
        const loadline_statistics *one = &g_array_index(of->loadlines, loadline_statistics, i);
        const drawing_loadline *definition = g_ptr_array_index(model_drawing(p->model)->loadlines, one->loadline);
        char min[32], mean[32], max[32];
        write_value(one->min, min);
        write_value(one->mean, mean);
        write_value(one->max, max);
        char *name = *definition->unit != '\0' ? g_strdup_printf("%s, %s", definition->name, definition->unit)
                                               : g_strdup(definition->name);
        const char *texts[] = {name, names_text(s->names.hosts, one->host), min, mean, max};
        table_add(table, texts);
        link_record(p, table, 4, s, one->max_record);
        g_free(name);
    }
    side_panel_add(p, table);
}

static void add_event_counts(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Event", "#records", "#share", NULL};
    GtkWidget *table = table_new("Events", columns);
    for (guint i = 0; i < of->events->len && i < EVENTS_MAX; i++) {
        const event_count *one = &g_array_index(of->events, event_count, i);
        char count[32], share[32];
        g_snprintf(count, sizeof count, "%zu", one->count);
        g_snprintf(share, sizeof share, "%.1f %%", 100 * (double)one->count / (double)MAX(of->records, 1));
        const char *name = names_text(s->names.events, one->event);
        const char *texts[] = {*name != '\0' ? name : "(none)", count, share};
        table_add(table, texts);
    }
    side_panel_add(p, table);
}

void side_panel_show_range(side_panel *p, int64_t from_ns, int64_t to_ns)
{
    side_panel_begin(p);
    model_lock(p->model);
    const store *s = model_store(p->model);
    statistics *of = statistics_new(p->model, from_ns, to_ns);
    char span[32], from[AXIS_TIME_SIZE];
    axis_span_label((double)(to_ns - from_ns), span);
    scene_write_time(p->model, p->clock, from_ns, from);
    char *text =
        g_strdup_printf("<b>%s marked</b>\nfrom %s\n%zu record%s%s", span, from, of->records, nl_plural(of->records),
                        of->sampled ? "; percentiles and means come from a sample" : "");
    side_panel_add_text(p, text);
    g_free(text);
    add_request_statistics(p, &of->requests);
    add_segment_statistics(p, s, of);
    add_loadline_statistics(p, s, of);
    add_event_counts(p, s, of);
    statistics_free(of);
    model_unlock(p->model);
    show(p);
}

void side_panel_appear(side_panel *p)
{
    GtkWidget *paned = gtk_widget_get_parent(p->widget);
    const int width = gtk_widget_get_allocated_width(paned);
    gboolean was_placed;
    g_object_get(paned, "position-set", &was_placed, NULL);
    if (!was_placed && width > WIDTH_MIN) /* before this, the paned has no size */
        gtk_paned_set_position(GTK_PANED(paned), MAX(width - WIDTH, width / 2));
    gtk_widget_show(p->widget);
}

void side_panel_set_clock(side_panel *p, axis_clock clock)
{
    p->clock = clock;
}

void side_panel_set_dark(side_panel *p, bool dark)
{
    p->dark = dark;
}

void side_panel_show_hint(side_panel *p)
{
    side_panel_begin(p);
    side_panel_add_text(
        p, "<b>Nothing chosen</b>\n\nClick a lifeline to see its records and durations.\n\nDrag with "
           "the right button (or Ctrl) over a time range for its statistics.\n\nDrag with Shift to zoom. F1 "
           "lists all keys.");
    show(p);
}

static void side_panel_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

side_panel *side_panel_new(model *m, side_panel_go *go, void *user)
{
    side_panel *p = g_new0(side_panel, 1);
    p->model = m;
    p->go = go;
    p->user = user;
    p->content = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6);
    g_object_set(p->content, "margin", 10, NULL);
    p->widget = gtk_scrolled_window_new(NULL, NULL);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(p->widget), GTK_POLICY_AUTOMATIC, GTK_POLICY_AUTOMATIC);
    gtk_widget_set_size_request(p->widget, WIDTH_MIN, -1);
    gtk_container_add(GTK_CONTAINER(p->widget), p->content);
    atk_object_set_name(gtk_widget_get_accessible(p->widget), "Details");
    g_signal_connect(p->widget, "destroy", G_CALLBACK(side_panel_on_destroy), p);
    side_panel_show_hint(p);
    return p;
}

GtkWidget *side_panel_widget(side_panel *p)
{
    return p->widget;
}
