/*
 * Copies lines from files that are not in memory: maps the windows of the text one after another, and copies the lines
 * of the share in each window to their places.
 */
#ifndef NLSORT_WINDOWS_H
#define NLSORT_WINDOWS_H

#include "table.h"

/* The lines of a share by windows, with their destinations. Starts as zeros. */
typedef struct windows {
    struct moved_line *moved;
    size_t capacity; /* allocated bytes */
    size_t *ends;    /* the end of each window's lines */
    size_t end_capacity;
    size_t count;
} windows;

/* Memory in bytes: for each line, and for the mappings of a thread. */
enum { WINDOWS_LINE_COST = 16, WINDOWS_COST = 4 << 20 };

/* Assigns lines to windows. One thread at a time. */
void windows_distribute(windows *w, const table *t, const nl_scanned_line *lines, size_t count);

/*
 * Copies the lines of a window, each with a newline, to their places in out. Threads may copy different windows at
 * once.
 */
void windows_copy(const windows *w, const table *t, size_t window, char *out);

void windows_free(windows *w);

#endif
