/*
 * The window: a canvas that shows a model, buttons for what cannot be done with mouse and keys alone, a line that says
 * what is under the pointer, and one button between real time (the view moves on as the log grows) and history.
 */
#ifndef NLV_WINDOW_H
#define NLV_WINDOW_H

#include "model/model.h"

/* Opens a window on logs and runs until it is closed. Takes d over. Returns the exit status. */
int window_run(drawing *d, program_reading *reading, char **sources, int source_count, bool dark);

#endif
