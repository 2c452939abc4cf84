#include "config.h"

#include "view/lifeline_page.h"

#include "record/terminal.h"
#include "requests/printable.h"
#include "view/name_list.h"

#include <string.h>

struct lifeline_page {
    GtkWidget *widget, *which, *form, *name, *ids, *color, *again;
    name_list *all, *steps; /* the log's events; the lifeline's events, with the last event on top, as in the picture */
    drawing *drawing;
    const catalog *catalog;
    bool own_change;
};

static int current(const lifeline_page *p)
{
    return gtk_combo_box_get_active(GTK_COMBO_BOX(p->which));
}

static drawing_lifeline *edited(const lifeline_page *p)
{
    int at = current(p);
    return at >= 0 && (guint)at < p->drawing->lifelines->len ? g_ptr_array_index(p->drawing->lifelines, at) : NULL;
}

static char **reversed(char *const *events)
{
    guint count = g_strv_length((char **)events);
    char **names = g_new0(char *, count + 1);
    for (guint i = 0; i < count; i++)
        names[i] = g_strdup(events[count - 1 - i]);
    return names;
}

static void show_steps(lifeline_page *p, const drawing_lifeline *l)
{
    static char *const none[] = {NULL};
    char **names = reversed(l != NULL ? l->events : none);
    name_list_set(p->steps, names);
    g_strfreev(names);
}

static void show(lifeline_page *p)
{
    const drawing_lifeline *l = edited(p);
    p->own_change = true;
    gtk_widget_set_sensitive(p->form, l != NULL);
    char *ids = l != NULL ? g_strjoinv("; ", l->ids) : g_strdup("");
    gtk_entry_set_text(GTK_ENTRY(p->name), l != NULL ? l->name : "");
    gtk_entry_set_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(p->ids))), ids);
    gtk_entry_set_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(p->color))), l != NULL ? l->color : "");
    g_free(ids);
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(p->again), l != NULL && l->again);
    show_steps(p, l);
    p->own_change = false;
}

/* ---- the list of lifelines ---- */

static void list_lifelines(lifeline_page *p, int active)
{
    p->own_change = true;
    gtk_combo_box_text_remove_all(GTK_COMBO_BOX_TEXT(p->which));
    for (guint i = 0; i < p->drawing->lifelines->len; i++) {
        char *valid = printable(((drawing_lifeline *)g_ptr_array_index(p->drawing->lifelines, i))->name);
        gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(p->which), valid);
        g_free(valid);
    }
    gtk_combo_box_set_active(GTK_COMBO_BOX(p->which), MIN(active, (int)p->drawing->lifelines->len - 1));
    p->own_change = false;
    show(p);
}

static void on_which(GtkComboBox *box, gpointer user)
{
    (void)box;
    lifeline_page *p = user;
    if (!p->own_change)
        show(p);
}

static void on_new(GtkButton *button, gpointer user)
{
    (void)button;
    static const char *const none[] = {NULL};
    lifeline_page *p = user;
    char *name = g_strdup_printf("Lifeline %u", p->drawing->lifelines->len + 1);
    drawing_add_lifeline(p->drawing, name, none, none, "HOST");
    g_free(name);
    list_lifelines(p, (int)p->drawing->lifelines->len - 1);
    gtk_widget_grab_focus(p->name);
}

static void on_remove_lifeline(GtkButton *button, gpointer user)
{
    (void)button;
    lifeline_page *p = user;
    int at = current(p);
    if (at < 0)
        return;
    g_ptr_array_remove_index(p->drawing->lifelines, (guint)at);
    list_lifelines(p, MAX(at - 1, 0));
}

/* ---- the name, IDs and color ---- */

static void set_text(char **to, const char *text)
{
    char *own = g_strstrip(g_strdup(text));
    g_free(*to);
    *to = own;
}

static void on_name(GtkEditable *editable, gpointer user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (p->own_change || l == NULL)
        return;
    set_text(&l->name, gtk_entry_get_text(GTK_ENTRY(editable)));
    int at = current(p);
    p->own_change = true;
    gtk_combo_box_text_insert_text(GTK_COMBO_BOX_TEXT(p->which), at, l->name);
    gtk_combo_box_text_remove(GTK_COMBO_BOX_TEXT(p->which), at + 1);
    gtk_combo_box_set_active(GTK_COMBO_BOX(p->which), at);
    p->own_change = false;
}

static void on_ids(GtkEditable *editable, gpointer user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (p->own_change || l == NULL)
        return;
    g_strfreev(l->ids);
    l->ids = g_strsplit_set(gtk_entry_get_text(GTK_ENTRY(editable)), "; ,", -1);
    guint kept = 0;
    for (char **id = l->ids; *id != NULL; id++) {
        if (**id != '\0')
            l->ids[kept++] = *id;
        else
            g_free(*id);
    }
    l->ids[kept] = NULL;
}

static void on_color(GtkEditable *editable, gpointer user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (!p->own_change && l != NULL)
        set_text(&l->color, gtk_entry_get_text(GTK_ENTRY(editable)));
}

static void on_again(GtkToggleButton *button, gpointer user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (!p->own_change && l != NULL)
        l->again = gtk_toggle_button_get_active(button);
}

/* ---- the events ---- */

static void replace_events(lifeline_page *p, drawing_lifeline *l, GPtrArray *events, int chosen)
{
    g_ptr_array_add(events, NULL);
    drawing_set_order(l, NULL, NULL); /* so that nlv determines the order of events again */
    g_strfreev(l->events);
    l->events = (char **)g_ptr_array_free(events, FALSE);
    show_steps(p, l);
    if (chosen >= 0 && l->events[0] != NULL)
        name_list_choose(p->steps, chosen);
}

static GPtrArray *events_of(const drawing_lifeline *l)
{
    GPtrArray *events = g_ptr_array_new();
    for (char **event = l->events; *event != NULL; event++)
        g_ptr_array_add(events, g_strdup(*event));
    return events;
}

/* Appends the events that are chosen in the list of the log's events. */
static void add_chosen(void *user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (l == NULL)
        return;
    GPtrArray *events = events_of(l);
    GArray *places = name_list_chosen(p->all);
    for (guint i = 0; i < places->len; i++) {
        guint place = (guint)g_array_index(places, int, i);
        const char *name = g_array_index(p->catalog->events, catalog_event, place).name;
        if (!g_strv_contains((const char *const *)l->events, name))
            g_ptr_array_add(events, g_strdup(name));
    }
    g_array_free(places, TRUE);
    replace_events(p, l, events, 0);
}

static void remove_chosen(void *user)
{
    lifeline_page *p = user;
    drawing_lifeline *l = edited(p);
    if (l == NULL)
        return;
    GPtrArray *events = events_of(l);
    GArray *places = name_list_chosen(p->steps); /* ascending indices; the list has the events in reverse order */
    guint count = events->len;
    for (guint i = 0; i < places->len; i++)
        g_free(g_ptr_array_remove_index(events, count - 1 - (guint)g_array_index(places, int, i)));
    int next = places->len > 0 ? MAX(g_array_index(places, int, 0) - 1, 0) : -1;
    g_array_free(places, TRUE);
    replace_events(p, l, events, next);
}

/* Moves the chosen event up (-1: later) or down (1: earlier) in the list. */
static void move_chosen(lifeline_page *p, int by)
{
    drawing_lifeline *l = edited(p);
    GArray *places = name_list_chosen(p->steps);
    int count = l != NULL ? (int)g_strv_length(l->events) : 0;
    int place = places->len == 1 ? g_array_index(places, int, 0) : -1;
    g_array_free(places, TRUE);
    if (place < 0 || place + by < 0 || place + by >= count)
        return;
    char *moved = l->events[count - 1 - place];
    l->events[count - 1 - place] = l->events[count - 1 - place - by];
    l->events[count - 1 - place - by] = moved;
    show_steps(p, l);
    name_list_choose(p->steps, place + by);
}

static void on_add(GtkButton *button, gpointer user)
{
    (void)button;
    add_chosen(user);
}

static void on_remove(GtkButton *button, gpointer user)
{
    (void)button;
    remove_chosen(user);
}

static void on_up(GtkButton *button, gpointer user)
{
    (void)button;
    move_chosen(user, -1);
}

static void on_down(GtkButton *button, gpointer user)
{
    (void)button;
    move_chosen(user, 1);
}

/* ---- construction ---- */

static void offer_fields(GtkWidget *box, char *const *first, char *const *fields)
{
    gtk_combo_box_text_remove_all(GTK_COMBO_BOX_TEXT(box));
    for (; *first != NULL; first++)
        gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(box), *first);
    for (; *fields != NULL; fields++)
        if (!nl_terminal_controls(*fields, strlen(*fields))) /* the user cannot type control characters */
            gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(box), *fields);
}

void lifeline_page_edit(lifeline_page *p, drawing *d, const catalog *c)
{
    static char *const none[] = {NULL}, *const standard[] = {(char *)"HOST", (char *)"PROG", NULL};
    p->drawing = d;
    p->catalog = c;
    char **fields = catalog_fields(c, NULL, false);
    p->own_change = true;
    offer_fields(p->ids, none, fields);
    offer_fields(p->color, standard, fields);
    p->own_change = false;
    g_strfreev(fields);
    char **events = g_new0(char *, c->events->len + 1);
    for (guint i = 0; i < c->events->len; i++)
        events[i] = g_array_index(c->events, catalog_event, i).name;
    name_list_set(p->all, events);
    g_free(events);
    list_lifelines(p, 0);
}

static GtkWidget *button(const char *label, const char *tip, GCallback clicked, lifeline_page *p)
{
    GtkWidget *b = gtk_button_new_with_mnemonic(label);
    gtk_widget_set_tooltip_text(b, tip);
    g_signal_connect(b, "clicked", clicked, p);
    return b;
}

static GtkWidget *make_head(lifeline_page *p)
{
    GtkWidget *head = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    p->which = gtk_combo_box_text_new();
    atk_object_set_name(gtk_widget_get_accessible(p->which), "Lifeline");
    g_signal_connect(p->which, "changed", G_CALLBACK(on_which), p);
    gtk_box_pack_start(GTK_BOX(head), p->which, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(head),
                       button("_New lifeline", "Add a lifeline for another kind of object", G_CALLBACK(on_new), p),
                       FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(head),
                       button("Remo_ve lifeline", "Remove this lifeline", G_CALLBACK(on_remove_lifeline), p), FALSE,
                       FALSE, 0);
    return head;
}

static void lifeline_page_add_row(GtkWidget *grid, int row, const char *label, GtkWidget *widget, GtkWidget *entry,
                                  const char *tip)
{
    GtkWidget *name = gtk_label_new_with_mnemonic(label);
    gtk_label_set_xalign(GTK_LABEL(name), 0);
    gtk_label_set_mnemonic_widget(GTK_LABEL(name), entry);
    gtk_widget_set_tooltip_text(entry, tip);
    atk_object_set_name(gtk_widget_get_accessible(entry), gtk_label_get_text(GTK_LABEL(name)));
    atk_object_set_name(gtk_widget_get_accessible(widget), gtk_label_get_text(GTK_LABEL(name)));
    gtk_widget_set_hexpand(widget, TRUE);
    gtk_grid_attach(GTK_GRID(grid), name, 0, row, 1, 1);
    gtk_grid_attach(GTK_GRID(grid), widget, 1, row, 1, 1);
}

static GtkWidget *make_properties(lifeline_page *p)
{
    GtkWidget *grid = gtk_grid_new();
    gtk_grid_set_row_spacing(GTK_GRID(grid), 4);
    gtk_grid_set_column_spacing(GTK_GRID(grid), 8);
    p->name = gtk_entry_new();
    p->ids = gtk_combo_box_text_new_with_entry();
    p->color = gtk_combo_box_text_new_with_entry();
    GtkWidget *ids = gtk_bin_get_child(GTK_BIN(p->ids)), *color = gtk_bin_get_child(GTK_BIN(p->color));
    lifeline_page_add_row(grid, 0, "Na_me", p->name, p->name, "Kind of object, such as Block, Request or Job");
    lifeline_page_add_row(grid, 1, "_ID", p->ids, ids,
                          "The field that has the same value in all events of an object. Separate several fields with "
                          "; and alternative names of one field with |");
    lifeline_page_add_row(grid, 2, "_Color by", p->color, color,
                          "HOST, PROG or any field; each value has its own color");
    p->again = gtk_check_button_new_with_mnemonic("_Begin again with the first event");
    gtk_widget_set_tooltip_text(p->again, "For objects whose IDs are used again, such as interrupts");
    gtk_grid_attach(GTK_GRID(grid), p->again, 1, 3, 1, 1);
    g_signal_connect(p->again, "toggled", G_CALLBACK(on_again), p);
    g_signal_connect(p->name, "changed", G_CALLBACK(on_name), p);
    g_signal_connect(ids, "changed", G_CALLBACK(on_ids), p);
    g_signal_connect(color, "changed", G_CALLBACK(on_color), p);
    return grid;
}

static GtkWidget *make_lists(lifeline_page *p)
{
    GtkWidget *lists = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *between = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6);
    p->all = name_list_new("Events of the log", add_chosen, p);
    p->steps = name_list_new("Events of the lifeline, with the last event on top", remove_chosen, p);
    gtk_widget_set_valign(between, GTK_ALIGN_CENTER);
    GtkWidget *buttons[] = {
        button("_Add →", "Add the chosen events to the lifeline", G_CALLBACK(on_add), p),
        button("← _Remove", "Remove the chosen events from the lifeline", G_CALLBACK(on_remove), p),
        button("↑ _Later", "Move the chosen event up", G_CALLBACK(on_up), p),
        button("↓ _Earlier", "Move the chosen event down", G_CALLBACK(on_down), p),
    };
    for (size_t i = 0; i < G_N_ELEMENTS(buttons); i++)
        gtk_box_pack_start(GTK_BOX(between), buttons[i], FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(lists), name_list_widget(p->all), TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(lists), between, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(lists), name_list_widget(p->steps), TRUE, TRUE, 0);
    return lists;
}

static void lifeline_page_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

lifeline_page *lifeline_page_new(void)
{
    lifeline_page *p = g_new0(lifeline_page, 1);
    p->widget = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
    g_object_set(p->widget, "margin", 10, NULL);
    p->form = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
    gtk_box_pack_start(GTK_BOX(p->form), make_properties(p), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->form), make_lists(p), TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), make_head(p), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), p->form, TRUE, TRUE, 0);
    g_signal_connect(p->widget, "destroy", G_CALLBACK(lifeline_page_on_destroy), p);
    return p;
}

GtkWidget *lifeline_page_widget(lifeline_page *p)
{
    return p->widget;
}
