/* The window: canvas, side panel, search bar, sensors and menus, and what its commands do. */
#ifndef NLV_WINDOW_H
#define NLV_WINDOW_H

#include "model/model.h"

typedef struct window_options {
    const char *config;         /* the file of the drawing; NULL: none */
    const char *where;          /* the first filter; NULL: none */
    const char *directory;      /* where sensors are looked up at once; NULL: when the user opens the pane */
    int64_t since_ns, until_ns; /* the first view; INT64_MIN and INT64_MAX: all */
    bool dark;
} window_options;

/*
 * Shows logs until the window is closed. d is what to draw, taken over; NULL: it is inferred. Returns the exit status.
 */
int window_run(drawing *d, program_reading *reading, model_options options, char **sources, int source_count,
               const window_options *look);

#endif
