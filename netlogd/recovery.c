#include "config.h"

#include "recovery.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "base/thread.h"
#include "program/program.h"
#include "server.h"
#include "service/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REPORTED_MAX = 256,
    TEXT_SIZE = 512,
    MESSAGE_SIZE = 2048,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
};

/* A message of the recovering process. */
typedef struct report {
    int process;
    nl_status status;
    uint64_t records;
    char prog[TEXT_SIZE], url[TEXT_SIZE], message[MESSAGE_SIZE];
} report;

struct recovery {
    pid_t process;
    int socket;
    struct event *readable;
    bool ended;          /* the process has ended */
    bool ending;         /* recovery_end was called */
    int64_t patience_ns; /* time on the monotonic clock at which the wait ends */
};

/* ---- the recovering process ---- */

/* A process whose recovery failed, and the destination of its log or its damaged file. */
static struct failure {
    int process;
    char url[TEXT_SIZE];
} reported[REPORTED_MAX];
static size_t next_reported;

/*
 * Returns whether this failure was already reported. If not, stores it. If the list is full, replaces the oldest entry.
 */
static bool was_reported(const report *r)
{
    for (size_t i = 0; i < REPORTED_MAX; i++)
        if (reported[i].process == r->process && strcmp(reported[i].url, r->url) == 0)
            return true;
    struct failure *failure = &reported[next_reported++ % REPORTED_MAX];
    failure->process = r->process;
    memcpy(failure->url, r->url, sizeof failure->url);
    return false;
}

static void recovery_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from != NULL ? from : "");
}

static void send_to_netlogd(int fd, const report *r)
{
    while (send(fd, r, sizeof *r, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void send_report(void *user, const nl_recovered *what)
{
    /*
     * Do not report empty logs. While the recovery of a process fails, its empty logs remain, and would be reported
     * each time.
     */
    if (what->status == NL_OK && what->records == 0)
        return;
    report r = {.process = what->process, .status = what->status, .records = what->records};
    recovery_copy(r.prog, sizeof r.prog, what->prog);
    recovery_copy(r.url, sizeof r.url, what->url);
    recovery_copy(r.message, sizeof r.message, what->message);
    if (r.status != NL_OK && was_reported(&r))
        return;
    send_to_netlogd(*(const int *)user, &r);
}

/* Ends this process immediately when netlogd closes its side of the socket or is killed. */
static void *watch_other_end(void *user)
{
    struct pollfd other = {.fd = *(const int *)user}; /* poll always reports POLLHUP */
    while (poll(&other, 1, -1) < 0)
        ;
    _exit(0);
}

/* Closes the standard streams, so that their readers do not wait for this process. Later problems are
 * reported with send_report. */
static void close_streams(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
}

static void recover_repeatedly(int fd, unsigned interval_s)
{
    pthread_t thread;
    struct pollfd end = {.fd = fd, .events = POLLIN | POLLRDHUP};
    int error = nl_thread_create(&thread, NULL, watch_other_end, &fd);
    if (error != 0) {
        report r = {.process = getpid(), .status = NL_FAILED};
        snprintf(r.message, sizeof r.message, "cannot recover events of killed programs: cannot start a thread: %s",
                 strerror(error));
        send_to_netlogd(fd, &r);
        return;
    }
    int interval_ms = interval_s < INT32_MAX / MS_PER_S ? (int)interval_s * MS_PER_S : INT32_MAX;
    do
        nl_recover(NULL, send_report, &fd);
    while (poll(&end, 1, interval_ms) <= 0);
}

/* ---- netlogd ---- */

static void log_report(const report *what)
{
    if (what->status == NL_OK)
        nl_write(server_log(), NL_USAGE, "Netlogd.Recovered", "PROCESS=%d PROGRAM=%s RECORDS=%" PRIu64 " URL=%s",
                 what->process, what->prog, what->records, what->url);
    else
        nl_write(server_log(), NL_WARNING, "Netlogd.RecoverFailed",
                 "PROCESS=%d PROGRAM=%s RECORDS=%" PRIu64 " URL=%s REASON=%s", what->process, what->prog, what->records,
                 what->url, what->message);
}

/* Reads one report. Returns false if no report is available. */
static bool read_report(recovery *r)
{
    report what;
    ssize_t size = recv(r->socket, &what, sizeof what, MSG_DONTWAIT);
    if (size == (ssize_t)sizeof what && what.process == r->process)
        program_error("%s", what.message);
    else if (size == (ssize_t)sizeof what)
        log_report(&what);
    else if (size >= 0 || (errno != EINTR && errno != EAGAIN))
        r->ended = true;
    return size == (ssize_t)sizeof what;
}

static void on_report(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    recovery *r = user;
    read_report(r);
    if (r->ended)
        event_del(r->readable);
}

static recovery *recovery_fail(const char *what, int error, recovery *r)
{
    program_error("cannot recover events of killed programs: %s: %s", what, strerror(error));
    free(r);
    return NULL;
}

recovery *recovery_start(unsigned interval_s, bool confined)
{
    int ends[2];
    recovery *r = nl_memory_check(calloc(1, sizeof *r));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return recovery_fail("socketpair", errno, r);
    r->process = fork();
    if (r->process == 0) {
        close(ends[0]);
        close_streams();
        if (confined)
            confine_programs();
        recover_repeatedly(ends[1], interval_s);
        _exit(0);
    }
    int error = errno;
    close(ends[1]);
    r->socket = ends[0];
    if (r->process < 0) {
        close(r->socket);
        return recovery_fail("fork", error, r);
    }
    return r;
}

void recovery_watch(recovery *r)
{
    if (r == NULL)
        return;
    r->readable = server_new_event(r->socket, EV_READ | EV_PERSIST, on_report, r);
    event_add(r->readable, NULL);
}

void recovery_unwatch(recovery *r)
{
    if (r != NULL)
        event_free(r->readable);
}

void recovery_end(recovery *r, int64_t patience_ms)
{
    if (r == NULL)
        return;
    int64_t until_ns = nl_monotonic_ns() + patience_ms * NS_PER_MS;
    if (!r->ending || until_ns < r->patience_ns)
        r->patience_ns = until_ns;
    r->ending = true;
    shutdown(r->socket, SHUT_WR);
}

bool recovery_is_over(const recovery *r)
{
    return r == NULL || r->ended || nl_monotonic_ns() >= r->patience_ns;
}

void recovery_free(recovery *r)
{
    if (r == NULL)
        return;
    while (r->ending && !recovery_is_over(r)) {
        struct pollfd reports = {.fd = r->socket, .events = POLLIN};
        poll(&reports, 1, (int)((r->patience_ns - nl_monotonic_ns()) / NS_PER_MS) + 1);
        read_report(r);
    }
    shutdown(r->socket, SHUT_RDWR); /* makes the recovering process end */
    waitpid(r->process, NULL, 0);
    while (read_report(r)) /* reports that the process has sent after the wait */
        continue;
    close(r->socket);
    free(r);
}
