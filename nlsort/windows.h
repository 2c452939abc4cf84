/*
 * Lines fetched from files that a table refers to and are not held: a window of the text after the other is mapped,
 * and of all the lines that are wanted those that lie in it are copied to where they belong.
 */
#ifndef NLSORT_WINDOWS_H
#define NLSORT_WINDOWS_H

#include "table.h"

/* What one thread needs for that; begins as {0}. */
typedef struct windows {
    struct moved_line *moved;
    size_t capacity; /* bytes of these */
    size_t *counts;
    size_t count_capacity;
} windows;

/* Bytes that fetching takes: a line's share, and besides. */
enum { WINDOWS_LINE_COST = 16, WINDOWS_COST = 4 << 20 };

/*
 * Copies lines, each with a newline, to out in their order. The windows are gone through from the last to the first
 * where backwards is said: threads that begin together should not forget what the other one looks at.
 */
void windows_copy(windows *w, const table *t, const nl_scanned_line *lines, size_t count, bool backwards, char *out);

void windows_free(windows *w);

#endif
