#include "config.h"

#include "view/command_palette.h"
#include "view/commands.h"
#include "view/exporting.h"
#include "view/keeping.h"
#include "view/printing.h"
#include "view/welcome.h"
#include "view/window_private.h"

static const double zoom_step = 0.8, pan_step = 0.1;

/* ---- what takes more than a line ---- */

static void show_keys(window *w)
{
    GtkWidget *dialog = gtk_dialog_new_with_buttons("Keys and pointer", GTK_WINDOW(w->top),
                                                    GTK_DIALOG_MODAL | GTK_DIALOG_DESTROY_WITH_PARENT, "_Close",
                                                    GTK_RESPONSE_CLOSE, NULL);
    GtkWidget *label = gtk_label_new(NULL), *scrolled = gtk_scrolled_window_new(NULL, NULL);
    char *text = commands_help();
    gtk_label_set_markup(GTK_LABEL(label), text);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    g_free(text);
    g_object_set(label, "margin", 12, NULL);
    g_object_set(scrolled, "propagate-natural-height", TRUE, "max-content-height", 560, "hscrollbar-policy",
                 GTK_POLICY_NEVER, "vexpand", TRUE, NULL);
    gtk_container_add(GTK_CONTAINER(scrolled), label);
    gtk_container_add(GTK_CONTAINER(gtk_dialog_get_content_area(GTK_DIALOG(dialog))), scrolled);
    gtk_widget_show_all(dialog);
    gtk_dialog_run(GTK_DIALOG(dialog));
    gtk_widget_destroy(dialog);
}

static void toggle_dark(window *w)
{
    bool dark = !canvas_view(w->canvas)->dark;
    canvas_view(w->canvas)->dark = dark;
    g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", dark, NULL);
    canvas_redraw(w->canvas);
}

/* Escape: first the search goes, then what is marked. */
static void clear(window *w)
{
    if (w->source_count > 0)
        gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    if (!search_bar_hide(w->search))
        canvas_clear(w->canvas);
}

static void show_all(window *w)
{
    int64_t from_ns = canvas_view(w->canvas)->from_ns, to_ns = canvas_view(w->canvas)->to_ns;
    canvas_fit(w->canvas);
    int64_t all_from_ns = canvas_view(w->canvas)->from_ns, all_to_ns = canvas_view(w->canvas)->to_ns;
    canvas_view(w->canvas)->from_ns = from_ns;
    canvas_view(w->canvas)->to_ns = to_ns;
    canvas_show(w->canvas, all_from_ns, all_to_ns);
    w->touched = false; /* what comes is shown too */
}

static void window_commands_connect_to(window *w)
{
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "welcome");
    welcome_begin_address(w->welcome);
}

/* Or shows times as they were logged again. What was chosen is found by its time. */
static void correct_clocks(window *w)
{
    canvas_clear(w->canvas);
    model_correct_clocks(w->model, !model_corrects_clocks(w->model));
}

/* One end of what is measured, then the other: from record to record, where the pointer is on some. */
static void window_commands_measure(window *w)
{
    scene_view *view = canvas_view(w->canvas);
    int64_t time_ns;
    if (!canvas_pointed(w->canvas, &time_ns))
        return;
    if (w->measuring) {
        view->has_range = true;
        view->is_zooming = false;
        view->range_from_ns = view->mark_ns;
        view->range_to_ns = time_ns;
        window_show_range(w);
    }
    view->has_mark = !w->measuring;
    view->mark_ns = time_ns;
    w->measuring = !w->measuring;
    gtk_label_set_text(GTK_LABEL(w->status),
                       w->measuring ? "M once more at the other end measures what is between" : "");
    canvas_redraw(w->canvas);
}

/* ---- what another part does ---- */

static void quit(window *w)
{
    gtk_widget_destroy(w->top);
}

static void undo_last(window *w)
{
    window_undo(w, -1);
}

static void redo(window *w)
{
    window_undo(w, 1);
}

static void edit_drawing(window *w)
{
    editor_show(w->editor);
}

static void next_bookmark(window *w)
{
    window_next_bookmark(w, false);
}

static void previous_bookmark(window *w)
{
    window_next_bookmark(w, true);
}

static void zoom_in(window *w)
{
    canvas_zoom(w->canvas, zoom_step);
}

static void zoom_out(window *w)
{
    canvas_zoom(w->canvas, 1 / zoom_step);
}

static void pan_left(window *w)
{
    canvas_pan(w->canvas, -pan_step);
}

static void pan_right(window *w)
{
    canvas_pan(w->canvas, pan_step);
}

static void go_back(window *w)
{
    canvas_go(w->canvas, -1);
}

static void go_forward(window *w)
{
    canvas_go(w->canvas, 1);
}

static void zoom_to_marked(window *w)
{
    canvas_show_range(w->canvas);
}

static void toggle_side(window *w)
{
    gtk_widget_set_visible(w->side, !gtk_widget_get_visible(w->side));
}

static void toggle_real_time(window *w)
{
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->live_button), !w->live);
}

static void play_faster(window *w)
{
    window_set_speed(w, w->last_speed * 2);
}

static void play_slower(window *w)
{
    window_set_speed(w, w->last_speed / 2);
}

static void window_commands_find(window *w)
{
    search_bar_begin_find(w->search);
}

static void find_next(window *w)
{
    search_bar_next(w->search, false);
}

static void find_previous(window *w)
{
    search_bar_next(w->search, true);
}

static void filter(window *w)
{
    search_bar_begin_filter(w->search);
}

static void choose(window *w)
{
    chooser_show(w->chooser);
}

static void show_palette(window *w)
{
    command_palette_show(w->top, window_command, w);
}

/* What each command does. */
static void (*const actions[])(window *w) = {
    [COMMAND_OPEN] = window_choose_log,
    [COMMAND_CONNECT] = window_commands_connect_to,
    [COMMAND_EXPORT] = exporting_picture,
    [COMMAND_EXPORT_RECORDS] = exporting_records,
    [COMMAND_PRINT] = printing_print,
    [COMMAND_LAST_TIME] = window_as_last_time,
    [COMMAND_QUIT] = quit,
    [COMMAND_UNDO] = undo_last,
    [COMMAND_REDO] = redo,
    [COMMAND_EDIT] = edit_drawing,
    [COMMAND_BOOKMARK] = window_bookmark,
    [COMMAND_BOOKMARKS] = window_show_bookmarks,
    [COMMAND_NEXT_BOOKMARK] = next_bookmark,
    [COMMAND_PREVIOUS_BOOKMARK] = previous_bookmark,
    [COMMAND_MEASURE] = window_commands_measure,
    [COMMAND_ALL] = show_all,
    [COMMAND_ZOOM_IN] = zoom_in,
    [COMMAND_ZOOM_OUT] = zoom_out,
    [COMMAND_LEFT] = pan_left,
    [COMMAND_RIGHT] = pan_right,
    [COMMAND_BACK] = go_back,
    [COMMAND_FORWARD] = go_forward,
    [COMMAND_ZOOM_TO_MARKED] = zoom_to_marked,
    [COMMAND_CLEAR] = clear,
    [COMMAND_SIDE] = toggle_side,
    [COMMAND_DARK] = toggle_dark,
    [COMMAND_SENSORS] = window_sensors_toggle,
    [COMMAND_REAL_TIME] = toggle_real_time,
    [COMMAND_CLOCKS] = correct_clocks,
    [COMMAND_KEEP] = keeping_ask,
    [COMMAND_PLAY] = window_play,
    [COMMAND_FASTER] = play_faster,
    [COMMAND_SLOWER] = play_slower,
    [COMMAND_FIND] = window_commands_find,
    [COMMAND_NEXT] = find_next,
    [COMMAND_PREVIOUS] = find_previous,
    [COMMAND_FILTER] = filter,
    [COMMAND_CHOOSE] = choose,
    [COMMAND_PALETTE] = show_palette,
    [COMMAND_SHORTCUTS] = show_keys,
};

void window_command(void *user, command which)
{
    if (which != COMMAND_NONE)
        actions[which](user);
}
