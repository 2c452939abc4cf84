/*
 * JSON (RFC 8259) as nlconv writes it.
 *
 * Text that is no UTF-8 is an object of one member, {"$bytes": "BASE64"}, and a number that JSON has no word for is
 * {"$double": "inf"}.
 */
#ifndef NETLOGGER_CONVERT_JSON_TEXT_H
#define NETLOGGER_CONVERT_JSON_TEXT_H

#include "convert/convert.h"
#include "program/encoding.h"

/* Appends a word of JSON that needs no escapes. */
static inline void json_put(nl_buffer *out, const char *text, size_t size)
{
    nl_buffer_append(out, text, size);
}
#define JSON_PUT(out, literal) json_put(out, literal, sizeof literal - 1)

/* Appends text, whatever its bytes. */
void json_put_text(nl_buffer *out, nl_string text);

/* Appends a field's value. typed: as its type says; otherwise text that is a number, and comes back as it is, is one.
 */
void json_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s);

/* A double as JSON tells it from an integer, or the word of one that is no JSON; scratch as nl_field_text. */
nl_string json_double_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE + 2]);

/* Whether text is a number that is read from JSON and written again as the same text, in every program. */
bool json_is_number(nl_string text);

/* A time in ISO 8601, as BP has it; most of a row are in the same second, which is kept. Zeroes at first. */
typedef struct time_text {
    int64_t second;
    char text[24];
    size_t size; /* of the second's */
} time_text;
void time_text_put(time_text *t, int64_t time_ns, nl_buffer *out);

#endif
