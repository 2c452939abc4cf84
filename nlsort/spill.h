/*
 * Sorted runs of items on disk, all in one unnamed file, which uses one descriptor and disappears with the program.
 * Errors end the program. One thread.
 */
#ifndef NLSORT_SPILL_H
#define NLSORT_SPILL_H

#include "merge.h"

#include <stdint.h>

typedef struct spill spill;

/* The first run creates the file in directory. */
spill *spill_new(const char *directory);
void spill_free(spill *s);

/* Writes a run: begin, any number of items in order, end. */
void spill_begin(spill *s);
void spill_put(spill *s, const item *it);
void spill_end(spill *s);

size_t spill_run_count(const spill *s);

/* Returns a stream of run i with a buffer of buffer_size bytes. Close it before spill_free. */
stream *spill_open_run(spill *s, size_t i, size_t buffer_size);

#endif
