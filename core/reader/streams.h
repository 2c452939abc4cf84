/*
 * What a decoder remembers of the streams that it met: which sequence number each should go on with, and which ones
 * before that were missing, for they may yet come. The number of streams is bounded, and so is that of a stream's gaps;
 * those that were silent for longest, and the oldest gaps, are forgotten first.
 */
#ifndef NETLOGGER_READER_STREAMS_H
#define NETLOGGER_READER_STREAMS_H

#include "record/block_read.h"

#include "reader/decoder.h"

enum { NL_STREAMS_MOST = 65536 };

typedef struct nl_stream_gaps {
    size_t count;
    nl_number_range at[NL_STREAM_GAPS_MOST]; /* by number */
} nl_stream_gaps;

typedef struct nl_stream {
    unsigned char id[NL_BLOCK_STREAM_SIZE];
    bool known;           /* false in one that was just met: what follows is for the caller to set */
    uint64_t next;        /* the sequence number that is expected */
    int64_t latest_ns;    /* the latest time that was seen */
    nl_stream_gaps *gaps; /* the table's; NULL: there were none */
} nl_stream;

/* Two tables of half the bound: a stream that is met is in the young one; when that is full it becomes the old one, and
 * what the old one held is forgotten. */
struct nl_streams {
    struct nl_stream_table {
        nl_stream *slots;
        size_t capacity; /* a power of two, or 0 */
        size_t count;
    } young, old;
};

/* The stream of that name, which is not all zero; a new one when it was not met. Valid until the next call. */
nl_stream *nl_streams_find(nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE]);

/*
 * Notes that the records [first, first + count) have come, and before them lost ones that never will. Returns how many
 * ranges of them had not come before, in fresh, counted from first.
 */
size_t nl_stream_take(nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost,
                      nl_number_range fresh[NL_STREAM_GAPS_MOST + 1]);

/* Notes that a block of it has come, after its numbers were taken. */
void nl_stream_saw(nl_stream *stream, const nl_block_header *header);

/* Forgets all. */
void nl_streams_clear(nl_streams *streams);

#endif
