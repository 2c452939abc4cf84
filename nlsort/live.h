/*
 * Sorts endless input within a time window. nlsort writes a record when a record newer by the length of the window has
 * arrived, or when no record has arrived for that time. A record is late if its place in the output has passed. nlsort
 * writes late records at once, to the output or a separate file, and reports their number.
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
    size_t memory; /* maximum bytes; when they are used up, the oldest records are written early */
    bool follow;   /* wait at the end of files */
    char **files;
    size_t file_count;
    const char *output; /* NULL: standard output */
    const char *late;   /* file for late records; NULL: the output */
} live;

/*
 * Runs until all inputs end, or until SIGINT or SIGTERM. Returns false if there were late records, after reporting
 * them.
 */
bool live_run(const live *what);

#endif
