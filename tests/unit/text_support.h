/*
 * Helpers for the tests of text formats. They parse lines, check and write records, and provide random numbers that are
 * the same in every run.
 */
#ifndef NETLOGGER_TESTS_TEXT_SUPPORT_H
#define NETLOGGER_TESTS_TEXT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netlogger.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the record in a valid line. The caller frees it. */
static inline nl_record *read_line(nl_format format, const char *line)
{
    nl_record *record = nl_record_new();
    nl_error_clear();
    nl_status status = nl_record_decode(record, format, NL_FRACTION_DECIMAL, line, strlen(line));
    if (status != NL_OK)
        fail_msg("%s: %s", line, nl_error_message());
    return record;
}

/* Asserts that a line is rejected with this reason. */
static inline void assert_malformed(nl_format format, const char *line, const char *reason)
{
    nl_record *record = nl_record_new();
    assert_int_equal(nl_record_decode(record, format, NL_FRACTION_DECIMAL, line, strlen(line)), NL_MALFORMED);
    assert_string_equal(nl_error_message(), reason);
    assert_int_equal(record->field_count, 0);
    assert_null(record->event.data);
    nl_record_free(record);
}

static inline void assert_text(nl_string text, const char *expected)
{
    assert_non_null(text.data);
    if (text.size != strlen(expected) || memcmp(text.data, expected, text.size) != 0)
        fail_msg("\"%.*s\" is not \"%s\"", (int)text.size, text.data, expected);
}

/* Asserts the name and value of a field. */
static inline void assert_field(const nl_record *record, size_t index, const char *name, const char *value)
{
    assert_true(index < record->field_count);
    char scratch[NL_FIELD_TEXT_SIZE];
    assert_text(record->fields[index].name, name);
    assert_text(nl_field_text(&record->fields[index], scratch), value);
}

/* Returns the record as a line, which the caller frees. */
static inline char *write_line(const nl_record *record, nl_format format)
{
    nl_buffer out = {0};
    nl_record_encode(record, format, &out);
    nl_buffer_append(&out, "", 1);
    return out.data;
}

static inline void assert_written(const nl_record *record, nl_format format, const char *expected)
{
    char *line = write_line(record, format);
    assert_string_equal(line, expected);
    free(line);
}

/* Asserts that the conversion of a line from one format to another gives `expected`. */
static inline void assert_rewritten(nl_format from, const char *line, nl_format to, const char *expected)
{
    nl_record *record = read_line(from, line);
    assert_written(record, to, expected);
    nl_record_free(record);
}

/* xorshift64 (G. Marsaglia, 2003). */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline size_t random_below(uint64_t *state, size_t limit)
{
    return (size_t)(next_random(state) >> 11) % limit;
}

/* Fills bytes at random, often with bytes that have a meaning in the formats. */
static inline void random_bytes(uint64_t *state, char *bytes, size_t size)
{
    static const char special[] = " \t\"\\=\n\r\x7f_.-xn0DATE=20000330112320 ts=2012-03-14T14:04:46Z ";
    for (size_t i = 0; i < size; i++)
        bytes[i] = next_random(state) & 0x100 ? special[random_below(state, sizeof special)] : (char)next_random(state);
}

/* Clears record, and fills it with random members and fields. */
static inline void random_record(uint64_t *state, nl_record *record)
{
    static const char *const names[] = {"A",     "SEND.SZ", "_",      "ts",      "DATE",      "HOST",
                                        "event", "_.ts",    "_.DATE", "prog",    "level",     "ID",
                                        "LVL",   "_._.ts",  "PROG",   "NL.EVNT", "STARTDATE", "host"};
    char bytes[40];
    nl_record_clear(record);
    nl_record_set_time(record, (int64_t)next_random(state));
    if (next_random(state) & 0x100)
        nl_record_set_level(record, (nl_level)random_below(state, NL_DEBUG + 1));
    void (*const setters[])(nl_record *, const char *, size_t) = {nl_record_set_host, nl_record_set_prog,
                                                                  nl_record_set_event};
    for (size_t i = 0; i < 3; i++) {
        size_t size = random_below(state, sizeof bytes);
        random_bytes(state, bytes, size);
        if (next_random(state) & 0x300)
            setters[i](record, bytes, size);
    }
    for (size_t count = random_below(state, 20); count > 0; count--) {
        size_t size = random_below(state, sizeof bytes);
        random_bytes(state, bytes, size);
        nl_record_add_string(record, names[random_below(state, sizeof names / sizeof names[0])], bytes, size);
    }
}

static inline void assert_same_string(nl_string a, nl_string b)
{
    assert_int_equal(a.data == NULL, b.data == NULL);
    assert_int_equal(a.size, b.size);
    if (a.size > 0)
        assert_memory_equal(a.data, b.data, a.size);
}

static inline void assert_same_record(const nl_record *a, const nl_record *b)
{
    assert_true(a->time_ns == b->time_ns);
    assert_int_equal(a->level, b->level);
    assert_same_string(a->host, b->host);
    assert_same_string(a->prog, b->prog);
    assert_same_string(a->event, b->event);
    assert_int_equal(a->field_count, b->field_count);
    for (size_t i = 0; i < a->field_count; i++) {
        char a_scratch[NL_FIELD_TEXT_SIZE], b_scratch[NL_FIELD_TEXT_SIZE];
        assert_same_string(a->fields[i].name, b->fields[i].name);
        assert_same_string(nl_field_text(&a->fields[i], a_scratch), nl_field_text(&b->fields[i], b_scratch));
    }
}

/* Asserts that random records are unchanged after being written and parsed in a format. */
static inline void check_round_trips(nl_format format, uint64_t seed, int rounds)
{
    nl_record *record = nl_record_new(), *back = nl_record_new();
    nl_buffer line = {0};
    for (int i = 0; i < rounds; i++) {
        random_record(&seed, record);
        line.size = 0;
        nl_record_encode(record, format, &line);
        assert_int_equal(line.data[line.size - 1], '\n');
        assert_null(memchr(line.data, '\n', line.size - 1));
        if (nl_record_decode(back, format, NL_FRACTION_DECIMAL, line.data, line.size - 1) != NL_OK)
            fail_msg("%.*s: %s", (int)line.size, line.data, nl_error_message());
        assert_same_record(record, back);
    }
    nl_buffer_free(&line);
    nl_record_free(record);
    nl_record_free(back);
}

#endif
