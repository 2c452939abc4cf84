/*
 * Lists of lines, each in order, merged into one: runs, what is in memory, logs that are in order already.
 */
#ifndef NLSORT_CURSORS_H
#define NLSORT_CURSORS_H

#include "gather.h"
#include "record/line_scanner.h"

/* A list that is being gone through, some of it at a time: lines[next..count) are there. */
typedef struct cursor {
    size_t rank; /* of lines of equal times the one of the lowest comes first */
    const nl_scanned_line *lines;
    size_t count, next;
    const char *text;               /* in which the lines have their places */
    bool (*more)(struct cursor *c); /* has the next lines there, at least one; false at the end */
} cursor;

/* The size of a merge beside what the cursors hold. */
extern const size_t cursors_merge_size;

/* Hands all lines to sink, with their places, in another thread. Of each cursor there are some lines. */
void cursors_merge(cursor **cursors, size_t count, gather_sink *sink, void *user);

#endif
