/*
 * Characters that must not reach a terminal. Any program can write to a log, and users print logs with tail, less and
 * NetLogger's programs. A terminal obeys control characters, and bidirectional overrides change the visible order of a
 * line. Therefore, the text formats escape the following characters, and programs replace them:
 *
 * - bytes below the space, and DEL (0x7f)
 * - U+0080 to U+009F, as UTF-8 and as single bytes outside of valid UTF-8: some terminals treat them like ESC (0x9b is
 *   CSI)
 * - bidirectional marks, embeddings, overrides and isolates: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069
 *
 * All other bytes are unchanged, whether they are UTF-8 or not.
 */
#ifndef NETLOGGER_RECORD_TERMINAL_H
#define NETLOGGER_RECORD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * Decodes the UTF-8 character at `at`, which is before `end`, and sets *code to its code point. Returns its size in
 * bytes. For invalid UTF-8, returns 1 and sets *code to UINT32_MAX.
 */
size_t nl_utf8_read(const unsigned char *at, const unsigned char *end, uint32_t *code);

/*
 * Returns the size in bytes, 1 to 4, of the character at a position before `end`. Invalid UTF-8 has size 1. Sets
 * *controls to whether the character must not reach a terminal.
 */
size_t nl_terminal_character(const char *at, const char *end, bool *controls);

/* Returns whether text has a character that must not reach a terminal. nl_terminal_controls is faster. */
bool nl_terminal_controls_anywhere(const char *text, size_t size);

/*
 * Returns whether text has a character that must not reach a terminal. Printable ASCII text costs a few
 * instructions per 16 bytes.
 */
static inline bool nl_terminal_controls(const char *text, size_t size)
{
#ifdef __SSE2__
    if (size >=
        16) { /* after ' ' is subtracted, bytes from ' ' to '~' are at most '~' - ' ', and other bytes are greater */
        const __m128i space = _mm_set1_epi8(' ');
        __m128i maximum = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(text + size - 16)), space);
        for (size_t at = 0; at + 16 <= size; at += 16)
            maximum =
                _mm_max_epu8(maximum, _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(text + at)), space));
        const __m128i last = _mm_set1_epi8('~' - ' ');
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(maximum, last), last)) == 0xffff)
            return false;
    }
#endif
    return nl_terminal_controls_anywhere(text, size);
}

#endif
