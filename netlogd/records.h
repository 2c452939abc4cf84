/*
 * Passes every record that netlogd receives or reads to the outputs, the subscribers and the table of clocks. Also
 * handles blocks and malformed input.
 *
 * The module owns the file of malformed input (--reject). Only the server's thread may call it.
 */
#ifndef NETLOGD_RECORDS_H
#define NETLOGD_RECORDS_H

#include <netlogger.h>

#include "reader/admission.h"

/*
 * Opens the file for malformed input. If `path` is NULL, malformed input is not stored. On failure, sets the error and
 * returns NL_FAILED.
 */
nl_status records_open_reject(const char *path);
void records_close_reject(void);

/* Returns whether decoders should pass on whole blocks, because no output and no subscriber needs single records. */
bool records_want_blocks(void);

/*
 * Returns whether a block may be accepted: its stream may begin, and there is space for the gap that the block may
 * open. If not, counts and reports the block. The report names `peer` and `fate`, which is the consequence for the
 * block's connection or message, such as "closed". `owner` is the owner of the client's streams (client_limits.h).
 */
bool records_admit_block(const nl_block_header *block, unsigned owner, const char *peer, const char *fate);

/*
 * Handles a block that a decoder has found, and passes it on whole if possible. Returns whether it has passed on and
 * counted the whole block. If not, the decoder then returns the block's records one by one. Sets *numbered to whether
 * the block belongs to a stream.
 */
bool records_put_block(nl_decoder *decoder, const nl_block_view *block, bool *numbered);

/*
 * Passes on a record. The caller counts the record. `sequence` points to the record's number in the stream of its
 * block, or is NULL. Returns whether the record describes a clock.
 */
bool records_put(const nl_record *record, const uint64_t *sequence, const char *peer);

/*
 * Passes on the decoder's next lines without decoding them, if every output stores lines of this format unchanged and
 * no subscriber needs their records. Returns the number of lines, which the caller counts; 0 if nl_decoder_next must
 * read the next record. Adds the number of records that describe a clock to *clocks.
 */
size_t records_put_lines(nl_decoder *decoder, const char *peer, size_t *clocks);

/*
 * Counts malformed input, and appends it to the file for malformed input. `number` counts the malformed input of the
 * sender, from 1. The function writes an event for each of the first ten numbers. `message` names the NATS message, or
 * is "".
 */
void records_reject(const nl_malformed *what, const char *peer, const char *message, uint64_t number);

#endif
