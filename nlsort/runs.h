/*
 * Stores sorted tables on disk, and merges them. Each table becomes a run in an unnamed file. A run is a sequence of
 * blocks. A block consists of a header, the times and positions of its lines, and the text of the lines. Errors end the
 * program. Only one thread at a time may use the runs.
 */
#ifndef NLSORT_RUNS_H
#define NLSORT_RUNS_H

#include "gather.h"
#include "table.h"

typedef struct runs runs;

/*
 * Creates an object without runs. `memory` is the memory for the merge in bytes. The first run creates the file in
 * `directory`.
 */
runs *runs_new(const char *directory, size_t memory);
void runs_free(runs *r);

/* Writes the lines of a table as the next run, and clears the table. */
void runs_add(runs *r, table *t);

size_t runs_count(const runs *r);

/*
 * Passes the lines of all runs and of the table to `sink` in order. If times are equal, the table's lines come last.
 * Frees the disk space of the parts of runs that have been read.
 */
void runs_merge(runs *r, table *t, gather_sink *sink, void *user);

#endif
