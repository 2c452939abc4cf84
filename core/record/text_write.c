#include "config.h"

#include "base/memory.h"
#include "record/bytes.h"
#include "record/terminal.h"
#include "record/text.h"
#include "base/level.h"
#include "base/buffer.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, SLACK = 2 * BLOCK }; /* copying in blocks may write up to SLACK bytes too many */

/*
 * The functions write a line at the position `at` of a buffer, and return the new position. Functions that have the
 * parameter `out` reserve memory, and return NULL if memory runs out.
 */
static char *text_write_reserve(nl_buffer *out, const char *at, size_t size)
{
    out->size = (size_t)(at - out->data);
    return nl_buffer_reserve(out, size + SLACK) ? out->data + out->size : NULL;
}

static inline char *reserve_space(nl_buffer *out, char *at, size_t size)
{
    return (size_t)(out->data + out->capacity - at) >= size + SLACK ? at : text_write_reserve(out, at, size);
}

static inline char *put_bytes(char *at, const char *data, size_t size)
{
    nl_private_copy(at, data, size);
    return at + size;
}

/* Copies data in blocks of BLOCK bytes. At least BLOCK readable bytes must follow data. */
static inline char *put_blocks(char *at, const char *data, size_t size)
{
    for (size_t done = 0; done < size; done += BLOCK)
        memcpy(at + done, data + done, BLOCK);
    return at + size;
}

/* ---- values ---- */

static char *put_escape(char *at, char byte, const char *hex_escape)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[][2] = {{'\n', 'n'}, {'\t', 't'}, {'\r', 'r'}, {'"', '"'}, {'\\', '\\'}};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (byte == letters[i][0]) {
            *at++ = '\\';
            *at++ = letters[i][1];
            return at;
        }
    }
    at = stpcpy(at, (unsigned char)byte < 0x80 ? hex_escape : "\\x"); /* a reader would convert \u00HH to a two-byte
                                                                       * character */
    *at++ = digits[(unsigned char)byte >> 4];
    *at++ = digits[byte & 15];
    return at;
}

char *nl_text_put_quoted(char *at, nl_string value, const char *hex_escape)
{
    *at++ = '"';
    const char *end = value.data + value.size;
    for (const char *from = value.data; from < end;) {
        bool controls = false;
        size_t size = (unsigned char)*from < 0x80 ? 1 : nl_terminal_character(from, end, &controls);
        for (const char *behind = from + size; from < behind; from++) {
            if (controls || nl_byte_is(*from, NL_BYTE_ESCAPED))
                at = put_escape(at, *from, hex_escape);
            else
                *at++ = *from;
        }
    }
    *at++ = '"';
    return at;
}

/* Returns whether a value needs quotes. nl_copy_unquoted implements the same rule for ASCII. */
static bool needs_quotes(nl_string value)
{
    for (size_t i = 0; i < value.size; i++)
        if (nl_byte_is(value.data[i], NL_BYTE_QUOTED))
            return true;
    return value.size == 0 || nl_terminal_controls_anywhere(value.data, value.size);
}

/*
 * Writes a value, with quotes if necessary. The caller has reserved space for the value without quotes. Returns the
 * end, or NULL if memory runs out.
 */
static inline char *put_value(const nl_text_format *format, nl_buffer *out, char *at, nl_string value)
{
    if (value.size > 0 && nl_copy_unquoted(at, value.data, value.size))
        return at + value.size;
    if (!needs_quotes(value))
        return put_bytes(at, value.data, value.size);
    at = reserve_space(out, at, NL_TEXT_QUOTED_SIZE(value.size));
    return at != NULL ? nl_text_put_quoted(at, value, format->hex_escape) : NULL;
}

/* Returns the level's name in the format, or the level's text if the text is not a usual name of the level. */
static nl_string level_text(const nl_text_format *format, const nl_record *record)
{
    if (record->level == NL_LEVEL_NONE || !nl_level_has_name(record->level, record->level_text))
        return record->level_text;
    const char *name = format->level_name(record->level);
    return nl_string_of(name);
}

/* Returns whether a reader would mistake the name for a standard field or an escaped name. */
static bool name_needs_escape(const nl_text_format *format, nl_string name)
{
    while (name.size > 2 && name.data[0] == '_' && name.data[1] == '.')
        name = (nl_string){name.data + 2, name.size - 2};
    return nl_text_member(format, name.data, name.size) != NL_MEMBER_NONE;
}

/* ---- the common part of lines of one shape ---- */

static char *put_name(char *at, nl_string name, const char *before)
{
    at = stpcpy(at, before);
    at = put_bytes(at, name.data, name.size);
    *at++ = '=';
    return at;
}

/* Writes the standard fields after the time. Returns the end, or NULL if memory runs out. */
static char *put_members(const nl_text_format *format, const nl_record *record, nl_buffer *out, char *at)
{
    const nl_string texts[NL_MEMBER_COUNT] = {[NL_MEMBER_HOST] = record->host,
                                              [NL_MEMBER_PROG] = record->prog,
                                              [NL_MEMBER_LEVEL] = level_text(format, record),
                                              [NL_MEMBER_EVENT] = record->event};
    for (size_t i = 1; i < NL_MEMBER_COUNT; i++) {
        nl_member member = format->order[i];
        if (texts[member].data == NULL)
            continue;
        at = reserve_space(out, at, format->names[member].size + 3 + texts[member].size);
        at = at != NULL ? put_value(format, out, put_name(at, format->names[member], " "), texts[member]) : NULL;
        if (at == NULL)
            return NULL;
    }
    return at;
}

/* Puts the name of a field, and reserves space for its value. Returns the end, or NULL if memory runs out. */
static char *put_field_name(const nl_text_format *format, nl_string name, nl_buffer *out, char *at, size_t value_size)
{
    at = reserve_space(out, at, name.size + 5 + value_size);
    return at != NULL ? put_name(at, name, name_needs_escape(format, name) ? " _." : " ") : NULL;
}

/*
 * Writes the texts of a shape to `text`, and the offsets of their ends in bytes to `ends`. Returns false if memory runs
 * out.
 */
static bool put_shape(const nl_text_format *format, const nl_record *record, nl_buffer *text, uint32_t *ends)
{
    if (!nl_buffer_reserve(text, SLACK))
        return false;
    char *at = put_members(format, record, text, text->data);
    for (size_t i = 0; at != NULL; i++) {
        ends[i] = (uint32_t)(at - text->data);
        if (i == record->field_count)
            return text_write_reserve(text, at, 0) != NULL; /* space for copying in blocks */
        at = put_field_name(format, record->fields[i].name, text, at, 0);
    }
    return false;
}

nl_text_shape *nl_text_shape_make(const nl_text_format *format, const nl_record *record)
{
    nl_text_shape *shape = malloc(sizeof *shape);
    uint32_t *ends = malloc((record->field_count + 1) * sizeof *ends);
    nl_buffer text = {0};
    if (shape == NULL || ends == NULL || !put_shape(format, record, &text, ends)) {
        nl_memory_failed();
        free(shape);
        free(ends);
        nl_buffer_free(&text);
        return NULL;
    }
    *shape = (nl_text_shape){.text = text.data, .ends = ends, .field_count = record->field_count};
    return shape;
}

void nl_text_shape_free(nl_text_shape *shape)
{
    if (shape == NULL)
        return;
    free(shape->text);
    free(shape->ends);
    free(shape);
}

/* ---- a line ---- */

/* Writes a value; numbers have no quotes. The caller has reserved NL_FIELD_TEXT_SIZE bytes. */
static inline char *put_field_value(const nl_text_format *format, nl_buffer *out, char *at, const nl_field *field)
{
    if (field->type == NL_TYPE_STRING)
        return put_value(format, out, at, field->string);
    nl_string text = nl_field_text(field, at);
    return text.data == at ? at + text.size : put_bytes(at, text.data, text.size);
}

static inline char *put_field(const nl_text_format *format, const nl_field *field, const nl_text_shape *shape, size_t i,
                              nl_buffer *out, char *at)
{
    size_t value_size = field->type == NL_TYPE_STRING ? field->string.size : NL_FIELD_TEXT_SIZE;
    if (shape != NULL) {
        size_t name_size = shape->ends[i + 1] - shape->ends[i];
        at = reserve_space(out, at, name_size + value_size);
        at = at != NULL ? put_blocks(at, shape->text + shape->ends[i], name_size) : NULL;
    } else {
        at = put_field_name(format, field->name, out, at, value_size);
    }
    return at != NULL ? put_field_value(format, out, at, field) : NULL;
}

bool nl_text_encode(const nl_text_format *format, const nl_record *record, const nl_text_shape *shape,
                    nl_known_second *known, nl_buffer *out)
{
    nl_known_second unknown = {0};
    nl_string time_name = format->names[NL_MEMBER_TIME];
    size_t head_size = shape != NULL ? shape->ends[0] : 0;
    const size_t begin = out->size;
    if (!nl_buffer_reserve(out, time_name.size + 1 + NL_TIME_TEXT_SIZE + head_size + SLACK))
        return false;
    char *at = put_bytes(out->data + out->size, time_name.data, time_name.size);
    *at++ = '=';
    at += format->put_time(record->time_ns, known != NULL ? known : &unknown, at);
    at = shape != NULL ? put_blocks(at, shape->text, head_size) : put_members(format, record, out, at);
    for (size_t i = 0; i < record->field_count && at != NULL; i++)
        at = put_field(format, &record->fields[i], shape, i, out, at);
    at = at != NULL ? reserve_space(out, at, 1) : NULL;
    if (at == NULL) {
        out->size = begin;
        return false;
    }
    *at++ = '\n';
    out->size = (size_t)(at - out->data);
    return true;
}
