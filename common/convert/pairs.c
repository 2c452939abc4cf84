/*
 * Reads lines of NAME=value fields. The time need not be in DATE; it may be in the field that --time-field names, or in
 * a field such as END or START:
 *
 *   START=20260101000000.541700 END=20260101000002.250000 HOST=h NL.EVNT=Transfer NBYTES=100
 *
 * The time of this record is END. START remains a field, so that the record has a duration. Fields have the syntax of
 * ULM (record/text.h).
 */
#include "config.h"

#include "base/error.h"
#include "base/text.h"
#include "convert/lines.h"
#include "record/text.h"

/* Names of the time field, in the order of the search. */
static const char *const time_names[] = {"DATE", "END", "START", "TIMESTAMP", "timestamp", "TIME", "time"};

enum {
    TIME_NAMES = sizeof time_names / sizeof time_names[0],
    DETECTED_FIRST = 1,
    DETECTED_END = 3,
    GIVEN = TIME_NAMES
};

typedef struct pairs_reader {
    importer base;
    nl_record *record;
    /*
     * Each format is ULM, but its time field has another name: a name in time_names or, for the last format, the name
     * from --time-field. Each name needs its own nl_text_format, because an nl_text_format stores the fields of the
     * previous record.
     */
    nl_text_format formats[TIME_NAMES + 1];
} pairs_reader;

/* Returns the index of the first name in time_names[first..end) that is a field of the line, or TIME_NAMES. */
static size_t find_time_name(nl_string line, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (nl_text_has_field(line.data, line.data + line.size, time_names[i]))
            return i;
    return TIME_NAMES;
}

/* Decodes a line with formats[i]. Returns false and sets the error if the line is malformed. */
static bool decode_pairs(pairs_reader *r, nl_string line, size_t i, nl_fraction fraction)
{
    const char *end = line.data + line.size;
    size_t used;
    nl_record_clear(r->record);
    bool good = nl_text_decode(&r->formats[i], r->record, fraction, line.data, end, end, &used) == NL_OK;
    r->record->raw = (nl_string){NULL, 0}; /* writers of ULM must not copy a line without DATE */
    r->record->raw_format = NL_FORMAT_UNKNOWN;
    return good;
}

static void open_pairs(importer *base)
{
    pairs_reader *r = (pairs_reader *)base;
    r->record = nl_record_new();
    for (size_t i = 0; i <= TIME_NAMES; i++) {
        r->formats[i] = *nl_text_format_of(NL_FORMAT_ULM);
        r->formats[i].parse_time = nl_time_parse;
        r->formats[i].no_time = "no time field";
        if (i < TIME_NAMES)
            r->formats[i].names[NL_MEMBER_TIME] = nl_string_of(time_names[i]);
    }
}

static void close_pairs(importer *base)
{
    nl_record_free(((pairs_reader *)base)->record);
}

static void read_pairs(importer *base, const char *data, size_t size, sink *s)
{
    pairs_reader *r = (pairs_reader *)base;
    const char *given = s->about != NULL ? s->about->time_field : NULL;
    if (given != NULL)
        r->formats[GIVEN].names[NL_MEMBER_TIME] = nl_string_of(given);
    for (text_lines lines = lines_of(data, size); !s->stopped && lines_next(&lines);) {
        nl_string left = lines.line;
        text_blanks(&left);
        if (left.size == 0)
            continue;
        size_t i = given != NULL ? GIVEN : find_time_name(left, 0, TIME_NAMES);
        if (i == TIME_NAMES && given == NULL)
            lines_malformed(&lines, "no END=, START= or time= field; name the time field with --time-field", s);
        else if (!decode_pairs(r, left, i, s->fraction))
            lines_malformed(&lines, nl_error_message(), s);
        else
            sink_put(s, r->record, false);
    }
}

/* Returns whether the first line that is not blank has this format. */
static bool pairs_detect(const char *data, size_t size)
{
    pairs_reader r = {0};
    bool found = false;
    open_pairs(&r.base);
    for (text_lines lines = lines_of(data, size); lines_next(&lines);) {
        nl_string line = lines.line;
        text_blanks(&line);
        if (line.size == 0)
            continue;
        size_t i = find_time_name(line, DETECTED_FIRST, DETECTED_END);
        found = i < TIME_NAMES && decode_pairs(&r, line, i, NL_FRACTION_DECIMAL);
        break;
    }
    close_pairs(&r.base);
    return found;
}

const importer_kind pairs_importer = {
    .name = "pairs",
    .what = "lines of NAME=value whose time is in END=, START=, TIMESTAMP=, TIME= or the field that --time-field names",
    .detect = pairs_detect,
    .size = sizeof(pairs_reader),
    .open = open_pairs,
    .close = close_pairs,
    .read = read_pairs,
};
