#include "config.h"

#include "view/exporting.h"

#include "base/text.h"
#include "model/export.h"
#include "scene/render.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct exporting {
    GtkWindow *window;
    model *model;
    canvas *canvas;
    void (*say)(void *user, const char *text);
    void *user;
    char *caption; /* caption of pictures, or NULL */
    int writing;   /* number of threads that write records */
};

exporting *exporting_new(GtkWindow *window, model *m, canvas *c, void (*say)(void *user, const char *text), void *user)
{
    exporting *e = g_new0(exporting, 1);
    *e = (exporting){.window = window, .model = m, .canvas = c, .say = say, .user = user};
    return e;
}

void exporting_free(exporting *e)
{
    g_free(e->caption);
    g_free(e);
}

bool exporting_is_busy(const exporting *e)
{
    return e->writing > 0;
}

/* Returns a dialog that asks for a file name. `extra` is a row of widgets below the list of files. */
static GtkWidget *save_dialog(exporting *e, const char *title, const char *name, GtkWidget *extra)
{
    GtkWidget *dialog = gtk_file_chooser_dialog_new(title, e->window, GTK_FILE_CHOOSER_ACTION_SAVE, "_Cancel",
                                                    GTK_RESPONSE_CANCEL, "_Save", GTK_RESPONSE_ACCEPT, NULL);
    gtk_dialog_set_default_response(GTK_DIALOG(dialog), GTK_RESPONSE_ACCEPT);
    gtk_file_chooser_set_current_name(GTK_FILE_CHOOSER(dialog), name);
    gtk_file_chooser_set_do_overwrite_confirmation(GTK_FILE_CHOOSER(dialog), TRUE);
    gtk_file_chooser_set_extra_widget(GTK_FILE_CHOOSER(dialog), extra);
    gtk_widget_show_all(extra);
    return dialog;
}

static void add_labelled(GtkWidget *row, const char *text, GtkWidget *widget, bool grows)
{
    GtkWidget *label = gtk_label_new_with_mnemonic(text);
    gtk_label_set_mnemonic_widget(GTK_LABEL(label), widget);
    atk_object_set_name(gtk_widget_get_accessible(widget), gtk_label_get_text(GTK_LABEL(label)));
    gtk_box_pack_start(GTK_BOX(row), label, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(row), widget, grows, grows, 0);
}

/* ---- the picture ---- */

static void write_picture(exporting *e, const char *path)
{
    scene_view view = *canvas_view(e->canvas);
    view.caption = e->caption;
    if (!render_knows(path)) {
        e->say(e->user, "The file name must end in .png, .svg or .pdf");
        return;
    }
    model_lock(e->model);
    bool good = render_to_file(e->model, &view, path);
    model_unlock(e->model);
    char *said = g_strdup_printf("Saved %s", path);
    e->say(e->user, good ? said : nl_error_message());
    g_free(said);
}

void exporting_picture(exporting *e)
{
    GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *caption = gtk_entry_new();
    gtk_entry_set_text(GTK_ENTRY(caption), e->caption != NULL ? e->caption : "");
    gtk_entry_set_placeholder_text(GTK_ENTRY(caption), "Text below the picture");
    add_labelled(row, "Ca_ption", caption, true);
    GtkWidget *dialog = save_dialog(e, "Save the picture (.png, .svg or .pdf)", "nlv.png", row);
    if (gtk_dialog_run(GTK_DIALOG(dialog)) == GTK_RESPONSE_ACCEPT) {
        char *path = gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(dialog));
        const char *text = gtk_entry_get_text(GTK_ENTRY(caption));
        g_free(e->caption);
        e->caption = *text != '\0' ? g_strdup(text) : NULL;
        write_picture(e, path);
        g_free(path);
    }
    gtk_widget_destroy(dialog);
}

static void on_draw_page(GtkPrintOperation *operation, GtkPrintContext *context, int page, gpointer user)
{
    (void)operation, (void)page;
    exporting *e = user;
    scene_view view = *canvas_view(e->canvas);
    view.width = gtk_print_context_get_width(context);
    view.height = gtk_print_context_get_height(context);
    view.dark = false;
    view.caption = e->caption;
    model_lock(e->model);
    scene_draw(e->model, &view, gtk_print_context_get_cairo_context(context));
    model_unlock(e->model);
}

void exporting_print(exporting *e)
{
    GtkPrintOperation *operation = gtk_print_operation_new();
    GtkPageSetup *page = gtk_page_setup_new();
    GError *error = NULL;
    gtk_page_setup_set_orientation(page, GTK_PAGE_ORIENTATION_LANDSCAPE);
    gtk_print_operation_set_default_page_setup(operation, page);
    gtk_print_operation_set_n_pages(operation, 1);
    gtk_print_operation_set_unit(operation, GTK_UNIT_POINTS);
    gtk_print_operation_set_job_name(operation, gtk_window_get_title(e->window));
    g_signal_connect(operation, "draw-page", G_CALLBACK(on_draw_page), e);
    GtkPrintOperationResult result =
        gtk_print_operation_run(operation, GTK_PRINT_OPERATION_ACTION_PRINT_DIALOG, e->window, &error);
    if (result == GTK_PRINT_OPERATION_RESULT_ERROR)
        e->say(e->user, error->message);
    g_clear_error(&error);
    g_object_unref(page);
    g_object_unref(operation);
}

/* ---- records ---- */

enum { OF_CHOSEN, OF_MARKED, OF_VISIBLE, OF_ALL };

typedef struct writing {
    exporting *exporting;
    GArray *places;
    char *format, *path;
    uint64_t written;
    nl_error error; /* NL_ERROR_NONE: the file was written */
} writing;

static void free_writing(gpointer data)
{
    writing *o = data;
    g_array_free(o->places, TRUE);
    g_free(o->format);
    g_free(o->path);
    g_free(o);
}

static void write_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    (void)source, (void)cancellable;
    writing *o = data;
    bool good = export_records(o->exporting->model, o->places, o->format, o->path, &o->written);
    if (!good)
        nl_error_save(&o->error);
    g_task_return_boolean(task, good);
}

static void on_written(GObject *source, GAsyncResult *result, gpointer user)
{
    (void)source;
    exporting *e = user;
    const writing *o = g_task_get_task_data(G_TASK(result));
    char *said = o->error.code != NL_ERROR_NONE
                     ? g_strdup(o->error.message)
                     : g_strdup_printf("Saved %" G_GUINT64_FORMAT " of %u record%s as %s in %s", o->written,
                                       o->places->len, nl_plural(o->places->len), o->format, o->path);
    e->writing--;
    e->say(e->user, said);
    g_free(said);
}

static GArray *places_of(exporting *e, int which)
{
    const scene_view *view = canvas_view(e->canvas);
    model_lock(e->model);
    GArray *places;
    size_t lifeline;
    uint32_t record;
    if (which == OF_CHOSEN && view->selected < 0 &&
        scene_find_selected(view, model_store(e->model), &lifeline, &record))
        places = export_places_of_span(e->model, record);
    else if (which == OF_CHOSEN)
        places = export_places_of_object(e->model, view->selected_lifeline, (uint32_t)view->selected);
    else if (which == OF_MARKED)
        places = export_places_of_range(e->model, MIN(view->range_from_ns, view->range_to_ns),
                                        MAX(view->range_from_ns, view->range_to_ns));
    else if (which == OF_VISIBLE)
        places = export_places_of_range(e->model, view->from_ns, view->to_ns);
    else
        places = export_places_of_range(e->model, INT64_MIN, INT64_MAX);
    model_unlock(e->model);
    return places;
}

static void write_records(exporting *e, int which, const char *format, char *path)
{
    writing *o = g_new0(writing, 1);
    *o = (writing){.exporting = e, .places = places_of(e, which), .format = g_strdup(format), .path = path};
    e->writing++;
    GTask *task = g_task_new(NULL, NULL, on_written, e);
    g_task_set_task_data(task, o, free_writing);
    g_task_run_in_thread(task, write_in_thread);
    g_object_unref(task);
}

/* If the file name ends with the name of a format, replaces this ending with the name of the chosen format. */
static void on_format(GtkComboBox *box, gpointer user)
{
    GtkFileChooser *dialog = user;
    char *name = gtk_file_chooser_get_current_name(dialog), *dot = name != NULL ? strrchr(name, '.') : NULL;
    const char *format = gtk_combo_box_get_active_id(box);
    bool ours = false;
    for (size_t i = 0; dot != NULL && export_format(i) != NULL; i++)
        ours = ours || strcmp(dot + 1, export_format(i)) == 0;
    if (ours) {
        char *changed = g_strdup_printf("%.*s.%s", (int)(dot - name), name, format);
        gtk_file_chooser_set_current_name(dialog, changed);
        g_free(changed);
    }
    g_free(name);
}

static GtkWidget *format_box(void)
{
    GtkWidget *box = gtk_combo_box_text_new();
    for (size_t i = 0; export_format(i) != NULL; i++) {
        char *text = g_strdup_printf("%s: %s", export_format(i), export_format_what(i));
        gtk_combo_box_text_append(GTK_COMBO_BOX_TEXT(box), export_format(i), text);
        g_free(text);
    }
    gtk_combo_box_set_active(GTK_COMBO_BOX(box), 0);
    return box;
}

static GtkWidget *which_box(const scene_view *view)
{
    GtkWidget *box = gtk_combo_box_text_new();
    const bool is_chosen = view->selected >= 0 || view->has_single;
    if (is_chosen)
        gtk_combo_box_text_append(GTK_COMBO_BOX_TEXT(box), "0", "the chosen request");
    if (view->has_range)
        gtk_combo_box_text_append(GTK_COMBO_BOX_TEXT(box), "1", "the marked time");
    gtk_combo_box_text_append(GTK_COMBO_BOX_TEXT(box), "2", "the visible time");
    gtk_combo_box_text_append(GTK_COMBO_BOX_TEXT(box), "3", "all");
    gtk_combo_box_set_active_id(GTK_COMBO_BOX(box), view->has_range ? "1" : is_chosen ? "0" : "2");
    return box;
}

void exporting_records(exporting *e)
{
    GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    GtkWidget *which = which_box(canvas_view(e->canvas)), *format = format_box();
    add_labelled(row, "_Records of", which, false);
    add_labelled(row, "_in the format", format, true);
    char *name = g_strdup_printf("records.%s", export_format(0));
    GtkWidget *dialog = save_dialog(e, "Save records", name, row);
    g_free(name);
    g_signal_connect(format, "changed", G_CALLBACK(on_format), dialog);
    if (gtk_dialog_run(GTK_DIALOG(dialog)) == GTK_RESPONSE_ACCEPT)
        write_records(e, atoi(gtk_combo_box_get_active_id(GTK_COMBO_BOX(which))),
                      gtk_combo_box_get_active_id(GTK_COMBO_BOX(format)),
                      gtk_file_chooser_get_filename(GTK_FILE_CHOOSER(dialog)));
    gtk_widget_destroy(dialog);
}
