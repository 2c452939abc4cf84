/*
 * Sorted runs on disk, for what does not fit into memory. All runs lie one behind the other in one file without a name,
 * so that nothing is left behind whatever ends the program, and any number of runs takes one descriptor.
 */
#ifndef NLSORT_SPILL_H
#define NLSORT_SPILL_H

#include "merge.h"

#include <stdint.h>

typedef struct spill spill;

/* A file in that directory is made at the first run. Every failure ends the program with a message. */
spill *spill_new(const char *directory);
void spill_free(spill *s);

/* Writes a run: begin, any number of items in order, end. */
void spill_begin(spill *s);
void spill_put(spill *s, const item *it);
void spill_end(spill *s);

size_t spill_run_count(const spill *s);

/* A stream over run i that reads buffer_size bytes at a time. It must be closed before the spill is freed. */
stream *spill_open_run(spill *s, size_t i, size_t buffer_size);

#endif
