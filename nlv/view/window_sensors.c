/* The pane of sensors in the window: what is ticked there comes as one more log, and is drawn beside all else. */
#include "config.h"

#include "view/window_private.h"

static const int64_t first_width_ns = 60 * INT64_C(1000000000);

static bool on_begin(void *user, const char *path)
{
    window *w = user;
    if (!model_add_source(w->model, path, true))
        return false;
    if (w->source_count++ == 0) {
        scene_view *view = canvas_view(w->canvas);
        view->to_ns = g_get_real_time() * 1000;
        view->from_ns = view->to_ns - first_width_ns;
        w->touched = true; /* and not fitted to the first second */
    }
    window_follow(w);
    return true;
}

static void on_draw(void *user, drawing *loadlines)
{
    window *w = user;
    model_set_extra(w->model, loadlines);
}

GtkWidget *window_sensors_beside(window *w, const char *directory, GtkWidget *main)
{
    GtkWidget *both = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL);
    w->sensors = sensor_pane_new(directory, (sensor_pane_callbacks){on_begin, on_draw, w});
    gtk_paned_pack1(GTK_PANED(both), sensor_pane_widget(w->sensors), FALSE, FALSE);
    gtk_paned_pack2(GTK_PANED(both), main, TRUE, FALSE);
    return both;
}

void window_sensors_toggle(window *w)
{
    GtkWidget *pane = sensor_pane_widget(w->sensors);
    if (!gtk_widget_get_visible(pane)) {
        sensor_pane_show(w->sensors);
        return;
    }
    gtk_widget_hide(pane);
    gtk_widget_grab_focus(canvas_widget(w->canvas));
}
