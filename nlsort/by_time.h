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
    bool with_places;              /* put wants them */
    void (*take_back)(void *user); /* all that was put is forgotten, begin is called again; NULL: it can't be */
    void *user;
} by_time;

typedef enum by_time_result {
    BY_TIME_DONE,
    BY_TIME_DISORDERED, /* what was said to be in order was not: that was said */
    BY_TIME_DAMAGED,    /* a file was cut meanwhile, which was said: what was put is not to be kept */
} by_time_result;

by_time_result by_time_sort(const by_time *what);

/* Merges logs that are in order already, if they are not too many for the memory. */
bool by_time_can_merge(const by_time *what);
by_time_result by_time_merge(const by_time *what);

/* Whether each log is in order. Says where one is not; nothing is put. */
bool by_time_check(const by_time *what);

#endif
