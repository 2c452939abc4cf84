#include "config.h"

#include "view/name_list.h"
#include "requests/printable.h"

struct name_list {
    GtkWidget *widget, *tree;
    GtkListStore *store;
    void (*activated)(void *user);
    void *user;
};

static void on_activated(GtkTreeView *tree, GtkTreePath *path, GtkTreeViewColumn *column, gpointer user)
{
    (void)tree, (void)path, (void)column;
    name_list *l = user;
    if (l->activated != NULL)
        l->activated(l->user);
}

void name_list_set(name_list *l, char *const *names)
{
    gtk_list_store_clear(l->store);
    for (; *names != NULL; names++) {
        char *valid = printable(*names);
        gtk_list_store_insert_with_values(l->store, NULL, -1, 0, valid, -1);
        g_free(valid);
    }
}

GArray *name_list_chosen(const name_list *l)
{
    GArray *places = g_array_new(FALSE, FALSE, sizeof(int));
    GtkTreeSelection *selection = gtk_tree_view_get_selection(GTK_TREE_VIEW(l->tree));
    GList *rows = gtk_tree_selection_get_selected_rows(selection, NULL);
    for (GList *row = rows; row != NULL; row = row->next)
        g_array_append_val(places, *gtk_tree_path_get_indices(row->data));
    g_list_free_full(rows, (GDestroyNotify)gtk_tree_path_free);
    return places;
}

void name_list_choose(name_list *l, int place)
{
    GtkTreePath *path = gtk_tree_path_new_from_indices(place, -1);
    gtk_tree_view_set_cursor(GTK_TREE_VIEW(l->tree), path, NULL, FALSE);
    gtk_tree_view_scroll_to_cell(GTK_TREE_VIEW(l->tree), path, NULL, FALSE, 0, 0);
    gtk_tree_path_free(path);
}

static void name_list_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    name_list *l = user;
    g_object_unref(l->store);
    g_free(l);
}

name_list *name_list_new(const char *title, void (*activated)(void *user), void *user)
{
    name_list *l = g_new0(name_list, 1);
    l->activated = activated;
    l->user = user;
    l->store = gtk_list_store_new(1, G_TYPE_STRING);
    l->tree = gtk_tree_view_new_with_model(GTK_TREE_MODEL(l->store));
    GtkTreeViewColumn *column =
        gtk_tree_view_column_new_with_attributes(title, gtk_cell_renderer_text_new(), "text", 0, NULL);
    gtk_tree_view_append_column(GTK_TREE_VIEW(l->tree), column);
    gtk_tree_selection_set_mode(gtk_tree_view_get_selection(GTK_TREE_VIEW(l->tree)), GTK_SELECTION_MULTIPLE);
    gtk_tree_view_set_search_column(GTK_TREE_VIEW(l->tree), 0);
    atk_object_set_name(gtk_widget_get_accessible(l->tree), title);
    l->widget = gtk_scrolled_window_new(NULL, NULL);
    gtk_scrolled_window_set_shadow_type(GTK_SCROLLED_WINDOW(l->widget), GTK_SHADOW_IN);
    gtk_widget_set_size_request(l->widget, 180, 160);
    gtk_container_add(GTK_CONTAINER(l->widget), l->tree);
    g_signal_connect(l->tree, "row-activated", G_CALLBACK(on_activated), l);
    g_signal_connect(l->widget, "destroy", G_CALLBACK(name_list_on_destroy), l);
    return l;
}

GtkWidget *name_list_widget(name_list *l)
{
    return l->widget;
}
