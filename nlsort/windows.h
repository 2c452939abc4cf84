/*
 * Lines fetched from files that a table refers to and are not held: a window of the text after the other is mapped,
 * and of all the lines that are wanted those that lie in it are copied to where they belong.
 */
#ifndef NLSORT_WINDOWS_H
#define NLSORT_WINDOWS_H

#include "table.h"

/* The lines of a share by the windows in which they lie, and where each goes; begins as {0}. */
typedef struct windows {
    struct moved_line *moved;
    size_t capacity; /* bytes of these */
    size_t *ends;    /* of each window's lines among these */
    size_t end_capacity;
    size_t count;
} windows;

/* Bytes that fetching takes: a line's share, and what a thread has mapped. */
enum { WINDOWS_LINE_COST = 16, WINDOWS_COST = 4 << 20 };

/* Finds out which of the lines lie where. One thread at a time. */
void windows_distribute(windows *w, const table *t, const nl_scanned_line *lines, size_t count);

/*
 * Copies the lines of a window, 0 to count - 1, each with a newline, to where they belong behind out. Several threads
 * may, of other windows each.
 */
void windows_copy(const windows *w, const table *t, size_t window, char *out);

void windows_free(windows *w);

#endif
