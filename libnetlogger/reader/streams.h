/*
 * What a decoder remembers of the streams that it met: which sequence number each should go on with. The number of
 * streams is bounded; those that were silent for longest are forgotten first.
 */
#ifndef NETLOGGER_READER_STREAMS_H
#define NETLOGGER_READER_STREAMS_H

#include "format/block.h"

typedef struct nl_stream {
    unsigned char id[NL_BLOCK_STREAM_SIZE];
    bool known;                /* false in one that was just met: what follows is for the caller to set */
    uint64_t next;             /* the sequence number that is expected */
    int64_t latest_ns;         /* the latest time that was seen */
    uint64_t gap_from, gap_to; /* numbers that were missing when they were passed over: they may yet come */
} nl_stream;

enum { NL_STREAMS_MOST = 65536 };

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

/* Forgets all. */
void nl_streams_clear(nl_streams *streams);

#endif
