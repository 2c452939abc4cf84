#include "config.h"

#include "view/bookmarks.h"
#include "base/time_internal.h"

#include <netlogger.h>

struct bookmarks {
    GtkWidget *popover, *rows;
    session *session;
    bookmarks_callbacks callbacks;
};

/* The row to which a widget belongs. */
typedef struct part {
    bookmarks *list;
    guint at;
} part;

static void free_part(gpointer data, GClosure *closure)
{
    (void)closure;
    g_free(data);
}

static void connect_part(bookmarks *b, GtkWidget *widget, const char *signal, GCallback callback, guint at)
{
    part *of = g_new(part, 1);
    *of = (part){b, at};
    g_signal_connect_data(widget, signal, callback, of, free_part, 0);
}

static void on_note(GtkEditable *editable, gpointer user)
{
    const part *of = user;
    session_mark_note(of->list->session, of->at, gtk_entry_get_text(GTK_ENTRY(editable)));
    of->list->callbacks.changed(of->list->callbacks.user);
}

static void on_done(GtkEntry *entry, gpointer user)
{
    (void)entry;
    const part *of = user;
    gtk_popover_popdown(GTK_POPOVER(of->list->popover));
}

static void on_go(GtkButton *button, gpointer user)
{
    (void)button;
    const part *of = user;
    const session_mark *mark = &g_array_index(of->list->session->marks, session_mark, of->at);
    of->list->callbacks.go(of->list->callbacks.user, mark->time_ns);
}

static void fill_rows(bookmarks *b, int focus);

/* Rebuilds the rows. Runs after the handler of a button in a row has returned, because rebuilding destroys the button.
 */
static gboolean fill_rows_later(gpointer user)
{
    fill_rows(user, -1);
    return G_SOURCE_REMOVE;
}

static void on_remove(GtkButton *button, gpointer user)
{
    (void)button;
    const part *of = user;
    session_mark_remove(of->list->session, of->at);
    of->list->callbacks.changed(of->list->callbacks.user);
    g_idle_add(fill_rows_later, of->list);
}

static GtkWidget *bookmarks_add_row(bookmarks *b, guint at)
{
    const session_mark *mark = &g_array_index(b->session->marks, session_mark, at);
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(mark->time_ns, time);
    GtkWidget *go = gtk_button_new_with_label(time), *note = gtk_entry_new();
    GtkWidget *remove = gtk_button_new_from_icon_name("list-remove-symbolic", GTK_ICON_SIZE_BUTTON);
    gtk_button_set_relief(GTK_BUTTON(go), GTK_RELIEF_NONE);
    gtk_widget_set_tooltip_text(go, "Show that time");
    gtk_entry_set_text(GTK_ENTRY(note), mark->note);
    gtk_entry_set_placeholder_text(GTK_ENTRY(note), "Note");
    gtk_entry_set_width_chars(GTK_ENTRY(note), 32);
    atk_object_set_name(gtk_widget_get_accessible(note), "Note");
    gtk_widget_set_tooltip_text(remove, "Remove the bookmark");
    atk_object_set_name(gtk_widget_get_accessible(remove), "Remove the bookmark");
    connect_part(b, go, "clicked", G_CALLBACK(on_go), at);
    connect_part(b, note, "changed", G_CALLBACK(on_note), at);
    connect_part(b, note, "activate", G_CALLBACK(on_done), at);
    connect_part(b, remove, "clicked", G_CALLBACK(on_remove), at);
    GtkWidget *const widgets[] = {go, note, remove};
    for (int i = 0; i < (int)G_N_ELEMENTS(widgets); i++)
        gtk_grid_attach(GTK_GRID(b->rows), widgets[i], i, (int)at, 1, 1);
    return note;
}

static void fill_rows(bookmarks *b, int focus)
{
    GList *children = gtk_container_get_children(GTK_CONTAINER(b->rows));
    g_list_free_full(children, (GDestroyNotify)(void (*)(void))gtk_widget_destroy);
    GtkWidget *wanted = NULL;
    for (guint at = 0; at < b->session->marks->len; at++) {
        GtkWidget *note = bookmarks_add_row(b, at);
        wanted = focus == (int)at ? note : wanted;
    }
    if (b->session->marks->len == 0) {
        GtkWidget *none = gtk_label_new("No bookmarks. Press B to add one at the pointer.");
        gtk_grid_attach(GTK_GRID(b->rows), none, 0, 0, 1, 1);
    }
    gtk_widget_show_all(b->rows);
    if (wanted != NULL)
        gtk_widget_grab_focus(wanted);
}

void bookmarks_show(bookmarks *b, session *s, int focus)
{
    b->session = s;
    gtk_widget_show_all(gtk_bin_get_child(GTK_BIN(b->popover)));
    fill_rows(b, -1);
    gtk_popover_popup(GTK_POPOVER(b->popover));
    if (focus >= 0)
        fill_rows(b, focus);
}

void bookmarks_replace_session(bookmarks *b, session *s)
{
    if (b->session == NULL)
        return; /* bookmarks_show has not been called yet */
    b->session = s;
    g_idle_add(fill_rows_later, b);
}

static void bookmarks_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    while (g_idle_remove_by_data(user))
        ;
    g_free(user);
}

bookmarks *bookmarks_new(GtkWidget *relative_to, bookmarks_callbacks callbacks)
{
    bookmarks *b = g_new0(bookmarks, 1);
    b->callbacks = callbacks;
    b->popover = gtk_popover_new(relative_to);
    b->rows = gtk_grid_new();
    gtk_grid_set_row_spacing(GTK_GRID(b->rows), 2);
    gtk_grid_set_column_spacing(GTK_GRID(b->rows), 6);
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    g_object_set(scrolled, "margin", 10, NULL);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    gtk_scrolled_window_set_propagate_natural_height(GTK_SCROLLED_WINDOW(scrolled), TRUE);
    gtk_scrolled_window_set_max_content_height(GTK_SCROLLED_WINDOW(scrolled), 400);
    gtk_container_add(GTK_CONTAINER(scrolled), b->rows);
    gtk_container_add(GTK_CONTAINER(b->popover), scrolled);
    g_signal_connect(b->popover, "destroy", G_CALLBACK(bookmarks_on_destroy), b);
    return b;
}
