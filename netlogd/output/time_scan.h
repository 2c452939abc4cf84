/* When the records of a part of a log's file were: for indexes by time that were not written with it. */
#ifndef NETLOGD_OUTPUT_TIME_SCAN_H
#define NETLOGD_OUTPUT_TIME_SCAN_H

#include "reader/time_index.h"

/*
 * Reads the file from a place on where a record, or a compressed frame, begins, until one ends at least or later, but
 * nothing from limit on. *piece is what was read, whose end lies at or before limit; its times are not known when not
 * all of it could be read as records. False when not one record or frame ends there, or the file cannot be read. One
 * thread.
 */
bool time_scan(int fd, uint64_t from, uint64_t least, uint64_t limit, nl_time_piece *piece);

#endif
