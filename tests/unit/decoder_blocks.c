/* The decoder with blocks: every division, text between blocks, damage, missing records. */
#include "decoding.h"

#include "record/block_read.h"
#include "record/block_write.h"
#include "reader/admission.h"
#include "reader/streams.h"
#include "record/encoder.h"
#include "record/format.h"

static void add_line(nl_buffer *text, const char *line)
{
    nl_buffer_append(text, line, strlen(line));
}

static void note_malformed(void *user, const nl_malformed *what)
{
    char line[200];
    snprintf(line, sizeof line, "! %d@%d %s\n", (int)what->line, (int)what->offset, what->reason);
    add_line(user, line);
}

static void note_malformed_bytes(void *user, const nl_malformed *what)
{
    note_malformed(user, what);
    nl_buffer_append(user, what->text.data, what->text.size);
    add_line(user, "|\n");
}

static void note_lost(void *user, const nl_lost *what)
{
    char line[200];
    snprintf(line, sizeof line, "? %c %d/%d %d-%d\n", what->stream[0] != 0 ? what->stream[0] : '-', (int)what->dropped,
             (int)what->count, (int)what->from_ns, (int)what->to_ns);
    add_line(user, line);
}

/* Returns the records in ULM and the reports, one per line, in order. */
static decoded decode_so(const char *input, size_t size, size_t piece, nl_decoder_options options)
{
    options.on_lost = note_lost;
    return decode_in_pieces(input, size, piece, false, options);
}

static decoded decoder_blocks_decode(const char *input, size_t size, size_t piece, nl_format format)
{
    return decode_so(input, size, piece, (nl_decoder_options){.format = format, .on_malformed = note_malformed});
}

/* Asserts that the input gives that text for every division into pieces. */
static void assert_decoded_so(const nl_buffer *input, const char *expected, size_t expected_size,
                              nl_decoder_options options)
{
    for (size_t piece = 0; piece <= input->size + 1; piece++) {
        decoded r = decode_so(input->data, input->size, piece, options);
        if (r.text.size != expected_size + 1 || memcmp(r.text.data, expected, expected_size) != 0)
            fail_msg("in pieces of %zu: %s\nand not: %s", piece, r.text.data, expected);
        nl_buffer_free(&r.text);
    }
}

static void assert_decoded(const nl_buffer *input, const char *expected)
{
    assert_decoded_so(input, expected, strlen(expected), (nl_decoder_options){.on_malformed = note_malformed});
}

/*
 * Appends a block of a stream ('\0': without a stream) with count records, whose sequence numbers and microseconds
 * begin with first. The block reports that `lost` records before it were dropped.
 */
static void add_block(nl_buffer *out, char stream, int first, int count, int lost)
{
    nl_block_writer w = {0};
    nl_record *record = nl_record_new();
    nl_record_add_int(record, "N", 0);
    for (int i = 0; i < count; i++) {
        nl_record_clear(record);
        nl_record_set_time(record, (int64_t)(first + i) * 1000);
        nl_record_add_int(record, "N", first + i);
        assert_true(nl_block_put(&w, record));
    }
    nl_block_identity identity = {.stream = {(unsigned char)stream},
                                  .first_sequence = (uint64_t)first,
                                  .lost = (uint64_t)lost,
                                  .lost_from_ns = lost > 0 ? (first - lost) * 1000 : 0,
                                  .lost_to_ns = lost > 0 ? (first - 1) * 1000 : 0};
    nl_block_finish(&w, &identity, first % 2, out);
    nl_record_free(record);
    nl_block_writer_free(&w);
}

#define EPOCH "DATE=19700101000000.00000"

static void blocks_come_however_they_are_cut(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 'a', 0, 2, 0);
    add_block(&input, 0, 5, 1, 0);
    add_block(&input, 'a', 2, 1, 0);
    assert_decoded(&input, EPOCH "0 N=0\n" EPOCH "1 N=1\n" EPOCH "5 N=5\n" EPOCH "2 N=2\n");
    nl_buffer_free(&input);
}

#define LINE "DATE=20000330112320.957943 HOST=h A=1"

static void text_and_blocks_may_follow_one_another(void **state)
{
    (void)state;
    nl_buffer input = {0};
    nl_buffer_append(&input, "ULM\0    ", 8);
    add_block(&input, 0, 1, 1, 0);
    add_line(&input, LINE "\nts=1 event=e\n");
    add_block(&input, 0, 2, 1, 0);
    add_line(&input, LINE " B=\"cut"); /* a crash cut this line off; later, another file was appended */
    add_block(&input, 0, 3, 1, 0);
    add_block(&input, 0, 4, 1, 0);
    add_line(&input, "\r\nN=L NLB1\n" LINE);
    assert_decoded(&input, EPOCH "1 N=1\n" LINE "\nDATE=19700101000001.000000 NL.EVNT=e\n" EPOCH "2 N=2\n..." LINE
                                 " B=\"\\\"cut\"\n" EPOCH "3 N=3\n" EPOCH
                                 "4 N=4\n! 6@549 no DATE=, ts= or time= field\n..." LINE "\n");
    nl_buffer_free(&input);
}

static void damage_is_passed_over(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 'a', 0, 1, 0);
    size_t second = input.size;
    add_block(&input, 'a', 1, 1, 0);
    size_t third = input.size;
    add_block(&input, 'a', 2, 1, 0);
    add_line(&input, LINE "\n");
    input.data[second + 100] ^= 1;
    char expected[400];
    snprintf(expected, sizeof expected,
             EPOCH "0 N=0\n! 0@%zu block's checksum does not match\n" EPOCH "2 N=2\n" LINE "\n? a 0/1 0-2000\n",
             second);
    assert_decoded(&input, expected);
    input.data[second + 100] ^= 1;
    /* The size is wrong and covers the following bytes. */
    input.data[second + 14] = 1;
    snprintf(expected, sizeof expected,
             EPOCH "0 N=0\n! 0@%zu block is incomplete\n" EPOCH "2 N=2\n" LINE "\n? a 0/1 0-2000\n", second);
    assert_decoded(&input, expected);
    input.data[second + 15] = 1;
    snprintf(expected, sizeof expected,
             EPOCH "0 N=0\n! 0@%zu block is larger than 16 MiB\n" EPOCH "2 N=2\n" LINE "\n? a 0/1 0-2000\n", second);
    assert_decoded(&input, expected);
    /* The end of the last block is missing, and text follows. */
    input.data[second + 14] = input.data[second + 15] = 0;
    input.size -= sizeof LINE + 5;
    add_line(&input, "\n" LINE "\n");
    decoded r = decoder_blocks_decode(input.data, input.size, 7, NL_FORMAT_UNKNOWN);
    snprintf(expected, sizeof expected,
             EPOCH "0 N=0\n" EPOCH "1 N=1\n! 0@%zu block's checksum does not match\n" LINE "\n", third);
    assert_string_equal(r.text.data, expected);
    nl_buffer_free(&r.text);
    nl_buffer_free(&input);
}

/*
 * The report contains all bytes of the damaged block, even if a piece ends within the block, and no bytes of the valid
 * blocks after it.
 */
static void damage_is_reported_with_its_own_bytes(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        char value;
        const char *reason;
    } kinds[] = {
        {NL_BLOCK_AT_HEADER_SIZE, 95, "block's header is too small"},
        {NL_BLOCK_AT_STORED_SIZE + 2, 1, "block is incomplete"},
        {NL_BLOCK_AT_STORED_SIZE + 3, 1, "block is larger than 16 MiB"},
        {NL_BLOCK_AT_LOST, 1, "block's checksum does not match"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        nl_buffer input = {0}, expected = {0};
        add_block(&input, 0, 1, 1, 0);
        size_t second = input.size;
        add_block(&input, 0, 2, 1, 0);
        size_t third = input.size;
        add_block(&input, 0, 3, 1, 0);
        add_line(&input, LINE "\n");
        input.data[second + kinds[i].at] = kinds[i].value;
        for (size_t limit = 1; limit < 2 * (third - second); limit += 37) {
            char head[100];
            size_t shown = limit < third - second ? limit : third - second;
            expected.size = 0;
            snprintf(head, sizeof head, EPOCH "1 N=1\n! 0@%zu %s\n", second, kinds[i].reason);
            add_line(&expected, head);
            nl_buffer_append(&expected, input.data + second, shown);
            add_line(&expected, "|\n" EPOCH "3 N=3\n");
            nl_decoder_options options = {.on_malformed = note_malformed_bytes, .max_record_size = limit};
            if (limit < sizeof LINE - 1) {
                snprintf(head, sizeof head, "! 1@%zu record is longer than %zu bytes\n%.*s|\n",
                         input.size - sizeof LINE, limit, (int)limit, LINE);
                add_line(&expected, head);
            } else {
                add_line(&expected, LINE "\n");
            }
            assert_decoded_so(&input, expected.data, expected.size, options);
        }
        nl_buffer_free(&input);
        nl_buffer_free(&expected);
    }
}

/* A truncated magic number belongs to no line. It ends a line that is too long, like other bytes. */
static void a_mark_ends_a_line_that_is_too_long(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 0, 1, 1, 0);
    add_line(&input, "0123456789");
    add_block(&input, 0, 2, 1, 0);
    add_line(&input, "0123456789 0123456789NLB");
    add_block(&input, 0, 3, 1, 0);
    for (size_t limit = 1; limit < 40; limit++) {
        char expected[400];
        const char *mute = "no DATE=, ts= or time= field";
        char too_long[60];
        snprintf(too_long, sizeof too_long, "record is longer than %zu bytes", limit);
        snprintf(expected, sizeof expected,
                 EPOCH "1 N=1\n! 1@111 %s\n%.*s|\n" EPOCH "2 N=2\n! 2@232 %s\n%.*s|\n" EPOCH "3 N=3\n",
                 limit < 10 ? too_long : mute, (int)limit, "0123456789", limit < 24 ? too_long : mute, (int)limit,
                 "0123456789 0123456789NLB");
        nl_decoder_options options = {.on_malformed = note_malformed_bytes, .max_record_size = limit};
        assert_decoded_so(&input, expected, strlen(expected), options);
    }
    nl_buffer_free(&input);
}

static void a_file_cut_anywhere_loses_one_block(void **state)
{
    (void)state;
    nl_buffer input = {0};
    size_t ends[4] = {0};
    for (int i = 0; i < 4; i++) {
        add_block(&input, 'a', i, 1, 0);
        ends[i] = input.size;
    }
    for (size_t cut = 0; cut <= input.size; cut++) {
        decoded r = decoder_blocks_decode(input.data, cut, 50, NL_FORMAT_UNKNOWN);
        size_t whole = 0;
        while (whole < 4 && ends[whole] <= cut)
            whole++;
        assert_int_equal(r.stats.records, whole);
        assert_int_equal(r.stats.malformed, cut != (whole == 0 ? 0 : ends[whole - 1]));
        nl_buffer_free(&r.text);
    }
    nl_buffer_free(&input);
}

static void missing_records_are_counted(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 'a', 10, 2, 0); /* the first block: earlier records are unknown */
    add_block(&input, 'b', 3, 1, 2);  /* also a first block, but it reports two dropped records */
    add_block(&input, 'a', 12, 1, 0);
    add_block(&input, 'a', 15, 1, 2); /* all dropped */
    add_block(&input, 'a', 20, 1, 1); /* one record dropped, three missing */
    add_block(&input, 'a', 12, 1, 2); /* a repetition: no loss */
    add_block(&input, 'a', 21, 0, 0);
    add_block(&input, 'a', 21, 1, 0);
    add_block(&input, 'b', 6, 0, 2); /* only a report of loss */
    decoded r = decoder_blocks_decode(input.data, input.size, 40, NL_FORMAT_NLB);
    assert_string_equal(r.text.data, "DATE=19700101000000.000010 N=10\nDATE=19700101000000.000011 N=11\n"
                                     "? b 2/2 1000-2000\nDATE=19700101000000.000003 N=3\n"
                                     "DATE=19700101000000.000012 N=12\n"
                                     "? a 2/2 13000-14000\nDATE=19700101000000.000015 N=15\n"
                                     "? a 1/1 19000-19000\nDATE=19700101000000.000020 N=20\n"
                                     "DATE=19700101000000.000012 N=12\nDATE=19700101000000.000021 N=21\n"
                                     "? b 2/2 4000-5000\n? a 0/3 15000-19000\n");
    assert_int_equal(r.stats.lost, 10);
    assert_int_equal(r.stats.lost_from_ns, 1000);
    assert_int_equal(r.stats.lost_to_ns, 19000);
    nl_buffer_free(&r.text);
    nl_buffer_free(&input);
}

/* The records of a stream may have any order, so missing records are known only at the end of the input. */
static void records_out_of_order_are_not_missing(void **state)
{
    (void)state;
    static const int orders[][4] = {{0, 20, 10, 30}, {30, 20, 10, 0}, {10, 30, 0, 20}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        nl_buffer input = {0};
        for (size_t k = 0; k < 4; k++)
            add_block(&input, 'a', orders[i][k], 10, 0);
        decoded r = decoder_blocks_decode(input.data, input.size, 40, NL_FORMAT_NLB);
        assert_int_equal(r.stats.records, 40);
        assert_int_equal(r.stats.lost, 0);
        assert_null(strchr(r.text.data, '?'));
        nl_buffer_free(&r.text);
        nl_buffer_free(&input);
    }
}

/*
 * The first blocks of a stream are damaged. If the next block continues them, their headers show which records are
 * missing.
 */
static void records_of_damaged_beginnings_are_counted(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 'a', 10, 2, 0);
    input.data[input.size - 1] ^= 1;
    add_block(&input, 'a', 12, 1, 0);
    input.data[input.size - 1] ^= 1;
    add_block(&input, 'a', 13, 1, 0);
    add_block(&input, 'b', 0, 2, 0);
    input.data[input.size - 1] ^= 1;
    add_block(&input, 'b', 5, 1,
              0); /* does not continue the damaged block, so it is unknown how many records are missing */
    decoded r = decoder_blocks_decode(input.data, input.size, 40, NL_FORMAT_NLB);
    assert_int_equal(r.stats.malformed, 3);
    assert_int_equal(r.stats.lost, 3);
    assert_non_null(strstr(r.text.data, "DATE=19700101000000.000013 N=13\n"));
    assert_non_null(strstr(r.text.data, "? a 0/3 10000-13000\n"));
    nl_buffer_free(&r.text);
    nl_buffer_free(&input);
}

static void many_streams_are_forgotten_in_their_order(void **state)
{
    (void)state;
    nl_streams streams = {0};
    unsigned char id[16] = {0};
    for (uint32_t i = 1; i <= 3 * NL_STREAMS_MAX; i++) {
        memcpy(id, &i, sizeof i);
        nl_stream *stream = nl_streams_find(&streams, id);
        assert_false(stream->known);
        stream->known = true;
        stream->next = i;
        uint32_t first = 1;
        memcpy(id, &first, sizeof first); /* the table keeps a stream that is in use */
        stream = nl_streams_find(&streams, id);
        assert_true(stream->known);
        assert_int_equal(stream->next, 1);
    }
    assert_true(streams.young.count + streams.old.count <= NL_STREAMS_MAX);
    uint32_t late = 3 * NL_STREAMS_MAX - NL_STREAMS_MAX / 4;
    memcpy(id, &late, sizeof late);
    assert_true(nl_streams_find(&streams, id)->known);
    uint32_t early = 2;
    memcpy(id, &early, sizeof early);
    nl_stream *stream = nl_streams_find(&streams, id);
    assert_false(stream->known);
    stream->known = true;
    nl_streams_clear(&streams);
}

static bool admits(nl_streams *streams, unsigned name, uint64_t first, uint32_t count);

static nl_stream *find_numbered(nl_streams *streams, uint32_t number)
{
    unsigned char id[16] = {0};
    nl_le32_put((char *)id, number);
    nl_stream *stream = nl_streams_find(streams, id);
    stream->known = true;
    return stream;
}

/* New streams are refused while there is space only for streams that were used within the last ten minutes. */
static void streams_in_use_are_not_forgotten(void **state)
{
    enum { HONEST = 100, NEW = 1000000 };
    (void)state;
    nl_streams streams = {0};
    for (uint32_t i = 1; i <= HONEST; i++)
        find_numbered(&streams, i)->next = i;
    uint32_t begun = 0;
    while (admits(&streams, NEW + begun, 0, 1) && begun < 2 * NL_STREAMS_MAX)
        find_numbered(&streams, NEW + begun++);
    assert_int_equal(begun, NL_STREAMS_MAX - HONEST);
    assert_true(admits(&streams, 1, 1000, 1));
    for (uint32_t i = 1; i <= HONEST; i++) /* even if most of them are used again */
        assert_int_equal(find_numbered(&streams, i)->next, i);
    for (uint32_t i = 0; i < begun; i++)
        find_numbered(&streams, NEW + i);
    assert_false(admits(&streams, NEW + begun, 0, 1));
    assert_true(streams.young.count + streams.old.count <= NL_STREAMS_MAX);

    /* Later, streams that have not been used since then are forgotten. */
    streams.aged_ns -= NL_STREAMS_KEPT_S * NL_NS_PER_SECOND;
    assert_true(admits(&streams, NEW + begun, 0, 1));
    nl_streams_clear(&streams);
    for (uint32_t i = 1; i <= NL_STREAMS_MAX; i++)
        find_numbered(&streams, i)->next = i;
    assert_false(admits(&streams, NEW, 0, 1));
    assert_int_equal(find_numbered(&streams, 1)->next, 1);
    streams.aged_ns -= NL_STREAMS_KEPT_S * NL_NS_PER_SECOND;
    assert_true(admits(&streams, NEW, 0, 1));
    find_numbered(&streams, NEW);
    assert_int_equal(find_numbered(&streams, 1)->next, 1);
    nl_streams_clear(&streams);
}

/* Returns how many records of one block are accepted from a new connection. */
static int take_block_of(nl_streams *streams, int first, int count, int lost)
{
    nl_buffer input = {0};
    add_block(&input, 's', first, count, lost);
    decoded r =
        decode_so(input.data, input.size, 0, (nl_decoder_options){.streams = streams, .on_malformed = note_malformed});
    int taken = (int)r.stats.records;
    assert_int_equal(r.stats.records + r.stats.repeated, count);
    nl_buffer_free(&r.text);
    nl_buffer_free(&input);
    return taken;
}

static void what_fills_a_gap_is_taken_once(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    for (int i = 0; i <= 10; i++) /* 10 to 19 are missing, 30 to 39, ... */
        assert_int_equal(take_block_of(streams, 20 * i, 10, 0), 10);
    assert_int_equal(take_block_of(streams, 30, 10, 0), 10);
    assert_int_equal(take_block_of(streams, 30, 10, 0), 0);
    assert_int_equal(take_block_of(streams, 10, 10, 0), 10);
    assert_int_equal(take_block_of(streams, 10, 10, 0), 0);
    assert_int_equal(take_block_of(streams, 53, 2, 0), 2); /* in the middle of a gap */
    assert_int_equal(take_block_of(streams, 52, 4, 0), 2);
    assert_int_equal(take_block_of(streams, 40, 30, 0), 6);
    assert_int_equal(take_block_of(streams, 65, 20, 0), 10); /* across the ends of a gap */
    assert_int_equal(take_block_of(streams, 0, 250, 0), 6 * 10 + 40);
    assert_int_equal(take_block_of(streams, 0, 250, 0), 0);
    nl_streams_free(streams);
}

/* A killed program's latest records may arrive before the records in its spool. */
static void a_beginning_may_come_late(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    assert_int_equal(take_block_of(streams, 100, 10, 0), 10);
    assert_int_equal(take_block_of(streams, 0, 60, 0), 60);
    assert_int_equal(take_block_of(streams, 0, 60, 0), 0);
    assert_int_equal(take_block_of(streams, 50, 60, 0), 40);
    assert_int_equal(take_block_of(streams, 0, 110, 0), 0);
    nl_streams_free(streams);
}

/* The table accepts exactly the missing records of a block that lies between these blocks. */
static void a_block_gives_just_what_is_missing(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    nl_buffer input = {0};
    add_block(&input, 's', 0, 2, 0);
    add_block(&input, 's', 3, 2, 0);
    add_block(&input, 's', 6, 1, 0);
    add_block(&input, 's', 0, 8, 0);
    decoded r = decode_so(input.data, input.size, 0, (nl_decoder_options){.streams = streams});
    assert_string_equal(r.text.data, EPOCH "0 N=0\n" EPOCH "1 N=1\n? s 0/1 1000-3000\n" EPOCH "3 N=3\n" EPOCH
                                           "4 N=4\n? s 0/1 4000-6000\n" EPOCH "6 N=6\n" EPOCH "2 N=2\n" EPOCH
                                           "5 N=5\n" EPOCH "7 N=7\n");
    assert_int_equal(r.stats.repeated, 5);
    nl_buffer_free(&r.text);
    nl_buffer_free(&input);
    nl_streams_free(streams);
}

static void note_fresh(void *user, const nl_block_view *block)
{
    nl_buffer found = {0}, *text = user;
    nl_streams_take(*(nl_streams **)text->data, block, &found);
    const nl_number_range *fresh = (const nl_number_range *)found.data;
    size_t count = found.size / sizeof *fresh;
    for (size_t i = 0; i < count; i++) {
        char range[64];
        snprintf(range, sizeof range, "[%d,%d)", (int)fresh[i].from, (int)fresh[i].to);
        nl_buffer_append(text, range, strlen(range));
    }
    nl_buffer_free(&found);
}

/*
 * Two readers have different parts of a stream. Each reader accepts the records that it lacks, and each record keeps
 * its number.
 */
static void places_take_what_they_had_not(void **state)
{
    (void)state;
    nl_streams *common = nl_streams_new(), *place = nl_streams_new();
    nl_buffer input = {0}, text = {0};
    assert_int_equal(take_block_of(place, 0, 10, 0), 10);
    assert_int_equal(take_block_of(place, 20, 5, 0), 5);
    assert_int_equal(take_block_of(common, 0, 3, 0), 3);
    add_block(&input, 's', 0, 30, 0);
    nl_buffer_append(&text, (const char *)&place, sizeof(nl_streams *));
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.streams = common});
    nl_decoder_on_block(decoder, false, note_fresh, &text);
    nl_decoder_feed(decoder, input.data, input.size);
    const nl_record *record;
    uint64_t next = 3;
    while (nl_decoder_next(decoder, &record) == NL_OK)
        assert_int_equal(nl_decoder_sequence(decoder), next++);
    assert_int_equal(next, 30);
    nl_buffer_append(&text, "", 1);
    assert_string_equal(text.data + sizeof(nl_streams *), "[10,20)[25,30)");
    nl_decoder_free(decoder);
    nl_streams_free(common);
    nl_streams_free(place);
    nl_buffer_free(&input);
    nl_buffer_free(&text);
}

/* For any number of gaps, records that fill them are accepted once. */
static void no_gap_is_forgotten(void **state)
{
    enum { GAPS = 3000 };
    (void)state;
    nl_streams *streams = nl_streams_new();
    for (int i = 0; i <= GAPS; i++)
        assert_int_equal(take_block_of(streams, 2 * i, 1, 0), 1);
    for (int i = GAPS - 1; i >= 0; i -= 2)
        assert_int_equal(take_block_of(streams, 2 * i + 1, 1, 0), 1);
    assert_int_equal(take_block_of(streams, 0, 2 * GAPS + 1, 0), GAPS / 2);
    assert_int_equal(take_block_of(streams, 0, 2 * GAPS + 1, 0), 0);
    nl_streams_free(streams);
}

/* Replaces the stream's state with one with that many gaps: the numbers 0, 2, 4, ... are missing. */
static void set_gaps(nl_streams *streams, unsigned name, size_t count)
{
    nl_number_range *gaps = calloc(count + 1, sizeof *gaps);
    nl_stream_state state = {.next = 2 * count, .gap_count = count, .gaps = gaps};
    assert_non_null(gaps);
    for (size_t i = 0; i < count; i++)
        gaps[i] = (nl_number_range){2 * i, 2 * i + 1};
    nl_le32_put((char *)state.stream, name);
    nl_streams_set(streams, &state);
    free(gaps);
}

static bool admits_of(nl_streams *streams, unsigned owner, unsigned name, uint64_t first, uint32_t count)
{
    nl_block_header header = {.first_sequence = first, .record_count = count};
    nl_le32_put((char *)header.stream, name);
    return nl_streams_admit(streams, &header, owner);
}

static bool admits(nl_streams *streams, unsigned name, uint64_t first, uint32_t count)
{
    return admits_of(streams, 0, name, first, count);
}

/* At the limits, records that would open or divide a gap are rejected; records that fill a gap or continue are not. */
static void gaps_are_bounded(void **state)
{
    enum { FULL = NL_SHARED_GAPS_MAX / (NL_STREAM_GAPS_MAX - NL_STREAM_GAPS_OWN) + 1 };
    (void)state;
    nl_streams *streams = nl_streams_new();
    set_gaps(streams, 1, NL_STREAM_GAPS_MAX);
    uint64_t next = 2 * NL_STREAM_GAPS_MAX;
    assert_false(admits(streams, 1, next + 1, 1));
    assert_true(admits(streams, 1, next, 100));
    assert_true(admits(streams, 1, 4, 1));
    assert_true(admits(streams, 1, 0, 1000000));
    assert_true(admits(streams, 2, 5, 1)); /* not known yet */
    set_gaps(streams, 1, NL_STREAM_GAPS_MAX - 1);
    assert_true(admits(streams, 1, next + 1, 1));

    /* would divide a gap */
    nl_number_range gap = {10, 20};
    nl_stream_state wide = {.stream = {9}, .next = 30, .gap_count = 1, .gaps = &gap};
    nl_streams_set(streams, &wide);
    assert_true(admits(streams, 9, 12, 2));

    /* Clients that exhaust the shared gaps leave every stream its own gaps. */
    for (unsigned i = 0; i < FULL; i++)
        set_gaps(streams, 100 + i, NL_STREAM_GAPS_MAX);
    set_gaps(streams, 2, NL_STREAM_GAPS_OWN - 1);
    set_gaps(streams, 3, NL_STREAM_GAPS_OWN);
    assert_true(admits(streams, 2, next, 1));
    assert_false(admits(streams, 3, next, 1));
    assert_true(admits(streams, 9, 12, 2));
    for (unsigned i = 0; i < FULL; i++)
        set_gaps(streams, 100 + i, 0);
    assert_true(admits(streams, 3, next, 1));
    nl_streams_free(streams);
}

/*
 * If a client exhausts its shared gaps, other clients can still use theirs. After the client's gaps are filled, it can
 * use shared gaps again.
 */
static void shared_gaps_have_owners(void **state)
{
    enum { COUNT = NL_OWNER_GAPS_MAX / (NL_STREAM_GAPS_MAX - NL_STREAM_GAPS_OWN) + 2 };
    (void)state;
    nl_streams *streams = nl_streams_new();
    uint64_t next = 2 * (NL_STREAM_GAPS_MAX - 1);
    for (unsigned i = 1; i < COUNT; i++) {
        set_gaps(streams, i, NL_STREAM_GAPS_MAX - 1);
        assert_int_equal(admits_of(streams, 7, i, next, 1), true); /* continues at the end of the stream */
        assert_int_equal(admits_of(streams, 7, i, next + 1, 1), i < COUNT - 1);
    }
    set_gaps(streams, 1000, NL_STREAM_GAPS_OWN);
    assert_false(admits_of(streams, 7, 1000, next, 1));
    assert_true(admits_of(streams, 8, 1000, next, 1));
    for (unsigned i = 1; i < COUNT; i++)
        set_gaps(streams, i, 0);
    assert_true(admits_of(streams, 7, 1000, next, 1));
    nl_streams_free(streams);
}

/* A record that the producer dropped is no gap; otherwise, frequent drops would displace true gaps. */
static void what_was_dropped_is_no_gap(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    assert_int_equal(take_block_of(streams, 0, 10, 0), 10);
    for (int i = 1; i <= 100; i++)
        assert_int_equal(take_block_of(streams, 20 * i, 10, i == 1 ? 5 : 10), 10);
    assert_int_equal(take_block_of(streams, 10, 5, 0), 5);
    assert_int_equal(take_block_of(streams, 0, 2000, 0), 0);
    nl_streams_free(streams);
}

static void assert_range(const nl_buffer *fresh, uint64_t from, uint64_t to)
{
    const nl_number_range *range = (const nl_number_range *)fresh->data;
    assert_int_equal(fresh->size, sizeof *range);
    assert_true(range->from == from && range->to == to);
}

/* Numbers that the producer reports as dropped close their gaps, even if the block arrives out of order. */
static void dropped_numbers_close_gaps(void **state)
{
    (void)state;
    nl_streams streams = {0};
    nl_buffer fresh = {0};
    unsigned char id[NL_BLOCK_STREAM_SIZE] = "one";
    nl_stream *stream = nl_streams_find(&streams, id);
    stream->known = true;
    nl_stream_take(&streams, stream, 0, 10, 0, &fresh);
    assert_int_equal(nl_stream_take(&streams, stream, 110, 10, 0, &fresh), 0); /* 10 to 109 are missing */
    assert_int_equal(stream->gaps->count, 1);
    assert_int_equal(nl_stream_take(&streams, stream, 60, 0, 20, &fresh), 20); /* in the middle: 40 to 59 */
    assert_int_equal(fresh.size, 0);
    assert_int_equal(stream->gaps->count, 2);
    assert_int_equal(nl_stream_take(&streams, stream, 40, 5, 0, &fresh), 0); /* these cannot arrive any more */
    assert_int_equal(fresh.size, 0);
    assert_int_equal(nl_stream_take(&streams, stream, 35, 5, 25, &fresh), 25); /* 10 to 34, and records 35 to 39 */
    assert_range(&fresh, 0, 5);
    assert_int_equal(nl_stream_take(&streams, stream, 60, 0, 60, &fresh), 0);    /* all of these are known */
    assert_int_equal(nl_stream_take(&streams, stream, 200, 1, 140, &fresh), 50); /* 60 to 109 */
    assert_range(&fresh, 0, 1);
    assert_int_equal(stream->gaps->count, 0);
    assert_int_equal(stream->next, 201);
    nl_streams_clear(&streams);
    assert_int_equal(streams.shared_gaps, 0);
    nl_buffer_free(&fresh);
}

/* When a stream becomes an old stream, its gaps stay. The table forgets them with the stream. */
static void gaps_of_many_streams(void **state)
{
    (void)state;
    nl_streams streams = {0};
    nl_buffer fresh = {0};
    unsigned char id[NL_BLOCK_STREAM_SIZE] = "";
    for (uint32_t i = 1; i < 3 * NL_STREAMS_MAX; i++) {
        nl_le32_put((char *)id, i);
        nl_stream *stream = nl_streams_find(&streams, id);
        stream->known = true;
        nl_stream_take(&streams, stream, 10, 10, 0, &fresh);
        assert_int_equal(fresh.size, sizeof(nl_number_range));
        if (i <= 1000)
            continue;
        nl_le32_put((char *)id, i - 1000);
        stream = nl_streams_find(&streams, id);
        assert_true(stream->known);
        nl_stream_take(&streams, stream, 5, 10, 0, &fresh);
        assert_range(&fresh, 0, 5);
    }
    /* Tests the largest possible numbers. */
    nl_stream *stream = nl_streams_find(&streams, id);
    nl_stream_take(&streams, stream, UINT64_MAX - 2, 10, 0, &fresh);
    assert_range(&fresh, 0, 2);
    nl_stream_take(&streams, stream, UINT64_MAX - 2, 10, 0, &fresh);
    assert_int_equal(fresh.size, 0);
    nl_streams_clear(&streams);
    assert_int_equal(streams.shared_gaps, 0);
    nl_buffer_free(&fresh);
}

/* A block of another type or with a wrong payload is skipped, and other blocks are unaffected. */
static void what_is_sound_but_unknown_is_skipped(void **state)
{
    (void)state;
    nl_buffer input = {0};
    add_block(&input, 0, 2, 1, 0);
    size_t second = input.size;
    add_block(&input, 0, 4, 1, 0);
    size_t third = input.size;
    add_block(&input, 0, 6, 1, 0);
    char *header = input.data + second;
    header[NL_BLOCK_AT_TYPE] = 9;
    for (int round = 0; round < 2; round++) {
        nl_le32_put(header + NL_BLOCK_AT_CRC,
                    nl_block_checksum(header, NL_BLOCK_HEADER_SIZE, header + NL_BLOCK_HEADER_SIZE,
                                      third - second - NL_BLOCK_HEADER_SIZE));
        char expected[200];
        snprintf(expected, sizeof expected, EPOCH "2 N=2\n%s" EPOCH "6 N=6\n",
                 round == 0 ? "" : "! 0@111 block's record is damaged\n");
        assert_int_equal(second, 111);
        assert_decoded(&input, expected);
        header[NL_BLOCK_AT_TYPE] = 1;
        input.data[third - 3] = 5; /* an undefined shape */
    }
    nl_buffer_free(&input);
}

static void copes_with_anything(void **state)
{
    (void)state;
    uint64_t seed = 77;
    for (int round = 0; round < 2000; round++) {
        nl_buffer input = {0};
        while (input.size < 1500) {
            if (next_random(&seed) & 0x100)
                add_block(&input, "\0ab"[random_below(&seed, 3)], (int)random_below(&seed, 9), 2, 0);
            else
                add_line(&input, LINE "\n");
        }
        for (size_t changes = random_below(&seed, 8); changes > 0; changes--) {
            size_t at = random_below(&seed, input.size), count = random_below(&seed, 30);
            if (at + count > input.size)
                continue;
            if (next_random(&seed) & 0x100) {
                random_bytes(&seed, input.data + at, count);
            } else {
                memmove(input.data + at, input.data + at + count, input.size - at - count);
                input.size -= count;
            }
        }
        nl_decoder_options options = {
            .format = (nl_format[]){NL_FORMAT_UNKNOWN, NL_FORMAT_NLB}[round % 2],
            .max_record_size = (size_t[]){0, 7, 40, 200}[round / 2 % 4],
            .on_malformed = note_malformed_bytes,
        };
        decoded whole = decode_so(input.data, input.size, input.size, options),
                pieces = decode_so(input.data, input.size, 0, options),
                bytes = decode_so(input.data, input.size, 1, options);
        assert_int_equal(whole.text.size, pieces.text.size);
        assert_int_equal(whole.text.size, bytes.text.size);
        assert_memory_equal(whole.text.data, pieces.text.data, whole.text.size);
        assert_memory_equal(whole.text.data, bytes.text.data, whole.text.size);
        nl_buffer_free(&whole.text);
        nl_buffer_free(&pieces.text);
        nl_buffer_free(&bytes.text);
        nl_buffer_free(&input);
    }
}

/*
 * Headers contain further headers, each with a claimed size of 16 MiB. The work is bounded, and the decoder reads a
 * valid block after the headers.
 */
static void claims_do_not_multiply_the_work(void **state)
{
    (void)state;
    enum { SIZE = 20 << 20 };
    nl_buffer input = {0};
    char header[NL_BLOCK_HEADER_SIZE] = NL_BLOCK_MAGIC;
    nl_le16_put(header + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    header[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_RECORDS;
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, NL_BLOCK_PAYLOAD_MAX);
    while (input.size < SIZE)
        nl_buffer_append(&input, header, sizeof header);
    size_t headers = input.size / sizeof header;
    add_block(&input, 0, 1, 1, 0);
    for (size_t piece = input.size; piece > 5000; piece /= 50) {
        nl_decoder *decoder = nl_decoder_new(NULL);
        const nl_record *record;
        for (size_t at = 0; at < input.size; at += piece) {
            nl_decoder_feed(decoder, input.data + at, piece < input.size - at ? piece : input.size - at);
            while (nl_decoder_next(decoder, &record) == NL_OK)
                ;
        }
        nl_decoder_finish(decoder);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            ;
        assert_int_equal(nl_decoder_get_stats(decoder)->malformed, headers);
        assert_int_equal(nl_decoder_get_stats(decoder)->records, 1);
        nl_decoder_free(decoder);
    }
    nl_buffer_free(&input);
}

static void records_can_be_packed(void **state)
{
    (void)state;
    uint64_t seed = 5;
    nl_record *record = nl_record_new(), *back = nl_record_new();
    nl_buffer bytes = {0};
    for (int i = 0; i < 1000; i++) {
        random_record(&seed, record);
        nl_record_add_double(record, "D", 0.1);
        bytes.size = 0;
        assert_true(nl_record_pack(record, &bytes));
        char *copy = malloc(bytes.size);
        assert_non_null(copy);
        memcpy(copy, bytes.data, bytes.size);
        assert_int_equal(nl_record_unpack(back, copy, bytes.size), NL_OK);
        assert_true(back->time_ns == record->time_ns);
        assert_int_equal(back->level, record->level);
        assert_int_equal(back->field_count, record->field_count);
        assert_int_equal(back->fields[back->field_count - 1].type, NL_TYPE_DOUBLE);
        for (size_t size = 0; size < bytes.size; size++)
            assert_int_equal(nl_record_unpack(back, copy, size), NL_MALFORMED);
        free(copy);
    }
    nl_buffer_free(&bytes);
    nl_record_free(record);
    nl_record_free(back);
}

typedef struct taking {
    nl_encoder *encoder;
    nl_buffer said;
} taking;

static void take_block(void *user, const nl_block_view *block)
{
    taking *t = user;
    char line[100];
    snprintf(line, sizeof line, "%c%s%d+%d/%d ", block->stream[0], block->taken ? "=" : "-", (int)block->first_sequence,
             (int)block->record_count, (int)block->repeated);
    add_line(&t->said, line);
    if (block->taken)
        nl_encoder_put_block(t->encoder, block);
    else
        nl_encoder_set_stream(t->encoder, block->stream, block->first_sequence + block->repeated);
}

/*
 * The decoder passes whole blocks to an encoder. If it has already read a part of a block, it passes only the rest,
 * with numbers.
 */
static void blocks_can_be_taken_whole(void **state)
{
    (void)state;
    static const char expected[] = "a=0+5/0 a-3+5/2 b=0+3/0 b-0+3/3 ";
    for (int level = 0; level < 2; level++) {
        nl_buffer in = {0}, out = {0};
        add_block(&in, 'a', 0, 5, 0);
        add_block(&in, 'a', 3, 5, 0);
        add_block(&in, 'b', 0, 3, 0);
        add_block(&in, 'b', 0, 3, 0);
        taking t = {.encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB, .zstd_level = level})};
        nl_streams *streams = nl_streams_new();
        nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.streams = streams});
        nl_decoder_on_block(decoder, true, take_block, &t);
        nl_decoder_feed(decoder, in.data, in.size);
        const nl_record *record;
        int handed_out = 0;
        for (; nl_decoder_next(decoder, &record) == NL_OK; handed_out++)
            assert_int_equal(nl_encoder_put(t.encoder, record), NL_OK);
        assert_int_equal(handed_out, 3);
        assert_int_equal(nl_decoder_get_stats(decoder)->records, 11);
        assert_int_equal(nl_decoder_get_stats(decoder)->blocks, 4);
        assert_int_equal(nl_decoder_get_stats(decoder)->repeated, 5);
        assert_memory_equal(t.said.data, expected, sizeof expected - 1);
        nl_encoder_finish(t.encoder, &out);
        assert_int_equal(nl_encoder_size(t.encoder), 0);
        decoded r = decode_so(out.data, out.size, 0, (nl_decoder_options){0});
        assert_int_equal(r.stats.records, 11);
        assert_int_equal(r.stats.lost, 0);
        assert_int_equal(r.stats.malformed, 0);
        nl_stream_state known;
        assert_true(nl_streams_get(streams, (const unsigned char *)"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &known));
        assert_int_equal(known.next, 8);
        nl_buffer_free(&r.text);
        nl_decoder_free(decoder);
        nl_streams_free(streams);
        nl_encoder_free(t.encoder);
        nl_buffer_free(&t.said);
        nl_buffer_free(&in);
        nl_buffer_free(&out);
    }
}

/* A long string may repeat any number of times: blocks end before they become too large, and are read again. */
static void strings_that_repeat_are_read_again(void **state)
{
    (void)state;
    enum { RECORDS = 60, SIZE = 1 << 20 };
    nl_buffer out = {0};
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'a', SIZE);
    nl_record *record = nl_record_new();
    nl_record_add_string(record, "TEXT", text, SIZE);
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
    nl_encoder_finish(encoder, &out);
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *read;
    int count = 0;
    nl_decoder_feed(decoder, out.data, out.size);
    for (; nl_decoder_next(decoder, &read) == NL_OK; count++)
        assert_int_equal(read->fields[0].string.size, SIZE);
    assert_int_equal(count, RECORDS);
    assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 0);
    nl_decoder_free(decoder);
    nl_encoder_free(encoder);
    nl_record_free(record);
    nl_buffer_free(&out);
    free(text);
}

/* Returns false for some calls. */
static bool may_now(void *user)
{
    int *asked = user;
    return ++*asked % 3 != 0;
}

/* If a decoder must wait before blocks, the result is the same for every division. */
static void blocks_wait_until_they_may_be_decoded(void **state)
{
    (void)state;
    nl_buffer in = {0};
    for (int i = 0; i < 12; i++) {
        add_block(&in, 'a', 3 * i, 3, 0);
        if (i % 4 == 3)
            nl_buffer_append(&in, LINE "\n", sizeof LINE);
    }
    for (size_t piece = 1; piece <= in.size; piece += 1 + piece / 3) {
        int asked = 0, records = 0, pauses = 0;
        nl_decoder *decoder = nl_decoder_new(NULL);
        nl_decoder_ask(decoder, may_now, &asked);
        for (size_t at = 0; at < in.size; at += piece) {
            size_t size = in.size - at < piece ? in.size - at : piece;
            char *data = malloc(size); /* freed when the decoder waits */
            assert_non_null(data);
            memcpy(data, in.data + at, size);
            nl_decoder_feed(decoder, data, size);
            const nl_record *record;
            bool waited = false;
            while (nl_decoder_next(decoder, &record) == NL_OK || nl_decoder_is_paused(decoder)) {
                if (nl_decoder_is_paused(decoder) && !waited)
                    memset(data, 'x', size);
                waited = waited || nl_decoder_is_paused(decoder);
                pauses += nl_decoder_is_paused(decoder);
                records += !nl_decoder_is_paused(decoder);
            }
            free(data);
        }
        assert_int_equal(records, 39);
        assert_true(pauses > 0);
        assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 0);
        assert_int_equal(nl_decoder_get_stats(decoder)->blocks, 12);
        nl_decoder_free(decoder);
    }
    nl_buffer_free(&in);
}

/* If a decoder must wait after malformed lines, the result is the same for every division. */
static void lines_wait_after_malformed_ones(void **state)
{
    (void)state;
    nl_buffer in = {0};
    for (int i = 0; i < 20; i++) {
        nl_buffer_append(&in, "x\n", 2);
        nl_buffer_append(&in, LINE "\n", sizeof LINE);
        if (i % 7 == 6)
            add_block(&in, 'a', 3 * (i / 7), 3, 0);
    }
    for (size_t piece = 1; piece <= in.size; piece += 1 + piece / 3) {
        int asked = 0, records = 0, pauses = 0;
        nl_decoder *decoder = nl_decoder_new(NULL);
        nl_decoder_ask(decoder, may_now, &asked);
        for (size_t at = 0; at < in.size; at += piece) {
            size_t size = in.size - at < piece ? in.size - at : piece;
            nl_decoder_feed(decoder, in.data + at, size);
            const nl_record *record;
            while (nl_decoder_next(decoder, &record) == NL_OK || nl_decoder_is_paused(decoder)) {
                pauses += nl_decoder_is_paused(decoder);
                records += !nl_decoder_is_paused(decoder);
            }
        }
        assert_int_equal(records, 26);
        assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 20);
        assert_true(pauses > 0 || piece < 3);
        nl_decoder_free(decoder);
    }
    nl_buffer_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_however_they_are_cut),
        cmocka_unit_test(text_and_blocks_may_follow_one_another),
        cmocka_unit_test(damage_is_passed_over),
        cmocka_unit_test(records_of_damaged_beginnings_are_counted),
        cmocka_unit_test(damage_is_reported_with_its_own_bytes),
        cmocka_unit_test(a_mark_ends_a_line_that_is_too_long),
        cmocka_unit_test(a_file_cut_anywhere_loses_one_block),
        cmocka_unit_test(missing_records_are_counted),
        cmocka_unit_test(records_out_of_order_are_not_missing),
        cmocka_unit_test(many_streams_are_forgotten_in_their_order),
        cmocka_unit_test(streams_in_use_are_not_forgotten),
        cmocka_unit_test(what_fills_a_gap_is_taken_once),
        cmocka_unit_test(a_beginning_may_come_late),
        cmocka_unit_test(a_block_gives_just_what_is_missing),
        cmocka_unit_test(places_take_what_they_had_not),
        cmocka_unit_test(no_gap_is_forgotten),
        cmocka_unit_test(gaps_are_bounded),
        cmocka_unit_test(shared_gaps_have_owners),
        cmocka_unit_test(what_was_dropped_is_no_gap),
        cmocka_unit_test(dropped_numbers_close_gaps),
        cmocka_unit_test(gaps_of_many_streams),
        cmocka_unit_test(what_is_sound_but_unknown_is_skipped),
        cmocka_unit_test(copes_with_anything),
        cmocka_unit_test(claims_do_not_multiply_the_work),
        cmocka_unit_test(records_can_be_packed),
        cmocka_unit_test(blocks_can_be_taken_whole),
        cmocka_unit_test(strings_that_repeat_are_read_again),
        cmocka_unit_test(blocks_wait_until_they_may_be_decoded),
        cmocka_unit_test(lines_wait_after_malformed_ones),
    };
    return cmocka_run_group_tests_name("decoder_blocks", tests, NULL, NULL);
}
