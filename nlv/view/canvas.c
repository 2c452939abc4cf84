#include "config.h"

#include "view/canvas.h"

#include "model/request_lines.h"
#include "scene/axis.h"
#include "scene/palette.h"
#include "view/history.h"

#include <math.h>

static const double zoom_step = 0.8, pan_step = 0.1, click_distance = 4, scroll_step = 48;

enum { SCROLL_BAR = 10 /* width of the area of the scroll bar at the right edge */ };

enum {
    TAUGHT_MAX = 12,          /* maximum number of hints shown */
    LONG_US = 8000,           /* if drawing a picture takes longer, pictures are coarse while the view moves */
    LONG_BY_UNITS_US = 11000, /* the limit if a unit is one pixel, which makes coarse pictures more visible */
    NAMED_MAX = 4000,         /* with at most this number of visible records, the picture names the longest line */
    SETTLE_MS = 150,          /* time from the last move until nlv replaces a coarse picture with a fine picture */
};

typedef enum drag { DRAG_NONE, DRAG_PAN, DRAG_ZOOM, DRAG_RANGE, DRAG_OVERVIEW, DRAG_BRUSH, DRAG_SCROLL } drag;

struct canvas {
    GtkWidget *widget;
    model *model;
    scene_view view;
    canvas_callbacks callbacks;
    history history;
    drag drag;
    bool dragged;                  /* the pointer has moved too far for a click */
    bool is_brushing;              /* the user is marking an area of the heat map with the keyboard */
    double brush_x[2], brush_y[2]; /* edges of this area, as shares of the strip's size, which may change */
    double press_x, press_y, last_x, last_y;
    double pointer_x, pointer_y;
    bool is_pointed;    /* the pointer is in the canvas */
    char *hovered;      /* text about the record under the pointer, or NULL */
    int64_t hovered_ns; /* time of the record under the pointer */
    double hovered_x;   /* x coordinate of hovered_ns when the pointer or the picture last moved */
    unsigned taught;    /* number of hints that nlv has shown so far */
    history_view drawn; /* the view of the last picture */
    int64_t moved_us;   /* time of the user's last move of the view, in microseconds */
    int64_t fine_us;    /* time that drawing the last fine picture took, in microseconds */
    guint settling;     /* the timer that replaces a coarse picture; 0: no timer */
};

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
    model_lock(c->model);
    scene_plot_extents(c->model, &c->view, cr, left, right);
    model_unlock(c->model);
    cairo_destroy(cr);
}

void canvas_redraw(canvas *c)
{
    gtk_widget_queue_draw(c->widget);
}

static history_view now_shown(const canvas *c)
{
    return (history_view){c->view.from_ns, c->view.to_ns};
}

static void moved(canvas *c, history_view before)
{
    history_move(&c->history, before, now_shown(c));
    c->moved_us = g_get_monotonic_time();
    c->callbacks.moved(c->callbacks.user);
    canvas_redraw(c);
}

/* Returns the x coordinate of a time. Sets *left and *right to the edges of the plot. */
static double place_of_time(canvas *c, int64_t time_ns, double *left, double *right)
{
    plot_extents(c, left, right);
    const double share =
        ((double)time_ns - (double)c->view.from_ns) / ((double)c->view.to_ns - (double)c->view.from_ns);
    return *left + share * (*right - *left);
}

static bool find_heat(canvas *c, scene_heat *places)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const bool is = scene_find_heat(c->model, &c->view, cr, places);
    model_unlock(c->model);
    cairo_destroy(cr);
    return is;
}

/* Converts the area that the user marks with the keyboard to a position in the strip. */
static void place_brush(canvas *c)
{
    scene_heat places;
    if (!c->is_brushing || !find_heat(c, &places))
        return;
    for (int i = 0; i < 2; i++) {
        c->view.brush_x[i] = places.left + c->brush_x[i] * (places.right - places.left);
        c->view.brush_y[i] = places.top + c->brush_y[i] * (places.bottom - places.top);
    }
}

/* ---- drawing ---- */

static void draw_hovered(const canvas *c, GtkWidget *widget, cairo_t *cr)
{
    if (c->hovered == NULL || c->drag != DRAG_NONE)
        return;
    const char *more = c->taught > TAUGHT_MAX ? ""
                                              : "\n\nClick: show all steps and their durations.\nM: measure from here. "
                                                "B: add a bookmark. Right button: show statistics of a time range.";
    char *text = g_strconcat(c->hovered, more, NULL);
    PangoLayout *layout = gtk_widget_create_pango_layout(widget, text);
    g_free(text);
    double max = MIN(c->view.width * 0.5, 460);
    pango_layout_set_width(layout, (int)(max * PANGO_SCALE));
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    int width, height;
    pango_layout_get_pixel_size(layout, &width, &height);
    double x = c->pointer_x + 14, y = c->pointer_y + 14;
    if (x + width + 16 > c->view.width)
        x = MAX(c->pointer_x - width - 26, 2);
    if (y + height + 12 > c->view.height)
        y = MAX(c->pointer_y - height - 22, 2);
    palette_set(cr, palette_text(c->view.dark), 0.93);
    cairo_rectangle(cr, x, y, width + 14, height + 10);
    cairo_fill(cr);
    palette_set(cr, palette_background(c->view.dark), 1);
    cairo_move_to(cr, x + 7, y + 5);
    pango_cairo_show_layout(cr, layout);
    g_object_unref(layout);
}

/*
 * Keeps the text about a record beside the record when the picture moves below the pointer. Removes the text when the
 * record leaves the picture.
 */
static void follow_hovered(canvas *c)
{
    double left, right;
    if (c->hovered == NULL || c->drag != DRAG_NONE)
        return;
    const double x = place_of_time(c, c->hovered_ns, &left, &right);
    c->pointer_x += x - c->hovered_x;
    c->hovered_x = x;
    if (x >= left && x <= right)
        return;
    g_clear_pointer(&c->hovered, g_free);
    c->is_pointed = false;
    c->view.hovered = -1;
    c->callbacks.hover(c->callbacks.user, "");
}

/* Places the crosshair at the pointer, or at the record below the pointer. */
static void place_crosshair(canvas *c)
{
    double left, right;
    plot_extents(c, &left, &right);
    c->view.has_crosshair = c->is_pointed && c->drag == DRAG_NONE && c->pointer_x >= left && c->pointer_x <= right;
    const double share = (c->pointer_x - left) / (right - left);
    c->view.crosshair_ns = c->hovered != NULL
                               ? c->hovered_ns
                               : c->view.from_ns + (int64_t)(share * (double)(c->view.to_ns - c->view.from_ns));
}

static gboolean on_settled(gpointer user)
{
    canvas *c = user;
    c->settling = 0;
    canvas_redraw(c);
    return G_SOURCE_REMOVE;
}

/*
 * Decides whether the next picture is coarse. A picture is coarse while the view moves, if a fine picture takes too
 * long. If a unit is one pixel, readers notice coarse pictures, so pictures are coarse only during moves by the user,
 * and not while nlv follows a log.
 */
static void choose_fineness(canvas *c)
{
    history_view view = now_shown(c);
    bool is_moving = view.from_ns != c->drawn.from_ns || view.to_ns != c->drawn.to_ns;
    bool is_by_hand = g_get_monotonic_time() - c->moved_us < SETTLE_MS * 1000;
    bool is_slow =
        gtk_widget_get_scale_factor(c->widget) > 1 ? c->fine_us > LONG_US : c->fine_us > LONG_BY_UNITS_US && is_by_hand;
    c->view.is_coarse = is_moving && is_slow;
    c->drawn = view;
    if (c->settling != 0)
        g_source_remove(c->settling);
    c->settling = c->view.is_coarse ? g_timeout_add(SETTLE_MS, on_settled, c) : 0;
}

static gboolean on_draw(GtkWidget *widget, cairo_t *cr, gpointer user)
{
    canvas *c = user;
    c->view.width = gtk_widget_get_allocated_width(widget);
    c->view.height = gtk_widget_get_allocated_height(widget);
    choose_fineness(c);
    follow_hovered(c);
    place_crosshair(c);
    place_brush(c);
    model_lock(c->model);
    int64_t begun_us = g_get_monotonic_time();
    const store *s = model_store(c->model);
    c->view.names_slowest =
        !c->view.is_coarse && store_find_time(s, c->view.to_ns) - store_find_time(s, c->view.from_ns) <= NAMED_MAX;
    scene_draw(c->model, &c->view, cr);
    int64_t took_us = g_get_monotonic_time() - begun_us;
    model_unlock(c->model);
    if (!c->view.is_coarse)
        c->fine_us = took_us;
    draw_hovered(c, widget, cr);
    return TRUE;
}

/* ---- pointing ---- */

static double share_at(canvas *c, double x)
{
    double left, right;
    plot_extents(c, &left, &right);
    return CLAMP((x - left) / (right - left), 0, 1);
}

static int64_t time_at(canvas *c, double x)
{
    return c->view.from_ns + (int64_t)(share_at(c, x) * (double)(c->view.to_ns - c->view.from_ns));
}

/* Moves the tracks that scroll by a number of units. */
static void scroll_by(canvas *c, double by)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    scene_scroll(c->model, &c->view, cr, by);
    model_unlock(c->model);
    cairo_destroy(cr);
    canvas_redraw(c);
}

/* Returns the height of the area that scrolls, or 0 if all tracks are visible. */
static double scroll_page(canvas *c)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const double page = scene_scroll_page(c->model, &c->view, cr);
    model_unlock(c->model);
    cairo_destroy(cr);
    return page;
}

bool canvas_scroll_page(canvas *c, int by)
{
    const double share = 0.9, page = scroll_page(c);
    scroll_by(c, by * share * page);
    return page > 0;
}

static gboolean on_scroll(GtkWidget *widget, GdkEventScroll *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    double dx = 0, dy = 0;
    history_view before = now_shown(c);
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
    double left, right;
    plot_extents(c, &left, &right);
    if ((event->x < left || (event->state & GDK_CONTROL_MASK) != 0) && scroll_page(c) > 0) {
        scroll_by(c, dy * scroll_step);
        return TRUE;
    }
    scene_pan(&c->view, dx * pan_step);
    if (dy != 0)
        scene_zoom(&c->view, pow(zoom_step, -dy), share_at(c, event->x));
    moved(c, before);
    return TRUE;
}

static bool is_overview(canvas *c, double x, double y, int64_t *time_ns)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    bool is = scene_is_overview(c->model, &c->view, cr, x, y, time_ns);
    model_unlock(c->model);
    cairo_destroy(cr);
    return is;
}

static void center(canvas *c, int64_t time_ns)
{
    history_view before = now_shown(c);
    int64_t width = c->view.to_ns - c->view.from_ns, from_ns, to_ns;
    if (__builtin_sub_overflow(time_ns, width / 2, &from_ns) || __builtin_add_overflow(from_ns, width, &to_ns))
        return;
    c->view.from_ns = from_ns;
    c->view.to_ns = to_ns;
    moved(c, before);
}

/* Returns whether the user pressed the button in the heat map or the histogram. If so, sets *area to the requests
 * between the position of the press and (x, y). */
static bool find_area(canvas *c, double x, double y, request_choice *area)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    bool is = scene_find_requests(c->model, &c->view, cr, (const double[]){c->press_x, c->press_y},
                                  (const double[]){x, y}, area);
    model_unlock(c->model);
    cairo_destroy(cr);
    return is;
}

static void end_brush_keys(canvas *c)
{
    c->is_brushing = c->view.has_brush = false;
    c->callbacks.hover(c->callbacks.user, "");
    canvas_redraw(c);
}

static drag drag_of(canvas *c, const GdkEventButton *event)
{
    int64_t time_ns;
    request_choice area;
    if (event->button == GDK_BUTTON_PRIMARY && find_area(c, event->x, event->y, &area))
        return DRAG_BRUSH;
    if (event->button == GDK_BUTTON_PRIMARY && is_overview(c, event->x, event->y, &time_ns)) {
        center(c, time_ns);
        return DRAG_OVERVIEW;
    }
    if (event->button == GDK_BUTTON_PRIMARY && event->x >= c->view.width - SCROLL_BAR && scroll_page(c) > 0)
        return DRAG_SCROLL;
    if (event->button == GDK_BUTTON_MIDDLE ||
        (event->button == GDK_BUTTON_PRIMARY && (event->state & GDK_SHIFT_MASK) != 0))
        return DRAG_ZOOM;
    if (event->button == GDK_BUTTON_SECONDARY ||
        (event->button == GDK_BUTTON_PRIMARY && (event->state & GDK_CONTROL_MASK) != 0))
        return DRAG_RANGE;
    return event->button == GDK_BUTTON_PRIMARY ? DRAG_PAN : DRAG_NONE;
}

static gboolean on_press(GtkWidget *widget, GdkEventButton *event, gpointer user)
{
    canvas *c = user;
    if (event->type != GDK_BUTTON_PRESS || c->drag != DRAG_NONE)
        return TRUE;
    gtk_widget_grab_focus(widget);
    c->press_x = c->last_x = event->x;
    c->press_y = c->last_y = event->y;
    if (c->is_brushing)
        end_brush_keys(c);
    c->drag = drag_of(c, event);
    c->dragged = false;
    return c->drag != DRAG_NONE;
}

static int find_color(canvas *c, double x, double y, bool *is_more)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const int found = scene_find_color(c->model, &c->view, cr, x, y, is_more);
    model_unlock(c->model);
    cairo_destroy(cr);
    return found;
}

static bool find_legend(canvas *c, double x, double y, request_choice *choice)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const bool is = scene_find_legend(c->model, &c->view, cr, x, y, choice);
    model_unlock(c->model);
    cairo_destroy(cr);
    return is;
}

/* Returns the key of the track whose name is at a position, or 0. */
static uint32_t find_track(canvas *c, double x, double y)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const uint32_t track = scene_find_track(c->model, &c->view, cr, x, y);
    model_unlock(c->model);
    cairo_destroy(cr);
    return track;
}

/* Returns the effect of a click on an entry of a legend, or "" if there is no entry at the position. */
static const char *hint_of(canvas *c, double x, double y)
{
    request_choice choice;
    if (find_legend(c, x, y, &choice))
        return "Click: list these requests";
    if (find_track(c, x, y) != 0)
        return "Click: collapse or expand. Shift+click: pin at the top, or unpin. Key K: do this with the keyboard";
    bool is_more;
    if (find_color(c, x, y, &is_more) < 0)
        return "";
    return is_more ? "Click: show the other colors"
                   : "Click: show only the requests with this color, or all again. Shift+click: hide them, or show "
                     "them again. Key L: choose a color with the keyboard";
}

static bool toggle_track(canvas *c, uint32_t track)
{
    if (track == 0)
        return false;
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    scene_toggle_track(c->model, &c->view, cr, track);
    model_unlock(c->model);
    cairo_destroy(cr);
    canvas_redraw(c);
    return true;
}

static void pin_track(canvas *c, uint32_t track)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    scene_pin_track(c->model, &c->view, cr, track);
    model_unlock(c->model);
    cairo_destroy(cr);
    canvas_redraw(c);
}

void canvas_show_threads(canvas *c, bool shows)
{
    c->view.shows_threads = shows;
    c->view.scroll = 0;
    c->view.track = 0;
    if (shows)
        model_want_threads(c->model);
    canvas_redraw(c);
}

bool canvas_expand_next(canvas *c)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const bool expanded = scene_expand_next(c->model, &c->view, cr);
    model_unlock(c->model);
    cairo_destroy(cr);
    canvas_redraw(c);
    return expanded;
}

/* Returns the text about the record below the pointer, and emphasizes the line that ends with the record. */
static char *describe_hovered(canvas *c, const scene_found *found)
{
    const store *s = model_store(c->model);
    char *text = scene_describe_record(c->model, c->view.clock, found->record), took[32];
    if (text == NULL || found->object < 0)
        return text;
    c->view.hovered = found->object;
    c->view.hovered_lifeline = found->lifeline;
    c->view.hovered_record = found->record;
    const request_line *line =
        request_lines_cause(request_lines_find(c->model, found->lifeline, (uint32_t)found->object), found->record);
    if (line == NULL)
        return text;
    axis_span_label((double)(store_time(s, line->to) - store_time(s, line->from)), took);
    char *longer =
        g_strdup_printf("%s after %s:  %s", took, names_text(s->names.events, store_event(s, line->from)), text);
    g_free(text);
    return longer;
}

static void find_hovered(canvas *c, double x, double y)
{
    scene_found found;
    double left, right;
    plot_extents(c, &left, &right);
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    char *text = NULL;
    c->view.hovered = -1;
    const bool is_found = scene_find(c->model, &c->view, cr, x, y, &found);
    if (is_found)
        text = describe_hovered(c, &found);
    char *span = scene_describe_thread(c->model, &c->view, cr, x, y);
    if (span != NULL) {
        char *both = text != NULL ? g_strdup_printf("%s\n%s", span, text) : g_strdup(span);
        g_free(text);
        text = both;
    }
    g_free(span);
    if (text != NULL && c->hovered == NULL)
        c->taught++;
    if (text != NULL && !is_found)
        c->hovered_ns = c->view.from_ns +
                        (int64_t)((x - left) / (right - left) * ((double)c->view.to_ns - (double)c->view.from_ns));
    else if (text != NULL)
        c->hovered_ns = store_time(model_store(c->model), found.record);
    model_unlock(c->model);
    cairo_destroy(cr);
    c->pointer_x = x;
    c->pointer_y = y;
    c->is_pointed = true;
    canvas_redraw(c);
    char *line = text != NULL ? g_strdelimit(g_strdup(text), "\n", ' ') : NULL;
    c->callbacks.hover(c->callbacks.user, line != NULL ? line : hint_of(c, x, y));
    g_free(line);
    g_free(c->hovered);
    c->hovered = text;
    c->hovered_x = text != NULL ? place_of_time(c, c->hovered_ns, &left, &right) : 0;
}

static void mark_range(canvas *c, double x)
{
    c->view.has_range = true;
    c->view.is_zooming = c->drag == DRAG_ZOOM;
    c->view.range_from_ns = time_at(c, c->press_x);
    c->view.range_to_ns = time_at(c, x);
    canvas_redraw(c);
}

/* Returns the number of units that the tracks move if the scroll bar moves by one unit. */
static double scroll_ratio(canvas *c)
{
    scene_view end = c->view;
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const double page = scene_scroll_page(c->model, &c->view, cr);
    scene_scroll(c->model, &end, cr, 1e9);
    model_unlock(c->model);
    cairo_destroy(cr);
    return page > 0 ? (page + end.scroll) / page : 0;
}

static void drag_on(canvas *c, double x, double y)
{
    int64_t time_ns;
    history_view before = now_shown(c);
    double left, right;
    plot_extents(c, &left, &right);
    c->dragged = true;
    if (c->drag == DRAG_BRUSH) {
        c->view.has_brush = true;
        c->view.brush_x[0] = c->press_x;
        c->view.brush_y[0] = c->press_y;
        c->view.brush_x[1] = x;
        c->view.brush_y[1] = y;
        canvas_redraw(c);
    } else if (c->drag == DRAG_OVERVIEW) {
        is_overview(c, x, y, &time_ns);
        center(c, time_ns);
    } else if (c->drag == DRAG_SCROLL) {
        scroll_by(c, (y - c->last_y) * scroll_ratio(c));
        c->last_y = y;
    } else if (c->drag == DRAG_PAN) {
        scroll_by(c, c->last_y - y);
        c->last_y = y;
        scene_pan(&c->view, (c->last_x - x) / (right - left));
        c->last_x = x;
        moved(c, before);
    } else {
        mark_range(c, x);
    }
}

static gboolean on_motion(GtkWidget *widget, GdkEventMotion *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    if (c->drag == DRAG_NONE)
        find_hovered(c, event->x, event->y);
    else if (c->dragged || fabs(event->x - c->press_x) >= click_distance)
        drag_on(c, event->x, event->y);
    return TRUE;
}

static gboolean on_leave(GtkWidget *widget, GdkEventCrossing *event, gpointer user)
{
    (void)widget, (void)event;
    canvas *c = user;
    canvas_redraw(c);
    c->is_pointed = false;
    c->view.hovered = -1;
    g_clear_pointer(&c->hovered, g_free);
    c->callbacks.hover(c->callbacks.user, "");
    return FALSE;
}

static void show_color(canvas *c, int color)
{
    c->view.has_color = color >= 0;
    c->view.color = (size_t)MAX(color, 0);
    canvas_redraw(c);
}

/* Isolates or hides the color at a position of the legend, or shows the colors that do not fit. Returns false if there
 * is no color at the position. */
static bool click_color(canvas *c, double x, double y, bool hides)
{
    bool is_more;
    const int color = find_color(c, x, y, &is_more);
    if (color >= 0 && is_more)
        show_color(c, color);
    else if (color >= 0)
        c->callbacks.colored(c->callbacks.user, (size_t)color, hides);
    return color >= 0;
}

static void click(canvas *c, double x, double y)
{
    scene_found found;
    request_choice choice;
    if (find_legend(c, x, y, &choice)) {
        c->callbacks.listed(c->callbacks.user, &choice);
        return;
    }
    if (click_color(c, x, y, false) || toggle_track(c, find_track(c, x, y)))
        return;
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const store *s = model_store(c->model);
    const bool is_found = scene_find(c->model, &c->view, cr, x, y, &found),
               is_span = is_found && found.object < 0 && store_duration(s, found.record) != 0;
    scene_select(&c->view, s, is_span ? found.record : STORE_NONE);
    if (is_found && found.object >= 0) {
        c->view.selected = found.object;
        c->view.selected_lifeline = found.lifeline;
    }
    model_unlock(c->model);
    cairo_destroy(cr);
    c->callbacks.chosen(c->callbacks.user);
    canvas_redraw(c);
}

/* Hides the requests of a color, or pins a track. */
static void click_with_shift(canvas *c, double x, double y)
{
    const uint32_t track = find_track(c, x, y);
    if (!click_color(c, x, y, true) && track != 0)
        pin_track(c, track);
}

/* Ends a click or a drag in the heat map. A click at a position without requests moves the view to the time of this
 * position. */
static void end_brush(canvas *c, double x, double y)
{
    request_choice area;
    int64_t time_ns;
    const bool is_there = find_area(c, x, y, &area);
    c->view.has_brush = false;
    canvas_redraw(c);
    if (is_there && c->dragged)
        c->callbacks.brushed(c->callbacks.user, &area);
    else if (is_there && !c->callbacks.picked(c->callbacks.user, &area)) {
        is_overview(c, x, y, &time_ns);
        center(c, time_ns);
    }
}

static gboolean on_release(GtkWidget *widget, GdkEventButton *event, gpointer user)
{
    (void)widget;
    canvas *c = user;
    drag was = c->drag;
    c->drag = DRAG_NONE;
    if (was == DRAG_BRUSH)
        end_brush(c, event->x, event->y);
    else if (!c->dragged && was == DRAG_PAN)
        click(c, event->x, event->y);
    else if (!c->dragged && was == DRAG_ZOOM)
        click_with_shift(c, event->x, event->y);
    else if (!c->dragged && was == DRAG_RANGE) {
        c->view.has_range = false;
        c->callbacks.ranged(c->callbacks.user);
        canvas_redraw(c);
    } else if (c->dragged && was == DRAG_ZOOM) {
        canvas_show_range(c);
    } else if (c->dragged && was == DRAG_RANGE) {
        c->callbacks.ranged(c->callbacks.user);
    }
    return TRUE;
}

/* ---- marking an area of the heat map with the keyboard ---- */

bool canvas_begin_brush(canvas *c)
{
    scene_heat places;
    if (!find_heat(c, &places))
        return false;
    c->is_brushing = c->view.has_brush = true;
    c->brush_x[0] = c->brush_y[0] = 0;
    c->brush_x[1] = 1;
    c->brush_y[1] = (places.slow_y - places.top) / (places.bottom - places.top);
    place_brush(c);
    gtk_widget_grab_focus(c->widget);
    canvas_redraw(c);
    c->callbacks.hover(c->callbacks.user,
                       "Arrows: move. Shift+arrows: resize. Enter: list the requests. Escape: cancel");
    return true;
}

/* Moves the marked area by a share of the strip's size. If `resizes` is true, moves only the right and upper edges. */
static void move_brush(canvas *c, double by_x, double by_y, bool resizes)
{
    const double min = 0.01;
    if (!resizes) {
        by_x = CLAMP(by_x, -c->brush_x[0], 1 - c->brush_x[1]);
        by_y = CLAMP(by_y, -c->brush_y[0], 1 - c->brush_y[1]);
        c->brush_x[0] += by_x;
        c->brush_y[1] += by_y;
    }
    c->brush_x[1] = CLAMP(c->brush_x[1] + by_x, c->brush_x[0] + min, 1);
    c->brush_y[0] = CLAMP(c->brush_y[0] + by_y, 0, c->brush_y[1] - min);
    canvas_redraw(c);
}

static void finish_brush(canvas *c)
{
    const scene_view *v = &c->view;
    request_choice area;
    place_brush(c);
    c->press_x = v->brush_x[0];
    c->press_y = v->brush_y[0];
    const bool is_there = find_area(c, v->brush_x[1], v->brush_y[1], &area);
    end_brush_keys(c);
    if (is_there)
        c->callbacks.brushed(c->callbacks.user, &area);
}

static bool handle_brush_key(canvas *c, const GdkEventKey *event)
{
    const double step_x = 0.02, step_y = 0.05;
    const bool resizes = (event->state & GDK_SHIFT_MASK) != 0;
    switch (event->keyval) {
    case GDK_KEY_Left:
    case GDK_KEY_Right:
        move_brush(c, event->keyval == GDK_KEY_Left ? -step_x : step_x, 0, resizes);
        return true;
    case GDK_KEY_Up:
    case GDK_KEY_Down:
        move_brush(c, 0, event->keyval == GDK_KEY_Up ? -step_y : step_y, resizes);
        return true;
    case GDK_KEY_Return:
    case GDK_KEY_KP_Enter:
        finish_brush(c);
        return true;
    case GDK_KEY_Escape:
        end_brush_keys(c);
        return true;
    default:
        return false;
    }
}

/* ---- choosing a color of the legend with the keyboard ---- */

static int step_color(canvas *c, int from, int by)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    const int color = scene_step_color(c->model, &c->view, cr, from, by);
    model_unlock(c->model);
    cairo_destroy(cr);
    return color;
}

/* Frames a color, and shows its name and the keys. */
static void choose_color(canvas *c, int color)
{
    show_color(c, color);
    model_lock(c->model);
    char *text =
        g_strdup_printf("%s   Left and Right: other colors. Enter: show only this color, or all again. "
                        "Delete: hide it, or show it again. Escape: end",
                        (size_t)color < model_color_count(c->model) ? model_color_text(c->model, (size_t)color) : "");
    model_unlock(c->model);
    c->callbacks.hover(c->callbacks.user, text);
    g_free(text);
}

bool canvas_begin_legend(canvas *c)
{
    const int color = step_color(c, -1, 1);
    if (color < 0)
        return false;
    gtk_widget_grab_focus(c->widget);
    choose_color(c, color);
    return true;
}

static bool handle_legend_key(canvas *c, const GdkEventKey *event)
{
    const int color = (int)c->view.color;
    switch (event->keyval) {
    case GDK_KEY_Left:
        choose_color(c, step_color(c, color, -1));
        return true;
    case GDK_KEY_Right:
        choose_color(c, step_color(c, color, 1));
        return true;
    case GDK_KEY_Return:
    case GDK_KEY_KP_Enter:
    case GDK_KEY_Delete:
    case GDK_KEY_KP_Delete:
        c->callbacks.colored(c->callbacks.user, c->view.color,
                             event->keyval == GDK_KEY_Delete || event->keyval == GDK_KEY_KP_Delete);
        return true;
    case GDK_KEY_Escape:
        show_color(c, -1);
        c->callbacks.hover(c->callbacks.user, "");
        return true;
    default:
        return false;
    }
}

/* ---- choosing a track with the keyboard ---- */

/* Marks the track after (by = 1) or before (by = -1) the marked track, and shows its name and the keys. */
static void choose_track(canvas *c, int by)
{
    cairo_t *cr = measuring_context();
    model_lock(c->model);
    if (by != 0)
        c->view.track = scene_step_track(c->model, &c->view, cr, c->view.track, by);
    scene_show_track(c->model, &c->view, cr, c->view.track);
    char *name = scene_track_name(c->model, &c->view, cr, c->view.track),
         *text =
             g_strdup_printf("%s   Up and Down: other tracks. Enter: collapse or expand. P: pin or unpin. Escape: end",
                             name != NULL ? name : "");
    model_unlock(c->model);
    cairo_destroy(cr);
    canvas_redraw(c);
    c->callbacks.hover(c->callbacks.user, text);
    g_free(name);
    g_free(text);
}

bool canvas_begin_track(canvas *c)
{
    c->view.track = 0;
    choose_track(c, 1);
    gtk_widget_grab_focus(c->widget);
    return c->view.track != 0;
}

static bool handle_track_key(canvas *c, const GdkEventKey *event)
{
    switch (event->keyval) {
    case GDK_KEY_Up:
    case GDK_KEY_Down:
        choose_track(c, event->keyval == GDK_KEY_Down ? 1 : -1);
        return true;
    case GDK_KEY_Return:
    case GDK_KEY_KP_Enter:
        toggle_track(c, c->view.track);
        choose_track(c, 0);
        return true;
    case GDK_KEY_p:
        pin_track(c, c->view.track);
        choose_track(c, 0);
        return true;
    case GDK_KEY_Escape:
        c->view.track = 0;
        canvas_redraw(c);
        c->callbacks.hover(c->callbacks.user, "");
        return true;
    default:
        return false;
    }
}

bool canvas_handle_key(canvas *c, const GdkEventKey *event)
{
    return c->is_brushing       ? handle_brush_key(c, event)
           : c->view.has_color  ? handle_legend_key(c, event)
           : c->view.track != 0 ? handle_track_key(c, event)
                                : false;
}

bool canvas_pointed(canvas *c, int64_t *time_ns)
{
    if (c->is_pointed)
        *time_ns = c->hovered != NULL ? c->hovered_ns : time_at(c, c->pointer_x);
    return c->is_pointed;
}

/* ---- moves ---- */

void canvas_fit(canvas *c)
{
    model_lock(c->model);
    scene_view all = scene_fit(c->model, c->view.width, c->view.height);
    model_unlock(c->model);
    c->view.from_ns = all.from_ns;
    c->view.to_ns = all.to_ns;
    canvas_redraw(c);
}

bool canvas_show_first(canvas *c)
{
    model_lock(c->model);
    scene_view first = scene_first(c->model, c->view.width, c->view.height),
               all = scene_fit(c->model, c->view.width, c->view.height);
    model_unlock(c->model);
    c->view.from_ns = first.from_ns;
    c->view.to_ns = first.to_ns;
    canvas_redraw(c);
    return first.from_ns != all.from_ns || first.to_ns != all.to_ns;
}

void canvas_show(canvas *c, int64_t from_ns, int64_t to_ns)
{
    history_view before = now_shown(c);
    if (from_ns >= to_ns)
        return;
    c->view.from_ns = from_ns;
    c->view.to_ns = to_ns;
    moved(c, before);
}

void canvas_show_range(canvas *c)
{
    int64_t from_ns = MIN(c->view.range_from_ns, c->view.range_to_ns);
    int64_t to_ns = MAX(c->view.range_from_ns, c->view.range_to_ns);
    if (!c->view.has_range)
        return;
    c->view.has_range = c->view.is_zooming = false;
    canvas_show(c, from_ns, to_ns);
}

void canvas_zoom(canvas *c, double factor)
{
    history_view before = now_shown(c);
    scene_zoom(&c->view, factor, 0.5);
    moved(c, before);
}

void canvas_pan(canvas *c, double share)
{
    history_view before = now_shown(c);
    scene_pan(&c->view, share);
    moved(c, before);
}

void canvas_go(canvas *c, int step)
{
    history_view view;
    if (!history_go(&c->history, step, &view))
        return;
    c->view.from_ns = view.from_ns;
    c->view.to_ns = view.to_ns;
    c->callbacks.moved(c->callbacks.user);
    canvas_redraw(c);
}

void canvas_clear(canvas *c)
{
    c->view.has_range = c->view.has_mark = false;
    c->view.selected = -1;
    c->view.has_single = false;
    c->callbacks.chosen(c->callbacks.user);
    canvas_redraw(c);
}

/* ---- creation and destruction ---- */

static void canvas_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    canvas *c = user;
    if (c->settling != 0)
        g_source_remove(c->settling);
    history_free(&c->history);
    g_free(c->hovered);
    g_free(c);
}

canvas *canvas_new(model *m, bool dark, canvas_callbacks callbacks)
{
    canvas *c = g_new0(canvas, 1);
    c->model = m;
    c->callbacks = callbacks;
    c->widget = gtk_drawing_area_new();
    c->view = scene_fit(m, 1200, 800);
    c->view.dark = dark;
    c->view.overview = c->view.histogram = c->view.collapses = c->view.scrolls = true;
    history_init(&c->history);
    gtk_widget_set_can_focus(c->widget, TRUE);
    gtk_widget_add_events(c->widget, GDK_SCROLL_MASK | GDK_SMOOTH_SCROLL_MASK | GDK_BUTTON_PRESS_MASK |
                                         GDK_BUTTON_RELEASE_MASK | GDK_POINTER_MOTION_MASK | GDK_LEAVE_NOTIFY_MASK |
                                         GDK_KEY_PRESS_MASK);
    g_signal_connect(c->widget, "draw", G_CALLBACK(on_draw), c);
    g_signal_connect(c->widget, "scroll-event", G_CALLBACK(on_scroll), c);
    g_signal_connect(c->widget, "button-press-event", G_CALLBACK(on_press), c);
    g_signal_connect(c->widget, "button-release-event", G_CALLBACK(on_release), c);
    g_signal_connect(c->widget, "motion-notify-event", G_CALLBACK(on_motion), c);
    g_signal_connect(c->widget, "leave-notify-event", G_CALLBACK(on_leave), c);
    g_signal_connect(c->widget, "destroy", G_CALLBACK(canvas_on_destroy), c);
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
