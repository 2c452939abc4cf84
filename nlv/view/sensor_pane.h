/*
 * The pane of sensors: the hosts that a directory knows, and their sensors, to be ticked. What is ticked is subscribed
 * to, and drawn in the window. Whatever is asked of others is asked beside the window (agents.h).
 */
#ifndef NLV_SENSOR_PANE_H
#define NLV_SENSOR_PANE_H

#include "model/feed.h"
#include "requests/drawing.h"

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct sensor_pane sensor_pane;

typedef struct sensor_pane_callbacks {
    /* The first sensor was ticked; the feed gets the records of all sensors. */
    void (*begin)(void *user, feed *f);
    /* Loadlines, taken over, that are to be drawn beside all else from now on. */
    void (*draw)(void *user, drawing *loadlines);
    void *user;
} sensor_pane_callbacks;

/* Belongs to its widget and goes with it, and so do all its streams. directory: where to look; NULL: not said. */
sensor_pane *sensor_pane_new(const char *directory, sensor_pane_callbacks callbacks);
GtkWidget *sensor_pane_widget(sensor_pane *p);

/* Shows it, for the keyboard too, and looks up what there is when that was not done yet. */
void sensor_pane_show(sensor_pane *p);

#endif
