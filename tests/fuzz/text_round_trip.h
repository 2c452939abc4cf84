/* The properties of the text formats, for the targets ulm, bp and logfmt. */
#ifndef NETLOGGER_TESTS_FUZZ_TEXT_ROUND_TRIP_H
#define NETLOGGER_TESTS_FUZZ_TEXT_ROUND_TRIP_H

#include "fuzz.h"

#include "record/common_names.h"
#include "record/text.h"
#include "record/format.h"

/* Returns the record as one line of that format, which ends with its only newline. */
static inline nl_buffer fuzz_encode(const nl_record *record, nl_format format)
{
    nl_buffer line = {0};
    nl_record_encode(record, format, &line);
    fuzz_expect(line.size > 0 && line.data[line.size - 1] == '\n', "an encoded record ends in a newline");
    fuzz_expect(memchr(line.data, '\n', line.size - 1) == NULL, "an encoded record is one line");
    line.size--;
    return line;
}

/* Checks that writing with the known shape and second gives the same text as writing without them. */
static inline void fuzz_check_shape(const nl_record *record, nl_format format, const nl_buffer *line)
{
    const nl_text_format *text = nl_text_format_of(format);
    nl_text_shape *shape = nl_text_shape_make(text, record);
    nl_known_second known = {0};
    for (int i = 0; i < 2; i++) {
        nl_buffer shaped = {0};
        nl_text_encode(text, record, shape, &known, &shaped);
        shaped.size--;
        fuzz_expect(fuzz_same_bytes(line, &shaped), "a record is written by its shape as without");
        nl_buffer_free(&shaped);
    }
    nl_text_shape_free(shape);
}

/*
 * Checks that a written record is read as an equal record, and that this record is written as the same bytes. Readers
 * of logfmt set the members that a record lacks from the names of loggers, so the record must have these members.
 */
static inline void fuzz_check_written(const nl_record *unnamed, nl_format format)
{
    nl_record *record = nl_record_new();
    nl_record_copy(record, unnamed);
    if (format == NL_FORMAT_LOGFMT)
        nl_record_use_common_names(record);
    nl_buffer line = fuzz_encode(record, format), meant = {0}, read = {0};
    char *copy = fuzz_copy(line.data, line.size);
    fuzz_check_shape(record, format, &line);
    nl_record *back = nl_record_new();
    nl_status status = nl_record_decode(back, format, NL_FRACTION_DECIMAL, copy, line.size);
    fuzz_expect(status == NL_OK, "what was encoded decodes");
    fuzz_put_record(&meant, record);
    fuzz_put_record(&read, back);
    fuzz_expect(fuzz_same_bytes(&meant, &read), "a record comes back as it was");
    nl_buffer again = fuzz_encode(back, format);
    fuzz_expect(fuzz_same_bytes(&line, &again), "equal records are written alike");
    /* A line of BP without event= but with msg= is recognized as logfmt, which reads the same record from it. */
    nl_format told = nl_format_detect(copy, line.size);
    bool is_ambiguous = format == NL_FORMAT_BP && told == NL_FORMAT_LOGFMT && record->event.data == NULL;
    fuzz_expect(told == format || is_ambiguous, "what a format's writer wrote is taken for that format");
    if (is_ambiguous) {
        nl_buffer other = {0}, named = {0};
        nl_record_use_common_names(record);
        fuzz_put_record(&named, record);
        fuzz_expect(nl_record_decode(back, told, NL_FRACTION_DECIMAL, copy, line.size) == NL_OK, "logfmt reads BP");
        fuzz_put_record(&other, back);
        fuzz_expect(fuzz_same_bytes(&named, &other), "BP that is taken for logfmt gives the same record");
        nl_buffer_free(&other);
        nl_buffer_free(&named);
    }
    nl_record_free(back);
    nl_record_free(record);
    free(copy);
    nl_buffer_free(&line);
    nl_buffer_free(&again);
    nl_buffer_free(&meant);
    nl_buffer_free(&read);
}

/*
 * Checks that a copy is equal to the record, and depends neither on the line nor on the original record. Returns the
 * copy.
 */
static inline nl_record *fuzz_check_copy(nl_record *record, char *line)
{
    nl_buffer meant = {0}, copied = {0};
    fuzz_put_record(&meant, record);
    nl_record *copy = nl_record_new();
    nl_record_copy(copy, record);
    nl_record_free(record);
    free(line);
    fuzz_put_record(&copied, copy);
    fuzz_expect(fuzz_same_bytes(&meant, &copied), "a copy is equal");
    nl_buffer_free(&meant);
    nl_buffer_free(&copied);
    return copy;
}

/* Returns the result of decoding a line, as bytes. */
static inline nl_buffer fuzz_decoded(nl_status status, const nl_record *record, size_t used)
{
    nl_buffer out = {0};
    fuzz_put_number(&out, status);
    fuzz_put_number(&out, (int64_t)used);
    if (status != NL_OK) {
        nl_buffer_append(&out, nl_error_message(), strlen(nl_error_message()));
        return out;
    }
    fuzz_put_record(&out, record);
    fuzz_put_string(&out, record->level_text);
    fuzz_put_string(&out, record->raw);
    return out;
}

/*
 * Checks that the decoder's fast path has the same result as its slow path: for a new line and for a line with known
 * names, at the end of the readable memory and before other bytes.
 */
static inline void fuzz_check_short_way(nl_format format, nl_fraction fraction, const char *line, size_t size)
{
    const nl_text_format *text = nl_text_format_of(format);
    nl_record *closely = nl_record_new(), *record = nl_record_new();
    size_t used;
    nl_status status = nl_text_decode_closely(text, closely, fraction, line, line + size, line + size, &used);
    nl_buffer meant = fuzz_decoded(status, closely, used), twice = {0};
    nl_buffer_append(&twice, line, size);
    nl_buffer_append(&twice, line, size);
    nl_buffer_append(&twice, "", 1);
    const char *places[] = {line, line, twice.data}, *limits[] = {line + size, line + size, twice.data + twice.size};
    for (int i = 0; i < 3; i++) {
        nl_record_clear(record);
        status = nl_text_decode(text, record, fraction, places[i], places[i] + size, limits[i], &used);
        nl_buffer got = fuzz_decoded(status, record, used);
        fuzz_expect(fuzz_same_bytes(&meant, &got), "the short way gives what the long one gives");
        nl_buffer_free(&got);
    }
    nl_buffer_free(&twice);
    nl_buffer_free(&meant);
    nl_record_free(record);
    nl_record_free(closely);
}

/* Reads the line. If it gives a record, the record must survive all text formats. */
static inline void fuzz_check_line(nl_format format, const uint8_t *data, size_t size)
{
    char *line = fuzz_copy(data, size);
    nl_record *record = nl_record_new();
    nl_fraction fraction = size % 8 == 7 ? NL_FRACTION_MICROSECONDS : NL_FRACTION_DECIMAL;
    fuzz_check_short_way(format, fraction, line, size);
    if (nl_record_decode(record, format, fraction, line, size) == NL_OK) {
        record = fuzz_check_copy(record, line);
        for (nl_format to = NL_FORMAT_ULM; to < NL_FORMAT_COUNT; to++)
            if (nl_format_is_text(to))
                fuzz_check_written(record, to);
    } else {
        fuzz_expect(*nl_error_message() != '\0', "there are words for what is malformed");
        fuzz_expect(record->field_count == 0 && record->event.data == NULL, "a malformed line leaves the record empty");
        free(line);
    }
    nl_record_free(record);
}

#endif
