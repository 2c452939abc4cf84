#include "config.h"

#include "view/player.h"

struct player {
    GtkWidget *widget, *button, *slider, *speed;
    player_callbacks callbacks;
    bool is_playing, own_change;
};

static void show_button(player *p)
{
    const char *icon = p->is_playing ? "media-playback-pause-symbolic" : "media-playback-start-symbolic";
    const char *name = p->is_playing ? "Pause (P)" : "Play from here, or what is marked (P)";
    gtk_button_set_image(GTK_BUTTON(p->button), gtk_image_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON));
    gtk_widget_set_tooltip_text(p->button, name);
    atk_object_set_name(gtk_widget_get_accessible(p->button), name);
}

void player_show(player *p, double share, double speed, double speed_when_played)
{
    char text[32];
    g_snprintf(text, sizeof text, "× %g", speed > 0 ? speed : speed_when_played);
    gtk_label_set_text(GTK_LABEL(p->speed), text);
    p->own_change = true;
    gtk_range_set_value(GTK_RANGE(p->slider), CLAMP(share, 0, 1));
    p->own_change = false;
    if (p->is_playing == (speed > 0))
        return;
    p->is_playing = speed > 0;
    show_button(p);
}

static void on_button(GtkButton *button, gpointer user)
{
    (void)button;
    const player *p = user;
    p->callbacks.play(p->callbacks.user);
}

static void on_slower(GtkButton *button, gpointer user)
{
    (void)button;
    const player *p = user;
    p->callbacks.faster(p->callbacks.user, false);
}

static void on_faster(GtkButton *button, gpointer user)
{
    (void)button;
    const player *p = user;
    p->callbacks.faster(p->callbacks.user, true);
}

static void on_slider(GtkRange *range, gpointer user)
{
    const player *p = user;
    if (!p->own_change)
        p->callbacks.seek(p->callbacks.user, gtk_range_get_value(range));
}

static GtkWidget *small_button(const char *label, const char *name, GCallback clicked, player *p)
{
    GtkWidget *button = label != NULL ? gtk_button_new_with_label(label) : gtk_button_new();
    gtk_button_set_relief(GTK_BUTTON(button), GTK_RELIEF_NONE);
    gtk_widget_set_focus_on_click(button, FALSE);
    gtk_widget_set_tooltip_text(button, name);
    atk_object_set_name(gtk_widget_get_accessible(button), name);
    g_signal_connect(button, "clicked", clicked, p);
    return button;
}

static void player_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

player *player_new(player_callbacks callbacks)
{
    player *p = g_new0(player, 1);
    p->callbacks = callbacks;
    p->widget = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 2);
    p->button = small_button(NULL, "Play", G_CALLBACK(on_button), p);
    show_button(p);
    p->slider = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 1, 0.01);
    gtk_scale_set_draw_value(GTK_SCALE(p->slider), FALSE);
    gtk_widget_set_size_request(p->slider, 260, -1);
    gtk_widget_set_tooltip_text(p->slider, "Where in the log");
    atk_object_set_name(gtk_widget_get_accessible(p->slider), "Where in the log");
    g_signal_connect(p->slider, "value-changed", G_CALLBACK(on_slider), p);
    p->speed = gtk_label_new("");
    gtk_label_set_width_chars(GTK_LABEL(p->speed), 8);
    gtk_widget_set_tooltip_text(p->speed, "How many times as quickly as it was");
    GtkWidget *const parts[] = {p->button, p->slider, small_button("−", "Slower (,)", G_CALLBACK(on_slower), p),
                                p->speed, small_button("+", "Faster (.)", G_CALLBACK(on_faster), p)};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        gtk_box_pack_start(GTK_BOX(p->widget), parts[i], FALSE, FALSE, 0);
    g_signal_connect(p->widget, "destroy", G_CALLBACK(player_on_destroy), p);
    return p;
}

GtkWidget *player_widget(player *p)
{
    return p->widget;
}
