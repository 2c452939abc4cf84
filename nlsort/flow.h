/*
 * Sorts a text file that is nearly in order, such as a file that a collector wrote. Only a window of the file is in
 * memory. One thread reads the file and finds the lines. The calling thread writes the lines that are older than the
 * window.
 *
 * flow_run gives up (returns false) after a read error, and at a line that is too long, needs the decoder, or is older
 * than a line already written. The caller must then discard the output.
 */
#ifndef NLSORT_FLOW_H
#define NLSORT_FLOW_H

#include "gather.h"

typedef struct flow_settings {
    int fd; /* descriptor of a regular file */
    nl_format format;
    nl_fraction fraction;
    size_t memory;     /* maximum memory in bytes */
    gather_sink *sink; /* called in the thread that calls flow_run */
    void *user;
} flow_settings;

/* Returns whether the file is probably nearly in order, from lines at several positions. */
bool flow_is_likely(const flow_settings *settings);

/*
 * Sorts the lines by time, and passes them to `sink` without positions. Lines with equal times keep their order.
 * Returns false if the function gives up.
 */
bool flow_run(const flow_settings *settings);

#endif
