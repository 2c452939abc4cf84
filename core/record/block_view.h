#ifndef NETLOGGER_RECORD_BLOCK_VIEW_H
#define NETLOGGER_RECORD_BLOCK_VIEW_H

#include <netlogger.h>

/* A valid block of the binary format. The view is valid only during the call that passes it. */
typedef struct nl_block_view {
    nl_string bytes;          /* header and payload */
    unsigned char stream[16]; /* all zeros if the block has no stream */
    uint64_t first_sequence;  /* sequence number of the first record */
    uint64_t record_count;
    uint64_t repeated;   /* number of the block's records that the shared streams already have; these records are not
                          * decoded */
    uint64_t first_new;  /* sequence number of the first new record */
    bool in_parts;       /* there are known records between the new records */
    bool taken;          /* the decoder does not decode the records, unless the receiver declines the block */
    uint64_t offset;     /* offset of the block in the input, in bytes */
    int64_t min_time_ns; /* times in the header, in nanoseconds since 1970 UTC */
    int64_t max_time_ns;
    uint64_t expanded; /* upper bound of the expanded size in bytes (doc/binary-format.md) */
} nl_block_view;

#endif
