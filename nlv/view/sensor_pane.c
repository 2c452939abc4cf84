#include "config.h"

#include "view/sensor_pane.h"
#include "requests/printable.h"

#include "agents/agents.h"

#include <string.h>

enum { COLUMN_IS_SENSOR, COLUMN_TICKED, COLUMN_NAME, COLUMN_STATE, COLUMN_URL, COLUMN_SENSOR, COLUMN_TIP, COLUMNS };
enum { OPEN_HOSTS = 12 /* maximum number of hosts whose rows are expanded at first */ };

struct sensor_pane {
    GtkWidget *widget, *directory, *which, *tree, *status;
    GtkTreeStore *store;
    agents *agents;
    sensor_pane_callbacks callbacks;
    bool was_looked_up, has_begun;
};

static void sensor_pane_say(sensor_pane *p, const char *text)
{
    gtk_label_set_text(GTK_LABEL(p->status), text);
}

/* ---- rows ---- */

static void set_row(sensor_pane *p, GtkTreeIter *row, const char *state)
{
    char *valid = state != NULL ? printable(state) : g_strdup("");
    gtk_tree_store_set(p->store, row, COLUMN_TICKED, state != NULL, COLUMN_STATE, valid, -1);
    g_free(valid);
}

/* Returns the markup of a tooltip for text from a directory. */
static char *tooltip(const char *text)
{
    char *valid = printable(text), *markup = g_markup_escape_text(valid, -1);
    g_free(valid);
    return markup;
}

static void add_host(sensor_pane *p, const char *host, const char *url, GtkTreeIter *row)
{
    char *name = printable(host), *tip = tooltip(url);
    gtk_tree_store_append(p->store, row, NULL);
    gtk_tree_store_set(p->store, row, COLUMN_NAME, name, COLUMN_URL, url, COLUMN_SENSOR, "", COLUMN_TIP, tip, -1);
    g_free(name);
    g_free(tip);
}

/* Sets *row to the row of the agent with a URL. Adds the row if necessary. */
static void known_host(sensor_pane *p, const char *host, const char *url, GtkTreeIter *row)
{
    GtkTreeModel *model = GTK_TREE_MODEL(p->store);
    for (gboolean more = gtk_tree_model_get_iter_first(model, row); more; more = gtk_tree_model_iter_next(model, row)) {
        char *other;
        gtk_tree_model_get(model, row, COLUMN_URL, &other, -1);
        bool same = strcmp(other, url) == 0;
        g_free(other);
        if (same)
            return;
    }
    add_host(p, host, url, row);
}

static bool find_row(sensor_pane *p, const char *url, const char *sensor, GtkTreeIter *row)
{
    GtkTreeModel *model = GTK_TREE_MODEL(p->store);
    GtkTreeIter host;
    for (gboolean more = gtk_tree_model_get_iter_first(model, &host); more;
         more = gtk_tree_model_iter_next(model, &host)) {
        char *own;
        gtk_tree_model_get(model, &host, COLUMN_URL, &own, -1);
        bool is_it = strcmp(own, url) == 0;
        g_free(own);
        gboolean among = is_it && gtk_tree_model_iter_children(model, row, &host);
        for (; among; among = gtk_tree_model_iter_next(model, row)) {
            char *name;
            gtk_tree_model_get(model, row, COLUMN_SENSOR, &name, -1);
            is_it = strcmp(name, sensor) == 0;
            g_free(name);
            if (is_it)
                return true;
        }
    }
    return false;
}

static void add_sensor(sensor_pane *p, GtkTreeIter *host, const char *url, const char *sensor, const char *events)
{
    GtkTreeIter row;
    char *name = printable(sensor), *tip = tooltip(events);
    gtk_tree_store_append(p->store, &row, host);
    gtk_tree_store_set(p->store, &row, COLUMN_IS_SENSOR, TRUE, COLUMN_NAME, name, COLUMN_URL, url, COLUMN_SENSOR,
                       sensor, COLUMN_TIP, tip, -1);
    set_row(p, &row, agents_state(p->agents, url, sensor));
    g_free(name);
    g_free(tip);
}

/* Adds the row of a ticked sensor that is no longer in the directory, so that the user can untick the sensor. */
static void add_known(void *user, const char *url, const char *sensor, const char *state)
{
    sensor_pane *p = user;
    GtkTreeIter row, host;
    (void)state;
    if (find_row(p, url, sensor, &row))
        return;
    known_host(p, url, url, &host);
    add_sensor(p, &host, url, sensor, "");
}

static void on_found(void *user, const GPtrArray *rows, const char *problem)
{
    sensor_pane *p = user;
    unsigned hosts = 0;
    GtkTreeIter host;
    gtk_tree_view_set_model(GTK_TREE_VIEW(p->tree), NULL); /* adding rows is faster while the tree shows no model */
    gtk_tree_store_clear(p->store);
    for (guint i = 0; i < rows->len; i++) {
        const agents_row *row = g_ptr_array_index(rows, i);
        const agents_row *before = i > 0 ? g_ptr_array_index(rows, i - 1) : NULL;
        if (before == NULL || strcmp(before->url, row->url) != 0) {
            add_host(p, row->host, row->url, &host);
            hosts++;
        }
        add_sensor(p, &host, row->url, row->sensor, row->events);
    }
    agents_each(p->agents, add_known, p);
    gtk_tree_view_set_model(GTK_TREE_VIEW(p->tree), GTK_TREE_MODEL(p->store));
    if (hosts <= OPEN_HOSTS)
        gtk_tree_view_expand_all(GTK_TREE_VIEW(p->tree));
    char *text = *problem != '\0' ? printable(problem)
                                  : g_strdup_printf("%u host%s, %u sensor%s. Tick sensors to draw them.", hosts,
                                                    hosts == 1 ? "" : "s", rows->len, rows->len == 1 ? "" : "s");
    sensor_pane_say(p, text);
    g_free(text);
}

/* ---- ticked sensors ---- */

static void on_changed(void *user, const char *url, const char *sensor, const char *message, bool is_error)
{
    sensor_pane *p = user;
    GtkTreeIter row;
    const char *state = agents_state(p->agents, url, sensor);
    if (find_row(p, url, sensor, &row))
        set_row(p, &row, state);
    /* also show an error below the tree, because the column may be too narrow for the text */
    if (is_error) {
        char *text = g_strdup_printf("%s: %s", sensor, message), *valid = printable(text);
        sensor_pane_say(p, valid);
        g_free(valid);
        g_free(text);
    }
}

static void on_drawn(void *user)
{
    sensor_pane *p = user;
    p->callbacks.draw(p->callbacks.user, agents_loadlines(p->agents));
}

/* When the user ticks the first sensor, opens the log that gets the records of all sensors. Later calls do nothing. */
static void sensor_pane_begin(sensor_pane *p)
{
    if (!p->has_begun)
        p->callbacks.begin(p->callbacks.user, agents_feed(p->agents));
    p->has_begun = true;
}

static void toggle(sensor_pane *p, GtkTreePath *path)
{
    GtkTreeModel *model = GTK_TREE_MODEL(p->store);
    GtkTreeIter row;
    gboolean is_sensor = FALSE, ticked = FALSE;
    char *url = NULL, *sensor = NULL;
    if (!gtk_tree_model_get_iter(model, &row, path))
        return;
    gtk_tree_model_get(model, &row, COLUMN_IS_SENSOR, &is_sensor, COLUMN_TICKED, &ticked, COLUMN_URL, &url,
                       COLUMN_SENSOR, &sensor, -1);
    if (is_sensor && ticked)
        agents_remove(p->agents, url, sensor);
    else if (is_sensor && agents_add(p->agents, url, sensor))
        sensor_pane_begin(p);
    g_free(url);
    g_free(sensor);
}

static void on_toggled(GtkCellRendererToggle *renderer, char *path, gpointer user)
{
    (void)renderer;
    GtkTreePath *at = gtk_tree_path_new_from_string(path);
    toggle(user, at);
    gtk_tree_path_free(at);
}

static void on_activated(GtkTreeView *tree, GtkTreePath *path, GtkTreeViewColumn *column, gpointer user)
{
    (void)column;
    if (gtk_tree_path_get_depth(path) > 1)
        toggle(user, path);
    else if (gtk_tree_view_row_expanded(tree, path))
        gtk_tree_view_collapse_row(tree, path);
    else
        gtk_tree_view_expand_row(tree, path, FALSE);
}

/* ---- search ---- */

static void look_up(sensor_pane *p)
{
    p->was_looked_up = true;
    sensor_pane_say(p, "Searching the directory…");
    char *url = g_strstrip(g_strdup(gtk_entry_get_text(GTK_ENTRY(p->directory))));
    char *whole = *url == '\0' || strstr(url, "://") != NULL ? g_strdup(url) : g_strdup_printf("http://%s", url);
    agents_find(p->agents, whole, gtk_entry_get_text(GTK_ENTRY(p->which)));
    g_free(whole);
    g_free(url);
}

static void on_look_up(GtkWidget *widget, gpointer user)
{
    (void)widget;
    look_up(user);
}

void sensor_pane_show(sensor_pane *p)
{
    gtk_widget_show(p->widget);
    if (!p->was_looked_up)
        look_up(p);
    gtk_widget_grab_focus(p->directory);
}

/* ---- construction ---- */

static GtkWidget *add_entry(sensor_pane *p, const char *label, const char *hint, const char *tip)
{
    GtkWidget *name = gtk_label_new_with_mnemonic(label), *entry = gtk_entry_new();
    gtk_label_set_mnemonic_widget(GTK_LABEL(name), entry);
    gtk_label_set_xalign(GTK_LABEL(name), 0);
    gtk_entry_set_placeholder_text(GTK_ENTRY(entry), hint);
    gtk_widget_set_tooltip_text(entry, tip);
    g_signal_connect(entry, "activate", G_CALLBACK(on_look_up), p);
    gtk_box_pack_start(GTK_BOX(p->widget), name, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), entry, FALSE, FALSE, 0);
    return entry;
}

static GtkTreeViewColumn *add_column(sensor_pane *p, const char *title, GtkCellRenderer *renderer,
                                     const char *attribute, int source)
{
    GtkTreeViewColumn *column = gtk_tree_view_column_new_with_attributes(title, renderer, attribute, source, NULL);
    gtk_tree_view_column_set_resizable(column, TRUE);
    gtk_tree_view_append_column(GTK_TREE_VIEW(p->tree), column);
    return column;
}

static GtkWidget *make_tree(sensor_pane *p)
{
    GtkCellRenderer *tick = gtk_cell_renderer_toggle_new();
    p->store = gtk_tree_store_new(COLUMNS, G_TYPE_BOOLEAN, G_TYPE_BOOLEAN, G_TYPE_STRING, G_TYPE_STRING, G_TYPE_STRING,
                                  G_TYPE_STRING, G_TYPE_STRING);
    p->tree = gtk_tree_view_new_with_model(GTK_TREE_MODEL(p->store));
    add_column(p, "Host, sensor", gtk_cell_renderer_text_new(), "text", COLUMN_NAME);
    GtkTreeViewColumn *drawn = add_column(p, "Draw", tick, "active", COLUMN_TICKED);
    gtk_tree_view_column_add_attribute(drawn, tick, "visible", COLUMN_IS_SENSOR);
    add_column(p, "State", gtk_cell_renderer_text_new(), "text", COLUMN_STATE);
    gtk_tree_view_set_search_column(GTK_TREE_VIEW(p->tree), COLUMN_NAME);
    gtk_tree_view_set_tooltip_column(GTK_TREE_VIEW(p->tree), COLUMN_TIP);
    atk_object_set_name(gtk_widget_get_accessible(p->tree), "Hosts and sensors");
    g_signal_connect(tick, "toggled", G_CALLBACK(on_toggled), p);
    g_signal_connect(p->tree, "row-activated", G_CALLBACK(on_activated), p);
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    gtk_scrolled_window_set_shadow_type(GTK_SCROLLED_WINDOW(scrolled), GTK_SHADOW_IN);
    gtk_container_add(GTK_CONTAINER(scrolled), p->tree);
    return scrolled;
}

static void sensor_pane_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    sensor_pane *p = user;
    agents_free(p->agents);
    g_object_unref(p->store);
    g_free(p);
}

sensor_pane *sensor_pane_new(const char *directory, sensor_pane_callbacks callbacks)
{
    sensor_pane *p = g_new0(sensor_pane, 1);
    p->callbacks = callbacks;
    p->agents = agents_new((agents_callbacks){on_found, on_changed, on_drawn, p});
    p->widget = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4);
    g_object_set(p->widget, "margin", 8, NULL);
    gtk_widget_set_size_request(p->widget, 280, -1);
    p->directory = add_entry(p, "D_irectory", "http://host:14831",
                             "The directory of agents: an nlagentd that runs with --serve-directory, or ldap://host");
    p->which = add_entry(p, "_Which", "all, or an expression such as sensor=tcp & host=dpss*",
                         "The hosts and sensors to list");
    GtkWidget *button = gtk_button_new_with_mnemonic("_Search");
    g_signal_connect(button, "clicked", G_CALLBACK(on_look_up), p);
    gtk_box_pack_start(GTK_BOX(p->widget), button, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), make_tree(p), TRUE, TRUE, 0);
    p->status = gtk_label_new("");
    gtk_label_set_line_wrap(GTK_LABEL(p->status), TRUE);
    gtk_label_set_line_wrap_mode(GTK_LABEL(p->status), PANGO_WRAP_WORD_CHAR);
    gtk_label_set_xalign(GTK_LABEL(p->status), 0);
    gtk_label_set_max_width_chars(GTK_LABEL(p->status), 30);
    gtk_box_pack_start(GTK_BOX(p->widget), p->status, FALSE, FALSE, 0);
    if (directory != NULL)
        gtk_entry_set_text(GTK_ENTRY(p->directory), directory);
    atk_object_set_name(gtk_widget_get_accessible(p->directory), "Directory");
    atk_object_set_name(gtk_widget_get_accessible(p->which), "Which hosts and sensors");
    g_signal_connect(p->widget, "destroy", G_CALLBACK(sensor_pane_on_destroy), p);
    gtk_widget_show_all(p->widget);
    gtk_widget_set_no_show_all(p->widget, TRUE);
    gtk_widget_hide(p->widget);
    return p;
}

GtkWidget *sensor_pane_widget(sensor_pane *p)
{
    return p->widget;
}
