/* Constants of the binary format (doc/binary-format.md), for writing and reading blocks. */
#ifndef NETLOGGER_RECORD_BLOCK_H
#define NETLOGGER_RECORD_BLOCK_H

#include <netlogger.h>

#define NL_BLOCK_MAGIC "NLB1"

enum {
    NL_BLOCK_MAGIC_SIZE = 4,
    NL_BLOCK_HEADER_SIZE = 96, /* in version 1 */
    NL_BLOCK_STREAM_SIZE = 16,
};

/*
 * Limits that keep the cost of reading a block proportional to its size. The expanded size of a block is about the size
 * of its records as text: each string and name counts once for each record in which it occurs.
 */
enum {
    NL_BLOCK_PAYLOAD_MAX = 16 << 20,    /* bytes; maximum stored and raw size of a block that has one record */
    NL_BLOCK_MANY_MAX = 2 << 20,        /* bytes; maximum raw size of a block that has several records */
    NL_BLOCK_EXPANDED_MAX = 2 << 20,    /* bytes; maximum expanded size of a block that has several records */
    NL_BLOCK_RATIO_FREE = 64 << 10,     /* bytes; the following two ratios apply only to bytes beyond this number */
    NL_BLOCK_RAW_RATIO_MAX = 100,       /* maximum raw bytes per stored byte */
    NL_BLOCK_EXPANDED_RATIO_MAX = 1024, /* maximum expanded bytes per stored byte */
    NL_BLOCK_SOURCES_MAX = 1 << 12,
    NL_BLOCK_SHAPES_MAX = 1 << 12,
    NL_BLOCK_SHAPE_FIELDS_MAX = 1 << 14, /* maximum number of fields of a shape */
    NL_BLOCK_FIELDS_MAX = 1 << 16,       /* maximum number of fields of all shapes of a block */
    NL_RECORD_PACK_FIELDS_MAX =
        1 << 20, /* maximum number of fields of a packed record; only the program itself creates such records */
    NL_BLOCK_RECORD_EXPANDED = 64, /* bytes; a record's expanded size without its strings and fields */
    NL_BLOCK_FIELD_EXPANDED = 16,  /* bytes; a field's expanded size without its name and value */
};

/* Returns the maximum expanded size of a block in bytes. stored_size is in bytes. */
static inline uint64_t nl_block_expanded_max(uint64_t record_count, uint64_t stored_size)
{
    uint64_t by_ratio = NL_BLOCK_RATIO_FREE + NL_BLOCK_EXPANDED_RATIO_MAX * stored_size;
    return record_count == 1 || by_ratio < NL_BLOCK_EXPANDED_MAX ? by_ratio : NL_BLOCK_EXPANDED_MAX;
}

/* Offsets of the header's fields, in bytes. */
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

/* The code of a value's type in a shape is its nl_type plus this offset. */
enum { NL_BLOCK_TYPE_OFFSET = 1 };

/*
 * A time question is a block whose payload is one time and the bytes "\r\n\r\n". The reply is a frame with that time,
 * the times at which the collector received the question and replied, and the name of the collector's host
 * (doc/binary-format.md, "Time").
 */
enum { NL_TIME_QUESTION_SIZE = NL_BLOCK_HEADER_SIZE + 12, NL_TIME_ANSWER_MIN = 24 };
#define NL_TIME_ANSWER_MAGIC "NLT1"

/*
 * Writes a time question. sent_ns is the time of this host's clock, in nanoseconds since 1970 UTC. The "\r\n\r\n" at
 * the end makes a server of a line-based protocol, such as HTTP, reply at once.
 */
void nl_time_question_put(char block[NL_TIME_QUESTION_SIZE], int64_t sent_ns);

/* Returns the checksum of a block. The checksum's own bytes in the header count as zeros. */
uint32_t nl_block_checksum(const char *header, size_t header_size, const char *payload, size_t payload_size);

#endif
