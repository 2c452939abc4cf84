/* BP: reading and writing. */
#include "text_support.h"
#include "record/format.h"

#define TS "ts=2012-03-14T14:04:46.000000Z"

static void reads_the_standard_record(void **state)
{
    (void)state;
    static const char line[] = TS " event=stampede.wf.plan level=Info dax.index=0 argv=\"-x 0.9  \\\"a b\\\" \" host=h";
    nl_record *record = read_line(NL_FORMAT_BP, line);
    assert_true(record->time_ns == INT64_C(1331733886) * NL_NS_PER_SECOND);
    assert_text(record->event, "stampede.wf.plan");
    assert_int_equal(record->level, NL_USAGE);
    assert_text(record->host, "h");
    assert_null(record->prog.data);
    assert_int_equal(record->field_count, 2);
    assert_field(record, 0, "dax.index", "0");
    assert_field(record, 1, "argv", "-x 0.9  \"a b\" ");
    assert_int_equal(record->raw_format, NL_FORMAT_BP);
    assert_written(record, NL_FORMAT_BP,
                   TS " event=stampede.wf.plan level=Info host=h dax.index=0 argv=\"-x 0.9  \\\"a b\\\" \"\n");
    assert_written(record, NL_FORMAT_ULM,
                   "DATE=20120314140446.000000 HOST=h LVL=Usage NL.EVNT=stampede.wf.plan dax.index=0 argv=\"-x 0.9  "
                   "\\\"a b\\\" \"\n");
    nl_record_free(record);
}

static void reads_every_kind_of_time(void **state)
{
    (void)state;
    assert_rewritten(NL_FORMAT_BP, "ts=1331733886.5 event=e", NL_FORMAT_BP, "ts=2012-03-14T14:04:46.500000Z event=e\n");
    assert_rewritten(NL_FORMAT_BP, "ts=1331733886.123456789", NL_FORMAT_BP, "ts=2012-03-14T14:04:46.123456789Z\n");
    assert_rewritten(NL_FORMAT_BP, "event=e ts=2012-03-14T16:04:46+02:00", NL_FORMAT_BP, TS " event=e\n");
    assert_rewritten(NL_FORMAT_BP, "ts=2012-03-14 14:04:46 event=e", NL_FORMAT_BP, TS " event=e\n");
    assert_malformed(NL_FORMAT_BP, "event=e level=Info", "no ts= field");
    assert_malformed(NL_FORMAT_BP, "ts=2012-13-14T14:04:46Z event=e", "ts: invalid time: month 13");
    assert_malformed(NL_FORMAT_BP, "ts=now event=e",
                     "ts: invalid time: expected YYYYMMDDhhmmss, ISO 8601 or seconds since 1970");
}

static void says_levels_in_its_own_words(void **state)
{
    (void)state;
    static const struct {
        const char *bp, *ulm;
    } levels[] = {
        {"Fatal", "Emergency"},     {"Alert", "Alert"},       {"Error", "Error"}, {"Warn", "Warning"},
        {"Auth", "Auth"},           {"Security", "Security"}, {"Info", "Usage"},  {"System", "System"},
        {"Important", "Important"}, {"Debug", "Debug"},       {"INFO", "INFO"},   {"Trace", "Trace"},
        {"warn", "warn"},
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        char bp[80], ulm[80];
        snprintf(bp, sizeof bp, TS " level=%s\n", levels[i].bp);
        snprintf(ulm, sizeof ulm, "DATE=20120314140446.000000 LVL=%s\n", levels[i].ulm);
        nl_record *record = nl_record_new();
        assert_int_equal(nl_record_decode(record, NL_FORMAT_BP, NL_FRACTION_DECIMAL, bp, strlen(bp) - 1), NL_OK);
        assert_written(record, NL_FORMAT_ULM, ulm);
        assert_written(record, NL_FORMAT_BP, bp);
        assert_int_equal(nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, ulm, strlen(ulm) - 1), NL_OK);
        assert_written(record, NL_FORMAT_BP, bp);
        nl_record_free(record);
    }
}

static void fields_named_as_in_ulm_are_plain(void **state)
{
    (void)state;
    assert_rewritten(NL_FORMAT_BP, TS " DATE=1 HOST=2 LVL=3", NL_FORMAT_BP, TS " DATE=1 HOST=2 LVL=3\n");
    assert_rewritten(NL_FORMAT_BP, TS " DATE=1 host=h HOST=2", NL_FORMAT_ULM,
                     "DATE=20120314140446.000000 HOST=h _.DATE=1 _.HOST=2\n");
    assert_rewritten(NL_FORMAT_BP, TS " ts=9 event=a event=b", NL_FORMAT_BP, TS " event=a _.ts=9 _.event=b\n");
}

static void writes_typed_values(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "e", 1);
    nl_record_set_level(record, NL_EMERGENCY);
    nl_record_add_int(record, "I", -5);
    nl_record_add_uint(record, "U", UINT64_MAX);
    nl_record_add_double(record, "D", 0.25);
    nl_record_add_bool(record, "B", false);
    nl_record_add_string(record, "S", "", 0);
    assert_written(record, NL_FORMAT_BP,
                   "ts=1970-01-01T00:00:00.000000Z event=e level=Fatal I=-5 U=18446744073709551615 D=0.25 B=false "
                   "S=\"\"\n");
    nl_record_free(record);
}

static void any_bytes_round_trip(void **state)
{
    (void)state;
    check_round_trips(NL_FORMAT_BP, 20120314140446, 20000);
}

/* ULM to BP to ULM gives the same text. */
static void any_record_goes_through_bp_and_back(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252;
    nl_record *record = nl_record_new(), *back = nl_record_new();
    for (int i = 0; i < 5000; i++) {
        random_record(&seed, record);
        char *ulm = write_line(record, NL_FORMAT_ULM);
        assert_int_equal(nl_record_decode(back, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, ulm, strlen(ulm) - 1), NL_OK);
        char *bp = write_line(back, NL_FORMAT_BP);
        assert_int_equal(nl_record_decode(back, NL_FORMAT_BP, NL_FRACTION_DECIMAL, bp, strlen(bp) - 1), NL_OK);
        assert_written(back, NL_FORMAT_ULM, ulm);
        free(ulm);
        free(bp);
    }
    nl_record_free(record);
    nl_record_free(back);
}

static void knows_the_formats_by_name_and_content(void **state)
{
    (void)state;
    assert_string_equal(nl_format_name(NL_FORMAT_ULM), "ulm");
    assert_string_equal(nl_format_name(NL_FORMAT_BP), "bp");
    assert_string_equal(nl_format_name(NL_FORMAT_UNKNOWN), "unknown");
    assert_int_equal(nl_format_parse("BP"), NL_FORMAT_BP);
    assert_int_equal(nl_format_parse("ulm"), NL_FORMAT_ULM);
    assert_int_equal(nl_format_parse("unknown"), NL_FORMAT_UNKNOWN);
    static const struct {
        const char *text;
        nl_format format;
    } cases[] = {
        {"", NL_FORMAT_UNKNOWN},
        {"\n\n \nDATE=2", NL_FORMAT_ULM},
        {"HOST=h DATE=20", NL_FORMAT_ULM},
        {"[1] Thu Jul :: Transfer stats: DATE=20230727", NL_FORMAT_ULM},
        {"stats:DATE=20230727125942.5 A=1", NL_FORMAT_ULM},
        {"\xef\xbb\xbfts=2012-03-14T14:04:46.000000Z event=a", NL_FORMAT_BP},
        {"event=a ts=5", NL_FORMAT_BP},
        {"ts=5 DATE=20230727125942", NL_FORMAT_ULM},
        {"garbage\nmore=1\nts=1.5 event=e\n", NL_FORMAT_BP},
        {"UPDATE=1 starts=2\n", NL_FORMAT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(nl_format_detect(cases[i].text, strlen(cases[i].text)), cases[i].format);
    assert_int_equal(nl_format_detect("ULM\0    ts=5 event=e", 20), NL_FORMAT_BP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_standard_record),
        cmocka_unit_test(reads_every_kind_of_time),
        cmocka_unit_test(says_levels_in_its_own_words),
        cmocka_unit_test(fields_named_as_in_ulm_are_plain),
        cmocka_unit_test(writes_typed_values),
        cmocka_unit_test(any_bytes_round_trip),
        cmocka_unit_test(any_record_goes_through_bp_and_back),
        cmocka_unit_test(knows_the_formats_by_name_and_content),
    };
    return cmocka_run_group_tests_name("bp", tests, NULL, NULL);
}
