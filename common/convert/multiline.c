/*
 * Reads text of the library's formats in which quoted values contain newlines, so that a record can have several lines.
 * Some programs write the text of statements or of errors in this way.
 *
 * A line with a time begins a record. If a quoted value of the record does not end in this line, the following lines up
 * to the closing quote belong to the record. These lines do not belong to the record if one of them has a time, or if
 * the record would be larger than RECORD_SIZE_MAX. Therefore, a missing quote never hides another record: the decoder
 * then gets each line as a record.
 */
#include "config.h"

#include "base/error.h"
#include "convert/convert.h"
#include "record/bytes.h"
#include "record/format.h"
#include "record/text.h"

#include <string.h>

enum {
    RECORD_SIZE_MAX = 64 << 10,
    DETECT_SIZE = 64 << 10, /* bytes of the input to examine, even if a program reads more bytes at once */
};

/* Returns the first quote without a backslash before it, or NULL. */
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

/* Returns whether a field or nothing follows the blanks at `at`. */
static bool is_between_fields(const char *at, const char *end)
{
    if (at < end && !nl_byte_is_blank(*at))
        return false;
    at = nl_skip_blanks(at, end);
    const char *equals = nl_find_name_end(at, end, end);
    return at == end || (equals > at && equals < end && *equals == '=');
}

/* If the word [word, word_end) has the form NAME="VALUE, returns the position of the quote. Otherwise, returns NULL. */
static const char *find_opening(const char *word, const char *word_end)
{
    const char *equals = nl_find_name_end(word, word_end, word_end);
    bool has_quote = equals > word && word_end - equals >= 2 && equals[0] == '=' && equals[1] == '"';
    return has_quote ? equals + 1 : NULL;
}

/* Returns whether a quoted value begins in [at, end) but does not end there. `at` must be outside quotes. */
static bool ends_in_quotes(const char *at, const char *end)
{
    while (at < end && memchr(at, '"', (size_t)(end - at)) != NULL) {
        at = nl_skip_blanks(at, end);
        const char *word_end = nl_find_any(at, end, end, ' ', '\t', ' ');
        const char *opening = find_opening(at, word_end);
        const char *closing = opening != NULL ? find_quote(opening + 1, end) : NULL;
        if (opening != NULL && closing == NULL)
            return true;
        at = closing != NULL && is_between_fields(closing + 1, end) ? closing + 1 : word_end;
    }
    return false;
}

/* Returns the end of the line [line, newline) without its carriage returns. */
static const char *trim_line(const char *line, const char *newline)
{
    while (newline > line && newline[-1] == '\r')
        newline--;
    return newline;
}

typedef enum record_state {
    RECORD_IS_LINE,   /* the first line is the whole record */
    RECORD_HAS_LINES, /* the record has several lines */
    RECORD_IS_OPEN,   /* more bytes decide this */
} record_state;

/*
 * Examines the record at `line`, where a line begins. All lines in [line, end) end with a newline. If the record has
 * several lines, sets *last to the newline that ends it.
 */
static record_state examine_record(const char *line, const char *end, const char **last)
{
    const char *start = line, *newline = memchr(line, '\n', (size_t)(end - line)), *line_end = trim_line(line, newline);
    if (memchr(line, '"', (size_t)(line_end - line)) == NULL ||
        nl_text_format_of_line(line, (size_t)(line_end - line)) == NULL || !ends_in_quotes(line, line_end))
        return RECORD_IS_LINE;
    for (line = newline + 1; line < end; line = newline + 1) {
        newline = memchr(line, '\n', (size_t)(end - line));
        line_end = trim_line(line, newline);
        if (newline - start > RECORD_SIZE_MAX || nl_text_format_of_line(line, (size_t)(line_end - line)) != NULL)
            return RECORD_IS_LINE;
        const char *closing = find_quote(line, line_end);
        if (closing != NULL && !is_between_fields(closing + 1, line_end))
            return RECORD_IS_LINE;
        if (closing != NULL && !ends_in_quotes(closing + 1, line_end)) {
            *last = newline;
            return RECORD_HAS_LINES;
        }
    }
    return RECORD_IS_OPEN;
}

/* Returns the size in bytes of the whole lines in data[0..size). */
static size_t find_lines(const char *data, size_t size)
{
    const char *newline = size > 0 ? memrchr(data, '\n', size) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - data) : 0;
}

static bool multiline_detect(const char *data, size_t size)
{
    const char *end = data + find_lines(data, size < DETECT_SIZE ? size : DETECT_SIZE), *last;
    for (const char *line = data; line < end; line = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1)
        if (examine_record(line, end, &last) == RECORD_HAS_LINES)
            return true;
    return false;
}

/* Cuts before the last line that has a time, if the record of this line may continue after the data. */
static size_t multiline_cut(const char *data, size_t size)
{
    const char *end = data + find_lines(data, size), *last;
    for (const char *newline = end - 1; newline >= data && end - newline <= RECORD_SIZE_MAX;) {
        const char *before = newline > data ? memrchr(data, '\n', (size_t)(newline - data)) : NULL;
        const char *line = before != NULL ? before + 1 : data;
        if (nl_text_format_of_line(line, (size_t)(trim_line(line, newline) - line)) != NULL)
            return (size_t)((examine_record(line, end, &last) == RECORD_IS_OPEN ? line : end) - data);
        newline = line - 1;
    }
    return (size_t)(end - data);
}

/* ---- reading ---- */

typedef struct multiline_importer_state {
    importer base;
    importer *lines; /* reads the records that have one line */
    nl_record *record;
} multiline_importer_state;

static void multiline_open(importer *base)
{
    multiline_importer_state *i = (multiline_importer_state *)base;
    i->lines = importer_open(netlogger_importer_kind(NL_FORMAT_UNKNOWN), NULL);
    i->record = nl_record_new();
}

static void multiline_close(importer *base)
{
    multiline_importer_state *i = (multiline_importer_state *)base;
    importer_close(i->lines);
    nl_record_free(i->record);
}

/* The part of a piece before the bytes that a function reads. */
typedef struct read_before {
    uint64_t lines;
    uint64_t size; /* bytes */
} read_before;

/*
 * Reads the record or records of one line. A decoder for each line ensures that the result does not depend on where the
 * input is cut: a decoder of several lines would use the format of earlier lines.
 */
static void read_line(multiline_importer_state *i, const char *data, size_t size, read_before before, sink *s)
{
    size_t first = s->report_count;
    i->lines->kind->read(i->lines, data, size, s);
    for (size_t r = first; r < s->report_count; r++) {
        s->reports[r].line += before.lines;
        s->reports[r].offset += before.size;
    }
}

static void read_record(multiline_importer_state *i, const char *data, size_t size, read_before before, sink *s)
{
    const nl_text_format *format =
        nl_text_format_of_line(data, (size_t)((const char *)memchr(data, '\n', size) - data));
    if (nl_record_decode(i->record, format->format, s->fraction, data, size) == NL_OK)
        sink_put(s, i->record, false);
    else
        sink_malformed(s, before.lines + 1, before.size, nl_error_message(), data, size);
}

static void multiline_read(importer *base, const char *data, size_t size, sink *s)
{
    multiline_importer_state *i = (multiline_importer_state *)base;
    const char *end = data + find_lines(data, size), *last, *line = data;
    uint64_t lines = 0;
    while (line < end && !s->stopped) {
        const read_before before = {lines++, (uint64_t)(line - data)};
        if (examine_record(line, end, &last) == RECORD_HAS_LINES) {
            read_record(i, line, (size_t)(last - line), before, s);
            for (; line < last; line++)
                lines += *line == '\n';
        } else {
            last = memchr(line, '\n', (size_t)(end - line));
            read_line(i, line, (size_t)(last + 1 - line), before, s);
        }
        line = last + 1;
    }
    if (line < data + size && !s->stopped)
        read_line(i, line, (size_t)(data + size - line), (read_before){lines, (uint64_t)(line - data)}, s);
}

const importer_kind multiline_importer = {
    .name = "multiline",
    .what = "ULM, BP or logfmt in which quoted values contain newlines",
    .detect = multiline_detect,
    .cut = multiline_cut,
    .size = sizeof(multiline_importer_state),
    .open = multiline_open,
    .close = multiline_close,
    .read = multiline_read,
};
