/* What several formats need of text: UTF-8, strings of JSON, base64, the names of levels. Any thread. */
#ifndef NETLOGGER_PROGRAM_ENCODING_H
#define NETLOGGER_PROGRAM_ENCODING_H

#include <netlogger.h>

/* The size of the UTF-8 sequence at at, which is beyond ASCII; 0 when it is none. */
size_t utf8_size(const unsigned char *at, const unsigned char *end);

/* Appends text to out; each byte that is not part of valid UTF-8 becomes U+FFFD. */
void encoding_make_valid(nl_buffer *out, nl_string text);

/* Appends text as a string of JSON (RFC 8259), quotes included. False, with nothing appended, when it is no UTF-8. */
bool json_put_quoted(nl_buffer *out, nl_string text);

/* As json_put_quoted, whatever its bytes: each that is no UTF-8 becomes U+FFFD. */
void json_put_valid(nl_buffer *out, nl_string text);

/* Appends bytes as base64, without quotes. */
void base64_put(nl_buffer *out, nl_string bytes);

/* Base64 into bytes, which may be the same memory: its size, or SIZE_MAX when it is none. */
size_t base64_get(nl_string text, char *bytes);

/* The level as BP spells it, or, when it is none of its, as it was spelt; data is NULL when there is none. */
nl_string level_as_text(const nl_record *record);

#endif
