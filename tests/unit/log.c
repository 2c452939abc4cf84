/* The producing half into memory: formats, values, levels, records. */
#include <netlogger.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nl_log *open_log(void **state)
{
    (void)state;
    nl_memory_free("log");
    nl_log *log = nl_open("prog", "memory:log");
    assert_non_null(log);
    return log;
}

/* Everything logged so far, read back. */
static nl_reader *read_back(void)
{
    nl_reader *reader = nl_reader_open("memory:log", NULL);
    assert_non_null(reader);
    return reader;
}

static void expect_field(const nl_record *record, const char *name, const char *value, size_t size)
{
    nl_field field;
    assert_true(nl_record_find(record, name, &field));
    assert_int_equal(field.string.size, size);
    assert_memory_equal(field.string.data, value, size);
}

static void printf_formats(void **state)
{
    nl_log *log = open_log(state);
    errno = ENOENT;
    assert_int_equal(
        nl_write(log, NL_USAGE, "E",
                 "D=%d  LD=%ld U=%u LLX=%llx Z=%zu J=%jd F=%.3f G=%g C=%c P=%% S=%s W=%*d PS=%.*s HH=%hhd M=%m "
                 "TWO=%d/%d L=a%sb T=%-5dx Q=\"%s y\"",
                 -5, -6L, 7u, 0xabcULL, (size_t)8, (intmax_t)-9, 1.5, 2.5, 'c', "text", 6, 42, 3, "abcdef", 300, 1, 2,
                 "-", 7, "x"),
        NL_OK);
    assert_int_equal(errno, ENOENT);
    nl_close(log);
    static const char *const expected[][2] = {
        {"D", "-5"},    {"LD", "-6"},    {"U", "7"},      {"LLX", "abc"}, {"Z", "8"},
        {"J", "-9"},    {"F", "1.500"},  {"G", "2.5"},    {"C", "c"},     {"P", "%"},
        {"S", "text"},  {"W", "    42"}, {"PS", "abc"},   {"HH", "44"},   {"M", "No such file or directory"},
        {"TWO", "1/2"}, {"L", "a-b"},    {"T", "7    x"}, {"Q", "x y"}};
    nl_reader *reader = read_back();
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    assert_int_equal(record->field_count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < record->field_count; i++) {
        assert_int_equal(record->fields[i].name.size, strlen(expected[i][0]));
        expect_field(record, expected[i][0], expected[i][1], strlen(expected[i][1]));
    }
    nl_reader_close(reader);
}

/* Whatever bytes a value holds (but NUL, which ends a %s) come back, in a field of their own. */
static void any_bytes_come_back(void **state)
{
    nl_log *log = open_log(state);
    srand(2);
    char values[500][60];
    for (int i = 0; i < 500; i++) {
        size_t size = (size_t)rand() % 59;
        for (size_t j = 0; j < size; j++)
            values[i][j] = (char)(rand() % 3 == 0 ? " \"=\\\n\tA"[rand() % 7] : rand() % 255 + 1);
        values[i][size] = '\0';
        assert_int_equal(nl_write(log, NL_USAGE, "E", "V=%s N=%d", values[i], i), NL_OK);
    }
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *record;
    for (int i = 0; i < 500; i++) {
        assert_int_equal(nl_reader_next(reader, &record), NL_OK);
        assert_int_equal(record->field_count, 2);
        expect_field(record, "V", values[i], strlen(values[i]));
    }
    assert_int_equal(nl_reader_next(reader, &record), NL_END);
    nl_reader_close(reader);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wformat-overflow"
#endif
static void bad_formats_are_refused(void **state)
{
    nl_log *log = open_log(state);
    int n = 0;
    static const char *const bad[] = {"N=%n", "no pair", "=5", "A=%y", "1A=5", "A=%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(nl_write(log, NL_USAGE, "E", bad[i], &n), NL_FAILED);
        assert_string_not_equal(nl_error_message(), "");
    }
    assert_int_equal(nl_write(log, NL_USAGE, "E", "A=%s B=%.2000s", NULL, "x"), NL_OK);
    char longest[300];
    memset(longest, 'N', sizeof longest);
    strcpy(longest + 290, "=1");
    assert_int_equal(nl_write(log, NL_USAGE, "E", longest), NL_FAILED);
    nl_close(log);
    nl_buffer text = {0};
    assert_true(nl_memory_read("log", &text));
    nl_buffer_append(&text, "", 1);
    assert_non_null(strstr(text.data, "NL.EVNT=E A=(null) B=x\n"));
    nl_buffer_free(&text);
}
#pragma GCC diagnostic pop

static void levels_and_off(void **state)
{
    nl_log *log = open_log(state);
    nl_set_level(log, NL_WARNING);
    assert_int_equal(nl_write(log, NL_USAGE, "Off", NULL), NL_OFF);
    assert_int_equal(nl_write(log, NL_ERROR, "On", NULL), NL_OK);
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    assert_int_equal(record->level, NL_ERROR);
    assert_int_equal(nl_reader_next(reader, &record), NL_END);
    nl_reader_close(reader);

    assert_int_equal(nl_write(NULL, NL_ERROR, "E", "A=%d", 1), NL_OFF);
    assert_int_equal(nl_flush(NULL), NL_OK);
    assert_int_equal(nl_close(NULL), NL_OK);
    setenv("NETLOGGER_ON", "off", 1);
    assert_null(nl_open("p", "memory:log"));
    assert_string_equal(nl_error_message(), "");
    unsetenv("NETLOGGER_ON");
    unsetenv("NETLOGGER_DEST");
    assert_null(nl_open("p", NULL));
    assert_string_equal(nl_error_message(), "");
    assert_null(nl_open("p", "x-netlog://127.0.0.1:1?timeout=1"));
    assert_non_null(strstr(nl_error_message(), "connect to 127.0.0.1:1: Connection refused"));
}

static void buffered_until_flushed(void **state)
{
    (void)state;
    nl_memory_free("log");
    nl_log *log = nl_open("prog", "memory:log?buffer=1k&format=bp");
    nl_buffer text = {0};
    nl_write(log, NL_USAGE, "E", NULL);
    assert_true(nl_memory_read("log", &text));
    assert_int_equal(text.size, 0);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_true(nl_memory_read("log", &text));
    assert_memory_equal(text.data, "ts=", 3);
    nl_close(log);
    nl_buffer_free(&text);
    nl_memory_free("log");
    assert_false(nl_memory_read("log", &text));
}

static void records_are_completed(void **state)
{
    setenv("NETLOGGER_HOST", "here", 1);
    nl_log *log = open_log(state);
    unsetenv("NETLOGGER_HOST");
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "E", 1);
    nl_record_add_double(record, "X", 0.1);
    assert_int_equal(nl_write_record(log, record), NL_OK);
    nl_record_set_time(record, 1);
    nl_record_set_host(record, "there", 5);
    assert_int_equal(nl_write_record(log, record), NL_OK);
    nl_record_free(record);
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *got;
    assert_int_equal(nl_reader_next(reader, &got), NL_OK);
    assert_true(nl_time_now_ns() - got->time_ns < 60 * NL_NS_PER_SECOND);
    expect_field(got, "HOST", "here", 4);
    expect_field(got, "PROG", "prog", 4);
    expect_field(got, "X", "0.1", 3);
    assert_int_equal(nl_reader_next(reader, &got), NL_OK);
    assert_int_equal(got->time_ns, 1);
    expect_field(got, "HOST", "there", 5);
    nl_reader_close(reader);
}

/* A large ring does not make room for what the batch has none for: that would stand in the way of all that follows. */
static void what_no_batch_can_hold_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"memory:log?ring=64m", "memory:log?ring=64m&format=nlb"};
    enum { PART = 120 << 10, TRIES = 40, MOST = 7 };
    char *part = malloc(PART);
    assert_non_null(part);
    memset(part, 1, PART); /* each byte is four in text */
    for (size_t i = 0; i < 2; i++) {
        nl_memory_free("log");
        nl_log *log = nl_open("prog", names[i]);
        assert_non_null(log);
        nl_record *record = nl_record_new();
        for (int j = 0; j < TRIES; j++) {
            nl_record_add_string(record, "PART", part, PART);
            nl_status status = nl_write_record(log, record);
            assert_int_equal(status, j < MOST ? NL_OK : NL_FAILED);
        }
        nl_record_free(record);
        assert_int_equal(nl_write(log, NL_USAGE, "E", "N=%d", 1), NL_OK);
        assert_int_equal(nl_flush(log), NL_OK);
        nl_close(log);
        nl_reader *reader = nl_reader_open("memory:log", &(nl_reader_options){.decoder.max_record_size = 4 << 20});
        assert_non_null(reader);
        const nl_record *read;
        uint64_t whole = 0, lost = 0, last = 0;
        while (nl_reader_next(reader, &read) == NL_OK) {
            nl_field field;
            whole += nl_record_find(read, "PART", &field);
            if (read->event.size == 14 && nl_record_find(read, "COUNT", &field))
                lost += field.type == NL_TYPE_UINT ? field.uint_value : strtoull(field.string.data, NULL, 10);
            last += read->event.size == 1;
        }
        assert_int_equal(whole, MOST);
        assert_int_equal(lost, TRIES - MOST);
        assert_int_equal(last, 1);
        nl_reader_close(reader);
    }
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printf_formats),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(bad_formats_are_refused),
        cmocka_unit_test(levels_and_off),
        cmocka_unit_test(buffered_until_flushed),
        cmocka_unit_test(records_are_completed),
        cmocka_unit_test(what_no_batch_can_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
