/*
 * The editor of what is drawn: a window beside the main one in which events are put into lifelines, fields into
 * loadlines, events into points; what comes of it is drawn, and saved as the file that --config reads.
 */
#ifndef NLV_EDITOR_H
#define NLV_EDITOR_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct editor editor;

typedef struct editor_callbacks {
    void (*draw)(void *user, drawing *d); /* draw that, which is taken over; NULL: what is found out */
    void *user;
} editor_callbacks;

/* path: where the drawing came from, copied; NULL: from nowhere. The model must outlive it. */
editor *editor_new(GtkWindow *parent, model *m, const char *path, editor_callbacks callbacks);
void editor_free(editor *e);

/* Shows it with what is drawn now. */
void editor_show(editor *e);

#endif
