#include "config.h"

#include "view/search_bar.h"

#include "model/search.h"

#include <string.h>

struct search_bar {
    model *model;
    search_bar_callbacks callbacks;
    GtkWidget *widget; /* a GtkRevealer */
    GtkWidget *find, *filter, *status;
    search *search;
    char *searched; /* the expression of the search */
    bool waits;     /* show the next match when the search ends */
    bool backwards; /* search back in time */
    int64_t wanted_ns;
};

static void search_bar_say(search_bar *b, const char *text)
{
    gtk_label_set_text(GTK_LABEL(b->status), text);
}

static void mark_wrong(GtkWidget *entry, bool is_wrong)
{
    GtkStyleContext *style = gtk_widget_get_style_context(entry);
    if (is_wrong)
        gtk_style_context_add_class(style, GTK_STYLE_CLASS_ERROR);
    else
        gtk_style_context_remove_class(style, GTK_STYLE_CLASS_ERROR);
}

/* Returns the expression in an entry. A single word becomes an expression that searches the names of events. */
static char *expression_of(GtkWidget *entry)
{
    char *text = g_strstrip(g_strdup(gtk_entry_get_text(GTK_ENTRY(entry))));
    bool is_word = *text != '\0';
    for (const char *at = text; *at != '\0'; at++)
        is_word = is_word && (g_ascii_isalnum(*at) || strchr("._-", *at) != NULL);
    if (!is_word)
        return text;
    char *expression = g_strdup_printf("NL.EVNT ~ \"*%s*\"", text);
    g_free(text);
    return expression;
}

/* ---- finding ---- */

static void begin_search(search_bar *b, char *expression)
{
    search_free(b->search);
    g_free(b->searched);
    b->searched = expression;
    b->search = *expression != '\0' ? search_new(b->model, expression) : NULL;
    mark_wrong(b->find, b->search == NULL && *expression != '\0');
    search_bar_say(b, b->search == NULL && *expression != '\0' ? nl_error_message() : "");
}

static void search_bar_continue(search_bar *b)
{
    int64_t found_ns;
    uint32_t record;
    size_t number;
    bool done = search_is_done(b->search);
    if (!done)
        return; /* until the search ends, an unknown match may be nearer than the known matches */
    model_lock(b->model);
    bool any = search_next(b->search, b->wanted_ns, b->backwards, &found_ns, &record, &number);
    bool wrapped = !any && search_count(b->search) > 0;
    if (wrapped)
        any = search_next(b->search, b->backwards ? INT64_MAX : INT64_MIN, b->backwards, &found_ns, &record, &number);
    model_unlock(b->model);
    b->waits = false;
    if (!any) {
        search_bar_say(b, "no match");
        return;
    }
    char *text = g_strdup_printf("%zu of %zu%s", number, search_count(b->search), wrapped ? ", wrapped around" : "");
    search_bar_say(b, text);
    g_free(text);
    b->callbacks.found(b->callbacks.user, found_ns, record);
}

void search_bar_next(search_bar *b, bool backwards)
{
    char *expression = expression_of(b->find);
    if (b->searched == NULL || strcmp(expression, b->searched) != 0)
        begin_search(b, expression);
    else
        g_free(expression);
    if (b->search == NULL)
        return;
    b->waits = true;
    b->backwards = backwards;
    b->wanted_ns = b->callbacks.where(b->callbacks.user, backwards);
    search_bar_tick(b);
}

/* Shows the progress of reading in the entry of the filter. */
static void show_filtering(search_bar *b)
{
    GtkEntry *entry = GTK_ENTRY(b->filter);
    model_lock(b->model);
    bool filters = model_filter(b->model) != NULL;
    model_unlock(b->model);
    double progress = model_progress(b->model), shown = filters && progress < 1 ? progress : 0;
    if (shown != gtk_entry_get_progress_fraction(entry))
        gtk_entry_set_progress_fraction(entry, shown);
}

void search_bar_tick(search_bar *b)
{
    show_filtering(b);
    if (b->search == NULL || !b->waits)
        return;
    if (!search_is_done(b->search)) {
        char *text = g_strdup_printf("searching, %.0f %%, %zu so far", 100 * search_progress(b->search),
                                     search_count(b->search));
        search_bar_say(b, text);
        g_free(text);
    }
    search_bar_continue(b);
}

static void on_find(GtkEntry *entry, gpointer user)
{
    (void)entry;
    search_bar_next(user, false);
}

static void on_next(GtkButton *button, gpointer user)
{
    (void)button;
    search_bar_next(user, false);
}

static void on_previous(GtkButton *button, gpointer user)
{
    (void)button;
    search_bar_next(user, true);
}

/* ---- the filter ---- */

static void on_filter(GtkEntry *entry, gpointer user)
{
    search_bar *b = user;
    char *expression = expression_of(GTK_WIDGET(entry));
    bool good = b->callbacks.filter(b->callbacks.user, *expression != '\0' ? expression : NULL);
    mark_wrong(b->filter, !good);
    search_bar_say(b, good ? "" : nl_error_message());
    if (good)
        b->callbacks.left(b->callbacks.user);
    g_free(expression);
}

static void on_show_all(GtkButton *button, gpointer user)
{
    (void)button;
    search_bar *b = user;
    gtk_entry_set_text(GTK_ENTRY(b->filter), "");
    on_filter(GTK_ENTRY(b->filter), b);
}

/* ---- creation and destruction ---- */

static void search_bar_begin(search_bar *b, GtkWidget *entry)
{
    gtk_revealer_set_reveal_child(GTK_REVEALER(b->widget), TRUE);
    gtk_widget_realize(entry); /* needed because keys may arrive before the revealer has realized the entry */
    gtk_widget_grab_focus(entry);
}

void search_bar_begin_find(search_bar *b)
{
    search_bar_begin(b, b->find);
}

void search_bar_set_filter(search_bar *b, const char *expression)
{
    gtk_entry_set_text(GTK_ENTRY(b->filter), expression != NULL ? expression : "");
    mark_wrong(b->filter, false);
}

void search_bar_begin_filter(search_bar *b)
{
    search_bar_begin(b, b->filter);
}

bool search_bar_hide(search_bar *b)
{
    bool was = gtk_revealer_get_reveal_child(GTK_REVEALER(b->widget));
    gtk_revealer_set_reveal_child(GTK_REVEALER(b->widget), FALSE);
    b->waits = false;
    begin_search(b, g_strdup("")); /* an empty search shows the requests again in their colors */
    b->callbacks.left(b->callbacks.user);
    return was;
}

static void search_bar_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    search_bar *b = user;
    search_free(b->search);
    g_free(b->searched);
    g_free(b);
}

static GtkWidget *add_entry(GtkWidget *box, const char *label, const char *hint, const char *tip)
{
    GtkWidget *name = gtk_label_new_with_mnemonic(label), *entry = gtk_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(entry), hint);
    gtk_widget_set_tooltip_text(entry, tip);
    gtk_label_set_mnemonic_widget(GTK_LABEL(name), entry);
    atk_object_set_name(gtk_widget_get_accessible(entry), hint);
    gtk_box_pack_start(GTK_BOX(box), name, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), entry, TRUE, TRUE, 0);
    return entry;
}

/* Adds a group of widgets to the bar. In a narrow window, the bar places its groups below each other. */
static GtkWidget *add_group(GtkWidget *bar)
{
    GtkWidget *group = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    gtk_container_add(GTK_CONTAINER(bar), group);
    gtk_widget_set_can_focus(gtk_widget_get_parent(group), FALSE); /* only the widgets of the group get the focus */
    return group;
}

static void add_button(GtkWidget *box, const char *icon, const char *tip, GCallback callback, search_bar *b)
{
    GtkWidget *button = gtk_button_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON);
    gtk_widget_set_tooltip_text(button, tip);
    gtk_widget_set_focus_on_click(button, FALSE);
    atk_object_set_name(gtk_widget_get_accessible(button), tip);
    g_signal_connect(button, "clicked", callback, b);
    gtk_box_pack_start(GTK_BOX(box), button, FALSE, FALSE, 0);
}

search_bar *search_bar_new(model *m, search_bar_callbacks callbacks)
{
    static const char *const tip = "A word, which is part of an event's name, or an expression:\n"
                                   "NL.EVNT == BlockRead && SIZE > 65536\nHOST ~ \"dpss*\" || LVL <= Warning\n"
                                   "or an expression on requests:\n"
                                   "request.duration > 50ms && any(STATUS >= 500)\nspan(\"Query\").self > 10ms";
    search_bar *b = g_new0(search_bar, 1);
    b->model = m;
    b->callbacks = callbacks;
    b->widget = gtk_revealer_new();
    GtkWidget *bar = gtk_flow_box_new(), *box = add_group(bar);
    g_object_set(bar, "margin", 4, "selection-mode", GTK_SELECTION_NONE, "max-children-per-line", 2, NULL);
    atk_object_set_name(gtk_widget_get_accessible(bar), "Find and show only");
    b->find = add_entry(box, "_Find", "Find: a word, or FIELD == VALUE", tip);
    add_button(box, "go-up-symbolic", "Previous match (Shift+N)", G_CALLBACK(on_previous), b);
    add_button(box, "go-down-symbolic", "Next match (N)", G_CALLBACK(on_next), b);
    b->status = gtk_label_new("");
    gtk_label_set_ellipsize(GTK_LABEL(b->status), PANGO_ELLIPSIZE_END);
    gtk_label_set_width_chars(GTK_LABEL(b->status), 22);
    gtk_label_set_xalign(GTK_LABEL(b->status), 0);
    gtk_box_pack_start(GTK_BOX(box), b->status, FALSE, FALSE, 0);
    box = add_group(bar);
    b->filter = add_entry(box, "Show _only", "Show only: a word, or FIELD == VALUE", tip);
    /* Use a button, because an icon in the entry makes ATK print warnings. */
    add_button(box, "edit-clear-symbolic", "Show all again", G_CALLBACK(on_show_all), b);
    gtk_container_add(GTK_CONTAINER(b->widget), bar);
    g_signal_connect(b->find, "activate", G_CALLBACK(on_find), b);
    g_signal_connect(b->filter, "activate", G_CALLBACK(on_filter), b);
    g_signal_connect(b->widget, "destroy", G_CALLBACK(search_bar_on_destroy), b);
    return b;
}

GtkWidget *search_bar_widget(search_bar *b)
{
    return b->widget;
}
