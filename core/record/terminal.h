/*
 * Which text may reach a terminal, in one place. Logs are written by anybody, and are printed by tail, less and our own
 * programs. A terminal obeys control characters, and bidirectional overrides change the order in which a line is seen.
 * The text formats therefore escape, and programs replace,
 *
 * - bytes below the space, and DEL (0x7f)
 * - U+0080 to U+009F, as UTF-8 and as single bytes that are part of no valid UTF-8: on some terminals they begin
 *   sequences as ESC does (0x9b is CSI)
 * - the bidirectional marks, embeddings, overrides and isolates U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to
 *   U+2069
 *
 * All other bytes stay as they are, in UTF-8 or not.
 */
#ifndef NETLOGGER_RECORD_TERMINAL_H
#define NETLOGGER_RECORD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * The size in bytes of the character at at, which is before end: 1 to 4, or 1 for a byte that is part of no valid
 * UTF-8. *controls is whether it must not reach a terminal.
 */
size_t nl_terminal_character(const char *at, const char *end, bool *controls);

/* Whether any such character is in text. nl_terminal_controls is faster. */
bool nl_terminal_controls_anywhere(const char *text, size_t size);

/* Whether a character that must not reach a terminal is in text. Text of ASCII alone takes one pass of a few
 * instructions for 16 bytes. */
static inline bool nl_terminal_controls(const char *text, size_t size)
{
#ifdef __SSE2__
    if (size >= 16) { /* a byte from the space to '~' is at most '~' - ' ' after ' ' is taken off, and no other is */
        const __m128i space = _mm_set1_epi8(' ');
        __m128i most = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(text + size - 16)), space);
        for (size_t at = 0; at + 16 <= size; at += 16)
            most = _mm_max_epu8(most, _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(text + at)), space));
        const __m128i last = _mm_set1_epi8('~' - ' ');
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(most, last), last)) == 0xffff)
            return false;
    }
#endif
    return nl_terminal_controls_anywhere(text, size);
}

#endif
