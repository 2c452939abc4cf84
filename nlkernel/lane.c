#include "config.h"

#include "lane.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "convert.h"
#include "record/record_internal.h"
#include "rights.h"
#include "tracing.h"
#include "base/buffer.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's header of every event: its number at byte 0, the thread's at byte 4. */
enum { AT_ID = 0, AT_TID = 4 };

/* Blocks are written so many bytes at a time; so many bytes of pages are one dump at most. */
enum { BATCH_SIZE = 1 << 20, DUMP_MAX = 64 << 20 };

/* Fields of every record before the event's own. */
enum { OWN_FIELDS = 3 };
static const char *const own_fields[OWN_FIELDS] = {"CPU", "PID", "TID"};

/* ---- blocks ---- */

static void write_out(lane *l)
{
    if (l->out.size > 0)
        sink_put_blocks(l->setup->sink, l->out.data, l->out.size);
    l->out.size = 0;
}

/* Ends the block, if there is anything in it or to be said by it. */
static void finish_block(lane *l)
{
    uint64_t count = l->block.record_count;
    nl_block_finish(&l->block, &l->identity, l->setup->sink->zstd_level, &l->out);
    l->identity.first_sequence += count;
    l->identity.lost = 0;
    l->generation++;
    if (l->out.size >= BATCH_SIZE)
        write_out(l);
}

static void note_begun(lane *l, int64_t trace_ns)
{
    if (l->block.record_count == 0)
        l->block_since_ns = trace_ns;
}

/* A record that was made as one: into the block, or on by itself. */
static void put_record(lane *l, const nl_record *record, int64_t trace_ns)
{
    if (!sink_takes_blocks(l->setup->sink)) {
        sink_put_record(l->setup->sink, record);
        return;
    }
    note_begun(l, trace_ns);
    if (!nl_block_put(&l->block, record)) {
        finish_block(l);
        nl_block_put(&l->block, record);
    }
    if (nl_block_is_full(&l->block))
        finish_block(l);
}

/* ---- events ---- */

static unsigned add_shape(lane *l, unsigned source, const kernel_event *event)
{
    const lane_setup *setup = l->setup;
    size_t before = OWN_FIELDS + setup->counter_count, count = before + event->field_count;
    nl_string *names = nl_memory_check(calloc(count, sizeof *names));
    nl_type *types = nl_memory_check(calloc(count, sizeof *types));
    for (size_t i = 0; i < OWN_FIELDS; i++) {
        names[i] = (nl_string){own_fields[i], strlen(own_fields[i])};
        types[i] = NL_TYPE_INT;
    }
    for (size_t i = 0; i < setup->counter_count; i++) {
        names[OWN_FIELDS + i] = (nl_string){setup->counters->list[i].field, strlen(setup->counters->list[i].field)};
        types[OWN_FIELDS + i] = NL_TYPE_UINT;
    }
    for (size_t i = 0; i < event->field_count; i++) {
        names[before + i] = (nl_string){event->fields[i].name, strlen(event->fields[i].name)};
        types[before + i] = event_field_type(&event->fields[i]);
    }
    unsigned shape = nl_block_add_shape(&l->block, &(nl_block_shape){.source = source,
                                                                     .level = NL_SYSTEM,
                                                                     .event = {event->name, strlen(event->name)},
                                                                     .names = names,
                                                                     .types = types,
                                                                     .field_count = count});
    free(names);
    free(types);
    return shape;
}

/* The shape of an event of a thread of that name in this block. */
static unsigned shape_of(lane *l, task_name *name, const kernel_event *event)
{
    if (__builtin_expect(name->generation != l->generation, 0)) {
        memset(name->shapes, 0, l->setup->events->count * sizeof *name->shapes);
        name->source = nl_block_add_source(&l->block, l->setup->host, (nl_string){name->text, name->size});
        name->generation = l->generation;
    }
    if (__builtin_expect(name->shapes[event->place] == 0, 0))
        name->shapes[event->place] = 1 + add_shape(l, name->source, event);
    return name->shapes[event->place] - 1;
}

static void put_in_block(lane *l, const kernel_event *event, const page_event *raw, const task *task)
{
    nl_block_writer *block = &l->block;
    note_begun(l, (int64_t)raw->time_ns);
    unsigned shape = shape_of(l, task->name, event);
    size_t own = OWN_FIELDS + l->setup->counter_count;
    size_t most = NL_BLOCK_RECORD_HEAD + own * NL_VARINT_SIZE + convert_most(event, raw->size);
    if (__builtin_expect(block->records.capacity - block->records.size < most, 0))
        nl_buffer_reserve(&block->records, most);
    char *records = block->records.data, *at = records + block->records.size;
    uint64_t *before = nl_block_before(block, shape);
    at = nl_block_begin_record(block, at, shape, realtime_of(l->setup->clock, raw->time_ns));
    at = nl_block_put_number(at, (uint64_t)l->cpu, before++, false);
    at = nl_block_put_number(at, (uint64_t)task->pid, before++, false);
    at = nl_block_put_number(at, (uint64_t)task->tid, before++, false);
    for (size_t i = 0; i < l->setup->counter_count; i++)
        at = nl_block_put_number(at, l->values[i], before++, false);
    at = convert_values(at, records, before, event, raw->data, raw->size);
    block->records.size = (size_t)(at - records);
    block->expanded += most;
    if (nl_block_is_full(block))
        finish_block(l);
}

static void add_int(nl_record *record, const char *name, int64_t value)
{
    nl_field *field = nl_record_append(record);
    field->name = (nl_string){name, strlen(name)};
    field->type = NL_TYPE_INT;
    field->int_value = value;
}

/* Begins the lane's record. */
static nl_record *record_of(lane *l, nl_level level, nl_string prog, const char *event, int64_t time_ns)
{
    nl_record_clear(l->record);
    l->record->time_ns = time_ns;
    l->record->level = level;
    l->record->host = l->setup->host;
    l->record->prog = prog;
    l->record->event = (nl_string){event, strlen(event)};
    return l->record;
}

/* The way by a record: to be asked about, or written as text. Returns whether it is meant. */
static bool put_as_record(lane *l, const kernel_event *event, const page_event *raw, const task *task)
{
    nl_record *record = record_of(l, NL_SYSTEM, (nl_string){task->name->text, task->name->size}, event->name,
                                  realtime_of(l->setup->clock, raw->time_ns));
    add_int(record, own_fields[0], l->cpu);
    add_int(record, own_fields[1], task->pid);
    add_int(record, own_fields[2], task->tid);
    for (size_t i = 0; i < l->setup->counter_count; i++)
        nl_record_add_uint(record, l->setup->counters->list[i].field, l->values[i]);
    convert_fields(record, event, raw->data, raw->size);
    if (event->evaluate && !nl_filter_matches(l->setup->filter, record))
        return false;
    put_record(l, record, (int64_t)raw->time_ns);
    return true;
}

static void learn_names(lane *l, const kernel_event *event, const page_event *raw)
{
    for (size_t i = 0; i < event->naming_count; i++) {
        const event_naming *naming = &event->namings[i];
        int32_t tid;
        memcpy(&tid, raw->data + naming->pid_offset, sizeof tid);
        tasks_learn(&l->tasks, tid, raw->data + naming->comm_offset, naming->comm_size, (int64_t)raw->time_ns);
    }
}

static void lane_take_event(lane *l, const page_event *raw)
{
    const kernel_events *events = l->setup->events;
    uint16_t id;
    int32_t tid;
    memcpy(&id, raw->data + AT_ID, sizeof id);
    const kernel_event *event = raw->size >= 8 && id < events->id_count ? events->by_id[id] : NULL;
    if (__builtin_expect(event == NULL || raw->size < event->fixed_size, 0)) {
        l->strange++;
        return;
    }
    memcpy(&tid, raw->data + AT_TID, sizeof tid);
    if (event->naming_count > 0)
        learn_names(l, event, raw);
    const task *task = tasks_find(&l->tasks, tid, (int64_t)raw->time_ns);
    l->last_ns = realtime_of(l->setup->clock, raw->time_ns);
    if (!event->evaluate && sink_takes_blocks(l->setup->sink)) {
        put_in_block(l, event, raw, task);
        l->events++;
    } else {
        l->events += put_as_record(l, event, raw, task);
    }
}

/* ---- what was overwritten ---- */

static const nl_string our_name = {"nlkernel", 8};

static void add_time(nl_record *record, const char *name, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    size_t size = nl_time_format_ulm(time_ns, text);
    nl_record_add_string(record, name, text, size);
}

/* Says that count events are missing, here: in the numbers of the records, and by a record. */
static void say_lost(lane *l, uint64_t count, int64_t from_ns, int64_t to_ns)
{
    if (count == 0)
        return;
    if (sink_takes_blocks(l->setup->sink)) {
        finish_block(l);
        l->identity.lost = count;
        l->identity.lost_from_ns = from_ns;
        l->identity.lost_to_ns = to_ns;
        l->identity.first_sequence += count;
    }
    l->accounted += count;
    nl_record *record = record_of(l, NL_WARNING, our_name, "NetLogger.Lost", to_ns);
    add_int(record, "CPU", l->cpu);
    nl_record_add_uint(record, "COUNT", count);
    add_time(record, "FROM", from_ns);
    add_time(record, "TO", to_ns);
    put_record(l, record, to_ns);
}

/* A page that has lost events before it. */
static void take_loss(lane *l, const page_walk *walk)
{
    int64_t to_ns = realtime_of(l->setup->clock, walk->time_ns), from_ns = l->last_ns != 0 ? l->last_ns : to_ns;
    if (walk->counted) {
        say_lost(l, walk->missed_count, from_ns, to_ns);
        return;
    }
    /* The page was too full for the number. It is known as soon as all is read, and said then. */
    if (!l->unsaid)
        l->unsaid_from_ns = from_ns;
    l->unsaid = true;
    l->unsaid_to_ns = to_ns;
}

/* What the kernel counts: "overrun" and its like in the file stats. 0 when it can't be read. */
static uint64_t overwritten(const lane *l)
{
    if (l->counted != NULL)
        return counted_lost(l->counted);
    static const char *const counts[] = {"\noverrun: ", "\ncommit overrun: ", "\ndropped events: "};
    char path[512];
    snprintf(path, sizeof path, "%s/per_cpu/cpu%d/stats", l->setup->instance_dir, l->cpu);
    char *text = tracing_read(path, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; text != NULL && i < sizeof counts / sizeof *counts; i++) {
        const char *line = strstr(text, counts[i]);
        sum += line != NULL ? strtoull(line + strlen(counts[i]), NULL, 10) : 0;
    }
    free(text);
    return sum;
}

/* Once all is read: says what is missing and was not said. */
static void settle_losses(lane *l, bool last)
{
    if (!l->unsaid && !last)
        return;
    uint64_t count = overwritten(l);
    int64_t now_ns = nl_time_now_ns();
    if (count > l->accounted)
        say_lost(l, count - l->accounted,
                 l->unsaid         ? l->unsaid_from_ns
                 : l->last_ns != 0 ? l->last_ns
                                   : now_ns,
                 l->unsaid ? l->unsaid_to_ns : now_ns);
    l->unsaid = false;
}

/* ---- reading ---- */

/* Reads one page. False when there was none. *caught_up: the kernel is still filling it. */
static bool read_page(lane *l, bool *caught_up)
{
    const lane_setup *setup = l->setup;
    ssize_t size = read(l->fd, l->page, setup->page_size);
    if (size <= 0) {
        *caught_up = true;
        return false;
    }
    page_walk walk;
    bool any = page_begin(&walk, &setup->layout, l->page, (size_t)size);
    if (walk.missed)
        take_loss(l, &walk);
    *caught_up = (size_t)(walk.end - walk.at) < setup->page_size / 2;
    page_event raw;
    while (any && page_next(&walk, &raw))
        lane_take_event(l, &raw);
    return true;
}

/* The same of events with counters, some of them at a time. */
static bool read_counted(lane *l, bool *caught_up)
{
    enum { EVENTS_MAX = 256 };
    counted_event event;
    int count = 0;
    for (; count < EVENTS_MAX && counted_next(l->counted, &event); count++) {
        int64_t time_ns = realtime_of(l->setup->clock, event.raw.time_ns);
        l->values = event.values;
        if (event.lost > 0)
            say_lost(l, event.lost, l->last_ns != 0 ? l->last_ns : time_ns, time_ns);
        else
            lane_take_event(l, &event.raw);
    }
    *caught_up = count < EVENTS_MAX;
    return count > 0;
}

static bool read_some(lane *l, bool *caught_up)
{
    return l->counted != NULL ? read_counted(l, caught_up) : read_page(l, caught_up);
}

static void say_dump(lane *l, const char *event, int64_t time_ns, uint64_t events, uint64_t lost, size_t bytes)
{
    nl_record *record = record_of(l, NL_SYSTEM, our_name, event, time_ns);
    add_int(record, "CPU", l->cpu);
    add_int(record, "PID", getpid());
    add_int(record, "TID", l->tid);
    if (strcmp(event, "NetLogger.Dump.Finish") == 0) {
        add_int(record, "EVENTS", (int64_t)events);
        add_int(record, "LOST", (int64_t)lost);
        add_int(record, "BYTES", (int64_t)bytes);
    }
    put_record(l, record, time_ns);
}

/*
 * Reads what there is. The reading itself may be among the events that are recorded: so, but for the last time, it ends
 * with the page that is being filled.
 */
static void dump(lane *l, bool last)
{
    int64_t begin_ns = nl_time_now_ns();
    uint64_t events = l->events, lost = l->accounted;
    size_t bytes = 0;
    bool caught_up = false;
    while ((last || !caught_up) && bytes < DUMP_MAX && !l->setup->sink->failed && read_some(l, &caught_up))
        bytes += l->setup->page_size;
    if (caught_up && (l->counted == NULL || last))
        settle_losses(l, last);
    if (l->events != events || l->accounted != lost) {
        say_dump(l, "NetLogger.Dump.Begin", begin_ns, 0, 0, 0);
        say_dump(l, "NetLogger.Dump.Finish", nl_time_now_ns(), l->events - events, l->accounted - lost, bytes);
    }
}

static int64_t trace_now_ns(const lane *l)
{
    return nl_time_now_ns() - atomic_load_explicit(&l->setup->clock->offset_ns, memory_order_relaxed);
}

static void *lane_run(void *user)
{
    lane *l = user;
    l->tid = (int)syscall(SYS_gettid);
    struct pollfd waits[2] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->setup->stop_fd, .events = POLLIN}};
    bool stop = false;
    while (!stop) {
        poll(waits, 2, l->setup->interval_ms);
        stop = waits[1].revents != 0;
        if (stop)
            break;
        dump(l, false);
        if (l->block.record_count > 0 && trace_now_ns(l) - l->block_since_ns > NL_NS_PER_SECOND)
            finish_block(l);
        write_out(l);
    }
    uint64_t before;
    do {
        before = l->events + l->strange;
        dump(l, true);
    } while (l->events + l->strange != before && !l->setup->sink->failed);
    finish_block(l);
    write_out(l);
    return NULL;
}

/* ---- its life ---- */

static bool open_buffer(lane *l)
{
    const lane_setup *setup = l->setup;
    char path[512];
    if (setup->counter_count > 0) {
        l->counted = counted_open(setup->counters, setup->counter_count, setup->events, l->cpu, setup->buffer_size,
                                  setup->low_water);
        l->fd = l->counted != NULL ? counted_fd(l->counted) : -1;
        return l->counted != NULL;
    }
    snprintf(path, sizeof path, "%s/per_cpu/cpu%d/trace_pipe_raw", setup->instance_dir, l->cpu);
    l->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (l->fd < 0)
        rights_explain_denied(path);
    return l->fd >= 0;
}

bool lane_open(lane *l, const lane_setup *setup, int cpu)
{
    *l = (lane){.setup = setup, .cpu = cpu, .generation = 1};
    if (!open_buffer(l))
        return false;
    l->page = nl_memory_check(malloc(setup->page_size));
    l->record = nl_record_new();
    if (getrandom(l->identity.stream, sizeof l->identity.stream, 0) != (ssize_t)sizeof l->identity.stream)
        program_fail(PROGRAM_PROBLEM, "no random bytes for the stream: %s", strerror(errno));
    tasks_start(&l->tasks, cpu, setup->events->count, setup->saved_path);
    return true;
}

bool lane_start(lane *l)
{
    int error = nl_thread_create(&l->thread, NULL, lane_run, l);
    l->running = error == 0;
    if (error != 0) {
        errno = error;
        nl_error_set_errno("start a thread");
    }
    return l->running;
}

void lane_finish(lane *l)
{
    if (l->running)
        pthread_join(l->thread, NULL);
    l->running = false;
}

void lane_close(lane *l)
{
    if (l->record == NULL)
        return;
    if (l->counted == NULL)
        close(l->fd);
    counted_close(l->counted);
    free(l->page);
    tasks_free(&l->tasks);
    nl_record_free(l->record);
    nl_block_writer_free(&l->block);
    nl_buffer_free(&l->out);
    l->record = NULL;
}
