/*
 * Sorts endless input within a time window. nlsort writes a record when a record arrives whose time is later by the
 * length of the window, or when no record arrives for that duration. A record is late if its place in the output has
 * already passed. nlsort writes late records at once, to the output or to a separate file, and reports their number.
 *
 * If a record is later than this host's clock plus the window, its time is not used as the newest time, so that a wrong
 * clock cannot empty the window. Not thread-safe.
 */
#ifndef NLSORT_LIVE_H
#define NLSORT_LIVE_H

#include "input.h"

typedef struct live {
    input_settings *settings;
    int64_t window_ns;
    size_t memory; /* maximum memory in bytes; when it is used up, the oldest records are written early */
    bool follow;   /* wait at the end of files */
    char **files;
    size_t file_count;
    const char *output; /* NULL: standard output */
    const char *late;   /* file for late records; NULL: the output */
} live;

/* Runs until all inputs end, or until SIGINT or SIGTERM. Reports late records and returns false if there were any. */
bool live_run(const live *what);

#endif
