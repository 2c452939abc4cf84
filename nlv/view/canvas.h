/*
 * The canvas: a widget that draws a scene and moves about in it.
 *
 * Wheel: zoom at the pointer. Drag: pan. Drag with Shift, or the middle button: zoom to what is dragged over. Drag with
 * the right button, or Ctrl: mark a stretch of time, whose statistics are then asked for. A click chooses a lifeline.
 * In the overview a click or a drag moves the view there. What keys do is in commands.h.
 */
#ifndef NLV_CANVAS_H
#define NLV_CANVAS_H

#include "scene/scene.h"

#include <gtk/gtk.h>

typedef struct canvas canvas;

typedef struct canvas_callbacks {
    void (*hover)(void *user, const char *text); /* what is under the pointer, "" when nothing is */
    void (*moved)(void *user);                   /* the user has moved the view */
    void (*chosen)(void *user);                  /* a lifeline was chosen, or none: see the view */
    void (*ranged)(void *user);                  /* a stretch of time was marked, or none any more */
    void *user;
} canvas_callbacks;

/* Belongs to its widget and goes with it. m must outlive it. */
canvas *canvas_new(model *m, bool dark, canvas_callbacks callbacks);
GtkWidget *canvas_widget(canvas *c);

/* The view; change it and call canvas_redraw. */
scene_view *canvas_view(canvas *c);
void canvas_redraw(canvas *c);

/* Shows all of the log; a stretch of it. The latter is a move of the user's. */
void canvas_fit(canvas *c);
void canvas_show(canvas *c, int64_t from_ns, int64_t to_ns);

/* Moves of the user's: zooms around the middle, pans by a share of the width, goes back or forward through views. */
void canvas_zoom(canvas *c, double factor);
void canvas_pan(canvas *c, double share);
void canvas_go(canvas *c, int step);

/* The time that is pointed at: that of the record there, or of the place; false when the pointer is elsewhere. */
bool canvas_pointed(canvas *c, int64_t *time_ns);

/* Shows what is marked; nothing is marked or chosen any more. */
void canvas_show_range(canvas *c);
void canvas_clear(canvas *c);

#endif
