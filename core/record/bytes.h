/*
 * Searches and classifies bytes. These are the inner loops of the text formats. On x86-64, they handle 16 bytes at a
 * time (SSE2).
 */
#ifndef NETLOGGER_RECORD_BYTES_H
#define NETLOGGER_RECORD_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Classes of bytes. */
enum {
    NL_BYTE_NAME_FIRST = 1, /* the byte may begin a name */
    NL_BYTE_NAME = 2,       /* the byte is valid in a name */
    NL_BYTE_QUOTED = 4,     /* a value with the byte requires quotes */
    NL_BYTE_ESCAPED = 8,    /* the byte requires an escape within quotes */
};
extern const unsigned char nl_byte_class[256];

/* Returns whether a byte is in at least one of the classes, a set of NL_BYTE_ bits. */
static inline bool nl_byte_is(char byte, unsigned classes)
{
    return (nl_byte_class[(unsigned char)byte] & classes) != 0;
}

/* Returns whether a byte separates fields. Other control bytes are part of values. */
static inline bool nl_byte_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Returns the position of the first byte in [at, end) that is not a blank, or `end`. */
static inline const char *nl_skip_blanks(const char *at, const char *end)
{
    while (at < end && nl_byte_is_blank(*at))
        at++;
    return at;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int nl_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Returns the position of the first byte a, b or c in [at, end), or `end`. The function may read memory up to `limit`,
 * which is at or after `end`. Therefore, it can compare 16 bytes at a time in short parts of a longer line.
 */
static inline const char *nl_find_any(const char *at, const char *end, const char *limit, char a, char b, char c)
{
#ifdef __SSE2__
    const __m128i as = _mm_set1_epi8(a), bs = _mm_set1_epi8(b), cs = _mm_set1_epi8(c);
    while (at < end && limit - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i equal = _mm_or_si128(_mm_cmpeq_epi8(bytes, as), _mm_cmpeq_epi8(bytes, bs));
        int found = _mm_movemask_epi8(_mm_or_si128(equal, _mm_cmpeq_epi8(bytes, cs)));
        if (found != 0) {
            at += __builtin_ctz((unsigned)found);
            return at < end ? at : end;
        }
        at += 16;
    }
    if (at >= end)
        return end;
#else
    (void)limit;
#endif
    while (at < end && *at != a && *at != b && *at != c)
        at++;
    return at;
}

/*
 * Searches [at, end) for a byte `first` that is followed, `distance` bytes later, by a byte `last`. Returns the
 * position of the first such byte `first`, or `end`. Finds a text by two of its bytes; see Mula, "SIMD-friendly
 * algorithms for substring searching" (2018).
 */
static inline const char *nl_find_pair(const char *at, const char *end, size_t distance, char first, char last)
{
#ifdef __SSE2__
    const __m128i firsts = _mm_set1_epi8(first), lasts = _mm_set1_epi8(last);
    for (; (size_t)(end - at) >= distance + 16; at += 16) {
        const __m128i begins = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)at), firsts);
        const __m128i ends = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(at + distance)), lasts);
        const int found = _mm_movemask_epi8(_mm_and_si128(begins, ends));
        if (found != 0)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    for (; (size_t)(end - at) > distance; at++)
        if (*at == first && at[distance] == last)
            return at;
    return end;
}

#ifdef __SSE2__
/* Returns 0xff for each byte that is valid in a name, and 0 for each other byte. */
static inline __m128i nl_name_bytes(__m128i bytes)
{
    __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('-')); /* digits, '-', '.' and '/'; '/' is removed below */
    __m128i in_name = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter),
                                   _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8('9' - '-')), digit));
    in_name = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('/')), in_name);
    return _mm_or_si128(in_name, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_')));
}
#endif

/*
 * Returns the position of the first byte in [at, end) that is invalid in names, or `end`. For `limit`, see nl_find_any.
 */
static inline const char *nl_find_name_end(const char *at, const char *end, const char *limit)
{
#ifdef __SSE2__
    while (at < end && limit - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        int others = _mm_movemask_epi8(nl_name_bytes(bytes)) ^ 0xffff;
        if (others != 0) {
            at += __builtin_ctz((unsigned)others);
            return at < end ? at : end;
        }
        at += 16;
    }
    if (at >= end)
        return end;
#else
    (void)limit;
#endif
    while (at < end && nl_byte_is(*at, NL_BYTE_NAME))
        at++;
    return at;
}

/* Returns a bit for each of the 64 bytes at `at`. A bit is set if its byte is a blank or '='. */
static inline uint64_t nl_find_stops(const char *at)
{
    uint64_t stops = 0;
#ifdef __SSE2__
#pragma GCC unroll 4
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i equal =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('=')));
        equal = _mm_or_si128(equal, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')));
        stops |= (uint64_t)(unsigned)_mm_movemask_epi8(equal) << i;
    }
#else
    for (unsigned i = 0; i < 64; i++)
        stops |= (uint64_t)(nl_byte_is_blank(at[i]) || at[i] == '=') << i;
#endif
    return stops;
}

/*
 * Returns whether the bytes at `at` begin with the first size bytes of text; `size` is at most 16. The function may
 * read 16 bytes of text, and memory up to `limit`.
 */
static inline bool nl_begins_as(const char *at, const char *text, size_t size, const char *limit)
{
#ifdef __SSE2__
    if (limit - at >= 16) {
        __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)at),
                                      _mm_loadu_si128((const __m128i *)(const void *)text));
        return (~(unsigned)_mm_movemask_epi8(same) & ((1u << size) - 1)) == 0;
    }
#endif
    return (size_t)(limit - at) >= size && memcmp(at, text, size) == 0;
}

#ifdef __SSE2__
/*
 * Returns a bit for each byte that requires quotes or may require them. Bytes of 0x80 and above may require quotes; the
 * signed comparison with ' ' finds them.
 */
static inline unsigned nl_quoted_bits(__m128i bytes)
{
    __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ' + 1));
    __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('=')));
    others = _mm_or_si128(others, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(127)));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, others));
}
#endif

/*
 * Copies a non-empty value of size bytes. Returns false if a byte requires quotes, or may require quotes because it is
 * 0x80 or above; the copy is then invalid. Does not access memory beyond size bytes.
 */
static inline bool nl_copy_unquoted(char *to, const char *from, size_t size)
{
#ifdef __SSE2__
    if (size >= 16) {
        unsigned bits = 0;
        for (size_t at = 0; at < size; at += 16) {
            size_t place = at + 16 <= size ? at : size - 16;
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + place));
            _mm_storeu_si128((__m128i *)(void *)(to + place), bytes);
            bits |= nl_quoted_bits(bytes);
        }
        return bits == 0;
    }
    if (size >= 8) {
        int64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
        return nl_quoted_bits(_mm_set_epi64x(last, first)) == 0;
    }
    if (size >= 4) {
        int32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + size - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + size - 4, &last, 4);
        return nl_quoted_bits(_mm_set_epi32(last, first, last, first)) == 0;
    }
#endif
    unsigned classes = 0;
    for (size_t i = 0; i < size; i++) {
        to[i] = from[i];
        classes |= nl_byte_class[(unsigned char)from[i]] | ((unsigned char)from[i] & 0x80);
    }
    return (classes & (NL_BYTE_QUOTED | 0x80)) == 0;
}

#endif
