/* Logs that are opened while the window is there: chosen, dropped on it, or by address. */
#include "config.h"

#include "view/welcome.h"
#include "view/window_private.h"

#include "base/error.h"

#include <string.h>

typedef struct opening {
    window *w;
    char *url;
    nl_error error; /* NL_ERROR_NONE: it was opened */
} opening;

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

static void on_opened(GObject *source, GAsyncResult *result, gpointer user)
{
    (void)source;
    window *w = user;
    const opening *o = g_task_get_task_data(G_TASK(result));
    w->openings--;
    if (o->error.code != NL_ERROR_NONE) {
        window_say(w, o->error.message);
        return;
    }
    w->source_count++;
    w->touched = false; /* all of it is shown */
    window_session_opened(w, o->url);
    bool is_collector = strstr(o->url, "://") != NULL || g_str_has_prefix(o->url, "unix:");
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    gtk_widget_grab_focus(canvas_widget(w->canvas));
    if (is_collector)
        window_follow(w);
    else
        welcome_remember(o->url);
    window_show_title(w);
}

/* A collector may take long to answer: the window lives on meanwhile. */
void window_open(window *w, const char *url)
{
    opening *o = g_new0(opening, 1);
    *o = (opening){.w = w, .url = g_strdup(url)};
    w->openings++;
    GTask *task = g_task_new(NULL, NULL, on_opened, w);
    g_task_set_task_data(task, o, free_opening);
    g_task_run_in_thread(task, open_in_thread);
    g_object_unref(task);
}

void window_choose_log(window *w)
{
    GtkFileChooserNative *chooser =
        gtk_file_chooser_native_new("Open a log", GTK_WINDOW(w->top), GTK_FILE_CHOOSER_ACTION_OPEN, "_Open", "_Cancel");
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(chooser)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(chooser));
        window_open(w, path);
        g_free(path);
    }
    g_object_unref(chooser);
}

static void on_drop(GtkWidget *widget, GdkDragContext *context, int x, int y, GtkSelectionData *data, guint info,
                    guint time, gpointer user)
{
    (void)widget, (void)x, (void)y, (void)info;
    char **uris = gtk_selection_data_get_uris(data);
    for (char **uri = uris; uris != NULL && *uri != NULL; uri++) {
        char *path = g_filename_from_uri(*uri, NULL, NULL);
        if (path != NULL)
            window_open(user, path);
        g_free(path);
    }
    gtk_drag_finish(context, uris != NULL, FALSE, time);
    g_strfreev(uris);
}

void window_accept_drops(window *w)
{
    gtk_drag_dest_set(w->top, GTK_DEST_DEFAULT_ALL, NULL, 0, GDK_ACTION_COPY);
    gtk_drag_dest_add_uri_targets(w->top);
    g_signal_connect(w->top, "drag-data-received", G_CALLBACK(on_drop), w);
}
