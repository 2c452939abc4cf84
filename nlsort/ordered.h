/*
 * A log that is said to be in order by time, to be merged with others or to be checked: some of it at a time.
 */
#ifndef NLSORT_ORDERED_H
#define NLSORT_ORDERED_H

#include "cursors.h"
#include "input.h"

typedef struct ordered_log ordered_log;

/* Is told of the first record that comes before the one before it, by its number. */
typedef void ordered_disorder(void *user, const char *path, uint64_t record, nl_string line);

/* memory: bytes that may be used. NULL when the log can't be opened, which was said. */
ordered_log *ordered_open(input_settings *settings, const char *path, size_t memory, bool reverse,
                          ordered_disorder *disorder, void *user);
void ordered_close(ordered_log *log);

/* Its lines; there are none before more is called. */
cursor *ordered_cursor(ordered_log *log, size_t rank);

#endif
