#include "config.h"

#include "view/row_page.h"

#include "requests/printable.h"
#include "view/name_list.h"

#include <string.h>

struct row_page {
    bool is_loadlines;
    GtkWidget *widget, *rows;
    name_list *offered;
    GArray *offers; /* the offers in the list */
    drawing *drawing;
};

/* An event and, for a loadline, its field. The catalog owns the names. */
typedef struct offer {
    const char *event, *field;
} offer;

/* The row to which a widget belongs. */
typedef struct part {
    row_page *page;
    guint at; /* index in the drawing's list */
    bool is_unit;
} part;

static void show_rows(row_page *p);

static GPtrArray *list_of(const row_page *p)
{
    return p->is_loadlines ? p->drawing->loadlines : p->drawing->points;
}

static void free_part(gpointer data, GClosure *closure)
{
    (void)closure;
    g_free(data);
}

static void on_edited(GtkEditable *editable, gpointer user)
{
    const part *of = user;
    gpointer item = g_ptr_array_index(list_of(of->page), of->at);
    drawing_loadline *l = item;
    char **to = of->is_unit ? &l->unit : of->page->is_loadlines ? &l->name : &((drawing_point *)item)->name;
    g_free(*to);
    *to = g_strstrip(g_strdup(gtk_entry_get_text(GTK_ENTRY(editable))));
}

/* Rebuilds the rows. Runs after the handler of a button in a row has returned, because rebuilding destroys the button.
 */
static gboolean show_later(gpointer user)
{
    show_rows(user);
    return G_SOURCE_REMOVE;
}

static void on_remove(GtkButton *button, gpointer user)
{
    (void)button;
    const part *of = user;
    g_ptr_array_remove_index(list_of(of->page), of->at);
    g_idle_add(show_later, of->page);
}

static void connect_part(GtkWidget *widget, const char *signal, GCallback callback, row_page *p, guint at, bool is_unit)
{
    part *of = g_new(part, 1);
    *of = (part){p, at, is_unit};
    g_signal_connect_data(widget, signal, callback, of, free_part, 0);
}

static GtkWidget *entry(row_page *p, guint at, const char *text, bool is_unit, const char *name)
{
    GtkWidget *e = gtk_entry_new();
    gtk_entry_set_text(GTK_ENTRY(e), text);
    gtk_entry_set_width_chars(GTK_ENTRY(e), is_unit ? 6 : 16);
    gtk_widget_set_hexpand(e, !is_unit);
    atk_object_set_name(gtk_widget_get_accessible(e), name);
    gtk_widget_set_tooltip_text(e, name);
    connect_part(e, "changed", G_CALLBACK(on_edited), p, at, is_unit);
    return e;
}

static void row_page_add_row(row_page *p, guint at)
{
    gpointer item = g_ptr_array_index(list_of(p), at);
    const drawing_loadline *l = item;
    const drawing_point *point = item;
    char *raw = p->is_loadlines ? g_strdup_printf("%s  %s", l->event, l->field) : g_strdup(point->event);
    char *text = printable(raw);
    GtkWidget *label = gtk_label_new(text),
              *remove = gtk_button_new_from_icon_name("list-remove-symbolic", GTK_ICON_SIZE_BUTTON);
    char *tip = g_strdup_printf("Do not draw %s", text);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_ellipsize(GTK_LABEL(label), PANGO_ELLIPSIZE_MIDDLE);
    gtk_widget_set_tooltip_text(label, text);
    gtk_label_set_width_chars(GTK_LABEL(label), 20);
    gtk_widget_set_tooltip_text(remove, tip);
    atk_object_set_name(gtk_widget_get_accessible(remove), tip);
    connect_part(remove, "clicked", G_CALLBACK(on_remove), p, at, false);
    int row = (int)at + 1;
    gtk_grid_attach(GTK_GRID(p->rows), entry(p, at, p->is_loadlines ? l->name : point->name, false, "Name"), 0, row, 1,
                    1);
    if (p->is_loadlines)
        gtk_grid_attach(GTK_GRID(p->rows), entry(p, at, l->unit, true, "Unit"), 1, row, 1, 1);
    gtk_grid_attach(GTK_GRID(p->rows), label, 2, row, 1, 1);
    gtk_grid_attach(GTK_GRID(p->rows), remove, 3, row, 1, 1);
    g_free(tip);
    g_free(text);
    g_free(raw);
}

static void add_headings(row_page *p)
{
    const char *const headings[] = {"Name", p->is_loadlines ? "Unit" : NULL,
                                    p->is_loadlines ? "Event and field" : "Event"};
    for (int i = 0; i < 3; i++)
        if (headings[i] != NULL) {
            GtkWidget *label = gtk_label_new(headings[i]);
            gtk_label_set_xalign(GTK_LABEL(label), 0);
            gtk_style_context_add_class(gtk_widget_get_style_context(label), "dim-label");
            gtk_grid_attach(GTK_GRID(p->rows), label, i, 0, 1, 1);
        }
}

static void show_rows(row_page *p)
{
    GList *children = gtk_container_get_children(GTK_CONTAINER(p->rows));
    g_list_free_full(children, (GDestroyNotify)(void (*)(void))gtk_widget_destroy);
    add_headings(p);
    for (guint at = 0; at < list_of(p)->len; at++)
        row_page_add_row(p, at);
    gtk_widget_show_all(p->rows);
}

/* ---- the offered entries ---- */

static bool is_drawn(const row_page *p, const offer *o)
{
    for (guint i = 0; i < list_of(p)->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(list_of(p), i);
        const drawing_point *point = g_ptr_array_index(list_of(p), i);
        if (p->is_loadlines ? strcmp(l->event, o->event) == 0 && strcmp(l->field, o->field) == 0
                            : strcmp(point->event, o->event) == 0)
            return true;
    }
    return false;
}

static bool has_name(const row_page *p, const char *name)
{
    for (guint i = 0; i < list_of(p)->len; i++)
        if (strcmp(p->is_loadlines ? ((drawing_loadline *)g_ptr_array_index(list_of(p), i))->name
                                   : ((drawing_point *)g_ptr_array_index(list_of(p), i))->name,
                   name) == 0)
            return true;
    return false;
}

static void draw_offer(row_page *p, const offer *o)
{
    if (is_drawn(p, o))
        return;
    if (!p->is_loadlines) {
        drawing_add_point(p->drawing, o->event, o->event);
        return;
    }
    /* add the event's name if another row has the field's name */
    char *name = has_name(p, o->field) ? g_strdup_printf("%s %s", o->event, o->field) : g_strdup(o->field);
    drawing_add_loadline(p->drawing, name, o->event, o->field, "");
    g_free(name);
}

static void add_chosen(void *user)
{
    row_page *p = user;
    GArray *places = name_list_chosen(p->offered);
    for (guint i = 0; i < places->len; i++)
        draw_offer(p, &g_array_index(p->offers, offer, g_array_index(places, int, i)));
    g_array_free(places, TRUE);
    show_rows(p);
}

static void on_add(GtkButton *button, gpointer user)
{
    (void)button;
    add_chosen(user);
}

static void make_offers(row_page *p, const catalog *c)
{
    g_array_set_size(p->offers, 0);
    for (guint i = 0; i < c->events->len; i++) {
        const catalog_event *event = &g_array_index(c->events, catalog_event, i);
        offer whole = {event->name, NULL};
        if (!p->is_loadlines)
            g_array_append_val(p->offers, whole);
        for (guint j = 0; p->is_loadlines && j < event->fields->len; j++) {
            const catalog_field *field = &g_array_index(event->fields, catalog_field, j);
            offer number = {event->name, field->name};
            if (field->is_number)
                g_array_append_val(p->offers, number);
        }
    }
}

void row_page_edit(row_page *p, drawing *d, const catalog *c)
{
    p->drawing = d;
    make_offers(p, c);
    char **names = g_new0(char *, p->offers->len + 1);
    for (guint i = 0; i < p->offers->len; i++) {
        const offer *o = &g_array_index(p->offers, offer, i);
        names[i] = o->field != NULL ? g_strdup_printf("%s  %s", o->event, o->field) : g_strdup(o->event);
    }
    name_list_set(p->offered, names);
    g_strfreev(names);
    show_rows(p);
}

/* ---- construction ---- */

static void row_page_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    row_page *p = user;
    while (g_idle_remove_by_data(p))
        ;
    g_array_free(p->offers, TRUE);
    g_free(p);
}

row_page *row_page_new(bool is_loadlines)
{
    row_page *p = g_new0(row_page, 1);
    p->is_loadlines = is_loadlines;
    p->offers = g_array_new(FALSE, FALSE, sizeof(offer));
    p->widget = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8);
    g_object_set(p->widget, "margin", 10, NULL);
    p->offered = name_list_new(is_loadlines ? "Numbers in the log" : "Events in the log", add_chosen, p);
    GtkWidget *add = gtk_button_new_with_mnemonic("_Add →"), *scrolled = gtk_scrolled_window_new(NULL, NULL);
    gtk_widget_set_valign(add, GTK_ALIGN_CENTER);
    gtk_widget_set_tooltip_text(add, is_loadlines ? "Draw the chosen fields as loadlines"
                                                  : "Draw the chosen events as points");
    g_signal_connect(add, "clicked", G_CALLBACK(on_add), p);
    p->rows = gtk_grid_new();
    gtk_grid_set_row_spacing(GTK_GRID(p->rows), 4);
    gtk_grid_set_column_spacing(GTK_GRID(p->rows), 6);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    gtk_container_add(GTK_CONTAINER(scrolled), p->rows);
    gtk_box_pack_start(GTK_BOX(p->widget), name_list_widget(p->offered), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), add, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), scrolled, TRUE, TRUE, 0);
    g_signal_connect(p->widget, "destroy", G_CALLBACK(row_page_on_destroy), p);
    return p;
}

GtkWidget *row_page_widget(row_page *p)
{
    return p->widget;
}
