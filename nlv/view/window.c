#include "config.h"

#include "view/window.h"

#include "scene/render.h"
#include "view/commands.h"
#include "view/welcome.h"
#include "view/window_private.h"
#include "base/time_internal.h"

#include <limits.h>
#include <string.h>

enum {
    TICK_MS = 30,     /* how often it is looked whether there is something new to be shown */
    READING_MS = 100, /* how often it is shown at most while a log is read, which needs the processors itself */
};

/* ---- what is said ---- */

void window_say(window *w, const char *text)
{
    gtk_label_set_text(GTK_LABEL(w->info_text), text);
    gtk_widget_show(w->info);
    gtk_info_bar_set_revealed(GTK_INFO_BAR(w->info), TRUE);
}

static void on_info_response(GtkInfoBar *bar, gint response, gpointer user)
{
    (void)response, (void)user;
    gtk_info_bar_set_revealed(bar, FALSE);
    gtk_widget_hide(GTK_WIDGET(bar));
}

void window_show_title(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(view->from_ns, from);
    nl_time_format_iso(view->to_ns, to);
    model_lock(w->model);
    char *title = NULL;
    if (w->source_count == 0)
        title = g_strdup("nlv");
    else if (model_count(w->model) == 0)
        title = g_strdup_printf("nlv: %s  nothing yet", model_name(w->model));
    else
        title =
            g_strdup_printf("nlv: %s  %.23s to %.23s%s", model_name(w->model), from, to, w->live ? "  real time" : "");
    model_unlock(w->model);
    gtk_window_set_title(GTK_WINDOW(w->top), title);
    g_free(title);
}

void window_show_counts(window *w)
{
    model_lock(w->model);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%'zu records", model_count(w->model));
    if (model_filter(w->model) != NULL)
        g_string_append_printf(text, "   only %s (Ctrl+L changes that)", model_filter(w->model));
    if (model_corrects_clocks(w->model))
        g_string_append(text, "   clocks corrected (F7 changes that)");
    model_unlock(w->model);
    if (model_progress(w->model) < 1)
        g_string_append_printf(text, "   reading, %.0f %%", 100 * model_progress(w->model));
    if (w->speed > 0)
        g_string_append_printf(text, "   playing at %g times real time (, and . change it)", w->speed);
    gtk_label_set_text(GTK_LABEL(w->status), w->source_count > 0 ? text->str : "");
    g_string_free(text, TRUE);
}

static void show_malformed(window *w)
{
    uint64_t malformed = w->reading->malformed;
    if (malformed == w->malformed)
        return;
    w->malformed = malformed;
    char *text = g_strdup_printf("%" G_GUINT64_FORMAT " malformed lines were passed over", malformed);
    window_say(w, text);
    g_free(text);
}

/* What threads have said, for the tick to show it. */
static GAsyncQueue *messages;

static void on_message(const char *message)
{
    g_async_queue_push(messages, g_strdup(message));
}

/* One below the other, the latest few. */
static void add_notice(window *w, char *text)
{
    enum { LINES = 5 };
    const char *shown = gtk_widget_get_visible(w->info) ? gtk_label_get_text(GTK_LABEL(w->info_text)) : "";
    char **lines = g_strsplit(shown, "\n", -1);
    guint count = g_strv_length(lines), first = count >= LINES ? count - LINES + 1 : 0;
    char *before = g_strjoinv("\n", lines + first);
    char *all = *before != '\0' ? g_strdup_printf("%s\n%s", before, text) : g_strdup(text);
    window_say(w, all);
    g_free(all);
    g_free(before);
    g_strfreev(lines);
    g_free(text);
}

static void show_notices(window *w)
{
    char *text;
    while ((text = g_async_queue_try_pop(messages)) != NULL || (text = model_take_notice(w->model)) != NULL)
        add_notice(w, text);
}

/* ---- moving ---- */

static void on_hover(void *user, const char *text)
{
    window *w = user;
    if (*text != '\0')
        gtk_label_set_text(GTK_LABEL(w->status), text);
    else
        window_show_counts(w);
}

/* Whoever moves the view by hand looks at history. */
static void on_moved(void *user)
{
    window *w = user;
    w->touched = true;
    w->speed = 0;
    if (w->live)
        window_set_live(w, false);
    window_show_title(w);
}

void window_show_chosen(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    if (view->selected < 0) {
        side_panel_show_hint(w->panel);
        return;
    }
    side_panel_show_lifeline(w->panel, view->selected_lifeline, (uint32_t)view->selected);
    gtk_widget_show(w->side);
}

static void on_chosen(void *user)
{
    window_show_chosen(user);
}

void window_show_range(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    if (!view->has_range) {
        window_show_chosen(w);
        return;
    }
    side_panel_show_range(w->panel, MIN(view->range_from_ns, view->range_to_ns),
                          MAX(view->range_from_ns, view->range_to_ns));
    gtk_widget_show(w->side);
}

static void on_ranged(void *user)
{
    window_show_range(user);
}

/* ---- what comes ---- */

void window_show_news(window *w)
{
    model_lock(w->model);
    size_t count = model_count(w->model);
    model_unlock(w->model);
    if (!w->first_shown && count > 0) {
        w->first_shown = true;
        if (!w->touched)
            canvas_fit(w->canvas);
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    }
    if (w->live)
        window_follow_time(w);
    window_choose_waiting(w);
    window_show_counts(w);
    window_show_title(w);
    canvas_redraw(w->canvas);
}

static gboolean on_tick(gpointer user)
{
    window *w = user;
    unsigned generation = model_generation(w->model);
    search_bar_tick(w->search);
    if (w->speed > 0)
        window_play_on(w);
    show_malformed(w);
    show_notices(w);
    window_session_look(w);
    window_show_player(w);
    gint64 now_us = g_get_monotonic_time();
    if (generation == w->generation || (model_progress(w->model) < 1 && now_us - w->shown_us < READING_MS * 1000))
        return G_SOURCE_CONTINUE;
    w->shown_us = now_us;
    w->generation = generation;
    if (!w->live && !w->touched)
        canvas_fit(w->canvas);
    window_show_news(w);
    return G_SOURCE_CONTINUE;
}

/* ---- logs ---- */

static void on_open(void *user, const char *url)
{
    window_open(user, url);
}

static void on_choose_log(void *user)
{
    window_choose_log(user);
}

/* ---- searching ---- */

/* The next match is looked for from the one before, while that is visible; else from the middle of the view. */
static int64_t where_to_search(void *user, bool backwards)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    (void)backwards;
    if (view->has_mark && view->mark_ns >= view->from_ns && view->mark_ns <= view->to_ns)
        return view->mark_ns;
    return backwards ? view->to_ns : view->from_ns;
}

static void on_found(void *user, int64_t time_ns, uint32_t record)
{
    window *w = user;
    scene_view *view = canvas_view(w->canvas);
    view->has_mark = true;
    view->mark_ns = time_ns;
    if (time_ns < view->from_ns || time_ns > view->to_ns) {
        int64_t half = (view->to_ns - view->from_ns) / 2;
        canvas_show(w->canvas, time_ns - half, time_ns + half);
    }
    view->selected = -1;
    model_lock(w->model);
    const store *s = model_store(w->model);
    for (unsigned layer = 0; record < s->count && layer < s->spec->layers && view->selected < 0; layer++) {
        spec_step step = spec_step_of(s->spec, store_event(s, record), layer);
        uint32_t object = store_object(s, record, layer);
        if (step.lifeline == SPEC_NONE || object == STORE_NONE)
            continue;
        view->selected = object;
        view->selected_lifeline = step.lifeline;
    }
    char *text = record < s->count ? model_describe(w->model, record) : g_strdup("");
    model_unlock(w->model);
    on_chosen(w);
    gtk_label_set_text(GTK_LABEL(w->status), text);
    g_free(text);
    canvas_redraw(w->canvas);
}

/* What is shown is what was typed and what is ticked. */
bool window_apply_filter(window *w, const char *typed)
{
    char *ticked = chooser_expression(w->chooser);
    char *both = typed != NULL && ticked != NULL ? g_strdup_printf("(%s) && %s", typed, ticked) : NULL;
    bool good = model_set_filter(w->model, both != NULL ? both : typed != NULL ? typed : ticked);
    g_free(both);
    g_free(ticked);
    if (good) {
        canvas_clear(w->canvas);
        window_show_counts(w);
    }
    return good;
}

static bool on_filter(void *user, const char *expression)
{
    window *w = user;
    /* By itself, as a bracket too many would else be taken for one of ours. */
    nl_filter *alone = expression != NULL ? nl_filter_parse(expression) : NULL;
    if ((expression != NULL && alone == NULL) || !window_apply_filter(w, expression)) {
        nl_filter_free(alone);
        return false;
    }
    nl_filter_free(alone);
    g_free(w->typed);
    w->typed = g_strdup(expression);
    return true;
}

static void on_ticked(void *user)
{
    window *w = user;
    if (!window_apply_filter(w, w->typed))
        window_say(w, nl_error_message());
}

static void on_left(void *user)
{
    window *w = user;
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}

/* ---- bookmarks ---- */

static void on_marks(void *user)
{
    window *w = user;
    canvas_redraw(w->canvas);
}

static void on_go(void *user, int64_t time_ns)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    int64_t half = (view->to_ns - view->from_ns) / 2;
    canvas_show(w->canvas, time_ns - half, time_ns + half);
}

/* ---- the editor ---- */

/* The editor's: another drawing, or (NULL) what is found out. What was chosen is of the former one. */
static void on_drawing(void *user, drawing *d)
{
    window *w = user;
    canvas_clear(w->canvas);
    g_free(w->drawing_text);
    w->drawing_text = d != NULL ? drawing_text(d) : NULL;
    model_set_drawing(w->model, d);
}

/* ---- the keyboard ---- */

/* Whether what has the keyboard, in a popover that was just asked for, is not there yet: it can't take a key. */
static bool is_focus_coming(GtkWidget *top)
{
    GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(top));
    return focus != NULL && !gtk_widget_get_realized(focus);
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    window *w = user;
    GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(widget));
    bool in_pane = focus != NULL && gtk_widget_is_ancestor(focus, sensor_pane_widget(w->sensors));
    command which = commands_of_key(event, GTK_IS_EDITABLE(focus) || in_pane);
    if (which == COMMAND_NONE)
        return is_focus_coming(widget);
    window_command(w, which);
    return TRUE;
}

static gboolean on_key_release(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    (void)event, (void)user;
    return is_focus_coming(widget);
}

static void on_live_toggled(GtkToggleButton *button, gpointer user)
{
    window *w = user;
    if (w->own_change)
        return;
    w->speed = 0;
    window_set_live(w, gtk_toggle_button_get_active(button));
    if (w->live)
        window_show_news(w);
}

/* ---- making it ---- */

static GtkWidget *make_top_bar(window *w)
{
    GtkWidget *bar = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    w->live_button = gtk_toggle_button_new_with_label("Real time");
    gtk_widget_set_can_focus(w->live_button, FALSE);
    gtk_widget_set_tooltip_text(w->live_button, "Move on as the log grows (space)");
    g_signal_connect(w->live_button, "toggled", G_CALLBACK(on_live_toggled), w);
    gtk_box_pack_start(GTK_BOX(bar), commands_menu_bar(window_command, w), TRUE, TRUE, 0);
    gtk_box_pack_end(GTK_BOX(bar), w->live_button, FALSE, FALSE, 4);
    return bar;
}

static GtkWidget *make_info(window *w)
{
    w->info = gtk_info_bar_new();
    w->info_text = gtk_label_new("");
    gtk_label_set_line_wrap(GTK_LABEL(w->info_text), TRUE);
    gtk_label_set_xalign(GTK_LABEL(w->info_text), 0);
    gtk_info_bar_add_button(GTK_INFO_BAR(w->info), "_Close", GTK_RESPONSE_CLOSE);
    gtk_info_bar_set_message_type(GTK_INFO_BAR(w->info), GTK_MESSAGE_INFO);
    gtk_container_add(GTK_CONTAINER(gtk_info_bar_get_content_area(GTK_INFO_BAR(w->info))), w->info_text);
    g_signal_connect(w->info, "response", G_CALLBACK(on_info_response), w);
    gtk_widget_show_all(w->info);
    gtk_widget_set_no_show_all(w->info, TRUE);
    gtk_widget_hide(w->info);
    return w->info;
}

static GtkWidget *make_main(window *w, bool dark)
{
    GtkWidget *pane = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL);
    w->canvas = canvas_new(w->model, dark, (canvas_callbacks){on_hover, on_moved, on_chosen, on_ranged, w});
    canvas_view(w->canvas)->marks = w->session->marks;
    w->panel = side_panel_new(w->model);
    w->side = side_panel_widget(w->panel);
    gtk_paned_pack1(GTK_PANED(pane), canvas_widget(w->canvas), TRUE, FALSE);
    gtk_paned_pack2(GTK_PANED(pane), w->side, FALSE, FALSE);
    gtk_widget_show_all(w->side);
    gtk_widget_set_no_show_all(w->side, TRUE);
    gtk_widget_hide(w->side);
    return pane;
}

static void window_on_destroy(GtkWidget *widget, gpointer user)
{
    window *w = user;
    (void)widget;
    g_source_remove(w->ticking); /* what else is due in this turn of the loop finds no widgets any more */
    window_session_keep(w);
    gtk_main_quit();
}

static void build(window *w, const char *directory, bool dark)
{
    w->top = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_default_size(GTK_WINDOW(w->top), 1200, 800);
    gtk_window_set_title(GTK_WINDOW(w->top), "nlv");
    w->stack = gtk_stack_new();
    w->welcome = welcome_new((welcome_callbacks){on_open, on_choose_log, w});
    gtk_stack_add_named(GTK_STACK(w->stack), w->welcome, "welcome");
    gtk_stack_add_named(GTK_STACK(w->stack), make_main(w, dark), "canvas");
    w->search = search_bar_new(w->model, (search_bar_callbacks){where_to_search, on_found, on_filter, on_left, w});
    w->status = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(w->status), 0);
    gtk_label_set_ellipsize(GTK_LABEL(w->status), PANGO_ELLIPSIZE_END);
    gtk_widget_set_margin_start(w->status, 8);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *top_bar = make_top_bar(w);
    w->chooser = chooser_new(w->model, top_bar, on_ticked, w);
    w->bookmarks = bookmarks_new(top_bar, (bookmarks_callbacks){on_marks, on_go, w});
    gtk_box_pack_start(GTK_BOX(box), top_bar, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), make_info(w), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), search_bar_widget(w->search), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), window_sensors_beside(w, directory, w->stack), TRUE, TRUE, 0);
    GtkWidget *foot = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8);
    GtkWidget *player = window_make_player(w);
    gtk_box_pack_start(GTK_BOX(foot), w->status, TRUE, TRUE, 0);
    gtk_box_pack_end(GTK_BOX(foot), player, FALSE, FALSE, 4);
    gtk_box_pack_start(GTK_BOX(box), foot, FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(w->top), box);
    window_accept_drops(w);
    g_signal_connect(w->top, "key-press-event", G_CALLBACK(on_key), w);
    g_signal_connect(w->top, "key-release-event", G_CALLBACK(on_key_release), w);
    g_signal_connect(w->top, "destroy", G_CALLBACK(window_on_destroy), w);
    if (dark)
        g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", TRUE, NULL);
}

static bool add_first_sources(window *w, char **sources, int source_count)
{
    for (int i = 0; i < source_count; i++)
        if (model_add_source(w->model, sources[i], true)) {
            w->source_count++;
            welcome_remember(sources[i]);
            window_session_opened(w, sources[i]);
        }
    return source_count == 0 || w->source_count > 0;
}

int window_run(drawing *d, const char *config, program_reading *reading, model_options options, char **sources,
               int source_count, const char *directory, bool dark)
{
    if (!gtk_init_check(NULL, NULL)) {
        program_error("there is no display; --render FILE draws without one");
        return PROGRAM_PROBLEM;
    }
    messages = g_async_queue_new_full(g_free);
    program_set_listener(on_message);
    static window w; /* a thread that waits for a collector may outlive this call */
    w = (window){.reading = reading, .model = model_new(d, reading), .generation = UINT_MAX, .last_speed = 1};
    model_set_options(w.model, options);
    w.drawing_text = d != NULL ? drawing_text(d) : NULL;
    window_session_begin(&w);
    if (!add_first_sources(&w, sources, source_count))
        return PROGRAM_PROBLEM;
    build(&w, directory, dark);
    w.editor = editor_new(GTK_WINDOW(w.top), w.model, config, (editor_callbacks){on_drawing, &w});
    gtk_widget_show_all(w.top);
    gtk_stack_set_visible_child_name(GTK_STACK(w.stack), w.source_count > 0 ? "canvas" : "welcome");
    if (w.source_count > 0)
        gtk_widget_grab_focus(canvas_widget(w.canvas));
    model_start(w.model);
    if (directory != NULL)
        sensor_pane_show(w.sensors);
    w.ticking = g_timeout_add(TICK_MS, on_tick, &w);
    gtk_main();
    window_session_end(&w);
    program_set_listener(NULL);
    editor_free(w.editor);
    if (w.openings == 0) /* otherwise a thread still waits for a collector, and ends with the program */
        model_free(w.model);
    g_free(w.typed);
    return program_reading_finish(reading);
}
