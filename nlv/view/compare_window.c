#include "config.h"

#include "view/compare_window.h"

#include "base/error.h"
#include "scene/comparison_drawing.h"
#include "scene/palette.h"

enum { WIDTH = 960, HEIGHT = 680 };

struct compare_window {
    model *model;
    GtkWidget *window, *entries[COMPARED_SIDES], *status, *area;
    bool is_running; /* the model is comparing the sides */
    bool has_result; /* the model has a comparison of the sides in the entries */
    waterfall *requests[COMPARED_SIDES];
    bool dark;
};

static void free_requests(compare_window *w)
{
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        waterfall_free(w->requests[side]);
        w->requests[side] = NULL;
    }
}

static void begin_comparison(compare_window *w)
{
    const char *texts[COMPARED_SIDES];
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        texts[side] = gtk_entry_get_text(GTK_ENTRY(w->entries[side]));
    w->has_result = false;
    w->is_running = model_compare(w->model, texts[0], texts[1]);
    atk_object_set_description(gtk_widget_get_accessible(w->area), "");
    gtk_label_set_text(GTK_LABEL(w->status), w->is_running ? "comparing" : nl_error_message());
    free_requests(w);
    gtk_widget_queue_draw(w->area);
}

static void on_entered(GtkEntry *entry, gpointer user)
{
    (void)entry;
    begin_comparison(user);
}

static void on_compare_clicked(GtkButton *button, gpointer user)
{
    (void)button;
    begin_comparison(user);
}

static gboolean on_draw_comparison(GtkWidget *area, cairo_t *cr, gpointer user)
{
    const compare_window *w = user;
    model_lock(w->model);
    const comparison *c = w->has_result ? model_comparison(w->model) : NULL;
    comparison_view view = {.width = gtk_widget_get_allocated_width(area),
                            .height = gtk_widget_get_allocated_height(area),
                            .dark = w->dark,
                            .requests = {w->requests[0], w->requests[1]}};
    if (c != NULL) {
        comparison_draw(c, &view, cr);
    } else {
        palette_set(cr, palette_background(w->dark), 1);
        cairo_paint(cr);
    }
    model_unlock(w->model);
    return TRUE;
}

void compare_window_tick(compare_window *w)
{
    if (!w->is_running)
        return;
    model_lock(w->model);
    const comparison *c = model_comparison(w->model);
    if (c != NULL) {
        GString *rows = g_string_new(NULL);
        for (unsigned side = 0; side < COMPARED_SIDES && c->reason == NULL; side++)
            w->requests[side] = comparison_read_typical(w->model, c, side);
        char *answer = comparison_describe(c), *left_out = comparison_describe_left_out(c);
        g_string_assign(rows, answer);
        if (left_out != NULL)
            g_string_append_printf(rows, " %s", left_out);
        for (guint i = 0; i < c->rows->len && i < 20 && c->reason == NULL; i++) {
            char *row = comparison_describe_row(c, i);
            g_string_append_printf(rows, "\n%s", row);
            g_free(row);
        }
        atk_object_set_description(gtk_widget_get_accessible(w->area), rows->str);
        gtk_label_set_text(GTK_LABEL(w->status), "");
        g_free(answer);
        g_free(left_out);
        g_string_free(rows, TRUE);
        w->is_running = false;
        w->has_result = true;
    }
    model_unlock(w->model);
    if (!w->is_running) {
        gtk_widget_queue_draw(w->area);
        return;
    }
    char *text = g_strdup_printf("comparing, %.0f %%", 100 * model_find_progress(w->model));
    gtk_label_set_text(GTK_LABEL(w->status), text);
    g_free(text);
}

static gboolean on_compare_key(GtkWidget *window, GdkEventKey *event, gpointer user)
{
    (void)user;
    if (event->keyval != GDK_KEY_Escape)
        return FALSE;
    gtk_widget_hide(window);
    return TRUE;
}

void compare_window_show(compare_window *w, const char *first, const char *second, bool dark)
{
    const char *const texts[COMPARED_SIDES] = {first, second};
    bool is_empty = true;
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        if (first != NULL || second != NULL)
            gtk_entry_set_text(GTK_ENTRY(w->entries[side]), texts[side] != NULL ? texts[side] : "");
        is_empty = is_empty && *gtk_entry_get_text(GTK_ENTRY(w->entries[side])) == '\0';
    }
    w->dark = dark;
    gtk_widget_show_all(w->window);
    gtk_window_present(GTK_WINDOW(w->window));
    gtk_widget_grab_focus(w->entries[0]);
    model_lock(w->model);
    const bool has_logs = model_log_count(w->model) >= COMPARED_SIDES;
    model_unlock(w->model);
    if (!is_empty || has_logs)
        begin_comparison(w);
}

static GtkWidget *add_side(compare_window *w, GtkWidget *box, const char *label, const char *hint, unsigned side)
{
    GtkWidget *name = gtk_label_new_with_mnemonic(label), *entry = gtk_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(entry), hint);
    gtk_widget_set_tooltip_text(entry, "An expression on records or requests, or log:NAME. "
                                       "If A and B are empty, nlv compares the first two logs.\n"
                                       "VERSION == 1\nrequest.duration > 50ms\nDATE < 20260101120030\nlog:before.log");
    gtk_label_set_mnemonic_widget(GTK_LABEL(name), entry);
    atk_object_set_name(gtk_widget_get_accessible(entry), hint);
    g_signal_connect(entry, "activate", G_CALLBACK(on_entered), w);
    gtk_box_pack_start(GTK_BOX(box), name, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), entry, TRUE, TRUE, 0);
    w->entries[side] = entry;
    return entry;
}

static void compare_window_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    compare_window *w = user;
    free_requests(w);
    g_free(w);
}

compare_window *compare_window_new(GtkWindow *parent, model *m)
{
    compare_window *w = g_new0(compare_window, 1);
    w->model = m;
    w->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_title(GTK_WINDOW(w->window), "Compare requests");
    gtk_window_set_default_size(GTK_WINDOW(w->window), WIDTH, HEIGHT);
    gtk_window_set_transient_for(GTK_WINDOW(w->window), parent);
    gtk_window_set_destroy_with_parent(GTK_WINDOW(w->window), TRUE);
    g_signal_connect(w->window, "delete-event", G_CALLBACK(gtk_widget_hide_on_delete), NULL);
    g_signal_connect(w->window, "key-press-event", G_CALLBACK(on_compare_key), w);
    g_signal_connect(w->window, "destroy", G_CALLBACK(compare_window_on_destroy), w);
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *head = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6),
              *button = gtk_button_new_with_mnemonic("_Compare");
    g_object_set(head, "margin", 4, NULL);
    add_side(w, head, "_A", "A: an expression; empty: the requests that are not in B", 0);
    add_side(w, head, "_B", "B: an expression; empty: the requests that are not in A", 1);
    g_signal_connect(button, "clicked", G_CALLBACK(on_compare_clicked), w);
    gtk_box_pack_start(GTK_BOX(head), button, FALSE, FALSE, 0);
    w->status = gtk_label_new("Describe the requests of A, and press Enter");
    gtk_label_set_xalign(GTK_LABEL(w->status), 0);
    gtk_label_set_ellipsize(GTK_LABEL(w->status), PANGO_ELLIPSIZE_END);
    gtk_widget_set_margin_start(w->status, 8);
    w->area = gtk_drawing_area_new();
    atk_object_set_name(gtk_widget_get_accessible(w->area), "Comparison");
    g_signal_connect(w->area, "draw", G_CALLBACK(on_draw_comparison), w);
    gtk_box_pack_start(GTK_BOX(box), head, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), w->status, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), w->area, TRUE, TRUE, 0);
    gtk_container_add(GTK_CONTAINER(w->window), box);
    return w;
}
