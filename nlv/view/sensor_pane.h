/*
 * The pane with the hosts and sensors of a directory. nlv subscribes to ticked sensors and draws their records. Other
 * threads communicate with the network (agents.h).
 */
#ifndef NLV_SENSOR_PANE_H
#define NLV_SENSOR_PANE_H

#include "model/feed.h"
#include "requests/drawing.h"

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct sensor_pane sensor_pane;

typedef struct sensor_pane_callbacks {
    /* Called when the user ticks the first sensor. The feed gets the records of all sensors. */
    void (*begin)(void *user, feed *f);
    /* Draws additional loadlines, and takes ownership of `loadlines`. */
    void (*draw)(void *user, drawing *loadlines);
    void *user;
} sensor_pane_callbacks;

/* Returns a hidden pane. The pane's widget owns the pane and all streams. `directory` is the URL of the directory to
 * search first; NULL: the default of agents_find. */
sensor_pane *sensor_pane_new(const char *directory, sensor_pane_callbacks callbacks);
GtkWidget *sensor_pane_widget(sensor_pane *p);

/* Shows the pane and moves the focus to it. The first call also searches the directory. */
void sensor_pane_show(sensor_pane *p);

#endif
