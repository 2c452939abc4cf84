/*
 * The records that an output has stored, from the first or from a time on, followed by the records that it adds: one
 * file, or numbered files in order. The server's thread only; it writes and reads the files.
 */
#ifndef NETLOGD_PAST_H
#define NETLOGD_PAST_H

#include "output/output.h"

typedef struct past past;

/*
 * Opens the files of an output that holds all records (output_holds_all); the output may be closed before the past.
 * Skips files and blocks that, from the outside, have no records since since_ns: a file is skipped by its modification
 * time, with an hour's margin for clocks that are ahead. past_next therefore also returns some earlier records. Returns
 * NULL after setting the error.
 */
past *past_open(const output *out, int64_t since_ns);
void past_close(past *p); /* NULL is allowed */

/* Returns whether the output's new records will also be in these files. */
bool past_is_of(const past *p, const output *out);

/* Like nl_reader_next of a followed, nonblocking reader: NL_AGAIN if all written records were read. NL_OK with *record
 * NULL: it still searches for the start; call it again. */
nl_status past_next(past *p, const nl_record **record);

#endif
