/* nl_control: level, events, markers and destination, changed while the program runs. */
#define _GNU_SOURCE 1
#include <netlogger.h>

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/log_internal.h"
#include "thread_sanitizer.h"

static void pass(long n)
{
    NL_MARKER(control_read, "N", n);
    NL_MARKER(control_write, "N", n);
}

static nl_status control(nl_log *log, const char *commands)
{
    return nl_control(log, commands, strlen(commands));
}

static char *memory(const char *name)
{
    static nl_buffer text;
    text.size = 0;
    assert_true(nl_memory_read(name, &text));
    nl_buffer_append(&text, "", 1);
    return text.data;
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        found++;
    return found;
}

static void count_probe(void *user, const nl_probe_info *probe)
{
    (void)probe;
    ++*(size_t *)user;
}

static size_t probes(void)
{
    size_t found = 0;
    nl_probe_list(count_probe, &found);
    return found;
}

static void test_level_and_events(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:levels");
    assert_int_equal(control(log, "# nothing\n\n  \t\nlevel Error"), NL_OK);
    for (int i = 0; i < 4; i++) {
        NL_EVENT(log, NL_USAGE, "Control.A", "I", i);
        NL_EVENT(log, NL_USAGE, "Control.B", "I", i);
        if (i == 0)
            assert_int_equal(control(log, "LEVEL debug\r\nevent Control.* off\nevent  Control.B\ton\n"), NL_OK);
        if (i == 2)
            assert_int_equal(control(log, "event Control.A on"), NL_OK);
    }
    nl_close(log);
    const char *all = memory("levels");
    assert_int_equal(count(all, "Control.A I=3"), 1);
    assert_int_equal(count(all, "Control.A"), 1);
    assert_int_equal(count(all, "Control.B"), 3);
    assert_null(strstr(all, "I=0"));
    nl_memory_free("levels");
}

static void test_markers(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:markers");
    assert_int_equal(control(log, "marker control_read log\nmarker control_read log\nmarker control_* count\n"
                                  "marker control_read time control_write\nmarker control_write log Error\n"),
                     NL_OK);
    assert_int_equal(probes(), 4);
    for (int i = 0; i < 10; i++)
        pass(i);
    assert_int_equal(control(log, "marker control_* off\nmarker control_write off\nmarker never_was off"), NL_OK);
    assert_int_equal(probes(), 2);
    pass(10);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(probes(), 0);
    pass(11);
    const char *all = memory("markers");
    assert_int_equal(count(all, " LVL=Usage NL.EVNT=control_read N="), 11);
    assert_int_equal(count(all, " LVL=Error NL.EVNT=control_write N="), 10);
    assert_int_equal(count(all, "NL.EVNT=NetLogger.Marker NAME=control_* COUNT=20\n"), 1);
    assert_int_equal(count(all, "NL.EVNT=NetLogger.Marker NAME=control_read TO=control_write COUNT=11 MIN.NS="), 1);
    nl_memory_free("markers");
}

static void test_wrong_lines_are_named_and_the_others_done(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "fly",
        "level",
        "level Loud",
        "level Error Error",
        "event x",
        "event x maybe",
        "event x on on",
        "marker",
        "marker x",
        "marker x log Loud",
        "marker x count 3",
        "marker x time",
        "marker x time y z",
        "marker x off y",
        "destination",
        "destination gopher://x",
        "destination file:///nowhere/at/all",
        "destination memory:x?color=red",
    };
    nl_log *log = nl_open("prog", "memory:wrong");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[256];
        int size = snprintf(text, sizeof text, "marker control_read log\n%s\nmarker control_write log\n", wrong[i]);
        assert_int_equal(nl_control(log, text, (size_t)size), NL_FAILED);
        assert_int_equal(strncmp(nl_error_message(), "line 2: ", 8), 0);
        assert_null(strstr(nl_error_message(), "line 3"));
        assert_int_equal(probes(), 2);
        control(log, "marker control_read off\nmarker control_write off\n");
    }
    assert_int_equal(nl_control(log, "level Error\0\nfly\n", 17), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "line 1: "));
    assert_non_null(strstr(nl_error_message(), "line 2: "));
    assert_int_equal(nl_control(log, "fly\n", 4), NL_FAILED);
    assert_int_equal(strncmp(nl_error_message(), "unknown command \"fly\"", 21), 0);
    char *text = malloc(100000);
    memset(text, 'x', 100000);
    assert_int_equal(nl_control(log, text, 100000), NL_FAILED);
    free(text);
    assert_int_equal(nl_control(NULL, "level Error", 11), NL_OFF);
    assert_int_equal(nl_control(log, "", 0), NL_OK);
    NL_EVENT(log, NL_USAGE, "Still");
    assert_int_equal(nl_close(log), NL_OK);
    assert_non_null(strstr(memory("wrong"), "Still"));
    nl_memory_free("wrong");
}

static void *log_on(void *user)
{
    for (int i = 0; i < 20000; i++)
        NL_EVENT((nl_log *)user, NL_USAGE, "Moving", "I", i);
    return NULL;
}

/* Each event arrives once, at one of the two destinations, and in its format. */
static void test_the_destination_changes_and_nothing_is_lost(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:first");
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, log_on, log);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(control(log, i % 2 == 0 ? "destination memory:second?format=bp" : "destination memory:first"),
                         NL_OK);
        nl_flush(log);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    NL_EVENT(log, NL_USAGE, "Last");
    assert_int_equal(control(log, "destination memory:second?format=bp"), NL_OK);
    nl_flush(log);
    NL_EVENT(log, NL_USAGE, "VeryLast");
    assert_int_equal(nl_close(log), NL_OK);
    size_t first = count(memory("first"), "NL.EVNT=Moving I=");
    assert_null(strstr(memory("first"), " event="));
    assert_null(strstr(memory("second"), "NL.EVNT="));
    assert_int_equal(first + count(memory("second"), "event=Moving "), 40000);
    assert_non_null(strstr(memory("second"), "event=VeryLast"));
    nl_memory_free("first");
    nl_memory_free("second");
}

/* Blocks that wait for an unreachable collector go to a file, although files hold text by default. */
static void test_waiting_blocks_move_to_a_file(void **state)
{
    (void)state;
    char file[] = "/tmp/netlogger-moved-XXXXXX", command[64];
    close(mkstemp(file));
    nl_log *log = nl_open("prog", "unix:/nonexistent/socket?quiet=yes");
    assert_non_null(log);
    for (int i = 0; i < 100; i++)
        NL_EVENT(log, NL_USAGE, "Waits", "I", i);
    assert_int_equal(nl_flush(log), NL_FAILED);
    snprintf(command, sizeof command, "destination file:%s", file);
    assert_int_equal(control(log, command), NL_OK);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    char magic[4] = {0};
    FILE *in = fopen(file, "rb");
    assert_int_equal(fread(magic, 1, sizeof magic, in), sizeof magic);
    fclose(in);
    unlink(file);
    assert_memory_equal(magic, "NLB1", sizeof magic);
}

/* Records that wait for an unreachable destination go to the next destination. */
static void test_what_waits_moves(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:gone");
    assert_int_equal(control(log, "destination file:///dev/full"), NL_OK);
    nl_flush(log);
    for (int i = 0; i < 100; i++)
        NL_EVENT(log, NL_USAGE, "Waits", "I", i);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(control(log, "destination memory:here"), NL_OK);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(count(memory("here"), "NL.EVNT=Waits I="), 100);
    nl_memory_free("gone");
    nl_memory_free("here");
}

static void test_after_fork(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:parent");
    control(log, "marker control_read count");
    /*
     * The sanitizer's allocator does not survive a fork during an allocation in the log's thread. After a flush, this
     * thread sleeps.
     */
    assert_int_equal(nl_flush(log), NL_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        pass(1);
        control(log, "marker control_write count\nlevel Error");
        _exit(nl_close(log) == NL_OK && probes() == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(probes(), 1);
    nl_close(log);
    nl_memory_free("parent");
}

/* Acknowledges the opening question of one connection, and reads to its end. */
static void *acknowledge(void *listener)
{
    static const char acknowledgement[16] = "NLA1\x08\0\0\0\x01";
    char bytes[4096];
    int connection = accept(*(int *)listener, NULL, NULL);
    assert_int_equal(write(connection, acknowledgement, sizeof acknowledgement), sizeof acknowledgement);
    while (read(connection, bytes, sizeof bytes) > 0)
        continue;
    close(connection);
    return NULL;
}

/* A collector may redirect programs to another collector, but not to a file. */
static void test_what_a_collector_may_name(void **state)
{
    (void)state;
    static const char *const not [] = {"?spool=/tmp/x", "?backup=file:///tmp/x", "?activation=/tmp/x", "?ca=/etc/x",
                                       "?cert=/etc/x",  "?key=/etc/x",           "?format=nlb&ca=x",   "?SPOOL=/tmp/x"};
    nl_log *log = nl_open("prog", "memory:named");
    char command[128];
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        for (int tls = 0; tls < 2; tls++) {
            snprintf(command, sizeof command, "destination x-netlog%s://127.0.0.1:9%s", tls ? "s" : "", not [i]);
            assert_int_equal(nl_control_do(log, NL_CONTROL_COLLECTOR, command, strlen(command), NULL), NL_FAILED);
            if (not [i][1] != 'S') /* the unknown option SPOOL causes another error */
                assert_non_null(strstr(nl_error_message(), "destination whose URL names files"));
        }
    static const char file[] = "destination file:///tmp/x";
    assert_int_equal(nl_control_do(log, NL_CONTROL_COLLECTOR, file, strlen(file), NULL), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "may set only a collector as destination"));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int other = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(other, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(other, 1), 0);
    assert_int_equal(getsockname(other, (struct sockaddr *)&address, &size), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acknowledge, &other), 0);
    snprintf(command, sizeof command, "destination x-netlog://127.0.0.1:%d?format=ulm&timeout=60",
             ntohs(address.sin_port));
    assert_int_equal(nl_control_do(log, NL_CONTROL_COLLECTOR, command, strlen(command), NULL), NL_OK);
    nl_close(log);
    pthread_join(thread, NULL);
    close(other);
    nl_memory_free("named");
}

/* If there are more events than fit in a batch, no event is lost, and no event delays the others. */
static void test_very_many_of_its_own(void **state)
{
    (void)state;
    enum { MANY = 5000, SIZE = 2000 };
    nl_log *log = nl_open("prog", "memory:own");
    char text[SIZE];
    memset(text, 'x', sizeof text);
    pthread_mutex_lock(&log->mutex); /* so that the writer thread finds all of them together */
    log->control.own_records =
        reallocarray(log->control.own_records, log->control.own_record_count + MANY, sizeof(nl_record *));
    for (int i = 0; i < MANY; i++) {
        nl_record *record = nl_own_record_new(log, NL_USAGE, "Own");
        nl_record_add_string(record, "TEXT", text, sizeof text);
        log->control.own_records[log->control.own_record_count++] = record;
    }
    pthread_mutex_unlock(&log->mutex);
    NL_EVENT(log, NL_USAGE, "Program's");
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(count(memory("own"), "NL.EVNT=Own "), MANY);
    assert_int_equal(count(memory("own"), "NL.EVNT=Program"), 1);
    nl_memory_free("own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_and_events),
        cmocka_unit_test(test_markers),
        cmocka_unit_test(test_wrong_lines_are_named_and_the_others_done),
        cmocka_unit_test(test_the_destination_changes_and_nothing_is_lost),
        cmocka_unit_test(test_what_waits_moves),
        cmocka_unit_test(test_waiting_blocks_move_to_a_file),
        cmocka_unit_test(test_what_a_collector_may_name),
        cmocka_unit_test(test_very_many_of_its_own),
        cmocka_unit_test(test_after_fork),
    };
    leave_out_what_the_thread_sanitizer_cannot();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
