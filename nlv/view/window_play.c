/* How the view moves by itself: with the log as it grows, or as a film of it. */
#include "config.h"

#include "view/window_private.h"

static const double slowest = 1.0 / 1024, fastest = 4096;

/* ---- real time ---- */

void window_set_live(window *w, bool live)
{
    w->live = live;
    w->own_change = true;
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(w->live_button), live);
    w->own_change = false;
    window_show_title(w);
}

void window_follow(window *w)
{
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "canvas");
    window_set_live(w, true);
}

/* In real time the newest record is near the right edge; the width of the view stays. */
void window_follow_time(window *w)
{
    int64_t from_ns, to_ns;
    scene_view *view = canvas_view(w->canvas);
    model_lock(w->model);
    bool any = model_time_range(w->model, &from_ns, &to_ns);
    model_unlock(w->model);
    if (!any)
        return;
    int64_t width = view->to_ns - view->from_ns;
    view->to_ns = to_ns + width / 50;
    view->from_ns = view->to_ns - width;
}

/* ---- playing ---- */

/* Where playing ends: with what is marked, or with the log. */
static int64_t end_of_play(const window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    int64_t from_ns, to_ns = INT64_MAX;
    if (view->has_range)
        return MAX(view->range_from_ns, view->range_to_ns);
    model_lock(w->model);
    model_time_range(w->model, &from_ns, &to_ns);
    model_unlock(w->model);
    return to_ns;
}

static int64_t middle_of(const scene_view *view)
{
    return view->from_ns + (view->to_ns - view->from_ns) / 2;
}

void window_set_speed(window *w, double speed)
{
    w->speed = speed > 0 ? CLAMP(speed, slowest, fastest) : 0;
    w->last_speed = w->speed > 0 ? w->speed : w->last_speed;
    w->played_us = g_get_monotonic_time();
    w->touched = true;
    if (w->speed > 0 && w->live)
        window_set_live(w, false);
    window_show_counts(w);
}

void window_play_on(window *w)
{
    gint64 now_us = g_get_monotonic_time();
    scene_view *view = canvas_view(w->canvas);
    int64_t by_ns = (int64_t)((double)(now_us - w->played_us) * 1000 * w->speed), from_ns, to_ns;
    w->played_us = now_us;
    if (__builtin_add_overflow(view->from_ns, by_ns, &from_ns) || __builtin_add_overflow(view->to_ns, by_ns, &to_ns))
        return;
    view->from_ns = from_ns;
    view->to_ns = to_ns;
    if (middle_of(view) >= end_of_play(w))
        window_set_speed(w, 0);
    window_show_title(w);
    canvas_redraw(w->canvas);
}

/* What is marked is played from its start, unless one is within. */
void window_play(window *w)
{
    scene_view *view = canvas_view(w->canvas);
    int64_t start_ns = MIN(view->range_from_ns, view->range_to_ns), half = (view->to_ns - view->from_ns) / 2;
    if (w->speed == 0 && view->has_range && (middle_of(view) < start_ns || middle_of(view) >= end_of_play(w)))
        canvas_show(w->canvas, start_ns - half, start_ns + half);
    window_set_speed(w, w->speed > 0 ? 0 : w->last_speed);
}

/* ---- the player ---- */

static void on_play(void *user)
{
    window_play(user);
}

static void on_faster(void *user, bool is_it)
{
    window *w = user;
    window_set_speed(w, w->last_speed * (is_it ? 2 : 0.5));
}

/* Playing goes on from there. */
static void on_seek(void *user, double share)
{
    window *w = user;
    const scene_view *view = canvas_view(w->canvas);
    int64_t from_ns, to_ns, half = (view->to_ns - view->from_ns) / 2;
    double speed = w->speed;
    model_lock(w->model);
    bool any = model_time_range(w->model, &from_ns, &to_ns);
    model_unlock(w->model);
    if (!any)
        return;
    int64_t middle_ns = from_ns + (int64_t)(share * ((double)to_ns - (double)from_ns));
    canvas_show(w->canvas, middle_ns - half, middle_ns + half);
    if (speed > 0)
        window_set_speed(w, speed);
}

GtkWidget *window_make_player(window *w)
{
    w->player = player_new((player_callbacks){on_play, on_faster, on_seek, w});
    return player_widget(w->player);
}

void window_show_player(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    int64_t from_ns = 0, to_ns = 0;
    gtk_widget_set_visible(player_widget(w->player), w->first_shown);
    model_lock(w->model);
    model_time_range(w->model, &from_ns, &to_ns);
    model_unlock(w->model);
    double whole = (double)to_ns - (double)from_ns;
    player_show(w->player, whole > 0 ? ((double)middle_of(view) - (double)from_ns) / whole : 0, w->speed,
                w->last_speed);
}
