/*
 * The merged log: every record of every client, in the order in which they came, in one file or in numbered ones, as
 * text or as blocks (options.h has what can be said).
 *
 * Records are collected and written many at a time. When writing fails (a full disk) they stay in memory, which grows
 * by no more than what one read from a client brought: the server reads nothing more until output_flush has succeeded
 * again.
 *
 * What is written is only taken for good once that is noted in the journal (journal.h), at a moment when no block is
 * read in part: that is what output_flush is called at.
 */
#ifndef NETLOGD_OUTPUT_H
#define NETLOGD_OUTPUT_H

#include <netlogger.h>

typedef struct output output;

/*
 * Opens what text names, repairs a damaged end, and takes back what a netlogd that was killed wrote without having
 * acknowledged it. NULL with the reason in failure_text().
 */
output *output_open(const char *text);

/* Says in netlogd's own log what was repaired. log may be NULL. */
void output_report_repairs(output *out, nl_log *log);

/* What is remembered of the streams of clients, from before too: for their decoders. The output's own. */
nl_streams *output_streams(output *out);

/* Whether blocks are best taken as a whole. */
bool output_wants_blocks(const output *out);

/* Whether the record's raw text is a plain line of ULM, which is added as it came. */
bool output_takes_raw(const nl_record *record);

/* Adds a record, as the bytes that came in where those are a plain line of the format. */
void output_put(output *out, const nl_record *record);

/* Says that a block came, before those of its records that follow are put; one that was taken is added. */
void output_put_block(output *out, const nl_block_view *block);

/* Writes what was collected. NL_FAILED: it stays, and output_is_blocked until a later flush succeeds. */
nl_status output_flush(output *out);

/* As output_flush, and whatever the fsync option says of when, it is settled then. */
nl_status output_settle(output *out);

/* Whether all that was put is in the file, settled or not. */
bool output_is_empty(const output *out);

bool output_is_blocked(const output *out);

/* Whether so much was put since the latest flush that it is time for one, whoever else wants something. */
bool output_is_due(const output *out);

/* Whether all that was flushed may be acknowledged. If not: within how many milliseconds output_settle is wanted. */
bool output_is_settled(const output *out);
int output_settle_ms(const output *out);

/* One file: opens its name anew; numbered ones: begins another. On NL_FAILED the old one stays in use. */
nl_status output_reopen(output *out);

/* Settles and closes. */
nl_status output_close(output *out);

#endif
