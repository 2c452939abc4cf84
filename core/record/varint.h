/* Integers of variable size (LEB128) and fixed size, little-endian. These are the inner loops of the binary format. */
#ifndef NETLOGGER_RECORD_VARINT_H
#define NETLOGGER_RECORD_VARINT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NL_VARINT_SIZE = 10 }; /* maximum size, and the space that must be reserved before a number is written */

/*
 * Like nl_varint_put, for numbers that need more than one byte. Divides up to 56 bits into groups of seven bits,
 * without branches that depend on the size.
 */
static inline char *nl_varint_put_long(char *at, uint64_t value)
{
    while (value >> 56 != 0) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1),
             bytes = (bits * 37 + 222) >> 8; /* bits / 7, rounded up */
    value = (value & 0x000000000fffffff) | (value & 0x00fffffff0000000) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    value = (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
    value |= 0x8080808080808080 & ((UINT64_C(1) << (8 * (bytes - 1))) - 1);
    value = htole64(value);
    memcpy(at, &value, sizeof value);
    return at + bytes;
}

#ifdef __x86_64__
/*
 * Like nl_varint_put, but uses the BMI2 instruction pdep. The caller has checked that the processor supports it. The
 * instruction is in assembly because gcc allows its intrinsic only in functions that are compiled for such processors.
 */
static inline char *nl_varint_put_bmi2(char *at, uint64_t value)
{
    if (value < 0x80) {
        *at = (char)value;
        return at + 1;
    }
    while (value >> 56 != 0) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    const uint64_t groups = 0x7f7f7f7f7f7f7f7f, more = 0x8080808080808080;
    __asm__("pdep %2, %1, %0" : "=r"(value) : "r"(value), "r"(groups));
    unsigned last = (unsigned)(63 - __builtin_clzll(value | 1)) & ~7u; /* first bit of the last byte */
    value |= more & ((UINT64_C(1) << last) - 1);
    memcpy(at, &value, sizeof value);
    return at + last / 8 + 1;
}
#endif

/* Puts a number; the caller has reserved NL_VARINT_SIZE bytes. Returns the end. */
static inline char *nl_varint_put(char *at, uint64_t value)
{
    if (value >= 0x80)
        return nl_varint_put_long(at, value);
    *at = (char)value;
    return at + 1;
}

/* Like nl_varint_put. bmi2 is a constant, which is true if nl_varint_put_bmi2 may be used. */
static inline __attribute__((always_inline)) char *nl_varint_put_by(char *at, uint64_t value, bool bmi2)
{
#ifdef __x86_64__
    if (bmi2)
        return nl_varint_put_bmi2(at, value);
#endif
    (void)bmi2;
    return nl_varint_put(at, value);
}

/* Convert small positive and negative numbers to small unsigned numbers, and back. */
static inline uint64_t nl_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t nl_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Like nl_varint_get, for numbers of more than one byte. */
static inline const char *nl_varint_get_long(const char *at, const char *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint64_t byte = (unsigned char)*at++;
        if (shift == 63 && byte > 1)
            return NULL;
        result |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return at;
        }
    }
    return NULL;
}

/*
 * Reads a number from [at, end). Returns the end of the number, or NULL if the number is truncated or exceeds 64 bits.
 */
static inline const char *nl_varint_get(const char *at, const char *end, uint64_t *value)
{
    if (__builtin_expect(at < end && (unsigned char)*at < 0x80, 1)) {
        *value = (unsigned char)*at;
        return at + 1;
    }
    return nl_varint_get_long(at, end, value);
}

/* Like nl_varint_get, but does not return the value. Checks eight bytes at once if possible. */
static inline const char *nl_varint_skip(const char *at, const char *end)
{
    uint64_t bytes, ignored;
    if (__builtin_expect(at < end && (unsigned char)*at < 0x80, 1))
        return at + 1;
    if (end - at >= (ptrdiff_t)sizeof bytes) {
        memcpy(&bytes, at, sizeof bytes);
        uint64_t last = ~le64toh(bytes) & 0x8080808080808080;
        if (last != 0)
            return at + __builtin_ctzll(last) / 8 + 1;
    }
    return nl_varint_get_long(at, end, &ignored);
}

/* Integers of fixed size. The put functions return the end. */
static inline char *nl_le16_put(char *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline char *nl_le32_put(char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline char *nl_le64_put(char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint16_t nl_le16_get(const char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return le16toh(value);
}

static inline uint32_t nl_le32_get(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static inline uint64_t nl_le64_get(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static inline char *nl_double_put(char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return nl_le64_put(at, bits);
}

static inline double nl_double_get(const char *at)
{
    uint64_t bits = nl_le64_get(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
