/*
 * Limits the streams and gaps that clients can create in netlogd's table of streams, which all clients share. A gap is
 * a range of missing sequence numbers. netlogd neither stores nor acknowledges a refused block, so the sender keeps the
 * block.
 *
 * nl_streams_admit applies these limits to gaps:
 * - Each stream may have NL_STREAM_GAPS_OWN gaps, regardless of other streams. Its further gaps are called shared gaps.
 * - Each stream may have at most NL_STREAM_GAPS_MAX gaps, including shared gaps.
 * - All streams together may have NL_SHARED_GAPS_MAX shared gaps.
 * - The streams of one owner, such as an address, may have NL_OWNER_GAPS_MAX shared gaps.
 * - The function refuses a block that would open or split a gap beyond these limits. It admits every block that fills
 *   or narrows a gap, or continues its stream. Therefore, the sender's other blocks can fill the gaps, and the sender
 *   then continues.
 *
 * The gaps of 65,536 streams take at most 65 MiB (16 bytes per gap) in memory, and the same amount in a journal.
 */
#ifndef NETLOGGER_READER_ADMISSION_H
#define NETLOGGER_READER_ADMISSION_H

#include <netlogger.h>

#include "record/block_read.h"
#include "reader/decoder.h"

enum { NL_STREAMS_KEPT_S = 600 };
enum { NL_STREAM_OWNERS_MAX = 4096, NL_OWNER_GAPS_MAX = 8192 };
enum { NL_STREAM_GAPS_OWN = 64, NL_STREAM_GAPS_MAX = 1024, NL_SHARED_GAPS_MAX = 65536 };

/*
 * Makes the decoder call `admit` before each block of a stream. If `admit` returns false, the decoder stops before the
 * block, and nl_decoder_next returns only NL_AGAIN afterwards. The decoder must have shared streams
 * (nl_decoder_options); otherwise, it does not call `admit`.
 */
void nl_decoder_on_admission(nl_decoder *decoder, bool (*admit)(void *user, const nl_block_header *block), void *user);

/* Returns whether admit has refused a block. */
bool nl_decoder_is_refused(const nl_decoder *decoder);

/* Returns whether the table has the stream. */
bool nl_streams_know(const nl_streams *streams, const unsigned char stream[16]);

/*
 * Returns whether the limits allow a block. A new stream is refused if the table is full and would forget streams that
 * were used within the last NL_STREAMS_KEPT_S seconds. `owner`, from 1 to NL_STREAM_OWNERS_MAX, is the number of the
 * owner; 0 means no owner. Returns false if memory runs out.
 */
bool nl_streams_admit(nl_streams *streams, const nl_block_header *block, unsigned owner);

/* Marks the stream as used, if the table has it, so that the table forgets other streams first. */
void nl_streams_touch(nl_streams *streams, const unsigned char stream[16]);

#endif
