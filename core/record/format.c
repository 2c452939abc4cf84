#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/block.h"
#include "record/bp.h"
#include "record/bytes.h"
#include "record/ulm.h"
#include "record/format.h"

#include <string.h>
#include <strings.h>

static const struct {
    nl_format format;
    const char *name;
} names[] = {{NL_FORMAT_ULM, "ulm"}, {NL_FORMAT_BP, "bp"}, {NL_FORMAT_NLB, "nlb"}};

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

nl_format nl_format_of_name(const char *name)
{
    size_t size = strlen(name);
    return size >= 4 && strcasecmp(name + size - 4, ".nlb") == 0 ? NL_FORMAT_NLB : NL_FORMAT_UNKNOWN;
}

const nl_text_format *nl_text_format_of(nl_format format)
{
    switch (format) {
    case NL_FORMAT_ULM:
        return &nl_ulm;
    case NL_FORMAT_BP:
        return &nl_bp;
    case NL_FORMAT_NLB:
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

/* Where a record may begin in a line. */
typedef enum beginning { AT_FIELD, ANYWHERE } beginning;

/*
 * Whether the line has a time of that format: at the start of a field, whatever its value, or anywhere in the form that
 * the format's writers use (a prefix may touch the record, "stats:DATE=", and so may the rest of one that was cut).
 */
static bool has_time(const nl_text_format *format, const char *line, const char *end, beginning where)
{
    nl_string name = format->names[NL_MEMBER_TIME];
    const char *at = line;
    while ((at = memmem(at, (size_t)(end - at), name.data, name.size)) != NULL) {
        const char *start = at;
        at += name.size;
        if (at == end || *at != '=')
            continue;
        if (where == AT_FIELD ? start == line || nl_byte_is_blank(start[-1]) : format->starts_record(at + 1, end, true))
            return true;
    }
    return false;
}

static bool begins_with(const char *line, size_t size, const char *text)
{
    size_t wanted = strlen(text);
    return size >= wanted && memcmp(line, text, wanted) == 0;
}

nl_format nl_text_format_of_line(const char *line, size_t size)
{
    const char *end = line + size;
    if (begins_with(line, size, "DATE="))
        return NL_FORMAT_ULM;
    if (begins_with(line, size, "ts=") && nl_bp.starts_record(line + 3, end, false))
        return NL_FORMAT_BP;
    for (beginning where = AT_FIELD; where <= ANYWHERE; where++) {
        if (has_time(&nl_ulm, line, end, where))
            return NL_FORMAT_ULM;
        if (has_time(&nl_bp, line, end, where))
            return NL_FORMAT_BP;
    }
    return NL_FORMAT_UNKNOWN;
}

nl_format nl_format_detect(const char *data, size_t size)
{
    const char *end = data + size;
    data += nl_text_header_size(data, size);
    if (begins_with(data, (size_t)(end - data), NL_BLOCK_MAGIC))
        return NL_FORMAT_NLB;
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

nl_status nl_record_encode(const nl_record *record, nl_format format, nl_buffer *out)
{
    const nl_text_format *text = nl_text_format_of(format);
    NL_REQUIRE(text != NULL, "not a text format", NL_FAILED);
    NL_REQUIRE(record != NULL && out != NULL, "record or out is NULL", NL_FAILED);
    if (record->flags & NL_RECORD_INCOMPLETE)
        return nl_memory_failed();
    return nl_text_encode(text, record, NULL, NULL, out) ? NL_OK : NL_FAILED;
}

nl_status nl_record_decode(nl_record *record, nl_format format, nl_fraction fraction, const char *line, size_t size)
{
    const nl_text_format *text = nl_text_format_of(format);
    NL_REQUIRE(text != NULL, "not a text format", NL_FAILED);
    NL_REQUIRE(record != NULL && (line != NULL || size == 0), "record or line is NULL", NL_FAILED);
    while (size > 0 && line[size - 1] == '\r')
        size--;
    size_t used;
    nl_record_clear(record);
    nl_status status = nl_text_decode(text, record, fraction, line, line + size, line + size, &used);
    if (record->flags & NL_RECORD_INCOMPLETE)
        status = nl_memory_failed();
    if (status != NL_OK)
        nl_record_clear(record);
    return status;
}
