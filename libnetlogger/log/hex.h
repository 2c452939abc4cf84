/*
 * Converts identifiers to and from lower-case hexadecimal digits, eight digits at a time.
 *
 * Eight digits are the eight bytes of a 64-bit word, whose lowest byte is the first digit. Each step below works on all
 * bytes of the word at the same time.
 */
#ifndef NETLOGGER_LOG_HEX_H
#define NETLOGGER_LOG_HEX_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NL_HEX_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Writes the 2 * size digits of size bytes; size is a multiple of 4. */
static inline void nl_hex_put(char *digits, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += 4) {
        uint32_t four;
        memcpy(&four, (const char *)bytes + i, sizeof four);
        uint64_t x = le32toh(four);
        x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
        x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
        x = (x >> 4 | x << 8) & NL_HEX_EACH(0x0f);
        uint64_t letters = (x + NL_HEX_EACH(6)) >> 4 & NL_HEX_EACH(1);
        x = htole64(x + NL_HEX_EACH('0') + letters * ('a' - '0' - 10));
        memcpy(digits + 2 * i, &x, sizeof x);
    }
}

/*
 * Sets *four to the bytes, in memory order, that the eight digits in x encode; the lowest byte of x is the first digit.
 * Returns 0 if all eight characters are lower-case hexadecimal digits. Otherwise, returns another value, and *four is
 * invalid.
 */
static inline uint64_t nl_hex_get_word(uint64_t x, uint32_t *four)
{
    /* '0' to '9' are 0x30 to 0x39; 'a' to 'f' are 0x61 to 0x66. */
    uint64_t letters = x >> 6 & NL_HEX_EACH(1), low = x & NL_HEX_EACH(0x0f);
    uint64_t wrong = (x & NL_HEX_EACH(0xf0)) ^ (NL_HEX_EACH(0x30) + letters * 0x30);
    wrong |= (low + NL_HEX_EACH(6) + letters * 3) & NL_HEX_EACH(0xf0);  /* the low half must be at most 9 in a digit,
                                                                         * and at most 6 in a letter */
    wrong |= ((low + letters * 15) ^ letters << 4) & NL_HEX_EACH(0x10); /* the low half of a letter must be at least
                                                                         * 1 */
    x = low + letters * 9;
    x = (x << 4 | x >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    *four = htole32((uint32_t)(x | x >> 16));
    return wrong;
}

/*
 * Sets size bytes from 2 * size digits; size is a multiple of 4. Returns false if a character is not a lower-case
 * hexadecimal digit, or all digits are zero.
 */
static inline bool nl_hex_get(const char *digits, void *bytes, size_t size)
{
    uint64_t wrong = 0;
    uint32_t any = 0;
    for (size_t i = 0; i < size; i += 4) {
        uint64_t x;
        uint32_t four;
        memcpy(&x, digits + 2 * i, sizeof x);
        wrong |= nl_hex_get_word(le64toh(x), &four);
        any |= four;
        memcpy((char *)bytes + i, &four, sizeof four);
    }
    return wrong == 0 && any != 0;
}

#endif
