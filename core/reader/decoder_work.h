/*
 * The cost of reading, for programs that limit the work that clients can cause. The cost is counted in units of about
 * one nanosecond. The decoder computes the cost from the bytes, and does not measure it, so that the same bytes always
 * have the same cost.
 */
#ifndef NETLOGGER_READER_DECODER_WORK_H
#define NETLOGGER_READER_DECODER_WORK_H

#include <netlogger.h>

#include "reader/decoder.h"

enum {
    NL_WORK_BYTE = 2,         /* a received byte */
    NL_WORK_LINE = 150,       /* a line of text, besides its bytes */
    NL_WORK_RECORD = 150,     /* a decoded record of a block */
    NL_WORK_CHECK = 25,       /* a record of a block that only on_block receives */
    NL_WORK_RAW = 2,          /* a decompressed byte */
    NL_WORK_EXPANDED = 1,     /* a byte of a decoded block's expanded size */
    NL_WORK_ENTRY = 20,       /* a source, shape or field of a block's tables */
    NL_WORK_MALFORMED = 5000, /* a report of malformed input */
    NL_WORK_QUESTION = 5000,  /* a time question and its reply */
};

/* Returns the work units of the input so far. */
uint64_t nl_decoder_work(const nl_decoder *decoder);

/*
 * Estimates the work units for the next block from its header. Returns 0 if the header is incomplete. The callback of
 * nl_decoder_ask can use this estimate.
 */
uint64_t nl_decoder_next_work(const nl_decoder *decoder);

/*
 * Call it only in on_block, for a block that has `taken` set. Returns NL_OK and the next record of the block, or NL_END
 * after the last record. Does not read the block's tables again.
 */
nl_status nl_decoder_next_of_taken(nl_decoder *decoder, const nl_record **record);

/* Call it only in on_block, for a block that has `taken` set. Returns the reader, whose records have not been read. */
struct nl_block_reader *nl_decoder_taken_block(nl_decoder *decoder);

/*
 * Call it only in on_block, for a block that has `taken` set. Declines the block, so that the decoder returns its
 * records.
 */
void nl_decoder_decline_block(nl_decoder *decoder);

#endif
