#include "config.h"

#include "base/error.h"
#include "format/bytes.h"
#include "format/text.h"

#include <string.h>

/* Bytes that follow can be put without asking, reserve having been called. */
static void put_bytes(nl_buffer *out, const char *data, size_t size)
{
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_byte(nl_buffer *out, char byte)
{
    out->data[out->size++] = byte;
}

static bool needs_quotes(nl_string value)
{
    unsigned classes = value.size == 0 ? NL_BYTE_QUOTED : 0;
    for (size_t i = 0; i < value.size; i++)
        classes |= nl_byte_class[(unsigned char)value.data[i]];
    return (classes & NL_BYTE_QUOTED) != 0;
}

static void put_escape(nl_buffer *out, char byte)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[][2] = {{'\n', 'n'}, {'\t', 't'}, {'\r', 'r'}, {'"', '"'}, {'\\', '\\'}};
    put_byte(out, '\\');
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (byte == letters[i][0]) {
            put_byte(out, letters[i][1]);
            return;
        }
    }
    put_byte(out, 'x');
    put_byte(out, digits[(unsigned char)byte >> 4]);
    put_byte(out, digits[byte & 15]);
}

/* Appends a value, in quotes when it could not be read back without. */
static void put_value(nl_buffer *out, nl_string value)
{
    if (!needs_quotes(value)) {
        nl_buffer_reserve(out, value.size);
        put_bytes(out, value.data, value.size);
        return;
    }
    nl_buffer_reserve(out, 4 * value.size + 2);
    put_byte(out, '"');
    for (size_t i = 0; i < value.size; i++) {
        if (nl_byte_is(value.data[i], NL_BYTE_ESCAPED))
            put_escape(out, value.data[i]);
        else
            put_byte(out, value.data[i]);
    }
    put_byte(out, '"');
}

/* Appends " NAME=", without the blank when it is the line's first. */
static void put_name(nl_buffer *out, nl_string name, bool first)
{
    nl_buffer_reserve(out, name.size + 2);
    if (!first)
        put_byte(out, ' ');
    put_bytes(out, name.data, name.size);
    put_byte(out, '=');
}

/* A level is written by the format's name for it, unless it was spelt in a way that is no format's. */
static nl_string level_text(const nl_text_format *format, const nl_record *record)
{
    nl_string text = record->level_text;
    const char *ulm = nl_level_name(record->level), *bp = nl_level_bp_name(record->level);
    bool plain = text.data == NULL || (text.size == strlen(ulm) && memcmp(text.data, ulm, text.size) == 0) ||
                 (text.size == strlen(bp) && memcmp(text.data, bp, text.size) == 0);
    if (record->level == NL_LEVEL_NONE || !plain)
        return text;
    const char *name = format->level_name(record->level);
    return (nl_string){name, strlen(name)};
}

static nl_string member_text(const nl_text_format *format, const nl_record *record, nl_member member, char *scratch)
{
    switch (member) {
    case NL_MEMBER_TIME:
        return (nl_string){scratch, format->format_time(record->time_ns, scratch)};
    case NL_MEMBER_HOST:
        return record->host;
    case NL_MEMBER_PROG:
        return record->prog;
    case NL_MEMBER_LEVEL:
        return level_text(format, record);
    case NL_MEMBER_EVENT:
        return record->event;
    case NL_MEMBER_NONE:
        break;
    }
    return (nl_string){NULL, 0};
}

/* Whether a field of that name would be read back as something else: as a standard one, or as one escaped here. */
static bool name_needs_escape(const nl_text_format *format, nl_string name)
{
    while (name.size > 2 && name.data[0] == '_' && name.data[1] == '.')
        name = (nl_string){name.data + 2, name.size - 2};
    return format->member(name.data, name.size) != NL_MEMBER_NONE;
}

void nl_text_encode(const nl_text_format *format, const nl_record *record, nl_buffer *out)
{
    _Static_assert((int)NL_TIME_TEXT_SIZE >= (int)NL_FIELD_TEXT_SIZE, "one scratch serves both");
    char scratch[NL_TIME_TEXT_SIZE];
    for (size_t i = 0; i < NL_MEMBER_COUNT; i++) {
        nl_member member = format->order[i];
        nl_string text = member_text(format, record, member, scratch);
        if (text.data == NULL)
            continue;
        put_name(out, format->names[member], i == 0);
        put_value(out, text);
    }
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        bool escape = name_needs_escape(format, field->name);
        if (escape)
            nl_buffer_append(out, " _.", 3);
        put_name(out, field->name, escape);
        put_value(out, nl_field_text(field, scratch));
    }
    nl_buffer_append(out, "\n", 1);
}
