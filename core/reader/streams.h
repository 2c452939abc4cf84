/*
 * Which sequence numbers of which streams have come: an exact set for each stream, as the number that it goes on with
 * and the gaps before that. Decoders, netlogd's outputs and nlarchive use it.
 *
 * The invariant is that a number counts as seen only if it was taken. A gap is therefore never forgotten while its
 * stream is known: its records would count as repeated when they arrive, and would be acknowledged and dropped. The
 * module bounds the number of streams: the streams that were silent longest are forgotten first. It does not bound the
 * gaps. A program whose input comes from strangers asks nl_streams_admit before it takes a block, and does not take
 * (or acknowledge) a block that is refused, so that the sender keeps the block. See admission.h for the bounds.
 */
#ifndef NETLOGGER_READER_STREAMS_H
#define NETLOGGER_READER_STREAMS_H

#include "record/block_read.h"

#include "reader/decoder.h"

enum { NL_STREAMS_MAX = 65536 };

typedef struct nl_stream_gaps {
    size_t count, capacity;
    nl_number_range at[]; /* by number */
} nl_stream_gaps;

typedef struct nl_stream {
    unsigned char id[NL_BLOCK_STREAM_SIZE];
    uint16_t owner;       /* whose shared gaps its gaps are; 0: nobody's */
    bool known;           /* false in one that was just met: what follows is for the caller to set */
    uint64_t next;        /* the sequence number that is expected */
    int64_t latest_ns;    /* the latest time that was seen */
    nl_stream_gaps *gaps; /* the table's; NULL: there were none */
} nl_stream;

/*
 * A stream that is used is in the young table. When there are too many streams, the young table becomes the old one,
 * and the streams of the old one are forgotten. All of those were last used before aged_ns. The two tables together
 * hold at most NL_STREAMS_MAX streams, and no stream is in both.
 */
struct nl_streams {
    struct nl_stream_table {
        nl_stream *slots;
        size_t capacity; /* a power of two, or 0 */
        size_t count;
    } young, old;
    int64_t aged_ns;        /* by nl_monotonic_ns: when the young table became the old one last */
    size_t *gaps_of_owners; /* shared gaps of each owner; NULL: none was counted yet */
    size_t shared_gaps;     /* beyond each stream's first NL_STREAM_GAPS_OWN, over all streams */
};

/* The stream of that name, which is not all zero; a new one when it was not met. Valid until the next call. */
nl_stream *nl_streams_find(nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE]);

/*
 * Takes the numbers [first, first + count) of a stream of that table, before which the producer dropped lost numbers.
 * Writes the ranges (nl_number_range) that had not come before to *fresh, rising and counted from first. When memory
 * runs out, the table does not change and all numbers count as new. The dropped numbers never come: gaps that they are
 * in are closed. Returns how many dropped numbers were in gaps.
 */
uint64_t nl_stream_take(nl_streams *streams, nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost,
                        nl_buffer *fresh);

/* Notes that a block of it has come, after its numbers were taken. */
void nl_stream_saw(nl_stream *stream, const nl_block_header *header);

/* Forgets all. */
void nl_streams_clear(nl_streams *streams);

#endif
