/*
 * The pane with the hosts and sensors of a directory. nlv subscribes to ticked sensors and draws their records. Threads
 * do the network work (agents.h).
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
    /* Draw these loadlines in addition; the callee then owns them. */
    void (*draw)(void *user, drawing *loadlines);
    void *user;
} sensor_pane_callbacks;

/*
 * Returns a pane, which its widget owns together with all streams. The pane searches directory first, or this host if
 * directory is NULL.
 */
sensor_pane *sensor_pane_new(const char *directory, sensor_pane_callbacks callbacks);
GtkWidget *sensor_pane_widget(sensor_pane *p);

/* Shows the pane with the focus, and, the first time, searches the directory. */
void sensor_pane_show(sensor_pane *p);

#endif
