/*
 * The records that nlstat --connections derives for pictures, from the slices of the results (connection_causes.h):
 *
 * - TcpRate: at the end of each slice, the bytes per second that the peer acknowledged in the slice.
 * - TcpRetransmit: at the end of each slice with retransmissions, the number of retransmitted segments.
 * - TcpLimit.CAUSE, such as TcpLimit.SendBuffer: a time range in which the same cause had the largest share. DUR is
 *   the length of the range in seconds, and the record's time is its end.
 *
 * Caller: connections.c. Not thread-safe.
 */
#ifndef NLSTAT_CONNECTION_RECORDS_H
#define NLSTAT_CONNECTION_RECORDS_H

#include "connections/connection_causes.h"

/*
 * Writes the records of all results (connection_result *) to a file, in the format that the suffix of the file's name
 * implies, such as .nlb, or in ULM. The records of one connection are in order of time. Returns false and sets the
 * error on failure.
 */
bool connection_records_write(const GPtrArray *results, int64_t slice_ns, const char *file);

#endif
