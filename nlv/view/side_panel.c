#include "config.h"

#include "view/side_panel.h"

#include "base/text.h"
#include "model/request_lines.h"
#include "model/request_name.h"

#include "model/statistics.h"
#include "scene/axis.h"
#include "view/table.h"
#include "base/time_internal.h"

enum {
    STEPS_MAX = 200,
    EVENTS_MAX = 40,
    WIDTH = 430,     /* initial width in pixels, if the window is at least twice as wide */
    WIDTH_MIN = 200, /* minimum width in pixels */
};

struct side_panel {
    model *model;
    GtkWidget *widget;
    GtkWidget *content;
};

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

/* ---- the chosen lifeline ---- */

/* Returns the indices of an object's records, in order of time. If there are more than STEPS_MAX records, returns only
 * the latest. */
static GArray *steps_of(const store *s, uint32_t object, unsigned layer)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t record = store_last_step(s, object, layer);
    for (; record < s->count && steps->len < STEPS_MAX; record = store_previous(s, record, layer))
        g_array_prepend_val(steps, record);
    return steps;
}

static void add_segments(side_panel *p, const store *s, const request_drawn *request, const GArray *steps,
                         const char *title)
{
    static const char *const columns[] = {"Event", "Host", "#after", "#took", NULL};
    GtkWidget *table = table_new(title, columns);
    int64_t first_ns = steps->len > 0 ? store_time(s, g_array_index(steps, uint32_t, 0)) : 0;
    for (guint i = 0; i < steps->len; i++) {
        uint32_t record = g_array_index(steps, uint32_t, i);
        int64_t time_ns = store_time(s, record);
        char after[32], took[32] = "";
        axis_span_label((double)(time_ns - first_ns), after);
        uint32_t cause = request_lines_cause(request, record);
        if (cause != STORE_NONE)
            axis_span_label((double)(time_ns - store_time(s, cause)), took);
        const char *texts[] = {names_text(s->names.events, store_event(s, record)),
                               names_text(s->names.hosts, store_host(s, record)), after, took};
        table_add(table, texts);
    }
    side_panel_add(p, table);
}

static void add_records(side_panel *p, const GArray *steps)
{
    GString *text = g_string_new("<b>Records</b>");
    for (guint i = 0; i < steps->len; i++) {
        char *line = model_describe(p->model, g_array_index(steps, uint32_t, i));
        char *escaped = g_markup_escape_text(line, -1);
        g_string_append_printf(text, "\n<small>%s</small>", escaped);
        g_free(escaped);
        g_free(line);
    }
    side_panel_add_text(p, text->str);
    g_string_free(text, TRUE);
}

void side_panel_show_lifeline(side_panel *p, size_t lifeline, uint32_t object)
{
    side_panel_begin(p);
    model_lock(p->model);
    const store *s = model_store(p->model);
    if (lifeline < s->spec->lifeline_count) {
        const drawing_lifeline *definition = g_ptr_array_index(model_drawing(p->model)->lifelines, lifeline);
        GArray *steps = steps_of(s, object, s->spec->lifelines[lifeline].layer);
        char *name = steps->len > 0
                         ? request_name_at(p->model, definition,
                                           store_place(model_store(p->model), g_array_index(steps, uint32_t, 0)))
                         : g_strdup("");
        char *title = g_strdup_printf("%s %s", definition->name, name);
        add_segments(p, s, request_lines_find(p->model, lifeline, object), steps, title);
        add_records(p, steps);
        g_array_free(steps, TRUE);
        g_free(title);
        g_free(name);
    }
    model_unlock(p->model);
    show(p);
}

/* ---- the marked time range ---- */

static void add_segment_statistics(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Segment", "#n", "#p50", "#p90", "#p99", "#max", NULL};
    const drawing *d = model_drawing(p->model);
    size_t shown = SIZE_MAX;
    GtkWidget *table = NULL;
    (void)s;
    for (guint i = 0; i < of->segments->len; i++) {
        const segment_statistics *one = &g_array_index(of->segments, segment_statistics, i);
        const drawing_lifeline *definition = g_ptr_array_index(d->lifelines, one->lifeline);
        if (one->lifeline != shown) {
            table = table_new(definition->name, columns);
            side_panel_add(p, table);
            shown = one->lifeline;
        }
        char *name = one->is_span
                         ? g_strdup_printf("%s … %s", definition->events[one->from], definition->events[one->to])
                     : one->to == one->from + 1
                         ? g_strdup_printf("→ %s", definition->events[one->to])
                         : g_strdup_printf("%s → %s", definition->events[one->from], definition->events[one->to]);
        char count[32], p50[32], p90[32], p99[32], max[32];
        g_snprintf(count, sizeof count, "%zu", one->count);
        axis_span_label(one->p50_ns, p50);
        axis_span_label(one->p90_ns, p90);
        axis_span_label(one->p99_ns, p99);
        axis_span_label(one->max_ns, max);
        const char *texts[] = {name, count, p50, p90, p99, max};
        table_add(table, texts);
        g_free(name);
    }
}

static void add_loadline_statistics(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Loadline", "Host", "#min", "#mean", "#max", NULL};
    if (of->loadlines->len == 0)
        return;
    GtkWidget *table = table_new("Loadlines", columns);
    for (guint i = 0; i < of->loadlines->len; i++) {
        const loadline_statistics *one = &g_array_index(of->loadlines, loadline_statistics, i);
        const drawing_loadline *definition = g_ptr_array_index(model_drawing(p->model)->loadlines, one->loadline);
        char min[32], mean[32], max[32];
        g_snprintf(min, sizeof min, "%.6g", one->min);
        g_snprintf(mean, sizeof mean, "%.6g", one->mean);
        g_snprintf(max, sizeof max, "%.6g", one->max);
        const char *texts[] = {definition->name, names_text(s->names.hosts, one->host), min, mean, max};
        table_add(table, texts);
    }
    side_panel_add(p, table);
}

static void add_event_counts(side_panel *p, const store *s, const statistics *of)
{
    static const char *const columns[] = {"Event", "#records", NULL};
    GtkWidget *table = table_new("Events", columns);
    for (guint i = 0; i < of->events->len && i < EVENTS_MAX; i++) {
        const event_count *one = &g_array_index(of->events, event_count, i);
        char count[32];
        g_snprintf(count, sizeof count, "%zu", one->count);
        const char *name = names_text(s->names.events, one->event);
        const char *texts[] = {*name != '\0' ? name : "(none)", count};
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
    char span[32], from[NL_TIME_TEXT_SIZE];
    axis_span_label((double)(to_ns - from_ns), span);
    nl_time_format_iso(from_ns, from);
    char *text =
        g_strdup_printf("<b>%s marked</b>\nfrom %s\n%zu record%s%s", span, from, of->records, nl_plural(of->records),
                        of->sampled ? "; percentiles and means come from a sample" : "");
    side_panel_add_text(p, text);
    g_free(text);
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
    if (!was_placed && width > WIDTH_MIN) /* otherwise, the paned has no size yet */
        gtk_paned_set_position(GTK_PANED(paned), MAX(width - WIDTH, width / 2));
    gtk_widget_show(p->widget);
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

side_panel *side_panel_new(model *m)
{
    side_panel *p = g_new0(side_panel, 1);
    p->model = m;
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
