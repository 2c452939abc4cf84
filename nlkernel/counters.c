#include "config.h"

#include "counters.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLE_TYPE = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ | PERF_SAMPLE_RAW };

static const counter known[] = {
    {"cycles", "CYCLES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", "INSTRUCTIONS", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", "CACHE.REFERENCES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", "CACHE.MISSES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", "BRANCHES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", "BRANCH.MISSES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", "BUS.CYCLES", {0}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"page-faults", "PAGE.FAULTS", {0}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", "CONTEXT.SWITCHES", {0}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", "CPU.MIGRATIONS", {0}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"cpu-clock", "CPU.CLOCK", {0}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
};

struct counted {
    size_t slots; /* numbers for each group member in a sample: 2 (value and lost events) since Linux 6.0, otherwise 1
                     (value) */
    int fds[COUNTERS_MAX]; /* descriptors of the counters; the first counter leads the group and has the buffer */
    int *event_fds;        /* descriptors of the tracepoints; the index is kernel_event.place */
    size_t counter_count, event_count;
    bool on;
    struct perf_event_mmap_page *head;
    char *data;
    size_t size, mapped;
    uint64_t tail, taken; /* offset of the current sample, and its size in bytes */
    char copy[1 << 16]; /* copy of a sample that wraps around the end of the buffer; samples are smaller than 64 KiB */
    uint64_t values[COUNTERS_MAX];
};

/* ---- choosing ---- */

bool counters_choose(counters *c, const char *names)
{
    for (const char *at = names; *at != '\0';) {
        size_t size = strcspn(at, ","), found = 0;
        while (found < sizeof known / sizeof *known &&
               (strlen(known[found].name) != size || memcmp(known[found].name, at, size) != 0))
            found++;
        if (found == sizeof known / sizeof *known)
            return nl_error_false(NL_ERROR_INVALID,
                                  "unknown counter \"%.*s\"; the counters are cycles, instructions, cache-references, "
                                  "cache-misses, branches, branch-misses, bus-cycles, page-faults, context-switches, "
                                  "cpu-migrations and cpu-clock",
                                  (int)size, at);
        if (c->count == COUNTERS_MAX)
            return nl_error_false(NL_ERROR_LIMIT, "more than %d counters", COUNTERS_MAX);
        c->list[c->count++] = known[found];
        at += size + (at[size] == ',');
    }
    return c->count > 0 || nl_error_false(NL_ERROR_INVALID, "names no counter");
}

/* Opens an event and returns its descriptor, or -1 with errno. If `slots` is 2, also requests the number of lost
 * events. Linux before 6.0 rejects this request. */
static int open_event(struct perf_event_attr *attributes, int cpu, int group, size_t slots)
{
    attributes->size = sizeof *attributes;
    attributes->read_format = PERF_FORMAT_GROUP | (slots == 2 ? PERF_FORMAT_LOST : 0);
    attributes->use_clockid = 1;
    attributes->clockid = CLOCK_MONOTONIC;
    return (int)syscall(SYS_perf_event_open, attributes, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static void set_absence(counter *c)
{
    int error = errno;
    if (error == EACCES || error == EPERM)
        nl_error_set(NL_ERROR_PERMISSION,
                     "user %u lacks CAP_PERFMON; run nlkernel as root, or grant the capabilities: sudo setcap "
                     "cap_perfmon,cap_dac_override+ep %s",
                     (unsigned)geteuid(), rights_program_path());
    else if (c->type == PERF_TYPE_HARDWARE && (error == ENOENT || error == ENODEV || error == EOPNOTSUPP))
        nl_error_set(NL_ERROR_UNSUPPORTED, "this machine has no such counter, or its hypervisor hides it");
    else
        nl_error_set(NL_ERROR_SYSTEM, "%s", strerror(error));
    nl_error_save(&c->absence);
}

size_t counters_probe(counters *c, int cpu)
{
    size_t present = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct perf_event_attr attributes = {.type = c->list[i].type, .config = c->list[i].config};
        int fd = open_event(&attributes, cpu, -1, 1);
        if (fd < 0) {
            set_absence(&c->list[i]);
            continue;
        }
        close(fd);
        counter moved = c->list[present];
        c->list[present++] = c->list[i];
        if (i >= present)
            c->list[i] = moved;
    }
    return present;
}

/* ---- opening ---- */

/* Returns whether the kernel counts the lost events of each event. */
static bool counts_lost(const counter *first, int cpu)
{
    struct perf_event_attr attributes = {.type = first->type, .config = first->config, .disabled = 1};
    int fd = open_event(&attributes, cpu, -1, 2);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool open_counters(counted *c, const counters *of, int cpu)
{
    c->slots = counts_lost(&of->list[0], cpu) ? 2 : 1;
    for (size_t i = 0; i < c->counter_count; i++) {
        struct perf_event_attr attributes = {
            .type = of->list[i].type, .config = of->list[i].config, .disabled = i == 0};
        c->fds[i] = open_event(&attributes, cpu, i == 0 ? -1 : c->fds[0], c->slots);
        if (c->fds[i] < 0) {
            nl_error_set_errno("--counters: cannot count %s in addition to the preceding counters", of->list[i].name);
            return false;
        }
    }
    return true;
}

static bool map_buffer(counted *c, size_t buffer)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (c->size = page; 2 * c->size <= buffer;)
        c->size *= 2;
    c->mapped = c->size + page;
    void *at = mmap(NULL, c->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, c->fds[0], 0);
    if (at == MAP_FAILED) {
        nl_error_set_errno("--counters: cannot allocate a buffer of %zu KiB per CPU", c->size >> 10);
        return false;
    }
    c->head = at;
    c->data = (char *)at + page;
    return true;
}

static bool open_tracepoint(counted *c, const kernel_event *event, int cpu, int low_water)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_TRACEPOINT,
                                         .config = (uint64_t)event->id,
                                         .sample_period = 1,
                                         .sample_type = SAMPLE_TYPE,
                                         .sample_id_all = 1,
                                         .watermark = 1};
    attributes.wakeup_watermark = (uint32_t)(c->size / 100 * (size_t)low_water);
    int fd = c->event_fds[event->place] = open_event(&attributes, cpu, c->fds[0], c->slots);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->fds[0]) == 0 &&
        (event->kernel_filter == NULL || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->kernel_filter) == 0))
        return true;
    nl_error_set_errno("--counters: %s:%s", event->system, event->event);
    return false;
}

counted *counted_open(const counters *of, size_t present, const kernel_events *events, int cpu, size_t buffer,
                      int low_water)
{
    counted *c = nl_memory_check(calloc(1, sizeof *c));
    c->counter_count = present;
    c->event_count = events->count;
    c->event_fds = nl_memory_check(malloc((events->count + 1) * sizeof *c->event_fds));
    memset(c->event_fds, -1, (events->count + 1) * sizeof *c->event_fds);
    memset(c->fds, -1, sizeof c->fds);
    bool good = open_counters(c, of, cpu) && map_buffer(c, buffer);
    for (size_t i = 0; good && i < events->count; i++)
        good = open_tracepoint(c, &events->list[i], cpu, low_water);
    if (good)
        return c;
    counted_close(c);
    return NULL;
}

void counted_close(counted *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->event_count; i++)
        if (c->event_fds[i] >= 0)
            close(c->event_fds[i]);
    if (c->head != NULL)
        munmap(c->head, c->mapped);
    for (size_t i = c->counter_count; i-- > 0;)
        if (c->fds[i] >= 0)
            close(c->fds[i]);
    free(c->event_fds);
    free(c);
}

int counted_fd(const counted *c)
{
    return c->fds[0];
}

static bool switch_fd(int fd, bool on)
{
    if (ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) == 0)
        return true;
    nl_error_set_errno("switch an event %s", on ? "on" : "off");
    return false;
}

bool counted_switch(counted *c, size_t event, bool on)
{
    if (event == SIZE_MAX) {
        c->on = on;
        return switch_fd(c->fds[0], on);
    }
    if (!switch_fd(c->event_fds[event], on))
        return false;
    /* enable the group again, because a member that was switched on counts only then */
    return !on || !c->on || (switch_fd(c->fds[0], false) && switch_fd(c->fds[0], true));
}

/* ---- reading ---- */

static uint64_t read_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Returns the `size` bytes at `tail` as a contiguous array. */
static const char *contiguous(counted *c, size_t size)
{
    size_t at = c->tail & (c->size - 1), first = c->size - at;
    if (first >= size)
        return c->data + at;
    memcpy(c->copy, c->data + at, first);
    memcpy(c->copy + first, c->data, size - first);
    return c->copy;
}

/*
 * Reads a sample, which contains: pid and tid, time, cpu; the number of group members and their slots; the size of the
 * raw data, and the raw data. Returns false if the sample is invalid.
 */
static bool counted_read_sample(counted *c, const char *at, size_t size, counted_event *event)
{
    enum { AT_TIME = 8, AT_COUNT = 24, AT_VALUES = 32 };
    uint64_t count = size >= AT_VALUES ? read_word(at + AT_COUNT) : 0;
    size_t member = c->slots * sizeof *c->values;
    if (count < c->counter_count || count > (size - AT_VALUES) / member || size - AT_VALUES - member * count < 4)
        return false;
    uint32_t raw_size;
    const char *raw = at + AT_VALUES + member * count;
    memcpy(&raw_size, raw, sizeof raw_size);
    if (raw_size > size - AT_VALUES - member * count - 4)
        return false;
    for (size_t i = 0; i < c->counter_count; i++)
        c->values[i] = read_word(at + AT_VALUES + i * member);
    *event = (counted_event){{raw + 4, raw_size, read_word(at + AT_TIME)}, c->values, 0};
    return true;
}

/* Reads a loss record, which contains: id and number of lost events; pid and tid, time, cpu. Returns false if the
 * record is too short or reports no loss. */
static bool counted_read_lost(const char *at, size_t size, counted_event *event)
{
    if (size < 32)
        return false;
    *event = (counted_event){.raw.time_ns = read_word(at + 24), .lost = read_word(at + 8)};
    return event->lost > 0;
}

bool counted_next(counted *c, counted_event *event)
{
    enum { HEADER = 8 };
    c->tail += c->taken;
    c->taken = 0;
    __atomic_store_n(&c->head->data_tail, c->tail, __ATOMIC_RELEASE);
    uint64_t head = __atomic_load_n(&c->head->data_head, __ATOMIC_ACQUIRE);
    while (head - c->tail >= HEADER) {
        struct perf_event_header header;
        memcpy(&header, contiguous(c, HEADER), sizeof header);
        if (header.size < HEADER || header.size > head - c->tail)
            return false;
        const char *at = contiguous(c, header.size) + HEADER;
        size_t size = header.size - HEADER;
        bool any = header.type == PERF_RECORD_SAMPLE ? counted_read_sample(c, at, size, event)
                   : header.type == PERF_RECORD_LOST ? counted_read_lost(at, size, event)
                                                     : false;
        c->taken = header.size;
        if (any)
            return true;
        c->tail += header.size;
        c->taken = 0;
    }
    return false;
}

/* read() returns the number of group members, and then the value and the lost events of each member. */
uint64_t counted_lost(const counted *c)
{
    size_t members = c->counter_count + c->event_count, size = (1 + 2 * members) * sizeof(uint64_t);
    uint64_t *slots = c->slots == 2 ? malloc(size) : NULL, lost = 0;
    ssize_t got = slots != NULL ? read(c->fds[0], slots, size) : 0;
    for (size_t i = 0; got >= (ssize_t)sizeof *slots && i < slots[0] && (2 * i + 3) * sizeof *slots <= (size_t)got; i++)
        lost += slots[2 * i + 2];
    free(slots);
    return lost;
}
