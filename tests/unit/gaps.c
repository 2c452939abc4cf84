/* netlogd's gaps: records counted as lost and as found again, for all changes of streams. */
#include "gaps.h"

#include "reader/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 20 };

/* Sets the received numbers of stream 1: all before next except those in [from, to). */
static void set_stream(nl_streams *streams, uint64_t next, uint64_t from, uint64_t to)
{
    nl_number_range missing = {from, to};
    nl_stream_state state = {.stream = {1}, .next = next, .gap_count = from < to, .gaps = &missing};
    nl_streams_set(streams, &state);
}

/* Makes a reported gap of ten records, five of which have arrived since. */
static void gaps_begin(nl_streams *streams)
{
    gaps_start(streams, NULL);
    nl_lost lost = {.stream = {1}, .count = 10, .numbers = {0, 10}};
    set_stream(streams, RECORDS, 0, 10);
    gaps_note(&lost, "peer", "", 1);
    assert_int_equal(gaps_count_lost(), 0);
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_count_lost(), 10);
    set_stream(streams, RECORDS, 5, 10);
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_count_lost(), 5);
}

static void test_found(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    gaps_begin(streams);
    set_stream(streams, RECORDS, 0, 0);
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_get_counts()->lost, 10);
    assert_int_equal(gaps_get_counts()->found, 10);
    assert_int_equal(gaps_count_lost(), 0);
    gaps_free();
    nl_streams_free(streams);
}

/* A stream is forgotten and occurs again. No record is found twice. */
static void test_forgotten(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    gaps_begin(streams);
    nl_streams_clear(streams);
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_count_lost(), 5);
    set_stream(streams, 3, 0, 0); /* the stream has begun again */
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_count_lost(), 5);
    set_stream(streams, RECORDS, 0, 0);
    gaps_check(INT64_MAX);
    assert_int_equal(gaps_count_lost(), 0);
    gaps_free();
    nl_streams_free(streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
