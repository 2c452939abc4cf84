/* A log to be merged or checked. It should be sorted by time. Only a part is in memory. Not thread-safe. */
#ifndef NLSORT_ORDERED_H
#define NLSORT_ORDERED_H

#include "cursors.h"
#include "input.h"

typedef struct ordered_log ordered_log;

/* Receives the number of the first record that is earlier than its predecessor. */
typedef void ordered_disorder(void *user, const char *path, uint64_t record, nl_string line);

/* Opens a log. `memory` is the maximum memory in bytes. Returns NULL after reporting an error. */
ordered_log *ordered_open(input_settings *settings, const char *path, size_t memory, bool reverse,
                          ordered_disorder *disorder, void *user);
void ordered_close(ordered_log *log);

/* Returns a cursor on the lines. Call its `more` function first. */
cursor *ordered_cursor(ordered_log *log, size_t rank);

#endif
