#include "config.h"

#include "view/command_palette.h"

#include <string.h>

typedef struct command_palette {
    GtkWidget *window, *entry, *list;
    command_do *act;
    void *user;
} command_palette;

static command command_of(GtkListBoxRow *row)
{
    return (command)GPOINTER_TO_INT(g_object_get_data(G_OBJECT(row), "command"));
}

/* Returns whether the name of a row's command contains every typed word. */
static gboolean is_wanted(GtkListBoxRow *row, gpointer user)
{
    const command_palette *p = user;
    char *name = g_utf8_casefold(g_object_get_data(G_OBJECT(row), "name"), -1);
    char *typed = g_utf8_casefold(gtk_entry_get_text(GTK_ENTRY(p->entry)), -1);
    char **parts = g_strsplit(typed, " ", -1);
    bool wanted = true;
    for (char **word = parts; *word != NULL; word++)
        wanted = wanted && strstr(name, *word) != NULL;
    g_strfreev(parts);
    g_free(typed);
    g_free(name);
    return wanted;
}

static void choose_first(command_palette *p)
{
    GtkListBoxRow *row;
    for (int i = 0; (row = gtk_list_box_get_row_at_index(GTK_LIST_BOX(p->list), i)) != NULL; i++)
        if (is_wanted(row, p)) {
            gtk_list_box_select_row(GTK_LIST_BOX(p->list), row);
            return;
        }
    gtk_list_box_unselect_all(GTK_LIST_BOX(p->list));
}

static void on_typed(GtkEditable *editable, gpointer user)
{
    (void)editable;
    command_palette *p = user;
    gtk_list_box_invalidate_filter(GTK_LIST_BOX(p->list));
    choose_first(p);
}

/* Runs the command of a row. Closes the palette first, because the command may show a window. */
static void command_palette_run(command_palette *p, GtkListBoxRow *row)
{
    if (row == NULL)
        return;
    command which = command_of(row);
    command_do *act = p->act;
    void *user = p->user;
    gtk_widget_destroy(p->window);
    act(user, which);
}

static void on_row(GtkListBox *list, GtkListBoxRow *row, gpointer user)
{
    (void)list;
    command_palette_run(user, row);
}

static void on_enter(GtkEntry *entry, gpointer user)
{
    (void)entry;
    command_palette *p = user;
    command_palette_run(p, gtk_list_box_get_selected_row(GTK_LIST_BOX(p->list)));
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    command_palette *p = user;
    if (event->keyval == GDK_KEY_Escape) {
        gtk_widget_destroy(widget);
        return TRUE;
    }
    if (event->keyval == GDK_KEY_Down && gtk_widget_has_focus(p->entry)) {
        GtkListBoxRow *row = gtk_list_box_get_selected_row(GTK_LIST_BOX(p->list));
        if (row != NULL)
            gtk_widget_grab_focus(GTK_WIDGET(row));
        return row != NULL;
    }
    return FALSE;
}

static void command_palette_add_row(command_palette *p, command which, const char *name, const char *key)
{
    GtkWidget *row = gtk_list_box_row_new(), *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
    GtkWidget *label = gtk_label_new(name), *shortcut = gtk_label_new(key);
    g_object_set(box, "margin", 4, NULL);
    gtk_style_context_add_class(gtk_widget_get_style_context(shortcut), "dim-label");
    gtk_box_pack_start(GTK_BOX(box), label, FALSE, FALSE, 0);
    gtk_box_pack_end(GTK_BOX(box), shortcut, FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(row), box);
    g_object_set_data(G_OBJECT(row), "command", GINT_TO_POINTER(which));
    g_object_set_data_full(G_OBJECT(row), "name", g_strdup(name), g_free);
    atk_object_set_name(gtk_widget_get_accessible(row), name);
    gtk_container_add(GTK_CONTAINER(p->list), row);
}

static void command_palette_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

void command_palette_show(GtkWidget *window, command_do *act, void *user)
{
    command_palette *p = g_new0(command_palette, 1);
    p->act = act;
    p->user = user;
    p->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_title(GTK_WINDOW(p->window), "Find a command");
    gtk_window_set_transient_for(GTK_WINDOW(p->window), GTK_WINDOW(window));
    gtk_window_set_position(GTK_WINDOW(p->window), GTK_WIN_POS_CENTER_ON_PARENT);
    gtk_window_set_modal(GTK_WINDOW(p->window), TRUE);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6), *scrolled = gtk_scrolled_window_new(NULL, NULL);
    g_object_set(box, "margin", 8, NULL);
    p->entry = gtk_search_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(p->entry), "Part of a command's name");
    atk_object_set_name(gtk_widget_get_accessible(p->entry), "Part of a command's name");
    p->list = gtk_list_box_new();
    gtk_widget_set_size_request(scrolled, 420, 400);
    gtk_container_add(GTK_CONTAINER(scrolled), p->list);
    gtk_box_pack_start(GTK_BOX(box), p->entry, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), scrolled, TRUE, TRUE, 0);
    gtk_container_add(GTK_CONTAINER(p->window), box);
    char *name, *key;
    command which;
    for (size_t i = 0; (which = commands_at(i, &name, &key)) != COMMAND_NONE; i++) {
        if (which != COMMAND_PALETTE)
            command_palette_add_row(p, which, name, key);
        g_free(name);
        g_free(key);
    }
    gtk_list_box_set_filter_func(GTK_LIST_BOX(p->list), is_wanted, p, NULL);
    g_signal_connect(p->entry, "changed", G_CALLBACK(on_typed), p);
    g_signal_connect(p->entry, "activate", G_CALLBACK(on_enter), p);
    g_signal_connect(p->list, "row-activated", G_CALLBACK(on_row), p);
    g_signal_connect(p->window, "key-press-event", G_CALLBACK(on_key), p);
    g_signal_connect(p->window, "destroy", G_CALLBACK(command_palette_on_destroy), p);
    choose_first(p);
    gtk_widget_show_all(p->window);
}
