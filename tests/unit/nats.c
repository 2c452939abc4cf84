/* NATS URLs, the names of streams and subjects, and blocks as messages. No server. */
#include "text_support.h"

#include "nats/cut.h"
#include "nats/place.h"

#include "base/error.h"
#include "record/encoder.h"
#include "transport/url.h"
#include "reader/decoder.h"

/* ---- places ---- */

static nats_place *read_place(const char *text, bool output)
{
    nl_url *url = nl_url_parse(text);
    if (url == NULL)
        fail_msg("%s: %s", text, nl_error_message());
    nats_place *place = nats_place_read(url, output);
    nl_url_free(url);
    return place;
}

static void a_place_has_what_was_said(void **state)
{
    (void)state;
    nats_place *p = read_place("nats://u:p%25%40@h1,[::1]:5,h3:65535/LOGS?shards=8&replicas=3&max_age=0&max_bytes=2G&"
                               "discard=old&window=30s&durable=d&share=2/3&subject=a.b&ca=/c",
                               false);
    assert_non_null(p);
    assert_string_equal(p->stream, "LOGS");
    assert_string_equal(p->subject, "a.b");
    assert_string_equal(p->user, "u");
    assert_string_equal(p->password, "p%@");
    assert_int_equal(p->server_count, 3);
    assert_non_null(strstr(p->servers[0], "h1:4222"));
    assert_non_null(strstr(p->servers[1], "[::1]:5"));
    assert_non_null(strstr(p->servers[2], "h3:65535"));
    assert_null(strstr(p->name, "p%"));
    assert_int_equal(p->shards, 8);
    assert_int_equal(p->replicas, 3);
    assert_int_equal(p->max_age_ns, 0);
    assert_int_equal(p->max_bytes, (uint64_t)2 << 30);
    assert_true(p->discard_old);
    assert_int_equal(p->window_ns, 30 * NL_NS_PER_SECOND);
    assert_true(p->tls);
    nats_place_free(p);

    p = read_place("nats://h/S", false);
    assert_non_null(p);
    assert_string_equal(p->durable, "netlogd");
    assert_string_equal(p->subject, "netlogger");
    assert_int_equal(p->shards, 0);
    assert_int_equal(p->max_age_ns, 7 * 86400 * NL_NS_PER_SECOND);
    assert_false(p->tls || p->by_shard || p->discard_old);
    for (unsigned shard = 0; shard < NATS_SHARDS_MAX; shard++)
        assert_true(nats_place_has_share(p, shard));
    nats_place_free(p);
}

static void what_is_no_place_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool output;
        const char *why;
    } cases[] = {
        {"nats://h/S?shards=257", false, "use 1 to 256"},
        {"nats://h/S?shards=1x", false, "is not a whole number"},
        {"nats://h/S?shards=-1", false, "is not a whole number"},
        {"nats://h/S?replicas=6", false, "use 1 to 5"},
        {"nats://h/S?share=0/2", false, "is not K/N"},
        {"nats://h/S?share=1/257", false, "is not K/N"},
        {"nats://h/S?share=1", false, "is not K/N"},
        {"nats://h/S?discard=none", false, "is not one of new|old"},
        {"nats://h/S?subject=.a", false, "two dots in a row"},
        {"nats://h/S?subject=a.", false, "two dots in a row"},
        {"nats://h/S?subject=a.*", false, "letters"},
        {"nats://h/S?durable=a%20b", false, "letters"},
        {"nats://h/S?max_bytes=much", false, "is not a size"},
        {"nats://h/S?cert=/c", false, "cert= needs key="},
        {"nats://h/S?messages=program", false, "unknown option"},
        {"nats://h/S?durable=d", true, NULL},
        {"nats://h/S?messages=neither", true, "is not one of program|shard"},
        {"nats://h:0/S", false, "is not a port"},
        {"nats://h/S?password_file=/", false, "Is a directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nats_place *place = read_place(cases[i].url, cases[i].output);
        if (cases[i].why != NULL && (place != NULL || strstr(nl_error_message(), cases[i].why) == NULL))
            fail_msg("%s: %s", cases[i].url, place != NULL ? "it is taken" : nl_error_message());
        nats_place_free(place);
    }
}

/* Each shard has one reader, for any number of readers. */
static void shares_cover_all_shards_once(void **state)
{
    (void)state;
    for (unsigned of = 1; of <= 7; of++) {
        unsigned readers[NATS_SHARDS_MAX] = {0};
        for (unsigned share = 1; share <= of; share++) {
            nats_place place = {.share = share, .of_shares = of};
            for (unsigned shard = 0; shard < NATS_SHARDS_MAX; shard++)
                readers[shard] += nats_place_has_share(&place, shard);
        }
        for (unsigned shard = 0; shard < NATS_SHARDS_MAX; shard++)
            assert_int_equal(readers[shard], 1);
    }
}

static void names_of_streams(void **state)
{
    (void)state;
    nats_place place = {.stream = (char[]){"LOGS"}};
    char name[NATS_NAME_SIZE];
    nats_stream_name(&place, 0, 1, name);
    assert_string_equal(name, "LOGS");
    nats_stream_name(&place, 0, 4, name);
    assert_string_equal(name, "LOGS-1");
    nats_stream_name(&place, 255, 256, name);
    assert_string_equal(name, "LOGS-256");
}

static void assert_part(const char *text, size_t size, const char *expected)
{
    nl_buffer subject = {0};
    nats_subject_add(&subject, (nl_string){text, size});
    assert_text((nl_string){subject.data, subject.size}, expected);
    nl_buffer_free(&subject);
}

static void parts_of_subjects(void **state)
{
    (void)state;
    assert_part("", 0, "._");
    assert_part("host", 4, ".host");
    assert_part("a.b*c>d%e", 9, ".a%2Eb%2Ac%3Ed%25e");
    assert_part(" \t\r\n\0\x7f", 6, ".%20%09%0D%0A%00%7F");
    assert_part("\xc3\xa4", 2, ".%C3%A4");
    char much[1000];
    memset(much, '.', sizeof much);
    nl_buffer subject = {0};
    nats_subject_add(&subject, (nl_string){much, sizeof much});
    assert_int_equal(subject.size, 1 + 3 * 100);
    nl_buffer_free(&subject);
}

/* ---- blocks as messages ---- */

enum { RECORDS = 1000 };

typedef struct taken {
    size_t cuts, maximum, end;
    uint64_t next; /* the next number */
    size_t wanted; /* messages to accept, after which it stops */
    bool whole;
} taken;

/* Each message is a readable block with its records in order. Unless it is a whole block, all are of one program. */
static bool nats_take(void *user, const nats_cut *cut)
{
    taken *t = user;
    assert_in_range(cut->bytes.size, 1, t->maximum);
    assert_int_equal(cut->first, t->next);
    assert_true(cut->end >= t->end);
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = NL_FORMAT_NLB});
    nl_decoder_feed(decoder, cut->bytes.data, cut->bytes.size);
    nl_decoder_finish(decoder);
    const nl_record *record;
    uint64_t count = 0;
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        char prog[20];
        int64_t number;
        nl_field field;
        assert_true(nl_record_find(record, "I", &field) && nl_field_int(&field, &number));
        assert_int_equal(number, t->next);
        assert_int_equal(nl_decoder_sequence(decoder), t->next);
        snprintf(prog, sizeof prog, ".h.%.*s", (int)record->prog.size, record->prog.data);
        assert_string_equal(cut->subject, t->whole ? "._._" : prog);
        t->next++;
        count++;
    }
    assert_int_equal(nl_decoder_get_stats(decoder)->malformed, 0);
    assert_int_equal(count, cut->count);
    nl_decoder_free(decoder);
    t->end = cut->end;
    return ++t->cuts < t->wanted;
}

/* Makes blocks of numbered records; each run of that many records has one program. */
static nl_buffer make_blocks(unsigned blocks, unsigned run, size_t padding)
{
    nl_buffer out = {0};
    nl_record *record = nl_record_new();
    char *text = calloc(1, padding + 1);
    assert_non_null(text);
    memset(text, 'x', padding);
    for (unsigned i = 0, b = 0; b < blocks; b++) {
        nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB, .zstd_level = -1});
        for (unsigned k = 0; k < RECORDS / blocks; k++, i++) {
            char prog[20];
            nl_record_clear(record);
            record->time_ns = i;
            record->host = (nl_string){"h", 1};
            record->prog = (nl_string){prog, (size_t)snprintf(prog, sizeof prog, "p%u", i / run % 3)};
            record->event = (nl_string){"E", 1};
            nl_record_add_int(record, "I", i);
            memcpy(text, (char[]){(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676)}, 3);
            nl_record_add_string(record, "TEXT", text, padding);
            nl_encoder_set_stream(encoder, (const unsigned char *)"sixteen bytes of", i);
            assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
        }
        nl_encoder_finish(encoder, &out);
        nl_encoder_free(encoder);
    }
    free(text);
    nl_record_free(record);
    return out;
}

static taken cut_all(const nl_buffer *blocks, size_t maximum, bool whole)
{
    taken t = {.maximum = maximum, .wanted = SIZE_MAX, .whole = whole};
    nats_cutter cutter = {.whole = whole, .message_size_max = maximum, .take = nats_take, .user = &t};
    assert_int_equal(nats_cut_blocks(&cutter, blocks->data, blocks->size), blocks->size);
    assert_int_equal(t.next, RECORDS);
    assert_int_equal(t.end, blocks->size);
    return t;
}

static void blocks_of_one_program_stay_as_they_are(void **state)
{
    (void)state;
    nl_buffer blocks = make_blocks(10, RECORDS, 20);
    assert_int_equal(cut_all(&blocks, 1 << 20, false).cuts, 10);
    nl_buffer_free(&blocks);
}

static void a_block_of_several_programs_is_cut(void **state)
{
    (void)state;
    for (unsigned run = 1; run < 60; run += 7) {
        nl_buffer blocks = make_blocks(5, run, 10);
        size_t cuts = cut_all(&blocks, 1 << 20, false).cuts;
        assert_in_range(cuts, RECORDS / run, RECORDS / run + 6);
        assert_int_equal(cut_all(&blocks, 1 << 20, true).cuts, 5);
        nl_buffer_free(&blocks);
    }
}

static void a_block_that_is_too_large_is_cut(void **state)
{
    (void)state;
    nl_buffer blocks = make_blocks(2, RECORDS, 300);
    assert_true(cut_all(&blocks, 4096, false).cuts > 2 * 2);
    assert_true(cut_all(&blocks, 4096, true).cuts > 2 * 2);
    nl_buffer_free(&blocks);
}

/* A block is passed on as a whole or not at all, even if the receiver stops in its middle. */
static void no_block_is_left_in_part(void **state)
{
    (void)state;
    nl_buffer blocks = make_blocks(10, 10, 10);
    taken t = {.maximum = 1 << 20, .wanted = 14};
    nats_cutter cutter = {.message_size_max = 1 << 20, .take = nats_take, .user = &t};
    size_t done = nats_cut_blocks(&cutter, blocks.data, blocks.size);
    assert_int_equal(t.cuts, 20);
    assert_int_equal(t.next, 2 * RECORDS / 10);
    assert_int_equal(done, t.end);
    assert_in_range(done, blocks.size / 6, blocks.size / 4);
    nl_buffer_free(&blocks);
}

static void what_is_not_whole_waits(void **state)
{
    (void)state;
    nl_buffer blocks = make_blocks(2, RECORDS, 10);
    taken all = cut_all(&blocks, 1 << 20, false);
    for (size_t size = 0; size < blocks.size; size += 97) {
        taken t = {.maximum = all.maximum, .wanted = SIZE_MAX};
        nats_cutter cutter = {.message_size_max = all.maximum, .take = nats_take, .user = &t};
        size_t done = nats_cut_blocks(&cutter, blocks.data, size);
        assert_int_equal(done, t.end);
        assert_true(done <= size);
        assert_int_equal(t.next, done == 0 ? 0 : RECORDS / 2);
    }
    nl_buffer_free(&blocks);
}

static bool count_cut(void *user, const nats_cut *cut)
{
    (void)cut;
    ++*(size_t *)user;
    return true;
}

/* The spool may contain any bytes. */
static void damage_is_passed_over(void **state)
{
    (void)state;
    nl_buffer blocks = make_blocks(4, RECORDS, 10);
    srand(1);
    for (int i = 0; i < 2000; i++) {
        nl_buffer damaged = {0};
        nl_buffer_append(&damaged, blocks.data, blocks.size);
        for (int k = rand() % 4; k >= 0; k--)
            damaged.data[(size_t)rand() % damaged.size] = (char)rand();
        size_t count = 0;
        nats_cutter cutter = {.message_size_max = 1 << 20, .take = count_cut, .user = &count};
        assert_true(nats_cut_blocks(&cutter, damaged.data, damaged.size) <= damaged.size);
        assert_in_range(count, 0, 4);
        nl_buffer_free(&damaged);
    }
    nl_buffer_free(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_has_what_was_said),
        cmocka_unit_test(what_is_no_place_is_told),
        cmocka_unit_test(shares_cover_all_shards_once),
        cmocka_unit_test(names_of_streams),
        cmocka_unit_test(parts_of_subjects),
        cmocka_unit_test(blocks_of_one_program_stay_as_they_are),
        cmocka_unit_test(a_block_of_several_programs_is_cut),
        cmocka_unit_test(a_block_that_is_too_large_is_cut),
        cmocka_unit_test(no_block_is_left_in_part),
        cmocka_unit_test(what_is_not_whole_waits),
        cmocka_unit_test(damage_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
