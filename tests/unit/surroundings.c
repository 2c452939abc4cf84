/*
 * The library in programs that do what programs do: cancel threads, close all descriptors, log to pipes that nobody
 * reads, drop privileges, fill the shared memory. Nothing hangs, nothing of the program's is touched, losses are told.
 */
#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "under_valgrind.h"

static char folder[] = "/tmp/netlogger-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    setenv("NETLOGGER_SHM", folder, 1);
    setenv("NETLOGGER_HOST", "here", 1);
    signal(SIGPIPE, SIG_DFL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* The lines of text, which are to be whole. */
static unsigned count_lines(const char *text, size_t size)
{
    unsigned count = 0;
    for (size_t at = 0; at < size; count++) {
        const char *end = memchr(text + at, '\n', size - at);
        assert_non_null(end);
        assert_memory_equal(text + at, "DATE=", 5);
        at = (size_t)(end + 1 - text);
    }
    return count;
}

/* ---- pipes ---- */

static void a_pipe_that_nobody_has_open(void **state)
{
    (void)state;
    char url[128];
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(url, sizeof url, "file:%s?timeout=0.2", path);
    assert_null(nl_open("p", url));
    assert_non_null(strstr(nl_error_message(), "nobody reads it"));
    unlink(path);
}

static void count_failures(void *user, const nl_recovered *what)
{
    *(unsigned *)user += what->status != NL_OK;
}

static void *read_to_the_end(void *user)
{
    nl_buffer *out = user;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char bytes[3000];
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        nl_buffer_append(out, bytes, (size_t)got);
    close(fd);
    return NULL;
}

/* Flush and close come back, and what the pipe did not take is recovered by whoever comes when somebody reads. */
static void a_pipe_that_nobody_reads(void **state)
{
    (void)state;
    enum { EVENTS = 3000 };
    char url[128], text[100];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    snprintf(url, sizeof url, "file:%s?timeout=0.2", path);
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    for (int i = 0; i < EVENTS; i++)
        NL_EVENT(log, NL_USAGE, "Piped", "I", i, "TEXT", text);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), path));
    assert_int_equal(nl_close(log), NL_FAILED);

    unsigned failures = 0;
    nl_buffer all = {0};
    assert_int_equal(nl_recover(NULL, count_failures, &failures), NL_FAILED);
    assert_int_equal(failures, 1);
    char bytes[3000];
    for (ssize_t got; (got = read(reader, bytes, sizeof bytes)) > 0;)
        nl_buffer_append(&all, bytes, (size_t)got);
    close(reader);
    assert_true(count_lines(all.data, all.size) < EVENTS);
    assert_int_equal(nl_recover(NULL, count_failures, &failures), NL_FAILED); /* nobody has it open any more */
    assert_int_equal(failures, 2);

    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_to_the_end, &all), 0);
    nl_status status = NL_FAILED;
    while (status != NL_OK) /* until the other has it open */
        status = nl_recover(NULL, NULL, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(count_lines(all.data, all.size), EVENTS);
    nl_buffer_free(&all);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_that_nobody_has_open),
        cmocka_unit_test(a_pipe_that_nobody_reads),

    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
