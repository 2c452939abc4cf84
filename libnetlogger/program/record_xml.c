#include "config.h"

#include "program/record_xml.h"

#include "program/encoding.h"

#include <stdio.h>
#include <string.h>

/* Bytes that stand for themselves, in text and in attributes: most that there are. */
static const bool is_plain[256] = {[' '] = true,          ['!'] = true, ['#' ... '%'] = true,
                                   ['\'' ... ';'] = true, ['='] = true, ['?' ... '~'] = true};

/* What stands for a byte; NULL: itself. In attributes white space must be told from what parsers make of it. */
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

/* The size of the character at at, 0 when XML can't hold it. */
static size_t character(const unsigned char *at, const unsigned char *end)
{
    if (*at < 0x80)
        return *at >= ' ' || *at == '\n' || *at == '\t' || *at == '\r';
    size_t size = utf8_size(at, end);
    bool is_none = size == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe; /* U+FFFE and U+FFFF */
    return is_none ? 0 : size;
}

bool xml_put_text(nl_buffer *out, nl_string text, bool attribute)
{
    nl_buffer_reserve(out, 6 * text.size);
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    char *to = out->data + out->size;
    for (;;) {
        while (at < end && is_plain[*at])
            *to++ = (char)*at++;
        if (at == end)
            break;
        size_t size = character(at, end);
        if (size == 0)
            return false;
        const char *instead = reference((char)*at, attribute);
        if (instead != NULL)
            to = stpcpy(to, instead);
        else
            to = mempcpy(to, at, size);
        at += size;
    }
    out->size = (size_t)(to - out->data);
    return true;
}

#define PUT(out, literal) nl_buffer_append(out, literal, sizeof(literal) - 1)

/* Whether it had to be put in base64. */
static bool put_attribute(nl_buffer *out, const char *name, nl_string text)
{
    if (text.data == NULL)
        return false;
    PUT(out, " ");
    nl_buffer_append(out, name, strlen(name));
    PUT(out, "=\"");
    bool as_it_is = xml_put_text(out, text, true);
    if (!as_it_is)
        base64_put(out, text);
    PUT(out, "\"");
    return !as_it_is;
}

/* The type of a field that is no text, and its value, in which nothing needs to be replaced. */
static void put_number(nl_buffer *out, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    const char *type = xml_type_name(field->type);
    nl_string text = nl_field_text(field, scratch);
    PUT(out, "\" t=\"");
    nl_buffer_append(out, type, strlen(type));
    PUT(out, "\">");
    nl_buffer_append(out, text.data, text.size);
}

static void put_string(nl_buffer *out, nl_string text)
{
    size_t before = out->size;
    PUT(out, "\">");
    if (xml_put_text(out, text, false))
        return;
    out->size = before;
    PUT(out, "\" e=\"base64\">");
    base64_put(out, text);
}

static void put_field(nl_buffer *out, const nl_field *field)
{
    PUT(out, "<f n=\"");
    nl_buffer_append(out, field->name.data, field->name.size);
    if (field->type != NL_TYPE_STRING)
        put_number(out, field);
    else
        put_string(out, field->string);
    PUT(out, "</f>");
}

void record_xml_put(const nl_record *record, nl_string time, const char *space, nl_buffer *out)
{
    const struct {
        const char *name;
        nl_string text;
    } members[] = {
        {"event", record->event}, {"level", level_as_text(record)}, {"host", record->host}, {"prog", record->prog}};
    char packed[40] = "";
    size_t used = 0;
    PUT(out, "<record");
    if (space != NULL)
        put_attribute(out, "xmlns", (nl_string){space, strlen(space)});
    put_attribute(out, "time", time);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (put_attribute(out, members[i].name, members[i].text))
            used +=
                (size_t)snprintf(packed + used, sizeof packed - used, "%s%s", used == 0 ? "" : " ", members[i].name);
    if (used > 0)
        put_attribute(out, "base64", (nl_string){packed, used});
    PUT(out, ">");
    for (size_t i = 0; i < record->field_count; i++)
        put_field(out, &record->fields[i]);
    PUT(out, "</record>");
}
