/*
 * The text formats: one record per line, with NAME=value fields separated by blanks.
 *
 * text.c reads ULM and BP, logfmt.c reads logfmt, text_write.c writes all formats. The struct nl_text_format describes
 * how the formats differ.
 *
 * Reading. A name is [A-Za-z_][A-Za-z0-9_.-]* followed by '=', at the start of the line or after a blank (space or
 * tab). Its value is either
 *
 * - quoted: "...". After the closing quote, the line ends, or a blank and the next NAME= follow. \" \\ \n \t \r and
 *   \xHH are escapes. An unknown escape keeps its backslash.
 * - unquoted: all text up to the next NAME=, without blanks at both ends, because programs often do not quote values
 *   with spaces. Backslashes have no special meaning.
 *
 * Words before the first field (a prefix of the log) are ignored. Fields may have any order. The first field with the
 * name of a standard field sets the record's member; further fields with that name are ordinary fields.
 *
 * If a writer was killed while it wrote a record, the next record is in the same line. The reader recognizes the next
 * record by another time, which is at the start of a field, within an unquoted value, or at the end of a truncated
 * name. The truncated part is malformed; the reader then reads the next record.
 *
 * Writing. The standard fields come first, in the format's order. A value is quoted if it is empty or has a blank, '"',
 * '=' or a control byte. A field with the name of a standard field is written with the prefix "_.", which the reader
 * removes. A field whose name already has that prefix gets another prefix: "_._.DATE" is a field "_.DATE".
 */
#ifndef NETLOGGER_RECORD_TEXT_H
#define NETLOGGER_RECORD_TEXT_H

#include "base/time_internal.h"
#include "record/field_name.h"
#include "record/format.h"
#include "record/record_internal.h"

#include <string.h>

/* Where to look for the time in a line: at the start of a field, or anywhere. */
typedef enum nl_text_place { NL_TEXT_AT_FIELD, NL_TEXT_ANYWHERE } nl_text_place;

typedef struct nl_text_format {
    nl_format format;
    /*
     * The first bytes of a line in this format, and a mask of the bytes to compare. If confirm is not NULL, it decides
     * whether a line that begins with these bytes has this format.
     */
    char begins[8], begins_mask[8];
    bool (*confirm)(const char *line, const char *end);
    bool iso_time;                    /* times are in ISO 8601; otherwise YYYYMMDDhhmmss */
    nl_string names[NL_MEMBER_COUNT]; /* names of the standard fields, indexed by nl_member */
    nl_member order[NL_MEMBER_COUNT]; /* order in which fields are written; the time is first */
    const char *no_time;              /* error message for a line without a time */
    const char *hex_escape;           /* text before the two hexadecimal digits of an escape */
    nl_status (*parse_time)(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);
    size_t (*put_time)(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);
    const char *(*level_name)(nl_level level);
    /*
     * Returns whether a value may begin a record, because it begins with a time in the form that this format's writers
     * use. The value may extend to `end`. If within is true, the value is inside another value, where only the most
     * specific form counts.
     */
    bool (*starts_record)(const char *value, const char *end, bool within);
    /* Returns whether a line is in this format. Called only if no format recognizes the line by its first bytes. */
    bool (*detect)(const struct nl_text_format *format, const char *line, const char *end, nl_text_place where);
    /* Decodes a record, as nl_text_decode does. */
    nl_status (*decode)(const struct nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                        const char *end, const char *limit, size_t *used);
} nl_text_format;

/* Returns the standard field with a name in the format, or NL_MEMBER_NONE. */
static inline nl_member nl_text_member(const nl_text_format *format, const char *name, size_t size)
{
    for (nl_member member = 0; member < NL_MEMBER_COUNT; member++)
        if (format->names[member].size == size && memcmp(format->names[member].data, name, size) == 0)
            return member;
    return NL_MEMBER_NONE;
}

/*
 * Returns whether a line has a time. With NL_TEXT_AT_FIELD, the name of the time field and '=' must begin the line or
 * follow a blank; their value is not checked. With NL_TEXT_ANYWHERE, a prefix ("stats:DATE=") or the rest of a
 * truncated record may directly precede the name. The value must then have the form that this format's writers use.
 */
bool nl_text_has_time(const nl_text_format *format, const char *line, const char *end, nl_text_place where);

/* Returns whether a field of the line begins with `name` and '='. Ignores text in quotes. */
bool nl_text_has_field(const char *line, const char *end, const char *name);

/* Returns whether text begins with YYYY-MM-DD and continues after it. */
static inline bool nl_text_begins_with_day(const char *text, const char *end)
{
    return end - text > 10 && nl_digits(text, 5) == 4 && text[4] == '-' && nl_digits(text + 5, 3) == 2 &&
           text[7] == '-' && nl_digits(text + 8, 3) == 2;
}

static inline uint64_t nl_text_load_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Returns whether the line has at least eight bytes and begins with the format's first bytes. */
static inline bool nl_text_begins_as(const nl_text_format *format, const char *line, size_t size)
{
    return size >= sizeof(uint64_t) &&
           (nl_text_load_word(line) & nl_text_load_word(format->begins_mask)) == nl_text_load_word(format->begins);
}

/* Returns whether the line begins with the format's first field, or with any field if the format has no first bytes. */
static inline bool nl_text_begins_with_field(const nl_text_format *format, nl_string line)
{
    size_t name = 0;
    if (!nl_text_begins_as(format, line.data, line.size))
        return false;
    while (format->begins[0] == '\0' && name < line.size && nl_name_may_have(line.data[name], name))
        name++;
    return format->begins[0] != '\0' || (name > 0 && name < line.size && line.data[name] == '=');
}

/*
 * Decodes the record at the start of [line, end), which has no newline. `record` must be clear; its strings point into
 * the line or the record's memory. The function may read memory up to `limit`, which is at or after `end`. Sets *used
 * to the size of the record, which is the whole line unless another record begins in the line. In that case, *used is
 * the offset of the other record, and this record is malformed. Returns NL_OK or NL_MALFORMED.
 */
static inline nl_status nl_text_decode(const nl_text_format *format, nl_record *record, nl_fraction fraction,
                                       const char *line, const char *end, const char *limit, size_t *used)
{
    return format->decode(format, record, fraction, line, end, limit, used);
}

/* Decodes ULM and BP, as nl_text_decode does. */
nl_status nl_text_decode_fields(const nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                                const char *end, const char *limit, size_t *used);

/* Like nl_text_decode_fields, but without the fast path. Tests compare the results of both functions. */
nl_status nl_text_decode_closely(const nl_text_format *format, nl_record *record, nl_fraction fraction,
                                 const char *line, const char *end, const char *limit, size_t *used);

/*
 * The common part of records that differ only in their time and values. Such records have the same host, program,
 * level, event and field names.
 */
typedef struct nl_text_shape {
    char *text;     /* the standard fields after the time, and then each field's name with '=' */
    uint32_t *ends; /* offsets in bytes: end of the standard fields, then end of each name; field_count + 1 entries */
    size_t field_count;
} nl_text_shape;

/* Creates the shape of a record. The caller frees the shape. Returns NULL if memory runs out. */
nl_text_shape *nl_text_shape_make(const nl_text_format *format, const nl_record *record);
void nl_text_shape_free(nl_text_shape *shape); /* shape may be NULL */

/*
 * Appends a record as a line with its newline. `shape` is the record's shape, or NULL. `known`, which may be NULL,
 * speeds up the writing of consecutive records in one format. Returns false and changes nothing if memory runs out.
 */
bool nl_text_encode(const nl_text_format *format, const nl_record *record, const nl_text_shape *shape,
                    nl_known_second *known, nl_buffer *out);

/* Maximum size in bytes of a value in quotes; `size` is the size of the value. */
#define NL_TEXT_QUOTED_SIZE(size) (6 * (size) + 2)

/* Writes a value in quotes; the caller has reserved NL_TEXT_QUOTED_SIZE bytes. Returns the end of the written bytes. */
char *nl_text_put_quoted(char *at, nl_string value, const char *hex_escape);

/* Returns the byte for the escape at *at, and moves *at past it. For an unknown escape, returns the backslash. */
char nl_text_unescape(const char **at, const char *end);

extern const nl_text_format nl_ulm, nl_bp, nl_logfmt;
extern const nl_format_info nl_ulm_info, nl_bp_info, nl_logfmt_info;

/*
 * Returns whether a line with ts= is logfmt and not BP. A line of logfmt has msg= or caller=, and lacks event=, which
 * BP requires.
 */
bool nl_logfmt_claims_ts(const char *line, const char *end);

/* The format descriptors, indexed by nl_format; NULL for NL_FORMAT_UNKNOWN. */
extern const nl_format_info *const nl_format_table[NL_FORMAT_COUNT];

/* Returns the table of a text format, or NULL. */
static inline const nl_text_format *nl_text_format_of(nl_format format)
{
    return format > NL_FORMAT_UNKNOWN && format < NL_FORMAT_COUNT ? nl_format_table[format]->text : NULL;
}

/* Returns the format of a line by its content, or NULL. */
const nl_text_format *nl_text_format_of_line(const char *line, size_t size);

/* Returns the size in bytes of the classic connection header and the byte-order mark at the start of data. */
size_t nl_text_header_size(const char *data, size_t size);

#endif
