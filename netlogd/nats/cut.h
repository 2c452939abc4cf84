/*
 * Divides the blocks that an output has collected into NATS messages. Each message contains records of one program on
 * one host, unless nats_cutter.whole is set.
 *
 * Most blocks already have this form and stay unchanged. A block with records of several programs, which arrived as
 * text, is divided where the program changes. A block that is larger than a message may be divided before any record.
 * Records keep their numbers. This module has no state.
 */
#ifndef NETLOGD_NATS_CUT_H
#define NETLOGD_NATS_CUT_H

#include <netlogger.h>

/* The records for one message. The structure is valid only during the call of `take`. */
typedef struct nats_cut {
    nl_string bytes; /* a block */
    unsigned char stream[16];
    uint64_t first; /* sequence number of the first record */
    uint64_t count;
    const char *subject; /* ".HOST.PROG" */
    size_t end; /* after the last cut with this value of `end`, the messages contain all bytes of data[0..end) */
} nats_cut;

typedef struct nats_cutter {
    bool whole;                                    /* do not divide blocks by program */
    size_t message_size_max;                       /* maximum size of a message in bytes */
    int zstd_level;                                /* compression level of blocks that are encoded again */
    bool (*take)(void *user, const nats_cut *cut); /* returns false to stop after the current block */
    void *user;
} nats_cutter;

/*
 * Divides data[0..size), which begins with a block, and calls take for each message. Returns the number of bytes that
 * were divided or that contain no block. Returns 0 if the first block is incomplete.
 */
size_t nats_cut_blocks(const nats_cutter *cutter, const char *data, size_t size);

#endif
