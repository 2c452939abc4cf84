/*
 * Tables that did not fit into memory: each is written in order to a file without a name, and all are merged at the
 * end. A run is a row of blocks: its header, the times and places of its lines, their text.
 */
#ifndef NLSORT_RUNS_H
#define NLSORT_RUNS_H

#include "gather.h"
#include "table.h"

typedef struct runs runs;

/* The file is made with the first run. memory: bytes that merging may use. Every failure ends the program. */
runs *runs_new(const char *directory, size_t memory);
void runs_free(runs *r);

/* Writes a table's lines as the next run, and clears it. */
void runs_add(runs *r, table *t);

size_t runs_count(const runs *r);

/*
 * Hands all lines to sink in order, those of the table, which come last, too. Of lines of equal
 * times those of the earlier run come first. What has been read of the runs is given back to the disk.
 */
void runs_merge(runs *r, table *t, gather_sink *sink, void *user);

#endif
