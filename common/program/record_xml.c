#include "config.h"

#include "program/record_xml.h"

#include "program/encoding.h"
#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

/* Bytes that need no replacement in text and attributes. */
static const bool is_plain[256] = {[' '] = true,          ['!'] = true, ['#' ... '%'] = true,
                                   ['\'' ... ';'] = true, ['='] = true, ['?' ... '~'] = true};

enum {
    EXPANSION_MAX = 6, /* &quot; */
    FRAME_SIZE = 128,  /* maximum size of the tags and attribute names of a record or field */
};

/*
 * Returns the replacement of a byte, or NULL. In attributes, also replaces white space, because parsers would change
 * it.
 */
static const char *reference(char byte, bool attribute)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return attribute ? "&quot;" : NULL;
    case '\n':
        return attribute ? "&#10;" : NULL;
    case '\t':
        return attribute ? "&#9;" : NULL;
    case '\r':
        return "&#13;";
    }
    return NULL;
}

/* Returns the size of the character at `at`; 0 if XML does not allow it. */
static size_t character(const unsigned char *at, const unsigned char *end)
{
    if (*at < 0x80)
        return *at >= ' ' || *at == '\n' || *at == '\t' || *at == '\r';
    size_t size = utf8_size(at, end);
    bool is_none = size == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe; /* U+FFFE and U+FFFF */
    return is_none ? 0 : size;
}

/*
 * Writes `text` to `to` and escapes XML's special characters. `to` must have space for EXPANSION_MAX * text.size bytes.
 * Returns the end of the written text, or NULL if `text` contains a character that XML does not allow.
 */
static char *record_xml_put_text(char *to, nl_string text, bool attribute)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    for (;;) {
        while (at < end && is_plain[*at])
            *to++ = (char)*at++;
        if (at == end)
            return to;
        size_t size = character(at, end);
        if (size == 0)
            return NULL;
        const char *instead = reference((char)*at, attribute);
        to = instead != NULL ? stpcpy(to, instead) : mempcpy(to, at, size);
        at += size;
    }
}

bool xml_put_text(nl_buffer *out, nl_string text)
{
    nl_buffer_reserve(out, EXPANSION_MAX * text.size);
    char *to = record_xml_put_text(out->data + out->size, text, false);
    if (to != NULL)
        out->size = (size_t)(to - out->data);
    return to != NULL;
}

/* ---- records. The functions write at `to`, where record_xml_reserve has reserved memory ---- */

#define PUT(to, literal) ((char *)mempcpy(to, literal, sizeof(literal) - 1))

static char *put_base64(nl_buffer *out, char *to, nl_string bytes)
{
    out->size = (size_t)(to - out->data);
    base64_put(out, bytes);
    return out->data + out->size;
}

/* Writes an attribute unless text has no data. Sets *packed to whether the text is in base64. */
static char *put_attribute(nl_buffer *out, char *to, const char *name, nl_string text, bool *packed)
{
    *packed = false;
    if (text.data == NULL)
        return to;
    *to++ = ' ';
    to = PUT(stpcpy(to, name), "=\"");
    char *end = record_xml_put_text(to, text, true);
    *packed = end == NULL;
    return PUT(*packed ? put_base64(out, to, text) : end, "\"");
}

static char *put_number(char *to, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    to = stpcpy(PUT(to, "\" t=\""), xml_type_name(field->type));
    return mempcpy(PUT(to, "\">"), text.data, text.size);
}

static char *put_string(nl_buffer *out, char *to, nl_string text)
{
    char *end = record_xml_put_text(PUT(to, "\">"), text, false);
    return end != NULL ? end : put_base64(out, PUT(to, "\" e=\"base64\">"), text);
}

static char *put_field(nl_buffer *out, char *to, const nl_field *field)
{
    to = mempcpy(PUT(to, "<f n=\""), field->name.data, field->name.size);
    to = field->type != NL_TYPE_STRING ? put_number(to, field) : put_string(out, to, field->string);
    return PUT(to, "</f>");
}

static void record_xml_reserve(const nl_record *record, size_t all_members, nl_buffer *out)
{
    size_t size = FRAME_SIZE + EXPANSION_MAX * all_members;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        size += FRAME_SIZE + NL_FIELD_TEXT_SIZE + field->name.size;
        size += field->type == NL_TYPE_STRING ? EXPANSION_MAX * field->string.size : 0;
    }
    nl_buffer_reserve(out, size);
}

void record_xml_put(const nl_record *record, nl_string time, const char *space, nl_buffer *out)
{
    const struct {
        const char *name;
        nl_string text;
    } members[] = {
        {"event", record->event}, {"level", level_as_text(record)}, {"host", record->host}, {"prog", record->prog}};
    enum { COUNT = sizeof members / sizeof members[0] };
    const nl_string spaces = {space, space != NULL ? strlen(space) : 0};
    char names[40] = "";
    size_t used = 0, all = time.size + spaces.size + sizeof names;
    for (size_t i = 0; i < COUNT; i++)
        all += members[i].text.size;
    record_xml_reserve(record, all, out);
    bool packed;
    char *to = put_attribute(out, PUT(out->data + out->size, "<record"), "xmlns", spaces, &packed);
    to = put_attribute(out, to, "time", time, &packed);
    for (size_t i = 0; i < COUNT; i++) {
        to = put_attribute(out, to, members[i].name, members[i].text, &packed);
        if (packed)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : " ", members[i].name);
    }
    if (used > 0)
        to = put_attribute(out, to, "base64", (nl_string){names, used}, &packed);
    to = PUT(to, ">");
    for (size_t i = 0; i < record->field_count; i++)
        to = put_field(out, to, &record->fields[i]);
    out->size = (size_t)(PUT(to, "</record>") - out->data);
}
