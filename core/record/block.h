/*
 * What the writing and the reading of blocks share: the constants of doc/binary-format.md.
 */
#ifndef NETLOGGER_FORMAT_BLOCK_H
#define NETLOGGER_FORMAT_BLOCK_H

#include <netlogger.h>

#define NL_BLOCK_MAGIC "NLB1"

enum {
    NL_BLOCK_MAGIC_SIZE = 4,
    NL_BLOCK_HEADER_SIZE = 96, /* in version 1 */
    NL_BLOCK_STREAM_SIZE = 16,
};

/*
 * Limits of a block, so that reading it costs little more than its bytes do. The expanded size of a block is what its
 * records take as text, about: each counts its own copy of every string and name, and so many bytes more.
 */
enum {
    NL_BLOCK_PAYLOAD_MAX = 16 << 20,    /* bytes, stored and raw, of a block of one record */
    NL_BLOCK_MANY_MAX = 2 << 20,        /* bytes, raw, of a block of several records */
    NL_BLOCK_EXPANDED_MAX = 2 << 20,    /* bytes, expanded, of a block of several records */
    NL_BLOCK_RATIO_FREE = 64 << 10,     /* bytes that a block may have, raw or expanded, beyond these ratios: */
    NL_BLOCK_RAW_RATIO_MAX = 100,       /* raw bytes for each stored byte */
    NL_BLOCK_EXPANDED_RATIO_MAX = 1024, /* expanded bytes for each stored byte */
    NL_BLOCK_SOURCES_MAX = 1 << 12,
    NL_BLOCK_SHAPES_MAX = 1 << 12,
    NL_BLOCK_SHAPE_FIELDS_MAX = 1 << 14, /* of one shape */
    NL_BLOCK_FIELDS_MAX = 1 << 16,       /* of all shapes together */
    NL_RECORD_PACK_FIELDS_MAX = 1 << 20, /* of a packed record, which only the program itself made */
    NL_BLOCK_RECORD_EXPANDED = 64,       /* bytes that a record adds to the expanded size, */
    NL_BLOCK_FIELD_EXPANDED = 16,        /* and each of its fields, besides its strings and names */
};

/* The maximum expanded size of a block. */
static inline uint64_t nl_block_expanded_max(uint64_t record_count, uint64_t stored_size)
{
    uint64_t by_ratio = NL_BLOCK_RATIO_FREE + NL_BLOCK_EXPANDED_RATIO_MAX * stored_size;
    return record_count == 1 || by_ratio < NL_BLOCK_EXPANDED_MAX ? by_ratio : NL_BLOCK_EXPANDED_MAX;
}

/* Offsets of the header's fields. */
enum {
    NL_BLOCK_AT_HEADER_SIZE = 4,
    NL_BLOCK_AT_TYPE = 6,
    NL_BLOCK_AT_FLAGS = 7,
    NL_BLOCK_AT_CRC = 8,
    NL_BLOCK_AT_STORED_SIZE = 12,
    NL_BLOCK_AT_RAW_SIZE = 16,
    NL_BLOCK_AT_RECORD_COUNT = 20,
    NL_BLOCK_AT_STREAM = 24,
    NL_BLOCK_AT_FIRST_SEQUENCE = 40,
    NL_BLOCK_AT_MIN_TIME = 48,
    NL_BLOCK_AT_MAX_TIME = 56,
    NL_BLOCK_AT_LOST = 64,
    NL_BLOCK_AT_LOST_FROM = 72,
    NL_BLOCK_AT_LOST_TO = 80,
};

enum { NL_BLOCK_TYPE_RECORDS = 1, NL_BLOCK_TYPE_TIME = 2 };
enum { NL_BLOCK_FLAG_ZSTD = 1 };

/* What a value's type is in a shape: nl_type and one. */
enum { NL_BLOCK_TYPE_OFFSET = 1 };

/*
 * A question for the time, and its answer (doc/binary-format.md, "Time"). The question is a block whose payload is one
 * time; the answer a frame with that time, two of the collector's, and its name.
 */
enum { NL_TIME_QUESTION_SIZE = NL_BLOCK_HEADER_SIZE + 8, NL_TIME_ANSWER_MIN = 24 };
#define NL_TIME_ANSWER_MAGIC "NLT1"

/* Writes the block that asks, sent at sent_ns by this clock. */
void nl_time_question_put(char block[NL_TIME_QUESTION_SIZE], int64_t sent_ns);

/* The checksum of a block, whose header is in memory whole; the place of the checksum itself counts as zero. */
uint32_t nl_block_checksum(const char *header, size_t header_size, const char *payload, size_t payload_size);

#endif
