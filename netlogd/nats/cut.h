/*
 * Blocks, as an output has collected them, into what one message of NATS holds: records of one host's program.
 *
 * A block is mostly that already, and stays as it is. One of several programs (records that came as text) is cut where
 * the program changes, one that is larger than a message may be is cut anywhere; its records keep their numbers.
 */
#ifndef NETLOGD_NATS_CUT_H
#define NETLOGD_NATS_CUT_H

#include <netlogger.h>

/* Records that go into one message. Everything in it lasts only during the call. */
typedef struct nats_cut {
    nl_string bytes; /* a block */
    unsigned char stream[16];
    uint64_t first; /* sequence number of its first record */
    uint64_t count;
    const char *subject; /* ".HOST.PROG" */
    size_t end;          /* so many bytes of what was given are in messages with the last one that has this end */
} nats_cut;

typedef struct nats_cutter {
    bool whole;                                    /* whatever programs are in a block: do not cut it for that */
    size_t most;                                   /* bytes of a message */
    int zstd_level;                                /* of blocks that are made anew */
    bool (*take)(void *user, const nats_cut *cut); /* false: no more of them, but the rest of this block */
    void *user;
} nats_cutter;

/*
 * Cuts data[0..size), which begins with a block. Returns how many bytes of it take was told of, or hold no block: 0
 * when the first one is not whole yet.
 */
size_t nats_cut_blocks(const nats_cutter *cutter, const char *data, size_t size);

#endif
