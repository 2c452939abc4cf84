/* The record: setting, finding and copying of values, and reading and writing of numbers. */
#include "text_support.h"

#include "record/encoder.h"
#include "record/text.h"

#include <inttypes.h>

#include <float.h>
#include <locale.h>
#include <math.h>

static nl_field string_field(const char *text)
{
    return (nl_field){.type = NL_TYPE_STRING, .string = {text, strlen(text)}};
}

static void keeps_what_is_set(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    char name[] = "SEND.SZ", value[] = "a b";
    nl_record_set_time(record, 5);
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_host(record, "dolly", 5);
    nl_record_set_prog(record, "", 0);
    nl_record_add_string(record, name, value, 3);
    memset(name, 'x', sizeof name - 1);
    memset(value, 'x', sizeof value - 1);
    nl_record_add_int(record, "MIN", INT64_MIN);
    nl_record_add_uint(record, "MAX", UINT64_MAX);
    nl_record_add_double(record, "D", 0.1);
    nl_record_add_bool(record, "B", true);
    assert_text(record->host, "dolly");
    assert_text(record->prog, "");
    assert_null(record->event.data);
    assert_text(record->level_text, "Warning");
    assert_field(record, 0, "SEND.SZ", "a b");
    assert_field(record, 1, "MIN", "-9223372036854775808");
    assert_field(record, 2, "MAX", "18446744073709551615");
    assert_field(record, 3, "D", "0.1");
    assert_field(record, 4, "B", "true");
    assert_int_equal(record->field_count, 5);
    nl_record_clear(record);
    assert_int_equal(record->field_count, 0);
    assert_null(record->host.data);
    assert_int_equal(record->level, NL_LEVEL_NONE);
    nl_record_free(record);
    nl_record_free(NULL);
}

static void makes_names_legal(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    static const char *const names[][2] = {
        {"", "_"}, {"9x", "_x"}, {"a b", "a_b"}, {"a=b", "a_b"}, {"\xc3\xa9", "__"}, {"-a", "_a"}, {"a-9._", "a-9._"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        nl_record_add_int(record, names[i][0], 1);
        assert_field(record, i, names[i][1], "1");
    }
    nl_record_free(record);
}

static void holds_very_many_fields(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    enum { MANY = 100000 };
    char name[20];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "F%d", i);
            nl_record_add_string(record, name, name, strlen(name));
        }
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "F%d", i);
            assert_field(record, (size_t)i, name, name);
        }
        nl_record_clear(record);
    }
    nl_record_free(record);
}

static void finds_by_either_name(void **state)
{
    (void)state;
    nl_record *record = read_line(NL_FORMAT_ULM, "DATE=19700101000001 HOST=h LVL=info X=1 X=2 prog=p event=e");
    nl_field field;
    assert_true(nl_record_find(record, "ts", &field));
    assert_int_equal(field.type, NL_TYPE_INT);
    assert_true(field.int_value == NL_NS_PER_SECOND);
    assert_true(nl_record_find(record, "DATE", &field));
    assert_true(nl_record_find(record, "host", &field));
    assert_text(field.string, "h");
    assert_true(nl_record_find(record, "LVL", &field));
    assert_text(field.string, "info");
    assert_true(nl_record_find(record, "X", &field));
    assert_text(field.string, "1");
    /* There is no PROG, so the field with the name prog is found. */
    assert_true(nl_record_find(record, "prog", &field));
    assert_text(field.string, "p");
    assert_false(nl_record_find(record, "PROG", &field));
    assert_false(nl_record_find(record, "x", &field));
    assert_false(nl_record_find(record, "", &field));
    nl_record_free(record);
}

static void copies_outlive_the_source(void **state)
{
    (void)state;
    char line[] = "pfx DATE=20000330112320.957943 HOST=h LVL=Odd NL.EVNT=e A=\"x\\ny\" B=2 C=";
    nl_record *record = nl_record_new(), *copy = nl_record_new();
    assert_int_equal(nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, line, strlen(line)), NL_OK);
    record->flags = NL_RECORD_UNTERMINATED;
    nl_record_copy(copy, record);
    nl_record_copy(copy, copy);
    nl_record_free(record);
    memset(line, '#', sizeof line - 1);
    assert_text(copy->raw, "pfx DATE=20000330112320.957943 HOST=h LVL=Odd NL.EVNT=e A=\"x\\ny\" B=2 C=");
    assert_int_equal(copy->raw_format, NL_FORMAT_ULM);
    assert_int_equal(copy->flags, NL_RECORD_UNTERMINATED);
    assert_written(copy, NL_FORMAT_ULM, "DATE=20000330112320.957943 HOST=h LVL=Odd NL.EVNT=e A=\"x\\ny\" B=2 C=\"\"\n");
    /* A change invalidates the raw text. */
    nl_record_add_int(copy, "D", 1);
    assert_null(copy->raw.data);
    assert_int_equal(copy->flags, 0);
    nl_record_free(copy);
}

static void reads_integers_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+7", true, 7},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"0x10", false, 0},
        {"1,000", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nl_field field = string_field(cases[i].text);
        int64_t value = 0;
        if (nl_field_int(&field, &value) != cases[i].is || (cases[i].is && value != cases[i].value))
            fail_msg("\"%s\"", cases[i].text);
    }
    int64_t value;
    nl_field number = {.type = NL_TYPE_UINT, .uint_value = (uint64_t)INT64_MAX + 1};
    assert_false(nl_field_int(&number, &value));
    number = (nl_field){.type = NL_TYPE_DOUBLE, .double_value = 1.5};
    assert_false(nl_field_int(&number, &value));
    number.double_value = 0x1p63;
    assert_false(nl_field_int(&number, &value));
    number.double_value = -0x1p63;
    assert_true(nl_field_int(&number, &value));
    assert_true(value == INT64_MIN);
    number.double_value = NAN;
    assert_false(nl_field_int(&number, &value));
    number = (nl_field){.type = NL_TYPE_BOOL, .bool_value = true};
    assert_false(nl_field_int(&number, &value));
}

static void reads_doubles(void **state)
{
    (void)state;
    char tiny[160] = "0."; /* more digits than are kept */
    memset(tiny + 2, '0', sizeof tiny - 4);
    tiny[sizeof tiny - 2] = '1';
    const char *const numbers[] = {
        "0",
        "-0.0",
        "1.5",
        ".5",
        "5.",
        "+1e3",
        "1E-3",
        "123456789012345678901234567890",
        "1e400",
        "1e-400",
        "4.9e-324",
        "inf",
        "-INF",
        "infinity",
        "1e99999999999999999999",
        "9007199254740993",
        "0.1",
        "1e22",
        "1e23",
        "12345678901234567890.12345",
        tiny,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        nl_field field = string_field(numbers[i]);
        double value, expected = strtod(numbers[i], NULL);
        if (!nl_field_double(&field, &value) || memcmp(&value, &expected, sizeof value) != 0)
            fail_msg("\"%s\" gives %.17g", numbers[i], value);
    }
    static const char *const none[] = {"",     ".",   "-",     "e5",     "1e",      "1e+",   "0x1p3", "1.5 ",
                                       " 1.5", "1,5", "1.5.5", "nan(1)", "infinit", "1_000", "--1"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        nl_field field = string_field(none[i]);
        double value;
        if (nl_field_double(&field, &value))
            fail_msg("\"%s\" is taken for a number", none[i]);
    }
    nl_field field = string_field("NaN");
    double value;
    assert_true(nl_field_double(&field, &value));
    assert_true(isnan(value));
}

static void assert_double_text(double number, const char *expected)
{
    nl_field field = {.type = NL_TYPE_DOUBLE, .double_value = number};
    char scratch[NL_FIELD_TEXT_SIZE];
    assert_text(nl_field_text(&field, scratch), expected);
}

static void writes_doubles_shortly(void **state)
{
    (void)state;
    assert_double_text(0.0, "0");
    assert_double_text(-0.0, "-0");
    assert_double_text(42, "42");
    assert_double_text(0.1, "0.1");
    assert_double_text(-1.25, "-1.25");
    assert_double_text(0.1 + 0.2, "0.30000000000000004");
    assert_double_text(1e300, "1e+300");
    assert_double_text(123456.789012, "123456.789012");
    assert_double_text(999999999999999, "999999999999999");
    assert_double_text(DBL_MAX, "1.7976931348623157e+308");
    assert_double_text(INFINITY, "inf");
    assert_double_text(-INFINITY, "-inf");
    assert_double_text(NAN, "nan");
    uint64_t seed = 4711;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double number, back;
        memcpy(&number, &bits, sizeof number);
        if (i % 2 == 0)
            number = (double)(int64_t)(bits % 2000000000000) / 1000;
        if (isnan(number))
            continue;
        nl_field field = {.type = NL_TYPE_DOUBLE, .double_value = number};
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_field text = {.type = NL_TYPE_STRING, .string = nl_field_text(&field, scratch)};
        assert_true(text.string.size < sizeof scratch);
        assert_true(nl_field_double(&text, &back));
        assert_memory_equal(&back, &number, sizeof back);
    }
}

/* Numbers are the same in a locale with a decimal comma. The test makes such a locale, because few machines have one.
 */
static void minds_no_locale(void **state)
{
    (void)state;
    char folder[] = "/tmp/netlogger-locale-XXXXXX", command[200];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/comma.UTF-8 >%s/log 2>&1", folder, folder);
    int made = system(command);
    setenv("LOCPATH", folder, 1);
    bool comma = setlocale(LC_NUMERIC, "comma.UTF-8") != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
    snprintf(command, sizeof command, "rm -r %s", folder);
    int removed = system(command);
    if (!comma) /* the sources of locales (Debian's package locales) are missing: skips this part */
        print_message("# no locale with a decimal comma: localedef returned %d\n", made);
    assert_double_text(0.1 + 0.2, "0.30000000000000004");
    assert_double_text(1.5e300, "1.5e+300");
    nl_field field = string_field("0.30000000000000004");
    double value;
    assert_true(nl_field_double(&field, &value));
    assert_true(value == 0.1 + 0.2);
    field = string_field("0,5");
    assert_false(nl_field_double(&field, &value));
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    assert_int_equal(removed, 0);
}

static void expect_number(nl_field field, uint64_t value)
{
    char expected[NL_FIELD_TEXT_SIZE], scratch[NL_FIELD_TEXT_SIZE];
    snprintf(expected, sizeof expected, field.type == NL_TYPE_INT ? "%" PRId64 : "%" PRIu64, value);
    nl_string text = nl_field_text(&field, scratch);
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

/* Tests integers of every length, with the smallest and the largest of each length. */
static void writes_integers(void **state)
{
    (void)state;
    uint64_t power = 1;
    for (int digits = 1; digits <= 20; digits++, power *= 10)
        for (int more = -2; more <= 2; more++) {
            uint64_t value = power + (uint64_t)(int64_t)more;
            expect_number((nl_field){.type = NL_TYPE_UINT, .uint_value = value}, value);
            expect_number((nl_field){.type = NL_TYPE_INT, .int_value = (int64_t)value}, value);
            expect_number((nl_field){.type = NL_TYPE_INT, .int_value = -(int64_t)(value >> 1)},
                          (uint64_t) - (int64_t)(value >> 1));
        }
}

/* Sets a record of one of `kinds` kinds. Some kinds differ only in one standard field or in one name. */
static void set_kind(nl_record *record, unsigned kind, unsigned number)
{
    static const char *const hosts[] = {"dpss1.lbl.gov", "dpss2.lbl.gov", "", "a host with blanks", "h"};
    static const char *const names[] = {"SEND.SZ", "SEND.SY", "DATE", "_.DATE", "a.name.of.more.than.sixteen.bytes"};
    nl_record_clear(record);
    nl_record_set_time(record, INT64_C(1700000000000000000) + number * INT64_C(1000));
    const char *host = hosts[kind % 5];
    if (kind % 7 != 0)
        nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, "p\xc3\xa9", kind % 3);
    nl_record_set_level(record, kind % 2 == 0 ? NL_USAGE : NL_ERROR);
    if (kind % 11 == 0)
        record->level_text = (nl_string){"Own", 3};
    if (kind % 4 != 0)
        nl_record_set_event(record, kind % 4 == 1 ? "WriteData" : "", kind % 4 == 1 ? 9 : 0);
    for (unsigned i = 0; i < kind % 6; i++) {
        nl_record_add_uint(record, names[(kind / 6 + i) % 5], number);
        nl_record_add_string(record, names[(kind + i) % 5], "two words\n", number % 11);
    }
}

/* An encoder remembers shapes of records; its lines are equal to lines that are encoded without shapes. */
static void encodes_the_same_with_remembered_shapes(void **state)
{
    (void)state;
    static const unsigned kind_counts[] = {1, 2, 13, 5000}; /* 5,000 kinds do not fit into the memory for shapes */
    nl_record *record = nl_record_new();
    for (nl_format format = NL_FORMAT_UNKNOWN + 1; format < NL_FORMAT_COUNT; format++) {
        const nl_text_format *text = nl_text_format_of(format);
        for (size_t i = 0; text != NULL && i < sizeof kind_counts / sizeof kind_counts[0]; i++) {
            nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = format, .canonical = true});
            nl_buffer expected = {0}, got = {0};
            uint64_t random = 1;
            for (unsigned number = 0; number < 20000; number++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                set_kind(record, (unsigned)(random >> 40) % kind_counts[i], number);
                assert_true(nl_text_encode(text, record, NULL, NULL, &expected));
                assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
            }
            assert_int_equal(nl_encoder_finish(encoder, &got), NL_OK);
            assert_int_equal(got.size, expected.size);
            assert_memory_equal(got.data, expected.data, expected.size);
            nl_buffer_free(&got);
            nl_buffer_free(&expected);
            nl_encoder_free(encoder);
        }
    }
    nl_record_free(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_is_set),
        cmocka_unit_test(makes_names_legal),
        cmocka_unit_test(holds_very_many_fields),
        cmocka_unit_test(finds_by_either_name),
        cmocka_unit_test(copies_outlive_the_source),
        cmocka_unit_test(reads_integers_exactly),
        cmocka_unit_test(reads_doubles),
        cmocka_unit_test(writes_doubles_shortly),
        cmocka_unit_test(writes_integers),
        cmocka_unit_test(minds_no_locale),
        cmocka_unit_test(encodes_the_same_with_remembered_shapes),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
