/*
 * All outputs of netlogd: a record goes to each whose filter (the option where=) it is true of.
 *
 * Exactly once, for each. Clients are told that a block was taken when every output has settled it: has it in its file
 * and in its journal, or has noted in its journal that nothing of it was meant for it. Between two outputs' journals
 * netlogd may be killed: then one has what the other has not, and the client, who was told nothing, sends it again.
 * Therefore each output remembers streams for itself, all of them, whatever its filter; and the streams that decoders
 * pass over what was met by (outputs_streams) say what all outputs have. What any of them has not is decoded, and each
 * takes of it what is new to itself.
 *
 * For that to be right after any kill, it must be known from the journals what each output was to have:
 *
 *   - One whose journal says that netlogd had ended in good order, or that has none, or that joins a running netlogd,
 *     missed nothing that anybody will send again: where others are further in a stream it goes on where they do, gaps
 *     and all. It notes that before it takes anything.
 *   - One that was killed and does not know a stream has had nothing of it. The first numbers of it may come yet.
 *   - No output notes streams before each has a journal that says that it is being written.
 *
 * An output that cannot be written holds up all clients, so that memory does not grow; the others' records are written
 * and settled. What comes again of them after a kill they know.
 *
 * One thread.
 */
#ifndef NETLOGD_OUTPUT_OUTPUTS_H
#define NETLOGD_OUTPUT_OUTPUTS_H

#include "output.h"

#include "record/block_read.h"

typedef struct outputs outputs;

/* Opens what texts name. NULL with the reason in nl_error_message(). */
outputs *outputs_open(char *const *texts, size_t count);

/* Begins to deliver: not before the last fork. Says in netlogd's own log what was repaired, and what comes of
 * delivering; log may be NULL, and lasts until outputs_close. */
void outputs_start(outputs *all, nl_log *log);

/*
 * What there are becomes what texts name: those that are there stay, or change their options, others are closed, and
 * opened. On NL_FAILED nothing has changed. What was put before is settled first, or fails.
 */
nl_status outputs_change(outputs *all, char *const *texts, size_t count, nl_log *log);

/* What all outputs have of the streams of clients, from before too: for their decoders. */
nl_streams *outputs_streams(outputs *all);

/* Notes that a stream is in use, though nothing may come of it at the moment: no output forgets it before others. */
void outputs_touch_stream(outputs *all, const unsigned char stream[16]);

/*
 * Whether all outputs have space for a block, by nl_streams_admit (reader/admission.h). A block that is refused must
 * not be put: no output may count numbers as seen that did not come.
 */
bool outputs_admit_block(outputs *all, const nl_block_header *block, unsigned owner);

/* The outputs one by one, in their order. NULL: there is none of that number. */
output *outputs_get(const outputs *all, size_t i);

/* As output_... of each, or whether it is so of any, or of all. Failures: the reason is that of the first. */
uint64_t outputs_encoded(const outputs *all); /* on average */
bool outputs_want_blocks(const outputs *all);
void outputs_put(outputs *all, const nl_record *record, const uint64_t *sequence);

/* Puts a block that was taken into all outputs. Returns false if its records are to be put: an output has had a part of
 * the block, or the block was not taken. */
bool outputs_put_block(outputs *all, const nl_block_view *block);
nl_status outputs_flush(outputs *all);
nl_status outputs_settle(outputs *all);
bool outputs_are_empty(const outputs *all);
bool outputs_are_blocked(const outputs *all);
bool outputs_are_due(const outputs *all);
bool outputs_are_settled(const outputs *all);
int outputs_settle_ms(const outputs *all); /* of those that are not settled */
bool outputs_have_seal_due(const outputs *all);
nl_status outputs_reopen(outputs *all);

/* Waits for what is on its way, about as long as ending.h says is left. */
nl_status outputs_close(outputs *all);

/* The first output that output_holds_all of; NULL when there is none. */
const output *outputs_with_all(const outputs *all);

#endif
