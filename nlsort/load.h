/*
 * A file of text into a table, by several threads: each reads a piece of it, and finds the lines in it while they are
 * in the processor's cache. Lines that are not plain, and those that lie in two pieces, are looked at afterwards, one
 * by one in their order, by a decoder where need be.
 *
 * What is no file of text (a pipe, a compressed file, blocks) is not for this: input.h reads it.
 */
#ifndef NLSORT_LOAD_H
#define NLSORT_LOAD_H

#include "input.h"
#include "table.h"

typedef struct load load;

/*
 * Begins with the file that a path (or URL) names. NULL when it is not for this, or can't be opened: then input_open
 * says why. settings->format is set by the first record, when it was not.
 */
load *load_open(input_settings *settings, const char *path);

/*
 * Adds as much to the table as it takes. True at the end of the file; false when the table is full, to be called again
 * when it has been cleared.
 */
bool load_into(load *l, table *t);

/* The file itself, as long as its lines are written as they are; otherwise -1. */
int load_descriptor(const load *l);

void load_close(load *l);

#endif
