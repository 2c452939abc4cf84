#include "config.h"

#include "counters.h"

#include "base/error.h"
#include "child.h"
#include "choice.h"
#include "convert.h"
#include "format/record_internal.h"
#include "realtime.h"
#include "tasks.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS_MOST = 6, POLL_MS = 50, PAGES_MOST = 4096 };

typedef struct counter {
    char field[32]; /* in records */
    uint32_t type;
    uint64_t config;
} counter;

#define HARDWARE(what) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##what
#define SOFTWARE(what) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##what

static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} known[] = {{"cycles", HARDWARE(CPU_CYCLES)},
             {"instructions", HARDWARE(INSTRUCTIONS)},
             {"cache-references", HARDWARE(CACHE_REFERENCES)},
             {"cache-misses", HARDWARE(CACHE_MISSES)},
             {"branches", HARDWARE(BRANCH_INSTRUCTIONS)},
             {"branch-misses", HARDWARE(BRANCH_MISSES)},
             {"cpu-clock", SOFTWARE(CPU_CLOCK)},
             {"page-faults", SOFTWARE(PAGE_FAULTS)},
             {"context-switches", SOFTWARE(CONTEXT_SWITCHES)},
             {"cpu-migrations", SOFTWARE(CPU_MIGRATIONS)}};

/* One CPU's counters and events, with the memory that the kernel writes samples into. */
typedef struct counted_cpu {
    int cpu;
    int *fds; /* counters, then events */
    struct perf_event_mmap_page *ring;
    tasks tasks;
    uint64_t lost;
} counted_cpu;

typedef struct counting {
    const recording_options *options;
    counter counters[COUNTERS_MOST];
    size_t counter_count;
    kernel_events events;
    counted_cpu *cpus;
    size_t cpu_count;
    size_t ring_size; /* bytes of samples */
    nl_writer *writer;
    nl_record *record;
    char host[256];
    realtime clock;
    child child;
    uint64_t recorded, lost;
    bool failed;
} counting;

static int perf_open(struct perf_event_attr *attr, int cpu, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* ---- which counters ---- */

static bool is_there(const counter *c)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = c->type, .config = c->config};
    int fd = perf_open(&attr, 0, -1);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void say_absent(const char *name, int error)
{
    if (error == EACCES || error == EPERM)
        program_error("%s: counters want root's rights or CAP_PERFMON: going on without it", name);
    else
        program_error("%s: this machine shows no such counter (a virtual machine seldom does): going on without it",
                      name);
}

/* Takes those that there are. False when a name is none. */
static bool find_counters(const char *names, counter *found, size_t *count, bool aloud)
{
    char *copy = strdup(names), *save = NULL;
    NL_REQUIRE(copy != NULL, "out of memory");
    bool good = true;
    for (char *name = strtok_r(copy, ",", &save); good && name != NULL; name = strtok_r(NULL, ",", &save)) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i].name, name) != 0)
            i++;
        good = i < sizeof known / sizeof *known && *count < COUNTERS_MOST;
        if (!good) {
            nl_error_set("--counters: there is no \"%s\", or there are more than %d", name, COUNTERS_MOST);
            break;
        }
        counter c = {.type = known[i].type, .config = known[i].config};
        for (size_t at = 0; name[at] != '\0'; at++)
            c.field[at] = name[at] == '-' ? '.' : (char)toupper((unsigned char)name[at]);
        if (is_there(&c))
            found[(*count)++] = c;
        else if (aloud)
            say_absent(name, errno);
    }
    free(copy);
    return good;
}

bool counters_any(const char *names)
{
    counter found[COUNTERS_MOST];
    size_t count = 0;
    nl_error_clear();
    return find_counters(names, found, &count, true) && count > 0;
}

/* ---- opening ---- */

static bool choose_events(counting *c)
{
    tracing t;
    event_names names = {0};
    if (!tracing_open(&t, c->options->tracefs))
        return false;
    bool good = event_names_read(&names, &t);
    for (size_t i = 0; good && i < c->options->pattern_count; i++) {
        const char *pattern = c->options->patterns[i];
        bool needed = *pattern != '?';
        good = event_names_choose(&names, needed ? pattern : pattern + 1) || !needed;
    }
    good = good && kernel_events_read(&c->events, &names, &t);
    event_names_free(&names);
    tracing_close(&t);
    if (good)
        kernel_events_index(&c->events);
    return good;
}

static bool open_ring(counting *c, counted_cpu *cpu, int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 1;
    while (2 * pages * page <= c->options->buffer_size && 2 * pages <= PAGES_MOST)
        pages *= 2;
    c->ring_size = pages * page;
    void *memory = mmap(NULL, c->ring_size + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return nl_error_set_errno("a buffer of %zu KiB for CPU %d", c->ring_size >> 10, cpu->cpu) == NL_OK;
    cpu->ring = memory;
    return true;
}

/* The counters in one group, which the events join: a sample of an event has them all. */
static bool open_cpu(counting *c, counted_cpu *cpu)
{
    size_t count = c->counter_count + c->events.count;
    cpu->fds = malloc(count * sizeof *cpu->fds);
    NL_REQUIRE(cpu->fds != NULL, "out of memory");
    for (size_t i = 0; i < count; i++)
        cpu->fds[i] = -1;
    tasks_start(&cpu->tasks, cpu->cpu, c->events.count, NULL);
    for (size_t i = 0; i < count; i++) {
        bool is_event = i >= c->counter_count;
        struct perf_event_attr attr = {.size = sizeof attr,
                                       .type = is_event ? (uint32_t)PERF_TYPE_TRACEPOINT : c->counters[i].type,
                                       .config = is_event ? (uint64_t)c->events.list[i - c->counter_count].id
                                                          : c->counters[i].config,
                                       .read_format = PERF_FORMAT_GROUP,
                                       .use_clockid = 1,
                                       .clockid = CLOCK_MONOTONIC,
                                       .disabled = i == 0};
        if (is_event) {
            attr.sample_period = 1;
            attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_RAW;
            attr.watermark = 1;
            attr.wakeup_watermark = 16384;
        }
        cpu->fds[i] = perf_open(&attr, cpu->cpu, i == 0 ? -1 : cpu->fds[0]);
        if (cpu->fds[i] < 0)
            return nl_error_set_errno("%s, with its counters", is_event ? c->events.list[i - c->counter_count].name
                                                                        : c->counters[i].field) == NL_OK;
        if (i == c->counter_count && !open_ring(c, cpu, cpu->fds[i]))
            return false;
        if (i > c->counter_count && ioctl(cpu->fds[i], PERF_EVENT_IOC_SET_OUTPUT, cpu->fds[c->counter_count]) != 0)
            return nl_error_set_errno("%s", c->events.list[i - c->counter_count].name) == NL_OK;
    }
    return true;
}

static bool open_cpus(counting *c)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    c->cpus = calloc((size_t)count, sizeof *c->cpus);
    NL_REQUIRE(c->cpus != NULL, "out of memory");
    for (long cpu = 0; cpu < count; cpu++) {
        if (c->options->cpus != NULL && ((size_t)cpu >= c->options->cpu_count || !c->options->cpus[cpu]))
            continue;
        c->cpus[c->cpu_count].cpu = (int)cpu;
        if (!open_cpu(c, &c->cpus[c->cpu_count++]))
            return false;
    }
    return c->cpu_count > 0 || nl_error_set("--cpu: there is none of these here") == NL_OK;
}

/* ---- samples ---- */

static void put(counting *c, const nl_record *record)
{
    if (!c->failed && nl_writer_put(c->writer, record) != NL_OK) {
        program_error("%s", nl_error_message());
        c->failed = true;
    }
}

static void begin_record(counting *c, const char *event, int64_t time_ns, const char *prog, size_t prog_size)
{
    nl_record_clear(c->record);
    nl_record_set_time(c->record, time_ns);
    nl_record_set_host(c->record, c->host, strlen(c->host));
    nl_record_set_prog(c->record, prog, prog_size);
    nl_record_set_level(c->record, NL_SYSTEM);
    nl_record_set_event(c->record, event, strlen(event));
}

/* A sample's body: of whom, when, how many values, the values, the kernel's own record. */
static void take_sample(counting *c, counted_cpu *cpu, const char *at, size_t size)
{
    uint32_t pid, tid, raw_size;
    uint64_t time_ns, count, number;
    uint16_t id;
    if (size < 24)
        return;
    memcpy(&pid, at, sizeof pid);
    memcpy(&tid, at + 4, sizeof tid);
    memcpy(&time_ns, at + 8, sizeof time_ns);
    memcpy(&count, at + 16, sizeof count);
    const char *values = at + 24, *raw = values + 8 * count + 4;
    if (count < c->counter_count || count > (size - 24) / 8 || size < 24 + 8 * count + 6)
        return;
    memcpy(&raw_size, raw - 4, sizeof raw_size);
    memcpy(&id, raw, sizeof id);
    const kernel_event *event = id < c->events.id_count ? c->events.by_id[id] : NULL;
    if (event == NULL || raw_size < event->fixed_size || raw_size > (size_t)(at + size - raw))
        return;
    const task *task = tasks_find(&cpu->tasks, (int)tid, (int64_t)time_ns);
    begin_record(c, event->name, realtime_of(&c->clock, time_ns), task->name->text, task->name->size);
    nl_record_add_int(c->record, "CPU", cpu->cpu);
    nl_record_add_int(c->record, "PID", pid);
    nl_record_add_int(c->record, "TID", tid);
    for (size_t i = 0; i < c->counter_count; i++) {
        memcpy(&number, values + 8 * i, sizeof number);
        nl_record_add_uint(c->record, c->counters[i].field, number);
    }
    convert_fields(c->record, event, raw, raw_size);
    if (!nl_filter_matches(c->options->filter, c->record))
        return;
    c->recorded++;
    put(c, c->record);
}

static void take_lost(counting *c, counted_cpu *cpu, const char *at, size_t size)
{
    uint64_t count;
    if (size < 16)
        return;
    memcpy(&count, at + 8, sizeof count);
    c->lost += count;
    begin_record(c, "NetLogger.Lost", nl_time_now_ns(), "nlkernel", 8);
    nl_record_add_int(c->record, "CPU", cpu->cpu);
    nl_record_add_uint(c->record, "COUNT", count);
    put(c, c->record);
}

/* What the kernel has written since, which may go round the ring's end. */
static void read_ring(counting *c, counted_cpu *cpu)
{
    char copy[1 << 16];
    const char *data = (const char *)cpu->ring + sysconf(_SC_PAGESIZE);
    uint64_t head = __atomic_load_n(&cpu->ring->data_head, __ATOMIC_ACQUIRE), tail = cpu->ring->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        size_t at = tail % c->ring_size;
        memcpy(&header, data + at, sizeof header); /* headers are whole: all is in eights */
        if (header.size < sizeof header)
            break;
        size_t first = header.size < c->ring_size - at ? header.size : c->ring_size - at;
        memcpy(copy, data + at, first);
        memcpy(copy + first, data, header.size - first);
        if (header.type == PERF_RECORD_SAMPLE)
            take_sample(c, cpu, copy + sizeof header, header.size - sizeof header);
        else if (header.type == PERF_RECORD_LOST)
            take_lost(c, cpu, copy + sizeof header, header.size - sizeof header);
        tail += header.size;
    }
    __atomic_store_n(&cpu->ring->data_tail, tail, __ATOMIC_RELEASE);
}

/* ---- its course ---- */

static void switch_all(counting *c, bool on)
{
    for (size_t i = 0; i < c->cpu_count; i++)
        ioctl(c->cpus[i].fds[0], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

static void record_until_end(counting *c, sigset_t *signals)
{
    struct pollfd *waits = calloc(c->cpu_count, sizeof *waits);
    NL_REQUIRE(waits != NULL, "out of memory");
    for (size_t i = 0; i < c->cpu_count; i++)
        waits[i] = (struct pollfd){.fd = c->cpus[i].fds[c->counter_count], .events = POLLIN};
    const struct timespec none = {0};
    int64_t end_ns = c->options->duration_ns > 0 ? nl_time_now_ns() + c->options->duration_ns : INT64_MAX;
    bool over = false;
    while (!over && !c->failed) {
        int64_t left_ns = end_ns - nl_time_now_ns();
        poll(waits, c->cpu_count, left_ns < POLL_MS * INT64_C(1000000) ? (int)(left_ns / 1000000) + 1 : POLL_MS);
        int signal = sigtimedwait(signals, NULL, &none);
        child_look(&c->child);
        over = (signal > 0 && signal != SIGCHLD) || c->child.ended || nl_time_now_ns() >= end_ns;
        if (over)
            switch_all(c, false);
        realtime_update(&c->clock);
        for (size_t i = 0; i < c->cpu_count; i++)
            read_ring(c, &c->cpus[i]);
    }
    free(waits);
}

static void close_all(counting *c)
{
    for (size_t i = 0; i < c->cpu_count; i++) {
        if (c->cpus[i].ring != NULL)
            munmap(c->cpus[i].ring, c->ring_size + (size_t)sysconf(_SC_PAGESIZE));
        for (size_t j = 0; c->cpus[i].fds != NULL && j < c->counter_count + c->events.count; j++)
            if (c->cpus[i].fds[j] >= 0)
                close(c->cpus[i].fds[j]);
        tasks_free(&c->cpus[i].tasks);
        free(c->cpus[i].fds);
    }
    free(c->cpus);
    kernel_events_free(&c->events);
    nl_record_free(c->record);
}

static bool record(counting *c, const char *output, nl_format format)
{
    sigset_t signals;
    nl_writer_options options = {.format = format, .truncate = true, .buffer_size = 256 << 10};
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (!choose_events(c) || (c->options->command != NULL && !child_prepare(&c->child, c->options->command)) ||
        !open_cpus(c))
        return false;
    c->writer = nl_writer_open(output, &options);
    if (c->writer == NULL)
        return false;
    realtime_start(&c->clock);
    switch_all(c, true);
    if (c->child.pid != 0 && !child_start(&c->child)) {
        nl_error_prepend("%s", c->options->command[0]);
        return false;
    }
    record_until_end(c, &signals);
    return true;
}

int counters_record(const recording_options *options, const char *names, const char *output, nl_format format)
{
    counting c = {.options = options, .record = nl_record_new(), .clock.timer_fd = -1};
    const char *host = getenv("NETLOGGER_HOST");
    if (host != NULL && *host != '\0')
        snprintf(c.host, sizeof c.host, "%s", host);
    else if (gethostname(c.host, sizeof c.host - 1) != 0)
        strcpy(c.host, "localhost");
    bool good = find_counters(names, c.counters, &c.counter_count, false);
    if (format == NL_FORMAT_UNKNOWN) {
        size_t size = strlen(output);
        format = size > 4 && strcmp(output + size - 4, ".nlb") == 0 ? NL_FORMAT_NLB : NL_FORMAT_ULM;
    }
    good = good && record(&c, output, format);
    if (!good)
        program_error("%s", nl_error_message());
    child_end(&c.child);
    if (c.writer != NULL && nl_writer_close(c.writer) != NL_OK) {
        program_error("%s", nl_error_message());
        good = false;
    }
    realtime_stop(&c.clock);
    close_all(&c);
    if (good && !options->quiet)
        fprintf(stderr, "nlkernel: %" PRIu64 " events, %" PRIu64 " lost, to %s\n", c.recorded, c.lost, output);
    return good && !c.failed ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
