/* The window: canvas, side panel, search bar, sensors and menus, and the actions of its commands. */
#ifndef NLV_WINDOW_H
#define NLV_WINDOW_H

#include "model/model.h"

typedef struct window_options {
    const char *config;         /* the file of the drawing, or NULL */
    const char *where;          /* the first filter, or NULL */
    const char *directory;      /* the directory to search for sensors at once; NULL: when the user opens the pane */
    int64_t since_ns, until_ns; /* the first view; INT64_MIN and INT64_MAX: all */
    bool dark;
} window_options;

/*
 * Shows logs until the window is closed. Takes ownership of d, the drawing. If d is NULL, nlv infers the drawing.
 * Returns the exit status.
 */
int window_run(drawing *d, program_reading *reading, model_options options, char **sources, int source_count,
               const window_options *look);

#endif
