/* UTF-8, JSON strings, base64 and level names. Any thread may call these functions. */
#ifndef NETLOGGER_PROGRAM_ENCODING_H
#define NETLOGGER_PROGRAM_ENCODING_H

#include <netlogger.h>

/* Returns the size of the UTF-8 sequence at `at`, whose first byte is not ASCII; 0 if it is invalid. */
size_t utf8_size(const unsigned char *at, const unsigned char *end);

bool utf8_is_valid(nl_string text);

/* Appends text to `out`. Replaces each byte that is not part of valid UTF-8 with U+FFFD. */
void encoding_make_valid(nl_buffer *out, nl_string text);

/* Appends text as a JSON string with quotes. Returns false, and appends nothing, for invalid UTF-8. */
bool json_put_quoted(nl_buffer *out, nl_string text);

/* Appends bytes as base64, without quotes. */
void base64_put(nl_buffer *out, nl_string bytes);

/*
 * Decodes base64 into bytes, which may be the same memory as the input. Returns the size, or SIZE_MAX if the base64 is
 * invalid.
 */
size_t base64_get(nl_string text, char *bytes);

/*
 * Returns the level as BP spells it. If the record spells the level in its own way, and not as ULM does, returns the
 * record's spelling. data is NULL if the record has no level.
 */
nl_string level_as_text(const nl_record *record);

#endif
