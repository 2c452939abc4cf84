/*
 * One output: records that it is meant for, in the order in which they came, in one file or in numbered ones, as text
 * or as blocks (options.h has what can be said); and, when it is of a kind that delivers (kind.h), from there to
 * wherever they are to go.
 *
 * Records are collected and written many at a time. When writing fails (a full disk) they stay in memory, which grows
 * by no more than what one read from a client brought: the server reads nothing more until output_flush has succeeded
 * again.
 *
 * What is written is only taken for good once that is noted in the journal (journal.h), at a moment when no block is
 * read in part: that is what output_flush is called at. The journal is the output's own, and so is what is remembered
 * of streams: after a kill one output may have taken what another has not, and of what then comes again each takes what
 * it had not. outputs.h says how they are kept together.
 */
#ifndef NETLOGD_OUTPUT_H
#define NETLOGD_OUTPUT_H

#include "delivery.h"
#include "options.h"
#include "reader/decoder.h"

#include <netlogger.h>

typedef struct output output;

/* What the journal said when it was opened. */
typedef enum output_past {
    OUTPUT_PAST_NONE,  /* there was none */
    OUTPUT_PAST_ENDED, /* netlogd had ended in good order: nobody sends again what this output was to have */
    OUTPUT_PAST_KILLED
} output_past;

typedef struct output_counts {
    uint64_t records;   /* put */
    uint64_t unwritten; /* too large for the format */
    uint64_t undecided; /* kept, because the expression would have cost too much to decide */
    uint64_t bytes;     /* written, as encoded */
    uint64_t encoded;   /* taken from the encoder, before compression */
} output_counts;

/*
 * Opens what options name, repairs a damaged end, and takes back what a netlogd that was killed wrote without having
 * acknowledged it. NULL with the reason in nl_error_message(). The options are taken over, those of a failure too.
 */
output *output_open(output_options *options);

/* Begins to deliver, in a thread, which says in netlogd's own log what comes of it: not before the last fork. log may
 * be NULL. Files: nothing. */
void output_start(output *out, nl_log *log);

/* Says in netlogd's own log what was repaired. log may be NULL. */
void output_report_repairs(output *out, nl_log *log);

const output_options *output_get_options(const output *out);
const output_counts *output_get_counts(const output *out);

/* How many bytes all that was put so far has, as encoded but not compressed. */
uint64_t output_encoded(const output *out);

/* What is remembered of the streams of clients, from before too. The output's own. */
nl_streams *output_streams(output *out);
output_past output_get_past(const output *out);

/* Notes all streams in the journal, after they were set from outside; and that it has not ended. */
nl_status output_note_streams(output *out);

/* Sees to it that the journal is there, before any other output notes that it has taken what this one was to have. */
nl_status output_begin(output *out);

/* The stream of those records that the output itself numbers; NULL: it does not. */
const unsigned char *output_own_stream(const output *out);

/* Whether blocks are best taken as a whole. */
bool output_wants_blocks(const output *out);

/* Whether the record's raw text is a plain line of that text format, which is added as it came. */
bool output_takes_raw(const nl_record *record, nl_format format);

/* Appends the line of a record in a text format to line, newline included: the raw text where output_takes_raw. */
void output_put_line(const nl_record *record, nl_format format, nl_buffer *line);

/*
 * Adds a record that is meant, as the bytes that came in where those are a plain line of the format. sequence is its
 * number when it is of the block that output_begin_block was called with last, else NULL.
 */
bool output_put(output *out, const nl_record *record, const uint64_t *sequence);

/*
 * Notes the numbers of a block, before output_put_block or, for each of its records, output_put is called. Returns
 * whether the output takes the block as it is; otherwise it has had a part of it, or gives the records numbers.
 */
bool output_begin_block(output *out, const nl_block_view *block);

/* Adds the block that output_begin_block was called with, for an output that takes it as it is. */
bool output_put_block(output *out, const nl_block_view *block);

/* Writes what was collected. NL_FAILED: it stays, and output_is_blocked until a later flush succeeds. */
nl_status output_flush(output *out);

/* As output_flush, and whatever the fsync option says of when, it is settled then. */
nl_status output_settle(output *out);

/*
 * Whether a numbered file has the size at which another one is begun, but more in it than the journal tells of: it is
 * to be settled as soon as no block is read in part, and does not grow then. The two that put return it when they have
 * written something.
 */
bool output_is_full(const output *out);

/* Whether all that was put is in the file, settled or not. */
bool output_is_empty(const output *out);

bool output_is_blocked(const output *out);

/* Whether so much was put since the latest flush that it is time for one, whoever else wants something. */
bool output_is_due(const output *out);

/* Whether all that was flushed may be acknowledged. If not: within how many milliseconds output_settle is wanted. */
bool output_is_settled(const output *out);
int output_settle_ms(const output *out);

/* Whether it is time to seal what was written: output_settle does. */
bool output_is_seal_due(const output *out);

/* What is on its way; false: it is of a kind that does not deliver. */
bool output_delivers(output *out, delivery_state *state);

/* Whether it has all records, in files that can be read while they are written. */
bool output_holds_all(const output *out);

/* One file: opens its name anew; numbered ones: begins another. On NL_FAILED the old one stays in use. */
nl_status output_reopen(output *out);

/*
 * Other options for the same target, taken over. What was put before is settled as the old ones say. On NL_FAILED these
 * stay in use, and the new ones are freed.
 */
nl_status output_change(output *out, output_options *options);

/* Settles and closes. */
nl_status output_close(output *out);

/* The same, but the journal does not say that it ended in good order: there is what others have, and may come yet. */
nl_status output_close_behind(output *out);

/* Lets it go as it is: it was opened in vain. */
void output_abandon(output *out);

#endif
