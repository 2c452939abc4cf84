/*
 * The exact set of sequence numbers that were read, for all streams and in any order. A number is missing only if it is
 * between the lowest and the highest number of its stream and no input has it.
 *
 * For each stream, the set has the lowest and highest number and the gaps in between. All gaps are in one balanced
 * tree, so that operations take logarithmic time. The set has at most SEQUENCES_STREAMS_MAX streams and
 * SEQUENCES_GAPS_MAX gaps and never forgets a stream or gap. It ignores streams and gaps beyond these limits. Then
 * every later record counts as new, more numbers may be missing, and nl_sequences_is_complete returns false. Only one
 * thread at a time may use a set.
 */
#ifndef NETLOGGER_READER_SEQUENCES_H
#define NETLOGGER_READER_SEQUENCES_H

#include "record/block_read.h"
#include "reader/decoder.h"

#include <netlogger.h>

enum { SEQUENCES_STREAMS_MAX = 1 << 18, SEQUENCES_GAPS_MAX = 1 << 18 };

/* The result of adding a block to the set. */
typedef struct nl_sequences_news {
    bool followed;    /* the set is complete; otherwise, all records count as new */
    uint64_t dropped; /* count of dropped numbers before the block that were not in the set */
    nl_buffer *fresh; /* ranges of the indexes of new records, in ascending order; or NULL */
} nl_sequences_news;

/*
 * Adds the numbers of a stream's block, and sets the members of *news. The caller sets news->fresh, to NULL or to an
 * empty buffer. `source` is the name of the input, which is copied.
 */
void nl_sequences_add(nl_sequences *sequences, const nl_block_header *block, const char *source,
                      nl_sequences_news *news);

/*
 * Notes that damaged blocks contained the records [from, lowest known number) of a stream. These records are missing
 * unless another input has them. from_ns is the time of the first of these records. Ignores unknown streams.
 */
void nl_sequences_expect(nl_sequences *sequences, const unsigned char *stream, uint64_t from, int64_t from_ns,
                         const char *source);

/* Notes that parts of an input were skipped. nl_sequences_list_missing then lists nothing. */
void nl_sequences_pass_over(nl_sequences *sequences);

/*
 * Notes that a decoder has more numbers to add or, if begins is false, has added all its numbers.
 * nl_sequences_list_missing lists nothing while any decoder has more numbers.
 */
void nl_sequences_await(nl_sequences *sequences, bool begins);

/* Removes all gaps after they were listed, so that they are not listed again. */
void nl_sequences_settle(nl_sequences *sequences);

#endif
