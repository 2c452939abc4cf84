/* The set of sequence numbers: blocks in any order, compared with a simple table of all numbers. */
#include "reader/sequences.h"
#include "reader/decoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NUMBERS = 2000, STREAMS = 3 };

/* The state of each number according to the simple table. */
typedef struct oracle {
    bool read[STREAMS][NUMBERS];
    bool dropped[STREAMS][NUMBERS];
} oracle;

static uint32_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static nl_block_header block_of(int stream, uint64_t first, uint64_t count, uint64_t lost)
{
    nl_block_header h = {.type = NL_BLOCK_TYPE_RECORDS,
                         .first_sequence = first,
                         .record_count = (uint32_t)count,
                         .lost = lost,
                         .min_time_ns = (int64_t)first * 1000,
                         .max_time_ns = (int64_t)(first + count - 1) * 1000,
                         .lost_from_ns = (int64_t)(first - lost) * 1000,
                         .lost_to_ns = (int64_t)(first - 1) * 1000};
    h.stream[0] = (unsigned char)(stream + 1);
    return h;
}

static void sequences_add(nl_sequences *s, oracle *o, int stream, uint64_t first, uint64_t count, uint64_t lost)
{
    nl_buffer fresh = {0};
    nl_sequences_news news = {.fresh = &fresh};
    nl_block_header h = block_of(stream, first, count, lost);
    uint64_t dropped = 0, new_count = 0, found = 0;
    for (uint64_t n = first - lost; n < first; n++)
        dropped += !o->read[stream][n] && !o->dropped[stream][n];
    nl_sequences_add(s, &h, stream == 0 ? "a" : "b", &news);
    assert_true(news.followed);
    assert_int_equal(news.dropped, dropped);
    for (uint64_t n = first - lost; n < first; n++)
        o->dropped[stream][n] = o->dropped[stream][n] || !o->read[stream][n];
    const nl_number_range *ranges = (const nl_number_range *)fresh.data;
    uint64_t end = 0;
    for (size_t i = 0; i < fresh.size / sizeof *ranges; i++) {
        assert_true(ranges[i].from < ranges[i].to && (i == 0 || ranges[i].from >= end));
        end = ranges[i].to;
        for (uint64_t n = ranges[i].from; n < end; n++, found++)
            assert_false(o->read[stream][first + n] || o->dropped[stream][first + n]);
    }
    for (uint64_t n = first; n < first + count; n++) {
        new_count += !o->read[stream][n] && !o->dropped[stream][n];
        o->read[stream][n] = true;
    }
    assert_int_equal(found, new_count);
    nl_buffer_free(&fresh);
}

typedef struct listing {
    oracle *o;
    uint64_t count;
    size_t ranges;
} listing;

static void check_missing(void *user, const nl_lost *what)
{
    listing *l = user;
    int stream = what->stream[0] - 1;
    l->ranges++;
    assert_int_equal(what->count, what->numbers.to - what->numbers.from);
    assert_string_equal(what->source, stream == 0 ? "a" : "b");
    for (uint64_t n = what->numbers.from; n < what->numbers.to; n++, l->count++)
        assert_false(l->o->read[stream][n] || l->o->dropped[stream][n]);
    assert_int_equal(what->from_ns, (what->numbers.from - 1) * 1000);
    assert_int_equal(what->to_ns, what->numbers.to * 1000);
}

static void sequences_compare(nl_sequences *s, oracle *o)
{
    listing l = {.o = o};
    uint64_t expected = 0;
    nl_sequences_list_missing(s, check_missing, &l);
    for (int stream = 0; stream < STREAMS; stream++) {
        int low = -1, high = -1;
        for (int n = 0; n < NUMBERS; n++)
            if (o->read[stream][n] || o->dropped[stream][n]) {
                low = low < 0 ? n : low;
                high = n;
            }
        for (int n = low; n >= 0 && n <= high; n++)
            expected += !o->read[stream][n] && !o->dropped[stream][n];
    }
    assert_int_equal(l.count, expected);
    assert_true(nl_sequences_is_complete(s));
}

typedef struct piece {
    int stream;
    uint64_t first, count, lost;
} piece;

/*
 * All numbers are divided into blocks, which arrive in random order, some of them twice. In every second round, some
 * blocks never arrive.
 */
static void any_order_gives_what_a_plain_table_gives(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 100; seed++) {
        static oracle o;
        memset(&o, 0, sizeof o);
        random_state = seed;
        nl_sequences *s = nl_sequences_new();
        piece pieces[STREAMS * NUMBERS];
        size_t count = 0;
        for (int stream = 0; stream < STREAMS; stream++)
            for (uint64_t n = next_random(5); n < NUMBERS - 12;) {
                uint64_t lost = next_random(8) == 0 ? next_random(4) : 0, size = 1 + next_random(8);
                pieces[count++] = (piece){stream, n + lost, size, lost};
                n += lost + size;
            }
        for (size_t i = count; i > 1; i--) {
            size_t k = next_random((uint32_t)i);
            piece p = pieces[k];
            pieces[k] = pieces[i - 1];
            pieces[i - 1] = p;
        }
        for (size_t i = 0; i < count; i++) {
            if (seed % 2 == 0 && next_random(10) == 0)
                continue;
            sequences_add(s, &o, pieces[i].stream, pieces[i].first, pieces[i].count, pieces[i].lost);
            if (next_random(20) == 0)
                sequences_add(s, &o, pieces[i].stream, pieces[i].first, pieces[i].count, pieces[i].lost);
            if (i % 100 == 0)
                sequences_compare(s, &o);
        }
        sequences_compare(s, &o);
        listing l = {.o = &o};
        nl_sequences_list_missing(s, check_missing, &l);
        if (seed % 2 == 1)
            assert_int_equal(l.ranges, 0);
        nl_sequences_free(s);
    }
}

static void count_ranges(void *user, const nl_lost *what)
{
    *(uint64_t *)user += what->count;
}

static uint64_t count_missing(const nl_sequences *s)
{
    uint64_t count = 0;
    nl_sequences_list_missing(s, count_ranges, &count);
    return count;
}

/*
 * There are more gaps than the set keeps. The number of missing records is then a minimum, complete ranges are not
 * missing, and records count as new.
 */
static void too_many_gaps_are_admitted(void **state)
{
    (void)state;
    nl_sequences *s = nl_sequences_new();
    nl_buffer fresh = {0};
    nl_sequences_news news = {.fresh = &fresh};
    for (uint64_t n = 0; n < 2 * (SEQUENCES_GAPS_MAX + 100); n += 2) {
        nl_block_header h = block_of(0, n, 1, 0);
        fresh.size = 0;
        nl_sequences_add(s, &h, "a", &news);
    }
    assert_false(nl_sequences_is_complete(s));
    assert_false(news.followed);
    assert_int_equal(count_missing(s), SEQUENCES_GAPS_MAX);
    for (uint64_t n = 1; n < 2 * (SEQUENCES_GAPS_MAX + 100); n += 2) {
        nl_block_header h = block_of(0, n, 1, 0);
        fresh.size = 0;
        nl_sequences_add(s, &h, "a", &news);
        assert_false(news.followed);
    }
    assert_int_equal(count_missing(s), 0);
    nl_buffer_free(&fresh);
    nl_sequences_free(s);
}

static void too_many_streams_are_admitted(void **state)
{
    (void)state;
    nl_sequences *s = nl_sequences_new();
    nl_sequences_news news = {0};
    for (uint32_t i = 1; i <= SEQUENCES_STREAMS_MAX + 1; i++) {
        nl_block_header h = block_of(0, 5, 1, 0);
        memcpy(h.stream, &i, sizeof i);
        assert_true(nl_sequences_is_complete(s));
        nl_sequences_add(s, &h, "a", &news);
        assert_int_equal(news.followed, i <= SEQUENCES_STREAMS_MAX);
    }
    assert_false(nl_sequences_is_complete(s));
    assert_int_equal(count_missing(s), 0);
    nl_sequences_free(s);
}

static void what_was_passed_over_is_not_missing(void **state)
{
    (void)state;
    nl_sequences *s = nl_sequences_new();
    nl_sequences_news news = {0};
    for (uint64_t n = 0; n < 30; n += 20) {
        nl_block_header h = block_of(0, n, 10, 0);
        nl_sequences_add(s, &h, "a", &news);
    }
    assert_int_equal(count_missing(s), 10);
    nl_sequences_pass_over(s);
    assert_int_equal(count_missing(s), 0);
    nl_sequences_free(s);
}

static void numbers_at_the_end_of_their_range(void **state)
{
    (void)state;
    nl_sequences *s = nl_sequences_new();
    nl_sequences_news news = {0};
    nl_block_header h = block_of(0, UINT64_MAX - 1, 10, 0);
    nl_sequences_add(s, &h, "a", &news);
    h = block_of(0, 1, 1, 0);
    h.lost = UINT64_MAX;
    nl_sequences_add(s, &h, "a", &news);
    assert_int_equal(news.dropped, 1);
    assert_true(count_missing(s) == UINT64_MAX - 3);
    nl_sequences_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_what_a_plain_table_gives),
        cmocka_unit_test(too_many_gaps_are_admitted),
        cmocka_unit_test(too_many_streams_are_admitted),
        cmocka_unit_test(what_was_passed_over_is_not_missing),
        cmocka_unit_test(numbers_at_the_end_of_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
