/*
 * Sorts a text file that is nearly in order, as collectors write it, with only a window of the file in memory. One
 * thread reads and finds the lines; another thread writes the lines that are older than the window.
 *
 * flow_run gives up at a line that is older than lines already written, or that needs the decoder. The caller then
 * discards the output.
 */
#ifndef NLSORT_FLOW_H
#define NLSORT_FLOW_H

#include "gather.h"

typedef struct flow_settings {
    int fd; /* descriptor of a regular file */
    nl_format format;
    nl_fraction fraction;
    size_t memory;
    gather_sink *sink; /* called in the thread that calls flow_run */
    void *user;
} flow_settings;

/* Returns whether the lines at several places of the file are nearly in order. */
bool flow_is_likely(const flow_settings *settings);

/*
 * Sorts the lines by time, in a stable order, and passes them to `sink` without positions. Returns false if it gives
 * up.
 */
bool flow_run(const flow_settings *settings);

#endif
