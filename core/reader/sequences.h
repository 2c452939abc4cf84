/*
 * The sequence numbers that were read, of all streams: an exact set, whatever order the blocks come in. A number is
 * missing only when it lies between the lowest and the highest number of its stream and was in no input.
 *
 * The set keeps, for each stream, its lowest and highest number and the gaps in between. All gaps are in one balanced
 * tree, so that every operation takes a time logarithmic in their count. Memory is bounded: SEQUENCES_STREAMS_MAX
 * streams and SEQUENCES_GAPS_MAX gaps. The set never forgets what it holds. What does not fit is not checked, which
 * nl_sequences_is_complete reports: then missing numbers are a minimum, and every record counts as new.
 *
 * Not thread-safe.
 */
#ifndef NETLOGGER_READER_SEQUENCES_H
#define NETLOGGER_READER_SEQUENCES_H

#include "record/block_read.h"
#include "reader/decoder.h"

#include <netlogger.h>

enum { SEQUENCES_STREAMS_MAX = 1 << 18, SEQUENCES_GAPS_MAX = 1 << 18 };

/* What a block added to the set. */
typedef struct nl_sequences_news {
    bool followed;    /* the set keeps the stream; otherwise the rest is as if the block were all new */
    uint64_t dropped; /* numbers that the producer dropped before the block, and that were not in the set */
    nl_buffer *fresh; /* may be NULL; nl_number_range of the new records, rising, counted from the block's first */
} nl_sequences_news;

/* Adds the numbers of a block that is of a stream. source, which is copied, names the input. */
void nl_sequences_add(nl_sequences *sequences, const nl_block_header *block, const char *source,
                      nl_sequences_news *news);

/*
 * The records [from, first number known) of a stream exist, in a block that is damaged: they are missing unless another
 * input has them. from_ns is the time of the first. A stream that is not followed is left alone.
 */
void nl_sequences_expect(nl_sequences *sequences, const unsigned char *stream, uint64_t from, int64_t from_ns,
                         const char *source);

/* Parts of an input were not read: from here on nobody knows what is missing, and nothing is listed. */
void nl_sequences_pass_over(nl_sequences *sequences);

/* A decoder has more numbers to add, or (when begins is false) added all that it was fed. While any has, nothing is
 * listed. */
void nl_sequences_await(nl_sequences *sequences, bool begins);

/* Removes all gaps, after they were listed: what is listed next are new ones. */
void nl_sequences_settle(nl_sequences *sequences);

#endif
