/*
 * Ordering a stream that has no end, within a window: a record is held until it is older than the newest one by that
 * much, or nothing has come for so long, and then written. What comes after something later than itself was written is
 * late: it is written at once (or to a file of its own), counted, and told of.
 *
 * A clock that is ahead must not empty the window: records that are later than this machine's clock and the window
 * allow do not count as the newest.
 */
#ifndef NLSORT_LIVE_H
#define NLSORT_LIVE_H

#include "input.h"

typedef struct live {
    input_settings *settings;
    int64_t window_ns;
    size_t memory; /* bytes that may be held: beyond that the oldest go before their time */
    bool follow;   /* wait at the end of files */
    char **files;
    size_t file_count;
    const char *output; /* NULL: standard output */
    const char *late;   /* a file for what is late; NULL: with the rest */
} live;

/* Until all inputs end, or SIGINT or SIGTERM comes. False when something was late, which was said. */
bool live_run(const live *what);

#endif
