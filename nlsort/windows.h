/*
 * Copies the lines of a share (gather.c) from files that are not in memory. Loads one window of the text after the
 * other, and copies the share's lines in each window to their destinations.
 */
#ifndef NLSORT_WINDOWS_H
#define NLSORT_WINDOWS_H

#include "table.h"

/* The lines of a share, grouped by window, with their destinations. Initialize the structure with zeros. */
typedef struct windows {
    struct moved_line *moved;
    size_t capacity; /* allocated bytes */
    size_t *ends;    /* end of each window's lines */
    size_t end_capacity;
    size_t count;
} windows;

/* Bytes of memory for each line, and for the window of each thread. */
enum { WINDOWS_LINE_COST = 16, WINDOWS_COST = 4 << 20 };

/* Assigns the lines of a share to windows. Only one thread at a time may use `w` in this function. */
void windows_distribute(windows *w, const table *t, const nl_scanned_line *lines, size_t count);

/*
 * Copies the lines of a window, each with its newline, to their destinations in `out`. Different threads may copy
 * different windows at the same time.
 */
void windows_copy(const windows *w, const table *t, size_t window, char *out);

void windows_free(windows *w);

#endif
