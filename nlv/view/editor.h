/*
 * The editor of the drawing: a window in which the user puts events into lifelines, fields into loadlines, and events
 * into points. The user can draw the result and save it as a file for --config.
 */
#ifndef NLV_EDITOR_H
#define NLV_EDITOR_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct editor editor;

typedef struct editor_callbacks {
    void (*draw)(void *user,
                 drawing *d); /* draw d and take ownership of it; if `d` is NULL, draw the inferred drawing */
    void *user;
} editor_callbacks;

/* Returns an editor. `path` is the path of the file that contains the drawing, or NULL. Copies `path`. The model must
 * outlive the editor. */
editor *editor_new(GtkWindow *parent, model *m, const char *path, editor_callbacks callbacks);
void editor_free(editor *e);

/* Shows the editor with the current drawing. */
void editor_show(editor *e);

#endif
