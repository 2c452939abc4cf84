/*
 * Divides the blocks that an output has collected into NATS messages. Each message has records of one program on one
 * host.
 *
 * Most blocks already have this form and stay unchanged. A block of several programs (records that arrived as text) is
 * divided where the program changes; a block larger than a message is divided anywhere. Records keep their numbers. No
 * state.
 */
#ifndef NETLOGD_NATS_CUT_H
#define NETLOGD_NATS_CUT_H

#include <netlogger.h>

/* Records for one message; valid only during the call. */
typedef struct nats_cut {
    nl_string bytes; /* a block */
    unsigned char stream[16];
    uint64_t first; /* sequence number of its first record */
    uint64_t count;
    const char *subject; /* ".HOST.PROG" */
    size_t end;          /* after the last cut with this end, data[0..end) is completely in messages */
} nats_cut;

typedef struct nats_cutter {
    bool whole;                                    /* do not divide blocks by programs */
    size_t most;                                   /* maximum bytes of a message */
    int zstd_level;                                /* of blocks that are encoded again */
    bool (*take)(void *user, const nats_cut *cut); /* returns false to stop after the current block */
    void *user;
} nats_cutter;

/*
 * Divides data[0..size), which begins with a block, and calls take for each message. Returns the number of bytes that
 * were divided or that hold no block. Returns 0 if the first block is incomplete.
 */
size_t nats_cut_blocks(const nats_cutter *cutter, const char *data, size_t size);

#endif
