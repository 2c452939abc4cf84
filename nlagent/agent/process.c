#include "config.h"

#include "agent/process.h"

#include "agent/starter.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"
#include "record/terminal.h"
#include "record/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_SIZE = 64 << 10,
    LINE_MAX_SIZE = 64 << 10,
    CHECK_INTERVAL_S = 1,
    HANG_MIN_S = 10, /* a sensor hangs if it writes nothing for this number of seconds, and for three intervals */
    STABLE_S = 60,   /* run time in seconds after which the delay of the next restart is 1 s again */
    RETRY_MAX_S = 60,
    KILL_DELAY_MS = 2000,
    ENDING_MAX = 1024,
    REAP_ROUNDS = 100 /* number of rounds of 10 ms at exit */
};

struct sensor_process {
    struct event_base *base;
    const definition *definition;
    const sensor_spec *spec;
    double interval_s;
    process_watcher watcher;
    pid_t pid;           /* 0: the process is not running */
    int in, out, errors; /* this process's ends of the sensor's standard streams */
    struct event *readable, *complaint, *check, *retry;
    nl_buffer partial;   /* the start of a line whose end has not arrived yet */
    bool skips;          /* discard the rest of a line, because the line is too long */
    bool has_output;     /* the process has written at least one byte */
    bool has_blocks;     /* the output does not begin with ULM lines, so the decoder reads the whole output */
    nl_decoder *decoder; /* NULL before its first use */
    int64_t started_ns, heard_ns;
    int64_t kill_ns; /* time at which to kill the process because it has closed its output; 0: never */
    unsigned retry_s, restarts;
    bool was_started;
    char reason[200]; /* the last line of the process's standard error */
};

/* ---- processes that nlagentd has requested to exit ---- */

static struct ending_process {
    pid_t pid;
    int64_t kill_ns;
} ending[ENDING_MAX];
static size_t ending_count;

/* Reaps processes that have ended, and kills processes that take too long to end or, if kill_now is true, all
 * processes. Does not wait, because SIGKILL does not end a process that hangs in the kernel. */
static void reap_ending(bool kill_now)
{
    for (size_t i = 0; i < ending_count;) {
        int status;
        bool ended = starter_wait(ending[i].pid, &status) != 0;
        if (!ended && (kill_now || nl_monotonic_ns() >= ending[i].kill_ns))
            starter_signal(ending[i].pid, SIGKILL);
        if (ended)
            ending[i] = ending[--ending_count];
        else
            i++;
    }
}

static void process_request_end(pid_t pid, int signal)
{
    starter_signal(pid, signal);
    reap_ending(ending_count == ENDING_MAX);
    if (ending_count < ENDING_MAX)
        ending[ending_count++] = (struct ending_process){pid, nl_monotonic_ns() + KILL_DELAY_MS * INT64_C(1000000)};
}

void process_reap(void)
{
    reap_ending(false);
}

void process_reap_all(void)
{
    for (int i = 0; i < REAP_ROUNDS && ending_count > 0; i++) {
        reap_ending(i >= REAP_ROUNDS / 5);
        usleep(10000);
    }
}

/* ---- output ---- */

/* Decodes output that the module cannot pass on unchanged, and passes its records on as ULM lines. */
static void process_decode(sensor_process *p, const char *data, size_t size)
{
    const nl_record *record;
    nl_buffer line = {0};
    if (p->decoder == NULL)
        p->decoder = nl_memory_check(
            nl_decoder_new(&(nl_decoder_options){.source = p->spec->text, .max_record_size = LINE_MAX_SIZE}));
    nl_decoder_feed(p->decoder, data, size);
    while (nl_decoder_next(p->decoder, &record) == NL_OK) {
        line.size = 0;
        nl_record_encode(record, NL_FORMAT_ULM, &line);
        p->watcher.on_line(p->watcher.user, line.data, line.size - 1);
    }
    nl_buffer_free(&line);
}

/* Returns whether the module can pass on a line without decoding it, because the line is one ULM record. Returns false
 * for a line with a second DATE, which belongs to a record without a newline before it, or to a value. */
static bool is_plain_record(const char *line, size_t size)
{
    static const char second[] = " DATE=";
    return nl_text_begins_as(&nl_ulm, line, size) && !nl_terminal_controls(line, size) &&
           memmem(line, size, second, sizeof second - 1) == NULL;
}

/* Passes on a line, whose newline is line[size]. Passes on no empty line, which only shows that the sensor is alive. */
static void process_pass_line(sensor_process *p, const char *line, size_t size)
{
    if (size > 0 && is_plain_record(line, size))
        p->watcher.on_line(p->watcher.user, line, size);
    else if (size > 0)
        process_decode(p, line, size + 1);
}

static void process_split_lines(sensor_process *p, const char *data, size_t size)
{
    for (const char *end; size > 0 && (end = memchr(data, '\n', size)) != NULL;) {
        size_t length = (size_t)(end - data);
        if (p->partial.size > 0) {
            nl_buffer_append(&p->partial, data, length + 1);
            if (p->partial.size - 1 <= LINE_MAX_SIZE)
                process_pass_line(p, p->partial.data, p->partial.size - 1);
        } else if (!p->skips) {
            process_pass_line(p, data, length);
        }
        p->partial.size = 0;
        p->skips = false;
        data += length + 1;
        size -= length + 1;
    }
    if (!p->skips)
        nl_buffer_append(&p->partial, data, size);
    if (p->partial.size > LINE_MAX_SIZE) {
        p->partial.size = 0;
        p->skips = true;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    static char bytes[READ_SIZE];
    sensor_process *p = user;
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    p->heard_ns = nl_monotonic_ns();
    if (got <= 0) {
        event_del(p->readable); /* stop reading; on_check determines how the process has ended, or kills the process */
        p->kill_ns = p->heard_ns + KILL_DELAY_MS * INT64_C(1000000);
        starter_signal(p->pid, SIGTERM);
        return;
    }
    if (p->watcher.on_line == NULL)
        return;
    if (!p->has_output)
        p->has_blocks = bytes[0] != 'D' && bytes[0] != '\n';
    p->has_output = true;
    if (p->has_blocks)
        process_decode(p, bytes, (size_t)got);
    else
        process_split_lines(p, bytes, (size_t)got);
}

static void on_complaint(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    sensor_process *p = user;
    char bytes[1024];
    ssize_t got = fd >= 0 ? read(fd, bytes, sizeof bytes - 1) : 0;
    if (got == 0 && p->complaint != NULL)
        event_del(p->complaint);
    if (got <= 0)
        return;
    while (got > 0 && (bytes[got - 1] == '\n' || bytes[got - 1] == '\0'))
        got--;
    bytes[got] = '\0';
    const char *line = strrchr(bytes, '\n');
    snprintf(p->reason, sizeof p->reason, "%.190s", line != NULL ? line + 1 : bytes);
}

/* ---- start and end ---- */

static void process_close(sensor_process *p)
{
    struct event **events[] = {&p->readable, &p->complaint};
    int *streams[] = {&p->in, &p->out, &p->errors};
    for (int i = 0; i < 2; i++) {
        if (*events[i] != NULL)
            event_free(*events[i]);
        *events[i] = NULL;
    }
    for (int i = 0; i < 3; i++) {
        if (*streams[i] >= 0)
            close(*streams[i]);
        *streams[i] = -1;
    }
    nl_decoder_free(p->decoder);
    p->decoder = NULL;
    p->partial.size = 0;
    p->skips = p->has_output = p->has_blocks = false;
}

static bool process_fork(sensor_process *p)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    bool good = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0;
    p->pid = good ? starter_start(p->definition, p->spec, p->interval_s, (int[]){in[0], out[1], errors[1]}) : -1;
    if (p->pid < 0)
        snprintf(p->reason, sizeof p->reason, "cannot start: %s", strerror(errno));
    int others[] = {in[0], out[1], errors[1]}, own[] = {in[1], out[0], errors[0]};
    for (int i = 0; i < 3; i++) {
        if (others[i] >= 0)
            close(others[i]);
        if (own[i] >= 0)
            fcntl(own[i], F_SETFL, O_NONBLOCK);
    }
    p->in = in[1];
    p->out = out[0];
    p->errors = errors[0];
    return p->pid > 0;
}

static struct event *process_watch(sensor_process *p, int fd, event_callback_fn callback)
{
    struct event *event = nl_memory_check(event_new(p->base, fd, EV_READ | EV_PERSIST, callback, p));
    if (event_add(event, NULL) != 0)
        nl_memory_failed();
    return event;
}

/* Handles the exit of a process. Reports the reason `how`, unless it is NULL, and the last line of the process's
 * standard error. */
static void process_ended(sensor_process *p, const char *how)
{
    char reason[480];
    bool stable = nl_monotonic_ns() - p->started_ns >= STABLE_S * NL_NS_PER_SECOND;
    p->retry_s = stable || p->retry_s == 0 ? 1 : p->retry_s * 2 < RETRY_MAX_S ? p->retry_s * 2 : RETRY_MAX_S;
    snprintf(reason, sizeof reason, "%s%s%s", how != NULL ? how : "", how != NULL && *p->reason != '\0' ? ": " : "",
             p->reason);
    process_close(p);
    p->pid = 0;
    event_add(p->retry, &(struct timeval){.tv_sec = p->retry_s});
    if (p->watcher.on_ended != NULL)
        p->watcher.on_ended(p->watcher.user, reason, p->retry_s);
}

static void process_start(sensor_process *p)
{
    p->reason[0] = '\0';
    p->started_ns = p->heard_ns = nl_monotonic_ns();
    p->kill_ns = 0;
    if (!process_fork(p)) {
        process_ended(p, NULL);
        return;
    }
    p->readable = process_watch(p, p->out, on_readable);
    p->complaint = process_watch(p, p->errors, on_complaint);
    if (p->watcher.on_started != NULL)
        p->watcher.on_started(p->watcher.user, p->was_started);
    p->restarts += p->was_started;
    p->was_started = true;
}

/* If the process has exited, handles the exit and returns true. */
static bool process_check_end(sensor_process *p)
{
    int status;
    char how[80];
    if (p->pid == 0 || starter_wait(p->pid, &status) != p->pid)
        return p->pid == 0;
    on_complaint(p->errors, EV_READ, p);
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(status));
    process_ended(p, how);
    return true;
}

static void on_check(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    sensor_process *p = user;
    double limit_s = p->interval_s * 3 > HANG_MIN_S ? p->interval_s * 3 : HANG_MIN_S;
    int64_t now_ns = nl_monotonic_ns();
    bool is_mute = p->kill_ns != 0 && now_ns >= p->kill_ns;
    bool hangs = p->definition->beats && (double)(now_ns - p->heard_ns) >= limit_s * 1e9;
    if (process_check_end(p) || (!is_mute && !hangs))
        return;
    process_request_end(p->pid, SIGKILL);
    process_ended(p, is_mute ? "closed its output without exiting; nlagentd killed it"
                             : "did not respond; nlagentd killed it");
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    process_start(user);
}

sensor_process *process_new(struct event_base *base, const definition *d, const sensor_spec *spec, double interval_s,
                            const process_watcher *watcher)
{
    sensor_process *p = nl_memory_check(calloc(1, sizeof *p));
    *p = (sensor_process){.base = base,
                          .definition = d,
                          .spec = spec,
                          .interval_s = interval_s,
                          .watcher = *watcher,
                          .in = -1,
                          .out = -1,
                          .errors = -1};
    p->check = nl_memory_check(event_new(base, -1, EV_PERSIST, on_check, p));
    p->retry = nl_memory_check(evtimer_new(base, on_retry, p));
    event_add(p->check, &(struct timeval){.tv_sec = CHECK_INTERVAL_S});
    process_start(p);
    return p;
}

void process_free(sensor_process *p)
{
    process_close(p);
    if (p->pid > 0)
        process_request_end(p->pid, SIGTERM);
    event_free(p->check);
    event_free(p->retry);
    nl_buffer_free(&p->partial);
    free(p);
}

void process_set_interval(sensor_process *p, double interval_s)
{
    p->interval_s = interval_s;
    p->heard_ns = nl_monotonic_ns();
    if (p->in >= 0 && p->definition->beats && dprintf(p->in, "interval %g\n", interval_s) < 0)
        program_error("sensor %s: cannot change the interval: %s", p->spec->text, strerror(errno));
}

int process_id(const sensor_process *p)
{
    return (int)p->pid;
}

unsigned process_restarts(const sensor_process *p)
{
    return p->restarts;
}
