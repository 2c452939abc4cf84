/*
 * All outputs of netlogd. A record goes to each output whose filter (the option where=) matches it.
 *
 * Each output keeps each record exactly once. A block is acknowledged to its client when every output has settled it:
 * has it in its file and in its journal, or has noted in its journal that no record of it matches. netlogd may be
 * killed between the journals of two outputs. Then one output has what the other lacks, and the client, which got no
 * acknowledgement, sends the block again. Therefore each output remembers all streams, whatever its filter, and
 * outputs_streams, by which decoders skip numbers, says what all outputs have. A block that any output lacks is
 * decoded, and each output takes from it what is new to it.
 *
 * For that to hold after any kill, the journals must tell what each output should have:
 * - An output whose journal says that netlogd ended properly, or that has no journal, or that joins a running netlogd,
 *   lacks nothing that a client will send again. Where others are further in a stream, it continues where they do, gaps
 *   included. It notes that before it takes any record.
 * - An output that was killed and does not know a stream has had nothing of it. The first numbers may come again.
 * - No output notes streams before each output has a journal that says that it is being written.
 *
 * An output that cannot be written stops all clients, so that memory does not grow; the records of the others are
 * written and settled.
 *
 * The module owns the list of outputs. The server's thread only.
 */
#ifndef NETLOGD_OUTPUT_OUTPUTS_H
#define NETLOGD_OUTPUT_OUTPUTS_H

#include "output.h"

#include "record/block_read.h"

/* Opens the outputs with these URLs. NL_FAILED after setting the error. */
nl_status outputs_open(char *const *texts, size_t count);

/* Starts delivery; the process must not fork after that. Repairs and failed deliveries are written to log, which must
 * stay until outputs_close and may be NULL. */
void outputs_start(nl_log *log);

/*
 * Replaces the outputs by those with these URLs. Existing outputs stay, or change their options; others are closed or
 * opened. Settles the old ones first. On NL_FAILED nothing has changed.
 */
nl_status outputs_change(char *const *texts, size_t count, nl_log *log);

/* Returns what all outputs have of the streams of clients, for decoders. */
nl_streams *outputs_streams(void);

/* Notes that a stream is in use, although no record of it may come now: outputs forget other streams first. */
void outputs_touch_stream(const unsigned char stream[16]);

/* Whether all outputs have space for a block (nl_streams_admit). A rejected block must not be put, because no output
 * may count numbers as seen that did not come. */
bool outputs_admit_block(const nl_block_header *block, unsigned owner);

/* Returns the output at an index, or NULL. */
output *outputs_get(size_t i);

/* The functions of output.h for all outputs, or whether something holds for any or for all of them. Failures set the
 * first output's error. */
uint64_t outputs_encoded(void); /* on average */
bool outputs_want_blocks(void);
void outputs_put(const nl_record *record, const uint64_t *sequence);

/* Puts a block into all outputs. Returns false if its records must be put instead: an output has a part of the block,
 * or the decoder does not show the block as a whole. */
bool outputs_put_block(const nl_block_view *block);
nl_status outputs_flush(void);
nl_status outputs_settle(void);
bool outputs_are_empty(void);
bool outputs_are_blocked(void);
bool outputs_are_due(void);
bool outputs_are_settled(void);
int outputs_settle_ms(void); /* of those that are not settled */
bool outputs_have_seal_due(void);
nl_status outputs_reopen(void);

/* Settles and closes all outputs; waits for deliveries about as long as ending.h allows. */
nl_status outputs_close(void);

/* Returns the first output for which output_holds_all, or NULL. */
const output *outputs_with_all(void);

#endif
