/*
 * Sorting text by time, which is what nlsort is mostly asked for: without reading more of each line than its time, in
 * memory or by way of runs on disk.
 */
#ifndef NLSORT_BY_TIME_H
#define NLSORT_BY_TIME_H

#include "gather.h"
#include "input.h"

typedef struct by_time {
    input_settings *settings;
    bool reverse;
    size_t memory;
    const char *directory; /* for runs */
    char **files;
    size_t file_count;
    void (*begin)(void *user);     /* called once settings->format is known, before the first lines */
    gather_sink *put;              /* called in any thread, but one at a time */
    void (*take_back)(void *user); /* all that was put is forgotten, begin is called again; NULL: it can't be */
    void *user;
} by_time;

/* False when what was put is not to be kept, which was said: a file was cut meanwhile. */
bool by_time_sort(const by_time *what);

#endif
