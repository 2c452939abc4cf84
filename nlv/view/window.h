/* The window: canvas, side panel, search bar, menus; and what its commands do. */
#ifndef NLV_WINDOW_H
#define NLV_WINDOW_H

#include "model/model.h"

/*
 * Shows logs until the window is closed; d is what to draw, taken over (NULL: found out), which came from config (NULL:
 * no file); directory is where sensors are looked up at once (NULL: when it is asked for). Returns the exit status.
 */
int window_run(drawing *d, const char *config, program_reading *reading, model_options options, char **sources,
               int source_count, const char *directory, bool dark);

#endif
