/*
 * The maximum duration of calls if the peer does not answer, and the time of an event that had to wait. The limits here
 * are several times the library's promises, so that a slow machine passes. Calls that check the clock only while no
 * other work is pending would take many times longer.
 */
#include "config.h"

#include <netlogger.h>

#include "base/monotonic.h"
#include "reader/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONNECTIONS = 32, SECONDS_MAX = 6 };
#define TIMEOUT "timeout=0.5" /* the library promises that a call takes at most about twice this time */

static char folder[] = "/tmp/netlogger-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("NETLOGGER_SHM", folder, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- faulty collectors ---- */

typedef enum manner {
    MUTE,  /* accepts connections, and does nothing else */
    READS, /* reads everything, and acknowledges nothing */
    TALKS, /* also sends an endless stream of invalid replies */
} manner;

typedef struct peer {
    int listens;
    unsigned port;
    pid_t process;
} peer;

static void talk(int connection, manner how, short ready)
{
    static char frames[1 << 16];
    if (ready & POLLIN)
        while (read(connection, frames, sizeof frames) > 0)
            continue;
    if (how != TALKS)
        return;
    for (size_t i = 0; i < sizeof frames; i += 8)
        memcpy(frames + i, "NLXX\0\0\0", 8); /* frames of an unknown type without content */
    while (write(connection, frames, sizeof frames) > 0)
        continue;
}

_Noreturn static void serve(int listens, manner how)
{
    struct pollfd fds[CONNECTIONS] = {{.fd = listens, .events = POLLIN}};
    nfds_t count = 1;
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        poll(fds, count, -1);
        for (nfds_t i = 1; i < count; i++) {
            talk(fds[i].fd, how, fds[i].revents);
            if (fds[i].revents & (POLLHUP | POLLERR)) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        }
        if (fds[0].revents & POLLIN && count < CONNECTIONS)
            fds[count++] = (struct pollfd){.fd = accept4(listens, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC),
                                           .events = (short)(how == TALKS ? POLLIN | POLLOUT : POLLIN)};
    }
}

static peer start_peer(manner how)
{
    peer p = {.listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(setsockopt(p.listens, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)), 0);
    assert_int_equal(bind(p.listens, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(p.listens, CONNECTIONS), 0);
    assert_int_equal(getsockname(p.listens, (struct sockaddr *)&at, &size), 0);
    p.port = ntohs(at.sin_port);
    fflush(NULL);
    if (how != MUTE && (p.process = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test does not end this process */
        serve(p.listens, how);
    }
    return p;
}

static void end_peer(const peer *p)
{
    close(p->listens);
    if (p->process > 0) {
        kill(p->process, SIGKILL);
        assert_int_equal(waitpid(p->process, NULL, 0), p->process);
    }
}

static nl_log *open_to(const peer *p, const char *format)
{
    char url[128];
    snprintf(url, sizeof url, "x-netlog://127.0.0.1:%u?" TIMEOUT "&format=%s&ring=16m", p->port, format);
    return nl_open("p", url);
}

/* Logs more than the sockets buffer for a reader that does not read. */
static void log_much(nl_log *log)
{
    static char text[4000];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 3000; i++)
        NL_EVENT(log, NL_USAGE, "Much", "I", i, "TEXT", text);
}

static void assert_soon(int64_t start_ns)
{
    assert_true(nl_monotonic_ns() - start_ns < SECONDS_MAX * NL_NS_PER_SECOND);
}

static void flush_and_close(manner how, const char *format)
{
    peer p = start_peer(how);
    nl_log *log = open_to(&p, format);
    assert_non_null(log);
    log_much(log);
    int64_t start_ns = nl_monotonic_ns();
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_soon(start_ns);
    start_ns = nl_monotonic_ns();
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_soon(start_ns);
    assert_non_null(strstr(nl_error_message(), "not delivered"));
    end_peer(&p);
}

static void who_never_reads(void **state)
{
    (void)state;
    flush_and_close(MUTE, "nlb");
    flush_and_close(MUTE, "ulm");
}

static void who_never_acknowledges(void **state)
{
    (void)state;
    flush_and_close(READS, "nlb");
}

static void who_talks_and_never_acknowledges(void **state)
{
    (void)state;
    flush_and_close(TALKS, "nlb");
}

/* All logs together have one limit. */
static void a_program_that_ends(void **state)
{
    (void)state;
    peer peers[] = {start_peer(MUTE), start_peer(READS), start_peer(TALKS), start_peer(TALKS)};
    enum { PEERS = sizeof peers / sizeof peers[0] };
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < PEERS; i++) {
            nl_log *log = open_to(&peers[i], "nlb");
            if (log == NULL)
                _exit(1);
            log_much(log);
        }
        close(ends[1]);
        close(ends[0]);
        exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &status, 1), 0); /* the child has logged all events, and is ending */
    int64_t start_ns = nl_monotonic_ns();
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_soon(start_ns);
    for (int i = 0; i < PEERS; i++)
        end_peer(&peers[i]);
}

/* ---- an event that waits for space ---- */

typedef struct producer {
    nl_log *log;
    pthread_t thread;
    nl_ring_producer *ring; /* the thread's ring; NULL before the thread's first event */
} producer;

enum { EVENTS = 4000 };

static void *log_until_it_waits(void *user)
{
    producer *p = user;
    static char text[200];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < EVENTS; i++) {
        NL_EVENT(p->log, NL_USAGE, "Event", "I", i, "CALLED", nl_time_now_ns(), "TEXT", text);
        if (i == 0)
            __atomic_store_n(&p->ring, nl_private_rings[((nl_log_gate *)(void *)p->log)->slot], __ATOMIC_RELEASE);
    }
    return NULL;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000000}, NULL);
}

/* Returns when the other thread has been waiting for space for some time. */
static void wait_until_it_waits(const producer *p)
{
    const nl_ring_producer *ring;
    for (uint64_t called = 0;;) {
        pause_briefly();
        ring = __atomic_load_n(&p->ring, __ATOMIC_ACQUIRE);
        if (ring == NULL)
            continue;
        uint64_t now_called = __atomic_load_n(&ring->called, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&ring->busy, __ATOMIC_ACQUIRE) == 2 && now_called == called)
            return;
        called = now_called;
    }
}

static int64_t number(const nl_record *record, const char *name)
{
    nl_field field;
    int64_t value = 0;
    assert_true(nl_record_find(record, name, &field) && nl_field_int(&field, &value));
    return value;
}

/* Reads everything. Returns the number of events. Events whose calls began before read_ns must have a time before it.
 */
static int check_times(int reader, int64_t read_ns)
{
    char bytes[16384];
    int count = 0;
    int64_t last_ns = 0;
    const nl_record *record;
    nl_decoder *decoder = nl_decoder_new(NULL);
    for (ssize_t got; (got = read(reader, bytes, sizeof bytes)) > 0;) {
        nl_decoder_feed(decoder, bytes, (size_t)got);
        while (nl_decoder_next(decoder, &record) == NL_OK) {
            assert_int_equal(number(record, "I"), count);
            assert_true(number(record, "CALLED") > read_ns || record->time_ns < read_ns);
            assert_true(record->time_ns >= last_ns);
            last_ns = record->time_ns;
            count++;
        }
    }
    nl_decoder_free(decoder);
    return count;
}

static void *join_and_close(void *user)
{
    const producer *p = user;
    pthread_join(p->thread, NULL);
    assert_int_equal(nl_close(p->log), NL_OK);
    return NULL;
}

/* An event that waits for space has the time of its call, not the time at which the wait ends. */
static void an_event_has_the_time_of_its_call(void **state)
{
    (void)state;
    char path[64], url[128];
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    snprintf(url, sizeof url, "file:%s?ring=64k&policy=block&block=600&timeout=600", path);
    producer p = {.log = nl_open("p", url)};
    assert_true(reader >= 0 && p.log != NULL);
    assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
    pthread_t closes;
    assert_int_equal(pthread_create(&p.thread, NULL, log_until_it_waits, &p), 0);
    wait_until_it_waits(&p);
    pause_briefly(); /* more than the rounding of times */
    int64_t read_ns = nl_time_now_ns();
    assert_int_equal(pthread_create(&closes, NULL, join_and_close, &p), 0);
    assert_int_equal(check_times(reader, read_ns), EVENTS);
    assert_int_equal(pthread_join(closes, NULL), 0);
    close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_never_reads),
        cmocka_unit_test(who_never_acknowledges),
        cmocka_unit_test(who_talks_and_never_acknowledges),
        cmocka_unit_test(a_program_that_ends),
        cmocka_unit_test(an_event_has_the_time_of_its_call),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
