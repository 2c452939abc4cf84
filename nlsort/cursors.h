/*
 * Merges sorted lists of lines: runs, lines in memory, and sorted logs.
 */
#ifndef NLSORT_CURSORS_H
#define NLSORT_CURSORS_H

#include "gather.h"
#include "record/line_scanner.h"

/* A sorted list of lines. lines[next..count) are in memory and not merged yet. */
typedef struct cursor {
    size_t rank; /* if lines have equal times, the line of the cursor with the lowest rank comes first */
    const nl_scanned_line *lines;
    size_t count, next;
    const char *text;               /* the text that contains the lines */
    bool (*more)(struct cursor *c); /* loads at least one more line; returns false at the end */
} cursor;

/* Bytes of memory that a merge needs, not counting the cursors. */
extern const size_t cursors_merge_size;

/*
 * Merges the cursors, and passes all lines with their positions to `sink`, which is called in another thread. Each
 * cursor must have lines in memory.
 */
void cursors_merge(cursor **cursors, size_t count, gather_sink *sink, void *user);

#endif
