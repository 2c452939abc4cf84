/* What the reader asks of a decoder besides the public calls. */
#ifndef NETLOGGER_READER_DECODER_INTERNAL_H
#define NETLOGGER_READER_DECODER_INTERNAL_H

#include <netlogger.h>

/* After nl_decoder_finish and NL_END: what is fed next is a new input (a log that was rotated), lines counted from 1.
 */
void nl_decoder_restart(nl_decoder *decoder);

#endif
