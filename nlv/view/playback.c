#include "config.h"

#include "view/playback.h"

enum { SLIDER_WIDTH = 180 /* pixels; the buttons, the slider and the status must fit in a narrow window */ };

static const double speed_min = 1.0 / 1024, speed_max = 4096;

struct playback {
    model *model;
    canvas *canvas;
    playback_callbacks callbacks;
    GtkWidget *live_button, *player, *play_button, *slider, *speed_label;
    bool is_live;
    bool is_own_change;       /* nlv is changing a widget, so the handlers for the user's changes do nothing */
    double speed, last_speed; /* multiples of real time; speed is 0 if the log is not playing */
    gint64 moved_us;          /* time of the last automatic move of the view, in microseconds */
};

/* ---- state ---- */

static void show_play_button(playback *p)
{
    bool is_playing = p->speed > 0;
    const char *name = is_playing ? "Pause (P)" : "Play from here, or the marked time (P)";
    GtkWidget *image = gtk_image_new_from_icon_name(
        is_playing ? "media-playback-pause-symbolic" : "media-playback-start-symbolic", GTK_ICON_SIZE_BUTTON);
    gtk_button_set_image(GTK_BUTTON(p->play_button), image);
    gtk_widget_set_tooltip_text(p->play_button, name);
    atk_object_set_name(gtk_widget_get_accessible(p->play_button), name);
}

static void set_speed(playback *p, double speed)
{
    bool was_playing = p->speed > 0;
    p->speed = speed > 0 ? CLAMP(speed, speed_min, speed_max) : 0;
    p->last_speed = p->speed > 0 ? p->speed : p->last_speed;
    p->moved_us = g_get_monotonic_time();
    if (was_playing != (p->speed > 0))
        show_play_button(p);
}

static void show_live_button(playback *p)
{
    const char *name = p->is_live ? "Pause" : "Follow";
    gtk_button_set_label(GTK_BUTTON(p->live_button), name);
    gtk_button_set_image(
        GTK_BUTTON(p->live_button),
        gtk_image_new_from_icon_name(p->is_live ? "media-playback-pause-symbolic" : "media-skip-forward-symbolic",
                                     GTK_ICON_SIZE_BUTTON));
    gtk_widget_set_tooltip_text(p->live_button, p->is_live ? "Keep showing this time while the log grows (Space)"
                                                           : "Show the newest records as the log grows (Space)");
}

static void set_live(playback *p, bool live)
{
    p->is_live = live;
    show_live_button(p);
    p->is_own_change = true;
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(p->live_button), live);
    p->is_own_change = false;
}

bool playback_is_live(const playback *p)
{
    return p->is_live;
}

double playback_speed(const playback *p)
{
    return p->speed;
}

void playback_set_live(playback *p, bool live)
{
    set_speed(p, 0);
    set_live(p, live);
    p->callbacks.changed(p->callbacks.user);
}

void playback_stop(playback *p)
{
    set_speed(p, 0);
    if (p->is_live)
        set_live(p, false);
}

static void play(playback *p, double speed)
{
    set_speed(p, speed);
    if (p->speed > 0)
        set_live(p, false);
    p->callbacks.changed(p->callbacks.user);
}

/* ---- moving the view ---- */

static bool time_range_of(const playback *p, int64_t *from_ns, int64_t *to_ns)
{
    model_lock(p->model);
    bool any = model_time_range(p->model, from_ns, to_ns);
    model_unlock(p->model);
    return any;
}

static int64_t middle_of(const scene_view *view)
{
    return view->from_ns + (view->to_ns - view->from_ns) / 2;
}

void playback_follow(playback *p)
{
    int64_t from_ns, to_ns;
    scene_view *view = canvas_view(p->canvas);
    if (!time_range_of(p, &from_ns, &to_ns))
        return;
    int64_t width = view->to_ns - view->from_ns;
    view->to_ns = to_ns + width / 50;
    view->from_ns = view->to_ns - width;
}

/* Returns the time at which playing ends: the end of the marked time range, or of the log. */
static int64_t end_of_play(const playback *p)
{
    const scene_view *view = canvas_view(p->canvas);
    int64_t from_ns, to_ns = INT64_MAX;
    if (view->has_range)
        return MAX(view->range_from_ns, view->range_to_ns);
    time_range_of(p, &from_ns, &to_ns);
    return to_ns;
}

static void play_on(playback *p)
{
    gint64 now_us = g_get_monotonic_time();
    scene_view *view = canvas_view(p->canvas);
    int64_t by_ns = (int64_t)((double)(now_us - p->moved_us) * 1000 * p->speed), from_ns, to_ns;
    p->moved_us = now_us;
    if (__builtin_add_overflow(view->from_ns, by_ns, &from_ns) || __builtin_add_overflow(view->to_ns, by_ns, &to_ns))
        return;
    view->from_ns = from_ns;
    view->to_ns = to_ns;
    if (middle_of(view) >= end_of_play(p))
        set_speed(p, 0);
    p->callbacks.changed(p->callbacks.user);
}

/* Plays from the start of the marked time range if the middle of the view is outside the range. */
void playback_toggle(playback *p)
{
    scene_view *view = canvas_view(p->canvas);
    int64_t start_ns = MIN(view->range_from_ns, view->range_to_ns), half = (view->to_ns - view->from_ns) / 2;
    if (p->speed == 0 && view->has_range && (middle_of(view) < start_ns || middle_of(view) >= end_of_play(p)))
        canvas_show(p->canvas, start_ns - half, start_ns + half);
    play(p, p->speed > 0 ? 0 : p->last_speed);
}

void playback_speed_up(playback *p, double factor)
{
    play(p, p->last_speed * factor);
}

void playback_tick(playback *p)
{
    int64_t from_ns = 0, to_ns = 0;
    char text[32];
    if (p->speed > 0)
        play_on(p);
    time_range_of(p, &from_ns, &to_ns);
    double whole = (double)to_ns - (double)from_ns;
    double share = whole > 0 ? ((double)middle_of(canvas_view(p->canvas)) - (double)from_ns) / whole : 0;
    g_snprintf(text, sizeof text, "× %g", p->last_speed);
    gtk_label_set_text(GTK_LABEL(p->speed_label), text);
    p->is_own_change = true;
    gtk_range_set_value(GTK_RANGE(p->slider), CLAMP(share, 0, 1));
    p->is_own_change = false;
}

/* ---- widgets ---- */

static void on_live_toggled(GtkToggleButton *button, gpointer user)
{
    playback *p = user;
    if (!p->is_own_change)
        playback_set_live(p, gtk_toggle_button_get_active(button));
}

static void on_play(GtkButton *button, gpointer user)
{
    (void)button;
    playback_toggle(user);
}

static void on_slower(GtkButton *button, gpointer user)
{
    (void)button;
    playback_speed_up(user, 0.5);
}

static void on_faster(GtkButton *button, gpointer user)
{
    (void)button;
    playback_speed_up(user, 2);
}

/* Shows the time at the slider, and continues to play from this time. */
static void on_slider(GtkRange *range, gpointer user)
{
    playback *p = user;
    const scene_view *view = canvas_view(p->canvas);
    int64_t from_ns, to_ns, half = (view->to_ns - view->from_ns) / 2;
    double speed = p->speed;
    if (p->is_own_change || !time_range_of(p, &from_ns, &to_ns))
        return;
    int64_t middle_ns = from_ns + (int64_t)(gtk_range_get_value(range) * ((double)to_ns - (double)from_ns));
    canvas_show(p->canvas, middle_ns - half, middle_ns + half);
    if (speed > 0)
        play(p, speed);
}

static GtkWidget *player_button(playback *p, const char *label, const char *name, GCallback clicked)
{
    GtkWidget *button = gtk_button_new_with_label(label);
    gtk_button_set_relief(GTK_BUTTON(button), GTK_RELIEF_NONE);
    gtk_widget_set_focus_on_click(button, FALSE);
    gtk_widget_set_tooltip_text(button, name);
    atk_object_set_name(gtk_widget_get_accessible(button), name);
    g_signal_connect(button, "clicked", clicked, p);
    return button;
}

static void playback_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

playback *playback_new(model *m, canvas *c, playback_callbacks callbacks)
{
    playback *p = g_new0(playback, 1);
    *p = (playback){.model = m, .canvas = c, .callbacks = callbacks, .last_speed = 1};
    p->live_button = gtk_toggle_button_new();
    gtk_button_set_always_show_image(GTK_BUTTON(p->live_button), TRUE);
    gtk_widget_set_can_focus(p->live_button, FALSE);
    show_live_button(p);
    g_signal_connect(p->live_button, "toggled", G_CALLBACK(on_live_toggled), p);
    p->slider = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 1, 0.01);
    gtk_scale_set_draw_value(GTK_SCALE(p->slider), FALSE);
    gtk_widget_set_size_request(p->slider, SLIDER_WIDTH, -1);
    gtk_widget_set_tooltip_text(p->slider, "Position in the log");
    atk_object_set_name(gtk_widget_get_accessible(p->slider), "Position in the log");
    g_signal_connect(p->slider, "value-changed", G_CALLBACK(on_slider), p);
    p->speed_label = gtk_label_new("");
    gtk_label_set_width_chars(GTK_LABEL(p->speed_label), 8);
    gtk_widget_set_tooltip_text(p->speed_label, "Speed relative to real time");
    p->play_button = player_button(p, NULL, "", G_CALLBACK(on_play));
    show_play_button(p);
    p->player = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 2);
    GtkWidget *const parts[] = {p->play_button, p->slider, player_button(p, "−", "Slower (,)", G_CALLBACK(on_slower)),
                                p->speed_label, player_button(p, "+", "Faster (.)", G_CALLBACK(on_faster))};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        gtk_box_pack_start(GTK_BOX(p->player), parts[i], FALSE, FALSE, 0);
    g_signal_connect(p->player, "destroy", G_CALLBACK(playback_on_destroy), p);
    return p;
}

GtkWidget *playback_player(const playback *p)
{
    return p->player;
}

GtkWidget *playback_button(const playback *p)
{
    return p->live_button;
}
