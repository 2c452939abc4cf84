/* Tests netlogd's table of clocks: which records are clock records, and which hosts a full table replaces. */
#include "clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOSTS_MAX = 1024 }; /* as in clocks.c */

static size_t described[128]; /* hosts by the first letter of their names */

/* ---- called by clocks_describe ---- */

nl_record *request_record(request *r, nl_level level, const char *event)
{
    (void)r, (void)level, (void)event;
    return NULL;
}

void request_add_text(nl_record *record, const char *name, const char *value)
{
    (void)record;
    if (strcmp(name, "CLOCK.HOST") == 0)
        described[value[0] & 127]++;
}

void request_add_time(nl_record *record, const char *name, int64_t time_ns)
{
    (void)record, (void)name, (void)time_ns;
}

void request_put(request *r, const nl_record *record)
{
    (void)r, (void)record;
}

/* ---- tests ---- */

static bool put_event(const char *event, const char *host, const char *peer)
{
    nl_record *record = nl_record_new();
    nl_record_set_event(record, event, strlen(event));
    nl_record_set_host(record, host, strlen(host));
    bool of_clock = clocks_put(record, peer);
    nl_record_free(record);
    return of_clock;
}

/* Adds records of count new hosts from the address 10.0.0.LETTER; the hosts' names begin with the letter. */
static void put_hosts(char letter, size_t count)
{
    static unsigned number;
    char host[32], peer[32];
    snprintf(peer, sizeof peer, "10.0.0.%d:1000", letter);
    for (size_t i = 0; i < count; i++) {
        snprintf(host, sizeof host, "%c%u", letter, number++);
        assert_true(put_event("ClockKernel", host, peer));
    }
}

static void assert_hosts(size_t a, size_t b, size_t others)
{
    memset(described, 0, sizeof described);
    clocks_describe(NULL);
    assert_int_equal(described['a'], a);
    assert_int_equal(described['b'], b);
    assert_int_equal(described['c'], others);
}

static void test_only_records_of_clocks_count_as_such(void **state)
{
    (void)state;
    clocks_start(NULL);
    assert_false(put_event("E", "a", "10.0.0.1:1000"));
    assert_false(put_event("ClockMarket.Open", "a", "10.0.0.1:1000"));
    assert_hosts(0, 0, 0);
    assert_true(put_event("ClockTracking", "a", "10.0.0.1:1000"));
    assert_hosts(1, 0, 0);
}

/* After c has displaced a host of a, a has fewer hosts than b. From then on, b may displace only its own hosts. */
static void test_more_hosts_never_displace_those_of_fewer(void **state)
{
    (void)state;
    clocks_start(NULL);
    put_hosts('a', HOSTS_MAX / 2);
    put_hosts('b', HOSTS_MAX / 2);
    put_hosts('c', 1);
    assert_hosts(HOSTS_MAX / 2 - 1, HOSTS_MAX / 2, 1);
    put_hosts('b', 10);
    assert_hosts(HOSTS_MAX / 2 - 1, HOSTS_MAX / 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_records_of_clocks_count_as_such),
        cmocka_unit_test(test_more_hosts_never_displace_those_of_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
