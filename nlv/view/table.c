#include "config.h"

#include "view/table.h"

#include "requests/printable.h"

#include <stdbool.h>

enum { COLUMNS_MAX = 8, NAME_WIDTH = 13 /* minimum width of a long name in characters */ };

/* Names of data of the grid. The data with the name "2" marks column 2 as a column of numbers. */
static const char *const keys[COLUMNS_MAX] = {"0", "1", "2", "3", "4", "5", "6", "7"};

static void table_put(GtkWidget *grid, const char *text, int column, int row, bool is_heading)
{
    bool is_number = g_object_get_data(G_OBJECT(grid), keys[column]) != NULL;
    GtkWidget *label = gtk_label_new(NULL);
    char *valid = printable(text);
    char *markup = is_heading  ? g_markup_printf_escaped("<small>%s</small>", valid)
                   : is_number ? g_markup_printf_escaped("<span font_features='tnum=1'>%s</span>", valid)
                               : g_markup_printf_escaped("%s", valid);
    gtk_label_set_markup(GTK_LABEL(label), markup);
    g_free(markup);
    gtk_label_set_xalign(GTK_LABEL(label), is_number ? 1 : 0);
    gtk_label_set_selectable(GTK_LABEL(label), !is_heading);
    gtk_widget_set_can_focus(label, FALSE);
    if (!is_number) { /* names are complete: long names have several lines */
        gtk_widget_set_hexpand(label, TRUE);
        gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
        gtk_label_set_line_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
        gtk_label_set_width_chars(GTK_LABEL(label), MIN(NAME_WIDTH, (int)g_utf8_strlen(valid, -1)));
        gtk_label_set_max_width_chars(GTK_LABEL(label), NAME_WIDTH);
    }
    g_free(valid);
    if (is_heading)
        gtk_style_context_add_class(gtk_widget_get_style_context(label), "dim-label");
    gtk_grid_attach(GTK_GRID(grid), label, column, row, 1, 1);
}

GtkWidget *table_new(const char *title, const char *const *columns)
{
    GtkWidget *grid = gtk_grid_new(), *heading = gtk_label_new(NULL);
    char *valid = printable(title), *markup = g_markup_printf_escaped("<b>%s</b>", valid);
    int count = 0;
    gtk_label_set_markup(GTK_LABEL(heading), markup);
    g_free(markup);
    g_free(valid);
    gtk_label_set_xalign(GTK_LABEL(heading), 0);
    gtk_label_set_ellipsize(GTK_LABEL(heading), PANGO_ELLIPSIZE_MIDDLE);
    gtk_grid_set_column_spacing(GTK_GRID(grid), 10);
    gtk_grid_set_row_spacing(GTK_GRID(grid), 2);
    gtk_widget_set_margin_top(grid, 6);
    for (; count < COLUMNS_MAX && columns[count] != NULL; count++) {
        bool is_number = *columns[count] == '#';
        g_object_set_data(G_OBJECT(grid), keys[count], is_number ? grid : NULL);
        table_put(grid, columns[count] + is_number, count, 1, true);
    }
    gtk_grid_attach(GTK_GRID(grid), heading, 0, 0, MAX(count, 1), 1);
    g_object_set_data(G_OBJECT(grid), "columns", GINT_TO_POINTER(count));
    g_object_set_data(G_OBJECT(grid), "rows", GINT_TO_POINTER(2));
    return grid;
}

void table_add(GtkWidget *table, const char *const *texts)
{
    int columns = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(table), "columns"));
    int row = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(table), "rows"));
    for (int column = 0; column < columns; column++)
        table_put(table, texts[column], column, row, false);
    g_object_set_data(G_OBJECT(table), "rows", GINT_TO_POINTER(row + 1));
}

/* The effect of a link. */
typedef struct table_target {
    table_follow *follow;
    void *user;
    int64_t first;
    uint64_t second;
} table_target;

static gboolean on_link(GtkLabel *label, const char *uri, gpointer user)
{
    (void)label, (void)uri;
    const table_target *t = user;
    t->follow(t->user, t->first, t->second);
    return TRUE;
}

static void free_target(gpointer data, GClosure *closure)
{
    (void)closure;
    g_free(data);
}

void table_link(GtkWidget *table, int column, table_follow *follow, void *user, int64_t first, uint64_t second)
{
    const int row = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(table), "rows")) - 1;
    GtkWidget *label = gtk_grid_get_child_at(GTK_GRID(table), column, row);
    char *markup = g_markup_printf_escaped("<a href=\"#\">%s</a>", gtk_label_get_text(GTK_LABEL(label)));
    table_target *t = g_new(table_target, 1);
    *t = (table_target){follow, user, first, second};
    gtk_label_set_markup(GTK_LABEL(label), markup);
    gtk_label_set_selectable(GTK_LABEL(label), FALSE);
    gtk_widget_set_can_focus(label, TRUE);
    gtk_widget_set_tooltip_text(label, "Show this place");
    g_signal_connect_data(label, "activate-link", G_CALLBACK(on_link), t, free_target, 0);
    g_free(markup);
}
