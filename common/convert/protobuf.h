/*
 * Reads the fields of a protobuf message (protobuf.dev, "Encoding"). Reads nothing outside the message. Rejects groups,
 * which current schemas do not use. Any thread may call these functions.
 */
#ifndef NETLOGGER_CONVERT_PROTOBUF_H
#define NETLOGGER_CONVERT_PROTOBUF_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PROTOBUF_VARINT = 0, PROTOBUF_I64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_I32 = 5 };

typedef struct protobuf_field {
    uint32_t number;
    unsigned char wire;
    uint64_t value;   /* value of a numeric field */
    const char *data; /* start of the value */
    size_t size;      /* size of the value in bytes, without its key and length */
} protobuf_field;

/* Reads a varint and moves *at to its end. Returns false if the number is incomplete or has more than 64 bits. */
static inline bool protobuf_varint(const char **at, const char *end, uint64_t *value)
{
    const char *from = *at;
    if (from < end && (unsigned char)*from < 128) { /* nearly all keys and lengths have one byte */
        *value = (unsigned char)*from;
        *at = from + 1;
        return true;
    }
    *value = 0;
    for (unsigned shift = 0; from < end && shift < 70; shift += 7) {
        unsigned char byte = (unsigned char)*from++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *at = from;
            return true;
        }
    }
    return false;
}

/*
 * Reads a number with a fixed size of 4 or 8 bytes and moves *at to its end. Returns false if the number is incomplete.
 */
static inline bool protobuf_fixed(const char **at, const char *end, size_t size, uint64_t *value)
{
    uint64_t number = 0;
    if ((size_t)(end - *at) < size)
        return false;
    memcpy(&number, *at, size);
    *value = le64toh(number);
    *at += size;
    return true;
}

/* Reads the next field and moves *at to its end. Returns false if the field is malformed. Requires *at < end. */
static inline bool protobuf_next(const char **at, const char *end, protobuf_field *field)
{
    uint64_t key;
    const unsigned char *from = (const unsigned char *)*at;
    if (end - *at >= 2 && (from[0] & 0x87) == PROTOBUF_BYTES && from[0] >= 8 && from[1] < 128 &&
        from[1] <= end - *at - 2) { /* nearly all fields: a small number, and less than 128 bytes */
        *field = (protobuf_field){.number = (uint32_t)(from[0] >> 3),
                                  .wire = PROTOBUF_BYTES,
                                  .value = from[1],
                                  .data = *at + 2,
                                  .size = from[1]};
        *at += 2 + from[1];
        return true;
    }
    if (!protobuf_varint(at, end, &key) || key >> 3 == 0 || key >> 3 > (1 << 29) - 1)
        return false;
    field->number = (uint32_t)(key >> 3);
    field->wire = key & 7;
    field->data = *at;
    bool good = field->wire == PROTOBUF_VARINT || field->wire == PROTOBUF_BYTES
                    ? protobuf_varint(at, end, &field->value)
                    : (field->wire == PROTOBUF_I64 || field->wire == PROTOBUF_I32) &&
                          protobuf_fixed(at, end, field->wire == PROTOBUF_I64 ? 8 : 4, &field->value);
    if (good && field->wire == PROTOBUF_BYTES) {
        good = field->value <= (uint64_t)(end - *at);
        field->data = *at;
        *at += good ? field->value : 0;
    }
    field->size = (size_t)(*at - field->data);
    return good;
}

#endif
