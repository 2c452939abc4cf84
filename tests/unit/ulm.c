/* ULM: reading lines of real logs, and writing. */
#include "text_support.h"

#include <time.h>

#define DATE "DATE=20000330112320.957943"

static void reads_the_standard_record(void **state)
{
    (void)state;
    static const char line[] = DATE " HOST=dpss1.lbl.gov PROG=testProg LVL=Usage NL.EVNT=WriteData SEND.SZ=49332";
    nl_record *record = read_line(NL_FORMAT_ULM, line);
    assert_true(record->time_ns == INT64_C(954415400957943000));
    assert_text(record->host, "dpss1.lbl.gov");
    assert_text(record->prog, "testProg");
    assert_int_equal(record->level, NL_USAGE);
    assert_text(record->level_text, "Usage");
    assert_text(record->event, "WriteData");
    assert_int_equal(record->field_count, 1);
    assert_field(record, 0, "SEND.SZ", "49332");
    assert_text(record->raw, line);
    assert_int_equal(record->raw_format, NL_FORMAT_ULM);
    nl_record_free(record);
}

static void reads_what_real_logs_hold(void **state)
{
    (void)state;
    static const struct {
        const char *line, *written;
    } cases[] = {
        {DATE, DATE},
        {DATE " NL.EVNT=e", DATE " NL.EVNT=e"},
        {"A=1 PROG=p NL.EVNT=e HOST=h LVL=Debug B=2 " DATE, DATE " HOST=h PROG=p LVL=Debug NL.EVNT=e A=1 B=2"},
        {DATE " DEST=1[128.135.152.241] C=226", DATE " DEST=1[128.135.152.241] C=226"},
        {DATE " FILE=//tmp/a b SIZE=3", DATE " FILE=\"//tmp/a b\" SIZE=3"},
        {DATE " FILE=a  b \t c  ", DATE " FILE=\"a  b \\t c\""},
        {DATE " FILE= a", DATE " FILE=a"},
        {DATE " A= B=1 C=", DATE " A=\"\" B=1 C=\"\""},
        {DATE " A=\"\" B=1", DATE " A=\"\" B=1"},
        {DATE " A=x\\ny\\\\", DATE " A=x\\ny\\\\"}, /* outside of quotes, a backslash has no special meaning */
        {DATE " CMD=dd if=/dev/zero", DATE " CMD=dd if=/dev/zero"},
        {DATE " CMD=dd /if=zero", DATE " CMD=\"dd /if=zero\""},
        {DATE " URL=http://h/?a=b&c=d", DATE " URL=\"http://h/?a=b&c=d\""},
        {DATE "\tA=1\tB=2 ", DATE " A=1 B=2"},
        {DATE " A=1\r", DATE " A=1"},
        {DATE " A=1 A=2", DATE " A=1 A=2"},
        {DATE " HOST=h 9A=1 =2 -B=3 C=4", DATE " HOST=\"h 9A=1 =2 -B=3\" C=4"},
        {DATE " HOST=h =2 B", DATE " HOST=\"h =2 B\""},
        {"[24775] Thu Jul 27 12:59:42 2023 :: Transfer stats: " DATE " A=1", DATE " A=1"},
        {"stats:" DATE " A=1", DATE " A=1"},
        {"<13>x=y stats:" DATE " A=1", DATE " A=1"},
        {DATE " HOST=a HOST=b", DATE " HOST=a _.HOST=b"},
        {DATE " LVL=info", DATE " LVL=info"},
        {DATE " LVL=Info", DATE " LVL=Usage"},
        {DATE " LVL=Trace", DATE " LVL=Trace"},
        {DATE " LVL=", DATE " LVL=\"\""},
        {DATE " STARTDATE=20000330112320.5 A=1", DATE " STARTDATE=20000330112320.5 A=1"},
        {DATE " HOST=h STARTDATE=20000330112320.5 A=1", DATE " HOST=h STARTDATE=20000330112320.5 A=1"},
        {"DATE=\"20000330112320.957943\" A=1", DATE " A=1"},
        {"DATE=2000-03-30T11:23:20.957943Z", DATE},
        {"ts=5 " DATE, DATE " ts=5"},
        {DATE " HOST=h \xc3\xa9=1 K=\xc3\xa9", DATE " HOST=\"h \xc3\xa9=1\" K=\xc3\xa9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char written[200];
        snprintf(written, sizeof written, "%s\n", cases[i].written);
        assert_rewritten(NL_FORMAT_ULM, cases[i].line, NL_FORMAT_ULM, written);
    }
}

static void reads_quoted_values(void **state)
{
    (void)state;
    nl_record *record = read_line(
        NL_FORMAT_ULM, DATE " A=\"a b\" B=\"\\\"\\\\\\n\\t\\r\\x41\\x0a\" C=\"\\q\\x4\\xg1\" D=\"x=1 DATE=2\" E=\"");
    assert_field(record, 0, "A", "a b");
    assert_field(record, 1, "B", "\"\\\n\t\rA\n");
    assert_field(record, 2, "C", "\\q\\x4\\xg1"); /* unknown escapes stay */
    assert_field(record, 3, "D", "x=1 DATE=2");
    assert_field(record, 4, "E", "\""); /* a quote that is never closed is plain text */
    nl_record_free(record);
    /* A quote that is closed too early is also text, and no byte is lost. */
    record = read_line(NL_FORMAT_ULM, DATE " A=\"x\"y B=\"x\" and more C=5\" D=\"a\\\"");
    assert_field(record, 0, "A", "\"x\"y");
    assert_field(record, 1, "B", "\"x\" and more");
    assert_field(record, 2, "C", "5\"");
    assert_field(record, 3, "D", "\"a\\\"");
    nl_record_free(record);
    /* NUL and the other control bytes. */
    record = nl_record_new();
    static const char line[] = DATE " A=a\0b B=\"\\x00\"";
    assert_int_equal(nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, line, sizeof line - 1), NL_OK);
    assert_int_equal(record->fields[0].string.size, 3);
    assert_int_equal(record->fields[1].string.size, 1);
    assert_int_equal(record->fields[1].string.data[0], 0);
    assert_written(record, NL_FORMAT_ULM, DATE " A=\"a\\x00b\" B=\"\\x00\"\n");
    nl_record_free(record);
}

static void refuses_a_line_without_a_time(void **state)
{
    (void)state;
    assert_malformed(NL_FORMAT_ULM, "", "no DATE= field");
    assert_malformed(NL_FORMAT_ULM, "HOST=h NL.EVNT=e", "no DATE= field");
    assert_malformed(NL_FORMAT_ULM, "XDATE=20000330112320 date=20000330112320", "no DATE= field");
    assert_malformed(NL_FORMAT_ULM, "A=\"DATE=20000330112320 \"", "no DATE= field");
    assert_malformed(NL_FORMAT_ULM, "DATE=20001330112320 HOST=h", "DATE: invalid time: month 13");
    assert_malformed(NL_FORMAT_ULM, "DATE= HOST=h", "DATE: invalid time: the text is empty");
    assert_malformed(NL_FORMAT_ULM, "DATE=20000330", "DATE: invalid time: 14 digits are required, not 8");
    assert_malformed(NL_FORMAT_ULM, "DATE=954415400.957943", "DATE: invalid time: 14 digits are required, not 9");
    /* Words that belong to no other field belong to the time. */
    assert_malformed(NL_FORMAT_ULM, "DATE=20000330112320 today HOST=h",
                     "DATE: invalid time: expected YYYYMMDDhhmmss or ISO 8601");
    assert_malformed(NL_FORMAT_ULM, "DATE=20000330112320.5 today HOST=h",
                     "DATE: invalid time: the fraction contains a character that is not a digit");
    assert_malformed(NL_FORMAT_ULM, "DATE=99990330112320", "DATE: invalid time: before 1678 or after 2261");
}

static void a_reading_by_option_forgets_the_text(void **state)
{
    (void)state;
    /* Text with a special meaning for another reader must not be passed on unchanged. */
    static const char short_fraction[] = "DATE=20230727125942.2102", full[] = "DATE=20230727125942.002102";
    nl_record *record = nl_record_new();
    assert_int_equal(
        nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_MICROSECONDS, short_fraction, sizeof short_fraction - 1),
        NL_OK);
    assert_null(record->raw.data);
    assert_written(record, NL_FORMAT_ULM, "DATE=20230727125942.002102\n");
    assert_int_equal(nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_MICROSECONDS, full, sizeof full - 1), NL_OK);
    assert_text(record->raw, full);
    nl_record_free(record);
}

static void names_that_would_be_mistaken_are_escaped(void **state)
{
    (void)state;
    static const char *const ulm[] = {
        DATE " ts=5 event=e host=h level=l prog=p\n",
        DATE " _.DATE=5 _.HOST=x _._.HOST=y _.ts=z _=0\n",
        DATE " HOST=a _.HOST=b NL.EVNT=x\n",
        DATE " HOST=a PROG=\"b c\" LVL=Warning NL.EVNT=e A=\"\" B=\"a=b\"\n",
        DATE " LVL=Fatal\n",
        DATE " LVL=fatal A=1\n",
        "DATE=20000330112320.957943001\n",
    };
    for (size_t i = 0; i < sizeof ulm / sizeof ulm[0]; i++) {
        nl_record *record = nl_record_new(), *back = nl_record_new();
        size_t size = strlen(ulm[i]) - 1;
        assert_int_equal(nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, ulm[i], size), NL_OK);
        char *bp = write_line(record, NL_FORMAT_BP), *before = write_line(record, NL_FORMAT_ULM);
        assert_int_equal(nl_record_decode(back, NL_FORMAT_BP, NL_FRACTION_DECIMAL, bp, strlen(bp) - 1), NL_OK);
        assert_written(back, NL_FORMAT_ULM, before);
        assert_int_equal(back->field_count, record->field_count);
        free(bp);
        free(before);
        nl_record_free(record);
        nl_record_free(back);
    }
    assert_rewritten(NL_FORMAT_ULM, DATE " ts=5 HOST=h event=e", NL_FORMAT_BP,
                     "ts=2000-03-30T11:23:20.957943Z host=h _.ts=5 _.event=e\n");
    assert_rewritten(NL_FORMAT_ULM, DATE " _.HOST=a", NL_FORMAT_ULM, DATE " _.HOST=a\n");
}

static void any_bytes_round_trip(void **state)
{
    (void)state;
    check_round_trips(NL_FORMAT_ULM, 20000330112320, 20000);
}

/* A line of 1 MiB of each of these texts must not take longer than other lines. */
static void takes_linear_time(void **state)
{
    (void)state;
    static const char *const pieces[] = {" A=\"",
                                         " A=\"x\"y",
                                         " A=\"\\\"",
                                         " A=",
                                         " \"",
                                         "=",
                                         "\\",
                                         "DATE=20000330112320",
                                         " XDATE=20000330112320",
                                         " ",
                                         "A",
                                         "\xff",
                                         " DATE=20000330112320 A=\"",
                                         "\"x\" A=\"y"};
    nl_record *record = nl_record_new();
    nl_buffer line = {0};
    clock_t start = clock();
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        line.size = 0;
        nl_buffer_append(&line, DATE, strlen(DATE));
        while (line.size < 1 << 20)
            nl_buffer_append(&line, pieces[i], strlen(pieces[i]));
        nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, line.data, line.size);
    }
    /* Processor time, so that other processes do not matter. A quadratic function would take many minutes. */
    assert_true(clock() - start < 120 * CLOCKS_PER_SEC);
    nl_buffer_free(&line);
    nl_record_free(record);
}

/* Values are scanned in pieces of several sizes: a byte that needs quotes is found at every position. */
static void quotes_are_put_wherever_the_byte_is(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {'a', '!', '#', '<',  '>', '~', 0xa0, 0xff, ' ',
                                          '=', '"', 1,   '\t', 31,  127, 0,    0x80, 0x9b};
    enum { NEED_NONE = 8, SIZE_MAX_ = 70 };
    for (size_t kind = 0; kind < sizeof bytes; kind++)
        for (size_t size = 1; size <= SIZE_MAX_; size++)
            for (size_t at = 0; at < size; at++) {
                char value[SIZE_MAX_];
                memset(value, 'v', size);
                value[at] = (char)bytes[kind];
                nl_record *record = nl_record_new(), *back = nl_record_new();
                nl_record_add_string(record, "A", value, size);
                nl_record_add_int(record, "B", 1);
                nl_buffer line = {0};
                nl_record_encode(record, NL_FORMAT_ULM, &line);
                const char *written = line.data + strlen("DATE=19700101000000.000000 A=");
                assert_int_equal(*written == '"', kind >= NEED_NONE);
                assert_int_equal(nl_record_decode(back, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, line.data, line.size - 1),
                                 NL_OK);
                assert_same_record(record, back);
                nl_buffer_free(&line);
                nl_record_free(record);
                nl_record_free(back);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_standard_record),
        cmocka_unit_test(reads_what_real_logs_hold),
        cmocka_unit_test(reads_quoted_values),
        cmocka_unit_test(refuses_a_line_without_a_time),
        cmocka_unit_test(a_reading_by_option_forgets_the_text),
        cmocka_unit_test(names_that_would_be_mistaken_are_escaped),
        cmocka_unit_test(any_bytes_round_trip),
        cmocka_unit_test(quotes_are_put_wherever_the_byte_is),
        cmocka_unit_test(takes_linear_time),
    };
    return cmocka_run_group_tests_name("ulm", tests, NULL, NULL);
}
