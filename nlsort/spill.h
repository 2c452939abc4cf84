/*
 * Stores sorted runs of items on disk. All runs are in one unnamed file, which the kernel deletes when the program
 * ends. Errors end the program. Only one thread at a time may use a spill.
 */
#ifndef NLSORT_SPILL_H
#define NLSORT_SPILL_H

#include "merge.h"

#include <stdint.h>

typedef struct spill spill;

/* Creates a spill without runs. The first run creates the file in `directory`. */
spill *spill_new(const char *directory);
void spill_free(spill *s);

/* To write a run, call spill_begin, then spill_put for each item in order, and then spill_end. */
void spill_begin(spill *s);
void spill_put(spill *s, const item *it);
void spill_end(spill *s);

size_t spill_run_count(const spill *s);

/* Returns run i as an input, whose buffer has buffer_size bytes. Close the input before spill_free. */
merge_input *spill_open_run(spill *s, size_t i, size_t buffer_size);

#endif
