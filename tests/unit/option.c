/* Options: reading and writing of values, limits, defaults, lists of rows. */
#include "base/option.h"
#include "base/error.h"

#include "text_support.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *text;
    char *copy;
    bool flag;
    int count;
    size_t size;
    int64_t duration_ns, time_ns;
    unsigned seconds;
    enum { RED, GREEN, BLUE } colour;
    nl_level level;
    char heard[32];
    int64_t sync_ns;
    int fruit;
} settings;

static const char *list_fruits(void)
{
    return "|apple|fig";
}

static const char *get_several(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    (void)from;
    snprintf(scratch, NL_OPTION_TEXT_SIZE, "value %zu", index);
    return index < 3 ? scratch : NULL;
}

static bool hear(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    snprintf(s->heard, sizeof s->heard, "%s %.20s", row->name, value);
    if (strcmp(value, "wrong") == 0)
        nl_error_set(NL_ERROR_INVALID, "it is wrong");
    return strcmp(value, "wrong") != 0;
}

static const nl_option rows[] = {
    {.name = "text", NL_OPTION_MEMBER(settings, text)},
    {.name = "copy", .type = NL_OPTION_COPY, .initial = "first", NL_OPTION_MEMBER(settings, copy)},
    {.name = "flag", .type = NL_OPTION_FLAG, NL_OPTION_MEMBER(settings, flag)},
    {.name = "count",
     .type = NL_OPTION_COUNT,
     .on_reload = true,
     .initial = "7",
     .environment = "OPTION_COUNT",
     .minimum = 2,
     .maximum = 100,
     NL_OPTION_MEMBER(settings, count)},
    {.name = "size", .type = NL_OPTION_SIZE, .initial = "64k", .minimum = 1024, NL_OPTION_MEMBER(settings, size)},
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .initial = "(as long as it takes)",
     .maximum = 3600 * NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(settings, duration_ns)},
    {.name = "seconds",
     .type = NL_OPTION_DURATION,
     .unit = NL_NS_PER_SECOND,
     .initial = "5m",
     NL_OPTION_MEMBER(settings, seconds)},
    {.name = "time", .type = NL_OPTION_TIME, NL_OPTION_MEMBER(settings, time_ns)},
    {.name = "colour",
     .type = NL_OPTION_CHOICE,
     .choices = "red|green|blue",
     .initial = "green",
     NL_OPTION_MEMBER(settings, colour)},
    {.name = "level", .type = NL_OPTION_LEVEL, .initial = "Usage", NL_OPTION_MEMBER(settings, level)},
    {.name = "own", .set = hear},
    {.name = "sync",
     .type = NL_OPTION_DURATION,
     .choices = "never|flush",
     .minimum = 1000000,
     NL_OPTION_MEMBER(settings, sync_ns)},
    {.name = "fruit", .type = NL_OPTION_CHOICE, .list_choices = list_fruits, NL_OPTION_MEMBER(settings, fruit)},
    {.name = "several", .repeatable = true, .set = hear, .get = get_several},
    {0},
};

static settings fresh(void)
{
    settings s = {0};
    assert_null(nl_options_init(rows, &s));
    return s;
}

/* Sets an option by name. Returns the problem, or "". */
static const char *set(settings *s, const char *name, const char *value)
{
    const nl_option *row = nl_option_find(rows, name);
    assert_non_null(row);
    return nl_option_set(row, s, value) ? "" : nl_error_message();
}

static const char *get(const settings *s, const char *name)
{
    static char scratch[NL_OPTION_TEXT_SIZE];
    const nl_option *row = nl_option_find(rows, name);
    assert_non_null(row);
    return nl_option_get(row, s, scratch);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"10", 10000000000},
                {"10s", 10000000000},
                {"500ms", 500000000},
                {"5m", 300000000000},
                {"2H", 7200000000000},
                {"1d", 86400000000000},
                {"1.5h", 5400000000000},
                {".5", 500000000},
                {"0", 0},
                {"20us", 20000},
                {"7ns", 7},
                {"0.000000001", 1},
                {"100.000000001s", 100000000001}};
    static const char *const bad[] = {"", "s", "-1", "1x", "1 s", "1.5.s", "1min", ".", "99999999999d", "1e3", "ten"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t ns = -1, again = -1;
        char text[NL_OPTION_VALUE_SIZE];
        assert_true(nl_duration_parse(good[i].text, &ns));
        assert_true(ns == good[i].ns);
        assert_true(nl_duration_parse(nl_duration_format(ns, text), &again) && again == ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ns;
        if (nl_duration_parse(bad[i], &ns))
            fail_msg("\"%s\" is read as a duration", bad[i]);
    }
}

static void test_formats(void **state)
{
    (void)state;
    char text[NL_OPTION_VALUE_SIZE];
    assert_string_equal(nl_duration_format(90 * NL_NS_PER_SECOND, text), "90s");
    assert_string_equal(nl_duration_format(1500 * 1000000, text), "1500ms");
    assert_string_equal(nl_duration_format(7200 * NL_NS_PER_SECOND, text), "2h");
    assert_string_equal(nl_size_format(65536, text), "64k");
    assert_string_equal(nl_size_format(0, text), "0");
    assert_string_equal(nl_size_format((uint64_t)3 << 40, text), "3t");
    assert_string_equal(nl_size_format(1000, text), "1000");
}

static void test_times(void **state)
{
    (void)state;
    int64_t time_ns, now_ns = nl_time_now_ns();
    assert_true(nl_time_parse_relative("2026-01-31T12:00:00.5", &time_ns) && time_ns == 1769860800500000000);
    assert_true(nl_time_parse_relative("-10m", &time_ns));
    assert_true(time_ns >= now_ns - 600 * NL_NS_PER_SECOND && time_ns < now_ns - 590 * NL_NS_PER_SECOND);
    assert_true(nl_time_parse_relative("-60", &time_ns) && time_ns >= now_ns - 60 * NL_NS_PER_SECOND);
    assert_false(nl_time_parse_relative("-x", &time_ns));
    assert_false(nl_time_parse_relative("yesterday", &time_ns));
}

static void test_defaults(void **state)
{
    (void)state;
    settings s = fresh();
    assert_string_equal(s.copy, "first");
    assert_int_equal(s.count, 7);
    assert_int_equal(s.size, 65536);
    assert_int_equal(s.duration_ns, 0);
    assert_int_equal(s.seconds, 300);
    assert_int_equal(s.colour, GREEN);
    assert_int_equal(s.level, NL_USAGE);
    nl_options_free(rows, &s);
    assert_null(s.copy);
}

static void test_what_was_set_is_read_back(void **state)
{
    (void)state;
    static const char *const values[][2] = {
        {"text", "a b"},   {"copy", "second"}, {"flag", "yes"},   {"flag", "no"},      {"count", "2"},
        {"count", "100"},  {"size", "1k"},     {"size", "3m"},    {"duration", "1ns"}, {"duration", "1h"},
        {"seconds", "2m"}, {"colour", "blue"}, {"level", "Debug"}};
    settings s = fresh();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_string_equal(set(&s, values[i][0], values[i][1]), "");
        assert_string_equal(get(&s, values[i][0]), values[i][1]);
    }
    assert_string_equal(set(&s, "seconds", "1500ms"), "");
    assert_string_equal(get(&s, "seconds"), "2s"); /* a part of a unit counts as a whole unit */
    assert_string_equal(set(&s, "own", "value"), "");
    assert_string_equal(s.heard, "own value");
    nl_options_free(rows, &s);
}

static void test_problems(void **state)
{
    (void)state;
    static const char *const values[][3] = {
        {"count", "1", "1 is out of range; use 2 to 100"},
        {"count", "101", "101 is out of range; use 2 to 100"},
        {"count", "ten", "\"ten\" is not a whole number"},
        {"count", "-3", "\"-3\" is not a whole number"},
        {"count", "99999999999999999999", "\"99999999999999999999\" is not a whole number"},
        {"size", "1", "1 is out of range; use at least 1k"},
        {"size", "64x", "\"64x\" is not a size; use, for example, 64k, 256m or 1g"},
        {"duration", "61m", "61m is out of range; use 0 to 1h"},
        {"duration", "long", "\"long\" is not a duration; use, for example, 10s, 500ms, 5m or 2h"},
        {"seconds", "99999d", "99999d is out of range; use at most 2147483647s"},
        {"flag", "maybe", "\"maybe\" is neither yes nor no"},
        {"colour", "pink", "\"pink\" is not one of red|green|blue"},
        {"colour", "re", "\"re\" is not one of red|green|blue"},
        {"level", "Loud", "\"Loud\" is not one of the levels " NL_LEVEL_NAMES},
        {"text", "", "the value is empty"},
        {"own", "wrong", "it is wrong"},
    };
    settings s = fresh();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_string_equal(set(&s, values[i][0], values[i][1]), values[i][2]);
    assert_int_equal(s.count, 7);
    assert_int_equal(s.size, 65536);
    assert_int_equal(s.colour, GREEN);
    nl_options_free(rows, &s);
}

static void test_nearest_name(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"conut", "count"},      {"counts", "count"},      {"colr", "colour"},
                                           {"secondss", "seconds"}, {"duratoin", "duration"}, {"ocunt", "count"},
                                           {"flags", "flag"}};
    static const char *const unlike[] = {"", "x", "verbose", "colourcolourcolourcolourcolourcolour"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        nl_option_nearest nearest = {0};
        nl_option_find_nearest(&nearest, rows, names[i][0]);
        assert_non_null(nearest.name);
        assert_string_equal(nearest.name, names[i][1]);
    }
    for (size_t i = 0; i < sizeof unlike / sizeof unlike[0]; i++) {
        nl_option_nearest nearest = {0};
        nl_option_find_nearest(&nearest, rows, unlike[i]);
        assert_null(nearest.name);
    }
}

/* Words instead of numbers, choices that code computes, several values, variables. */
static void test_special_rows(void **state)
{
    (void)state;
    char scratch[NL_OPTION_TEXT_SIZE];
    settings s = fresh();
    assert_string_equal(set(&s, "sync", "flush"), "");
    assert_true(s.sync_ns == -2);
    assert_string_equal(get(&s, "sync"), "flush");
    assert_string_equal(set(&s, "sync", "1ms"), "");
    assert_true(s.sync_ns == 1000000);
    assert_string_equal(get(&s, "sync"), "1ms");
    assert_string_equal(set(&s, "sync", "0"), "0 is out of range; use at least 1ms");
    assert_string_equal(set(&s, "sync", "often"),
                        "\"often\" is not never|flush or a duration; use, for example, 10s, 500ms, 5m or 2h");
    assert_null(get(&s, "fruit"));
    assert_string_equal(set(&s, "fruit", "fig"), "");
    assert_string_equal(get(&s, "fruit"), "fig");
    assert_string_equal(set(&s, "fruit", "leek"), "\"leek\" is not one of apple|fig");
    const nl_option *row = nl_option_find(rows, "several");
    assert_string_equal(nl_option_get_at(row, &s, 1, scratch), "value 1");
    assert_null(nl_option_get_at(row, &s, 3, scratch));
    setenv("OPTION_COUNT", "8", 1);
    assert_null(nl_options_read_environment(rows, &s));
    assert_int_equal(s.count, 8);
    setenv("OPTION_COUNT", "1000", 1);
    assert_string_equal(nl_options_read_environment(rows, &s)->name, "count");
    assert_string_equal(nl_error_message(), "OPTION_COUNT: 1000 is out of range; use 2 to 100");
    unsetenv("OPTION_COUNT");
    nl_options_free(rows, &s);
}

static void test_difference(void **state)
{
    (void)state;
    settings a = fresh(), b = fresh();
    assert_null(nl_options_fixed_difference(rows, &a, &b));
    set(&b, "count", "9"); /* a reload may change this option */
    assert_null(nl_options_fixed_difference(rows, &a, &b));
    set(&b, "flag", "yes");
    assert_string_equal(nl_options_fixed_difference(rows, &a, &b)->name, "flag");
    set(&b, "copy", "other");
    assert_string_equal(nl_options_fixed_difference(rows, &a, &b)->name, "copy");
    nl_options_free(rows, &a);
    nl_options_free(rows, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),    cmocka_unit_test(test_formats),
        cmocka_unit_test(test_times),        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_problems),     cmocka_unit_test(test_what_was_set_is_read_back),
        cmocka_unit_test(test_nearest_name), cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
