/*
 * Removes repeated lines from lines in the order of their times. Lines with equal times form a group, which is sorted
 * by text. A group that is larger than its memory is sorted in runs on disk.
 */
#ifndef NLSORT_UNIQUE_H
#define NLSORT_UNIQUE_H

#include "gather.h"

typedef struct unique unique;

/*
 * memory: maximum bytes of a group. directory: for temporary files; not copied. sink: gets the remaining lines, without
 * their places.
 */
unique *unique_new(size_t memory, const char *directory, gather_sink *sink, void *user);

/* Adds lines with their places. A gather_sink. */
void unique_put(unique *u, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/* Passes on the last group. */
void unique_end(unique *u);
void unique_free(unique *u);

#endif
