/*
 * The canvas: a widget that draws a scene and moves about in it.
 *
 * Wheel: zoom at the pointer. Drag: pan. Arrows or A and D: pan; W and S, + and -: zoom; Home: all. A click selects a
 * lifeline.
 */
#ifndef NLV_CANVAS_H
#define NLV_CANVAS_H

#include "scene/scene.h"

#include <gtk/gtk.h>

typedef struct canvas canvas;

/* Called with what is under the pointer ("" when nothing is), and when the user has moved the view by hand. */
typedef struct canvas_callbacks {
    void (*hover)(void *user, const char *text);
    void (*moved)(void *user);
    void *user;
} canvas_callbacks;

/* Belongs to its widget and goes with it. m must outlive it. */
canvas *canvas_new(const model *m, bool dark, canvas_callbacks callbacks);
GtkWidget *canvas_widget(canvas *c);

/* The view; change it and call canvas_redraw. */
scene_view *canvas_view(canvas *c);
void canvas_redraw(canvas *c);

/* Shows all of the log. */
void canvas_fit(canvas *c);

/* Zooms around the middle. */
void canvas_zoom(canvas *c, double factor);

#endif
