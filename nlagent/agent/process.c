#include "config.h"

#include "agent/process.h"

#include "agent/starter.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"

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
    RECORD_MAX = 64 << 10,
    LOOK_EVERY_S = 1,   /* whether it hangs, or has ended */
    HANGS_AFTER_S = 10, /* or three intervals */
    CALM_AFTER_S = 60,
    AGAIN_MOST_S = 60,
    KILL_AFTER_MS = 2000,
    LEAVING_MAX = 1024,
    REAP_TURNS = 100 /* of 10 ms, at the end */
};

struct sensor_process {
    struct event_base *base;
    const definitions *all;
    const definition *definition;
    const sensor_spec *spec;
    double interval_s;
    process_watcher watcher;
    pid_t pid;           /* 0: it does not run */
    int in, out, errors; /* our ends */
    struct event *readable, *complaint, *clock, *again;
    nl_decoder *decoder;
    int64_t started_ns, heard_ns;
    int64_t kill_ns; /* when it is killed that has closed its output, and was told to end; 0: it has not */
    unsigned again_s, restarts;
    bool was_started;
    char reason[200]; /* the last line of its standard error */
};

/* ---- those that are told to end ---- */

/* Children that no process stands for any more. */
static struct leaving {
    pid_t pid;
    int64_t kill_ns;
} leaving[LEAVING_MAX];
static size_t leaving_count;

/* Nothing here waits: a process that hangs in the kernel does not end even when it is killed. */
static void look_after_leaving(bool kill_now)
{
    for (size_t i = 0; i < leaving_count;) {
        int status;
        bool ended = starter_wait(leaving[i].pid, &status) != 0;
        if (!ended && (kill_now || nl_monotonic_ns() >= leaving[i].kill_ns))
            starter_signal(leaving[i].pid, SIGKILL);
        if (ended)
            leaving[i] = leaving[--leaving_count];
        else
            i++;
    }
}

static void let_go(pid_t pid, int signal)
{
    starter_signal(pid, signal);
    look_after_leaving(leaving_count == LEAVING_MAX);
    if (leaving_count < LEAVING_MAX)
        leaving[leaving_count++] = (struct leaving){pid, nl_monotonic_ns() + KILL_AFTER_MS * INT64_C(1000000)};
}

void process_reap(void)
{
    look_after_leaving(false);
}

void process_reap_all(void)
{
    for (int i = 0; i < REAP_TURNS && leaving_count > 0; i++) {
        look_after_leaving(i >= REAP_TURNS / 5);
        usleep(10000);
    }
}

/* ---- starting ---- */

static void close_ends(sensor_process *p)
{
    if (p->readable != NULL)
        event_free(p->readable);
    if (p->complaint != NULL)
        event_free(p->complaint);
    p->readable = p->complaint = NULL;
    nl_decoder_free(p->decoder);
    p->decoder = NULL;
    int *ends[] = {&p->in, &p->out, &p->errors};
    for (int i = 0; i < 3; i++) {
        if (*ends[i] >= 0)
            close(*ends[i]);
        *ends[i] = -1;
    }
}

static bool start_process(sensor_process *p)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    bool good = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0;
    p->pid = good ? starter_start(p->definition, p->spec, p->interval_s, (int[]){in[0], out[1], errors[1]}) : -1;
    if (p->pid < 0)
        snprintf(p->reason, sizeof p->reason, "it cannot be started: %s", strerror(errno));
    int others[] = {in[0], out[1], errors[1]}, own[] = {in[1], out[0], errors[0]};
    for (int i = 0; i < 3; i++) {
        if (others[i] >= 0)
            close(others[i]);
        if (own[i] >= 0 && p->pid < 0)
            close(own[i]);
    }
    if (p->pid < 0) {
        p->pid = 0;
        return false;
    }
    p->in = in[1];
    p->out = out[0];
    p->errors = errors[0];
    for (int i = 0; i < 3; i++)
        fcntl(own[i], F_SETFL, O_NONBLOCK);
    return true;
}

static void on_readable(evutil_socket_t fd, short what, void *user);
static void on_complaint(evutil_socket_t fd, short what, void *user);

static struct event *watch(sensor_process *p, int fd, event_callback_fn callback)
{
    struct event *event = nl_memory_check(event_new(p->base, fd, EV_READ | EV_PERSIST, callback, p));
    if (event_add(event, NULL) != 0)
        nl_memory_failed();
    return event;
}

static void ended(sensor_process *p, const char *how);

static void process_start(sensor_process *p)
{
    p->reason[0] = '\0';
    p->started_ns = p->heard_ns = nl_monotonic_ns();
    p->kill_ns = 0;
    if (!start_process(p)) {
        ended(p, p->reason);
        return;
    }
    p->decoder = nl_decoder_new(&(nl_decoder_options){.source = p->spec->text, .max_record_size = RECORD_MAX});
    p->readable = watch(p, p->out, on_readable);
    p->complaint = watch(p, p->errors, on_complaint);
    p->watcher.on_started(p->watcher.user, p->was_started);
    p->restarts += p->was_started;
    p->was_started = true;
}

/* ---- its end ---- */

static void set_timer(struct event *event, double seconds)
{
    struct timeval time = {.tv_sec = (time_t)seconds,
                           .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    event_add(event, &time);
}

static void ended(sensor_process *p, const char *how)
{
    char reason[480];
    bool calm = nl_monotonic_ns() - p->started_ns >= CALM_AFTER_S * NL_NS_PER_SECOND;
    p->again_s = calm || p->again_s == 0 ? 1 : p->again_s * 2 < AGAIN_MOST_S ? p->again_s * 2 : AGAIN_MOST_S;
    snprintf(reason, sizeof reason, "%s%s%s", how, p->reason[0] != '\0' && how != p->reason ? ": " : "",
             how != p->reason ? p->reason : "");
    close_ends(p);
    p->pid = 0;
    set_timer(p->again, p->again_s);
    p->watcher.on_ended(p->watcher.user, reason, p->again_s);
}

/* Whether the child is there no more; then it was taken leave of. */
static bool check_end(sensor_process *p)
{
    int status;
    char how[80];
    if (p->pid == 0 || starter_wait(p->pid, &status) != p->pid)
        return p->pid == 0;
    on_complaint(p->errors, EV_READ, p);
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "it was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "it ended with status %d", WEXITSTATUS(status));
    ended(p, how);
    return true;
}

static void on_clock(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    sensor_process *p = user;
    double patience_s = p->interval_s * 3 > HANGS_AFTER_S ? p->interval_s * 3 : HANGS_AFTER_S;
    int64_t now_ns = nl_monotonic_ns();
    bool is_mute = p->kill_ns != 0 && now_ns >= p->kill_ns;
    if (check_end(p) || (!is_mute && (!p->definition->beats || (double)(now_ns - p->heard_ns) < patience_s * 1e9)))
        return;
    let_go(p->pid, SIGKILL);
    ended(p, is_mute ? "it closed its output and did not end, and was killed" : "it hung, and was killed");
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    process_start(user);
}

/* ---- what it says ---- */

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
        event_del(p->readable); /* the clock finds out how it ended, and kills it when it does not */
        p->kill_ns = p->heard_ns + KILL_AFTER_MS * INT64_C(1000000);
        starter_signal(p->pid, SIGTERM);
        return;
    }
    const nl_record *record;
    nl_decoder_feed(p->decoder, bytes, (size_t)got);
    while (nl_decoder_next(p->decoder, &record) == NL_OK)
        p->watcher.on_record(p->watcher.user, record);
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

/* ---- all of it ---- */

sensor_process *process_new(struct event_base *base, const definitions *all, const definition *d,
                            const sensor_spec *spec, double interval_s, const process_watcher *watcher)
{
    sensor_process *p = nl_memory_check(calloc(1, sizeof *p));
    *p = (sensor_process){.base = base,
                          .all = all,
                          .definition = d,
                          .spec = spec,
                          .interval_s = interval_s,
                          .watcher = *watcher,
                          .in = -1,
                          .out = -1,
                          .errors = -1};
    p->clock = nl_memory_check(event_new(base, -1, EV_PERSIST, on_clock, p));
    p->again = nl_memory_check(evtimer_new(base, on_again, p));
    set_timer(p->clock, LOOK_EVERY_S);
    process_start(p);
    return p;
}

void process_free(sensor_process *p)
{
    close_ends(p);
    if (p->pid > 0)
        let_go(p->pid, SIGTERM);
    event_free(p->clock);
    event_free(p->again);
    free(p);
}

void process_set_interval(sensor_process *p, double interval_s)
{
    char line[64];
    int size = snprintf(line, sizeof line, "interval %g\n", interval_s);
    p->interval_s = interval_s;
    p->heard_ns = nl_monotonic_ns();
    if (p->in >= 0 && p->definition->beats && write(p->in, line, (size_t)size) != size)
        program_error("sensor %s: it cannot be told its interval", p->spec->text);
}

int process_id(const sensor_process *p)
{
    return (int)p->pid;
}

unsigned process_restarts(const sensor_process *p)
{
    return p->restarts;
}
