#include "config.h"

#include "view/window.h"

#include "render.h"
#include "view/canvas.h"

#include <string.h>

enum {
    TICK_MS = 40,             /* how often logs are looked at */
    RECORDS_PER_TICK = 20000, /* so that the window stays alive while much is read */
    REGROUP_MS = 250,         /* grouping lifelines costs; so often it is done at most while reading */
};

typedef struct window {
    GtkWidget *top;
    GtkWidget *stack; /* the canvas, or what to do when there is no log */
    GtkWidget *live_button;
    GtkWidget *status;
    canvas *canvas;
    model *model;
    program_reading *reading;
    bool live;
    bool own_change; /* the button is being set by the program, not by the user */
    bool first_shown;
    gint64 last_update_us;
    int source_count;
} window;

static void show_title(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(view->from_ns, from);
    nl_time_format_iso(view->to_ns, to);
    char *title = w->source_count > 0 ? g_strdup_printf("nlv: %s  %.23s to %.23s%s", model_name(w->model), from, to,
                                                        w->live ? "  real time" : "")
                                      : g_strdup("nlv");
    gtk_window_set_title(GTK_WINDOW(w->top), title);
    g_free(title);
}

static void set_live(window *w, bool live)
{
    w->live = live;
    w->own_change = true;
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->live_button), live);
    w->own_change = false;
    show_title(w);
}

static void show_counts(window *w)
{
    char *text = g_strdup_printf("%zu records", trace_count(model_trace(w->model)));
    if (w->reading->malformed > 0) {
        char *more =
            g_strdup_printf("%s, %" G_GUINT64_FORMAT " malformed lines passed over", text, w->reading->malformed);
        g_free(text);
        text = more;
    }
    gtk_label_set_text(GTK_LABEL(w->status), text);
    g_free(text);
}

static void on_hover(void *user, const char *text)
{
    window *w = user;
    if (*text != '\0')
        gtk_label_set_text(GTK_LABEL(w->status), text);
    else
        show_counts(w);
}

/* Whoever moves the view by hand looks at history. */
static void on_moved(void *user)
{
    window *w = user;
    if (w->live)
        set_live(w, false);
    show_title(w);
}

/* In real time the newest record is near the right edge; the width of the view stays. */
static void follow_time(window *w)
{
    int64_t from_ns, to_ns;
    scene_view *view = canvas_view(w->canvas);
    if (!model_time_range(w->model, &from_ns, &to_ns))
        return;
    int64_t width = view->to_ns - view->from_ns;
    view->to_ns = to_ns + width / 50;
    view->from_ns = view->to_ns - width;
}

static void show_news(window *w)
{
    if (!w->first_shown && trace_count(model_trace(w->model)) > 0) {
        w->first_shown = true;
        canvas_fit(w->canvas);
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    }
    if (w->live)
        follow_time(w);
    show_counts(w);
    show_title(w);
    canvas_redraw(w->canvas);
}

static gboolean on_tick(gpointer user)
{
    window *w = user;
    bool more;
    model_read(w->model, RECORDS_PER_TICK, &more);
    gint64 now_us = g_get_monotonic_time();
    if (more && now_us - w->last_update_us < REGROUP_MS * 1000)
        return G_SOURCE_CONTINUE;
    if (!model_update(w->model))
        return G_SOURCE_CONTINUE;
    bool fit = !w->live && w->last_update_us == 0;
    w->last_update_us = now_us;
    if (fit || (more && !w->live))
        canvas_fit(w->canvas);
    show_news(w);
    return G_SOURCE_CONTINUE;
}

static void on_live_toggled(GtkToggleButton *button, gpointer user)
{
    window *w = user;
    if (w->own_change)
        return;
    set_live(w, gtk_toggle_button_get_active(button));
    if (w->live)
        show_news(w);
}

static void add_source(window *w, const char *path)
{
    if (model_add_source(w->model, path, true)) {
        w->source_count++;
        w->first_shown = false;
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
        return;
    }
    GtkWidget *dialog = gtk_message_dialog_new(GTK_WINDOW(w->top), GTK_DIALOG_MODAL, GTK_MESSAGE_ERROR,
                                               GTK_BUTTONS_CLOSE, "%s", nl_error_message());
    gtk_dialog_run(GTK_DIALOG(dialog));
    gtk_widget_destroy(dialog);
}

static void on_open(GtkButton *button, gpointer user)
{
    (void)button;
    window *w = user;
    GtkFileChooserNative *chooser =
        gtk_file_chooser_native_new("Open a log", GTK_WINDOW(w->top), GTK_FILE_CHOOSER_ACTION_OPEN, "_Open", "_Cancel");
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(chooser)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(chooser));
        add_source(w, path);
        g_free(path);
    }
    g_object_unref(chooser);
}

static void on_export(GtkButton *button, gpointer user)
{
    (void)button;
    window *w = user;
    GtkFileChooserNative *chooser = gtk_file_chooser_native_new(
        "Save the picture (.png, .svg or .pdf)", GTK_WINDOW(w->top), GTK_FILE_CHOOSER_ACTION_SAVE, "_Save", "_Cancel");
    gtk_file_chooser_set_current_name(GTK_FILE_CHOOSER(chooser), "nlv.png");
    gtk_file_chooser_set_do_overwrite_confirmation(GTK_FILE_CHOOSER(chooser), TRUE);
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(chooser)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(chooser)), *message = NULL;
        bool good = render_knows(path) && render_to_file(w->model, canvas_view(w->canvas), path, &message);
        gtk_label_set_text(GTK_LABEL(w->status), good              ? path
                                                 : message != NULL ? message
                                                                   : "The name has to end in .png, .svg or .pdf");
        g_free(message);
        g_free(path);
    }
    g_object_unref(chooser);
}

static void on_fit(GtkButton *button, gpointer user)
{
    (void)button;
    window *w = user;
    canvas_fit(w->canvas);
    on_moved(w);
}

static void on_zoom_in(GtkButton *button, gpointer user)
{
    (void)button;
    canvas_zoom(((window *)user)->canvas, 0.5);
}

static void on_zoom_out(GtkButton *button, gpointer user)
{
    (void)button;
    canvas_zoom(((window *)user)->canvas, 2);
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    (void)widget;
    window *w = user;
    bool control = (event->state & GDK_CONTROL_MASK) != 0;
    if (event->keyval == GDK_KEY_space && !control)
        gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->live_button), !w->live);
    else if (event->keyval == GDK_KEY_o && control)
        on_open(NULL, w);
    else if (event->keyval == GDK_KEY_e && control)
        on_export(NULL, w);
    else if (event->keyval == GDK_KEY_q && control)
        gtk_widget_destroy(w->top);
    else
        return FALSE;
    return TRUE;
}

static void on_drop(GtkWidget *widget, GdkDragContext *context, int x, int y, GtkSelectionData *data, guint info,
                    guint time, gpointer user)
{
    (void)widget, (void)x, (void)y, (void)info;
    char **uris = gtk_selection_data_get_uris(data);
    for (char **uri = uris; uris != NULL && *uri != NULL; uri++) {
        char *path = g_filename_from_uri(*uri, NULL, NULL);
        if (path != NULL)
            add_source(user, path);
        g_free(path);
    }
    gtk_drag_finish(context, uris != NULL, FALSE, time);
    g_strfreev(uris);
}

static GtkWidget *add_button(window *w, GtkWidget *bar, const char *icon, const char *tip, GCallback callback)
{
    GtkWidget *button = gtk_button_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON);
    gtk_widget_set_tooltip_text(button, tip);
    gtk_widget_set_can_focus(button, FALSE);
    atk_object_set_name(gtk_widget_get_accessible(button), tip);
    g_signal_connect(button, "clicked", callback, w);
    gtk_header_bar_pack_start(GTK_HEADER_BAR(bar), button);
    return button;
}

static GtkWidget *make_header_bar(window *w)
{
    GtkWidget *bar = gtk_header_bar_new();
    gtk_header_bar_set_show_close_button(GTK_HEADER_BAR(bar), TRUE);
    add_button(w, bar, "document-open-symbolic", "Open a log (Ctrl+O)", G_CALLBACK(on_open));
    add_button(w, bar, "zoom-in-symbolic", "Zoom in (W, +, wheel)", G_CALLBACK(on_zoom_in));
    add_button(w, bar, "zoom-out-symbolic", "Zoom out (S, -, wheel)", G_CALLBACK(on_zoom_out));
    add_button(w, bar, "zoom-fit-best-symbolic", "Show all (Home)", G_CALLBACK(on_fit));
    add_button(w, bar, "document-save-symbolic", "Save the picture (Ctrl+E)", G_CALLBACK(on_export));
    w->live_button = gtk_toggle_button_new_with_label("Real time");
    gtk_widget_set_can_focus(w->live_button, FALSE);
    gtk_widget_set_tooltip_text(w->live_button, "Move on as the log grows (space)");
    g_signal_connect(w->live_button, "toggled", G_CALLBACK(on_live_toggled), w);
    gtk_header_bar_pack_end(GTK_HEADER_BAR(bar), w->live_button);
    return bar;
}

static GtkWidget *make_welcome(void)
{
    GtkWidget *label = gtk_label_new(NULL);
    gtk_label_set_markup(GTK_LABEL(label),
                         "<big><b>No log yet</b></big>\n\nOpen one with Ctrl+O, or drop a file here.\n\n"
                         "From a shell: <tt>nlv a.log</tt>, or <tt>nlv --help</tt>.\n"
                         "An example to look at: <tt>./demo</tt> in NetLogger's sources makes one.");
    gtk_label_set_justify(GTK_LABEL(label), GTK_JUSTIFY_CENTER);
    return label;
}

static void build(window *w, bool dark)
{
    w->top = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_default_size(GTK_WINDOW(w->top), 1200, 800);
    gtk_window_set_titlebar(GTK_WINDOW(w->top), make_header_bar(w));
    w->canvas = canvas_new(w->model, dark, (canvas_callbacks){on_hover, on_moved, w});
    w->stack = gtk_stack_new();
    gtk_stack_add_named(GTK_STACK(w->stack), make_welcome(), "welcome");
    gtk_stack_add_named(GTK_STACK(w->stack), canvas_widget(w->canvas), "canvas");
    w->status = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(w->status), 0);
    gtk_label_set_ellipsize(GTK_LABEL(w->status), PANGO_ELLIPSIZE_END);
    gtk_widget_set_margin_start(w->status, 8);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
    gtk_box_pack_start(GTK_BOX(box), w->stack, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(box), w->status, FALSE, FALSE, 4);
    gtk_container_add(GTK_CONTAINER(w->top), box);
    gtk_drag_dest_set(w->top, GTK_DEST_DEFAULT_ALL, NULL, 0, GDK_ACTION_COPY);
    gtk_drag_dest_add_uri_targets(w->top);
    g_signal_connect(w->top, "drag-data-received", G_CALLBACK(on_drop), w);
    g_signal_connect(w->top, "key-press-event", G_CALLBACK(on_key), w);
    g_signal_connect(w->top, "destroy", G_CALLBACK(gtk_main_quit), NULL);
}

int window_run(drawing *d, program_reading *reading, char **sources, int source_count, bool dark)
{
    if (!gtk_init_check(NULL, NULL)) {
        program_error("there is no display; --render FILE draws without one");
        return PROGRAM_PROBLEM;
    }
    window w = {.reading = reading, .model = model_new(d, reading)};
    for (int i = 0; i < source_count; i++)
        if (model_add_source(w.model, sources[i], true))
            w.source_count++;
    if (source_count > 0 && w.source_count == 0)
        return PROGRAM_PROBLEM;
    build(&w, dark);
    gtk_widget_show_all(w.top);
    gtk_stack_set_visible_child_name(GTK_STACK(w.stack), w.source_count > 0 ? "canvas" : "welcome");
    gtk_widget_grab_focus(canvas_widget(w.canvas));
    guint ticking = g_timeout_add(TICK_MS, on_tick, &w);
    gtk_main();
    g_source_remove(ticking);
    model_free(w.model);
    return program_reading_finish(reading);
}
