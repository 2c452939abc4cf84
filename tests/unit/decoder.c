/* Decoding of bytes in pieces: every division, mixed formats, damage, and memory. */
#include "decoding.h"

#include <malloc.h>

#define DATE "DATE=20000330112320.957943"

static void note_malformed(void *user, const nl_malformed *what)
{
    char place[200];
    snprintf(place, sizeof place, "! %s:%d@%d %s: ", what->source, (int)what->line, (int)what->offset, what->reason);
    nl_buffer_append(user, place, strlen(place));
    nl_buffer_append(user, what->text.data, what->text.size < 60 ? what->text.size : 60);
    nl_buffer_append(user, "\n", 1);
}

/* Returns the records in ULM and the malformed pieces, one per line, in order. */
static decoded decoder_decode(const char *input, size_t size, size_t piece, bool plain, size_t max_record_size)
{
    nl_decoder_options options = {.source = "in", .max_record_size = max_record_size, .on_malformed = note_malformed};
    return decode_in_pieces(input, size, piece, plain, options);
}

/* Asserts that the input gives that text for every division into pieces. */
static void assert_decoded_bytes(const char *input, size_t size, const char *expected)
{
    for (size_t piece = 0; piece <= 2 * size + 3; piece++) {
        decoded r = decoder_decode(input, size, piece / 2, piece % 2 == 1, 0);
        assert_string_equal(r.text.data, expected);
        assert_int_equal(r.stats.bytes, size);
        nl_buffer_free(&r.text);
    }
}

static void assert_decoded(const char *input, const char *expected)
{
    assert_decoded_bytes(input, strlen(input), expected);
}

static void reads_lines_however_they_are_cut(void **state)
{
    (void)state;
    assert_decoded("", "");
    assert_decoded("\n\n  \n\r\n", "");
    assert_decoded(DATE " A=1\n" DATE " A=2\r\n\n" DATE " A=3\n", DATE " A=1\n" DATE " A=2\n" DATE " A=3\n");
    assert_decoded(DATE " A=1\n" DATE " A=\"2 3", DATE " A=1\n..." DATE " A=\"\\\"2 3\"\n");
    assert_decoded(DATE " A=1\n" DATE " A=2\r", DATE " A=1\n..." DATE " A=2\n");
    assert_decoded(
        DATE " A=1\nDATE=2000", DATE
        " A=1\n! in:2@31 the last line is incomplete: DATE: invalid time: 14 digits are required, not 4: DATE=2000\n");
    assert_decoded(DATE " A=1\nDA", DATE " A=1\n! in:2@31 the last line is incomplete: no DATE= field: DA\n");
    assert_decoded("DATE=2000", "! in:1@0 DATE: invalid time: 14 digits are required, not 4: DATE=2000\n");
}

static void passes_over_what_stands_before(void **state)
{
    (void)state;
    static const char header[] = "ULM\0    " DATE " A=1\n" DATE " A=2\n";
    assert_decoded_bytes(header, sizeof header - 1, DATE " A=1\n" DATE " A=2\n");
    static const char blank_header[] = "ULM\0    \n" DATE "\n";
    assert_decoded_bytes(blank_header, sizeof blank_header - 1, DATE "\n");
    static const char only_header[] = "ULM\0    ";
    assert_decoded_bytes(only_header, sizeof only_header - 1, "");
    assert_decoded("\xef\xbb\xbf" DATE " A=1\n", DATE " A=1\n");
    assert_decoded("\xef\xbb\xbf\r\n" DATE " A=1\n", DATE " A=1\n");
}

static void counts_and_places_what_is_malformed(void **state)
{
    (void)state;
    assert_decoded("#!/bin/sh\n\nx\n" DATE " A=1\nnothing\nDATE=20001330000000 B=2\nts=1 event=e\nevent=f\n",
                   "! in:1@0 no DATE=, ts= or time= field: #!/bin/sh\n"
                   "! in:3@11 no DATE=, ts= or time= field: x\n" DATE " A=1\n"
                   "! in:5@44 no DATE= field: nothing\n"
                   "! in:6@52 DATE: invalid time: month 13: DATE=20001330000000 B=2\n"
                   "DATE=19700101000001.000000 NL.EVNT=e\n"
                   "! in:8@89 no ts= field: event=f\n");
}

static void reads_formats_mixed_line_by_line(void **state)
{
    (void)state;
    assert_decoded("ts=2000-03-30T11:23:20.957943Z event=a level=Warn\n" DATE
                   " NL.EVNT=b LVL=Warning\nHOST=h event=5 " DATE "\nlevel=Info event=d ts=1\nts=5 HOST=h " DATE "\n",
                   DATE " LVL=Warning NL.EVNT=a\n" DATE " LVL=Warning NL.EVNT=b\n" DATE " HOST=h event=5\n"
                        "DATE=19700101000001.000000 LVL=Usage NL.EVNT=d\n" DATE " HOST=h ts=5\n");
    /* If a format is given, no other format is read. */
    nl_decoder_options options = {.format = NL_FORMAT_BP};
    nl_decoder *decoder = nl_decoder_new(&options);
    static const char line[] = DATE " A=1\nts=1 A=1\n";
    nl_decoder_feed(decoder, line, sizeof line - 1);
    const nl_record *record;
    assert_int_equal(nl_decoder_next(decoder, &record), NL_OK);
    assert_int_equal(record->raw_format, NL_FORMAT_BP);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 1);
    nl_decoder_free(decoder);
}

/*
 * The next record cuts off each record at each byte. The decoder always reads the next record. It always reports the
 * truncated record, and never reads it as a record.
 */
static void finds_the_record_behind_a_cut_one(void **state)
{
    (void)state;
    static const struct {
        const char *first, *next;
    } pairs[] = {
        {DATE " HOST=h1 PROG=p LVL=Usage NL.EVNT=e A=1 B=\"x y\" C=z w",
         DATE " HOST=h2 PROG=q LVL=Debug NL.EVNT=f D=\"a b\""},
        {"ts=2000-03-30T11:23:20.957943Z event=e level=Info host=h A=1 B=\"x y\" C=z w",
         "ts=2012-03-14T14:04:46.000000Z event=f level=Warn D=\"a b\""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (size_t cut = 1; cut <= strlen(pairs[i].first); cut++) {
            char input[400];
            snprintf(input, sizeof input, "%.*s%s\n%s\n", (int)cut, pairs[i].first, pairs[i].next, pairs[i].next);
            decoded r = decoder_decode(input, strlen(input), strlen(input), false, 0);
            nl_record *next = read_line(i == 0 ? NL_FORMAT_ULM : NL_FORMAT_BP, pairs[i].next);
            char *expected = write_line(next, NL_FORMAT_ULM);
            const char *found = strstr(r.text.data, expected);
            if (r.stats.records != 2 || r.stats.malformed != 1 || found == NULL)
                fail_msg("cut at %zu: %s gives %s", cut, input, r.text.data);
            free(expected);
            nl_record_free(next);
            nl_buffer_free(&r.text);
        }
    }
    assert_decoded(DATE " A=\"never closed" DATE " HOST=b B=\"x y\"\n",
                   "! in:1@0 incomplete record, followed by another record on the same line: " DATE
                   " A=\"never closed\n" DATE " HOST=b B=\"x y\"\n");
    assert_decoded(DATE " A=1" DATE " A=2" DATE " A=3"
                        "\n",
                   "! in:1@0 incomplete record, followed by another record on the same line: " DATE " A=1\n"
                   "! in:1@30 incomplete record, followed by another record on the same line: " DATE " A=2\n" DATE
                   " A=3\n");
    /* The same text in quotes is a value. */
    assert_decoded(DATE " A=\"" DATE "\" B=\"x " DATE "\"\n", DATE " A=\"" DATE "\" B=\"x " DATE "\"\n");
}

static void passes_over_records_that_are_too_long(void **state)
{
    (void)state;
    enum { MAX = 64 };
    char input[1200];
    /*
     * Tests a line that is one byte too long, lines of the maximum size (with and without a carriage return), and a
     * very long line.
     */
    int size = snprintf(input, sizeof input, "%s A=%0*d\n%s B=%0*d\n%s B=%0*d\r\n%s A=%0*d\n%s C=1\n%s D=%0*d", DATE,
                        MAX + 1 - 29, 1, DATE, MAX - 29, 2, DATE, MAX - 29, 3, DATE, 500, 4, DATE, DATE, 300, 5);
    for (size_t piece = 0; piece <= (size_t)size; piece++) {
        decoded r = decoder_decode(input, (size_t)size, piece, piece % 2 == 1, MAX);
        char expected[1200];
        snprintf(expected, sizeof expected,
                 "! in:1@0 record is longer than 64 bytes: %.60s\n%s B=%0*d\n%s B=%0*d\n"
                 "! in:4@197 record is longer than 64 bytes: %.60s\n%s C=1\n"
                 "! in:6@758 record is longer than 64 bytes: %.60s\n",
                 input, DATE, MAX - 29, 2, DATE, MAX - 29, 3, input + 197, DATE, input + 758);
        assert_string_equal(r.text.data, expected);
        nl_buffer_free(&r.text);
    }
}

static void copes_with_anything(void **state)
{
    (void)state;
    static const char *const lines[] = {
        DATE " HOST=h PROG=p LVL=Usage NL.EVNT=e A=1 B=\"x \\\" \\x41y\" C=z w\n",
        "ts=2012-03-14T14:04:46.000000Z event=f level=Warn D=\"a b\"\n",
        "[24775] Thu Jul 27 12:59:42 2023 :: Transfer stats: DATE=20230727125942.2102 FILE=//tmp/a b\r\n",
    };
    uint64_t seed = 4242;
    for (int round = 0; round < 3000; round++) {
        char input[2000];
        size_t size = 0;
        while (size < 1500) {
            const char *line = lines[random_below(&seed, 3)];
            memcpy(input + size, line, strlen(line));
            size += strlen(line);
        }
        for (size_t changes = random_below(&seed, 40); changes > 0; changes--) {
            size_t at = random_below(&seed, size), count = random_below(&seed, 30);
            if (at + count > size)
                continue;
            if (next_random(&seed) & 0x100) { /* changed or lost bytes */
                random_bytes(&seed, input + at, count);
            } else {
                memmove(input + at, input + at + count, size - at - count);
                size -= count;
            }
        }
        /* The result is the same in one piece, in many pieces, and byte by byte. */
        decoded whole = decoder_decode(input, size, size, false, 300),
                pieces = decoder_decode(input, size, 0, false, 300), bytes = decoder_decode(input, size, 1, false, 300),
                plain = decoder_decode(input, size, 0, true, 300);
        assert_int_equal(whole.text.size, pieces.text.size);
        assert_memory_equal(whole.text.data, pieces.text.data, whole.text.size);
        assert_int_equal(whole.text.size, bytes.text.size);
        assert_memory_equal(whole.text.data, bytes.text.data, whole.text.size);
        assert_int_equal(whole.text.size, plain.text.size);
        assert_memory_equal(whole.text.data, plain.text.data, whole.text.size);
        assert_int_equal(whole.stats.records, plain.stats.records);
        nl_buffer_free(&whole.text);
        nl_buffer_free(&pieces.text);
        nl_buffer_free(&bytes.text);
        nl_buffer_free(&plain.text);
    }
}

/* mallinfo2 does not count in a build with a sanitizer, which has its own malloc. */
static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void idle_decoders_are_small(void **state)
{
    (void)state;
    enum { COUNT = 1000, LARGE = 500000 };
    static const char small[] = DATE " A=1 B=\"\\x41\"\n";
    static nl_decoder *decoders[COUNT];
    char *large = malloc(LARGE);
    assert_non_null(large);
    strcpy(large, DATE);
    for (size_t size = strlen(DATE); size < LARGE; size += 2) /* the maximum number of fields */
        memcpy(large + size, (size - strlen(DATE)) % 4 == 0 ? " A" : "= ", 2);
    large[LARGE - 1] = '\n';
    void *volatile probe = malloc(10000);
    size_t before = in_use();
    free(probe);
    bool counts = in_use() < before;
    before = in_use();
    for (size_t i = 0; i < COUNT; i++) {
        const nl_record *record;
        decoders[i] = nl_decoder_new(NULL);
        const char *line = i < 3 ? large : small;
        size_t size = i < 3 ? LARGE : sizeof small - 1;
        nl_decoder_feed(decoders[i], line, size / 2);
        assert_int_equal(nl_decoder_next(decoders[i], &record), NL_AGAIN);
        nl_decoder_feed(decoders[i], line + size / 2, size - size / 2);
        assert_int_equal(nl_decoder_next(decoders[i], &record), NL_OK);
        assert_int_equal(nl_decoder_next(decoders[i], &record), NL_AGAIN);
    }
    size_t each = (in_use() - before) / COUNT;
    for (size_t i = 0; i < COUNT; i++)
        nl_decoder_free(decoders[i]);
    free(large);
    if (!counts) /* without mallinfo2, each is 0 */
        print_message("# this build's malloc does not count: nothing was measured\n");
    if (each >= 2560)
        fail_msg("an idle decoder takes %zu bytes", each);
}

static void says_what_it_holds(void **state)
{
    (void)state;
    enum { SIZE = 20000 };
    static char half[SIZE];
    memset(half, 'x', SIZE);
    memcpy(half, DATE " X=", strlen(DATE) + 3);
    const nl_record *record;
    nl_decoder *decoder = nl_decoder_new(NULL);
    assert_int_equal(nl_decoder_held(decoder), 0);
    nl_decoder_feed(decoder, half, SIZE);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    assert_in_range(nl_decoder_held(decoder), SIZE, 4 * SIZE);
    nl_decoder_feed(decoder, "\n", 1);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_OK);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    assert_in_range(nl_decoder_held(decoder), 0, 1000);
    nl_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lines_however_they_are_cut),
        cmocka_unit_test(passes_over_what_stands_before),
        cmocka_unit_test(counts_and_places_what_is_malformed),
        cmocka_unit_test(reads_formats_mixed_line_by_line),
        cmocka_unit_test(finds_the_record_behind_a_cut_one),
        cmocka_unit_test(passes_over_records_that_are_too_long),
        cmocka_unit_test(copes_with_anything),
        cmocka_unit_test(idle_decoders_are_small),
        cmocka_unit_test(says_what_it_holds),
    };
    return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
