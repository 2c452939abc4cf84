/* logfmt: reading other programs' lines, writing, and recognition of the format. */
#include "text_support.h"
#include "record/format.h"

#define TIME "time=2026-11-23T01:02:03.400000Z"
#define TIME_NS INT64_C(1795395723400000000)

static void check_member(nl_string text, const char *expected)
{
    if (expected == NULL)
        assert_null(text.data);
    else
        assert_text(text, expected);
}

static void reads_the_lines_of_other_programs(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t time_ns;
        nl_level level;
        const char *host, *prog, *fields; /* fields: "NAME=VALUE|" for each, in order */
    } cases[] = {
        /* Go's slog, logrus, go-kit, Prometheus, zap, log15, Grafana */
        {"time=2026-11-23T01:02:03.4Z level=INFO msg=hello count=3", TIME_NS, NL_USAGE, NULL, NULL,
         "msg=hello|count=3|"},
        {"time=\"2026-11-22T20:02:03.4-05:00\" level=warning msg=\"two words\" a=b", TIME_NS, NL_WARNING, NULL, NULL,
         "msg=two words|a=b|"},
        {"ts=2026-11-23T01:02:03.4Z caller=main.go:123 level=error err=\"not found\"", TIME_NS, NL_ERROR, NULL, NULL,
         "caller=main.go:123|err=not found|"},
        {"level=info ts=2026-11-23T01:02:03.400Z caller=main.go:123 component=tsdb msg=\"x \\\"y\\\"\"", TIME_NS,
         NL_USAGE, NULL, NULL, "caller=main.go:123|component=tsdb|msg=x \"y\"|"},
        {"ts=1795395723.4 level=debug msg=m", TIME_NS, NL_DEBUG, NULL, NULL, "msg=m|"},
        {"t=2026-11-23T01:02:03.4+0000 lvl=info msg=\"a b\" pid=7", TIME_NS, NL_USAGE, NULL, NULL, "msg=a b|pid=7|"},
        {"logger=sqlstore t=2026-11-23T01:02:03.4Z level=info msg=\"Connecting to DB\"", TIME_NS, NL_USAGE, NULL, NULL,
         "logger=sqlstore|msg=Connecting to DB|"},
        /* Heroku's router and a dyno */
        {"2026-11-23T01:02:03.4+00:00 heroku[router]: at=info method=GET path=\"/a?b=c\" host=x.example "
         "fwd=\"204.204.204.204\" dyno=web.1 connect=1ms service=18ms status=200",
         TIME_NS, NL_USAGE, "x.example", "heroku[router]",
         "method=GET|path=/a?b=c|fwd=204.204.204.204|dyno=web.1|connect=1ms|service=18ms|status=200|"},
        {"2026-11-23T01:02:03.4+00:00 app[web.1]: source=web.1 sample#load_avg_1m=0.03 at=finish", TIME_NS,
         NL_LEVEL_NONE, NULL, "app[web.1]", "source=web.1|sample_load_avg_1m=0.03|at=finish|"},
        /* keys alone, empty values, values with '=', an invalid time, a second time, an unknown level */
        {TIME " debug k= path=/x?a=b&c=d time=12ms ts=9 e=\"\" last", TIME_NS, NL_LEVEL_NONE, NULL, NULL,
         "debug=true|k=|path=/x?a=b&c=d|time=12ms|ts=9|e=|last=true|"},
        {"time=12ms t=5 level=odd ts=1795395723.4 msg=m", TIME_NS, NL_LEVEL_NONE, NULL, NULL, "time=12ms|t=5|msg=m|"},
        {"verbose " TIME " a=1", TIME_NS, NL_LEVEL_NONE, NULL, NULL, "verbose=true|a=1|"},
        /* text that is not logfmt is kept */
        {TIME " msg=\"cut off in the", TIME_NS, NL_LEVEL_NONE, NULL, NULL, "msg=\"cut off in the|"},
        {TIME " a=\"x\"y ==z 7up", TIME_NS, NL_LEVEL_NONE, NULL, NULL, "a=x|y=true|__z===z|_up=7up|"},
        {"\t " TIME "   host=h\tprog=p event=e  ", TIME_NS, NL_LEVEL_NONE, "h", "p", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nl_record *record = read_line(NL_FORMAT_LOGFMT, cases[i].line);
        nl_buffer fields = {0};
        for (size_t f = 0; f < record->field_count; f++) {
            nl_buffer_append(&fields, record->fields[f].name.data, record->fields[f].name.size);
            nl_buffer_append(&fields, "=", 1);
            nl_buffer_append(&fields, record->fields[f].string.data, record->fields[f].string.size);
            nl_buffer_append(&fields, "|", 1);
        }
        nl_buffer_append(&fields, "", 1);
        assert_int_equal(record->time_ns, cases[i].time_ns);
        assert_int_equal(record->level, cases[i].level);
        check_member(record->host, cases[i].host);
        check_member(record->prog, cases[i].prog);
        assert_string_equal(fields.data, cases[i].fields);
        assert_text(record->raw, cases[i].line);
        assert_int_equal(record->raw_format, NL_FORMAT_LOGFMT);
        assert_int_equal(nl_format_detect(cases[i].line, strlen(cases[i].line)), NL_FORMAT_LOGFMT);
        nl_buffer_free(&fields);
        nl_record_free(record);
    }
}

/* A message without digits names the event of a record that has no event, and other usual names set other members. */
static void uses_common_names(void **state)
{
    (void)state;
    static const struct {
        const char *line, *event, *host, *prog;
        size_t fields;
    } cases[] = {
        {TIME " msg=\"request received\" service=gateway hostname=h1", "request received", "h1", "gateway", 3},
        {TIME " message=hello service.name=a host.name=h2", "hello", "h2", "a", 3},
        {TIME " event=e msg=hello host=h prog=p service=s hostname=x", "e", "h", "p", 3},
        {TIME " event=e service=s hostname=x", "e", NULL, NULL, 2},
        {TIME " msg=\"took 12 ms\"", NULL, NULL, NULL, 1},
        {TIME " msg=\"0123456789012345678901234567890123456789012345678901234567890123456789\"", NULL, NULL, NULL, 1},
        {TIME " msg=\"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcde\"", NULL, NULL, NULL, 1},
        {TIME " msg= msg=second", "second", NULL, NULL, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nl_record *record = read_line(NL_FORMAT_LOGFMT, cases[i].line);
        check_member(record->event, cases[i].event);
        check_member(record->host, cases[i].host);
        check_member(record->prog, cases[i].prog);
        assert_int_equal(record->field_count, cases[i].fields);
        nl_record_free(record);
    }
}

static void reads_the_escapes_of_go(void **state)
{
    (void)state;
    nl_record *record = read_line(NL_FORMAT_LOGFMT,
                                  TIME " a=\"\\n\\t\\r\\\\\\\"\\a\\b\\f\\v\\x41\\101\\u00e9\\U0001F600\\ud83d\\ude00\""
                                       " b=\"\\q\\x4\\ud83d\\8\\U00110000\" c=\\n");
    assert_field(record, 0, "a", "\n\t\r\\\"\a\b\f\vAA\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
    assert_field(record, 1, "b", "\\q\\x4\\ud83d\\8\\U00110000");
    assert_field(record, 2, "c", "\\n");
    nl_record_free(record);
}

static void writes_what_other_readers_read(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    nl_record_set_time(record, TIME_NS);
    nl_record_set_level(record, NL_EMERGENCY);
    nl_record_set_event(record, "e", 1);
    nl_record_add_int(record, "i", -5);
    nl_record_add_string(record, "s", "a\x01\n\x7f\\ \"", 7);
    nl_record_add_string(record, "empty", "", 0);
    nl_record_add_string(record, "bytes", "\xff\\x", 3);
    nl_record_add_string(record, "time", "5", 1);
    nl_record_add_string(record, "ts", "6", 1);
    nl_record_add_string(record, "_.level", "7", 1);
    assert_written(record, NL_FORMAT_LOGFMT,
                   TIME
                   " level=fatal event=e i=-5 s=\"a\\u0001\\n\\u007f\\\\ \\\"\" empty=\"\" bytes=\xff\\x _.time=5 ts=6 "
                   "_._.level=7\n");
    nl_record_free(record);
    assert_rewritten(NL_FORMAT_LOGFMT, TIME " level=info a=1", NL_FORMAT_ULM,
                     "DATE=20261123010203.400000 LVL=Usage a=1\n");
    assert_rewritten(NL_FORMAT_LOGFMT, TIME " level=WARN a=1", NL_FORMAT_LOGFMT, TIME " level=WARN a=1\n");
    assert_rewritten(NL_FORMAT_ULM, "DATE=20261123010203.4 HOST=h PROG=p LVL=Warning NL.EVNT=e A=1", NL_FORMAT_LOGFMT,
                     TIME " level=warn host=h prog=p event=e A=1\n");
}

static void rejects_lines_without_a_time(void **state)
{
    (void)state;
    static const char none[] = "no time=, ts= or t= field with a time";
    assert_malformed(NL_FORMAT_LOGFMT, "", none);
    assert_malformed(NL_FORMAT_LOGFMT, "level=info msg=x", none);
    assert_malformed(NL_FORMAT_LOGFMT, "at=info method=GET path=/ host=h dyno=web.1 status=200", none);
    assert_malformed(NL_FORMAT_LOGFMT, "time=12ms t=5 ts=now a=b", none);
    assert_malformed(NL_FORMAT_LOGFMT, "a=\"time=2026-11-23T01:02:03Z \"", none);
    assert_malformed(NL_FORMAT_LOGFMT, "time=2026-13-23T01:02:03Z a=b", "time: invalid time: month 13");
}

static void short_fractions_may_be_microseconds(void **state)
{
    (void)state;
    static const char line[] = "time=2026-11-23T01:02:03.2102Z a=1";
    nl_record *record = nl_record_new();
    assert_int_equal(nl_record_decode(record, NL_FORMAT_LOGFMT, NL_FRACTION_MICROSECONDS, line, sizeof line - 1),
                     NL_OK);
    assert_null(record->raw.data);
    assert_written(record, NL_FORMAT_LOGFMT, "time=2026-11-23T01:02:03.002102Z a=1\n");
    nl_record_free(record);
}

static void any_bytes_round_trip(void **state)
{
    (void)state;
    check_round_trips(NL_FORMAT_LOGFMT, 20261123010203, 20000);
}

/* A record in any text format survives logfmt, and each line is recognized as the format in which it was written. */
static void any_record_goes_through_logfmt_and_back(void **state)
{
    (void)state;
    static const nl_format formats[] = {NL_FORMAT_ULM, NL_FORMAT_BP};
    uint64_t seed = 88172645463325252;
    nl_record *record = nl_record_new(), *back = nl_record_new();
    for (int i = 0; i < 5000; i++) {
        random_record(&seed, record);
        char *logfmt = write_line(record, NL_FORMAT_LOGFMT);
        assert_int_equal(nl_format_detect(logfmt, strlen(logfmt)), NL_FORMAT_LOGFMT);
        char *first = write_line(record, formats[i % 2]);
        nl_record *read = nl_record_new();
        assert_int_equal(nl_record_decode(read, NL_FORMAT_LOGFMT, NL_FRACTION_DECIMAL, logfmt, strlen(logfmt) - 1),
                         NL_OK);
        char *second = write_line(read, formats[i % 2]);
        assert_int_equal(nl_record_decode(back, formats[i % 2], NL_FRACTION_DECIMAL, second, strlen(second) - 1),
                         NL_OK);
        assert_same_record(record, read);
        assert_string_equal(second, first);
        assert_written(back, NL_FORMAT_LOGFMT, logfmt);
        free(logfmt);
        free(first);
        free(second);
        nl_record_free(read);
    }
    nl_record_free(record);
    nl_record_free(back);
}

static void is_told_from_the_other_formats(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        nl_format format;
    } cases[] = {
        {"ts=2026-11-23T01:02:03Z event=e level=info msg=x", NL_FORMAT_BP},
        {"ts=2026-11-23T01:02:03Z level=Info event=e", NL_FORMAT_BP},
        {"ts=2026-11-23T01:02:03Z level=Info k=v", NL_FORMAT_BP},
        {"ts=2026-11-23T01:02:03Z level=info msg=\"an event=3\"", NL_FORMAT_LOGFMT},
        {"level=info msg=\"see DATE=20000330112320 or ts=5\" time=2026-11-23T01:02:03Z", NL_FORMAT_ULM},
        {TIME " msg=\"see DATE=20000330112320 or ts=5\"", NL_FORMAT_LOGFMT},
        {"DATE=20000330112320 time=2026-11-23T01:02:03Z level=info msg=x", NL_FORMAT_ULM},
        {"HOST=h DATE=20000330112320 time=2026-11-23T01:02:03Z", NL_FORMAT_ULM},
        {"level=info msg=hello", NL_FORMAT_UNKNOWN},
        {"at=info method=GET path=/ status=200", NL_FORMAT_UNKNOWN},
        {"PATH=/bin TIME=5 time=5s t=4", NL_FORMAT_UNKNOWN},
        {"2026-11-23T01:02:03Z host prose with one a=b in it", NL_FORMAT_UNKNOWN},
        {"2026-11-23T01:02:03Z {\"json\": true}", NL_FORMAT_UNKNOWN},
        {"#!/bin/sh\nA=1\n" TIME " a=1\n", NL_FORMAT_LOGFMT},
        {"overtime=2026-11-23T01:02:03Z a=1", NL_FORMAT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (nl_format_detect(cases[i].text, strlen(cases[i].text)) != cases[i].format)
            fail_msg("%s: %s", cases[i].text, nl_format_name(nl_format_detect(cases[i].text, strlen(cases[i].text))));
}

/* The functions that look up formats agree with the format's row of the table. */
static void formats_are_described(void **state)
{
    (void)state;
    const char *list = nl_format_choices();
    assert_int_equal(list[0], '|');
    assert_null(nl_format_get_info(NL_FORMAT_UNKNOWN));
    assert_null(nl_format_get_info((nl_format)NL_FORMAT_COUNT));
    for (nl_format format = NL_FORMAT_ULM; format < NL_FORMAT_COUNT; format++) {
        const nl_format_info *info = nl_format_get_info(format);
        assert_int_equal(info->format, format);
        assert_int_equal(nl_format_parse(info->name), format);
        assert_non_null(strstr(list, info->name));
        char name[40];
        snprintf(name, sizeof name, "a%s", info->suffix);
        assert_int_equal(nl_format_of_name(name), info->suffix_is_format ? format : NL_FORMAT_UNKNOWN);
        assert_int_equal(nl_format_is_text(format), info->magic.data == NULL);
        assert_non_null(info->description);
        assert_non_null(info->media_type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_lines_of_other_programs),
        cmocka_unit_test(uses_common_names),
        cmocka_unit_test(reads_the_escapes_of_go),
        cmocka_unit_test(writes_what_other_readers_read),
        cmocka_unit_test(rejects_lines_without_a_time),
        cmocka_unit_test(short_fractions_may_be_microseconds),
        cmocka_unit_test(any_bytes_round_trip),
        cmocka_unit_test(any_record_goes_through_logfmt_and_back),
        cmocka_unit_test(is_told_from_the_other_formats),
        cmocka_unit_test(formats_are_described),
    };
    return cmocka_run_group_tests_name("logfmt", tests, NULL, NULL);
}
