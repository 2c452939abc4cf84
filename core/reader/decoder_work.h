/* What a decoder's input costs, for programs that limit what a client may cause. */
#ifndef NETLOGGER_READER_DECODER_WORK_H
#define NETLOGGER_READER_DECODER_WORK_H

#include <netlogger.h>

#include "reader/decoder.h"

/* Returns the units of work (record/work.h) that the input has cost so far. */
uint64_t nl_decoder_work(const nl_decoder *decoder);

/*
 * Returns an estimate of the units of work that the next block costs, by its header; 0 when no whole header comes next.
 * For the function that nl_decoder_ask names.
 */
uint64_t nl_decoder_next_work(const nl_decoder *decoder);

/*
 * The next record of a block that is shown with `taken`, for on_block alone: NL_OK, or NL_END after the last. It does
 * not decompress the block or read its tables again.
 */
nl_status nl_decoder_next_of_taken(nl_decoder *decoder, const nl_record **record);

/* For on_block alone: the block that is shown with `taken` is not taken. Its records are handed out. */
void nl_decoder_decline_block(nl_decoder *decoder);

#endif
