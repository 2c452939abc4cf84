/*
 * Reads a log for a merge or a check, and reports whether it is sorted by time. Only a part of the log is in memory.
 * Only one thread at a time may use an ordered_log.
 */
#ifndef NLSORT_ORDERED_H
#define NLSORT_ORDERED_H

#include "cursors.h"
#include "input.h"

typedef struct ordered_log ordered_log;

/*
 * Receives the number and the line of the first record that is earlier than the record before it. Called at most once
 * for each log.
 */
typedef void ordered_disorder(void *user, const char *path, uint64_t record, nl_string line);

/* Opens a log. `memory` is the maximum memory in bytes. On failure, reports the error and returns NULL. */
ordered_log *ordered_open(input_settings *settings, const char *path, size_t memory, bool reverse,
                          ordered_disorder *disorder, void *user);
void ordered_close(ordered_log *log);

/* Returns a cursor on the lines of the log. Call the cursor's function `more` first. `rank` is cursor.rank. */
cursor *ordered_cursor(ordered_log *log, size_t rank);

#endif
