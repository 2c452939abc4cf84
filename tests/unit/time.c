/* Times as text, in both directions. */
#include "text_support.h"

#include "base/time_internal.h"
#include "base/level.h"

#include <time.h>

#define DATE_2000 INT64_C(954415400957943000) /* 2000-03-30 11:23:20.957943 UTC */

static int64_t parsed(const char *text, nl_fraction fraction)
{
    int64_t time_ns = -1;
    if (nl_time_parse(text, strlen(text), fraction, &time_ns) != NL_OK)
        fail_msg("%s: %s", text, nl_error_message());
    return time_ns;
}

static void assert_parsed(const char *text, int64_t time_ns)
{
    int64_t got = parsed(text, NL_FRACTION_DECIMAL);
    if (got != time_ns)
        fail_msg("%s is %lld, not %lld", text, (long long)got, (long long)time_ns);
}

static void assert_refused(const char *text, const char *reason)
{
    int64_t time_ns = 77;
    if (nl_time_parse(text, strlen(text), NL_FRACTION_DECIMAL, &time_ns) != NL_MALFORMED)
        fail_msg("%s is taken for a time", text);
    assert_true(time_ns == 77);
    assert_string_equal(nl_error_message(), reason);
}

static void reads_ulm_dates(void **state)
{
    (void)state;
    assert_parsed("20000330112320.957943", DATE_2000);
    assert_parsed("20000330112320", DATE_2000 / NL_NS_PER_SECOND * NL_NS_PER_SECOND);
    assert_parsed("20000330112320.", DATE_2000 / NL_NS_PER_SECOND * NL_NS_PER_SECOND);
    assert_parsed("20000330112320.9", DATE_2000 - 57943000);
    assert_parsed("20000330112320.957943123", DATE_2000 + 123);
    assert_parsed("20000330112320.95794312399", DATE_2000 + 123); /* finer than a nanosecond */
    assert_parsed("19700101000000.000000001", 1);
    assert_parsed("19691231235959.999999999", -1);
    assert_parsed("20000229000000", INT64_C(951782400) * NL_NS_PER_SECOND);
    assert_parsed("20161231235960", parsed("20170101000000", NL_FRACTION_DECIMAL)); /* a leap second */
}

static void reads_unpadded_microseconds_when_told(void **state)
{
    (void)state;
    int64_t second = parsed("20230727125942", NL_FRACTION_DECIMAL);
    static const struct {
        const char *text;
        int64_t decimal_ns, microseconds_ns;
    } cases[] = {
        {"20230727125942.2102", 210200000, 2102000},
        {"20230727125942.5", 500000000, 5000},
        {"20230727125942.002102", 2102000, 2102000},
        {"20230727125942.2102000", 210200000, 210200000},
        {"20230727125942.0", 0, 0},
        {"20230727125942.", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(parsed(cases[i].text, NL_FRACTION_DECIMAL) == second + cases[i].decimal_ns);
        assert_true(parsed(cases[i].text, NL_FRACTION_MICROSECONDS) == second + cases[i].microseconds_ns);
    }
}

static void reads_iso_times(void **state)
{
    (void)state;
    assert_parsed("2000-03-30T11:23:20.957943Z", DATE_2000);
    assert_parsed("2000-03-30t11:23:20.957943z", DATE_2000);
    assert_parsed("2000-03-30 11:23:20.957943", DATE_2000);
    assert_parsed("2000-03-30T11:23:20,957943", DATE_2000);
    assert_parsed("2000-03-30T13:23:20.957943+02:00", DATE_2000);
    assert_parsed("2000-03-30T13:23:20.957943+02", DATE_2000);
    assert_parsed("2000-03-30T05:53:20.957943-0530", DATE_2000);
    assert_parsed("2000-03-30T11:23Z", parsed("20000330112300", NL_FRACTION_DECIMAL));
    assert_parsed("2000-03-30", parsed("20000330000000", NL_FRACTION_DECIMAL));
}

static void reads_seconds_to_the_nanosecond(void **state)
{
    (void)state;
    assert_parsed("954415400.957943", DATE_2000);
    assert_parsed("1331733886.123456789", INT64_C(1331733886123456789)); /* a double would end in ...716 */
    assert_parsed("0", 0);
    assert_parsed(".5", 500000000);
    assert_parsed("-0.000000001", -1);
    assert_parsed("-1.5", -1500000000);
    assert_parsed("+7", 7 * NL_NS_PER_SECOND);
    assert_parsed("00000000000000000000000007.25", 7250000000);
}

static void refuses_what_is_no_time(void **state)
{
    (void)state;
    static const char neither[] = "invalid time: expected YYYYMMDDhhmmss, ISO 8601 or seconds since 1970";
    assert_refused("", "invalid time: the text is empty");
    assert_refused("20001330112320", "invalid time: month 13");
    assert_refused("20000030112320", "invalid time: month 0");
    assert_refused("20000230112320", "invalid time: day 30");
    assert_refused("19000229000000", "invalid time: day 29"); /* not a leap year */
    assert_refused("20000300112320", "invalid time: day 0");
    assert_refused("20000330242320", "invalid time: hour 24");
    assert_refused("20000330116020", "invalid time: minute 60");
    assert_refused("20000330112361", "invalid time: second 61");
    assert_refused("20000330112320.5x", "invalid time: the fraction contains a character that is not a digit");
    assert_refused("2000-03-30T11", "invalid time: a time of day must be hh:mm or hh:mm:ss");
    assert_refused("2000-03-30T11:23:20+2", "invalid time: a zone must be Z or +hh:mm");
    assert_refused("2000-03-30T11:23:20 UTC", "invalid time: a zone must be Z or +hh:mm");
    assert_refused("2000-03-30T11:23:20+24:00", "invalid time: a zone must be Z or +hh:mm");
    assert_refused("2000-3-30", "invalid time: a date must be YYYY-MM-DD");
    assert_refused(".", neither);
    assert_refused("-", neither);
    assert_refused("1e9", neither);
    assert_refused("0x10", neither);
    assert_refused(" 1", neither);
    assert_refused("1 ", neither);
    assert_refused("nan", neither);
    assert_refused("yesterday", neither);
}

static void refuses_times_beyond_64_bits(void **state)
{
    (void)state;
    static const char beyond[] = "invalid time: before 1678 or after 2261";
    assert_parsed("9223372036.854775807", INT64_MAX);
    assert_parsed("-9223372036.854775808", INT64_MIN);
    assert_parsed("22620411234716.854775807", INT64_MAX);
    assert_parsed("16770921001243.145224192", INT64_MIN);
    assert_refused("9223372036.854775808", beyond);
    assert_refused("-9223372036.854775809", beyond);
    assert_refused("22620411234716.854775808", beyond);
    assert_refused("16770921001243.145224191", beyond);
    assert_refused("99991231235959", beyond);
    assert_refused("00000101000000", beyond);
    assert_refused("99999999999999999999999999999999", beyond);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    char text[NL_TIME_TEXT_SIZE];
    assert_int_equal(nl_time_format_ulm(DATE_2000, text), strlen("20000330112320.957943"));
    assert_string_equal(text, "20000330112320.957943");
    nl_time_format_ulm(DATE_2000 + 1, text);
    assert_string_equal(text, "20000330112320.957943001");
    assert_int_equal(nl_time_format_iso(DATE_2000, text), strlen("2000-03-30T11:23:20.957943Z"));
    assert_string_equal(text, "2000-03-30T11:23:20.957943Z");
    nl_time_format_ulm(-1000, text);
    assert_string_equal(text, "19691231235959.999999");
    uint64_t seed = 20000330;
    for (int i = 0; i < 100000; i++) {
        int64_t time_ns = i == 0 ? INT64_MIN : i == 1 ? INT64_MAX : (int64_t)next_random(&seed);
        nl_time_format_ulm(time_ns, text);
        assert_parsed(text, time_ns);
        nl_time_format_iso(time_ns, text);
        assert_parsed(text, time_ns);
    }
}

/* Compares each day with the C library's calendar. */
static void agrees_with_the_c_library(void **state)
{
    (void)state;
    /* A time_t of 32 bits ends in 2038. */
    int64_t most = sizeof(time_t) > 4 ? 106751 : INT32_MAX / 86400 - 1;
    for (int64_t day = -most; day <= most; day++) {
        time_t seconds = (time_t)(day * 86400 + 45296);
        struct tm civil;
        assert_non_null(gmtime_r(&seconds, &civil));
        char expected[NL_TIME_TEXT_SIZE], text[NL_TIME_TEXT_SIZE];
        strftime(expected, sizeof expected, "%Y%m%d%H%M%S.000000", &civil);
        nl_time_format_ulm(seconds * NL_NS_PER_SECOND, text);
        assert_string_equal(text, expected);
        assert_parsed(expected, seconds * NL_NS_PER_SECOND);
    }
}

static void names_levels_in_both_formats(void **state)
{
    (void)state;
    for (nl_level level = NL_EMERGENCY; level <= NL_DEBUG; level++) {
        assert_int_equal(nl_level_parse(nl_level_name(level), strlen(nl_level_name(level))), level);
        assert_int_equal(nl_level_parse(nl_level_bp_name(level), strlen(nl_level_bp_name(level))), level);
    }
    assert_int_equal(nl_level_parse("fAtAl", 5), NL_EMERGENCY);
    assert_int_equal(nl_level_parse("info", 4), NL_USAGE);
    assert_int_equal(nl_level_parse("WARN", 4), NL_WARNING);
    assert_int_equal(nl_level_parse("Usage ", 6), NL_LEVEL_NONE);
    assert_int_equal(nl_level_parse("Usag", 4), NL_LEVEL_NONE);
    assert_int_equal(nl_level_parse("Trace", 5), NL_LEVEL_NONE);
    assert_int_equal(nl_level_parse("", 0), NL_LEVEL_NONE);
    assert_string_equal(nl_level_name((nl_level)99), "");
    assert_string_equal(nl_level_bp_name((nl_level)-1), "");
}

/* The text does not depend on the second in the cache. */
static void known_seconds_are_those_of_the_time(void **state)
{
    (void)state;
    static const int64_t steps_ns[] = {1,           999,        1000, 999999999,     -999999999,
                                       -1000000000, 1000000000, -7,   86400000000000};
    nl_known_second ulm = {0}, iso = {0};
    int64_t time_ns = -1500000000;
    for (int i = 0; i < 2000; i++, time_ns += steps_ns[i % 9]) {
        char text[NL_TIME_TEXT_SIZE], expected[NL_TIME_TEXT_SIZE];
        assert_int_equal(nl_time_put_ulm(time_ns, &ulm, text), nl_time_format_ulm(time_ns, expected));
        assert_string_equal(text, expected);
        assert_int_equal(nl_time_put_iso(time_ns, &iso, text), nl_time_format_iso(time_ns, expected));
        assert_string_equal(text, expected);
        assert_int_equal(parsed(text, NL_FRACTION_DECIMAL), time_ns);
    }
}

/* The result does not depend on the previous time or on the position of the wrong byte. */
static void a_known_day_changes_nothing(void **state)
{
    (void)state;
    static const char *const times[] = {
        "20000330112320.957943", "20000330235959.999999", "20000330235960.000000", "20000330240000.000000",
        "20000330116020.957943", "20000330112361.957943", "20000229000000.000000", "20010229000000.000000",
        "20000229120000.5",      "00010101000000.000000", "16770921001243.145225", "16770922000000.000000",
        "22620411234716.854775", "22620411234717.854775", "99991231235959.999999", "20000330 12320.957943",
        "2000033011232x.957943", "20000330112320,957943", "20000330112320.95794:", "x0000330112320.957943",
    };
    enum { COUNT = sizeof times / sizeof times[0] };
    for (size_t before = 0; before < COUNT; before++) {
        for (size_t now = 0; now < COUNT; now++) {
            nl_known_day known = {0};
            int64_t first_ns, plain_ns = 0, known_ns = 0;
            size_t size = strlen(times[now]);
            nl_time_parse_usual(times[before], strlen(times[before]), &known, &first_ns);
            bool good = nl_time_parse_calendar(times[now], size, NL_FRACTION_DECIMAL, &plain_ns) == NL_OK;
            bool taken = nl_time_parse_usual(times[now], size, &known, &known_ns);
            if (taken != (good && size == 21) || (taken && known_ns != plain_ns))
                fail_msg("%s behind %s: %d, %lld", times[now], times[before], taken, (long long)known_ns);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ulm_dates),
        cmocka_unit_test(reads_unpadded_microseconds_when_told),
        cmocka_unit_test(reads_iso_times),
        cmocka_unit_test(reads_seconds_to_the_nanosecond),
        cmocka_unit_test(refuses_what_is_no_time),
        cmocka_unit_test(refuses_times_beyond_64_bits),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(known_seconds_are_those_of_the_time),
        cmocka_unit_test(a_known_day_changes_nothing),
        cmocka_unit_test(agrees_with_the_c_library),
        cmocka_unit_test(names_levels_in_both_formats),
    };
    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
