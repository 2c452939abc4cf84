/* What several formats need of text: UTF-8, base64, the names of levels. */
#ifndef NETLOGGER_PROGRAM_ENCODING_H
#define NETLOGGER_PROGRAM_ENCODING_H

#include <netlogger.h>

/* The size of the UTF-8 sequence at at, which is beyond ASCII; 0 when it is none. */
size_t utf8_size(const unsigned char *at, const unsigned char *end);

/* Appends bytes as base64, without quotes. */
void base64_put(nl_buffer *out, nl_string bytes);

/* Base64 into bytes, which may be the same memory: its size, or SIZE_MAX when it is none. */
size_t base64_get(nl_string text, char *bytes);

/* The level as BP spells it, or, when it is none of its, as it was spelt; data is NULL when there is none. */
nl_string level_as_text(const nl_record *record);

#endif
