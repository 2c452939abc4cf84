/*
 * Reading blocks of the binary format (doc/binary-format.md).
 *
 * In three steps, so that a caller with bytes in pieces knows how many it needs: the header is parsed; when all the
 * bytes that it speaks of are there the checksum is verified; then the block is opened and gives its records. Whatever
 * the bytes are, nothing is read outside of them, and memory and work are bounded by the format's limits (block.h).
 */
#ifndef NETLOGGER_FORMAT_BLOCK_READ_H
#define NETLOGGER_FORMAT_BLOCK_READ_H

#include "record/block.h"

typedef struct nl_block_header {
    uint32_t header_size; /* bytes to the payload */
    uint32_t stored_size; /* bytes of it */
    uint32_t raw_size;    /* when decompressed */
    uint32_t record_count;
    uint32_t crc;
    unsigned char type;
    unsigned char flags;
    unsigned char stream[NL_BLOCK_STREAM_SIZE];
    uint64_t first_sequence;
    int64_t min_time_ns, max_time_ns;
    uint64_t lost;
    int64_t lost_from_ns, lost_to_ns;
} nl_block_header;

/* Whether the header's stream is one, not all zero. */
bool nl_block_has_stream(const nl_block_header *header);

/* The bytes of the whole block. */
static inline size_t nl_block_total_size(const nl_block_header *header)
{
    return (size_t)header->header_size + header->stored_size;
}

/*
 * Reads the header at the start of data[0..size). NL_OK; NL_AGAIN when it may be one but there are too few bytes;
 * NL_MALFORMED with the reason in nl_error_message() when no block begins here.
 */
nl_status nl_block_parse_header(const char *data, size_t size, nl_block_header *header);

/* Verifies the checksum; data holds the whole block. NL_OK or NL_MALFORMED. */
nl_status nl_block_verify(const nl_block_header *header, const char *data);

typedef struct nl_block_reader {
    const char *at, *end; /* what is left of the payload */
    int64_t time_ns;      /* of the record before */
    uint32_t left;        /* records */
    uint64_t expanded;    /* expanded size of the records before */
    uint64_t expanded_max;
    bool packed; /* a record of nl_record_pack, which may have more fields than a block from elsewhere */

    struct nl_block_source_view *sources;
    size_t source_count, source_capacity;
    struct nl_block_shape_view *shapes;
    size_t shape_count, shape_capacity;
    nl_field *fields; /* of all shapes: names and types, and the values of the latest record of each */
    size_t field_count, field_capacity;

    nl_buffer raw;       /* the payload when it was compressed */
    size_t decompressed; /* bytes that were decompressed for the open block */
    struct ZSTD_DCtx_s *zstd;
} nl_block_reader;

/*
 * Opens a block of records that was verified, leaving any block before. data is to stay as it is while records are
 * read. {0} is a reader that never opened one. NL_OK or NL_MALFORMED.
 */
nl_status nl_block_open(nl_block_reader *reader, const nl_block_header *header, const char *data);

/*
 * The next record, into record, which is cleared first. Its strings view the block, or the reader's memory, and last
 * until the next nl_block_open. NL_OK; NL_END when there are no more; NL_MALFORMED when the rest can't be read (then
 * NL_END follows).
 */
nl_status nl_block_next(nl_block_reader *reader, nl_record *record);

/*
 * Returns whether nl_block_next would read all records of the block that was just opened. It reads none of them. Sets
 * *expanded to an upper bound of the block's expanded size. Returns false for some valid blocks whose expanded size is
 * near its maximum.
 */
bool nl_block_check(const nl_block_reader *reader, uint64_t *expanded);

/* Returns the entries of the open block's tables: sources, shapes and fields. */
static inline size_t nl_block_entries(const nl_block_reader *reader)
{
    return reader->source_count + reader->shape_count + reader->field_count;
}

/* The memory that it holds, in bytes. */
size_t nl_block_reader_held(const nl_block_reader *reader);

/* Frees what reader holds; it is empty and usable again. */
void nl_block_reader_free(nl_block_reader *reader);

#endif
