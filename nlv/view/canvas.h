/*
 * The canvas: a widget that draws a scene and moves the view.
 *
 * Wheel: zoom at the pointer. Drag: pan. Drag with Shift or the middle button: zoom to the dragged range. Drag with
 * Ctrl or the right button: mark a time range. Click: choose a lifeline. Click or drag in the overview: move the view
 * there. Keys are in commands.h.
 */
#ifndef NLV_CANVAS_H
#define NLV_CANVAS_H

#include "scene/scene.h"

#include <gtk/gtk.h>

typedef struct canvas canvas;

typedef struct canvas_callbacks {
    void (*hover)(void *user, const char *text); /* the record under the pointer; "": no record */
    void (*moved)(void *user);                   /* the user has moved the view */
    void (*chosen)(void *user);                  /* the chosen lifeline has changed: see the view */
    void (*ranged)(void *user);                  /* the marked time has changed: see the view */
    void *user;
} canvas_callbacks;

/* Returns a canvas, which its widget owns. m must outlive the canvas. */
canvas *canvas_new(model *m, bool dark, canvas_callbacks callbacks);
GtkWidget *canvas_widget(canvas *c);

/* Returns the view; call canvas_redraw after changing it. */
scene_view *canvas_view(canvas *c);
void canvas_redraw(canvas *c);

/* Show the whole log; show a time range. Both count as moves of the user. */
void canvas_fit(canvas *c);

/* Shows the first view of the log (scene_first). Returns whether this view is a part of the log. */
bool canvas_show_first(canvas *c);
void canvas_show(canvas *c, int64_t from_ns, int64_t to_ns);

/* Moves of the user: zoom around the middle, pan by a share of the width, go back or forward through views. */
void canvas_zoom(canvas *c, double factor);
void canvas_pan(canvas *c, double share);
void canvas_go(canvas *c, int step);

/*
 * Gets the time of the record under the pointer, or of the pointer. Returns false if the pointer is outside the plot.
 */
bool canvas_pointed(canvas *c, int64_t *time_ns);

/* Zoom to the marked time; remove all marks and the choice. */
void canvas_show_range(canvas *c);
void canvas_clear(canvas *c);

#endif
