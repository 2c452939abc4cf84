/*
 * Of lines in the order of their times, those that are identical once: lines of equal times are put in the order of
 * their text. Such lines are held together in memory.
 */
#ifndef NLSORT_UNIQUE_H
#define NLSORT_UNIQUE_H

#include "gather.h"

typedef struct unique unique;

/* sink: takes what is left, without places. */
unique *unique_new(gather_sink *sink, void *user);

/* Takes lines with their places, as a gather_sink does. */
void unique_put(unique *u, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/* Hands on what is held, after the last line. */
void unique_end(unique *u);
void unique_free(unique *u);

#endif
