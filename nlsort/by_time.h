/*
 * Sorts logs by time in memory or with runs on disk. If the input and the output have the same format and there is no
 * filter, the module does not decode the records of blocks. In this case, the module reads only the time of each line
 * of text.
 */
#ifndef NLSORT_BY_TIME_H
#define NLSORT_BY_TIME_H

#include "gather.h"
#include "input.h"

typedef struct by_time {
    input_settings *settings;
    bool reverse;
    size_t memory;         /* maximum memory in bytes */
    const char *directory; /* directory for runs */
    char **files;
    size_t file_count;
    void (*begin)(void *user);     /* called before the first call of `put`, when settings->format is known */
    gather_sink *put;              /* called in any thread, but never by two threads at the same time */
    bool with_places;              /* `put` needs the positions of the lines */
    void (*take_back)(void *user); /* discards the lines that `put` has received, before `begin` is called again; NULL:
                                      the lines cannot be discarded */
    void *user;
} by_time;

typedef enum by_time_result {
    BY_TIME_DONE,
    BY_TIME_DISORDERED, /* a log was not sorted, which by_time.c has reported */
    BY_TIME_DAMAGED,    /* a file was truncated during the sort; the caller must discard the output */
} by_time_result;

by_time_result by_time_sort(const by_time *what);

/* by_time_merge merges sorted logs. by_time_can_merge returns whether the memory is sufficient to merge them. */
bool by_time_can_merge(const by_time *what);
by_time_result by_time_merge(const by_time *what);

/*
 * Returns whether each log that can be opened is sorted. Reports the first record that is out of order. Returns false
 * also if a file was truncated during the check. Does not call `put`.
 */
bool by_time_check(const by_time *what);

#endif
