/*
 * A file of text that is nearly in order already, as collectors write it, sorted while it passes: one thread reads some
 * of it and finds the lines, another writes those that nothing earlier is expected behind. Nothing is held but a window
 * of the file.
 *
 * That nothing earlier comes is only known at the end. Where something does, or a line is met that a decoder is to
 * read, this gives up, and what was written is to be taken back.
 */
#ifndef NLSORT_FLOW_H
#define NLSORT_FLOW_H

#include "gather.h"

typedef struct flow_settings {
    int fd; /* of a plain file */
    nl_format format;
    nl_fraction fraction;
    size_t memory;
    gather_sink *sink; /* called in the calling thread */
    void *user;
} flow_settings;

/* Whether the file looks as if it were so: by lines from some places of it. */
bool flow_is_likely(const flow_settings *settings);

/* Hands all lines to sink in the order of their times, stable, without their places. False when it gave up. */
bool flow_run(const flow_settings *settings);

#endif
