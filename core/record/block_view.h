#ifndef NETLOGGER_RECORD_BLOCK_VIEW_H
#define NETLOGGER_RECORD_BLOCK_VIEW_H

#include <netlogger.h>

/* A block of the binary format that was found whole. Everything in it lasts only during the call. */
typedef struct nl_block_view {
    nl_string bytes;          /* as it came: header and payload */
    unsigned char stream[16]; /* all zero: of no stream */
    uint64_t first_sequence;  /* of its first record */
    uint64_t record_count;
    uint64_t repeated;   /* of them were met already, where streams are shared, and do not follow */
    uint64_t first_new;  /* sequence number of the first that was not */
    bool in_parts;       /* among those that were not are others that were */
    bool taken;          /* its records do not follow */
    uint64_t offset;     /* bytes from the start of the input to its first */
    int64_t min_time_ns; /* of its records, as it says */
    int64_t max_time_ns;
    uint64_t expanded; /* upper bound of its expanded size (doc/binary-format.md) */
} nl_block_view;

#endif
