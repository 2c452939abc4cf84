/*
 * Loads a file into a table. If the input and the output are blocks, moves the records to the table without decoding
 * them.
 *
 * Several threads load a text file. Each thread reads a piece and finds its lines while they are in the processor's
 * cache. Then one thread processes, in order, the lines that need the decoder or that span two pieces. input.h reads
 * the other sources: pipes, compressed files, and files of blocks if the output is text. Only one thread at a time may
 * use a load.
 */
#ifndef NLSORT_LOAD_H
#define NLSORT_LOAD_H

#include "input.h"
#include "table.h"

typedef struct load load;

/*
 * Opens a text file, or a file of blocks if the output is blocks. `path` is a path or URL. If settings->format is
 * unknown, sets it to the format of the first record. Returns NULL if the source is of another kind or cannot be
 * opened; call input_open then, which reports the error.
 */
load *load_open(input_settings *settings, const char *path);

/*
 * Adds lines to the table. Returns true at the end of the file, and false if the table is full. In this case, call
 * load_into again with an empty table.
 */
bool load_into(load *l, table *t);

/* Returns the descriptor of the file, which the load owns. Returns -1 if the lines of the file must be converted. */
int load_descriptor(const load *l);

/*
 * Returns whether the load has read a last line that does not end with a newline, so that its values may be incomplete.
 */
bool load_is_unterminated(const load *l);

void load_close(load *l);

#endif
