/*
 * What the text formats share: one record a line, NAME=value fields parted by blanks.
 *
 * One scanner (text.c) serves ULM and BP, logfmt has its own (logfmt.c). One printer (text_write.c) serves all. A
 * table, nl_text_format, holds what differs.
 *
 * Reading. A name is [A-Za-z_][A-Za-z0-9_.-]* with '=' right after it, at the start of a line or after a blank (space
 * or tab). Its value is
 *   - quoted: "..." when the closing quote is followed by the end or by a blank and the next NAME=. Within, \" \\ \n \t
 * \r and \xHH are escapes; an unknown escape keeps its backslash;
 *   - otherwise all text up to the next NAME=, without the blanks at both ends: values with spaces are common in logs
 * of programs that do not quote. Backslashes stand for themselves. Words before the first field (a log's own prefix)
 * are passed over. Fields come in any order; the first of each standard name fills the record's member, a repeated one
 * stays a field.
 *
 * A record whose writer died half way has the next record on the same line. It shows in a second time at the start of a
 * field, or within an unquoted value, or at the end of a field's cut name; the cut part is malformed, the rest is read.
 *
 * Writing. The standard fields that there are in their order, then the others. A value is quoted when it is empty or
 * holds a blank, '"', '=' or a control byte. A field that is called as a standard one is in this format (possible when
 * it came from the other format, or repeats) is written with "_." before its name, which reading takes away again. A
 * field that is really called so gets one more: "_._.DATE" is a field "_.DATE".
 */
#ifndef NETLOGGER_FORMAT_TEXT_H
#define NETLOGGER_FORMAT_TEXT_H

#include "base/time_internal.h"
#include "record/field_name.h"
#include "record/format_info.h"
#include "record/record_internal.h"

#include <string.h>

/* Where in a line the time of a record is looked for: at the start of a field, or anywhere. */
typedef enum nl_text_place { NL_TEXT_AT_FIELD, NL_TEXT_ANYWHERE } nl_text_place;

typedef struct nl_text_format {
    nl_format format;
    /*
     * What a line of this format begins with, as a word of eight bytes and the mask of those that count. confirm, when
     * it is not NULL, has the last word on such a line.
     */
    char begins[8], begins_mask[8];
    bool (*confirm)(const char *line, const char *end);
    bool iso_time;                    /* written in ISO 8601, otherwise YYYYMMDDhhmmss */
    nl_string names[NL_MEMBER_COUNT]; /* of the standard fields, by nl_member */
    nl_member order[NL_MEMBER_COUNT]; /* in which they are written; the time is first */
    const char *no_time;              /* the message about a line without a time */
    const char *hex_escape;           /* in quotes, what two hexadecimal digits follow */
    /* The standard field of a name that is not empty, NL_MEMBER_NONE when it is none. Asked of every field read. */
    nl_member (*member)(const char *name, size_t size);
    nl_status (*parse_time)(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);
    size_t (*put_time)(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);
    const char *(*level_name)(nl_level level);
    /*
     * Whether value, up to end, begins with a time as this format's writers put it, so that it may start a record.
     * within: it was found inside another value, where only the most certain form counts.
     */
    bool (*starts_record)(const char *value, const char *end, bool within);
    /* Whether a line that no format's begins matches is in this format. */
    bool (*detect)(const struct nl_text_format *format, const char *line, const char *end, nl_text_place where);
    /* As nl_text_decode. */
    nl_status (*decode)(const struct nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                        const char *end, const char *limit, size_t *used);
} nl_text_format;

/* Whether the line has a time of that format: at the start of a field, whatever its value, or anywhere in the form that
 * the format's writers use (a prefix may touch the record, "stats:DATE=", and so may the rest of one that was cut). */
bool nl_text_has_time(const nl_text_format *format, const char *line, const char *end, nl_text_place where);

/* Whether NAME= is in the line, outside of quotes. */
bool nl_text_has_field(const char *line, const char *end, const char *name);

static inline uint64_t nl_text_load_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Whether the line begins as begins and begins_mask say. */
static inline bool nl_text_begins_as(const nl_text_format *format, const char *line, size_t size)
{
    return size >= sizeof(uint64_t) &&
           (nl_text_load_word(line) & nl_text_load_word(format->begins_mask)) == nl_text_load_word(format->begins);
}

/* Whether the line begins with the format's first field, or, in a format that has its time anywhere, with any field. */
static inline bool nl_text_begins_with_field(const nl_text_format *format, nl_string line)
{
    size_t name = 0;
    if (!nl_text_begins_as(format, line.data, line.size))
        return false;
    while (format->begins[0] == '\0' && name < line.size && nl_name_may_have(line.data[name], name))
        name++;
    return format->begins[0] != '\0' || (name > 0 && name < line.size && line.data[name] == '=');
}

/* The name with what the printer put before it taken away; the same name when it put nothing. */
nl_string nl_text_unescape_name(const nl_text_format *format, nl_string name);

/*
 * Reads the record at the start of [line, end), which has no newline. record was cleared; its strings view the line or
 * its own memory. Memory from line to limit, which is end or beyond, may be read. *used says how much was taken: all,
 * or up to where the next record begins on the same line (then what was taken is malformed). NL_OK, or NL_MALFORMED
 * with the reason in nl_error_message() and record in no defined state but clearable.
 */
static inline nl_status nl_text_decode(const nl_text_format *format, nl_record *record, nl_fraction fraction,
                                       const char *line, const char *end, const char *limit, size_t *used)
{
    return format->decode(format, record, fraction, line, end, limit, used);
}

/* The decoder of ULM and BP. */
nl_status nl_text_decode_fields(const nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                                const char *end, const char *limit, size_t *used);

/* The same, always the long way: what nl_text_decode, which has a short one for most fields, is compared with. */
nl_status nl_text_decode_closely(const nl_text_format *format, nl_record *record, nl_fraction fraction,
                                 const char *line, const char *end, const char *limit, size_t *used);

/*
 * What is the same in all lines of a row of records: everything but the time and the fields' values. Records of the
 * same host, program, level and event, with the same fields in the same order, are of one shape.
 */
typedef struct nl_text_shape {
    char *text;         /* what follows the time; what stands before each field's value */
    uint32_t *ends;     /* of each of these in text: field_count + 1 of them */
    size_t field_count; /* those of the record that it was made of */
} nl_text_shape;

/* NULL when there is no memory. */
nl_text_shape *nl_text_shape_make(const nl_text_format *format, const nl_record *record);
void nl_text_shape_free(nl_text_shape *shape); /* NULL is allowed */

/*
 * Appends record to out as one line with its newline. shape, when it is not NULL, is the record's; known, when it is
 * not NULL, serves row after row of the same format. False, with out as it was, when there is no memory.
 */
bool nl_text_encode(const nl_text_format *format, const nl_record *record, const nl_text_shape *shape,
                    nl_known_second *known, nl_buffer *out);

/* The most bytes that a value of that size needs in quotes. */
#define NL_TEXT_QUOTED_SIZE(size) (6 * (size) + 2)

/*
 * Writes a value in quotes to a place of NL_TEXT_QUOTED_SIZE bytes. hex_escape is nl_text_format's. Returns the end of
 * what it wrote.
 */
char *nl_text_put_quoted(char *at, nl_string value, const char *hex_escape);

/* The byte that the escape at *at, a backslash, stands for; moves *at past it. An unknown one stands for itself. */
char nl_text_unescape(const char **at, const char *end);

/* The descriptors by nl_format; that of NL_FORMAT_UNKNOWN is NULL. */
extern const nl_format_info *const nl_format_table[NL_FORMAT_COUNT];

/* The table of a text format; NULL for any other format. */
static inline const nl_text_format *nl_text_format_of(nl_format format)
{
    return format > NL_FORMAT_UNKNOWN && format < NL_FORMAT_COUNT ? nl_format_table[format]->text : NULL;
}

/* The format that a line by itself seems to be in; NULL when it has no time in it by any name. */
const nl_text_format *nl_text_format_of_line(const char *line, size_t size);

/* What stands at the start of data before the first line: the classic connection header, a byte-order mark. In bytes.
 */
size_t nl_text_header_size(const char *data, size_t size);

#endif
