/*
 * The exact set of received sequence numbers of each stream, which the module stores as the next expected number and
 * the gaps before that number. Decoders, netlogd's outputs and nlarchive use this set.
 *
 * Invariant: a number counts as received only after nl_stream_take. The table never forgets a gap while it has the
 * stream. Otherwise, the records in the gap would count as repeated, and the program would acknowledge and drop them.
 * The module limits the number of streams, and forgets the streams that were unused longest. The module does not limit
 * gaps. A program with untrusted input calls nl_streams_admit before it adds a block's numbers. The program neither
 * adds nor acknowledges a refused block, so that the sender keeps the block. See admission.h for the limits.
 */
#ifndef NETLOGGER_READER_STREAMS_H
#define NETLOGGER_READER_STREAMS_H

#include "record/block_read.h"

#include "reader/decoder.h"

enum { NL_STREAMS_MAX = 65536 };

typedef struct nl_stream_gaps {
    size_t count, capacity;
    nl_number_range at[]; /* ascending */
} nl_stream_gaps;

typedef struct nl_stream {
    unsigned char id[NL_BLOCK_STREAM_SIZE];
    uint16_t owner;       /* owner of the stream's shared gaps; 0 means no owner */
    bool known;           /* false in a new stream, until nl_stream_saw */
    uint64_t next;        /* next expected sequence number */
    int64_t latest_ns;    /* latest time of a record, in nanoseconds since 1970 */
    nl_stream_gaps *gaps; /* NULL: no gaps */
} nl_stream;

/*
 * Streams in use are in the young table. If there are too many, the young table becomes the old table. The module then
 * forgets the streams of the previous old table, which were last used before aged_ns. Both tables together have at most
 * NL_STREAMS_MAX streams, and no stream is in both.
 */
struct nl_streams {
    struct nl_stream_table {
        nl_stream *slots;
        size_t capacity; /* a power of two, or 0 */
        size_t count;
    } young, old;
    int64_t aged_ns;        /* when the young table last became the old table, on the monotonic clock */
    size_t *gaps_of_owners; /* number of shared gaps of each owner, or NULL */
    size_t shared_gaps;     /* number of shared gaps of all streams (admission.h) */
};

/*
 * Returns the stream with an ID, which must not be all zeros. Adds a new stream if the ID is unknown. Returns NULL if
 * memory runs out. The stream is valid until the next call.
 */
nl_stream *nl_streams_find(nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE]);

/*
 * Adds the numbers [first, first + count) of a stream. The producer dropped the `lost` numbers before first. Sets
 * *fresh to the ranges of new numbers, ascending and relative to first. If memory runs out, the table does not change
 * and all numbers count as new. Closes gaps of dropped numbers, and returns how many dropped numbers were in gaps.
 */
uint64_t nl_stream_take(nl_streams *streams, nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost,
                        nl_buffer *fresh);

/* Updates the stream's latest time for a block whose numbers were added, and marks the stream as known. */
void nl_stream_saw(nl_stream *stream, const nl_block_header *header);

/* Removes all streams. */
void nl_streams_clear(nl_streams *streams);

#endif
