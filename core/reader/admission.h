/*
 * Asks the owner of a decoder with shared streams whether a block may be taken, before the shared table takes notice of
 * it. netlogd refuses clients that invent streams or gaps without end. A refused block is neither stored nor
 * acknowledged: its sender keeps it.
 *
 * Bounds of the gaps in a table of streams, as nl_streams_admit applies them:
 * - Each stream may have NL_STREAM_GAPS_OWN gaps, whatever the other streams have. No client can take these away.
 * - A stream may have up to NL_STREAM_GAPS_MAX gaps while all streams together have fewer than NL_SHARED_GAPS_MAX
 *   gaps beyond their own.
 * - The streams of one owner, such as an address, may have NL_OWNER_GAPS_MAX of these shared gaps.
 * - A block that opens another gap, or splits one, beyond that is refused. A block that fills or narrows a gap, or that
 *   goes on where its stream ends, never is. So the sender's other blocks can fill the gaps, after which it goes on.
 *
 * The gaps of 65,536 streams therefore take at most 65 MiB of memory (16 bytes for each gap) and of a journal.
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
 * Calls admit before each block that is of a stream. When admit returns false, the decoder does not take the block,
 * and nl_decoder_next returns NL_AGAIN from then on.
 */
void nl_decoder_on_admission(nl_decoder *decoder, bool (*admit)(void *user, const nl_block_header *block), void *user);

/* Whether a block was refused. */
bool nl_decoder_is_refused(const nl_decoder *decoder);

/* Whether the table has the stream of that name. */
bool nl_streams_know(const nl_streams *streams, const unsigned char stream[16]);

/*
 * Whether the table has space for the block: for the gap, if any, that it opens in its stream, and for a new stream. A
 * new stream is refused while it would push out a stream that was in use within the last NL_STREAMS_KEPT_S seconds.
 * owner, from 1 to NL_STREAM_OWNERS_MAX, stands for the client whose shared gaps are counted together; 0: nobody.
 */
bool nl_streams_admit(nl_streams *streams, const nl_block_header *block, unsigned owner);

/* Notes that the stream of that name is in use, if it is known: it is then not forgotten before streams that are not.
 */
void nl_streams_touch(nl_streams *streams, const unsigned char stream[16]);

#endif
