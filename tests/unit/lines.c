/* The scanner of lines: its result agrees with the decoder's. */
#include "text_support.h"
#include "reader/decoder.h"
#include "record/line_scanner.h"

#include <stdlib.h>

enum { MAX = 64 };

typedef struct seen {
    size_t count;
    nl_scanned_line lines[MAX];
    bool nul;
} seen;

static seen scan(nl_format format, nl_fraction fraction, const char *text, size_t size)
{
    seen s = {0};
    nl_line_scanner *scanner = nl_line_scanner_new(format, fraction);
    size_t used, at = 0;
    /* Scans a few bytes at a time, at the end of readable memory. */
    char *copy = malloc(size + (size == 0));
    memcpy(copy, text, size);
    for (size_t got = 1; got > 0; at += used, s.count += got)
        got = nl_lines_scan(scanner, copy + at, size - at, at, s.lines + s.count, s.count + 3 < MAX ? 3 : MAX - s.count,
                            &used);
    s.nul = nl_line_scanner_met_nul(scanner);
    nl_line_scanner_free(scanner);
    free(copy);
    return s;
}

/* The decoder must read each plain line as a whole record with the same time and end. */
static void agrees(nl_format format, nl_fraction fraction, const char *line, size_t size)
{
    char text[512];
    assert_true(size < sizeof text);
    memcpy(text, line, size);
    text[size] = '\n';
    seen s = scan(format, fraction, text, size + 1);
    for (size_t i = 0; i < s.count; i++) {
        const nl_scanned_line *l = &s.lines[i];
        if (!nl_line_is_plain(*l) || s.nul)
            continue;
        nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.fraction = fraction});
        const char *end = memchr(text + nl_line_offset(*l), '\n', size + 1 - nl_line_offset(*l));
        nl_decoder_feed(decoder, text + nl_line_offset(*l), (size_t)(end + 1 - (text + nl_line_offset(*l))));
        const nl_record *record;
        if (nl_decoder_next(decoder, &record) != NL_OK)
            fail_msg("plain, but malformed: %.*s", (int)size, line);
        if (record->time_ns != l->time_ns || record->raw.data != text + nl_line_offset(*l) ||
            record->raw.size != nl_line_size(*l) || record->raw_format != format)
            fail_msg("read otherwise: %.*s", (int)size, line);
        assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 0);
        nl_decoder_free(decoder);
    }
}

static bool is_plain(nl_format format, const char *line)
{
    char text[512];
    int size = snprintf(text, sizeof text, "%s\n", line);
    seen s = scan(format, NL_FRACTION_DECIMAL, text, (size_t)size);
    assert_int_equal(s.count, 1);
    agrees(format, NL_FRACTION_DECIMAL, line, (size_t)size - 1);
    agrees(format, NL_FRACTION_MICROSECONDS, line, (size_t)size - 1);
    return nl_line_is_plain(s.lines[0]);
}

#define DATE "DATE=20000330112320.957943"

static void knows_plain_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool plain;
    } ulm[] = {
        {DATE " HOST=h PROG=p LVL=Usage NL.EVNT=e", true},
        {DATE, true},
        {DATE "\r", true},
        {DATE " \t ", true},
        {"DATE=20000330112320 A=1", true},
        {"DATE=20000330112320. A=1", true},
        {"DATE=20000330112320.1234567891 A=1", true},
        {DATE "\tA=1", true},
        {DATE " DEST=1 ADATE=3 UPDATE=", true},
        {DATE " DEST=1 UPDATE=2000", false}, /* the decoder decides */
        {DATE " DEST=DATE", true},
        {DATE " DEST=1 DAZE=2", true},
        {DATE " junk A=1", false},
        {DATE " 9A=1", false},
        {DATE "x A=1", false},
        {" " DATE " A=1", false},
        {"x " DATE " A=1", false},
        {"DATE=\"20000330112320\" A=1", false},
        {"DATE=2000-03-30T11:23:20Z A=1", false},
        {"DATE=20001330112320 A=1", false},
        {"DATE=20000230112320 A=1", false},
        {"DATE=20000330242320 A=1", false},
        {"DATE=20000330112360 A=1", false},
        {"DATE=2000033011232 A=1", false},
        {"DATE=15000330112320 A=1", false},
        {"DATE=29000330112320 A=1", false},
        {DATE " A=1 " DATE " HOST=h", false},
        {"DATE=", false},
        {"DATE", false},
        {"", false},
        {"ts=2000-03-30T11:23:20Z event=e", false},
    };
    for (size_t i = 0; i < sizeof ulm / sizeof ulm[0]; i++)
        if (is_plain(NL_FORMAT_ULM, ulm[i].line) != ulm[i].plain)
            fail_msg("%s", ulm[i].line);
    assert_true(is_plain(NL_FORMAT_BP, "ts=2000-03-30T11:23:20Z event=e"));
    assert_true(is_plain(NL_FORMAT_BP, "ts=2000-03-30T11:23:20.123456789Z event=e counts=5x\r"));
    assert_false(is_plain(NL_FORMAT_BP, "ts=2000-03-30T11:23:20+01:00 event=e"));
    assert_false(is_plain(NL_FORMAT_BP, "ts=2000-03-30 11:23:20Z event=e"));
    assert_false(is_plain(NL_FORMAT_BP, "ts=954415400.9 event=e"));
}

static void says_where_lines_are(void **state)
{
    (void)state;
    static const char text[] = DATE " A=1\n\n" DATE " A=2\r\nno newline";
    seen s = scan(NL_FORMAT_ULM, NL_FRACTION_DECIMAL, text, sizeof text - 1);
    assert_int_equal(s.count, 3);
    assert_int_equal(nl_line_offset(s.lines[0]), 0);
    assert_int_equal(nl_line_size(s.lines[0]), sizeof DATE - 1 + 4);
    assert_int_equal(nl_line_size(s.lines[1]), 0);
    assert_false(nl_line_is_plain(s.lines[1]));
    assert_int_equal(nl_line_offset(s.lines[2]), sizeof DATE + 5);
    assert_int_equal(nl_line_size(s.lines[2]), sizeof DATE - 1 + 4);
    assert_true(s.lines[2].time_ns == INT64_C(954415400957943000));
    assert_false(s.nul);
    assert_true(scan(NL_FORMAT_ULM, NL_FRACTION_DECIMAL, "a\0\n", 3).nul);
    assert_int_equal(scan(NL_FORMAT_ULM, NL_FRACTION_DECIMAL, "", 0).count, 0);
}

/* The result for a line does not depend on its position in the blocks that are scanned together. */
static void sees_lines_anywhere(void **state)
{
    (void)state;
    char text[512];
    for (size_t before = 0; before < 140; before++) {
        size_t size =
            (size_t)snprintf(text, sizeof text, "%*s\n" DATE " A=1 " DATE " A=2\n" DATE " A=3\n", (int)before, "");
        seen s = scan(NL_FORMAT_ULM, NL_FRACTION_DECIMAL, text, size);
        assert_int_equal(s.count, 3);
        assert_false(nl_line_is_plain(s.lines[1]));
        assert_true(nl_line_is_plain(s.lines[2]));
        assert_int_equal(nl_line_offset(s.lines[1]), before + 1);
    }
}

static void agrees_with_the_decoder(void **state)
{
    (void)state;
    static const char *const lines[] = {
        DATE " HOST=dpss1.lbl.gov PROG=testProg LVL=Usage NL.EVNT=WriteData SEND.SZ=49332",
        DATE " DEST=a DATE=20000330112320 STARTDATE=20000330112320 HOST=x",
        "ts=2012-03-14T14:04:46.000000Z event=stampede.job.start level=Info counts=3 ts=2012-03-14T14:04:46Z",
        "DATE=20000330112320.21 HOST=\"a b\" ts=5",
    };
    static const char bytes[] = "DATE=ts0123456789.:-TZ \t\r\n\"\\x";
    srand(1);
    for (int turn = 0; turn < 200000; turn++) {
        char line[256];
        size_t size = (size_t)snprintf(line, sizeof line, "%s", lines[turn % 4]);
        for (int change = rand() % 4; change >= 0; change--) {
            size_t at = (size_t)rand() % (rand() % 2 ? size : 40);
            line[at < size ? at : 0] = bytes[(size_t)rand() % (sizeof bytes - 1)];
        }
        nl_fraction fraction = turn % 8 < 4 ? NL_FRACTION_DECIMAL : NL_FRACTION_MICROSECONDS;
        agrees(NL_FORMAT_ULM, fraction, line, size);
        agrees(NL_FORMAT_BP, fraction, line, size);
    }
}

static void note_line(void *user, const nl_malformed *what)
{
    assert_int_equal(what->line, 12);
    assert_int_equal(what->offset, 400);
    ++*(int *)user;
}

static void lines_that_were_passed_over_count(void **state)
{
    (void)state;
    int told = 0;
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.on_malformed = note_line, .user = &told});
    static const char first[] = DATE "\n";
    const nl_record *record;
    nl_decoder_feed(decoder, first, sizeof first - 1);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_OK);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    nl_decoder_pass_over(decoder, NL_FORMAT_ULM, 10, 400 - (sizeof first - 1));
    nl_decoder_feed(decoder, "nonsense\n", 9);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    assert_int_equal(told, 1);
    nl_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_plain_lines),
        cmocka_unit_test(says_where_lines_are),
        cmocka_unit_test(sees_lines_anywhere),
        cmocka_unit_test(agrees_with_the_decoder),
        cmocka_unit_test(lines_that_were_passed_over_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
