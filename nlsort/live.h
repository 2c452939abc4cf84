/*
 * Sorts endless input within a window. nlsort writes a record when it is older than the newest record by the window, or
 * when no record arrives for that time. It writes a late record, whose place in the output has passed, at once (or to a
 * separate file), and counts and reports it.
 *
 * Records later than this host's clock plus the window do not count as the newest, so that a wrong clock cannot empty
 * the window. One thread.
 */
#ifndef NLSORT_LIVE_H
#define NLSORT_LIVE_H

#include "input.h"

typedef struct live {
    input_settings *settings;
    int64_t window_ns;
    size_t memory; /* bytes; beyond them the oldest records are written early */
    bool follow;   /* wait at the end of files */
    char **files;
    size_t file_count;
    const char *output; /* NULL: standard output */
    const char *late;   /* file for late records; NULL: the output */
} live;

/* Runs until all inputs end, or until SIGINT or SIGTERM. Returns false after reporting late records. */
bool live_run(const live *what);

#endif
