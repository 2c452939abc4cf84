/*
 * All outputs of netlogd. A record goes to each output whose filter (where= option) matches it.
 *
 * Each output stores each record exactly once. netlogd acknowledges a block to its client when every output has settled
 * it: the output has the block in its file and in its journal, or has noted in its journal that no record of the block
 * matches. netlogd may be killed between the journals of two outputs. Then one output has records that the other lacks,
 * and the client, which received no acknowledgement, sends the block again. Therefore each output remembers all
 * streams, regardless of its filter, and outputs_streams, which decoders use to skip numbers, has only the numbers that
 * all outputs have. A block that any output lacks is decoded, and each output stores the records that it lacks.
 *
 * This must hold after a kill at any moment. The journals must therefore define which records each output should have:
 * - An output whose journal says that netlogd ended properly, or that has no journal, or that joins a running netlogd,
 *   lacks nothing that a client will send again. If other outputs have more of a stream, it continues where they
 *   are, with the same gaps. It notes this position before it stores any record.
 * - An output that was killed and does not know a stream has no records of it. Clients may resend its first
 *   numbers.
 * - No output notes streams before each output has a journal that marks it as being written.
 *
 * An output that cannot be written stops all clients, so that memory does not grow; the records of the other outputs
 * are written and settled.
 *
 * The module owns the list of outputs. The server's thread only.
 */
#ifndef NETLOGD_OUTPUT_OUTPUTS_H
#define NETLOGD_OUTPUT_OUTPUTS_H

#include "output.h"

#include "record/block_read.h"

/* Opens the outputs with these URLs. Returns NL_FAILED after setting the error. */
nl_status outputs_open(char *const *texts, size_t count);

/*
 * Starts delivery; the process must not fork afterwards. Writes repairs and failed deliveries to log, which may be NULL
 * and must remain valid until outputs_close.
 */
void outputs_start(nl_log *log);

/*
 * Replaces the outputs by the outputs with these URLs. Existing outputs stay, or change their options; others are
 * closed or opened. Settles the old outputs first. On NL_FAILED nothing has changed.
 */
nl_status outputs_change(char *const *texts, size_t count, nl_log *log);

/* Returns the numbers of the clients' streams that all outputs have, for decoders. */
nl_streams *outputs_streams(void);

/* Notes that a stream is in use, although no record of it may arrive now: outputs forget other streams first. */
void outputs_touch_stream(const unsigned char stream[16]);

/*
 * Returns whether all outputs have space for a block (nl_streams_admit). A rejected block must not be put, because no
 * output may count numbers as received that did not arrive.
 */
bool outputs_admit_block(const nl_block_header *block, unsigned owner);

/* Returns the output at an index, or NULL. */
output *outputs_get(size_t i);

/* The functions of output.h for all outputs, or whether a condition holds for any or for all outputs. Failures set the
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
int outputs_settle_ms(void); /* of the outputs that are not settled */
bool outputs_have_seal_due(void);
nl_status outputs_reopen(void);

/* Settles and closes all outputs; waits for deliveries about as long as ending.h allows. */
nl_status outputs_close(void);

/* Returns the first output for which output_holds_all, or NULL. */
const output *outputs_with_all(void);

#endif
