#include "config.h"

#include "convert/json_text.h"
#include "base/buffer.h"
#include "base/time_internal.h"

#include <math.h>
#include <string.h>

void json_put_text(nl_buffer *out, nl_string text)
{
    if (json_put_quoted(out, text))
        return;
    JSON_PUT(out, "{\"$bytes\":\"");
    base64_put(out, text);
    JSON_PUT(out, "\"}");
}

void json_put_name(nl_buffer *out, nl_string text)
{
    if (text.data != NULL && json_put_quoted(out, text))
        return;
    nl_buffer valid = {0};
    encoding_make_valid(&valid, text);
    json_put_quoted(out, (nl_string){valid.data, valid.size});
    nl_buffer_free(&valid);
}

/* ---- numbers ---- */

bool json_is_number(nl_string text)
{
    /*
     * A number may have DIGITS digits, of which DECIMALS follow the decimal point. A program that reads such a number
     * as a double and prints the double prints the same digits, without an exponent.
     */
    enum { DIGITS = 15, DECIMALS = 9 };
    const char *at = text.data, *end = at + text.size;
    if (text.size == 0 || text.size > DIGITS + 2)
        return false;
    bool negative = *at == '-';
    at += negative;
    const char *digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    size_t count = (size_t)(at - digits);
    if (count == 0 || count > DIGITS || (*digits == '0' && count > 1))
        return false;
    if (at == end)
        return !(negative && *digits == '0');
    if (*at++ != '.')
        return false;
    digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    size_t decimals = (size_t)(at - digits);
    return at == end && decimals > 0 && decimals <= DECIMALS && count + decimals <= DIGITS && at[-1] != '0';
}

nl_string json_double_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE + 2])
{
    nl_string text = nl_field_text(field, scratch);
    if (!isfinite(field->double_value))
        return text;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '.' || text.data[i] == 'e')
            return text;
    memcpy(scratch + text.size, ".0", 2);
    return (nl_string){scratch, text.size + 2};
}

void json_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s)
{
    char scratch[NL_FIELD_TEXT_SIZE + 2];
    nl_string text;
    switch (field->type) {
    case NL_TYPE_STRING:
        if (!typed && json_is_number(field->string))
            json_put(out, field->string.data, field->string.size);
        else
            json_put_text(out, field->string);
        return;
    case NL_TYPE_DOUBLE:
        text = json_double_text(field, scratch);
        if (isfinite(field->double_value)) {
            json_put(out, text.data, text.size);
            return;
        }
        JSON_PUT(out, "{\"$double\":\"");
        json_put(out, text.data, text.size);
        JSON_PUT(out, "\"}");
        return;
    case NL_TYPE_UINT:
        if (field->uint_value <= INT64_MAX)
            sink_lose(s, LOSS_UNSIGNED);
        break;
    case NL_TYPE_INT:
    case NL_TYPE_BOOL:
        break;
    }
    text = nl_field_text(field, scratch);
    json_put(out, text.data, text.size);
}

/* ---- times ---- */

void time_text_put(time_text *t, int64_t time_ns, nl_buffer *out)
{
    int64_t second = time_ns / NL_NS_PER_SECOND, rest = time_ns % NL_NS_PER_SECOND;
    if (rest < 0) {
        rest += NL_NS_PER_SECOND;
        second--;
    }
    if (t->size == 0 || second != t->second) {
        char text[NL_TIME_TEXT_SIZE];
        nl_time_format_iso(time_ns, text);
        t->size = strlen("2012-03-14T14:04:46");
        memcpy(t->text, text, t->size);
        t->second = second;
    }
    nl_buffer_reserve(out, NL_TIME_TEXT_SIZE);
    char *to = out->data + out->size;
    memcpy(to, t->text, t->size);
    to += t->size;
    *to = '.';
    int digits = rest % 1000 == 0 ? 6 : 9;
    rest = digits == 6 ? rest / 1000 : rest;
    for (int i = digits; i > 0; i--, rest /= 10)
        to[i] = (char)('0' + rest % 10);
    to[digits + 1] = 'Z';
    out->size = (size_t)(to + digits + 2 - out->data);
}
