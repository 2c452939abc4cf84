/*
 * Removes repeated lines from lines that are sorted by time. Lines with equal times form a group; the module sorts each
 * group by text. If a group does not fit into memory, the module uses runs on disk. Only one thread at a time may use a
 * unique.
 */
#ifndef NLSORT_UNIQUE_H
#define NLSORT_UNIQUE_H

#include "gather.h"

typedef struct unique unique;

/*
 * Creates a unique without lines. `memory` is the maximum memory for a group in bytes. `directory` is the directory for
 * temporary files; the caller keeps the string. `sink` gets the remaining lines, without their positions.
 */
unique *unique_new(size_t memory, const char *directory, gather_sink *sink, void *user);

/* Adds lines with their positions. The parameters are those of a gather_sink. */
void unique_put(unique *u, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/* Passes the last group to the sink. */
void unique_end(unique *u);
void unique_free(unique *u);

#endif
