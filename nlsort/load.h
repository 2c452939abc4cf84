/*
 * Loads a file into a table. If the output is blocks, moves records from blocks to the table without decoding them.
 *
 * Loads a text file into a table with several threads. Each thread reads a piece and finds its lines while they are in
 * the processor's cache. Then one thread handles, in order, the lines that need the decoder or that span two pieces.
 * input.h reads the other sources: pipes, compressed files, and files of blocks if the output is text.
 */
#ifndef NLSORT_LOAD_H
#define NLSORT_LOAD_H

#include "input.h"
#include "table.h"

typedef struct load load;

/*
 * Opens a text file, or a file of blocks if the output is blocks, by `path` or URL. Returns NULL if the source is of
 * another kind or cannot be opened. input_open then reports the error. The first record sets settings->format if it is
 * unknown.
 */
load *load_open(input_settings *settings, const char *path);

/*
 * Adds lines to the table. Returns true at the end of the file, and false if the table is full. In this case, call
 * load_into again with an empty table.
 */
bool load_into(load *l, table *t);

/* Returns the descriptor of the file, or -1 if its lines must be converted. */
int load_descriptor(const load *l);

/* Returns whether the last line was read and does not end with a newline. Its values may then be incomplete. */
bool load_is_unterminated(const load *l);

void load_close(load *l);

#endif
