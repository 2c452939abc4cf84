#include "config.h"

#include "view/chooser.h"
#include "requests/printable.h"

#include <string.h>

enum { GROUPS = 3, NAMES_SHOWN = 300 };

typedef struct group {
    const char *field, *title;
    GtkWidget *box;
    GHashTable *known; /* maps a name to its check button */
} group;

struct chooser {
    model *model;
    GtkWidget *popover;
    group groups[GROUPS];
    void (*changed)(void *user);
    void *user;
    bool is_own; /* nlv is changing check boxes, so `changed` is not called */
};

static void on_toggled(GtkToggleButton *button, gpointer user)
{
    (void)button;
    chooser *c = user;
    if (!c->is_own)
        c->changed(c->user);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_box(chooser *c, group *g, const char *name)
{
    char *valid = printable(name);
    GtkWidget *button = gtk_check_button_new_with_label(valid);
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(button), TRUE);
    g_signal_connect(button, "toggled", G_CALLBACK(on_toggled), c);
    gtk_box_pack_start(GTK_BOX(g->box), button, FALSE, FALSE, 0);
    g_hash_table_insert(g->known, g_strdup(name), button);
    g_free(valid);
}

/* Adds check boxes for new names. Names that the filter hides keep their check boxes. */
static void add_names(chooser *c, group *g, const names *all)
{
    GPtrArray *fresh = g_ptr_array_new();
    for (size_t i = 0; i < names_count(all); i++) {
        const char *name = names_text(all, (uint16_t)i);
        if (*name != '\0' && !g_hash_table_contains(g->known, name))
            g_ptr_array_add(fresh, (gpointer)name);
    }
    g_ptr_array_sort(fresh, by_name);
    for (guint i = 0; i < fresh->len && g_hash_table_size(g->known) < NAMES_SHOWN; i++)
        add_box(c, g, g_ptr_array_index(fresh, i));
    g_ptr_array_free(fresh, TRUE);
}

static void set_all(GtkWidget *button, bool active)
{
    group *g = g_object_get_data(G_OBJECT(button), "group");
    chooser *c = g_object_get_data(G_OBJECT(button), "chooser");
    GHashTableIter iterator;
    gpointer box;
    c->is_own = true;
    g_hash_table_iter_init(&iterator, g->known);
    while (g_hash_table_iter_next(&iterator, NULL, &box))
        gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(box), active);
    c->is_own = false;
    c->changed(c->user);
}

static void on_all(GtkButton *button, gpointer user)
{
    (void)user;
    set_all(GTK_WIDGET(button), true);
}

static void on_none(GtkButton *button, gpointer user)
{
    (void)user;
    set_all(GTK_WIDGET(button), false);
}

void chooser_show(chooser *c)
{
    model_lock(c->model);
    const batch_names *names = &model_store(c->model)->names;
    const struct names *of[GROUPS] = {names->events, names->hosts, names->progs};
    c->is_own = true;
    for (int i = 0; i < GROUPS; i++)
        add_names(c, &c->groups[i], of[i]);
    c->is_own = false;
    model_unlock(c->model);
    gtk_widget_show_all(gtk_bin_get_child(GTK_BIN(c->popover)));
    gtk_popover_popup(GTK_POPOVER(c->popover));
}

/* Appends a name in quotes, as expressions require. */
static void append_quoted(GString *text, const char *name)
{
    g_string_append_c(text, '"');
    for (; *name != '\0'; name++)
        if (*name == '"' || *name == '\\')
            g_string_append_printf(text, "\\%c", *name);
        else if ((unsigned char)*name < ' ')
            g_string_append_printf(text, "\\x%02x", (unsigned)(unsigned char)*name);
        else
            g_string_append_c(text, *name);
    g_string_append_c(text, '"');
}

char *chooser_expression(const chooser *c)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < GROUPS; i++) {
        GHashTableIter iterator;
        gpointer name, box;
        unsigned count = 0;
        g_hash_table_iter_init(&iterator, c->groups[i].known);
        while (g_hash_table_iter_next(&iterator, &name, &box)) {
            if (gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(box)))
                continue;
            /* use !(... in ...), so that records without the field remain visible */
            if (count++ == 0)
                g_string_append_printf(text, "%s!(%s in (", text->len > 0 ? " && " : "", c->groups[i].field);
            else
                g_string_append(text, ", ");
            append_quoted(text, name);
        }
        if (count > 0)
            g_string_append(text, "))");
    }
    bool any = text->len > 0;
    return g_string_free(text, !any);
}

char **chooser_hidden(const chooser *c, int group)
{
    GPtrArray *names = g_ptr_array_new();
    GHashTableIter iterator;
    gpointer name, box;
    g_hash_table_iter_init(&iterator, c->groups[group].known);
    while (g_hash_table_iter_next(&iterator, &name, &box))
        if (!gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(box)))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

void chooser_hide(chooser *c, int group, char *const *names)
{
    struct group *g = &c->groups[group];
    GHashTableIter iterator;
    gpointer name, box;
    c->is_own = true;
    for (char *const *one = names; *one != NULL; one++)
        if (!g_hash_table_contains(g->known, *one))
            add_box(c, g, *one);
    g_hash_table_iter_init(&iterator, g->known);
    while (g_hash_table_iter_next(&iterator, &name, &box))
        gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(box), !g_strv_contains((const char *const *)names, name));
    c->is_own = false;
}

static GtkWidget *small_button(chooser *c, group *g, const char *label, GCallback callback)
{
    GtkWidget *button = gtk_button_new_with_label(label);
    gtk_button_set_relief(GTK_BUTTON(button), GTK_RELIEF_NONE);
    g_object_set_data(G_OBJECT(button), "group", g);
    g_object_set_data(G_OBJECT(button), "chooser", c);
    g_signal_connect(button, "clicked", callback, NULL);
    return button;
}

static GtkWidget *make_group(chooser *c, group *g)
{
    GtkWidget *all = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4), *head = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 2);
    GtkWidget *title = gtk_label_new(NULL), *scrolled = gtk_scrolled_window_new(NULL, NULL);
    char *markup = g_markup_printf_escaped("<b>%s</b>", g->title);
    gtk_label_set_markup(GTK_LABEL(title), markup);
    g_free(markup);
    g->box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
    g->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    gtk_scrolled_window_set_propagate_natural_height(GTK_SCROLLED_WINDOW(scrolled), TRUE);
    gtk_scrolled_window_set_max_content_height(GTK_SCROLLED_WINDOW(scrolled), 460);
    gtk_container_add(GTK_CONTAINER(scrolled), g->box);
    gtk_box_pack_start(GTK_BOX(head), title, FALSE, FALSE, 0);
    gtk_box_pack_end(GTK_BOX(head), small_button(c, g, "None", G_CALLBACK(on_none)), FALSE, FALSE, 0);
    gtk_box_pack_end(GTK_BOX(head), small_button(c, g, "All", G_CALLBACK(on_all)), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(all), head, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(all), scrolled, TRUE, TRUE, 0);
    return all;
}

static void chooser_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    chooser *c = user;
    for (int i = 0; i < GROUPS; i++)
        g_hash_table_destroy(c->groups[i].known);
    g_free(c);
}

chooser *chooser_new(model *m, GtkWidget *relative_to, void (*changed)(void *user), void *user)
{
    chooser *c = g_new0(chooser, 1);
    c->model = m;
    c->changed = changed;
    c->user = user;
    c->groups[0] = (group){.field = "NL.EVNT", .title = "Events"};
    c->groups[1] = (group){.field = "HOST", .title = "Hosts"};
    c->groups[2] = (group){.field = "PROG", .title = "Programs"};
    c->popover = gtk_popover_new(relative_to);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 16);
    g_object_set(box, "margin", 10, NULL);
    for (int i = 0; i < GROUPS; i++)
        gtk_box_pack_start(GTK_BOX(box), make_group(c, &c->groups[i]), FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(c->popover), box);
    g_signal_connect(c->popover, "destroy", G_CALLBACK(chooser_on_destroy), c);
    return c;
}
