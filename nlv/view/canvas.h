/*
 * The canvas is a widget that draws a scene and moves the view. The pointer has the following actions:
 *
 * - wheel: zoom at the pointer
 * - drag: pan
 * - drag with Shift or the middle button: zoom to the dragged range
 * - drag with Ctrl or the right button: mark a time range
 * - click: choose a lifeline
 * - click on the name of a track or a label at the left: collapse or expand the track; with Shift: pin or unpin it
 * - wheel on the labels at the left, or with Ctrl; drag of the scroll bar: scroll the tracks
 * - click in the heat map: show the failed or slowest request near that position
 * - click on the number of slow or failed requests in the legend of the heat map: list these requests
 * - click on a color in the legend: show only the requests with this color, or all requests again
 * - click on a color in the legend with Shift: hide the requests with this color, or show them again
 * - drag in the heat map, or in the histogram beside it: list the requests of an area
 * - click or drag in an overview without a heat map: move the view to the time of that position
 *
 * commands.h lists the keys.
 */
#ifndef NLV_CANVAS_H
#define NLV_CANVAS_H

#include "scene/scene.h"

#include <gtk/gtk.h>

typedef struct canvas canvas;

typedef struct canvas_callbacks {
    void (*hover)(void *user, const char *text); /* the record under the pointer; "": no record */
    void (*moved)(void *user);                   /* the user has moved the view */
    void (*chosen)(void *user);                  /* the user has chosen another lifeline */
    void (*ranged)(void *user);                  /* the user has changed the marked time range */
    /* The user has clicked in the heat map. Returns false if there is no request. */
    bool (*picked)(void *user, const request_choice *area);
    void (*brushed)(void *user, const request_choice *area); /* the user has marked an area of the heat map */
    /* The user has clicked on a number in the legend of the heat map. */
    void (*listed)(void *user, const request_choice *choice);
    /* The user wants to isolate or hide a color of the legend, or to show all colors again (color_filter_toggle). */
    void (*colored)(void *user, size_t color, bool hides);
    void *user;
} canvas_callbacks;

/* Returns a canvas, which its widget owns. `m` must outlive the canvas. */
canvas *canvas_new(model *m, bool dark, canvas_callbacks callbacks);
GtkWidget *canvas_widget(canvas *c);

/*
 * canvas_begin_brush lets the user mark an area of the heat map with the keyboard. At first, the area contains the slow
 * requests. Returns false if there is no heat map. canvas_begin_legend lets the user choose a color of the legend with
 * the keyboard. Returns false if the legend has no such color. canvas_begin_track lets the user choose a track, to
 * collapse or pin it. Returns false if there is no track. canvas_handle_key handles a key, and returns whether the key
 * belongs to the marking or a choice.
 */
bool canvas_begin_brush(canvas *c);
bool canvas_begin_legend(canvas *c);
bool canvas_begin_track(canvas *c);
bool canvas_handle_key(canvas *c, const GdkEventKey *event);

/* Shows a row for each thread, or the drawing. */
void canvas_show_threads(canvas *c, bool shows);

/* Scrolls the tracks up (-1) or down (1). Returns false if all tracks are visible. */
bool canvas_scroll_page(canvas *c, int by);

/* Expands the next collapsed track. Returns false if no track is collapsed. */
bool canvas_expand_next(canvas *c);

/* Returns the view. Call canvas_redraw after you have changed it. */
scene_view *canvas_view(canvas *c);
void canvas_redraw(canvas *c);

/* Shows the whole log, without adding to the history of views. */
void canvas_fit(canvas *c);

/* Shows the first view of the log (scene_first), without adding to the history. Returns whether this view shows only a
 * part of the log. */
bool canvas_show_first(canvas *c);

/* Unless the range is empty, shows a time range and adds it to the history, as for a move by the user. */
void canvas_show(canvas *c, int64_t from_ns, int64_t to_ns);

/*
 * These functions change the view as the user's keys and pointer do. canvas_zoom multiplies the width of the view by
 * `factor` and keeps its middle. canvas_pan moves the view by a share of its width. canvas_go goes back (-1) or forward
 * (1) through the history of views.
 */
void canvas_zoom(canvas *c, double factor);
void canvas_pan(canvas *c, double share);
void canvas_go(canvas *c, int step);

/*
 * Sets *time_ns to the time of the record under the pointer, or of the pointer if there is no such record. Returns
 * false if the pointer is outside the canvas.
 */
bool canvas_pointed(canvas *c, int64_t *time_ns);

/*
 * canvas_show_range zooms to the marked time range. canvas_clear removes the marked time range and the mark of a search
 * match, and deselects the lifeline.
 */
void canvas_show_range(canvas *c);
void canvas_clear(canvas *c);

#endif
