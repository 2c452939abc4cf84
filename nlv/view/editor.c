#include "config.h"

#include "view/editor.h"

#include "requests/printable.h"
#include "view/lifeline_page.h"
#include "view/row_page.h"

struct editor {
    GtkWindow *parent;
    GtkWidget *window; /* NULL while the window is hidden */
    GtkWidget *title, *message;
    lifeline_page *lifelines;
    row_page *loadlines, *points;
    model *model;
    catalog *catalog;
    drawing *draft;
    char *path;
    editor_callbacks callbacks;
};

static void editor_say(editor *e, const char *text)
{
    char *valid = printable(text);
    gtk_label_set_text(GTK_LABEL(e->message), valid);
    g_free(valid);
}

/* Begins to edit another draft. Takes ownership of d and frees the old draft. */
static void edit(editor *e, drawing *d)
{
    drawing *old = e->draft;
    e->draft = d;
    gtk_entry_set_text(GTK_ENTRY(e->title), d->title != NULL ? d->title : "");
    lifeline_page_edit(e->lifelines, d, e->catalog);
    row_page_edit(e->loadlines, d, e->catalog);
    row_page_edit(e->points, d, e->catalog);
    drawing_free(old);
}

static void on_title(GtkEditable *editable, gpointer user)
{
    editor *e = user;
    const char *text = gtk_entry_get_text(GTK_ENTRY(editable));
    if (e->draft == NULL)
        return;
    g_free(e->draft->title);
    e->draft->title = *text != '\0' ? g_strdup(text) : NULL;
}

/* Returns a copy of the draft if it is valid. Otherwise, shows the error and returns NULL. */
static drawing *checked(editor *e)
{
    drawing *d = drawing_check(e->draft) ? drawing_copy(e->draft) : NULL;
    if (d == NULL)
        editor_say(e, nl_error_message());
    return d;
}

static void on_draw(GtkButton *button, gpointer user)
{
    (void)button;
    editor *e = user;
    drawing *d = checked(e);
    if (d == NULL)
        return;
    editor_say(e, "");
    e->callbacks.draw(e->callbacks.user, d);
}

static void on_find_out(GtkButton *button, gpointer user)
{
    (void)button;
    editor *e = user;
    e->callbacks.draw(e->callbacks.user, NULL);
    gtk_widget_destroy(e->window); /* the editor cannot show the new drawing, because nlv has not inferred it yet */
}

static GtkFileChooserNative *choose_file(editor *e, const char *title, bool save)
{
    GtkFileChooserNative *chooser = gtk_file_chooser_native_new(
        title, GTK_WINDOW(e->window), save ? GTK_FILE_CHOOSER_ACTION_SAVE : GTK_FILE_CHOOSER_ACTION_OPEN,
        save ? "_Save" : "_Open", "_Cancel");
    GtkFileFilter *filter = gtk_file_filter_new();
    gtk_file_filter_set_name(filter, "Drawings (*.nlv)");
    gtk_file_filter_add_pattern(filter, "*.nlv");
    gtk_file_chooser_add_filter(GTK_FILE_CHOOSER(chooser), filter);
    if (e->path != NULL)
        gtk_file_chooser_set_filename(GTK_FILE_CHOOSER(chooser), e->path);
    else if (save)
        gtk_file_chooser_set_current_name(GTK_FILE_CHOOSER(chooser), "drawing.nlv");
    gtk_file_chooser_set_do_overwrite_confirmation(GTK_FILE_CHOOSER(chooser), TRUE);
    return chooser;
}

static void remember(editor *e, char *path)
{
    g_free(e->path);
    e->path = path;
}

static void save(editor *e, char *path)
{
    bool good = drawing_write(e->draft, path);
    char *text = good ? g_strdup_printf("Saved. To use this drawing again, run nlv --config %s", path)
                      : g_strdup(nl_error_message());
    editor_say(e, text);
    g_free(text);
    remember(e, path);
}

static void on_save(GtkButton *button, gpointer user)
{
    (void)button;
    editor *e = user;
    drawing *d = checked(e);
    if (d == NULL)
        return;
    drawing_free(d);
    GtkFileChooserNative *chooser = choose_file(e, "Save the drawing", true);
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(chooser)) == GTK_RESPONSE_ACCEPT)
        save(e, gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(chooser)));
    g_object_unref(chooser);
}

static void on_open(GtkButton *button, gpointer user)
{
    (void)button;
    editor *e = user;
    GtkFileChooserNative *chooser = choose_file(e, "Open a drawing", false);
    if (gtk_native_dialog_run(GTK_NATIVE_DIALOG(chooser)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(chooser));
        drawing *d = drawing_read(path);
        editor_say(e, d != NULL ? "Press Draw to show it" : nl_error_message());
        if (d != NULL)
            edit(e, d);
        remember(e, path);
    }
    g_object_unref(chooser);
}

static void on_ready_made(GtkComboBox *box, gpointer user)
{
    editor *e = user;
    char *name = gtk_combo_box_text_get_active_text(GTK_COMBO_BOX_TEXT(box));
    if (name == NULL || gtk_combo_box_get_active(box) == 0) {
        g_free(name);
        return;
    }
    drawing *d = drawing_read(name);
    editor_say(e, d != NULL ? "Press Draw to show it" : nl_error_message());
    if (d != NULL)
        edit(e, d);
    g_free(name);
}

static GtkWidget *make_ready_made(editor *e)
{
    GtkWidget *box = gtk_combo_box_text_new();
    char **names = drawing_names();
    gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(box), "Ready-made…");
    for (char **name = names; *name != NULL; name++)
        gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(box), *name);
    gtk_combo_box_set_active(GTK_COMBO_BOX(box), 0);
    gtk_widget_set_sensitive(box, names[0] != NULL);
    gtk_widget_set_tooltip_text(box, "Drawings included with nlv");
    atk_object_set_name(gtk_widget_get_accessible(box), "Ready-made drawings");
    g_signal_connect(box, "changed", G_CALLBACK(on_ready_made), e);
    g_strfreev(names);
    return box;
}

/* ---- construction ---- */

static void editor_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    editor *e = user;
    e->window = NULL;
    drawing_free(e->draft);
    catalog_free(e->catalog);
    e->draft = NULL;
    e->catalog = NULL;
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    (void)user;
    if (event->keyval != GDK_KEY_Escape)
        return FALSE;
    gtk_widget_destroy(widget);
    return TRUE;
}

static GtkWidget *add_button(GtkWidget *box, const char *label, const char *tip, GCallback clicked, editor *e,
                             bool at_end)
{
    GtkWidget *button = gtk_button_new_with_mnemonic(label);
    gtk_widget_set_tooltip_text(button, tip);
    g_signal_connect(button, "clicked", clicked, e);
    if (at_end)
        gtk_box_pack_end(GTK_BOX(box), button, FALSE, FALSE, 0);
    else
        gtk_box_pack_start(GTK_BOX(box), button, FALSE, FALSE, 0);
    return button;
}

static GtkWidget *make_foot(editor *e)
{
    GtkWidget *foot = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    GtkWidget *draw = add_button(foot, "_Draw", "Apply this drawing to the log", G_CALLBACK(on_draw), e, true);
    gtk_style_context_add_class(gtk_widget_get_style_context(draw), GTK_STYLE_CLASS_SUGGESTED_ACTION);
    add_button(foot, "_Open…", "Read a drawing from a file", G_CALLBACK(on_open), e, false);
    add_button(foot, "_Save…", "Write a file for nlv --config and nlstat --config", G_CALLBACK(on_save), e, false);
    add_button(foot, "_Infer", "Draw what nlv infers from the log", G_CALLBACK(on_find_out), e, false);
    gtk_box_pack_start(GTK_BOX(foot), make_ready_made(e), FALSE, FALSE, 0);
    e->message = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(e->message), 0);
    gtk_label_set_ellipsize(GTK_LABEL(e->message), PANGO_ELLIPSIZE_END);
    gtk_box_pack_start(GTK_BOX(foot), e->message, TRUE, TRUE, 0);
    return foot;
}

static GtkWidget *make_title(editor *e)
{
    GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8), *label = gtk_label_new_with_mnemonic("_Title");
    e->title = gtk_entry_new();
    gtk_label_set_mnemonic_widget(GTK_LABEL(label), e->title);
    atk_object_set_name(gtk_widget_get_accessible(e->title), "Title");
    gtk_widget_set_tooltip_text(e->title, "Title above the picture");
    g_signal_connect(e->title, "changed", G_CALLBACK(on_title), e);
    gtk_box_pack_start(GTK_BOX(row), label, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(row), e->title, TRUE, TRUE, 0);
    return row;
}

static void build(editor *e)
{
    e->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_title(GTK_WINDOW(e->window), "Drawing");
    gtk_window_set_transient_for(GTK_WINDOW(e->window), e->parent);
    gtk_window_set_position(GTK_WINDOW(e->window), GTK_WIN_POS_CENTER_ON_PARENT);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8), *pages = gtk_notebook_new();
    g_object_set(box, "margin", 10, NULL);
    gtk_widget_set_size_request(pages, 800, 520);
    e->lifelines = lifeline_page_new();
    e->loadlines = row_page_new(true);
    e->points = row_page_new(false);
    gtk_notebook_append_page(GTK_NOTEBOOK(pages), lifeline_page_widget(e->lifelines), gtk_label_new("Lifelines"));
    gtk_notebook_append_page(GTK_NOTEBOOK(pages), row_page_widget(e->loadlines), gtk_label_new("Loadlines"));
    gtk_notebook_append_page(GTK_NOTEBOOK(pages), row_page_widget(e->points), gtk_label_new("Points"));
    gtk_box_pack_start(GTK_BOX(box), make_title(e), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), pages, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(box), make_foot(e), FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(e->window), box);
    g_signal_connect(e->window, "destroy", G_CALLBACK(editor_on_destroy), e);
    g_signal_connect(e->window, "key-press-event", G_CALLBACK(on_key), e);
}

void editor_show(editor *e)
{
    if (e->window != NULL) {
        gtk_window_present(GTK_WINDOW(e->window));
        return;
    }
    build(e);
    model_lock(e->model);
    e->catalog = catalog_new(e->model);
    drawing *d = drawing_copy(model_drawing(e->model));
    model_unlock(e->model);
    edit(e, d);
    gtk_widget_show_all(e->window);
}

editor *editor_new(GtkWindow *parent, model *m, const char *path, editor_callbacks callbacks)
{
    editor *e = g_new0(editor, 1);
    e->parent = parent;
    e->model = m;
    e->path = g_canonicalize_filename(path != NULL ? path : "", NULL);
    if (path == NULL)
        g_clear_pointer(&e->path, g_free);
    e->callbacks = callbacks;
    return e;
}

void editor_free(editor *e)
{
    if (e->window != NULL)
        gtk_widget_destroy(e->window);
    g_free(e->path);
    g_free(e);
}
