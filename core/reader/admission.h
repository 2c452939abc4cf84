/*
 * Asks the owner of a decoder with shared streams whether a stream that is not known yet may begin, so that a client
 * that invents streams can be refused before the shared table has taken notice of them.
 */
#ifndef NETLOGGER_READER_ADMISSION_H
#define NETLOGGER_READER_ADMISSION_H

#include <netlogger.h>

#include "reader/decoder.h"

/*
 * Has admit called before the first block of each stream that is not in the shared streams. When it returns false, the
 * block is not taken, and nl_decoder_next returns NL_AGAIN from then on.
 */
void nl_decoder_on_new_stream(nl_decoder *decoder, bool (*admit)(void *user), void *user);

/* Whether a stream was refused. */
bool nl_decoder_is_refused(const nl_decoder *decoder);

/* Notes that the stream of that name is in use, if it is known: it is then not forgotten before streams that are not.
 */
void nl_streams_touch(nl_streams *streams, const unsigned char stream[16]);

#endif
