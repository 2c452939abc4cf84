/* The parts of nlagentd that need no process: conditions, summaries, sensors' names, directory expressions. */
#include <netlogger.h>

#include "agent/condition.h"
#include "agents/directory.h"
#include "agents/soap.h"
#include "agent/summary.h"
#include "base/buffer.h"
#include "sensors/spec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static const condition_options anything = {.above = NAN, .below = NAN, .percent = NAN};

/* ---- sensors' names ---- */

static void test_specifications(void **state)
{
    (void)state;
    sensor_spec *a = spec_parse("ping?host=a%20b%26c&count=3"), *b = spec_parse("ping?count=3&host=a%20b%26c");
    assert_non_null(a);
    assert_string_equal(spec_argument(a, "host"), "a b&c");
    assert_string_equal(a->text, b->text);
    sensor_spec *again = spec_parse(a->text);
    assert_string_equal(again->text, a->text);
    assert_string_equal(spec_unknown(a, " count "), "host");
    assert_null(spec_unknown(a, " count host "));
    assert_true(spec_has_required(a, NULL));
    assert_true(spec_has_required(a, "host=NAME"));
    assert_false(spec_has_required(a, "hos=NAME"));
    assert_false(spec_has_required(a, "hosts=NAME"));
    long number;
    assert_true(spec_number(a, "count", 1, 5, 1, &number));
    assert_int_equal(number, 3);
    assert_false(spec_number(a, "count", 4, 5, 1, &number));
    spec_free(a);
    spec_free(b);
    spec_free(again);
    static const char *const wrong[] = {"",      "?",       "1a",      "a b",    "a?",        "a?b",    "a?=c",
                                        "a?b=%", "a?b=%0g", "a?b=%00", "a?b=\n", "a?b=1&b=2", "a?b=1&", "../a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_null(spec_parse(wrong[i]));
}

/* ---- conditions ---- */

static nl_record *disk(const char *name, double value)
{
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "D", 1);
    nl_record_add_string(record, "DISK.NAME", name, strlen(name));
    nl_record_add_double(record, "X", value);
    return record;
}

static bool wants(condition *c, const char *name, double value, uint64_t look, int64_t ns)
{
    nl_record *record = disk(name, value);
    allowance budget = condition_new_budget();
    bool wanted = condition_selects(c, look, ns);
    if (wanted)
        assert_int_equal(condition_judge(c, &budget, record, &wanted), NL_OK);
    nl_record_free(record);
    return wanted;
}

static condition *nlagent_make(condition_options w)
{
    condition *c = condition_new(&w);
    if (c == NULL)
        fail_msg("%s", nl_error_message());
    return c;
}

static void test_a_rate_takes_whole_looks(void **state)
{
    (void)state;
    condition_options w = anything;
    w.interval_s = 1;
    condition *c = nlagent_make(w);
    unsigned taken = 0;
    for (uint64_t look = 1; look <= 100; look++) { /* ten samples per second, slightly irregular */
        int64_t ns = (int64_t)look * SECOND / 10 + (look % 3) * 1000000;
        bool a = wants(c, "sda", 1, look, ns), b = wants(c, "sdb", 1, look, ns + 5);
        assert_int_equal(a, b);
        taken += a;
    }
    assert_in_range(taken, 9, 12);
    /* After a pause, the condition accepts one sample, and none for the missed intervals. */
    assert_true(wants(c, "sda", 1, 101, 1000 * SECOND));
    assert_false(wants(c, "sda", 1, 102, 1000 * SECOND + SECOND / 10));
    condition_free(c);
}

static void test_hysteresis_of_each_thing(void **state)
{
    (void)state;
    condition_options w = anything;
    w.field = "X";
    w.above = 90;
    w.below = 80;
    condition *c = nlagent_make(w);
    static const struct {
        const char *name;
        double value;
        bool wanted;
    } steps[] = {{"sda", 50, false}, {"sdb", 95, true},   {"sda", 91, true},  {"sda", 99, false},  {"sda", 85, false},
                 {"sda", 91, false}, {"sdb", 79, true},   {"sda", 80, false}, {"sda", 79.9, true}, {"sda", 85, false},
                 {"sda", 90, false}, {"sda", 90.1, true}, {"sdb", NAN, false}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        assert_int_equal(wants(c, steps[i].name, steps[i].value, i + 1, 0), steps[i].wanted);
    condition_free(c);
}

static void test_change(void **state)
{
    (void)state;
    condition_options w = anything;
    w.field = "X";
    w.percent = 10;
    condition *c = nlagent_make(w);
    const double values[] = {100, 109, 110, 111, 121, 123, 100, 0, 0, 0.1};
    const bool wanted[] = {true, false, false, true, false, true, true, true, false, true};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(wants(c, "sda", values[i], i + 1, 0), wanted[i]);
    condition_free(c);
    w = anything;
    w.field = "X";
    w.on_change = true;
    c = nlagent_make(w);
    assert_true(wants(c, "sda", 1, 1, 0));
    assert_false(wants(c, "sda", 1, 2, 0));
    assert_true(wants(c, "sdb", 1, 3, 0));
    assert_true(wants(c, "sda", 2, 4, 0));
    condition_free(c);
}

static void test_impossible_wishes(void **state)
{
    (void)state;
    condition_options w = anything;
    w.on_change = true;
    assert_null(condition_new(&w)); /* the field is missing */
    w = anything;
    w.field = "X";
    assert_null(condition_new(&w)); /* the condition is missing */
    w.above = 1;
    w.below = 2;
    assert_null(condition_new(&w));
    w = anything;
    w.interval_s = -1;
    assert_null(condition_new(&w));
    w.interval_s = NAN;
    assert_null(condition_new(&w));
    w = anything;
    w.where = "X ==";
    assert_null(condition_new(&w));
    assert_non_null(strstr(nl_error_message(), "column"));
}

/* ---- summaries ---- */

typedef struct seen {
    size_t count;
    char text[4000];
} seen;

static void see(void *user, const nl_record *record)
{
    seen *s = user;
    nl_buffer line = {0};
    s->count++;
    nl_record_encode(record, NL_FORMAT_ULM, &line);
    snprintf(s->text, sizeof s->text, "%.*s", (int)line.size, line.data);
    nl_buffer_free(&line);
}

static void unit_nlagent_put(summaries *s, const char *name, double value, int64_t ns)
{
    nl_record *record = disk(name, value);
    summaries_put(s, record, ns);
    nl_record_free(record);
}

static void test_summaries(void **state)
{
    (void)state;
    summaries *s = summaries_new();
    seen all = {0};
    const int64_t start = INT64_C(1700000040) * SECOND; /* a whole minute */
    for (int i = 1; i <= 60; i++) {
        unit_nlagent_put(s, "sda", i, start + (i - 1) * SECOND);
        unit_nlagent_put(s, "sdb", -1, start + (i - 1) * SECOND);
    }
    assert_int_equal(summaries_list(s, 1, 0, see, &all), 0);
    summaries_tick(s, start + 60 * SECOND);
    assert_int_equal(summaries_list(s, 1, 0, see, &all), 2);
    assert_int_equal(summaries_list(s, 10, 0, see, &all), 0);
    assert_non_null(strstr(all.text, "DISK.NAME=sdb COUNT=60 MIN=-1 MEAN=-1 MAX=-1 P50=-1 P90=-1 P99=-1"));
    unit_nlagent_put(s, "sda", 1000, start + 61 * SECOND);
    summaries_tick(s, start + 700 * SECOND);
    all.count = 0;
    assert_int_equal(summaries_list(s, 10, 0, see, &all), 2);
    assert_int_equal(summaries_list(s, 1, start + SECOND, see, &all), 1);
    assert_non_null(strstr(all.text, "DISK.NAME=sda COUNT=1 MIN=1000"));
    summaries_free(s);
}

static void test_percentiles(void **state)
{
    (void)state;
    summaries *s = summaries_new();
    seen all = {0};
    for (int i = 100; i >= 1; i--)
        unit_nlagent_put(s, "sda", i, i * 1000000);
    summaries_tick(s, 61 * SECOND);
    summaries_list(s, 1, 0, see, &all);
    assert_non_null(strstr(all.text, "COUNT=100 MIN=1 MEAN=50.5 MAX=100 P50=50 P90=90 P99=99"));
    assert_non_null(strstr(all.text, "DATE=19700101000000.000000"));
    summaries_free(s);
}

static void test_a_day_is_kept(void **state)
{
    (void)state;
    summaries *s = summaries_new();
    seen all = {0};
    for (int minute = 0; minute < 3 * 24 * 60; minute++)
        unit_nlagent_put(s, "sda", minute, minute * 60 * SECOND);
    assert_int_equal(summaries_list(s, 1, 0, see, &all), 24 * 60);
    assert_int_equal(summaries_list(s, 10, 0, see, &all), 24 * 6);
    assert_int_equal(summaries_list(s, 60, 0, see, &all), 24);
    assert_non_null(strstr(all.text, "COUNT=60 "));
    /* The clock is set back, and then far ahead. These changes only close windows. */
    unit_nlagent_put(s, "sda", 1, 60 * SECOND);
    unit_nlagent_put(s, "sda", 2, INT64_C(4000000000) * SECOND);
    unit_nlagent_put(s, "sda", 3, INT64_C(4000000060) * SECOND);
    assert_int_equal(summaries_list(s, 1, INT64_C(4000000000) * SECOND - 60 * SECOND, see, &all), 1);
    summaries_free(s);
}

static void test_series_are_bounded(void **state)
{
    (void)state;
    char name[32];
    summaries *s = summaries_new();
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "disk%d", i);
        unit_nlagent_put(s, name, 1, SECOND);
    }
    assert_int_equal(summaries_left_out(s), 2000);
    summaries_free(s);
}

/* ---- the directory ---- */

static size_t agents;

static void count_agent(void *user, const char *host, const char *url, const directory_sensor *sensors, size_t count)
{
    (void)user, (void)host, (void)url, (void)sensors, (void)count;
    agents++;
}

static size_t nlagent_find(directory *d, const char *expression)
{
    nl_filter *filter = directory_filter(expression);
    assert_non_null(filter);
    agents = 0;
    directory_find(d, filter, count_agent, NULL);
    nl_filter_free(filter);
    return agents;
}

static void test_directory(void **state)
{
    (void)state;
    directory *d = directory_new();
    const directory_sensor sensors[] = {{"cpu", "w", "CpuLoad CpuOne"}, {"tcp", "w", "TcpSegments"}};
    char host[32], url[64];
    for (int i = 0; i < 1000; i++) {
        snprintf(host, sizeof host, "dpss%d.lbl.gov", i);
        snprintf(url, sizeof url, "http://%s:14831", host);
        assert_true(directory_register(d, host, url, i < 500 ? 1000 : 1e-9, sensors, 2));
    }
    assert_int_equal(nlagent_find(d, "sensor=tcp & host=dpss7*"), 111);
    assert_int_equal(nlagent_find(d, "sensor == tcp && host ~ dpss7*"), 111);
    assert_int_equal(nlagent_find(d, "host=dpss7.lbl.gov"), 1);
    assert_int_equal(nlagent_find(d, "host=dpss7"), 0);
    assert_int_equal(nlagent_find(d, "sensor=cpu & (host=dpss1.* | host=\"dpss2.*\")"), 2);
    assert_int_equal(nlagent_find(d, "events ~ *TcpSegments* & !(host=dpss*)"), 0);
    assert_int_equal(nlagent_find(d, "host != x & sensor >= d"), 1000);
    /* The expression has more tests than nlagentd stores. */
    nl_buffer many = {0};
    for (int i = 0; i < 40; i++) {
        snprintf(url, sizeof url, "%s(host=dpss%d.lbl.gov & sensor=%s)", i > 0 ? " | " : "", i, i % 2 ? "cpu" : "none");
        nl_buffer_append(&many, url, strlen(url));
    }
    nl_buffer_append(&many, "", 1);
    assert_int_equal(nlagent_find(d, many.data), 20);
    nl_buffer_free(&many);
    assert_int_equal(nlagent_find(d, "url ~ *dpss1.lbl* & what=w & events ~ *One"), 1);
    assert_true(directory_register(d, "other", "http://dpss1.lbl.gov:14831", 10, sensors, 1)); /* replaces it */
    assert_int_equal(directory_size(d), 1000);
    directory_expire(d);
    assert_int_equal(directory_size(d), 500);
    directory_withdraw(d, "http://dpss1.lbl.gov:14831");
    directory_withdraw(d, "http://nobody");
    assert_int_equal(directory_size(d), 499);
    assert_null(directory_filter("host="));
    directory_free(d);
}

/* ---- messages ---- */

static void test_records_go_through_soap_unchanged(void **state)
{
    (void)state;
    nl_buffer out = {0}, line = {0};
    soap_call call;
    nl_record *record = nl_record_new();
    nl_record_set_time(record, 1700000000123456789);
    nl_record_set_level(record, NL_USAGE);
    nl_record_set_host(record, "h\xff", 2);
    nl_record_set_prog(record, "<p>", 3);
    nl_record_set_event(record, "E\"&", 3);
    nl_record_add_string(record, "A", "\0\r\n\t <&>\"'", 10);
    nl_record_add_string(record, "A", "", 0);
    nl_record_add_int(record, "I", INT64_MIN);
    nl_record_add_uint(record, "U", UINT64_MAX);
    nl_record_add_double(record, "D", 0.1);
    nl_record_add_bool(record, "B", true);
    nl_record_encode(record, NL_FORMAT_ULM, &line);
    soap_begin(&out, "FetchResponse");
    soap_put_lines(&out, &line);
    soap_put_record(&out, record); /* other clients read it */
    soap_put(&out, "missed", "7\x01");
    soap_end(&out, "FetchResponse");
    assert_true(soap_read(out.data, out.size, &call));
    nl_buffer back = {0};
    assert_true(soap_lines(&call, &back));
    assert_int_equal(back.size, line.size);
    assert_memory_equal(back.data, line.data, line.size);
    nl_buffer_free(&back);
    assert_string_equal(soap_value(&call, "missed"), "7?");
    soap_call_free(&call);
    nl_record_free(record);
    nl_buffer_free(&out);
    nl_buffer_free(&line);
}

/* A day's summaries of many fields. */
static void test_a_large_reply_is_read(void **state)
{
    (void)state;
    enum { LARGE_SIZE = 20 << 20 };
    nl_buffer out = {0}, lines = {0}, back = {0};
    soap_call call;
    nl_buffer_reserve(&lines, LARGE_SIZE);
    memset(lines.data, 'x', LARGE_SIZE);
    lines.size = LARGE_SIZE;
    soap_begin(&out, "SummariesResponse");
    soap_put_lines(&out, &lines);
    soap_end(&out, "SummariesResponse");
    assert_true(soap_read(out.data, out.size, &call));
    assert_true(soap_lines(&call, &back));
    assert_int_equal(back.size, LARGE_SIZE);
    assert_memory_equal(back.data, lines.data, LARGE_SIZE);
    soap_call_free(&call);
    nl_buffer_free(&out);
    nl_buffer_free(&lines);
    nl_buffer_free(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specifications),
        cmocka_unit_test(test_a_rate_takes_whole_looks),
        cmocka_unit_test(test_hysteresis_of_each_thing),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_impossible_wishes),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_a_day_is_kept),
        cmocka_unit_test(test_series_are_bounded),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_records_go_through_soap_unchanged),
        cmocka_unit_test(test_a_large_reply_is_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
