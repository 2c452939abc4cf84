#include "config.h"

#include "view/canvas.h"

#include <math.h>

static const double zoom_step = 0.8, pan_step = 0.1, click_distance = 4;

struct canvas {
    GtkWidget *widget;
    const model *model;
    scene_view view;
    canvas_callbacks callbacks;
    bool dragging;
    bool dragged; /* far enough to be no click */
    double press_x, press_y, last_x;
};

/* A context to measure text with, outside of drawing. */
static cairo_t *measuring_context(void)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *cr = cairo_create(surface);
    cairo_surface_destroy(surface);
    return cr;
}

static void plot_extents(canvas *c, double *left, double *right)
{
    cairo_t *cr = measuring_context();
    scene_plot_extents(c->model, &c->view, cr, left, right);
    cairo_destroy(cr);
}

void canvas_redraw(canvas *c)
{
    gtk_widget_queue_draw(c->widget);
}

static void moved(canvas *c)
{
    c->callbacks.moved(c->callbacks.user);
    canvas_redraw(c);
}

static gboolean on_draw(GtkWidget *widget, cairo_t *cr, gpointer user)
{
    canvas *c = user;
    c->view.width = gtk_widget_get_allocated_width(widget);
    c->view.height = gtk_widget_get_allocated_height(widget);
    scene_draw(c->model, &c->view, cr);
    return TRUE;
}

static double share_at(canvas *c, double x)
{
    double left, right;
    plot_extents(c, &left, &right);
    return CLAMP((x - left) / (right - left), 0, 1);
}

static gboolean on_scroll(GtkWidget *widget, GdkEventScroll *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    double dx = 0, dy = 0;
    if (event->direction == GDK_SCROLL_SMOOTH)
        gdk_event_get_scroll_deltas((GdkEvent *)event, &dx, &dy);
    else
        dy = event->direction == GDK_SCROLL_UP ? -1 : event->direction == GDK_SCROLL_DOWN ? 1 : 0;
    if (event->direction == GDK_SCROLL_LEFT || event->direction == GDK_SCROLL_RIGHT)
        dx = event->direction == GDK_SCROLL_LEFT ? -1 : 1;
    if (event->state & GDK_SHIFT_MASK) {
        dx += dy;
        dy = 0;
    }
    scene_pan(&c->view, dx * pan_step);
    if (dy != 0)
        scene_zoom(&c->view, pow(zoom_step, -dy), share_at(c, event->x));
    moved(c);
    return TRUE;
}

static gboolean on_press(GtkWidget *widget, GdkEventButton *event, gpointer user)
{
    canvas *c = user;
    if (event->button != GDK_BUTTON_PRIMARY)
        return FALSE;
    gtk_widget_grab_focus(widget);
    c->dragging = true;
    c->dragged = false;
    c->press_x = c->last_x = event->x;
    c->press_y = event->y;
    return TRUE;
}

/* What is under the pointer: its record in words, "" when there is none. */
static void tell_hover(canvas *c, double x, double y)
{
    size_t record;
    int64_t object;
    cairo_t *cr = measuring_context();
    bool found = scene_find(c->model, &c->view, cr, x, y, &record, &object);
    cairo_destroy(cr);
    char *text = found ? model_describe(c->model, record) : g_strdup("");
    c->callbacks.hover(c->callbacks.user, text);
    g_free(text);
}

static gboolean on_motion(GtkWidget *widget, GdkEventMotion *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    if (!c->dragging) {
        tell_hover(c, event->x, event->y);
        return TRUE;
    }
    if (!c->dragged && fabs(event->x - c->press_x) < click_distance)
        return TRUE;
    double left, right;
    plot_extents(c, &left, &right);
    c->dragged = true;
    scene_pan(&c->view, (c->last_x - event->x) / (right - left));
    c->last_x = event->x;
    moved(c);
    return TRUE;
}

static gboolean on_release(GtkWidget *widget, GdkEventButton *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    if (c->dragging && !c->dragged) {
        size_t record;
        cairo_t *cr = measuring_context();
        if (!scene_find(c->model, &c->view, cr, event->x, event->y, &record, &c->view.selected))
            c->view.selected = -1;
        cairo_destroy(cr);
        canvas_redraw(c);
    }
    c->dragging = false;
    return TRUE;
}

static gboolean on_key(GtkWidget *widget, GdkEventKey *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    switch (gdk_keyval_to_lower(event->keyval)) {
    case GDK_KEY_Left:
    case GDK_KEY_a:
        scene_pan(&c->view, -pan_step);
        break;
    case GDK_KEY_Right:
    case GDK_KEY_d:
        scene_pan(&c->view, pan_step);
        break;
    case GDK_KEY_Up:
    case GDK_KEY_w:
    case GDK_KEY_plus:
    case GDK_KEY_KP_Add:
        scene_zoom(&c->view, zoom_step, 0.5);
        break;
    case GDK_KEY_Down:
    case GDK_KEY_s:
    case GDK_KEY_minus:
    case GDK_KEY_KP_Subtract:
        scene_zoom(&c->view, 1 / zoom_step, 0.5);
        break;
    case GDK_KEY_Home:
        canvas_fit(c);
        break;
    default:
        return FALSE;
    }
    moved(c);
    return TRUE;
}

static void on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    g_free(user);
}

canvas *canvas_new(const model *m, bool dark, canvas_callbacks callbacks)
{
    canvas *c = g_new0(canvas, 1);
    c->model = m;
    c->callbacks = callbacks;
    c->widget = gtk_drawing_area_new();
    c->view = scene_fit(m, 1200, 800);
    c->view.dark = dark;
    gtk_widget_set_can_focus(c->widget, TRUE);
    gtk_widget_add_events(c->widget, GDK_SCROLL_MASK | GDK_SMOOTH_SCROLL_MASK | GDK_BUTTON_PRESS_MASK |
                                         GDK_BUTTON_RELEASE_MASK | GDK_POINTER_MOTION_MASK | GDK_KEY_PRESS_MASK);
    g_signal_connect(c->widget, "draw", G_CALLBACK(on_draw), c);
    g_signal_connect(c->widget, "scroll-event", G_CALLBACK(on_scroll), c);
    g_signal_connect(c->widget, "button-press-event", G_CALLBACK(on_press), c);
    g_signal_connect(c->widget, "button-release-event", G_CALLBACK(on_release), c);
    g_signal_connect(c->widget, "motion-notify-event", G_CALLBACK(on_motion), c);
    g_signal_connect(c->widget, "key-press-event", G_CALLBACK(on_key), c);
    g_signal_connect(c->widget, "destroy", G_CALLBACK(on_destroy), c);
    atk_object_set_name(gtk_widget_get_accessible(c->widget), "Drawing of the log");
    return c;
}

GtkWidget *canvas_widget(canvas *c)
{
    return c->widget;
}

scene_view *canvas_view(canvas *c)
{
    return &c->view;
}

void canvas_fit(canvas *c)
{
    scene_view all = scene_fit(c->model, c->view.width, c->view.height);
    c->view.from_ns = all.from_ns;
    c->view.to_ns = all.to_ns;
    canvas_redraw(c);
}

void canvas_zoom(canvas *c, double factor)
{
    scene_zoom(&c->view, factor, 0.5);
    moved(c);
}
