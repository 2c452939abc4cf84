/*
 * The records that an output has stored, from the first or from a time on, and those that are added to it: one file, or
 * numbered files one after the other. netlogd's own thread writes and reads the files. The server's thread only.
 */
#ifndef NETLOGD_PAST_H
#define NETLOGD_PAST_H

#include "output/output.h"

typedef struct past past;

/*
 * Opens the files of an output that holds all records (output_holds_all); the output may be closed before the past.
 * Files and blocks without records from since_ns on are skipped if that is visible from outside: a file by its
 * modification time, with an hour for clocks that are ahead. So earlier records come, too. NULL after setting the
 * error.
 */
past *past_open(const output *out, int64_t since_ns);
void past_close(past *p); /* NULL is allowed */

/* Whether the output's new records will be in these files too. */
bool past_is_of(const past *p, const output *out);

/* Like nl_reader_next of a followed, nonblocking reader: NL_AGAIN if all written records were read. NL_OK with *record
 * NULL: it still searches for the begin; call it again. */
nl_status past_next(past *p, const nl_record **record);

#endif
