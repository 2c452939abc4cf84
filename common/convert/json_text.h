/*
 * Writes JSON (RFC 8259) for conversions, which must be fast.
 *
 * The functions write invalid UTF-8 as {"$bytes": "BASE64"}, and a number that JSON cannot represent as {"$double":
 * "inf"}. Any thread may call these functions.
 */
#ifndef NETLOGGER_CONVERT_JSON_TEXT_H
#define NETLOGGER_CONVERT_JSON_TEXT_H

#include "convert/convert.h"
#include "program/encoding.h"

/* Appends text that needs no escapes. */
static inline void json_put(nl_buffer *out, const char *text, size_t size)
{
    nl_buffer_append(out, text, size);
}
#define JSON_PUT(out, literal) json_put(out, literal, sizeof literal - 1)

/* Appends text as a string or as {"$bytes"}. */
void json_put_text(nl_buffer *out, nl_string text);

/* Appends text as a string, with bytes that are not UTF-8 replaced by U+FFFD. */
void json_put_name(nl_buffer *out, nl_string text);

/*
 * Appends a value. If `typed` is true, writes the value according to its type. Otherwise, writes text that
 * json_is_number accepts as a number.
 */
void json_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s);

/* Returns a double as text that JSON distinguishes from an integer; `scratch` is as in nl_field_text. */
nl_string json_double_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE + 2]);

/* Returns whether the text is a number that every JSON program would read and write again as the same text. */
bool json_is_number(nl_string text);

/* Writes times in ISO 8601. Caches the text of the latest second. Initialize the structure with zeros. */
typedef struct time_text {
    int64_t second;
    char text[24];
    size_t size;
} time_text;
void time_text_put(time_text *t, int64_t time_ns, nl_buffer *out);

#endif
