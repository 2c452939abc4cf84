/*
 * Simulates a machine without a time-stamp counter, whose real-time clock is set while programs log. The
 * nl_clock_has_counter and clock_gettime of this file replace those of the library and of libc.
 */
#include <netlogger.h>

#include "log/clock.h"
#include "reader/decoder.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS (INT64_C(3600) * NL_NS_PER_SECOND)
#define MINUTE_NS (INT64_C(60) * NL_NS_PER_SECOND)

static int64_t
    set_by_ns; /* difference of the real-time clock from the kernel's clock; the writer threads read it too */

bool nl_clock_has_counter(void)
{
    return false;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME)
        now->tv_sec += __atomic_load_n(&set_by_ns, __ATOMIC_ACQUIRE) / NL_NS_PER_SECOND;
    return result;
}

static void set_clock(int64_t by_ns)
{
    __atomic_add_fetch(&set_by_ns, by_ns, __ATOMIC_ACQ_REL);
}

/* Accepts a difference of a minute, because only the hour matters. */
static void expect_about(int64_t time_ns, int64_t wanted_ns)
{
    assert_in_range(time_ns, wanted_ns - MINUTE_NS, wanted_ns + MINUTE_NS);
}

static void test_ticks_go_on_when_the_clock_is_set_back(void **state)
{
    (void)state;
    nl_clock clock;
    nl_clock_start(&clock);
    int64_t first_ns = nl_time_now_ns();
    expect_about(nl_clock_time_ns(&clock, nl_private_slow_ticks()), first_ns);
    uint64_t before = nl_clock_update(&clock), between = nl_private_slow_ticks();
    set_clock(-HOUR_NS);
    uint64_t after = nl_clock_update(&clock);
    assert_true(before <= between && between <= after);
    expect_about(nl_clock_time_ns(&clock, before), first_ns);
    expect_about(nl_clock_time_ns(&clock, between), first_ns);
    expect_about(nl_clock_time_ns(&clock, after), first_ns - HOUR_NS);
    set_clock(2 * HOUR_NS);
    uint64_t later = nl_clock_update(&clock);
    assert_true(after <= later);
    expect_about(nl_clock_time_ns(&clock, after), first_ns - HOUR_NS);
    expect_about(nl_clock_time_ns(&clock, later), first_ns + HOUR_NS);
    set_clock(-HOUR_NS);
}

static void test_a_restored_clock(void **state)
{
    (void)state;
    nl_clock clock, restored;
    nl_clock_point points[2];
    int64_t first_ns = nl_time_now_ns();
    nl_clock_start(&clock);
    uint64_t first = nl_private_slow_ticks();
    nl_clock_save(&clock, points); /* killed before a second calibration */
    nl_clock_restore(&restored, points, true);
    expect_about(nl_clock_time_ns(&restored, first), first_ns);
    expect_about(nl_clock_time_ns(&restored, first + (uint64_t)HOUR_NS), first_ns + HOUR_NS);

    nl_clock_update(&clock);
    nl_clock_save(&clock, points);
    uint64_t last = nl_private_slow_ticks();
    set_clock(-HOUR_NS); /* the clock is set between the kill and the recovery */
    nl_clock_restore(&restored, points, true);
    nl_clock_update(&restored);
    expect_about(nl_clock_time_ns(&restored, first), first_ns);
    expect_about(nl_clock_time_ns(&restored, last), first_ns);
    set_clock(HOUR_NS);

    /* Makes shared memory of an older library, whose ticks are those of the real-time clock. */
    points[0] = (nl_clock_point){(uint64_t)first_ns, first_ns};
    points[1] = (nl_clock_point){(uint64_t)first_ns + 1000000, first_ns + 1000000};
    nl_clock_restore(&restored, points, true);
    nl_clock_update(&restored);
    expect_about(nl_clock_time_ns(&restored, (uint64_t)first_ns + 2000000), first_ns);
}

/* Checks the times of a log's records, and that there are no further records. */
static void expect_times(const char *text, size_t size, const int64_t *wanted_ns, size_t count)
{
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    nl_decoder_feed(decoder, text, size);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(nl_decoder_next(decoder, &record), NL_OK);
        expect_about(record->time_ns, wanted_ns[i]);
    }
    assert_int_equal(nl_decoder_next(decoder, &record), NL_AGAIN);
    nl_decoder_free(decoder);
}

static void log_while_the_clock_is_set(const char *url)
{
    nl_log *log = nl_open("slow", url);
    assert_non_null(log);
    int64_t start_ns = nl_time_now_ns();
    NL_EVENT(log, NL_USAGE, "Before");
    assert_int_equal(nl_flush(log), NL_OK);
    set_clock(-HOUR_NS);
    assert_int_equal(nl_flush(log), NL_OK); /* the library detects the change */
    NL_EVENT(log, NL_USAGE, "SetBack");
    /* The flush must not wait until the real-time clock reaches the earlier time again. */
    assert_int_equal(nl_flush(log), NL_OK);
    nl_buffer text = {0};
    assert_true(nl_memory_read("slow", &text));
    expect_times(text.data, text.size, (int64_t[]){start_ns, start_ns - HOUR_NS}, 2);
    set_clock(HOUR_NS);
    assert_int_equal(nl_close(log), NL_OK);
    nl_buffer_free(&text);
    nl_memory_free("slow");
}

static void test_text_is_not_held_back(void **state)
{
    (void)state;
    log_while_the_clock_is_set("memory:slow");
}

static void test_blocks_are_not_held_back(void **state)
{
    (void)state;
    log_while_the_clock_is_set("memory:slow?format=nlb");
}

static void test_a_killed_process(void **state)
{
    (void)state;
    char folder[] = "/tmp/netlogger-XXXXXX", url[64], command[64];
    assert_non_null(mkdtemp(folder));
    setenv("NETLOGGER_SHM", folder, 1);
    snprintf(url, sizeof url, "file:%s/log", folder);
    int64_t start_ns = nl_time_now_ns();
    pid_t child = fork();
    if (child == 0) {
        nl_log *log = nl_open("slow", url);
        nl_flush(log);
        set_clock(-HOUR_NS);
        nl_flush(log);
        NL_EVENT(log, NL_USAGE, "SetBack");
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    assert_int_equal(nl_recover(NULL, NULL, NULL), NL_OK);
    nl_reader *reader = nl_reader_open(url, NULL);
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    /*
     * The writer thread may or may not have calibrated the clock again before the kill. In both cases, the event's time
     * is between the clock after the change and the clock before it, except for an error of a minute.
     */
    assert_in_range(record->time_ns, start_ns - HOUR_NS - MINUTE_NS, start_ns + MINUTE_NS);
    nl_reader_close(reader);
    unsetenv("NETLOGGER_SHM");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_go_on_when_the_clock_is_set_back),
        cmocka_unit_test(test_a_restored_clock),
        cmocka_unit_test(test_text_is_not_held_back),
        cmocka_unit_test(test_blocks_are_not_held_back),
        cmocka_unit_test(test_a_killed_process),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
