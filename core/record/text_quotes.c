#include "config.h"

#include "record/text_quotes.h"

#include "record/bytes.h"

#include <string.h>

/* Returns the first unescaped quote, or NULL. */
static const char *find_quote(const char *at, const char *end)
{
    for (; at < end; at += 2) {
        at = nl_find_any(at, end, end, '"', '\\', '"');
        if (at == end)
            return NULL;
        if (*at == '"')
            return at;
    }
    return NULL;
}

/* Returns whether only a value in quotes that a field or the end of the line follows counts as quoted. */
static bool needs_field(const nl_text_format *format)
{
    return format->decode == nl_text_decode_fields;
}

static bool begins_with_name(const char *at, const char *end)
{
    const char *equals = nl_find_name_end(at, end, end);
    return equals < end && *equals == '=' && nl_byte_is(*at, NL_BYTE_NAME_FIRST);
}

/* Returns whether a quote at `quote` may close a value. */
static bool may_close(const nl_text_format *format, const char *quote, const char *end)
{
    const char *at = quote + 1;
    if (!needs_field(format))
        return true;
    if (at < end && !nl_byte_is_blank(*at))
        return false;
    at = nl_skip_blanks(at, end);
    return at == end || begins_with_name(at, end);
}

/* Returns the quote that begins the value of the field in a word, or NULL. */
static const char *find_opening(const nl_text_format *format, const char *word, const char *word_end)
{
    const char *equals = memchr(word, '=', (size_t)(word_end - word));
    if (equals == NULL || equals == word || equals + 1 == word_end || equals[1] != '"' ||
        (needs_field(format) && !begins_with_name(word, word_end)))
        return NULL;
    return equals + 1;
}

bool nl_text_is_open(const nl_text_format *format, const char *line, const char *end)
{
    if (memchr(line, '"', (size_t)(end - line)) == NULL)
        return false;
    for (const char *at = nl_skip_blanks(line, end); at < end; at = nl_skip_blanks(at, end)) {
        const char *word_end = nl_find_any(at, end, end, ' ', '\t', ' ');
        const char *opening = find_opening(format, at, word_end);
        const char *closing = opening != NULL ? find_quote(opening + 1, end) : NULL;
        if (opening != NULL && closing == NULL)
            return true;
        at = closing != NULL && may_close(format, closing, end) ? closing + 1 : word_end;
    }
    return false;
}

bool nl_text_has_record(const char *line, const char *end)
{
    const size_t size = (size_t)(end - line);
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        const nl_text_format *text = nl_text_format_of(format);
        if (text == NULL)
            continue;
        if (text->begins[0] == '\0'
                ? text->detect(text, line, end, NL_TEXT_AT_FIELD)
                : nl_text_begins_as(text, line, size) || nl_text_has_time(text, line, end, NL_TEXT_ANYWHERE))
            return true;
    }
    return false;
}

nl_text_quote nl_text_continue(const nl_text_format *format, const char *line, const char *end)
{
    const char *closing = find_quote(line, end);
    if (nl_text_has_record(line, end))
        return NL_TEXT_QUOTE_WRONG;
    if (closing == NULL)
        return NL_TEXT_QUOTE_OPEN;
    if (!may_close(format, closing, end))
        return NL_TEXT_QUOTE_WRONG;
    return nl_text_is_open(format, closing + 1, end) ? NL_TEXT_QUOTE_OPEN : NL_TEXT_QUOTE_CLOSED;
}

/* Returns the end of a line without '\r'. */
static const char *trim(const char *line, const char *newline)
{
    while (newline > line && newline[-1] == '\r')
        newline--;
    return newline;
}

/* Returns whether the record of the line at `line` may continue after `end`, where a line ends. */
static bool may_continue(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line)), *text_end = trim(line, newline);
    const nl_text_format *format = nl_text_format_of_line(line, (size_t)(text_end - line));
    if (format == NULL || !nl_text_is_open(format, line, text_end))
        return false;
    for (line = newline + 1; line < end; line = newline + 1) {
        newline = memchr(line, '\n', (size_t)(end - line));
        if (nl_text_continue(format, line, trim(line, newline)) != NL_TEXT_QUOTE_OPEN)
            return false;
    }
    return true;
}

size_t nl_text_cut(const char *data, size_t size)
{
    const char *newline = size > 0 ? memrchr(data, '\n', size) : NULL;
    if (newline == NULL)
        return 0;
    const char *whole = newline + 1, *line;
    for (; (size_t)(whole - newline) <= NL_TEXT_LINES_SIZE_MAX; newline = line - 1) {
        const char *before = newline > data ? memrchr(data, '\n', (size_t)(newline - data)) : NULL;
        line = before != NULL ? before + 1 : data;
        if (nl_text_has_record(line, trim(line, newline)))
            return (size_t)((may_continue(line, whole) ? line : whole) - data);
        if (line == data)
            break;
    }
    return (size_t)(whole - data);
}
