/*
 * Integers of as many bytes as they need (LEB128), the integers of fixed size, and nothing else: the innermost loops of
 * the binary format. All is little-endian.
 */
#ifndef NETLOGGER_FORMAT_VARINT_H
#define NETLOGGER_FORMAT_VARINT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NL_VARINT_SIZE = 10 }; /* bytes of the longest, and the room that putting any takes */

/* nl_varint_put for more than one byte: up to 56 bits are spread to groups of seven all at once, so that no branch
 * depends on how many bytes it takes. */
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
 * nl_varint_put for a processor that spreads bits by one instruction (BMI2), which the caller has made sure of. As
 * assembly, because the compiler lets its own form of it into functions only that are for such processors altogether.
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
    unsigned last = (unsigned)(63 - __builtin_clzll(value | 1)) & ~7u; /* the bit that its last byte begins with */
    value |= more & ((UINT64_C(1) << last) - 1);
    memcpy(at, &value, sizeof value);
    return at + last / 8 + 1;
}
#endif

/* Puts value at at, where there are NL_VARINT_SIZE bytes. Returns what follows it. */
static inline char *nl_varint_put(char *at, uint64_t value)
{
    if (value >= 0x80)
        return nl_varint_put_long(at, value);
    *at = (char)value;
    return at + 1;
}

/* nl_varint_put, for whom the caller knows whether nl_varint_put_bmi2 will do: bmi2 is a constant wherever this stands.
 */
static inline __attribute__((always_inline)) char *nl_varint_put_by(char *at, uint64_t value, bool bmi2)
{
#ifdef __x86_64__
    if (bmi2)
        return nl_varint_put_bmi2(at, value);
#endif
    (void)bmi2;
    return nl_varint_put(at, value);
}

/* Small numbers of either sign as small numbers, and back. */
static inline uint64_t nl_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t nl_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* nl_varint_get for more than one byte. */
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

/* Gets a number from [at, end). Returns what follows it, NULL when it runs past end or beyond 64 bits. */
static inline const char *nl_varint_get(const char *at, const char *end, uint64_t *value)
{
    if (__builtin_expect(at < end && (unsigned char)*at < 0x80, 1)) {
        *value = (unsigned char)*at;
        return at + 1;
    }
    return nl_varint_get_long(at, end, value);
}

/* As nl_varint_get, for who wants to know only that a number is there: looks at eight bytes at once where it may. */
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

/* Integers of fixed size. The puts return what follows. */
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

/* A double as its 8 bytes. */
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
