#include "config.h"

#include "base/text.h"
#include "program/encoding.h"
#include "base/level.h"
#include "base/buffer.h"
#include "record/terminal.h"

#include <string.h>

size_t utf8_size(const unsigned char *at, const unsigned char *end)
{
    uint32_t code;
    size_t size = nl_utf8_read(at, end, &code);
    return code != UINT32_MAX ? size : 0;
}

/* ---- strings of JSON ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t has_zero(uint64_t v)
{
    return (v - EACH(1)) & ~v & EACH(0x80);
}

/* Returns whether any of the eight bytes is a control byte, a quote, a backslash, or not ASCII. */
static inline bool is_special8(uint64_t v)
{
    return ((((v - EACH(0x20)) & ~v) | v) & EACH(0x80)) != 0 || has_zero(v ^ EACH('"')) != 0 ||
           has_zero(v ^ EACH('\\')) != 0;
}

static char *put_escape(char *to, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    switch (byte) {
    case '"':
    case '\\':
        *to++ = (char)byte;
        return to;
    case '\n':
        *to++ = 'n';
        return to;
    case '\t':
        *to++ = 't';
        return to;
    case '\r':
        *to++ = 'r';
        return to;
    }
    memcpy(to, "u00", 3);
    to[3] = digits[byte >> 4];
    to[4] = digits[byte & 15];
    return to + 5;
}

/*
 * Writes the JSON form of the character at *at, and moves *at to the next character. Returns the end of the written
 * text, or NULL for invalid UTF-8.
 */
static char *put_one(char *to, const unsigned char **at, const unsigned char *end)
{
    unsigned char byte = **at;
    if (byte >= 0x80) {
        size_t size = utf8_size(*at, end);
        memcpy(to, *at, size);
        *at += size;
        return size > 0 ? to + size : NULL;
    }
    ++*at;
    if (byte < ' ' || byte == '"' || byte == '\\')
        return put_escape(to, byte);
    *to = (char)byte;
    return to + 1;
}

bool json_put_quoted(nl_buffer *out, nl_string text)
{
    nl_buffer_reserve(out, 6 * text.size + 2);
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    char *to = out->data + out->size;
    *to++ = '"';
    while (at < end) {
        uint64_t eight;
        if (end - at >= 8) {
            memcpy(&eight, at, 8);
            if (!is_special8(eight)) {
                memcpy(to, &eight, 8);
                to += 8;
                at += 8;
                continue;
            }
        }
        to = put_one(to, &at, end);
        if (to == NULL)
            return false;
    }
    *to++ = '"';
    out->size = (size_t)(to - out->data);
    return true;
}

bool utf8_is_valid(nl_string text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : utf8_size(at, end);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

void encoding_make_valid(nl_buffer *out, nl_string text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    nl_buffer_reserve(out, 3 * text.size + 1);
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : utf8_size(at, end);
        nl_buffer_append(out, size > 0 ? (const char *)at : "\xef\xbf\xbd", size > 0 ? size : 3);
        at += size > 0 ? size : 1;
    }
}

/* ---- base64 ---- */

void base64_put(nl_buffer *out, nl_string bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    nl_buffer_reserve(out, (bytes.size + 2) / 3 * 4);
    char *to = out->data + out->size;
    for (size_t i = 0; i < bytes.size; i += 3, to += 4) {
        size_t count = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t three = (uint32_t)(unsigned char)bytes.data[i] << 16;
        if (count > 1)
            three |= (uint32_t)(unsigned char)bytes.data[i + 1] << 8;
        if (count > 2)
            three |= (unsigned char)bytes.data[i + 2];
        to[0] = letters[three >> 18];
        to[1] = letters[three >> 12 & 63];
        to[2] = count > 1 ? letters[three >> 6 & 63] : '=';
        to[3] = count > 2 ? letters[three & 63] : '=';
    }
    out->size = (size_t)(to - out->data);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

size_t base64_get(nl_string text, char *bytes)
{
    while (text.size > 0 && text.data[text.size - 1] == '=')
        text.size--;
    uint32_t bits = 0;
    size_t count = 0, size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)value;
        if ((count += 6) >= 8)
            bytes[size++] = (char)(bits >> (count -= 8) & 0xff);
    }
    return text.size % 4 == 1 ? SIZE_MAX : size;
}

nl_string level_as_text(const nl_record *record)
{
    nl_string text = record->level_text;
    const char *name = nl_level_bp_name(record->level);
    if (record->level == NL_LEVEL_NONE)
        return text;
    if (text.data != NULL && !nl_string_is(text, nl_level_name(record->level)))
        return text;
    return nl_string_of(name);
}
