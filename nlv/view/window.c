#include "config.h"

#include "view/window.h"

#include "base/text.h"
#include "base/error.h"
#include "base/time_internal.h"
#include "model/color_filter.h"
#include "requests/printable.h"
#include "view/bookmarks.h"
#include "view/canvas.h"
#include "view/chooser.h"
#include "view/command_palette.h"
#include "view/commands.h"
#include "view/compare_window.h"
#include "view/editor.h"
#include "view/exporting.h"
#include "view/playback.h"
#include "view/request_pane.h"
#include "view/search_bar.h"
#include "view/sensor_pane.h"
#include "view/session_keeper.h"
#include "view/side_panel.h"
#include "view/slow_watch.h"
#include "view/welcome.h"

#include <limits.h>
#include <string.h>

enum {
    TICK_MS = 30,     /* interval between checks for new data */
    READING_MS = 100, /* minimum interval between pictures while nlv reads a log, which needs the processors */
    NOTICES_MAX = 20,
    NOTICE_BUTTONS = 320,     /* width in pixels of the buttons beside the notices */
    NOTICE_LETTER = 8,        /* approximate width of a letter in pixels */
    NOTICES_HEIGHT_MAX = 160, /* units */
    RESPONSE_MORE = 1,        /* expands or collapses the bar of notices */
    SENSORS_WIDTH_S = 60,     /* width of the first view in seconds if the first log comes from sensors */
};

static const double zoom_step = 0.8, pan_step = 0.1;

typedef struct window {
    GtkWidget *top;
    GtkWidget *stack; /* a stack that shows either the canvas and the side panel, or the welcome page */
    GtkWidget *welcome, *side, *status;
    GtkWidget *threads;                      /* the button that switches between threads and events */
    GtkWidget *info, *info_text, *info_more; /* the bar of notices, and the button that expands it */
    GPtrArray *notices;                      /* the notices in the bar, the newest last */
    bool shows_notices;                      /* each notice has its own line */
    canvas *canvas;
    side_panel *panel;
    request_pane *requests;
    search_bar *search;
    chooser *chooser;
    editor *editor;
    playback *playback;
    sensor_pane *sensors;
    bookmarks *bookmarks;
    exporting *exporting;
    session_keeper *keeper;
    slow_watch *slow;
    compare_window *comparison;
    model *model;
    program_reading *reading;
    char *typed;            /* the filter that the user has typed, or NULL */
    char *drawing_text;     /* the user's drawing; NULL: use the inferred drawing */
    bool is_first_shown;    /* nlv has shown the first record */
    bool has_first_view;    /* the first view is a part of the log, so nlv no longer fits the view to the log */
    bool shows_whole;       /* the user has requested the whole log */
    bool is_touched;        /* the user has moved the view, so nlv no longer fits the view to the log */
    bool is_measuring;      /* the user has marked one end of a measurement */
    bool is_hovering;       /* the status shows text about the record under the pointer */
    double threads_share;   /* progress of reading the threads when the picture was last drawn */
    unsigned found_percent; /* progress of the search for requests, which the status shows; 100: the search has ended */
    bool choice_waits;      /* the model does not yet have the record of the session's chosen lifeline */
    unsigned zone_corrections; /* of the model when nlv showed the first view */
    unsigned generation;       /* the model's generation at the latest drawing */
    gint64 shown_us;           /* time of the latest drawing of the model, in microseconds */
    uint64_t malformed;        /* number of malformed lines and blocks that the notice reports */
    char *malformed_notice;    /* the line that reports malformed input, or NULL */
    int source_count;
    int openings; /* number of threads that are opening a log */
    guint ticking;
} window;

/* Messages from other threads, which the tick callback shows. */
static GAsyncQueue *messages;

/* ---- text ---- */

/* Shows log text in the status label. Replaces with "?" any characters that would reorder or hide the text. */
static void show_status(window *w, const char *text)
{
    char *valid = printable(text);
    gtk_label_set_text(GTK_LABEL(w->status), valid);
    g_free(valid);
}

/* Shows one line that begins with the newest notice. If the user has expanded the bar, shows all lines. */
static void show_info(window *w)
{
    const guint count = w->notices->len;
    const int space = gtk_widget_get_allocated_width(w->top) - NOTICE_BUTTONS;
    const bool is_long =
        count > 1 || (count == 1 && (int)strlen(g_ptr_array_index(w->notices, 0)) * NOTICE_LETTER > space);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < count; i++)
        g_string_append_printf(text, "%s%s",
                               i == 0             ? ""
                               : w->shows_notices ? "\n"
                                                  : "   \342\200\242   ",
                               (const char *)g_ptr_array_index(w->notices, w->shows_notices ? i : count - 1 - i));
    gtk_label_set_text(GTK_LABEL(w->info_text), text->str);
    gtk_widget_set_tooltip_text(w->info_text, text->str); /* needed when the window becomes too narrow for the line */
    gtk_label_set_line_wrap(GTK_LABEL(w->info_text), w->shows_notices);
    gtk_label_set_ellipsize(GTK_LABEL(w->info_text), w->shows_notices ? PANGO_ELLIPSIZE_NONE : PANGO_ELLIPSIZE_END);
    char *more = count > 1 ? g_strdup_printf("Show _all %u notices", count) : g_strdup("Show _all of the notice");
    gtk_button_set_label(GTK_BUTTON(w->info_more), w->shows_notices ? "Show _one line" : more);
    gtk_widget_set_visible(w->info_more, is_long);
    gtk_widget_show(w->info);
    gtk_info_bar_set_revealed(GTK_INFO_BAR(w->info), TRUE);
    g_free(more);
    g_string_free(text, TRUE);
}

/* Adds a notice to the latest notices. If `old` is not NULL, removes the notice `old`. */
static void replace_notice(window *w, const char *old, const char *text)
{
    char *valid = printable(text);
    guint at;
    if (g_ptr_array_find_with_equal_func(w->notices, valid, g_str_equal, &at)) {
        g_free(valid);
        return;
    }
    if (old != NULL && g_ptr_array_find_with_equal_func(w->notices, old, g_str_equal, &at))
        g_ptr_array_remove_index(w->notices, at);
    if (w->notices->len == NOTICES_MAX)
        g_ptr_array_remove_index(w->notices, 0);
    g_ptr_array_add(w->notices, valid);
    show_info(w);
}

static void window_say(void *user, const char *text)
{
    window *w = user;
    g_ptr_array_set_size(w->notices, 0);
    replace_notice(w, NULL, text);
}

static void add_notice(window *w, const char *text)
{
    replace_notice(w, NULL, text);
}

static void on_message(const char *message)
{
    g_async_queue_push(messages, g_strdup(message));
}

/* Shows one line about all malformed input, which replaces the previous line. */
static void show_malformed(window *w)
{
    const uint64_t count = w->reading->malformed;
    if (count == w->malformed)
        return;
    w->malformed = count;
    char *text = g_strdup_printf("%" G_GUINT64_FORMAT " malformed line%s skipped%s %s", count, nl_plural(count),
                                 count == 1 ? ":" : "; the first is", w->reading->first_malformed);
    char *valid = printable(text);
    replace_notice(w, w->malformed_notice, text);
    g_free(w->malformed_notice);
    w->malformed_notice = valid;
    g_free(text);
}

static void show_notices(window *w)
{
    for (char *text; (text = g_async_queue_try_pop(messages)) != NULL || (text = model_take_notice(w->model)) != NULL;
         g_free(text))
        add_notice(w, text);
    show_malformed(w);
}

static void on_info_response(GtkInfoBar *bar, gint response, gpointer user)
{
    window *w = user;
    if (response == RESPONSE_MORE) {
        w->shows_notices = !w->shows_notices;
        show_info(w);
        return;
    }
    w->shows_notices = false;
    g_ptr_array_set_size(w->notices, 0);
    gtk_info_bar_set_revealed(bar, FALSE);
    gtk_widget_hide(GTK_WIDGET(bar));
}

static void show_title(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    char from[AXIS_TIME_SIZE], to[AXIS_TIME_SIZE];
    model_lock(w->model);
    scene_write_time(w->model, view->clock, view->from_ns, from);
    scene_write_time(w->model, view->clock, view->to_ns, to);
    char *title = NULL;
    if (w->source_count == 0)
        title = g_strdup("nlv");
    else if (model_count(w->model) == 0)
        title = g_strdup_printf("nlv: %s  no records yet", model_name(w->model));
    else
        title = g_strdup_printf("nlv: %s  %.23s to %.23s%s", model_name(w->model), from, to,
                                playback_is_live(w->playback) ? "  real time" : "");
    model_unlock(w->model);
    char *valid = printable(title);
    gtk_window_set_title(GTK_WINDOW(w->top), valid);
    g_free(valid);
    g_free(title);
}

static void show_counts(window *w)
{
    GString *text = g_string_new(NULL);
    model_lock(w->model);
    g_string_append_printf(text, "%'zu record%s", model_count(w->model), nl_plural(model_count(w->model)));
    if (store_missing(model_store(w->model)) > 0)
        g_string_append(text, ", the newest");
    if (model_filter(w->model) != NULL)
        g_string_append_printf(text, "   showing only %s (Ctrl+L changes this)", model_filter(w->model));
    if (model_corrects_clocks(w->model))
        g_string_append(text, "   clocks corrected (F7 changes this)");
    model_unlock(w->model);
    if (model_progress(w->model) < 1)
        g_string_append_printf(text, "   reading, %.0f %%", 100 * model_progress(w->model));
    else if (w->found_percent < 100)
        g_string_append_printf(text, "   finding the requests, %u %%", w->found_percent);
    if (playback_speed(w->playback) > 0)
        g_string_append_printf(text, "   playing at %g times real time (the keys , and . change the speed)",
                               playback_speed(w->playback));
    show_status(w, w->source_count > 0 ? text->str : "");
    g_string_free(text, TRUE);
}

/* ---- the view ---- */

static void show_chosen(void *user)
{
    window *w = user;
    if (!side_panel_show_request(w->panel, canvas_view(w->canvas))) {
        side_panel_show_hint(w->panel);
        return;
    }
    side_panel_appear(w->panel);
}

static void show_range(void *user)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    if (!view->has_range) {
        show_chosen(w);
        return;
    }
    side_panel_show_range(w->panel, MIN(view->range_from_ns, view->range_to_ns),
                          MAX(view->range_from_ns, view->range_to_ns));
    side_panel_appear(w->panel);
}

/* Selects the lifeline of the saved session, as soon as the model contains its record. */
static void choose_waiting(window *w)
{
    const session *s = session_keeper_session(w->keeper);
    scene_view *view = canvas_view(w->canvas);
    if (!w->choice_waits)
        return;
    model_lock(w->model);
    const store *from = model_store(w->model);
    const uint32_t record = store_find_place(from, s->choice_ns, s->choice_place);
    const bool found = record != STORE_NONE;
    if (found && s->choice_lifeline < from->spec->lifeline_count) {
        uint32_t object = store_object(from, record, from->spec->lifelines[s->choice_lifeline].layer);
        view->selected = object != STORE_NONE ? (int64_t)object : -1;
        view->selected_lifeline = s->choice_lifeline;
    } else if (found) {
        scene_select(view, from, record);
    }
    model_unlock(w->model);
    w->choice_waits = !found;
    if (found)
        show_chosen(w);
}

/* Shows the whole log while nlv reads it, or if the user has requested the whole log. Otherwise, shows the first view
 * of the log once. */
static void fit(window *w)
{
    if (w->shows_whole || !model_is_settled(w->model) || model_progress(w->model) < 1) {
        canvas_fit(w->canvas);
        return;
    }
    if (w->zone_corrections != model_zone_corrections(w->model)) { /* the times have changed */
        w->zone_corrections = model_zone_corrections(w->model);
        w->has_first_view = false;
    }
    if (!w->has_first_view)
        w->has_first_view = canvas_show_first(w->canvas);
}

static void show_news(window *w)
{
    model_lock(w->model);
    size_t count = model_count(w->model);
    model_unlock(w->model);
    if (!w->is_first_shown && count > 0) {
        w->is_first_shown = true;
        if (!w->is_touched)
            fit(w);
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
        gtk_widget_show(playback_player(w->playback));
    }
    if (playback_is_live(w->playback))
        playback_follow(w->playback);
    choose_waiting(w);
    show_counts(w);
    show_title(w);
    canvas_redraw(w->canvas);
}

/* Shows the progress of the list of requests, unless the status shows text about a record. */
static void show_requests_progress(window *w)
{
    const double progress = model_requests_progress(w->model);
    const unsigned percent = progress > 0 ? (unsigned)(100 * progress) : 100;
    if (percent == w->found_percent)
        return;
    w->found_percent = percent;
    canvas_redraw(w->canvas);
    if (percent == 100 && canvas_view(w->canvas)->has_range && gtk_widget_get_visible(w->side))
        show_range(w); /* with all requests */
    if (!w->is_hovering)
        show_counts(w);
}

static void show_threads_progress(window *w)
{
    const double share = model_threads_progress(w->model);
    if (share == w->threads_share || !canvas_view(w->canvas)->shows_threads)
        return;
    w->threads_share = share;
    canvas_redraw(w->canvas);
}

static gboolean on_tick(gpointer user)
{
    window *w = user;
    show_threads_progress(w);
    unsigned generation = model_generation(w->model);
    search_bar_tick(w->search);
    request_pane_tick(w->requests);
    playback_tick(w->playback);
    show_requests_progress(w);
    compare_window_tick(w->comparison);
    show_notices(w);
    if (slow_watch_tick(w->slow, playback_is_live(w->playback)))
        canvas_redraw(w->canvas);
    if (w->is_first_shown && !playback_is_live(w->playback) && playback_speed(w->playback) == 0)
        session_keeper_tick(w->keeper);
    gint64 now_us = g_get_monotonic_time();
    if (generation == w->generation || (model_progress(w->model) < 1 && now_us - w->shown_us < READING_MS * 1000))
        return G_SOURCE_CONTINUE;
    w->shown_us = now_us;
    w->generation = generation;
    if (!playback_is_live(w->playback) && !w->is_touched)
        fit(w);
    show_news(w);
    return G_SOURCE_CONTINUE;
}

static void on_hover(void *user, const char *text)
{
    window *w = user;
    w->is_hovering = *text != '\0';
    if (w->is_hovering)
        show_status(w, text);
    else
        show_counts(w);
}

static void on_moved(void *user)
{
    window *w = user;
    w->is_touched = true;
    playback_stop(w->playback);
    show_title(w);
}

static void on_playback(void *user)
{
    window *w = user;
    w->is_touched = w->is_touched || playback_speed(w->playback) > 0;
    show_news(w);
}

static void follow(window *w)
{
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    playback_set_live(w->playback, true);
}

static void show_time(window *w, int64_t time_ns)
{
    const scene_view *view = canvas_view(w->canvas);
    int64_t half = (view->to_ns - view->from_ns) / 2;
    canvas_show(w->canvas, time_ns - half, time_ns + half);
}

/* Returns the time of the current search match if the match is visible; otherwise, fallback_ns. */
static int64_t marked_time(window *w, int64_t fallback_ns)
{
    const scene_view *view = canvas_view(w->canvas);
    bool is_visible = view->has_mark && view->mark_ns >= view->from_ns && view->mark_ns <= view->to_ns;
    return is_visible ? view->mark_ns : fallback_ns;
}

/* ---- opening logs ---- */

typedef struct opening {
    window *w;
    char *url;
    nl_error error;   /* NL_ERROR_NONE: the log was opened */
    guint retry_in_s; /* delay after a failure; 0: no retry */
} opening;

enum { RETRY_MIN_S = 2, RETRY_MAX_S = 60 };

static bool is_network(const char *url)
{
    return (strstr(url, "://") != NULL && !g_str_has_prefix(url, "file://")) || g_str_has_prefix(url, "unix:");
}

static void open_again(window *w, const char *url, guint retry_in_s);

static void free_opening(gpointer data)
{
    opening *o = data;
    g_free(o->url);
    g_free(o);
}

static void open_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    (void)source, (void)cancellable;
    opening *o = data;
    bool good = model_add_source(o->w->model, o->url, true);
    if (!good)
        nl_error_save(&o->error);
    g_task_return_boolean(task, good);
}

static gboolean on_retry(gpointer user)
{
    const opening *o = user;
    open_again(o->w, o->url, MIN(2 * o->retry_in_s, RETRY_MAX_S));
    return G_SOURCE_REMOVE;
}

/* Schedules another attempt to open a log, and shows a notice. Another notice already shows why the last attempt
 * failed. */
static void retry_later(const opening *failed)
{
    opening *o = g_new0(opening, 1);
    *o = (opening){.w = failed->w, .url = g_strdup(failed->url), .retry_in_s = failed->retry_in_s};
    char *text = g_strdup_printf("%s: nlv tries again every few seconds", failed->url);
    add_notice(o->w, text);
    g_free(text);
    g_timeout_add_seconds_full(G_PRIORITY_DEFAULT, o->retry_in_s, on_retry, o, free_opening);
}

static void on_opened(GObject *source, GAsyncResult *result, gpointer user)
{
    (void)source;
    window *w = user;
    const opening *o = g_task_get_task_data(G_TASK(result));
    w->openings--;
    if (o->error.code != NL_ERROR_NONE) {
        if (o->retry_in_s == 0)
            window_say(w, o->error.message);
        else
            retry_later(o);
        return;
    }
    w->source_count++;
    w->is_touched = w->has_first_view = false;
    session_keeper_opened(w->keeper, o->url);
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    gtk_widget_grab_focus(canvas_widget(w->canvas));
    if (is_network(o->url))
        follow(w);
    else
        welcome_remember(o->url);
    show_title(w);
}

/* Opens a log in a thread, because a collector may take long to answer. If opening fails, tries again after
 * `retry_in_s` seconds, unless `retry_in_s` is 0. */
static void open_again(window *w, const char *url, guint retry_in_s)
{
    opening *o = g_new0(opening, 1);
    *o = (opening){.w = w, .url = g_strdup(url), .retry_in_s = retry_in_s};
    w->openings++;
    GTask *task = g_task_new(NULL, NULL, on_opened, w);
    g_task_set_task_data(task, o, free_opening);
    g_task_run_in_thread(task, open_in_thread);
    g_object_unref(task);
}

static void open_log(void *user, const char *url)
{
    open_again(user, url, is_network(url) ? RETRY_MIN_S : 0);
}

static void choose_log(void *user)
{
    window *w = user;
    GtkFileChooserNative *dialog =
        gtk_file_chooser_native_new("Open a log", GTK_WINDOW(w->top), GTK_FILE_CHOOSER_ACTION_OPEN, "_Open", "_Cancel");
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(dialog)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(dialog));
        open_log(w, path);
        g_free(path);
    }
    g_object_unref(dialog);
}

static void on_drop(GtkWidget *widget, GdkDragContext *context, int x, int y, GtkSelectionData *data, guint info,
                    guint time, gpointer user)
{
    (void)widget, (void)x, (void)y, (void)info;
    char **uris = gtk_selection_data_get_uris(data);
    for (char **uri = uris; uris != NULL && *uri != NULL; uri++) {
        char *path = g_filename_from_uri(*uri, NULL, NULL);
        if (path != NULL)
            open_log(user, path);
        g_free(path);
    }
    gtk_drag_finish(context, uris != NULL, FALSE, time);
    g_strfreev(uris);
}

/* ---- sensors ---- */

static void on_sensors_begin(void *user, feed *f)
{
    window *w = user;
    model_add_feed(w->model, feed_ref(f), "sensors");
    if (w->source_count++ == 0) {
        scene_view *view = canvas_view(w->canvas);
        view->to_ns = g_get_real_time() * 1000;
        view->from_ns = view->to_ns - SENSORS_WIDTH_S * NL_NS_PER_SECOND;
        w->is_touched = true; /* do not fit the view to the first second */
    }
    follow(w);
}

static void on_sensors_draw(void *user, drawing *loadlines)
{
    window *w = user;
    model_set_extra(w->model, loadlines);
}

static void toggle_sensors(window *w)
{
    GtkWidget *pane = sensor_pane_widget(w->sensors);
    if (!gtk_widget_get_visible(pane)) {
        sensor_pane_show(w->sensors);
        return;
    }
    gtk_widget_hide(pane);
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}

/* ---- searching and filtering ---- */

/* Returns the time at which the search for the next match begins. If the current match is visible, returns the time of
 * the match. Otherwise, returns the time of the left edge of the view or, for a search backwards, of the right edge. */
static int64_t on_where(void *user, bool backwards)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    return marked_time(w, backwards ? view->to_ns : view->from_ns);
}

static void on_found(void *user, int64_t time_ns, uint32_t record)
{
    window *w = user;
    scene_view *view = canvas_view(w->canvas);
    view->has_mark = true;
    view->mark_ns = time_ns;
    if (time_ns < view->from_ns || time_ns > view->to_ns)
        show_time(w, time_ns);
    model_lock(w->model);
    const store *s = model_store(w->model);
    scene_select(view, s, record);
    char *text =
        record < s->count ? scene_describe_record(w->model, canvas_view(w->canvas)->clock, record) : g_strdup("");
    model_unlock(w->model);
    show_chosen(w);
    show_status(w, text);
    g_free(text);
    canvas_redraw(w->canvas);
}

/* ---- requests ---- */

/* Shows a request, with a margin on both sides, and selects it. */
static void show_request(void *user, const request_summary *request)
{
    window *w = user;
    scene_view *view = canvas_view(w->canvas);
    const int64_t margin_ns = request->duration_ns / 10 + 1000;
    canvas_show(w->canvas, request->start_ns - margin_ns, request->start_ns + request->duration_ns + margin_ns);
    view->has_mark = view->has_range = false;
    model_lock(w->model);
    scene_select(view, model_store(w->model),
                 store_find_place(model_store(w->model), request->step_ns, request->step_place));
    model_unlock(w->model);
    show_chosen(w);
    if (view->selected < 0 && !view->has_single)
        show_status(w, "A filter hides the records of this request, or they are no longer in memory");
    canvas_redraw(w->canvas);
}

/* Shows a record, and selects its request. */
static void on_record(void *user, int64_t time_ns, uint64_t place)
{
    window *w = user;
    model_lock(w->model);
    const uint32_t record = store_find_place(model_store(w->model), time_ns, place);
    model_unlock(w->model);
    on_found(w, time_ns, record);
}

/*
 * Shows the slowest failed request of an area. If no request has failed, shows the slowest incomplete request or, if no
 * request is incomplete, the slowest request. Returns false if the area has no request.
 */
static bool on_picked(void *user, const request_choice *area)
{
    window *w = user;
    uint32_t *found;
    request_summary request = {0};
    model_lock(w->model);
    const request_list *l = model_requests(w->model);
    const bool any = l != NULL && request_list_sort(l, area, REQUEST_BY_ERROR, true, 1, &found) > 0;
    if (any)
        request = *request_list_at(l, found[0]);
    if (l != NULL)
        g_free(found);
    model_unlock(w->model);
    if (any)
        show_request(w, &request);
    return any;
}

static void on_brushed(void *user, const request_choice *area)
{
    window *w = user;
    scene_view *view = canvas_view(w->canvas);
    if (area->from_ns != INT64_MIN) /* the area is in the heat map, not in the histogram */
        canvas_show(w->canvas, area->from_ns, area->to_ns);
    request_pane_show_area(w->requests, area);
    view->has_area = true;
    view->area = *area;
    canvas_redraw(w->canvas);
}

/* Handles a click on a number of requests in the legend: lists these requests. */
static void on_listed(void *user, const request_choice *choice)
{
    window *w = user;
    canvas_view(w->canvas)->has_area = false;
    request_pane_show_choice(w->requests, choice);
    canvas_redraw(w->canvas);
}

/* Lists only the slow requests or, if `errors` is true, only the failed and incomplete requests. */
static void list_requests(window *w, bool errors)
{
    model_lock(w->model);
    const request_choice choice = scene_choose_requests(w->model, errors);
    model_unlock(w->model);
    on_listed(w, &choice);
}

static void on_area_cleared(void *user)
{
    window *w = user;
    canvas_view(w->canvas)->has_area = false;
    canvas_redraw(w->canvas);
}

static void on_requests_left(void *user)
{
    window *w = user;
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}

/* Shows only the requests that the typed expression selects, without records whose check boxes are not ticked. Returns
 * false and sets the error if the expression is invalid. */
static bool apply_filter(window *w, const char *typed)
{
    char *ticked = chooser_expression(w->chooser);
    w->has_first_view = false;
    bool good = model_set_filters(w->model, typed, ticked);
    g_free(ticked);
    if (good) {
        canvas_clear(w->canvas);
        show_counts(w);
    }
    return good;
}

static bool on_filter(void *user, const char *expression)
{
    window *w = user;
    if (!apply_filter(w, expression))
        return false;
    g_free(w->typed);
    w->typed = g_strdup(expression);
    return true;
}

/* Isolates or hides the requests with a color. If the color is already isolated or hidden, shows all requests again. */
static void on_colored(void *user, size_t color, bool hides)
{
    window *w = user;
    model_lock(w->model);
    char *filter = color_filter_toggle(w->model, color, hides);
    model_unlock(w->model);
    if (on_filter(w, filter))
        search_bar_set_filter(w->search, filter);
    else
        window_say(w, nl_error_message());
    g_free(filter);
}

static void on_ticked(void *user)
{
    window *w = user;
    if (!apply_filter(w, w->typed))
        window_say(w, nl_error_message());
}

static void on_search_left(void *user)
{
    window *w = user;
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}

/*
 * Shows the window that compares requests. If a time range is marked, compares the requests in this range with the
 * other requests; otherwise, the user describes the sides.
 */
static void compare(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE], *range = NULL;
    if (view->has_range) {
        nl_time_format_ulm(MIN(view->range_from_ns, view->range_to_ns), from);
        nl_time_format_ulm(MAX(view->range_from_ns, view->range_to_ns), to);
        range = g_strdup_printf("DATE >= %s && DATE < %s", from, to);
    }
    compare_window_show(w->comparison, range, NULL, view->dark);
    g_free(range);
}

/* ---- the session ---- */

static void note_choice(window *w, session *s)
{
    const scene_view *view = canvas_view(w->canvas);
    if (w->choice_waits) /* keep the chosen lifeline of the session */
        return;
    s->has_choice = false;
    model_lock(w->model);
    const store *from = model_store(w->model);
    size_t lifeline;
    uint32_t record;
    if (scene_find_selected(view, from, &lifeline, &record)) {
        s->has_choice = true;
        s->choice_ns = store_time(from, record);
        s->choice_place = store_place(from, record);
        s->choice_lifeline = lifeline;
    }
    model_unlock(w->model);
}

static void on_note_session(void *user, session *s)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    bool is_live = playback_is_live(w->playback);
    s->all = !w->is_touched && !is_live;
    if (!is_live && playback_speed(w->playback) == 0) { /* if the view moves automatically, do not store it */
        s->from_ns = view->from_ns;
        s->to_ns = view->to_ns;
    }
    s->clocks = model_corrects_clocks(w->model);
    s->clock = view->clock;
    s->threads = view->shows_threads;
    s->collapsed = view->collapsed;
    s->expanded = view->expanded;
    s->pinned = view->pinned;
    g_free(s->filter);
    s->filter = g_strdup(w->typed);
    for (int i = 0; i < SESSION_NAMES; i++) {
        g_strfreev(s->hidden[i]);
        s->hidden[i] = chooser_hidden(w->chooser, i);
    }
    g_free(s->drawing);
    s->drawing = g_strdup(w->drawing_text);
    note_choice(w, s);
}

static void apply_drawing(window *w, const char *text)
{
    drawing *d = text != NULL ? drawing_parse(text) : NULL;
    if (text != NULL && d == NULL) {
        window_say(w, nl_error_message());
        return;
    }
    g_free(w->drawing_text);
    w->drawing_text = g_strdup(text);
    w->has_first_view = false;
    model_set_drawing(w->model, d);
}

static bool has_same_hidden(const session *a, const session *b)
{
    for (int i = 0; i < SESSION_NAMES; i++)
        if (!g_strv_equal((const char *const *)a->hidden[i], (const char *const *)b->hidden[i]))
            return false;
    return true;
}

static void apply_filters(window *w, const session *s)
{
    for (int i = 0; i < SESSION_NAMES; i++)
        chooser_hide(w->chooser, i, s->hidden[i]);
    g_free(w->typed);
    w->typed = g_strdup(s->filter);
    search_bar_set_filter(w->search, w->typed);
    on_ticked(w);
}

/* Sets the clock of all times that the window shows. */
static void set_clock(window *w, axis_clock clock)
{
    canvas_view(w->canvas)->clock = clock;
    request_pane_set_clock(w->requests, clock);
    side_panel_set_clock(w->panel, clock);
    if (gtk_widget_get_visible(w->side))
        show_range(w);
    show_title(w);
    canvas_redraw(w->canvas);
}

static void on_apply_session(void *user, const session *before, const session *s)
{
    window *w = user;
    scene_view *view = canvas_view(w->canvas);
    if (g_strcmp0(before->drawing, s->drawing) != 0)
        apply_drawing(w, s->drawing);
    if (g_strcmp0(before->filter, s->filter) != 0 || !has_same_hidden(before, s))
        apply_filters(w, s);
    if (before->clocks != s->clocks)
        model_correct_clocks(w->model, s->clocks);
    w->is_touched = !s->all;
    if (s->all) {
        canvas_fit(w->canvas);
    } else if (s->from_ns < s->to_ns) {
        view->from_ns = s->from_ns;
        view->to_ns = s->to_ns;
    }
    view->collapsed = s->collapsed;
    view->expanded = s->expanded;
    view->pinned = s->pinned;
    set_clock(w, s->clock < AXIS_CLOCKS ? (axis_clock)s->clock : AXIS_UTC);
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->threads), s->threads);
    view->marks = s->marks;
    bookmarks_replace_session(w->bookmarks, session_keeper_session(w->keeper));
    view->selected = -1;
    view->has_single = false;
    w->choice_waits = s->has_choice;
    if (!s->has_choice)
        show_chosen(w);
    show_news(w);
}

static void undo(window *w, int step)
{
    const char *difference = session_keeper_undo(w->keeper, step);
    char *text = difference != NULL ? g_strdup_printf("%s: %s", step < 0 ? "Undone" : "Redone", difference)
                                    : g_strdup(step < 0 ? "Nothing to undo" : "Nothing to redo");
    show_status(w, text);
    g_free(text);
}

static void on_marks(void *user)
{
    window *w = user;
    canvas_redraw(w->canvas);
}

static void on_go(void *user, int64_t time_ns)
{
    show_time(user, time_ns);
}

/*
 * Applies the drawing from the editor, or the inferred drawing if `d` is NULL. Clears the selection, which belongs to
 * the previous drawing.
 */
static void on_drawing(void *user, drawing *d)
{
    window *w = user;
    canvas_clear(w->canvas);
    g_free(w->drawing_text);
    w->drawing_text = d != NULL ? drawing_text(d) : NULL;
    w->has_first_view = false;
    model_set_drawing(w->model, d);
}

/* ---- commands ---- */

static int64_t middle_of_view(const scene_view *view)
{
    return view->from_ns + (view->to_ns - view->from_ns) / 2;
}

static void add_bookmark(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    session *s = session_keeper_session(w->keeper);
    int64_t time_ns;
    if (!canvas_pointed(w->canvas, &time_ns))
        time_ns = view->has_mark ? view->mark_ns : middle_of_view(view);
    guint at = session_mark_add(s, time_ns, "");
    bookmarks_show(w->bookmarks, s, (int)at);
    canvas_redraw(w->canvas);
}

static void show_next_bookmark(window *w, bool backwards)
{
    scene_view *view = canvas_view(w->canvas);
    const session_mark *mark =
        session_mark_next(session_keeper_session(w->keeper), marked_time(w, middle_of_view(view)), backwards);
    if (mark == NULL) {
        show_status(w, "No bookmark there");
        return;
    }
    view->has_mark = true;
    view->mark_ns = mark->time_ns;
    char *text = g_strdup_printf("Bookmark: %s", mark->note);
    show_time(w, mark->time_ns);
    show_status(w, text);
    g_free(text);
}

/* Marks one end of a measurement, at the time of the pointer or of the record below the pointer. The next call marks
 * the other end and shows the measurement. */
static void measure(window *w)
{
    scene_view *view = canvas_view(w->canvas);
    int64_t time_ns;
    if (!canvas_pointed(w->canvas, &time_ns))
        return;
    if (w->is_measuring) {
        view->has_range = true;
        view->is_zooming = false;
        view->range_from_ns = view->mark_ns;
        view->range_to_ns = time_ns;
        show_range(w);
    }
    view->has_mark = !w->is_measuring;
    view->mark_ns = time_ns;
    w->is_measuring = !w->is_measuring;
    show_status(w, w->is_measuring ? "Press M at the other end to measure the time between the two points" : "");
    canvas_redraw(w->canvas);
}

static void show_all(window *w)
{
    scene_view *view = canvas_view(w->canvas);
    int64_t from_ns = view->from_ns, to_ns = view->to_ns;
    canvas_fit(w->canvas);
    int64_t all_from_ns = view->from_ns, all_to_ns = view->to_ns;
    view->from_ns = from_ns;
    view->to_ns = to_ns;
    canvas_show(w->canvas, all_from_ns, all_to_ns);
    w->is_touched = false; /* the view must include new records */
    w->shows_whole = true;
}

/*
 * Hides the table of requests if it has the focus. Otherwise, hides the search bar. If the bar is already hidden,
 * removes all marks.
 */
static void clear(window *w)
{
    GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(w->top));
    if (focus != NULL && gtk_widget_is_ancestor(focus, request_pane_widget(w->requests))) {
        request_pane_hide(w->requests);
        return;
    }
    if (w->source_count > 0)
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    if (search_bar_hide(w->search))
        return;
    if (canvas_view(w->canvas)->has_area)
        request_pane_clear_area(w->requests);
    canvas_clear(w->canvas);
}

static void connect_to_collector(window *w)
{
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "welcome");
    welcome_begin_address(w->welcome);
}

static void toggle_dark(window *w)
{
    bool dark = !canvas_view(w->canvas)->dark;
    canvas_view(w->canvas)->dark = dark;
    g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", dark, NULL);
    request_pane_set_dark(w->requests, dark);
    side_panel_set_dark(w->panel, dark);
    if (gtk_widget_get_visible(side_panel_widget(w->panel)))
        show_range(w); /* write the notices again in the colors of the theme */
    canvas_redraw(w->canvas);
}

static void toggle_clocks(window *w)
{
    canvas_clear(w->canvas);
    model_correct_clocks(w->model, !model_corrects_clocks(w->model));
}

static void show_keys(window *w)
{
    GtkWidget *dialog = gtk_dialog_new_with_buttons("Keys and pointer", GTK_WINDOW(w->top),
                                                    GTK_DIALOG_MODAL | GTK_DIALOG_DESTROY_WITH_PARENT, "_Close",
                                                    GTK_RESPONSE_CLOSE, NULL);
    GtkWidget *label = gtk_label_new(NULL), *scrolled = gtk_scrolled_window_new(NULL, NULL);
    char *text = commands_help();
    gtk_label_set_markup(GTK_LABEL(label), text);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    g_free(text);
    g_object_set(label, "margin", 12, NULL);
    g_object_set(scrolled, "propagate-natural-height", TRUE, "max-content-height", 560, "hscrollbar-policy",
                 GTK_POLICY_NEVER, "vexpand", TRUE, NULL);
    gtk_container_add(GTK_CONTAINER(scrolled), label);
    gtk_container_add(GTK_CONTAINER(gtk_dialog_get_content_area(GTK_DIALOG(dialog))), scrolled);
    gtk_widget_show_all(dialog);
    gtk_dialog_run(GTK_DIALOG(dialog));
    gtk_widget_destroy(dialog);
}

static void on_command(void *user, command which)
{
    window *w = user;
    switch (which) {
    case COMMAND_OPEN:
        choose_log(w);
        break;
    case COMMAND_CONNECT:
        connect_to_collector(w);
        break;
    case COMMAND_EXPORT:
        exporting_picture(w->exporting);
        break;
    case COMMAND_EXPORT_RECORDS:
        exporting_records(w->exporting);
        break;
    case COMMAND_PRINT:
        exporting_print(w->exporting);
        break;
    case COMMAND_LAST_TIME:
        if (!session_keeper_restore(w->keeper))
            window_say(w, "There is no saved session for these logs");
        break;
    case COMMAND_QUIT:
        gtk_widget_destroy(w->top);
        break;
    case COMMAND_UNDO:
        undo(w, -1);
        break;
    case COMMAND_REDO:
        undo(w, 1);
        break;
    case COMMAND_EDIT:
        editor_show(w->editor);
        break;
    case COMMAND_BOOKMARK:
        add_bookmark(w);
        break;
    case COMMAND_BOOKMARKS:
        bookmarks_show(w->bookmarks, session_keeper_session(w->keeper), -1);
        break;
    case COMMAND_NEXT_BOOKMARK:
        show_next_bookmark(w, false);
        break;
    case COMMAND_PREVIOUS_BOOKMARK:
        show_next_bookmark(w, true);
        break;
    case COMMAND_MEASURE:
        measure(w);
        break;
    case COMMAND_ALL:
        show_all(w);
        break;
    case COMMAND_ZOOM_IN:
        canvas_zoom(w->canvas, zoom_step);
        break;
    case COMMAND_ZOOM_OUT:
        canvas_zoom(w->canvas, 1 / zoom_step);
        break;
    case COMMAND_LEFT:
        canvas_pan(w->canvas, -pan_step);
        break;
    case COMMAND_RIGHT:
        canvas_pan(w->canvas, pan_step);
        break;
    case COMMAND_BACK:
        canvas_go(w->canvas, -1);
        break;
    case COMMAND_FORWARD:
        canvas_go(w->canvas, 1);
        break;
    case COMMAND_ZOOM_TO_MARKED:
        canvas_show_range(w->canvas);
        break;
    case COMMAND_CLEAR:
        clear(w);
        break;
    case COMMAND_SIDE:
        if (gtk_widget_get_visible(w->side))
            gtk_widget_hide(w->side);
        else
            side_panel_appear(w->panel);
        break;
    case COMMAND_DARK:
        toggle_dark(w);
        break;
    case COMMAND_SENSORS:
        toggle_sensors(w);
        break;
    case COMMAND_REAL_TIME:
        playback_set_live(w->playback, !playback_is_live(w->playback));
        break;
    case COMMAND_CLOCKS:
        toggle_clocks(w);
        break;
    case COMMAND_PLAY:
        playback_toggle(w->playback);
        break;
    case COMMAND_FASTER:
        playback_speed_up(w->playback, 2);
        break;
    case COMMAND_SLOWER:
        playback_speed_up(w->playback, 0.5);
        break;
    case COMMAND_FIND:
        search_bar_begin_find(w->search);
        break;
    case COMMAND_NEXT:
        search_bar_next(w->search, false);
        break;
    case COMMAND_PREVIOUS:
        search_bar_next(w->search, true);
        break;
    case COMMAND_FILTER:
        search_bar_begin_filter(w->search);
        break;
    case COMMAND_CHOOSE:
        chooser_show(w->chooser);
        break;
    case COMMAND_REQUESTS:
    case COMMAND_FAILED:
        request_pane_show(w->requests, which == COMMAND_FAILED);
        break;
    case COMMAND_ONLY_SLOW:
    case COMMAND_ONLY_FAILED:
        list_requests(w, which == COMMAND_ONLY_FAILED);
        break;
    case COMMAND_BRUSH:
        if (!canvas_begin_brush(w->canvas))
            show_status(w, "There is no heat map, because nlv has found no requests");
        break;
    case COMMAND_LEGEND:
        if (!canvas_begin_legend(w->canvas))
            show_status(w, "The legend has no colors to show or hide");
        break;
    case COMMAND_CLOCK:
        set_clock(w, (canvas_view(w->canvas)->clock + 1) % AXIS_CLOCKS);
        break;
    case COMMAND_EXPAND:
        if (!canvas_expand_next(w->canvas))
            show_status(w, "No track is collapsed");
        break;
    case COMMAND_TRACK:
        if (!canvas_begin_track(w->canvas))
            show_status(w, "There are no tracks");
        break;
    case COMMAND_SCROLL_UP:
    case COMMAND_SCROLL_DOWN:
        if (!canvas_scroll_page(w->canvas, which == COMMAND_SCROLL_DOWN ? 1 : -1))
            show_status(w, "All tracks are visible");
        break;
    case COMMAND_THREADS:
        gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->threads), !canvas_view(w->canvas)->shows_threads);
        break;
    case COMMAND_COMPARE:
        compare(w);
        break;
    case COMMAND_PALETTE:
        command_palette_show(w->top, on_command, w);
        break;
    case COMMAND_SHORTCUTS:
        show_keys(w);
        break;
    case COMMAND_NONE:
        break;
    }
}

/* Returns whether the focused widget is in a popover that is not visible yet and therefore cannot accept a key. */
static bool is_focus_coming(GtkWidget *top)
{
    GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(top));
    return focus != NULL && !gtk_widget_get_realized(focus);
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    window *w = user;
    GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(widget));
    bool in_pane = focus != NULL && (gtk_widget_is_ancestor(focus, sensor_pane_widget(w->sensors)) ||
                                     gtk_widget_is_ancestor(focus, request_pane_widget(w->requests)));
    if (focus == canvas_widget(w->canvas) && canvas_handle_key(w->canvas, event))
        return TRUE;
    command which = commands_of_key(event, GTK_IS_EDITABLE(focus) || in_pane);
    if (which == COMMAND_NONE)
        return is_focus_coming(widget);
    on_command(w, which);
    return TRUE;
}

static gboolean on_key_release(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    (void)event, (void)user;
    return is_focus_coming(widget);
}

/* ---- construction of the window ---- */

/* Hides a widget until a call of gtk_widget_show. */
static void hide_at_first(GtkWidget *widget)
{
    gtk_widget_show_all(widget);
    gtk_widget_set_no_show_all(widget, TRUE);
    gtk_widget_hide(widget);
}

static void on_threads(GtkToggleButton *button, gpointer user)
{
    window *w = user;
    canvas_show_threads(w->canvas, gtk_toggle_button_get_active(button));
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}

static GtkWidget *make_top_bar(window *w)
{
    GtkWidget *bar = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    gtk_box_pack_start(GTK_BOX(bar), commands_menu_bar(on_command, w), TRUE, TRUE, 0);
    w->threads = gtk_toggle_button_new_with_label("Threads");
    gtk_widget_set_tooltip_text(w->threads, "Show a row for each thread, with its spans and states (V)");
    g_signal_connect(w->threads, "toggled", G_CALLBACK(on_threads), w);
    gtk_box_pack_end(GTK_BOX(bar), playback_button(w->playback), FALSE, FALSE, 4);
    gtk_box_pack_end(GTK_BOX(bar), w->threads, FALSE, FALSE, 0);
    return bar;
}

static GtkWidget *make_info(window *w)
{
    w->info = gtk_info_bar_new();
    w->info_text = gtk_label_new("");
    w->notices = g_ptr_array_new_with_free_func(g_free);
    gtk_label_set_xalign(GTK_LABEL(w->info_text), 0);
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    g_object_set(scrolled, "hscrollbar-policy", GTK_POLICY_NEVER, "max-content-height", NOTICES_HEIGHT_MAX,
                 "propagate-natural-height", TRUE, NULL);
    gtk_container_add(GTK_CONTAINER(scrolled), w->info_text);
    w->info_more = gtk_info_bar_add_button(GTK_INFO_BAR(w->info), "", RESPONSE_MORE);
    gtk_info_bar_add_button(GTK_INFO_BAR(w->info), "_Close", GTK_RESPONSE_CLOSE);
    gtk_info_bar_set_message_type(GTK_INFO_BAR(w->info), GTK_MESSAGE_INFO);
    gtk_box_pack_start(GTK_BOX(gtk_info_bar_get_content_area(GTK_INFO_BAR(w->info))), scrolled, TRUE, TRUE, 0);
    g_signal_connect(w->info, "response", G_CALLBACK(on_info_response), w);
    hide_at_first(w->info);
    return w->info;
}

static GtkWidget *make_main(window *w, const window_options *look)
{
    GtkWidget *pane = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL), *both = gtk_paned_new(GTK_ORIENTATION_VERTICAL);
    w->canvas = canvas_new(w->model, look->dark,
                           (canvas_callbacks){on_hover, on_moved, show_chosen, show_range, on_picked, on_brushed,
                                              on_listed, on_colored, w});
    scene_view *view = canvas_view(w->canvas);
    view->marks = session_keeper_session(w->keeper)->marks;
    view->flashes = slow_watch_flashes(w->slow);
    if (look->since_ns != INT64_MIN || look->until_ns != INT64_MAX) {
        view->from_ns = look->since_ns != INT64_MIN ? look->since_ns : view->from_ns;
        view->to_ns = look->until_ns != INT64_MAX ? look->until_ns : view->to_ns;
        w->is_touched = view->from_ns < view->to_ns;
    }
    w->panel = side_panel_new(w->model, on_record, w);
    w->side = side_panel_widget(w->panel);
    w->requests =
        request_pane_new(w->model, (request_pane_callbacks){show_request, on_area_cleared, on_requests_left, w});
    gtk_paned_pack1(GTK_PANED(both), pane, TRUE, FALSE);
    gtk_paned_pack2(GTK_PANED(both), request_pane_widget(w->requests), FALSE, FALSE);
    hide_at_first(request_pane_widget(w->requests));
    gtk_paned_pack1(GTK_PANED(pane), canvas_widget(w->canvas), TRUE, FALSE);
    gtk_paned_pack2(GTK_PANED(pane), w->side, FALSE, FALSE);
    hide_at_first(w->side);
    return both;
}

static GtkWidget *make_center(window *w, const window_options *look)
{
    GtkWidget *both = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL);
    w->stack = gtk_stack_new();
    gtk_stack_set_hhomogeneous(GTK_STACK(w->stack), FALSE); /* the canvas may be narrower than the welcome page */
    w->welcome = welcome_new((welcome_callbacks){open_log, choose_log, w});
    gtk_stack_add_named(GTK_STACK(w->stack), w->welcome, "welcome");
    gtk_stack_add_named(GTK_STACK(w->stack), make_main(w, look), "canvas");
    w->sensors = sensor_pane_new(look->directory, (sensor_pane_callbacks){on_sensors_begin, on_sensors_draw, w});
    gtk_paned_pack1(GTK_PANED(both), sensor_pane_widget(w->sensors), FALSE, FALSE);
    gtk_paned_pack2(GTK_PANED(both), w->stack, TRUE, FALSE);
    return both;
}

static GtkWidget *make_foot(window *w)
{
    GtkWidget *foot = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8), *player = playback_player(w->playback);
    w->status = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(w->status), 0);
    gtk_label_set_ellipsize(GTK_LABEL(w->status), PANGO_ELLIPSIZE_END);
    gtk_widget_set_margin_start(w->status, 8);
    gtk_box_pack_start(GTK_BOX(foot), w->status, TRUE, TRUE, 0);
    gtk_box_pack_end(GTK_BOX(foot), player, FALSE, FALSE, 4);
    hide_at_first(player);
    return foot;
}

static void window_on_destroy(GtkWidget *widget, gpointer user)
{
    window *w = user;
    (void)widget;
    g_source_remove(w->ticking); /* stop the ticks before the widgets are destroyed */
    session_keeper_save(w->keeper);
    gtk_main_quit();
}

static void build(window *w, const window_options *look)
{
    w->top = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_default_size(GTK_WINDOW(w->top), 1200, 800);
    gtk_window_set_title(GTK_WINDOW(w->top), "nlv");
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *center = make_center(w, look);
    w->playback = playback_new(w->model, w->canvas, (playback_callbacks){on_playback, w});
    GtkWidget *top_bar = make_top_bar(w);
    w->search = search_bar_new(w->model, (search_bar_callbacks){on_where, on_found, on_filter, on_search_left, w});
    w->chooser = chooser_new(w->model, top_bar, on_ticked, w);
    w->bookmarks = bookmarks_new(top_bar, (bookmarks_callbacks){on_marks, on_go, w});
    w->editor = editor_new(GTK_WINDOW(w->top), w->model, look->config, (editor_callbacks){on_drawing, w});
    w->comparison = compare_window_new(GTK_WINDOW(w->top), w->model);
    w->exporting = exporting_new(GTK_WINDOW(w->top), w->model, w->canvas, window_say, w);
    gtk_box_pack_start(GTK_BOX(box), top_bar, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), make_info(w), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), search_bar_widget(w->search), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), center, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(box), make_foot(w), FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(w->top), box);
    gtk_drag_dest_set(w->top, GTK_DEST_DEFAULT_ALL, NULL, 0, GDK_ACTION_COPY);
    gtk_drag_dest_add_uri_targets(w->top);
    g_signal_connect(w->top, "drag-data-received", G_CALLBACK(on_drop), w);
    g_signal_connect(w->top, "key-press-event", G_CALLBACK(on_key), w);
    g_signal_connect(w->top, "key-release-event", G_CALLBACK(on_key_release), w);
    g_signal_connect(w->top, "destroy", G_CALLBACK(window_on_destroy), w);
    request_pane_set_dark(w->requests, look->dark);
    side_panel_set_dark(w->panel, look->dark);
    if (look->dark)
        g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", TRUE, NULL);
}

/* Opens the sources that are files; nlv opens collectors later, when the window exists. Returns false if all sources
 * are files and nlv can open none of them. */
static bool add_first_sources(window *w, char **sources, int source_count)
{
    bool any = source_count == 0;
    for (int i = 0; i < source_count; i++) {
        any = any || is_network(sources[i]);
        if (is_network(sources[i]) || !model_add_source(w->model, sources[i], true))
            continue;
        w->source_count++;
        welcome_remember(sources[i]);
        session_keeper_opened(w->keeper, sources[i]);
    }
    return any || w->source_count > 0;
}

static void show(window *w, const window_options *look)
{
    gtk_widget_show_all(w->top);
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), w->source_count > 0 ? "canvas" : "welcome");
    if (w->source_count > 0)
        gtk_widget_grab_focus(canvas_widget(w->canvas));
    if (look->threads)
        gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->threads), TRUE);
    if (look->where != NULL && on_filter(w, look->where))
        search_bar_set_filter(w->search, look->where);
    if (look->compares)
        compare_window_show(w->comparison, look->compared[0], look->compared[1], look->dark);
    if (look->directory != NULL)
        sensor_pane_show(w->sensors);
}

int window_run(drawing *d, program_reading *reading, model_options options, char **sources, int source_count,
               const window_options *look)
{
    if (!gtk_init_check(NULL, NULL)) {
        program_error("cannot open a display; use --serve to draw in a browser, or --render FILE to draw a picture");
        return PROGRAM_PROBLEM;
    }
    messages = g_async_queue_new_full(g_free);
    program_set_listener(on_message);
    static window w;                 /* static, because a thread that waits for a collector may outlive this call */
    reading->keeps_malformed = true; /* for show_malformed */
    w = (window){.reading = reading, .model = model_new(d, reading), .generation = UINT_MAX, .found_percent = 100};
    model_set_options(w.model, options);
    w.drawing_text = d != NULL ? drawing_text(d) : NULL;
    w.keeper = session_keeper_new((session_callbacks){on_note_session, on_apply_session, &w});
    w.slow = slow_watch_new(w.model);
    if (!add_first_sources(&w, sources, source_count))
        return PROGRAM_PROBLEM;
    build(&w, look);
    show(&w, look);
    model_start(w.model);
    for (int i = 0; i < source_count; i++)
        if (is_network(sources[i]))
            open_log(&w, sources[i]);
    w.ticking = g_timeout_add(TICK_MS, on_tick, &w);
    gtk_main();
    program_set_listener(NULL);
    session_keeper_free(w.keeper);
    editor_free(w.editor);
    slow_watch_free(w.slow);
    if (w.openings == 0 && !exporting_is_busy(w.exporting)) { /* without threads that still use the objects */
        exporting_free(w.exporting);
        model_free(w.model);
    }
    g_free(w.malformed_notice);
    g_free(w.drawing_text);
    g_free(w.typed);
    return program_reading_finish(reading);
}
