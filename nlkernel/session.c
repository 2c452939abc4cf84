#include "config.h"

#include "session.h"

#include "base/text.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "child.h"
#include "choice.h"
#include "control.h"
#include "filter/filter.h"
#include "functions.h"
#include "instance.h"
#include "lane.h"
#include "program/program.h"
#include "pushdown.h"
#include "rights.h"
#include "shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Maximum time between two reads of the buffers, if the sink is a file or a log of libnetlogger, and time between two
 * checks for the end. */
enum { READ_FILE_MS = 200, READ_LIVE_MS = 50, POLL_MS = 100 };

/* A ring buffer with at least SUBBUFFERS_MIN pages of SUBBUFFER_KB uses pages of this size. Before Linux 6.8, nlkernel
 * cannot set the size. */
enum { SUBBUFFER_KB = 32, SUBBUFFERS_MIN = 64 };

typedef struct session {
    const recording_options *options;
    sink *sink;
    tracing tracing;
    instance instance;
    instance shared; /* the kernel's shared buffers, if the recording uses them; otherwise, dir is NULL */
    shared_note note;
    functions_kind functions;
    kernel_events events;
    kallsyms *symbols; /* NULL: the recording contains no functions */
    realtime clock;
    lane_setup setup, shared_setup;
    char *saved_path;
    char host[256];
    lane *lanes;
    size_t lane_count;
    child child;
    control control;
    counters counters;
    sigset_t signals;
    int64_t begun_ns, ended_ns; /* start and end of the recording, on the monotonic clock */
    uint64_t recorded, lost, invalid;
} session;

/* ---- the recorder's own records ---- */

static nl_record *recorder_record(const session *s, const char *event)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_host(record, s->setup.host.data, s->setup.host.size);
    nl_record_set_prog(record, "nlkernel", strlen("nlkernel"));
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, event, strlen(event));
    return record;
}

static void log_own(session *s, nl_record *record)
{
    sink_put_own(s->sink, record);
    nl_record_free(record);
}

/* Logs the offset between the trace clock and real time. All times in the log depend on this offset. */
static void log_clock(session *s)
{
    nl_record *record = recorder_record(s, "NetLogger.Clock");
    nl_record_add_text(record, "CLOCK", "mono");
    nl_record_add_int(record, "OFFSET.NS", atomic_load(&s->clock.offset_ns));
    nl_record_add_int(record, "ERROR.NS", s->clock.error_ns);
    log_own(s, record);
}

static void log_begin(session *s)
{
    nl_record *record = recorder_record(s, "NetLogger.Record.Begin");
    struct utsname name;
    nl_record_add_int(record, "PID", getpid());
    nl_record_add_text(record, "KERNEL", uname(&name) == 0 ? name.release : "");
    nl_record_add_uint(record, "EVENT.TYPES", s->events.count);
    nl_record_add_uint(record, "CPUS", s->lane_count);
    nl_record_add_uint(record, "BUFFER", s->options->buffer_size);
    if (s->options->filter != NULL)
        nl_record_add_text(record, "FILTER", nl_filter_text(s->options->filter));
    for (size_t i = 0; i < s->options->glob_count; i++) {
        char field[32];
        snprintf(field, sizeof field, "FUNCTIONS.%zu", i);
        nl_record_add_text(record, field, s->options->globs[i]);
    }
    log_own(s, record);
}

/* Logs the names of the recorded counters, and the reasons for missing counters. */
static void log_counters(session *s)
{
    for (size_t i = 0; i < s->counters.count; i++) {
        const counter *c = &s->counters.list[i];
        bool present = c->absence.code == NL_ERROR_NONE;
        nl_record *record = recorder_record(s, "NetLogger.Counter");
        nl_record_add_text(record, "COUNTER", c->name);
        nl_record_add_text(record, "STATE", present ? "present" : "absent");
        if (!present)
            nl_record_add_text(record, "REASON", c->absence.message);
        log_own(s, record);
    }
}

static void log_finish(session *s)
{
    for (size_t i = 0; i < s->lane_count; i++) {
        const lane *l = &s->lanes[i];
        s->recorded += l->events;
        s->lost += l->accounted;
        s->invalid += l->invalid;
        nl_record *record = recorder_record(s, "NetLogger.Record.Cpu");
        nl_record_add_int(record, "CPU", l->cpu);
        nl_record_add_int(record, "TID", l->tid);
        nl_record_add_uint(record, "EVENTS", l->events);
        nl_record_add_uint(record, "LOST", l->accounted);
        log_own(s, record);
    }
    nl_record *record = recorder_record(s, "NetLogger.Record.Finish");
    nl_record_add_uint(record, "EVENTS", s->recorded);
    nl_record_add_uint(record, "LOST", s->lost);
    nl_record_add_double(record, "SECONDS", (double)(s->ended_ns - s->begun_ns) / 1e9);
    log_own(s, record);
}

/* ---- events ---- */

/* Translates the filter for the kernel, and removes the events that cannot match. */
static void push_filter(session *s)
{
    kernel_events *events = &s->events;
    size_t kept = 0;
    for (size_t i = 0; i < events->count; i++)
        if (pushdown(&events->list[i], s->options->filter, s->setup.host))
            events->list[kept++] = events->list[i];
        else
            kernel_event_free(&events->list[i]);
    events->count = kept;
}

static bool open_instance(session *s)
{
    return s->instance.handle != NULL ||
           instance_create(&s->instance, &s->tracing, s->shared.dir != NULL ? s->note.text : NULL);
}

/* If the graph tracer works in an instance, selects this tracer. Otherwise, selects the function tracer or, if
 * `required` is true, the graph tracer in the shared buffers. Returns false and sets the error on failure. */
static bool find_graph_tracer(session *s, bool required)
{
    const instance all = {.dir = s->tracing.path};
    s->functions = FUNCTIONS_CALLS;
    if (!functions_offered(&all, FUNCTIONS_GRAPH))
        return !required;
    if (!open_instance(s))
        return false;
    if (functions_offered(&s->instance, FUNCTIONS_GRAPH)) {
        s->functions = FUNCTIONS_GRAPH;
        return true;
    }
    if (!required)
        return true;
    s->functions = FUNCTIONS_GRAPH;
    /* The name of the next instance will contain the settings of the shared buffers. */
    return instance_destroy(&s->instance) && shared_find(&s->shared, &s->note, &s->tracing);
}

static bool add_functions(session *s)
{
    functions_kind kind = s->options->functions;
    s->functions = kind == FUNCTIONS_ANY ? FUNCTIONS_CALLS : kind;
    if (kind == FUNCTIONS_NONE)
        return true;
    bool try_graph = kind == FUNCTIONS_GRAPH || (kind == FUNCTIONS_ANY && s->options->glob_count == 0);
    if (try_graph && !find_graph_tracer(s, kind == FUNCTIONS_GRAPH))
        return false;
    s->symbols = kallsyms_read();
    return s->symbols != NULL && functions_describe(&s->events, &s->tracing, s->functions, s->symbols);
}

/* Chooses the events. Returns an exit status. */
static int choose_events(session *s)
{
    event_names names = {0};
    int status = PROGRAM_PROBLEM;
    bool ok = event_names_read(&names, &s->tracing);
    for (size_t i = 0; ok && i < s->options->pattern_count; i++) {
        const char *pattern = s->options->patterns[i];
        bool required = *pattern != '?';
        if (!event_names_choose(&names, required ? pattern : pattern + 1) && required) {
            ok = false;
            status = PROGRAM_USAGE;
        }
    }
    ok = ok && kernel_events_read(&s->events, &names, &s->tracing) && add_functions(s);
    event_names_free(&names);
    if (!ok) {
        program_print_error();
        return status;
    }
    push_filter(s);
    kernel_events_index(&s->events);
    if (s->events.count > 0)
        return PROGRAM_DONE;
    program_error("--where: none of the chosen events can match; nlkernel list shows their fields");
    return PROGRAM_USAGE;
}

static bool enable_event(session *s, const kernel_event *event)
{
    char file[256];
    bool ok = true;
    if (event->traced || s->setup.counter_count > 0)
        return true; /* a tracer or perf enables the event */
    if (event->kernel_filter != NULL) {
        snprintf(file, sizeof file, "events/%s/%s/filter", event->system, event->event);
        ok = instance_write(&s->instance, file, event->kernel_filter);
    }
    snprintf(file, sizeof file, "events/%s/%s/enable", event->system, event->event);
    return ok && instance_write(&s->instance, file, "1");
}

/* Enables the events. Omits events whose enabling fails, such as events that need missing hardware. Returns false if
 * enabling fails for all events. */
static bool enable_events(session *s)
{
    size_t enabled = 0, refused = 0;
    for (size_t i = 0; i < s->events.count; i++)
        if (enable_event(s, &s->events.list[i]))
            enabled++;
        else if (refused++ == 0 && s->events.count > 1)
            program_error("%s; the event is omitted", nl_error_message());
    if (refused > 1 && enabled > 0)
        program_error("%zu more event%s cannot be recorded", refused - 1, refused == 2 ? "" : "s");
    return enabled > 0;
}

/* ---- processes ---- */

/*
 * Appends the thread IDs of a process to `list`, a file of the instance. Returns false and sets the error on failure.
 */
static bool add_threads(const instance *i, const char *list, int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return nl_error_false(NL_ERROR_NOT_FOUND, "--pid %d: no such process", pid);
    int fd = instance_open(i, list, O_WRONLY | O_APPEND);
    bool ok = fd >= 0;
    for (struct dirent *entry; ok && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' && write(fd, entry->d_name, strlen(entry->d_name)) < 0)
            ok = nl_error_set_errno("%s/%s", i->dir, list) == NL_OK;
    if (fd >= 0)
        close(fd);
    closedir(directory);
    return ok;
}

static bool choose_processes_in(session *s, const instance *buffers, const char *list, const char *fork_option)
{
    if (s->options->pid_count > 0 || s->options->only_command)
        instance_write(buffers, fork_option, "1");
    for (size_t i = 0; i < s->options->pid_count; i++)
        if (!add_threads(buffers, list, s->options->pids[i]))
            return false;
    return !s->options->only_command || add_threads(buffers, list, s->child.pid);
}

/* Returns the buffers that contain the calls of functions. */
static const instance *function_buffers(const session *s)
{
    return s->shared.dir != NULL ? &s->shared : &s->instance;
}

static bool choose_processes(session *s)
{
    if ((s->options->only_command || s->options->pid_count > 0) && !rights_see_all_processes())
        return nl_error_false(NL_ERROR_UNSUPPORTED,
                              "--pid and --only-command do not work in a container, which has its own process IDs; run "
                              "nlkernel outside the container, or record the whole machine");
    return choose_processes_in(s, &s->instance, "set_event_pid", "options/event-fork") &&
           (s->functions == FUNCTIONS_NONE ||
            choose_processes_in(s, function_buffers(s), "set_ftrace_pid", "options/function-fork"));
}

static bool choose_functions(session *s)
{
    return s->functions == FUNCTIONS_NONE ||
           functions_choose(function_buffers(s), s->functions, s->options->globs, s->options->glob_count);
}

/* ---- CPUs ---- */

static bool has_cpu(const session *s, long cpu)
{
    char path[512];
    snprintf(path, sizeof path, "%s/per_cpu/cpu%ld", s->instance.dir, cpu);
    return access(path, F_OK) == 0;
}

static bool add_lane(session *s, const lane_setup *setup, int cpu)
{
    bool ok = lane_open(&s->lanes[s->lane_count], setup, cpu);
    s->lane_count += ok;
    return ok;
}

/* Opens a lane for each chosen CPU. If the calls of functions are in the shared buffers, opens a second lane for these
 * calls. Returns false and sets the error on failure. */
static bool choose_cpus(session *s)
{
    const recording_options *o = s->options;
    size_t count = (size_t)sysconf(_SC_NPROCESSORS_CONF), size = 0;
    char mask[RECORDING_CPUS_MAX / 4 + RECORDING_CPUS_MAX / 32 + 2];
    unsigned bits[RECORDING_CPUS_MAX / 32 + 1] = {0};
    if (o->cpu_count > count)
        return nl_error_false(NL_ERROR_NOT_FOUND, "--cpu: CPU %zu does not exist; the last CPU is %zu",
                              o->cpu_count - 1, count - 1);
    s->lanes = nl_memory_check(calloc(2 * count, sizeof *s->lanes));
    for (size_t cpu = 0; cpu < count && cpu < RECORDING_CPUS_MAX; cpu++) {
        if ((o->cpu_count > 0 && !o->cpus[cpu]) || !has_cpu(s, (long)cpu))
            continue;
        if (!add_lane(s, &s->setup, (int)cpu) || (s->shared.dir != NULL && !add_lane(s, &s->shared_setup, (int)cpu)))
            return false;
        bits[cpu / 32] |= 1u << cpu % 32;
    }
    for (size_t i = count / 32 + 1; i-- > 0;)
        size += (size_t)snprintf(mask + size, sizeof mask - size, "%08x%s", bits[i], i > 0 ? "," : "");
    return o->cpu_count == 0 || instance_write(&s->instance, "tracing_cpumask", mask);
}

/* ---- buffers ---- */

/* Reads the layout of the buffer's pages, and their size in bytes. Returns false and sets the error on failure. */
static bool read_layout(session *s, const instance *buffers, lane_setup *setup)
{
    char *path = tracing_path(&s->tracing, "events/header_page"), *text = tracing_read(path, NULL);
    bool ok = text != NULL && page_layout_read(&setup->layout, text);
    if (text != NULL && !ok)
        nl_error_set(NL_ERROR_INVALID, "%s: unknown layout", path);
    free(text);
    free(path);
    char *size = instance_read(buffers, "buffer_subbuf_size_kb");
    long kb = size != NULL ? strtol(size, NULL, 10) : 0;
    setup->page_size = kb > 0 ? (size_t)kb << 10 : (size_t)sysconf(_SC_PAGESIZE);
    free(size);
    return ok;
}

static bool set_buffer(session *s, const instance *buffers, lane_setup *setup)
{
    long kb = (long)(s->options->buffer_size >> 10);
    if (!instance_write_number(buffers, "buffer_size_kb", kb)) {
        nl_error_prepend("cannot allocate a buffer of %ld KiB per CPU", kb);
        return false;
    }
    instance_write_number(buffers, "buffer_percent", s->options->low_water);
    if (!instance_write(buffers, "trace_clock", "mono")) {
        nl_error_prepend("this kernel has no trace clock that programs can read");
        return false;
    }
    return read_layout(s, buffers, setup);
}

static bool set_buffers(session *s)
{
    if (s->options->buffer_size >= (size_t)SUBBUFFERS_MIN * SUBBUFFER_KB << 10)
        instance_write_number(&s->instance, "buffer_subbuf_size_kb", SUBBUFFER_KB);
    instance_write(&s->instance, "options/overwrite", "1");
    instance_write(&s->instance, "options/record-cmd", "1");
    if (!set_buffer(s, &s->instance, &s->setup))
        return false;
    s->shared_setup = s->setup;
    s->shared_setup.instance_dir = s->shared.dir;
    return s->shared.dir == NULL || (shared_hold(&s->shared) && set_buffer(s, &s->shared, &s->shared_setup));
}

/* Determines which of the requested counters the machine has. Prints the missing counters. */
static void choose_counters(session *s)
{
    s->counters = s->options->counters;
    size_t present = counters_probe(&s->counters, 0);
    for (size_t i = present; i < s->counters.count; i++)
        program_error("--counters %s: omitted: %s", s->counters.list[i].name, s->counters.list[i].absence.message);
    s->setup.counters = &s->counters;
    s->setup.counter_count = present;
    s->setup.buffer_size = s->options->buffer_size;
    s->setup.low_water = s->options->low_water;
}

/* Prepares the recording, but does not start it. Returns false and sets the error on failure. */
static bool session_prepare(session *s)
{
    s->saved_path = tracing_path(&s->tracing, "saved_cmdlines");
    s->setup.saved_path = s->saved_path;
    if (s->options->command != NULL && !child_prepare(&s->child, s->options->command))
        return false;
    if (!open_instance(s))
        return false;
    s->setup.instance_dir = s->instance.dir;
    choose_counters(s);
    /* choose_functions must come before choose_cpus, because the kernel rejects a new tracer while a buffer is open */
    return set_buffers(s) && choose_processes(s) && choose_functions(s) && choose_cpus(s) && enable_events(s);
}

/* ---- switching while recording ---- */

static bool event_matches(void *user, size_t event, const char *pattern)
{
    const session *s = user;
    return event_name_matches(s->events.list[event].system, s->events.list[event].event, pattern);
}

/* Switches an event, or all events (SIZE_MAX), in a recording with counters. These events come from perf, which has a
 * switch for each CPU. Returns false if a switch fails. */
static bool switch_counted(session *s, size_t event, bool on)
{
    bool ok = true;
    for (size_t i = 0; i < s->lane_count; i++)
        ok = counted_switch(s->lanes[i].counted, event, on) && ok;
    return ok;
}

static bool switch_in_kernel(session *s, size_t event, bool on)
{
    const kernel_event *e = event == SIZE_MAX ? NULL : &s->events.list[event];
    char file[256] = "tracing_on";
    if (s->setup.counter_count > 0)
        return switch_counted(s, event, on);
    if (e != NULL)
        snprintf(file, sizeof file, "events/%s/%s/enable", e->system, e->event);
    if (e == NULL && s->shared.dir != NULL && !instance_write(&s->shared, file, on ? "1" : "0"))
        return false;
    return instance_write(&s->instance, file, on ? "1" : "0");
}

static bool switch_event(void *user, size_t event, bool on)
{
    session *s = user;
    const kernel_event *e = event == SIZE_MAX ? NULL : &s->events.list[event];
    if (e != NULL && e->traced)
        return nl_error_false(NL_ERROR_UNSUPPORTED,
                              "%s cannot be switched on or off alone, because the kernel cannot change a tracer while "
                              "nlkernel reads its buffer; switch all events together",
                              e->name);
    if (!switch_in_kernel(s, event, on))
        return false;
    nl_record *record = recorder_record(s, "NetLogger.Record.Switch");
    nl_record_add_text(record, "EVENT", e != NULL ? e->name : "*");
    nl_record_add_text(record, "STATE", on ? "on" : "off");
    log_own(s, record);
    return true;
}

static void poll_activation(session *s)
{
    if (!control_poll_file(&s->control))
        program_error("--activation: %s", nl_error_message());
}

/* ---- the recording ---- */

static void session_set_up(session *s)
{
    program_host(s->host, sizeof s->host);
    s->setup = (lane_setup){
        .events = &s->events,
        .filter = s->options->filter,
        .clock = &s->clock,
        .host = {s->host, strlen(s->host)},
        .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    /* block the signals that wait_for_end receives, so that they interrupt no other code */
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGHUP);
    sigaddset(&s->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &s->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static bool session_begin(session *s)
{
    const control_target target = {s, s->events.count, event_matches, switch_event};
    realtime_start(&s->clock);
    log_begin(s);
    log_counters(s);
    log_clock(s);
    for (size_t i = 0; i < s->lane_count; i++)
        if (!lane_start(&s->lanes[i]))
            return false;
    s->begun_ns = s->ended_ns = nl_monotonic_ns();
    control_open(&s->control, &target, s->options->activation);
    poll_activation(s);
    if (s->control.on && !switch_in_kernel(s, SIZE_MAX, true))
        return false;
    if (s->child.pid == 0 || child_start(&s->child))
        return true;
    nl_error_prepend("%s", s->options->command[0]);
    return false;
}

static bool got_end_signal(const session *s)
{
    const struct timespec now = {0};
    int signal;
    while ((signal = sigtimedwait(&s->signals, NULL, &now)) > 0)
        if (signal != SIGCHLD)
            return true;
    return false;
}

/* Waits for a signal, a change of the clock or a command, for at most POLL_MS or timeout_ns. Executes the command. */
static void wait_for_something(session *s, int signal_fd, int64_t timeout_ns)
{
    struct pollfd waits[] = {{.fd = signal_fd, .events = POLLIN},
                             {.fd = s->clock.timer_fd, .events = POLLIN},
                             {.fd = s->control.fd, .events = POLLIN}};
    struct timespec wait = {.tv_nsec = POLL_MS * 1000000};
    if (timeout_ns < wait.tv_nsec)
        wait.tv_nsec = timeout_ns;
    if (ppoll(waits, sizeof waits / sizeof *waits, &wait, NULL) > 0 && waits[2].revents != 0)
        control_answer(&s->control);
}

static void wait_for_end(session *s)
{
    int64_t end_ns = s->options->duration_ns > 0 ? s->begun_ns + s->options->duration_ns : INT64_MAX, left_ns;
    int signal_fd = signalfd(-1, &s->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    while ((left_ns = end_ns - nl_monotonic_ns()) > 0 && !s->sink->failed && !s->child.ended) {
        wait_for_something(s, signal_fd, left_ns);
        if (got_end_signal(s))
            break;
        child_poll(&s->child);
        if (realtime_update(&s->clock))
            log_clock(s);
        poll_activation(s);
        sink_flush(s->sink);
    }
    if (signal_fd >= 0)
        close(signal_fd);
}

/* Stops the recording, and reads the rest of the buffers. */
static void session_end(session *s)
{
    if (s->instance.handle != NULL && !instance_write(&s->instance, "tracing_on", "0"))
        program_print_error();
    if (s->shared.dir != NULL && !instance_write(&s->shared, "tracing_on", "0"))
        program_print_error();
    if (s->control.events_on != NULL && s->setup.counter_count > 0 && !switch_counted(s, SIZE_MAX, false))
        program_print_error();
    s->ended_ns = nl_monotonic_ns();
    uint64_t one = 1;
    if (write(s->setup.stop_fd, &one, sizeof one) < 0)
        program_error("cannot stop recording: %s", strerror(errno));
    for (size_t i = 0; i < s->lane_count; i++)
        lane_finish(&s->lanes[i]);
}

static bool clean_up(session *s)
{
    for (size_t i = 0; i < s->lane_count; i++)
        lane_close(&s->lanes[i]);
    control_close(&s->control);
    realtime_stop(&s->clock);
    /* release the shared buffers before the instance, whose name contains their former settings */
    bool ok = shared_release(&s->shared, s->note.text);
    ok = instance_destroy(&s->instance) && ok;
    if (!child_end(&s->child))
        program_error("%s did not exit, and is still running", s->options->command[0]);
    close(s->setup.stop_fd);
    free(s->lanes);
    free(s->saved_path);
    kernel_events_free(&s->events);
    kallsyms_free(s->symbols);
    return ok;
}

static void print_summary(const session *s)
{
    double seconds = (double)(s->ended_ns - s->begun_ns) / 1e9;
    if (s->invalid > 0)
        program_error("%" PRIu64 " event%s omitted, because the data does not have the format that the kernel declares",
                      s->invalid, nl_plural(s->invalid));
    if (s->lost > 0)
        program_error(
            "%" PRIu64
            " event%s lost, because the kernel's buffers were full; use a larger --buffer-size, or record fewer events",
            s->lost, s->lost == 1 ? " was" : "s were");
    if (s->sink->refused > 0)
        program_error("%" PRIu64 " record%s lost, because the destination was too slow", s->sink->refused,
                      nl_plural(s->sink->refused));
    if (!s->options->quiet && !s->sink->failed)
        fprintf(stderr, "nlkernel: %" PRIu64 " event%s in %.3f s, %" PRIu64 " lost, to %s\n", s->recorded,
                nl_plural(s->recorded), seconds, s->lost, s->sink->name);
}

static int session_record(session *s)
{
    bool ok = session_prepare(s) && session_begin(s);
    if (ok)
        wait_for_end(s);
    else
        program_print_error();
    session_end(s);
    if (ok) {
        log_clock(s);
        log_finish(s);
    }
    int status = ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
    if (!clean_up(s)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    if (ok)
        print_summary(s);
    return status;
}

/* Records into the sink that `open` opens. Opens and closes the sink only with the rights of the calling user. Returns
 * an exit status. */
static int record_into(session *s, bool (*open)(sink *s, const void *user), const void *user)
{
    sink target;
    rights_lower();
    bool ok = open(&target, user);
    rights_raise();
    if (!ok) {
        program_print_error();
        clean_up(s);
        return PROGRAM_PROBLEM;
    }
    s->sink = s->setup.sink = &target;
    s->setup.interval_ms = target.log != NULL ? READ_LIVE_MS : READ_FILE_MS;
    int status = session_record(s);
    rights_lower();
    ok = sink_close(&target);
    rights_raise();
    if (ok)
        return status;
    program_print_error();
    return PROGRAM_PROBLEM;
}

static int run_with_rights(const recording_options *options, bool (*open)(sink *s, const void *user), const void *user)
{
    session s = {.options = options,
                 .instance = {.free_buffer_fd = -1},
                 .shared = {.free_buffer_fd = -1, .lock_fd = -1},
                 .clock = {.timer_fd = -1},
                 .control = {.fd = -1}};
    if (!tracing_open(&s.tracing, options->tracefs)) {
        program_print_error();
        return PROGRAM_PROBLEM;
    }
    session_set_up(&s);
    unsigned stale = instance_clean_stale(&s.tracing);
    if (stale > 0 && !options->quiet)
        fprintf(stderr, "nlkernel: removed %u tracing instance%s of killed recorders\n", stale, nl_plural(stale));
    int status = choose_events(&s);
    if (status == PROGRAM_DONE)
        status = record_into(&s, open, user);
    else
        clean_up(&s);
    tracing_close(&s.tracing);
    return status;
}

int session_run(const recording_options *options, bool (*open)(sink *s, const void *user), const void *user)
{
    rights_raise();
    int status = run_with_rights(options, open, user);
    rights_lower();
    return status;
}
