/*
 * Reads the records that an output has stored, from the first record or from a time, and then the records that the
 * output adds. The records are in one file, or in numbered files. Only the server's thread may call these functions;
 * the same thread writes the files.
 */
#ifndef NETLOGD_PAST_H
#define NETLOGD_PAST_H

#include "output/output.h"

typedef struct past past;

/*
 * Opens the files of an output that has all records (output_holds_all). The output may be closed before past_close is
 * called. Skips files whose modification time is more than an hour before since_ns. The hour is a margin for clients
 * whose clocks are ahead. Also skips blocks whose headers show that they have no records at or after since_ns.
 * past_next may also return some records before since_ns. If the files have value indexes, skips parts that have no
 * record that matches `where`, which must stay valid. On failure, sets the error and returns NULL.
 */
past *past_open(const output *out, int64_t since_ns, const nl_filter *where);
void past_close(past *p); /* NULL is allowed */

/* Returns the number of the file that is being read, or 0 if no file was read or the files have no numbers. */
uint64_t past_get_number(const past *p);

/* Returns whether the output will also write its new records to these files. */
bool past_is_of(const past *p, const output *out);

/*
 * Like nl_reader_next for a followed, nonblocking reader. Returns NL_AGAIN if all written records were read. If
 * past_next returns NL_OK and sets *record to NULL, it is still searching a file for the first record; call past_next
 * again.
 */
nl_status past_next(past *p, const nl_record **record);

#endif
