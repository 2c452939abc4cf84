/* The table of formats, and functions over all formats. */
#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/block.h"
#include "record/text.h"
#include "record/bytes.h"
#include "record/format.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const nl_format_info nlb_info = {
    .format = NL_FORMAT_NLB,
    .name = "nlb",
    .description = "NetLogger binary format",
    .suffix = ".nlb",
    .suffix_is_format = true,
    .media_type = "application/octet-stream",
    .magic = {NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE},
};

/* One row per format. Detection tries ULM first, because its first bytes identify it. */
const nl_format_info *const nl_format_table[NL_FORMAT_COUNT] = {
    [NL_FORMAT_ULM] = &nl_ulm_info,
    [NL_FORMAT_BP] = &nl_bp_info,
    [NL_FORMAT_NLB] = &nlb_info,
    [NL_FORMAT_LOGFMT] = &nl_logfmt_info,
};

const nl_format_info *nl_format_get_info(nl_format format)
{
    return (unsigned)format < NL_FORMAT_COUNT ? nl_format_table[format] : NULL;
}

const char *nl_format_name(nl_format format)
{
    const nl_format_info *info = nl_format_get_info(format);
    return info != NULL ? info->name : "unknown";
}

static char choices[100];

static void make_choices(void)
{
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        size_t size = strlen(choices);
        snprintf(choices + size, sizeof choices - size, "|%s", nl_format_table[format]->name);
    }
}

const char *nl_format_choices(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_choices);
    return choices;
}

nl_format nl_format_parse(const char *name)
{
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++)
        if (strcasecmp(nl_format_table[format]->name, name) == 0)
            return format;
    return NL_FORMAT_UNKNOWN;
}

nl_format nl_format_of_name(const char *name)
{
    size_t size = strlen(name);
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        const nl_format_info *info = nl_format_table[format];
        size_t tail = strlen(info->suffix);
        if (info->suffix_is_format && size >= tail && strcasecmp(name + size - tail, info->suffix) == 0)
            return format;
    }
    return NL_FORMAT_UNKNOWN;
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

bool nl_text_has_time(const nl_text_format *format, const char *line, const char *end, nl_text_place where)
{
    nl_string name = format->names[NL_MEMBER_TIME];
    const char *at = line;
    while ((at = memmem(at, (size_t)(end - at), name.data, name.size)) != NULL) {
        const char *start = at;
        at += name.size;
        if (at == end || *at != '=')
            continue;
        if (where == NL_TEXT_AT_FIELD ? start == line || nl_byte_is_blank(start[-1])
                                      : format->starts_record(at + 1, end, true))
            return true;
    }
    return false;
}

/* Returns the position after the quote that closes the quote at `at`; `end` if the quote is not closed. */
static const char *skip_quoted(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at < end ? at + 1 : end;
}

bool nl_text_has_field(const char *line, const char *end, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = line; at < end; at++) {
        if ((size_t)(end - at) > size && at[size] == '=' && memcmp(at, name, size) == 0)
            return true;
        for (; at < end && !nl_byte_is_blank(*at); at++)
            if (*at == '=' && at + 1 < end && at[1] == '"')
                at = skip_quoted(at + 1, end) - 1;
    }
    return false;
}

/* Returns the first eight bytes of a line. If the line is shorter, zeros follow its bytes. */
static uint64_t first_word(const char *line, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, line, size < sizeof word ? size : sizeof word);
    return word;
}

const nl_text_format *nl_text_format_of_line(const char *line, size_t size)
{
    const char *end = line + size;
    uint64_t word = size >= sizeof word ? nl_text_load_word(line) : first_word(line, size);
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        const nl_text_format *text = nl_format_table[format]->text;
        if (text != NULL && (word & nl_text_load_word(text->begins_mask)) == nl_text_load_word(text->begins) &&
            (text->confirm == NULL || text->confirm(line, end)))
            return text;
    }
    for (nl_text_place where = NL_TEXT_AT_FIELD; where <= NL_TEXT_ANYWHERE; where++) {
        for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
            const nl_text_format *text = nl_format_table[format]->text;
            if (text != NULL && text->detect(text, line, end, where))
                return text;
        }
    }
    return NULL;
}

static nl_format format_of_magic(const char *data, size_t size)
{
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        nl_string magic = nl_format_table[format]->magic;
        if (magic.data != NULL && size >= magic.size && memcmp(data, magic.data, magic.size) == 0)
            return format;
    }
    return NL_FORMAT_UNKNOWN;
}

nl_format nl_format_detect(const char *data, size_t size)
{
    const char *end = data + size;
    data += nl_text_header_size(data, size);
    nl_format binary = format_of_magic(data, (size_t)(end - data));
    if (binary != NL_FORMAT_UNKNOWN)
        return binary;
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *line_end = newline != NULL ? newline : end;
        while (data < line_end && nl_byte_is_blank(*data))
            data++;
        const nl_text_format *text = nl_text_format_of_line(data, (size_t)(line_end - data));
        if (text != NULL)
            return text->format;
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
