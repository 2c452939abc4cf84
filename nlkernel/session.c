#include "config.h"

#include "session.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "child.h"
#include "choice.h"
#include "control.h"
#include "functions.h"
#include "instance.h"
#include "lane.h"
#include "pushdown.h"
#include "rights.h"
#include "shared.h"
#include "filter/filter_text.h"
#include "program/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOW_WATER_DEFAULT = 5,
    INTERVAL_DEFAULT_MS = 200,
    INTERVAL_LIVE_MS = 50,
    LOOK_EVERY_MS = 100,
};

/* Sizes of a page of the ring buffer: the larger one is asked for where the kernel knows of it and buffers are large.
 */
enum { SUBBUFFER_KB = 32, SUBBUFFERS_MIN = 64 };

typedef struct session {
    const recording_options *options;
    sink *sink;
    tracing tracing;
    instance instance;
    /* The kernel's own buffers, where the function graph tracer works nowhere else; dir NULL: not used. */
    instance shared;
    shared_note note;
    functions_kind functions;
    kernel_events events;
    kallsyms *symbols; /* NULL: no functions are recorded */
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
    int64_t begun_ns, ended_ns; /* by the monotonic clock */
    uint64_t recorded, lost, strange;
} session;

/* ---- what the recorder says itself ---- */

static nl_record *own_record(const session *s, const char *event)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_host(record, s->setup.host.data, s->setup.host.size);
    nl_record_set_prog(record, "nlkernel", strlen("nlkernel"));
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, event, strlen(event));
    return record;
}

static void session_say(session *s, nl_record *record)
{
    sink_say(s->sink, record);
    nl_record_free(record);
}

/* How the trace clock and real time belong together: what every time in the log rests on. */
static void say_clock(session *s)
{
    nl_record *record = own_record(s, "NetLogger.Clock");
    nl_record_add_string(record, "CLOCK", "mono", 4);
    nl_record_add_int(record, "OFFSET.NS", atomic_load(&s->clock.offset_ns));
    nl_record_add_int(record, "ERROR.NS", s->clock.error_ns);
    session_say(s, record);
}

static void say_begin(session *s)
{
    nl_record *record = own_record(s, "NetLogger.Record.Begin");
    struct utsname name;
    const char *release = uname(&name) == 0 ? name.release : "";
    nl_record_add_int(record, "PID", getpid());
    nl_record_add_string(record, "KERNEL", release, strlen(release));
    nl_record_add_uint(record, "EVENT.TYPES", s->events.count);
    nl_record_add_uint(record, "CPUS", s->lane_count);
    nl_record_add_uint(record, "BUFFER", s->options->buffer_size);
    if (s->options->filter != NULL) {
        const char *text = nl_filter_text(s->options->filter);
        nl_record_add_string(record, "FILTER", text, strlen(text));
    }
    for (size_t i = 0; i < s->options->glob_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "FUNCTIONS.%zu", i);
        nl_record_add_string(record, name, s->options->globs[i], strlen(s->options->globs[i]));
    }
    session_say(s, record);
}

/* Which counters events have with them, and which they have not, and why. */
static void say_counters(session *s)
{
    for (size_t i = 0; i < s->counters.count; i++) {
        const counter *c = &s->counters.list[i];
        bool absent = *c->absent != '\0';
        nl_record *record = own_record(s, "NetLogger.Counter");
        nl_record_add_string(record, "COUNTER", c->name, strlen(c->name));
        nl_record_add_string(record, "STATE", absent ? "absent" : "present", absent ? 6 : 7);
        if (absent)
            nl_record_add_string(record, "REASON", c->absent, strlen(c->absent));
        session_say(s, record);
    }
}

static void say_finish(session *s)
{
    for (size_t i = 0; i < s->lane_count; i++) {
        const lane *l = &s->lanes[i];
        s->recorded += l->events;
        s->lost += l->accounted;
        s->strange += l->strange;
        nl_record *record = own_record(s, "NetLogger.Record.Cpu");
        nl_record_add_int(record, "CPU", l->cpu);
        nl_record_add_int(record, "TID", l->tid);
        nl_record_add_uint(record, "EVENTS", l->events);
        nl_record_add_uint(record, "LOST", l->accounted);
        session_say(s, record);
    }
    nl_record *record = own_record(s, "NetLogger.Record.Finish");
    nl_record_add_uint(record, "EVENTS", s->recorded);
    nl_record_add_uint(record, "LOST", s->lost);
    nl_record_add_double(record, "SECONDS", (double)(s->ended_ns - s->begun_ns) / 1e9);
    session_say(s, record);
}

/* ---- which events ---- */

/* Leaves out the events that the filter can't be true of. */
static void push_filter(session *s)
{
    kernel_events *events = &s->events;
    size_t kept = 0;
    for (size_t i = 0; i < events->count; i++) {
        kernel_event *event = &events->list[i];
        if (pushdown(event, s->options->filter, s->setup.host)) {
            kernel_event moved = *event;
            *event = events->list[kept];
            events->list[kept++] = moved;
        }
    }
    for (size_t i = kept; i < events->count; i++) {
        events->by_id[events->list[i].id] = NULL;
        kernel_event_free(&events->list[i]);
    }
    events->count = kept;
    for (size_t i = 0; i < kept; i++) {
        events->list[i].place = (unsigned)i;
        events->by_id[events->list[i].id] = &events->list[i];
    }
}

static bool open_instance(session *s)
{
    return s->instance.handle != NULL ||
           instance_create(&s->instance, &s->tracing, s->shared.dir != NULL ? s->note.text : NULL);
}

/* Finds out where the function graph tracer can be used: in an instance, or only in what everybody shares. */
static bool find_graph(session *s, bool needed)
{
    const instance all = {.dir = s->tracing.path};
    s->functions = FUNCTIONS_CALLS;
    if (!functions_offered(&all, FUNCTIONS_GRAPH))
        return !needed;
    if (!open_instance(s))
        return false;
    if (functions_offered(&s->instance, FUNCTIONS_GRAPH)) {
        s->functions = FUNCTIONS_GRAPH;
        return true;
    }
    if (!needed)
        return true;
    s->functions = FUNCTIONS_GRAPH;
    /* The next instance is called by what it finds there. */
    return instance_destroy(&s->instance) && shared_find(&s->shared, &s->note, &s->tracing);
}

static bool add_functions(session *s)
{
    functions_kind wanted = s->options->functions;
    s->functions = wanted == FUNCTIONS_ANY ? FUNCTIONS_CALLS : wanted;
    if (wanted == FUNCTIONS_NONE)
        return true;
    if (wanted == FUNCTIONS_GRAPH || (wanted == FUNCTIONS_ANY && s->options->glob_count == 0))
        if (!find_graph(s, wanted == FUNCTIONS_GRAPH))
            return false;
    s->symbols = kallsyms_read();
    return s->symbols != NULL && functions_describe(&s->events, &s->tracing, s->functions, s->symbols);
}

/* Returns an exit status. */
static int choose_events(session *s)
{
    event_names names = {0};
    int status = PROGRAM_PROBLEM;
    bool good = event_names_read(&names, &s->tracing);
    for (size_t i = 0; good && i < s->options->pattern_count; i++) {
        const char *pattern = s->options->patterns[i];
        bool needed = *pattern != '?';
        if (!event_names_choose(&names, needed ? pattern : pattern + 1) && needed) {
            good = false;
            status = PROGRAM_USAGE;
        }
    }
    good = good && kernel_events_read(&s->events, &names, &s->tracing) && add_functions(s);
    event_names_free(&names);
    if (!good) {
        program_error("%s", nl_error_message());
        return status;
    }
    kernel_events_index(&s->events);
    push_filter(s);
    if (s->events.count > 0)
        return PROGRAM_DONE;
    program_error("--where: no chosen event can match; nlkernel list shows their fields");
    return PROGRAM_USAGE;
}

static bool enable_event(session *s, const kernel_event *event)
{
    char file[256];
    bool good = true;
    if (event->traced || s->setup.counter_count > 0)
        return true; /* it is on with its tracer, or is perf's */
    if (event->kernel_filter != NULL) {
        snprintf(file, sizeof file, "events/%s/%s/filter", event->system, event->event);
        good = instance_write(&s->instance, file, event->kernel_filter);
    }
    snprintf(file, sizeof file, "events/%s/%s/enable", event->system, event->event);
    return good && instance_write(&s->instance, file, "1");
}

/* Events that can't be switched on (some want hardware) are left out, unless there are no others. */
static bool enable_events(session *s)
{
    size_t on = 0, refused = 0;
    for (size_t i = 0; i < s->events.count; i++)
        if (enable_event(s, &s->events.list[i]))
            on++;
        else if (refused++ == 0 && s->events.count > 1)
            program_error("%s; going on without it", nl_error_message());
    if (refused > 1 && on > 0)
        program_error("%zu more events can't be recorded", refused - 1);
    return on > 0;
}

/* ---- of whom ---- */

static bool add_threads(const instance *i, const char *list, int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        nl_error_set(NL_ERROR_NOT_FOUND, "--pid %d: there is no such process", pid);
        return false;
    }
    bool good = true;
    char *file = program_format("%s/%s", i->dir, list);
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        good = nl_error_set_errno("%s", file) == NL_OK;
    for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && write(fd, entry->d_name, strlen(entry->d_name)) < 0)
            good = nl_error_set_errno("%s", file) == NL_OK;
    if (fd >= 0)
        close(fd);
    free(file);
    closedir(folder);
    return good;
}

static bool choose_processes_for(session *s, const instance *buffers, const char *list, const char *children)
{
    if (s->options->pid_count > 0 || s->options->only_command)
        instance_write_if_there(buffers, children, "1");
    for (size_t i = 0; i < s->options->pid_count; i++)
        if (!add_threads(buffers, list, s->options->pids[i]))
            return false;
    return !s->options->only_command || add_threads(buffers, list, s->child.pid);
}

/* Where functions are recorded. */
static const instance *functions_place(const session *s)
{
    return s->shared.dir != NULL ? &s->shared : &s->instance;
}

/*
 * In tracefs processes have the numbers of the whole machine, which who is in a namespace of processes (a container)
 * does not know. The number of the machine's own namespace is the kernel's PROC_PID_INIT_INO (include/linux/proc_ns.h).
 */
static bool knows_processes(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == 0xEFFFFFFC;
}

static bool choose_processes(session *s)
{
    if ((s->options->only_command || s->options->pid_count > 0) && !knows_processes())
        return nl_error_set(NL_ERROR_UNSUPPORTED,
                            "in a container, which has numbers of processes of its own, only the whole machine can be "
                            "recorded, without --follow and --pid: run nlkernel outside for that") == NL_OK;
    return choose_processes_for(s, &s->instance, "set_event_pid", "options/event-fork") &&
           (s->functions == FUNCTIONS_NONE ||
            choose_processes_for(s, functions_place(s), "set_ftrace_pid", "options/function-fork"));
}

static bool choose_functions(session *s)
{
    return s->functions == FUNCTIONS_NONE ||
           functions_choose(functions_place(s), s->functions, s->options->globs, s->options->glob_count);
}

static bool has_cpu(const session *s, long cpu)
{
    char path[512];
    struct stat status;
    snprintf(path, sizeof path, "%s/per_cpu/cpu%ld", s->instance.dir, cpu);
    return stat(path, &status) == 0;
}

static bool add_lane(session *s, const lane_setup *setup, int cpu)
{
    bool good = lane_open(&s->lanes[s->lane_count], setup, cpu);
    s->lane_count += good;
    return good;
}

/* Which CPUs there are, of those that were asked for. False with the reason. */
static bool choose_cpus(session *s)
{
    const recording_options *o = s->options;
    long count = sysconf(_SC_NPROCESSORS_CONF);
    char mask[RECORDING_CPUS_MAX / 4 + RECORDING_CPUS_MAX / 32 + 2];
    /* Functions that go elsewhere need two for each. */
    s->lanes = nl_memory_check(calloc(2 * (size_t)count, sizeof *s->lanes));
    unsigned bits[RECORDING_CPUS_MAX / 32] = {0};
    size_t word_count = (size_t)count / 32 + 1, size = 0;
    for (size_t cpu = (size_t)count; cpu < o->cpu_count; cpu++)
        if (o->cpus[cpu]) {
            nl_error_set(NL_ERROR_NOT_FOUND, "--cpu: there is no CPU %zu here: the last one is %ld", cpu, count - 1);
            return false;
        }
    for (long cpu = 0; cpu < count && cpu < RECORDING_CPUS_MAX; cpu++) {
        if ((o->cpus != NULL && ((size_t)cpu >= o->cpu_count || !o->cpus[cpu])) || !has_cpu(s, cpu))
            continue;
        if (!add_lane(s, &s->setup, (int)cpu) || (s->shared.dir != NULL && !add_lane(s, &s->shared_setup, (int)cpu)))
            return false;
        bits[cpu / 32] |= 1u << cpu % 32;
    }
    for (size_t i = word_count; i-- > 0;)
        size += (size_t)snprintf(mask + size, sizeof mask - size, "%08x%s", bits[i], i > 0 ? "," : "");
    return o->cpus == NULL || instance_write(&s->instance, "tracing_cpumask", mask);
}

/* ---- the ring buffer ---- */

static long number_in(const instance *i, const char *file)
{
    char *text = instance_read(i, file);
    long value = text != NULL ? strtol(text, NULL, 10) : 0;
    free(text);
    return value;
}

/* Where a page's words lie, and how large it is. */
static bool read_layout(session *s, const instance *buffers, lane_setup *setup)
{
    char *path = tracing_path(&s->tracing, "events/header_page"), *text = tracing_read(path, NULL);
    bool good = text != NULL && page_layout_read(&setup->layout, text);
    if (text != NULL && !good)
        nl_error_set(NL_ERROR_INVALID, "%s: not understood", path);
    long kb = number_in(buffers, "buffer_subbuf_size_kb");
    setup->page_size = kb > 0 ? (size_t)kb << 10 : (size_t)sysconf(_SC_PAGESIZE);
    free(text);
    free(path);
    return good;
}

/* What is the same in buffers of our own and in shared ones. */
static bool set_buffer(session *s, const instance *buffers, lane_setup *setup)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", s->options->buffer_size >> 10);
    if (!instance_write(buffers, "buffer_size_kb", text)) {
        nl_error_prepend("a buffer of %s KiB for each CPU", text);
        return false;
    }
    snprintf(text, sizeof text, "%d", s->options->low_water >= 0 ? s->options->low_water : LOW_WATER_DEFAULT);
    instance_write_if_there(buffers, "buffer_percent", text);
    if (!instance_write(buffers, "trace_clock", "mono")) {
        nl_error_prepend("this kernel has no trace clock that programs share");
        return false;
    }
    return read_layout(s, buffers, setup);
}

static bool set_buffers(session *s)
{
    if (s->options->buffer_size >= (size_t)SUBBUFFERS_MIN * SUBBUFFER_KB << 10) {
        char text[32];
        snprintf(text, sizeof text, "%d", SUBBUFFER_KB);
        instance_write_if_there(&s->instance, "buffer_subbuf_size_kb", text);
    }
    instance_write_if_there(&s->instance, "options/overwrite", "1");
    instance_write_if_there(&s->instance, "options/record-cmd", "1");
    if (!set_buffer(s, &s->instance, &s->setup))
        return false;
    s->shared_setup = s->setup;
    s->shared_setup.instance_dir = s->shared.dir;
    return s->shared.dir == NULL || (shared_hold(&s->shared) && set_buffer(s, &s->shared, &s->shared_setup));
}

/* ---- its course ---- */

static void set_up(session *s)
{
    program_host(s->host, sizeof s->host);
    s->setup = (lane_setup){
        .events = &s->events,
        .filter = s->options->filter,
        .clock = &s->clock,
        .host = {s->host, strlen(s->host)},
        .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    /* Blocked from here on, and waited for where nothing is half done. */
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGHUP);
    sigaddset(&s->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &s->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static void set_sink(session *s, sink *to)
{
    int interval_ms = to->log != NULL ? INTERVAL_LIVE_MS : INTERVAL_DEFAULT_MS;
    s->sink = s->setup.sink = to;
    s->setup.interval_ms = s->options->interval_ms > 0 ? s->options->interval_ms : interval_ms;
}

/* Finds out which counters there are; those that are not the user is told of, and later the log. */
static void choose_counters(session *s)
{
    s->counters = s->options->counters;
    size_t present = counters_probe(&s->counters, 0);
    for (size_t i = present; i < s->counters.count; i++)
        program_error("--counters %s: absent: %s", s->counters.list[i].name, s->counters.list[i].absent);
    s->setup.counters = &s->counters;
    s->setup.counter_count = present;
    s->setup.buffer_size = s->options->buffer_size;
    s->setup.low_water = s->options->low_water >= 0 ? s->options->low_water : LOW_WATER_DEFAULT;
}

/* Makes all ready, so that only the switch is left. False with the reason. */
static bool prepare(session *s)
{
    s->saved_path = tracing_path(&s->tracing, "saved_cmdlines");
    s->setup.saved_path = s->saved_path;
    if (s->options->command != NULL && !child_prepare(&s->child, s->options->command))
        return false;
    if (!open_instance(s))
        return false;
    s->setup.instance_dir = s->instance.dir;
    choose_counters(s);
    /* The kernel lets nobody choose a tracer once the buffers are open. */
    return set_buffers(s) && choose_processes(s) && choose_functions(s) && choose_cpus(s) && enable_events(s);
}

/* ---- off and on, while it records ---- */

static const char *event_name_of(void *user, size_t event)
{
    static char name[256]; /* the one thread that controls asks for it */
    const session *s = user;
    snprintf(name, sizeof name, "%s:%s", s->events.list[event].system, s->events.list[event].event);
    return name;
}

static void say_switch(session *s, const char *event, bool on)
{
    nl_record *record = own_record(s, "NetLogger.Record.Switch");
    nl_record_add_string(record, "EVENT", event, strlen(event));
    nl_record_add_string(record, "STATE", on ? "on" : "off", on ? 2 : 3);
    session_say(s, record);
}

/* Events with counters are perf's, and each CPU's. */
static bool switch_counted(session *s, size_t event, bool on)
{
    bool good = true;
    for (size_t i = 0; i < s->lane_count; i++)
        good = counted_switch(s->lanes[i].counted, event, on) && good;
    return good;
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
    if (e != NULL && e->traced) {
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "%s can be switched only with all others: the kernel holds a tracer as long as it is read",
                     event_name_of(s, event));
        return false;
    }
    if (!switch_in_kernel(s, event, on))
        return false;
    say_switch(s, e != NULL ? e->name : "*", on);
    return true;
}

static void look_at_file(session *s)
{
    if (!control_look(&s->control))
        program_error("--activation: %s", nl_error_message());
}

static bool session_begin(session *s)
{
    const control_target target = {s, s->events.count, event_name_of, switch_event};
    realtime_start(&s->clock);
    say_begin(s);
    say_counters(s);
    say_clock(s);
    for (size_t i = 0; i < s->lane_count; i++)
        if (!lane_start(&s->lanes[i]))
            return false;
    s->begun_ns = s->ended_ns = nl_monotonic_ns();
    control_open(&s->control, &target, s->options->activation);
    look_at_file(s);
    if (s->control.on && !switch_in_kernel(s, SIZE_MAX, true))
        return false;
    if (s->child.pid == 0 || child_start(&s->child))
        return true;
    nl_error_prepend("%s", s->options->command[0]);
    return false;
}

/* Whether a signal says that it is over. */
static bool is_told_to_end(const session *s)
{
    const struct timespec now = {0};
    int signal;
    while ((signal = sigtimedwait(&s->signals, NULL, &now)) > 0)
        if (signal != SIGCHLD)
            return true;
    return false;
}

/* Waits until something happens, or it is time to look. */
static void wait_for_something(session *s, int signal_fd, int64_t most_ns)
{
    struct pollfd waits[] = {{.fd = signal_fd, .events = POLLIN},
                             {.fd = s->clock.timer_fd, .events = POLLIN},
                             {.fd = s->control.fd, .events = POLLIN}};
    struct timespec wait = {.tv_nsec = LOOK_EVERY_MS * 1000000};
    if (most_ns < wait.tv_nsec)
        wait.tv_nsec = most_ns;
    if (ppoll(waits, sizeof waits / sizeof *waits, &wait, NULL) > 0 && waits[2].revents != 0)
        control_answer(&s->control);
}

/* Waits until it is over. */
static void wait_for_end(session *s)
{
    int64_t end_ns = s->options->duration_ns > 0 ? s->begun_ns + s->options->duration_ns : INT64_MAX, left_ns;
    int signal_fd = signalfd(-1, &s->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    while ((left_ns = end_ns - nl_monotonic_ns()) > 0 && !s->sink->failed && !s->child.ended) {
        wait_for_something(s, signal_fd, left_ns);
        if (is_told_to_end(s))
            break;
        child_look(&s->child);
        if (realtime_update(&s->clock))
            say_clock(s);
        look_at_file(s);
        sink_flush(s->sink);
    }
    if (signal_fd >= 0)
        close(signal_fd);
}

/* Stops recording, and reads what is left. */
static void session_end(session *s)
{
    if (s->instance.handle != NULL && !instance_write(&s->instance, "tracing_on", "0"))
        program_error("%s", nl_error_message());
    if (s->shared.dir != NULL && !instance_write(&s->shared, "tracing_on", "0"))
        program_error("%s", nl_error_message());
    if (s->control.events_on != NULL && s->setup.counter_count > 0 && !switch_counted(s, SIZE_MAX, false))
        program_error("%s", nl_error_message());
    s->ended_ns = nl_monotonic_ns();
    uint64_t one = 1;
    if (write(s->setup.stop_fd, &one, sizeof one) < 0)
        program_error("stop: %s", strerror(errno));
    for (size_t i = 0; i < s->lane_count; i++)
        lane_finish(&s->lanes[i]);
}

static bool clean_up(session *s)
{
    for (size_t i = 0; i < s->lane_count; i++)
        lane_close(&s->lanes[i]);
    control_close(&s->control);
    realtime_stop(&s->clock);
    /* The shared buffers first: our instance's name says how they were. */
    bool gone = shared_release(&s->shared, s->note.text);
    gone = instance_destroy(&s->instance) && gone;
    if (!child_end(&s->child))
        program_error("%s does not end, and is left running", s->options->command[0]);
    close(s->setup.stop_fd);
    free(s->lanes);
    free(s->saved_path);
    kernel_events_free(&s->events);
    kallsyms_free(s->symbols);
    return gone;
}

static void summarise(const session *s)
{
    double seconds = (double)(s->ended_ns - s->begun_ns) / 1e9;
    if (s->strange > 0)
        program_error("%" PRIu64 " events were not what their description says, and are left out", s->strange);
    if (s->lost > 0)
        program_error("%" PRIu64
                      " events are lost, as the log says: the buffers were too small (--buffer) for what was "
                      "to be written",
                      s->lost);
    if (s->sink->refused > 0)
        program_error("%" PRIu64 " records are lost: the destination was too slow", s->sink->refused);
    if (!s->options->quiet && !s->sink->failed)
        fprintf(stderr, "nlkernel: %" PRIu64 " events in %.3f s, %" PRIu64 " lost, to %s\n", s->recorded, seconds,
                s->lost, s->sink->name);
}

static int record(session *s)
{
    bool good = prepare(s) && session_begin(s);
    if (!good)
        program_error("%s", nl_error_message());
    else
        wait_for_end(s);
    session_end(s);
    if (good)
        say_clock(s);
    if (good)
        say_finish(s);
    int status = good ? PROGRAM_DONE : PROGRAM_PROBLEM;
    if (!clean_up(s)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    if (good)
        summarise(s);
    return status;
}

static void clean_stale(session *s)
{
    unsigned stale = instance_clean_stale(&s->tracing);
    if (stale > 0 && !s->options->quiet)
        fprintf(stderr, "nlkernel: %u instance%s of a recorder that was killed taken away\n", stale,
                stale == 1 ? "" : "s");
}

/* Records into a sink that is opened only now. Returns an exit status. */
static int record_into(session *s, bool (*open)(sink *s, const void *user), const void *user)
{
    sink target;
    rights_lower();
    bool good = open(&target, user);
    rights_raise();
    if (!good) {
        program_error("%s", nl_error_message());
        clean_up(s);
        return PROGRAM_PROBLEM;
    }
    set_sink(s, &target);
    int status = record(s);
    rights_lower(); /* it is given its name only now */
    bool closed = sink_close(&target);
    rights_raise();
    if (!closed) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    return status;
}

static int run_session(const recording_options *options, bool (*open)(sink *s, const void *user), const void *user)
{
    session s = {.options = options,
                 .instance = {.free_buffer_fd = -1},
                 .shared = {.free_buffer_fd = -1, .lock_fd = -1},
                 .clock = {.timer_fd = -1},
                 .control = {.fd = -1}};
    if (!tracing_open(&s.tracing, options->tracefs)) {
        program_error("%s", nl_error_message());
        return PROGRAM_PROBLEM;
    }
    set_up(&s);
    clean_stale(&s);
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
    int status = run_session(options, open, user);
    rights_lower();
    return status;
}
