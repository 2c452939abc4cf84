/*
 * Simulates a time-stamp counter, and a real-time clock that a daemon slews and sets. The clock_gettime of this file
 * replaces that of libc.
 */
#include <netlogger.h>

#include "reader/decoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    EVENTS = 2000,
    TOLERANCE_NS = 2000000,
    LATE_EVENTS = 40,
    LATE_TOLERANCE_NS = 20000,
    LARGE_SIZE = 1 << 20 /* more than the stacks of the library's threads */
};
#define HOUR_NS (INT64_C(3600) * NL_NS_PER_SECOND)

static int64_t start_ns;                 /* start of the slewing, by the kernel's clock */
static int64_t set_by_ns, slewed_by_ppm; /* the writer threads read these too */
static int64_t before_ns[EVENTS], after_ns[EVENTS];

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id != CLOCK_REALTIME)
        return result;
    int64_t time_ns = (int64_t)now->tv_sec * NL_NS_PER_SECOND + now->tv_nsec;
    if (start_ns != 0)
        time_ns += (time_ns - start_ns) / 1000000 * __atomic_load_n(&slewed_by_ppm, __ATOMIC_RELAXED);
    time_ns += __atomic_load_n(&set_by_ns, __ATOMIC_RELAXED);
    now->tv_sec = time_ns / NL_NS_PER_SECOND;
    now->tv_nsec = time_ns % NL_NS_PER_SECOND;
    return result;
}

/* Logs events between two flushes, and sets the clock in the middle. */
static void log_them(const char *url, int64_t set_ns)
{
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    for (int i = 0; i < EVENTS; i++) {
        if (i == EVENTS / 2) {
            nl_flush(log);
            __atomic_store_n(&set_by_ns, set_ns, __ATOMIC_RELAXED);
            nl_flush(log);
        }
        before_ns[i] = nl_time_now_ns();
        NL_EVENT(log, NL_USAGE, "Event", "I", i);
        after_ns[i] = nl_time_now_ns();
        usleep(100);
    }
    assert_int_equal(nl_close(log), NL_OK);
}

/* Every event has the clock's time at its call. */
static void expect_times(void)
{
    nl_buffer bytes = {0};
    const nl_record *record;
    int count = 0;
    assert_true(nl_memory_read("clock", &bytes));
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_feed(decoder, bytes.data, bytes.size);
    for (; nl_decoder_next(decoder, &record) == NL_OK; count++) {
        nl_field field;
        int64_t i = -1;
        assert_true(nl_record_find(record, "I", &field) && nl_field_int(&field, &i));
        assert_in_range(i, 0, EVENTS - 1);
        assert_in_range(record->time_ns, before_ns[i] - TOLERANCE_NS, after_ns[i] + TOLERANCE_NS);
    }
    assert_int_equal(count, EVENTS);
    nl_decoder_free(decoder);
    nl_buffer_free(&bytes);
    nl_memory_free("clock");
}

static void times_follow_the_clock(void **state)
{
    (void)state;
    static const struct {
        int64_t ppm, set_ns;
    } cases[] = {{0, 0}, {500, 0}, {-500, 0}, {0, HOUR_NS}, {0, -HOUR_NS}, {200, 20000000}, {-200, -20000000}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int text = 0; text < 2; text++) {
            set_by_ns = 0;
            slewed_by_ppm = 0;
            start_ns = 0;
            start_ns = nl_time_now_ns();
            slewed_by_ppm = cases[i].ppm;
            log_them(text ? "memory:clock" : "memory:clock?format=nlb", cases[i].set_ns);
            expect_times();
        }
}

/*
 * Logs events for a second in a process that cannot create threads, so that nothing is written before the log is
 * closed. Returns 0, or the number of the step that failed.
 */
static int log_without_thread(void)
{
    if ((geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) ||
        setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}) != 0)
        return 1;
    nl_log *log = nl_open("p", "memory:clock");
    if (log == NULL)
        return 2;
    for (int i = 0; i < LATE_EVENTS; i++) {
        before_ns[i] = nl_time_now_ns();
        NL_EVENT(log, NL_USAGE, "Event", "I", i);
        after_ns[i] = nl_time_now_ns();
        usleep(50000);
    }
    nl_buffer bytes = {0};
    if (nl_memory_read("clock", &bytes) && bytes.size > 0)
        return 7; /* there is a writer thread */
    if (nl_close(log) != NL_OK)
        return 3;
    const nl_record *record;
    int wrong = 0, count = 0;
    if (!nl_memory_read("clock", &bytes))
        return 4;
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_feed(decoder, bytes.data, bytes.size);
    for (; nl_decoder_next(decoder, &record) == NL_OK; count++)
        wrong += record->time_ns < before_ns[count] - LATE_TOLERANCE_NS ||
                 record->time_ns > after_ns[count] + LATE_TOLERANCE_NS;
    nl_decoder_free(decoder);
    nl_buffer_free(&bytes);
    return count != LATE_EVENTS ? 5 : wrong > 0 ? 6 : 0;
}

static void times_are_right_although_the_writer_starts_late(void **state)
{
    (void)state;
    set_by_ns = slewed_by_ppm = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(log_without_thread());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static __thread char large[LARGE_SIZE];

/* The C library takes the space of thread-local variables from the stacks of threads. */
static void the_writer_starts_in_a_program_with_large_thread_local_variables(void **state)
{
    (void)state;
    char path[] = "/tmp/clock-XXXXXX", url[64];
    struct stat found = {0};
    memset(large, 1, sizeof large);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    snprintf(url, sizeof url, "file://%s", path);
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    NL_EVENT(log, NL_USAGE, "Event", "LARGE", (int)large[1]);
    for (int i = 0; i < 1000 && found.st_size == 0; i++) {
        usleep(10000);
        fstat(fd, &found);
    }
    assert_true(found.st_size > 0); /* the writer thread has written the event, although nothing was flushed */
    assert_int_equal(nl_close(log), NL_OK);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_follow_the_clock), cmocka_unit_test(times_are_right_although_the_writer_starts_late),
        cmocka_unit_test(the_writer_starts_in_a_program_with_large_thread_local_variables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
