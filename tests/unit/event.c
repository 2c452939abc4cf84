/* NL_EVENT and its rings: every type, full rings, signals, threads, forks. */
#define _GNU_SOURCE 1
#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "thread_sanitizer.h"
#include "under_valgrind.h"
#include "base/buffer.h"

/* Returns everything that was written to memory:NAME, NUL-terminated. */
static char *memory(const char *name)
{
    static nl_buffer text;
    text.size = 0;
    assert_true(nl_memory_read(name, &text));
    nl_buffer_append(&text, "", 1);
    return text.data;
}

/* Like strstr, which reads the whole text in each call under some sanitizers. */
static const char *event_find(const char *text, const char *what)
{
    size_t size = strlen(what);
    for (; *text != '\0'; text++)
        if (*text == *what && strncmp(text, what, size) == 0)
            return text;
    return NULL;
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (const char *at = text; (at = event_find(at, what)) != NULL; at++)
        found++;
    return found;
}

/* Returns the sum of the numbers after every " NAME=" in an event's records. */
static unsigned long sum(const char *text, const char *event, const char *name)
{
    unsigned long total = 0;
    char field[64];
    snprintf(field, sizeof field, " %s=", name);
    for (const char *at = text; (at = event_find(at, event)) != NULL; at++) {
        const char *value = event_find(at, field);
        assert_non_null(value);
        total += strtoul(value + strlen(field), NULL, 10);
    }
    return total;
}

static void test_every_type(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:types");
    char text[] = "array";
    enum { RED = 7 } color = RED;
    volatile long changing = -5;
    const unsigned short constant = 65535;
    NL_EVENT(log, NL_USAGE, "Signed", "A", (signed char)-128, "B", (short)-32768, "C", -2147483647 - 1, "D",
             (int64_t)INT64_MIN, "E", (long long)INT64_MAX, "F", color, "G", changing);
    NL_EVENT(log, NL_USAGE, "Unsigned", "A", (unsigned char)255, "B", constant, "C", 4294967295u, "D", (uint64_t)-1,
             "E", UINT64_MAX, "F", 'a');
    NL_EVENT(log, NL_USAGE, "Other", "A", (bool)1, "B", (bool)0, "C", 0.1, "D", 1.5f, "E", 2.5L, "F", NAN, "G",
             -INFINITY);
    NL_EVENT(log, NL_USAGE, "Text", "A", "literal", "B", text, "C", (const char *)NULL, "D", "", "E",
             NL_BYTES("a\0b\xff", 4), "F", NL_BYTES(NULL, 7));
    NL_EVENT(log, NL_ERROR, "None");
    assert_int_equal(nl_close(log), NL_OK);
    const char *all = memory("types");
    assert_non_null(strstr(all, " LVL=Usage NL.EVNT=Signed A=-128 B=-32768 C=-2147483648 D=-9223372036854775808 "
                                "E=9223372036854775807 F=7 G=-5\n"));
    assert_non_null(strstr(all, "NL.EVNT=Unsigned A=255 B=65535 C=4294967295 D=18446744073709551615 "
                                "E=18446744073709551615 F=97\n"));
    assert_non_null(strstr(all, "NL.EVNT=Other A=true B=false C=0.1 D=1.5 E=2.5 F=nan G=-inf\n"));
    assert_non_null(strstr(all, "NL.EVNT=Text A=literal B=array C=(null) D=\"\" E=\"a\\x00b\xff\" F=\"\"\n"));
    assert_non_null(strstr(all, " LVL=Error NL.EVNT=None\n"));
    nl_memory_free("types");
}

static void test_values_are_evaluated_once_and_only_when_on(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:once");
    int evaluated = 0;
    NL_EVENT(log, NL_USAGE, "On", "N", ++evaluated);
    assert_int_equal(evaluated, 1);
    nl_set_level(log, NL_ERROR);
    NL_EVENT(log, NL_USAGE, "Off", "N", ++evaluated);
    NL_EVENT(NULL, NL_USAGE, "Nowhere", "N", ++evaluated);
    assert_int_equal(evaluated, 1);
    NL_EVENT(log, NL_ERROR, "Urgent", "N", ++evaluated);
    assert_int_equal(evaluated, 2);
    nl_close(log);
    assert_null(strstr(memory("once"), "Off"));
    assert_non_null(strstr(memory("once"), "Urgent N=2"));
    nl_memory_free("once");
}

static void test_a_long_string_is_cut(void **state)
{
    (void)state;
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    nl_log *log = nl_open("prog", "memory:long");
    NL_EVENT(log, NL_USAGE, "Long", "TEXT", text, "AFTER", 1);
    nl_close(log);
    const char *all = memory("long");
    assert_int_equal(strspn(strstr(all, "TEXT=") + 5, "x"), NL_VALUE_SIZE_MAX);
    assert_non_null(strstr(all, " AFTER=1\n"));
    nl_memory_free("long");
    free(text);
}

static void test_more_logs_than_slots(void **state)
{
    (void)state;
    enum { LOGS = 40 };
    nl_log *logs[LOGS];
    for (int i = 0; i < LOGS; i++) {
        char url[32];
        snprintf(url, sizeof url, "memory:many%d", i);
        logs[i] = nl_open("prog", url);
        assert_non_null(logs[i]);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LOGS; i++)
            NL_EVENT(logs[i], NL_USAGE, "Many", "LOG", i, "ROUND", round);
    for (int i = 0; i < LOGS; i++) {
        char name[32], line[32];
        nl_close(logs[i]);
        snprintf(name, sizeof name, "many%d", i);
        snprintf(line, sizeof line, "Many LOG=%d ROUND=2\n", i);
        assert_int_equal(count(memory(name), "NL.EVNT=Many"), 3);
        assert_non_null(strstr(memory(name), line));
        nl_memory_free(name);
    }
}

static nl_log *shared_log;

static void *log_some(void *argument)
{
    for (int i = 0; i < 50; i++)
        NL_EVENT(shared_log, NL_USAGE, "Some", "THREAD", (long)argument, "I", i);
    return NULL;
}

static void test_threads_that_come_and_go(void **state)
{
    (void)state;
    enum { ROUNDS = 50, THREADS = 8 };
    shared_log = nl_open("prog", "memory:threads");
    for (long round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, log_some, (void *)(round * THREADS + i));
        for (long i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_int_equal(nl_close(shared_log), NL_OK);
    assert_int_equal(count(memory("threads"), "NL.EVNT=Some"), ROUNDS * THREADS * 50);
    assert_int_equal(sum(memory("threads"), "NL.EVNT=Some", "I"), ROUNDS * THREADS * 49 * 50 / 2);
    nl_memory_free("threads");
}

static volatile sig_atomic_t handled;

static void log_in_handler(int number)
{
    (void)number;
    handled++;
    NL_EVENT(shared_log, NL_USAGE, "Handler", "N", (int)handled);
}

static void test_a_signal_handler_may_log(void **state)
{
    (void)state;
    shared_log = nl_open("prog", "memory:handler");
    struct sigaction action = {.sa_handler = log_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int logged = 0;
    for (; handled < 500; logged++)
        NL_EVENT(shared_log, NL_USAGE, "Main", "N", logged, "TEXT", "some text to copy");
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN); /* one event may still be in transit */
    NL_EVENT(shared_log, NL_USAGE, "End");
    nl_close(shared_log);
    const char *all = memory("handler");
    assert_int_equal(count(all, "NL.EVNT=Main"), logged);
    assert_int_equal(count(all, "NL.EVNT=Handler") + sum(all, "NL.EVNT=NetLogger.Lost", "REFUSED"), handled);
    assert_int_equal(sum(all, "NL.EVNT=NetLogger.Lost", "COUNT"), sum(all, "NL.EVNT=NetLogger.Lost", "REFUSED"));
    nl_memory_free("handler");
}

/* Opens a log to a pipe without a reader, so that its rings become full. */
typedef struct stalled {
    char folder[32], fifo[64];
    int fd;
    nl_log *log;
} stalled;

static void stall(stalled *s, const char *options)
{
    strcpy(s->folder, "/tmp/netlogger-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->fifo, sizeof s->fifo, "%s/fifo", s->folder);
    assert_int_equal(mkfifo(s->fifo, 0600), 0);
    s->fd = open(s->fifo, O_RDWR | O_NONBLOCK);
    assert_true(s->fd >= 0);
    char url[128];
    snprintf(url, sizeof url, "file:%s?ring=64k&%s", s->fifo, options);
    s->log = nl_open("prog", url);
    assert_non_null(s->log);
}

static void *close_log(void *log)
{
    return (void *)(intptr_t)nl_close(log);
}

/* Reads everything while the log is closed. The caller frees the text. */
static char *unstall(stalled *s)
{
    nl_buffer text = {0};
    pthread_t closer;
    pthread_create(&closer, NULL, close_log, s->log);
    bool closed = false;
    for (;;) {
        nl_buffer_reserve(&text, 1 << 16);
        ssize_t got = read(s->fd, text.data + text.size, 1 << 16);
        if (got > 0)
            text.size += (size_t)got;
        else if (closed)
            break;
        else if (pthread_tryjoin_np(closer, NULL) == 0)
            closed = true;
        else
            usleep(1000);
    }
    close(s->fd);
    unlink(s->fifo);
    rmdir(s->folder);
    nl_buffer_append(&text, "", 1);
    return text.data;
}

enum { BURST = 20000 };

static void test_drop_newest(void **state)
{
    (void)state;
    stalled s;
    stall(&s, "policy=newest");
    for (int i = 0; i < BURST; i++)
        NL_EVENT(s.log, NL_USAGE, "Burst", "I", i, "TEXT", "and some text");
    char *all = unstall(&s);
    size_t there = count(all, "NL.EVNT=Burst"), lost = sum(all, "NL.EVNT=NetLogger.Lost", "COUNT");
    assert_in_range(there, 100, BURST - 1);
    assert_int_equal(there + lost, BURST);
    assert_non_null(strstr(all, "NL.EVNT=Burst I=0 "));
    free(all);
}

/* Waits until the pipe is full and the writer thread has been blocked for 200 ms. */
static void wait_for_standstill(const stalled *s)
{
    struct pollfd capacity = {.fd = s->fd, .events = POLLOUT};
    for (int still = 0, before = 0, now = 0, turns = 0; still < 20 && turns < 6000; turns++, before = now) {
        usleep(10000);
        assert_int_equal(ioctl(s->fd, FIONREAD, &now), 0);
        still = now == before && poll(&capacity, 1, 0) == 0 ? still + 1 : 0;
    }
}

static void test_drop_oldest(void **state)
{
    (void)state;
    stalled s;
    stall(&s, "policy=oldest");
    for (int i = 0; i < BURST; i++) {
        if (i == BURST - 1) /* the events that the writer thread reads are not overwritten: wait until it blocks */
            wait_for_standstill(&s);
        NL_EVENT(s.log, NL_USAGE, "Burst", "I", i, "TEXT", "and some text");
    }
    char *all = unstall(&s), last[32];
    snprintf(last, sizeof last, "NL.EVNT=Burst I=%d ", BURST - 1);
    size_t there = count(all, "NL.EVNT=Burst"), lost = sum(all, "NL.EVNT=NetLogger.Lost", "COUNT");
    assert_in_range(there, 100, BURST - 1);
    assert_int_equal(there + lost, BURST);
    assert_non_null(strstr(all, last));
    free(all);
}

static void test_drop_below_a_level_first(void **state)
{
    (void)state;
    stalled s;
    stall(&s, "policy=Warning&block=0.01");
    for (int i = 0; i < BURST; i++) {
        NL_EVENT(s.log, NL_DEBUG, "Minor", "I", i, "TEXT", "and some text");
        if (i % 100 == 0)
            NL_EVENT(s.log, NL_ERROR, "Urgent", "I", i);
    }
    char *all = unstall(&s);
    size_t minor = count(all, "NL.EVNT=Minor"), lost = sum(all, "NL.EVNT=NetLogger.Lost", "COUNT");
    assert_int_equal(count(all, "NL.EVNT=Urgent"), BURST / 100);
    assert_in_range(minor, 100, BURST - 1);
    assert_int_equal(minor + lost, BURST);
    free(all);
}

static void test_blocking_is_bounded(void **state)
{
    (void)state;
    stalled s;
    stall(&s, "policy=block&block=0.05");
    int64_t start_ns = nl_time_now_ns();
    for (int i = 0; i < BURST; i++)
        NL_EVENT(s.log, NL_USAGE, "Burst", "I", i, "TEXT", "and some text");
    /* The program waits once for the whole blockage. A wait for each event would take minutes. */
    assert_true(nl_time_now_ns() - start_ns < 20 * NL_NS_PER_SECOND);
    char *all = unstall(&s);
    assert_int_equal(count(all, "NL.EVNT=Burst") + sum(all, "NL.EVNT=NetLogger.Lost", "COUNT"), BURST);
    free(all);
}

static void test_blocking_loses_nothing(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:block?ring=64k&policy=block");
    for (int i = 0; i < 10 * BURST; i++)
        NL_EVENT(log, NL_USAGE, "Burst", "I", i);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(count(memory("block"), "NL.EVNT=Burst"), 10 * BURST);
    nl_memory_free("block");
}

static void test_times_are_now_and_in_order(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:times");
    int64_t before_ns = nl_time_now_ns() / 1000 * 1000;
    for (int i = 0; i < 1000; i++)
        NL_EVENT(log, NL_USAGE, "Tick", "BEFORE", nl_time_now_ns());
    nl_close(log);
    nl_reader *reader = nl_reader_open("memory:times", NULL);
    const nl_record *record;
    int64_t last_ns = before_ns;
    int read = 0;
    while (nl_reader_next(reader, &record) == NL_OK) {
        int64_t told_ns = 0;
        nl_field field;
        assert_true(nl_record_find(record, "BEFORE", &field) && nl_field_int(&field, &told_ns));
        assert_true(record->time_ns >= last_ns);
        /* The test read the clock just before. 100 us allow for a slewed clock, and for rounding. */
        assert_true(record->time_ns > told_ns - 100000);
        last_ns = record->time_ns;
        read++;
    }
    assert_true(last_ns <= nl_time_now_ns() + 100000);
    assert_int_equal(read, 1000);
    nl_reader_close(reader);
    nl_memory_free("times");
}

static void test_a_forked_child_is_a_stream_of_its_own(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-XXXXXX", url[64];
    int fd = mkstemp(path);
    snprintf(url, sizeof url, "file:%s", path);
    nl_log *log = nl_open("prog", url);
    NL_EVENT(log, NL_USAGE, "Parent", "N", 1);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            NL_EVENT(log, NL_USAGE, "Child", "N", i);
            _exit(nl_close(log) == NL_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    NL_EVENT(log, NL_USAGE, "Parent", "N", 2);
    assert_int_equal(nl_close(log), NL_OK);
    char text[4096] = "";
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_int_equal(count(text, "NL.EVNT=Parent"), 2);
    assert_int_equal(count(text, "NL.EVNT=Child"), 5);
    close(fd);
    unlink(path);
}

/* The reported cost of the event with this name, and the number of its reports. */
typedef struct wanted {
    const char *event;
    nl_event_cost cost;
    int count;
} wanted;

static void keep_wanted(void *user, const nl_event_cost *cost)
{
    wanted *w = user;
    assert_true(cost->ns > 0);
    if (strcmp(cost->event, w->event) == 0) {
        w->cost = *cost;
        w->count++;
    }
}

static void log_costly(nl_log *log)
{
    for (int i = 0; i < 3; i++) {
        NL_EVENT(log, NL_WARNING, "Costly", "A", (signed char)1, "B", (short)2, "C", 3, "D", 4L, "E", 1.5f, "F", 2.5,
                 "G", (bool)1, "H", "some text");
        nl_write(log, NL_USAGE, "CostlyToo", "A=%d B=%ld C=%s D=%x E=%.3f", 1, 2L, "text", 3, 1.5);
    }
}

static void test_costs_are_measured_and_nothing_is_logged(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:costs");
    wanted w = {.event = "Costly"}, too = {.event = "CostlyToo"};
    log_costly(log);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(nl_event_costs(keep_wanted, &w), NL_OK);
        assert_int_equal(nl_event_costs(keep_wanted, &too), NL_OK);
        assert_int_equal(w.count, i); /* a call site is one site, however often it was reached */
        assert_int_equal(too.count, i);
    }
    assert_int_equal(w.cost.level, NL_WARNING);
    assert_int_equal(w.cost.field_count, 8);
    assert_string_equal(w.cost.names[0], "A");
    assert_string_equal(w.cost.names[7], "H");
    assert_int_equal(w.cost.bytes, 16 + 1 + 2 + 4 + sizeof(long) + 4 + 8 + 1 + 4 + 23);
    assert_int_equal(w.cost.printed_fields, 0);
    assert_int_equal(too.cost.bytes,
                     16 + 4 + sizeof(int64_t) + 3 * (4 + 23)); /* a long is stored in the largest integer type */
    assert_int_equal(too.cost.printed_fields, 2);
    log_costly(log);
    nl_close(log);
    assert_int_equal(count(memory("costs"), "\n"), 12);
    assert_int_equal(count(memory("costs"), "NL.EVNT=Costly A=1 B=2 C=3 D=4 E=1.5 F=2.5 G=true H=\"some text\"\n"), 6);
    nl_memory_free("costs");
    assert_int_equal(nl_event_costs(keep_wanted, &w), NL_OK);
    assert_int_equal(w.count, 2); /* without a log, no site is registered */
}

static pthread_barrier_t middle;
static const char *const no_names[] = {NULL};
static const unsigned char no_types[] = {0};
static nl_event_site middle_site = {"Standing", no_names, no_types, 0, NL_USAGE, 0, 0, NULL};

/* A thread that stops within an event delays the order, but a flush returns with its caller's events written. */
static void *stand_in_the_middle(void *user)
{
    nl_log *log = user;
    nl_ring_producer *ring = NULL;
    NL_EVENT(log, NL_USAGE, "First");
    char *at = nl_private_begin((nl_log_gate *)(void *)log, &middle_site, sizeof(nl_event_header), &ring);
    assert_non_null(at);
    pthread_barrier_wait(&middle);
    pthread_barrier_wait(&middle);
    nl_private_commit(ring, sizeof(nl_event_header));
    return NULL;
}

static void test_flush_beside_a_thread_in_the_middle(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:middle");
    pthread_t thread;
    pthread_barrier_init(&middle, NULL, 2);
    pthread_create(&thread, NULL, stand_in_the_middle, log);
    pthread_barrier_wait(&middle);
    for (int i = 0; i < 5; i++) {
        char wanted[32];
        NL_EVENT(log, NL_USAGE, "Mine", "N", i);
        assert_int_equal(nl_flush(log), NL_OK);
        snprintf(wanted, sizeof wanted, "Mine N=%d\n", i);
        assert_int_equal(count(memory("middle"), wanted), 1);
    }
    pthread_barrier_wait(&middle);
    pthread_join(thread, NULL);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(count(memory("middle"), "Standing"), 1);
    nl_memory_free("middle");
}

/* A signal handler runs between the reservation of space for an event and the event. */
static void test_a_handler_does_not_take_the_room(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:room?ring=64k&policy=newest");
    NL_EVENT(log, NL_USAGE, "First");
    nl_ring_producer *ring = nl_private_prepare((nl_log_gate *)(void *)log, &middle_site, 8000);
    assert_non_null(ring);
    NL_EVENT(log, NL_USAGE, "Handler");
    ring->busy = 0;
    NL_EVENT(log, NL_USAGE, "Last");
    assert_int_equal(nl_flush(log), NL_OK);
    const char *text = memory("room");
    assert_int_equal(count(text, "Handler"), 0);
    assert_int_equal(count(text, "NetLogger.Lost COUNT=1 REFUSED=1"), 1);
    assert_int_equal(count(text, "Last"), 1);
    nl_close(log);
    nl_memory_free("room");
}

/* Closes logs at the same time. The shared state stays until their writer threads have ended. */
static void *close_with_others(void *user)
{
    char url[32];
    snprintf(url, sizeof url, "memory:%s", (const char *)user);
    for (unsigned round = 0; round < times_here(100); round++) {
        nl_log *log = nl_open("prog", url);
        for (int i = 0; i < 300; i++)
            NL_EVENT(log, NL_USAGE, "Together", "I", i);
        pthread_barrier_wait(&middle);
        assert_int_equal(nl_close(log), NL_OK);
        nl_buffer text = {0};
        assert_true(nl_memory_read(user, &text));
        nl_buffer_append(&text, "", 1);
        assert_int_equal(count(text.data, "Together"), 300);
        nl_buffer_free(&text);
        nl_memory_free(user);
        pthread_barrier_wait(&middle);
    }
    return NULL;
}

static void test_closing_together(void **state)
{
    (void)state;
    static char names[4][8] = {"close0", "close1", "close2", "close3"};
    pthread_t threads[4];
    pthread_barrier_init(&middle, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, close_with_others, names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static nl_log *volatile stormy;
static volatile unsigned long storm_tried;
static volatile bool storm_spoilt_errno;

static void on_storm(int signal)
{
    (void)signal;
    int saved = errno;
    errno = 77;
    NL_EVENT(stormy, NL_USAGE, "Handler");
    if (errno != 77)
        storm_spoilt_errno = true;
    errno = saved;
    /* Two threads may run the handler at the same time. */
    __atomic_fetch_add(&storm_tried, stormy != NULL, __ATOMIC_RELAXED);
}

static void *log_and_end(void *log)
{
    NL_EVENT((nl_log *)log, NL_USAGE, "Thread");
    return NULL;
}

/* Handlers log while logs are opened, flushed and closed, threads begin and end, and the process forks. */
static void test_handlers_at_any_moment_of_fork(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_storm, .sa_flags = SA_RESTART}, before;
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm_only, old;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned round = 0; round < times_here(80); round++) {
        storm_tried = 0;
        nl_log *log = nl_open("prog", "memory:storm");
        stormy = log;
        for (int i = 0; i < 1000; i++)
            free(malloc((size_t)i * 97));
        pthread_t thread;
        pthread_create(&thread, NULL, log_and_end, log);
        pthread_join(thread, NULL);
        pid_t child = fork();
        if (child == 0) {
            stormy = NULL;
            NL_EVENT(log, NL_USAGE, "Child");
            nl_close(log);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
        nl_flush(log);
        stormy = NULL;
        assert_false(storm_spoilt_errno);
        sigprocmask(SIG_BLOCK, &alarm_only, &old);
        unsigned long lost = 0;
        if (nl_close(log) != NL_OK)
            lost = strtoul(nl_error_message(), NULL, 10);
        assert_int_equal(count(memory("storm"), "=Handler") + lost, storm_tried);
        nl_memory_free("storm");
        sigprocmask(SIG_SETMASK, &old, NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
}

int main(void)
{
    setenv("NETLOGGER_HOST", "here", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_values_are_evaluated_once_and_only_when_on),
        cmocka_unit_test(test_a_long_string_is_cut),
        cmocka_unit_test(test_more_logs_than_slots),
        cmocka_unit_test(test_threads_that_come_and_go),
        cmocka_unit_test(test_a_signal_handler_may_log),
        cmocka_unit_test(test_drop_newest),
        cmocka_unit_test(test_drop_oldest),
        cmocka_unit_test(test_drop_below_a_level_first),
        cmocka_unit_test(test_blocking_is_bounded),
        cmocka_unit_test(test_blocking_loses_nothing),
        cmocka_unit_test(test_times_are_now_and_in_order),
        cmocka_unit_test(test_a_forked_child_is_a_stream_of_its_own),
        cmocka_unit_test(test_costs_are_measured_and_nothing_is_logged),
        cmocka_unit_test(test_flush_beside_a_thread_in_the_middle),
        cmocka_unit_test(test_a_handler_does_not_take_the_room),
        cmocka_unit_test(test_closing_together),
        cmocka_unit_test(test_handlers_at_any_moment_of_fork),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    leave_out_what_the_thread_sanitizer_cannot();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
