/*
 * What an output has, from the first record on or from a time, and what is added to it: one file, or numbered ones, one
 * after the other. It is read within netlogd, whose thread writes it too. One thread.
 */
#ifndef NETLOGD_PAST_H
#define NETLOGD_PAST_H

#include "output/output.h"

typedef struct past past;

/*
 * Of an output that holds all records (output_holds_all), which may be closed meanwhile. Files and blocks that have
 * nothing from since_ns on are passed over, as far as can be told from the outside: of files from when they were
 * written last, an hour being left for clocks that are ahead; so that records from before come, too. NULL with the
 * reason in nl_error_message().
 */
past *past_open(const output *out, int64_t since_ns);
void past_close(past *p); /* NULL is allowed */

/* Whether it is that output's, and what comes from now on will be in it too. */
bool past_is_of(const past *p, const output *out);

/* As nl_reader_next of a followed, nonblocking reader: NL_AGAIN when all that was written has been read. NL_OK with no
 * record, NULL: it looks for where to begin, which is to be gone on with. Why it failed is in nl_error_message(). */
nl_status past_next(past *p, const nl_record **record);

#endif
