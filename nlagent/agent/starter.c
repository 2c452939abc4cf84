#include "config.h"

#include "agent/starter.h"

#include "base/memory.h"
#include "program/program.h"
#include "service/confine.h"
#include "service/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS = 3, TEXT_MAX = 128 << 10, ARGUMENTS_MAX = 4096, ENDS_MAX = 4096 };

typedef enum request_kind { START_SENSOR, START_COLLECTION, SIGNAL, REREAD } request_kind;

typedef struct request {
    request_kind kind;
    pid_t pid;
    int signal;
    double interval_s;
    size_t size; /* total size of the strings that follow, including their NULs */
} request;

typedef struct answer {
    pid_t pid; /* -1: `error` is an errno value */
    int error;
} answer;

typedef struct sensor_end {
    pid_t pid;
    int status;
} sensor_end;

static int requests = -1, ends = -1; /* sockets of this process */

/* ---- the starting process ---- */

static pid_t *running;
static size_t running_count;

static size_t find_running(pid_t pid)
{
    size_t i = 0;
    while (i < running_count && running[i] != pid)
        i++;
    return i;
}

/* Prepares the sensor's process and executes the sensor's program. Runs in the new process. */
static void become_sensor(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s,
                          const int streams[STREAMS])
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < STREAMS; i++)
        if (dup2(streams[i], i) < 0)
            _exit(127);
    definition_execute(all, d, spec, interval_s);
    fprintf(stderr, "cannot start: %s\n", strerror(errno));
    fflush(stderr);
    _exit(127);
}

static answer fork_sensor(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s,
                          const int streams[STREAMS])
{
    pid_t *more = realloc(running, (running_count + 1) * sizeof *more);
    if (more == NULL)
        return (answer){-1, ENOMEM};
    running = more;
    pid_t pid = fork();
    if (pid == 0)
        become_sensor(all, d, spec, interval_s, streams);
    if (pid < 0)
        return (answer){-1, errno};
    setpgid(pid, pid); /* set the process group in both processes, because either may run first */
    running[running_count++] = pid;
    return (answer){pid, 0};
}

/* Starts a sensor. `text` contains the specification and, for a configured sensor, the command. */
static answer start_sensor(const definitions *all, const request *r, const char *text, const int streams[STREAMS])
{
    size_t length = strlen(text) + 1;
    sensor_spec *spec = spec_parse(text);
    const definition *d =
        spec != NULL ? definitions_find_command(all, spec->name, length < r->size ? text + length : NULL) : NULL;
    answer result = {-1, ENOENT};
    if (d != NULL && definition_check(d, spec))
        result = fork_sensor(all, d, spec, r->interval_s, streams);
    spec_free(spec);
    return result;
}

/* Starts a collection. `text` contains the arguments of "nlagent collect". */
static answer start_collection(const starter_options *o, const request *r, char *text, const int streams[STREAMS])
{
    char *program[ARGUMENTS_MAX] = {(char *)o->client, (char *)"collect"};
    size_t count = 2;
    for (char *at = text; at < text + r->size && count < ARGUMENTS_MAX - 1; at += strlen(at) + 1)
        program[count++] = at;
    const definition d = {.name = (char *)"collection", .program = program};
    sensor_spec *spec = spec_parse(d.name);
    answer result = spec != NULL ? fork_sensor(o->all, &d, spec, r->interval_s, streams) : (answer){-1, EINVAL};
    spec_free(spec);
    return result;
}

static void serve_request(const starter_options *o, const request *r, char *text, const int streams[STREAMS])
{
    answer result = {0, 0};
    bool has_streams = streams[0] >= 0 && r->size > 0;
    switch (r->kind) {
    case START_SENSOR:
        result = has_streams ? start_sensor(o->all, r, text, streams) : (answer){-1, EINVAL};
        break;
    case START_COLLECTION:
        result = has_streams ? start_collection(o, r, text, streams) : (answer){-1, EINVAL};
        break;
    case SIGNAL:
        if (find_running(r->pid) < running_count)
            kill(-r->pid, r->signal);
        return; /* do not reply, because nlagentd does not wait for a reply */
    case REREAD:
        o->reread(o->user);
        break;
    }
    if (send(requests, &result, sizeof result, MSG_NOSIGNAL) < 0)
        _exit(0);
}

/* Reads a request with its descriptors. Returns false if nlagentd has ended, or if the request is malformed. */
static bool receive(request *r, char text[TEXT_MAX], int streams[STREAMS])
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(STREAMS * sizeof(int))];
    } control;
    struct iovec parts[] = {{r, sizeof *r}, {text, TEXT_MAX}};
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size;
    do
        size = recvmsg(requests, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size <= 0)
        return false;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c != NULL && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(STREAMS * sizeof(int)))
        memcpy(streams, CMSG_DATA(c), STREAMS * sizeof(int));
    bool whole =
        (size_t)size >= sizeof *r && r->size == (size_t)size - sizeof *r && (r->size == 0 || text[r->size - 1] == '\0');
    return whole;
}

static void reap(void)
{
    sensor_end end;
    while ((end.pid = waitpid(-1, &end.status, WNOHANG)) > 0) {
        size_t i = find_running(end.pid);
        kill(-end.pid, SIGKILL); /* also kill the children of the sensor */
        if (i < running_count)
            running[i] = running[--running_count];
        if (send(ends, &end, sizeof end, MSG_NOSIGNAL) < 0)
            _exit(0);
    }
}

static void starter_run(const starter_options *o)
{
    static char text[TEXT_MAX];
    sigset_t set;
    struct signalfd_siginfo information;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct pollfd watched[] = {{.fd = requests, .events = POLLIN},
                               {.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN}};
    for (;;) {
        int streams[STREAMS];
        request r;
        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            return;
        while (read(watched[1].fd, &information, sizeof information) > 0)
            ;
        reap();
        if (watched[0].revents == 0)
            continue;
        if (!receive(&r, text, streams))
            return;
        serve_request(o, &r, text, streams);
        for (int i = 0; i < STREAMS; i++)
            if (streams[i] >= 0)
                close(streams[i]);
    }
}

/* ---- nlagentd ---- */

static sensor_end ended[ENDS_MAX];
static size_t ended_count;

bool starter_begin(const starter_options *options)
{
    int request_ends[2], end_ends[2];
    bool good = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, request_ends) == 0 &&
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end_ends) == 0;
    pid_t pid = good ? fork() : -1;
    if (pid < 0) {
        program_error("cannot start the process that starts sensors: %s", strerror(errno));
        return false;
    }
    requests = request_ends[pid == 0];
    ends = end_ends[pid == 0];
    close(request_ends[pid != 0]);
    close(end_ends[pid != 0]);
    if (pid > 0)
        return true;
    int nothing = daemon_has_no_streams() ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    definitions_mount_tracefs(options->all);
    if (options->confined)
        confine_programs(); /* report no problem, because the main nlagentd process does */
    starter_run(options);
    _exit(0);
}

static void starter_fail(void)
{
    program_fail(PROGRAM_PROBLEM, "the process that starts sensors exited");
}

/* Sends a request with its descriptors and its strings, which begin at parts[1]. `streams` may be NULL. On failure,
 * returns false and sets errno. */
static bool send_request(request r, struct iovec *parts, size_t count, const int *streams)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(STREAMS * sizeof(int))];
    } control = {0};
    for (size_t i = 1; i < count; i++)
        r.size += parts[i].iov_len;
    parts[0] = (struct iovec){&r, sizeof r};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    if (r.size > TEXT_MAX) {
        errno = E2BIG;
        return false;
    }
    if (streams != NULL) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(STREAMS * sizeof(int));
        memcpy(CMSG_DATA(&control.header), streams, STREAMS * sizeof(int));
    }
    while (sendmsg(requests, &message, MSG_NOSIGNAL) < 0)
        if (errno == EPIPE || errno == ECONNRESET)
            starter_fail();
        else if (errno != EINTR)
            return false;
    return true;
}

static answer receive_answer(void)
{
    answer result;
    ssize_t size;
    do
        size = recv(requests, &result, sizeof result, 0);
    while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof result)
        starter_fail();
    return result;
}

static struct iovec part_of(const char *text)
{
    return (struct iovec){(char *)text, strlen(text) + 1};
}

pid_t starter_start(const definition *d, const sensor_spec *spec, double interval_s, const int streams[3])
{
    size_t arguments = 0, count = 1;
    while (d->program != NULL && d->program[arguments] != NULL)
        arguments++;
    struct iovec *parts = nl_memory_check(calloc(arguments + 3, sizeof *parts));
    for (size_t i = 2; i < arguments; i++) /* skip the path and "collect" */
        parts[count++] = part_of(d->program[i]);
    if (d->program == NULL)
        parts[count++] = part_of(spec->text);
    if (d->command != NULL)
        parts[count++] = part_of(d->command);
    request_kind kind = d->program != NULL ? START_COLLECTION : START_SENSOR;
    bool good = send_request((request){.kind = kind, .interval_s = interval_s}, parts, count, streams);
    int error = errno;
    free(parts);
    answer result = good ? receive_answer() : (answer){-1, error};
    errno = result.error;
    return result.pid;
}

void starter_signal(pid_t pid, int signal)
{
    struct iovec part;
    send_request((request){.kind = SIGNAL, .pid = pid, .signal = signal}, &part, 1, NULL);
}

void starter_reread(void)
{
    struct iovec part;
    if (send_request((request){.kind = REREAD}, &part, 1, NULL))
        receive_answer();
}

static void read_ends(void)
{
    while (ended_count < ENDS_MAX) {
        ssize_t size = recv(ends, &ended[ended_count], sizeof ended[0], MSG_DONTWAIT);
        if (size == (ssize_t)sizeof ended[0])
            ended_count++;
        else if (size == 0)
            starter_fail();
        else if (size > 0 || errno != EINTR)
            return;
    }
}

pid_t starter_wait(pid_t pid, int *status)
{
    read_ends();
    for (size_t i = 0; i < ended_count; i++)
        if (ended[i].pid == pid) {
            *status = ended[i].status;
            ended[i] = ended[--ended_count];
            return pid;
        }
    return 0;
}
