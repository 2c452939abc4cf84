/*
 * What the writing and the reading of blocks share: the constants of doc/binary-format.md.
 */
#ifndef NETLOGGER_FORMAT_BLOCK_H
#define NETLOGGER_FORMAT_BLOCK_H

#include <netlogger.h>

#define NL_BLOCK_MAGIC "NLB1"

enum {
    NL_BLOCK_MAGIC_SIZE = 4,
    NL_BLOCK_HEADER_SIZE = 96,         /* in version 1 */
    NL_BLOCK_PAYLOAD_LIMIT = 16 << 20, /* bytes, stored and raw */
    NL_BLOCK_SOURCE_LIMIT = 1 << 16,
    NL_BLOCK_SHAPE_LIMIT = 1 << 16,
    NL_BLOCK_FIELD_LIMIT = 1 << 20,  /* of all shapes together */
    NL_BLOCK_WHOLE_LIMIT = 64 << 20, /* bytes of strings and names, when each record has its own */
    NL_BLOCK_STREAM_SIZE = 16,
};

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
enum { NL_TIME_QUESTION_SIZE = NL_BLOCK_HEADER_SIZE + 8, NL_TIME_ANSWER_LEAST = 24 };
#define NL_TIME_ANSWER_MAGIC "NLT1"

/* Writes the block that asks, sent at sent_ns by this clock. */
void nl_time_question_put(char block[NL_TIME_QUESTION_SIZE], int64_t sent_ns);

/* The checksum of a block, whose header is in memory whole; the place of the checksum itself counts as zero. */
uint32_t nl_block_checksum(const char *header, size_t header_size, const char *payload, size_t payload_size);

#endif
