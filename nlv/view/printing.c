#include "config.h"

#include "view/printing.h"

static void on_draw_page(GtkPrintOperation *operation, GtkPrintContext *context, int page, gpointer user)
{
    (void)operation, (void)page;
    window *w = user;
    scene_view view = *canvas_view(w->canvas);
    view.width = gtk_print_context_get_width(context);
    view.height = gtk_print_context_get_height(context);
    view.dark = false;
    view.caption = w->caption;
    model_lock(w->model);
    scene_draw(w->model, &view, gtk_print_context_get_cairo_context(context));
    model_unlock(w->model);
}

void printing_print(window *w)
{
    GtkPrintOperation *operation = gtk_print_operation_new();
    GtkPageSetup *page = gtk_page_setup_new();
    GError *error = NULL;
    gtk_page_setup_set_orientation(page, GTK_PAGE_ORIENTATION_LANDSCAPE);
    gtk_print_operation_set_default_page_setup(operation, page);
    gtk_print_operation_set_n_pages(operation, 1);
    gtk_print_operation_set_unit(operation, GTK_UNIT_POINTS);
    gtk_print_operation_set_job_name(operation, gtk_window_get_title(GTK_WINDOW(w->top)));
    g_signal_connect(operation, "draw-page", G_CALLBACK(on_draw_page), w);
    GtkPrintOperationResult result =
        gtk_print_operation_run(operation, GTK_PRINT_OPERATION_ACTION_PRINT_DIALOG, GTK_WINDOW(w->top), &error);
    if (result == GTK_PRINT_OPERATION_RESULT_ERROR)
        window_say(w, error->message);
    g_clear_error(&error);
    g_object_unref(page);
    g_object_unref(operation);
}
