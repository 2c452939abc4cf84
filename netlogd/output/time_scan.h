/* Finds the times of the records in a part of a file, for a time index that is created later. Has no state. */
#ifndef NETLOGD_OUTPUT_TIME_SCAN_H
#define NETLOGD_OUTPUT_TIME_SCAN_H

#include "reader/time_index.h"

#include <netlogger.h>

/*
 * Reads a file from the offset `from`, at which a record or a compressed frame must begin. Stops at the first end of a
 * record or frame at `minimum` or later. Does not read beyond `limit`. *piece describes the bytes that were read. Its
 * end is at most limit, and its times are unknown if a part could not be read as records. Returns false if no record or
 * frame ends in this range, or if the file cannot be read.
 */
bool time_scan(int fd, uint64_t from, uint64_t minimum, uint64_t limit, nl_time_piece *piece);

/* Like time_scan, but decodes the records and passes them to `take`. */
bool time_scan_records(int fd, uint64_t from, uint64_t minimum, uint64_t limit, nl_time_piece *piece,
                       void (*take)(void *user, const nl_record *record), void *user);

#endif
