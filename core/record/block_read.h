/*
 * Reads blocks of the binary format (doc/binary-format.md).
 *
 * There are three steps: parse the header, verify the checksum when all bytes have arrived, then open the block and
 * read its records. After the first step, the caller knows how many bytes the block has. The input may be invalid:
 * these functions never read outside of it, and their memory and work stay within the format's limits (block.h). Only
 * one thread at a time may use a reader.
 */
#ifndef NETLOGGER_RECORD_BLOCK_READ_H
#define NETLOGGER_RECORD_BLOCK_READ_H

#include "record/block.h"

typedef struct nl_block_header {
    uint32_t header_size; /* offset of the payload */
    uint32_t stored_size; /* size of the payload in bytes */
    uint32_t raw_size;    /* size of the decompressed payload in bytes */
    uint32_t record_count;
    uint32_t crc;
    unsigned char type;
    unsigned char flags;
    unsigned char stream[NL_BLOCK_STREAM_SIZE];
    uint64_t first_sequence;          /* sequence number of the first record */
    int64_t min_time_ns, max_time_ns; /* times of the records, in nanoseconds since 1970 UTC */
    uint64_t lost;                    /* number of records that were dropped before the first record */
    int64_t lost_from_ns, lost_to_ns; /* range of times of the lost records */
} nl_block_header;

/* Returns whether the block belongs to a stream. */
bool nl_block_has_stream(const nl_block_header *header);

/* Returns the size of the block in bytes. */
static inline size_t nl_block_total_size(const nl_block_header *header)
{
    return (size_t)header->header_size + header->stored_size;
}

/*
 * Parses the header at the start of data[0..size). Returns NL_OK, or NL_AGAIN if there are too few bytes. Returns
 * NL_MALFORMED if no block begins here or a size in the header is invalid.
 */
nl_status nl_block_parse_header(const char *data, size_t size, nl_block_header *header);

/*
 * Parses the header of a block at the start of data[0..size). Returns the size of the block in bytes, or 0 if the
 * header is invalid or data does not contain the whole block.
 */
static inline size_t nl_block_whole_size(const char *data, size_t size, nl_block_header *header)
{
    bool whole = nl_block_parse_header(data, size, header) == NL_OK && nl_block_total_size(header) <= size;
    return whole ? nl_block_total_size(header) : 0;
}

/* Verifies the checksum of a whole block. Returns NL_OK or NL_MALFORMED. */
nl_status nl_block_verify(const nl_block_header *header, const char *data);

typedef struct nl_block_reader {
    const char *at, *end; /* start and end of the unread payload */
    int64_t time_ns;      /* time of the previous record, in nanoseconds since 1970 UTC */
    uint32_t left;        /* number of unread records */
    uint64_t expanded;    /* expanded size of the records that were read, in bytes */
    uint64_t expanded_max;
    bool packed; /* nl_record_pack created the block, so more fields are allowed */

    struct nl_block_source_view *sources;
    size_t source_count, source_capacity;
    struct nl_block_shape_view *shapes;
    size_t shape_count, shape_capacity;
    nl_field *fields; /* names and types of all shapes, with the latest values */
    size_t field_count, field_capacity;

    nl_buffer raw;       /* the decompressed payload */
    size_t decompressed; /* number of bytes that were decompressed for this block */
    struct ZSTD_DCtx_s *zstd;
} nl_block_reader;

/*
 * Opens a verified block of records, and closes the previous block. `data` must not change while records are read.
 * Initialize a reader with zeros. Returns NL_OK, NL_MALFORMED if the block is invalid, or NL_FAILED if memory runs out.
 */
nl_status nl_block_open(nl_block_reader *reader, const nl_block_header *header, const char *data);

/*
 * Clears record and reads the next record into it. The record's strings point into the block or the reader's memory,
 * and are valid until the next call of nl_block_open. Returns NL_OK, NL_END after the last record, NL_MALFORMED if the
 * record is invalid, or NL_FAILED if memory runs out. After NL_MALFORMED and NL_FAILED, the next call returns NL_END.
 */
nl_status nl_block_next(nl_block_reader *reader, nl_record *record);

/*
 * Returns whether all records of the block that was just opened are valid, without decoding the records. Sets *expanded
 * to an upper bound of the block's expanded size. Returns false for some valid blocks near the maximum expanded size.
 */
bool nl_block_check(const nl_block_reader *reader, uint64_t *expanded);

enum { NL_BLOCK_WALK_NAMES_MAX = 8 };

/* Receives a value of the field names[name]. The value is valid only during the call. */
typedef void nl_block_take_value(void *user, size_t name, const nl_field *value);

/*
 * Calls `take` for the values of some fields in a block that was just opened, without building records, and leaves the
 * reader unchanged. Omits values that are equal to the previous value of the same shape. `count` is at most
 * NL_BLOCK_WALK_NAMES_MAX. Returns false if the block is damaged or memory runs out; values are then missing.
 */
bool nl_block_walk_values(const nl_block_reader *reader, const nl_string *names, size_t count,
                          nl_block_take_value *take, void *user);

/* Returns the number of sources, shapes and fields in the open block's tables. */
static inline size_t nl_block_entries(const nl_block_reader *reader)
{
    return reader->source_count + reader->shape_count + reader->field_count;
}

/* Returns the number of bytes of memory that the reader has allocated. */
size_t nl_block_reader_held(const nl_block_reader *reader);

/* Frees the reader's memory. The reader can be used again. */
void nl_block_reader_free(nl_block_reader *reader);

#endif
