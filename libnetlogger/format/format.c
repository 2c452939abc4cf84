#include "config.h"

#include "base/error.h"
#include "format/bp.h"
#include "format/bytes.h"
#include "format/ulm.h"

#include <string.h>
#include <strings.h>

static const struct {
    nl_format format;
    const char *name;
} names[] = {{NL_FORMAT_ULM, "ulm"}, {NL_FORMAT_BP, "bp"}};

enum { NAME_COUNT = sizeof names / sizeof names[0] };

const char *nl_format_name(nl_format format)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (names[i].format == format)
            return names[i].name;
    return "unknown";
}

nl_format nl_format_parse(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strcasecmp(names[i].name, name) == 0)
            return names[i].format;
    return NL_FORMAT_UNKNOWN;
}

const nl_text_format *nl_text_format_of(nl_format format)
{
    switch (format) {
    case NL_FORMAT_ULM:
        return &nl_ulm;
    case NL_FORMAT_BP:
        return &nl_bp;
    case NL_FORMAT_UNKNOWN:
        break;
    }
    return NULL;
}

size_t nl_text_header_size(const char *data, size_t size)
{
    static const char header[8] = {"ULM\0    "}, mark[3] = {"\xef\xbb\xbf"};
    size_t skip = 0;
    if (size >= sizeof header && memcmp(data, header, sizeof header) == 0)
        skip = sizeof header;
    if (size - skip >= sizeof mark && memcmp(data + skip, mark, sizeof mark) == 0)
        skip += sizeof mark;
    return skip;
}

/* Where name followed by '=' stands in a line, at its start or after a blank; NULL when nowhere. */
static const char *find_field(const char *line, size_t size, const char *name_and_equals)
{
    const char *end = line + size;
    size_t wanted = strlen(name_and_equals);
    for (const char *at = line; (at = memmem(at, (size_t)(end - at), name_and_equals, wanted)) != NULL; at += wanted)
        if (at == line || nl_byte_is_blank(at[-1]))
            return at;
    return NULL;
}

static bool begins_with(const char *line, size_t size, const char *text)
{
    size_t wanted = strlen(text);
    return size >= wanted && memcmp(line, text, wanted) == 0;
}

nl_format nl_text_format_of_line(const char *line, size_t size)
{
    if (begins_with(line, size, "DATE="))
        return NL_FORMAT_ULM;
    if (begins_with(line, size, "ts=") && nl_bp.starts_record(line + 3, line + size, false))
        return NL_FORMAT_BP;
    const char *date = find_field(line, size, "DATE="), *ts = find_field(line, size, "ts=");
    if (date != NULL)
        return NL_FORMAT_ULM;
    if (ts != NULL)
        return NL_FORMAT_BP;
    /* A prefix may touch the record: "stats:DATE=". */
    date = memmem(line, size, "DATE=", 5);
    return date != NULL && nl_ulm.starts_record(date + 5, line + size, true) ? NL_FORMAT_ULM : NL_FORMAT_UNKNOWN;
}

nl_format nl_format_detect(const char *data, size_t size)
{
    const char *end = data + size;
    data += nl_text_header_size(data, size);
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *line_end = newline != NULL ? newline : end;
        while (data < line_end && nl_byte_is_blank(*data))
            data++;
        nl_format format = nl_text_format_of_line(data, (size_t)(line_end - data));
        if (format != NL_FORMAT_UNKNOWN)
            return format;
        data = newline != NULL ? newline + 1 : end;
    }
    return NL_FORMAT_UNKNOWN;
}

void nl_record_encode(const nl_record *record, nl_format format, nl_buffer *out)
{
    const nl_text_format *text = nl_text_format_of(format);
    NL_REQUIRE(text != NULL, "not a text format");
    nl_text_encode(text, record, out);
}

nl_status nl_record_decode(nl_record *record, nl_format format, nl_fraction fraction, const char *line, size_t size)
{
    const nl_text_format *text = nl_text_format_of(format);
    NL_REQUIRE(text != NULL, "not a text format");
    while (size > 0 && line[size - 1] == '\r')
        size--;
    size_t used;
    nl_record_clear(record);
    nl_status status = nl_text_decode(text, record, fraction, line, line + size, line + size, &used);
    if (status != NL_OK)
        nl_record_clear(record);
    return status;
}
