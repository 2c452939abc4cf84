/* The window, which contains the canvas, the side panel, the search bar, the sensor pane and the menus. The module also
 * runs the commands. */
#ifndef NLV_WINDOW_H
#define NLV_WINDOW_H

#include "model/model.h"

typedef struct window_options {
    const char *config; /* path of the drawing's file, or NULL */
    const char *where;  /* the first filter, or NULL */
    const char
        *directory; /* the directory to search for sensors at startup; NULL: search when the user opens the pane */
    int64_t since_ns, until_ns; /* the first view; INT64_MIN and INT64_MAX: the whole log */
    bool dark;
    bool threads;            /* show a row for each thread */
    bool compares;           /* show the comparison at startup */
    const char *compared[2]; /* the sides of the comparison, or NULL (model/compare_query.h) */
} window_options;

/* Shows logs until the user closes the window. Takes ownership of the drawing `d`. If `d` is NULL, nlv infers the
 * drawing. Returns the exit status. */
int window_run(drawing *d, program_reading *reading, model_options options, char **sources, int source_count,
               const window_options *look);

#endif
