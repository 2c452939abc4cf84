/*
 * Passes every record from a connection, a datagram or NATS to the outputs, the subscribers and the table of clocks,
 * and handles blocks and malformed input for all three sources.
 *
 * The module owns the file of malformed input (--reject). The server's thread only.
 */
#ifndef NETLOGD_RECORDS_H
#define NETLOGD_RECORDS_H

#include <netlogger.h>

#include "reader/admission.h"

/* Opens the file of malformed input; NULL: no file. */
nl_status records_open_reject(const char *path);
void records_close_reject(void);

/* Returns whether blocks should be passed whole: no output and no subscriber needs their records. */
bool records_want_blocks(void);

/*
 * Returns whether a block may be accepted: its stream may begin, and the gap that it may open can be stored. If not,
 * counts the block and reports it with peer and fate, such as "closed". owner is the owner of its streams
 * (client_limits.h).
 */
bool records_admit_block(const nl_block_header *block, unsigned owner, const char *peer, const char *fate);

/*
 * Notes a block that a decoder has found, and passes it on whole if possible; otherwise its records follow. Returns
 * whether it passed the block on; then its records are counted. *numbered is set if the block belongs to a stream.
 */
bool records_put_block(nl_decoder *decoder, const nl_block_view *block, bool *numbered);

/*
 * Puts a record, which the caller counts. sequence is its number in the block's stream, or NULL. Returns whether the
 * record describes a clock.
 */
bool records_put(const nl_record *record, const uint64_t *sequence, const char *peer);

/*
 * Counts malformed input, appends it to the file of malformed input, and writes an event for the first ten pieces of a
 * sender. number counts the sender's pieces, from 1; message names the NATS message, or is "".
 */
void records_reject(const nl_malformed *what, const char *peer, const char *message, uint64_t number);

#endif
