/*
 * Sorts endless input within a time window. nlsort writes a record when another record arrives that is later by the
 * length of the window, or when no record has arrived for this time. A record is late if nlsort has already written a
 * later record. nlsort writes late records immediately, to the output or to a separate file, and reports their number.
 *
 * If a record is later than this host's clock plus the window, nlsort uses that limit instead of the record's time.
 * Therefore, a wrong clock of a sender cannot empty the window. Only one thread at a time may call live_run.
 */
#ifndef NLSORT_LIVE_H
#define NLSORT_LIVE_H

#include "input.h"

typedef struct live {
    input_settings *settings;
    int64_t window_ns;
    size_t memory; /* maximum memory for records in bytes; if the records need more, the oldest records are written
                    * early */
    bool follow;   /* wait at the end of files */
    char **files;
    size_t file_count;
    const char *output; /* NULL: standard output */
    const char *late;   /* file for late records; NULL: the output */
} live;

/* Runs until all inputs end, or until SIGINT or SIGTERM. Reports late records. Returns false if records were late. */
bool live_run(const live *what);

#endif
