/*
 * Sorts a text file that is nearly in order, as collectors write it, with only a window of the file in memory. One
 * thread reads and finds the lines; another thread writes the lines that are older than the window.
 *
 * A line that is older than the written lines, or that needs the decoder, ends the attempt; the caller then discards
 * the output.
 */
#ifndef NLSORT_FLOW_H
#define NLSORT_FLOW_H

#include "gather.h"

typedef struct flow_settings {
    int fd; /* of a regular file */
    nl_format format;
    nl_fraction fraction;
    size_t memory;
    gather_sink *sink; /* called in the calling thread */
    void *user;
} flow_settings;

/* Returns whether lines from several places of the file are in order. */
bool flow_is_likely(const flow_settings *settings);

/* Passes all lines, without places, to sink in a stable order by time. Returns false if it gave up. */
bool flow_run(const flow_settings *settings);

#endif
