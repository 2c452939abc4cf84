#include "config.h"

#include "lane.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "convert.h"
#include "instance.h"
#include "record/record_internal.h"
#include "rights.h"
#include "base/buffer.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Offsets of the event's ID and the thread's ID in the header of every kernel event. */
enum { ID_OFFSET = 0, TID_OFFSET = 4 };

/* BATCH_SIZE: bytes of blocks per write. DUMP_MAX: maximum number of bytes to read from pages between two checks for
 * the end. */
enum { BATCH_SIZE = 1 << 20, DUMP_MAX = 64 << 20 };

/* The fields that precede the event's own fields in every record. */
enum { OWN_FIELDS = 3 };
static const char *const own_fields[OWN_FIELDS] = {"CPU", "PID", "TID"};

/* ---- blocks ---- */

static void write_out(lane *l)
{
    if (l->out.size > 0)
        sink_put_blocks(l->setup->sink, l->out.data, l->out.size);
    l->out.size = 0;
}

/* If the current block has records or a loss, finishes the block and begins the next block. Writes the finished blocks
 * to the sink when they reach BATCH_SIZE. */
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

static void note_first_record(lane *l, int64_t trace_ns)
{
    if (l->block.record_count == 0)
        l->block_since_ns = trace_ns;
}

/* Adds a record to the block, or passes it to the sink. */
static void lane_put_record(lane *l, const nl_record *record, int64_t trace_ns)
{
    if (!sink_takes_blocks(l->setup->sink)) {
        sink_put_record(l->setup->sink, record);
        return;
    }
    note_first_record(l, trace_ns);
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
        names[i] = nl_string_of(own_fields[i]);
        types[i] = NL_TYPE_INT;
    }
    for (size_t i = 0; i < setup->counter_count; i++) {
        names[OWN_FIELDS + i] = nl_string_of(setup->counters->list[i].field);
        types[OWN_FIELDS + i] = NL_TYPE_UINT;
    }
    for (size_t i = 0; i < event->field_count; i++) {
        names[before + i] = nl_string_of(event->fields[i].name);
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

/* Returns the index of the current block's shape for an event of a thread with this name. */
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
    note_first_record(l, (int64_t)raw->time_ns);
    unsigned shape = shape_of(l, task->name, event);
    size_t own = OWN_FIELDS + l->setup->counter_count;
    size_t size_max = NL_BLOCK_RECORD_HEAD + own * NL_VARINT_SIZE + convert_size_max(event, raw->size);
    if (__builtin_expect(block->records.capacity - block->records.size < size_max, 0))
        nl_buffer_reserve(&block->records, size_max);
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
    block->expanded += size_max;
    if (nl_block_is_full(block))
        finish_block(l);
}

static void add_int(nl_record *record, const char *name, int64_t value)
{
    nl_field *field = nl_record_append(record);
    field->name = nl_string_of(name);
    field->type = NL_TYPE_INT;
    field->int_value = value;
}

/* Clears the lane's record and sets the common members. Borrows texts. Returns the record. */
static nl_record *start_record(lane *l, nl_level level, nl_string prog, const char *event, int64_t time_ns)
{
    nl_record_clear(l->record);
    l->record->time_ns = time_ns;
    l->record->level = level;
    l->record->host = l->setup->host;
    l->record->prog = prog;
    l->record->event = nl_string_of(event);
    return l->record;
}

/* Passes an event on as a record, to evaluate the filter or because the sink does not take blocks. Returns false if the
 * filter does not match. */
static bool put_as_record(lane *l, const kernel_event *event, const page_event *raw, const task *task)
{
    nl_record *record = start_record(l, NL_SYSTEM, (nl_string){task->name->text, task->name->size}, event->name,
                                     realtime_of(l->setup->clock, raw->time_ns));
    add_int(record, own_fields[0], l->cpu);
    add_int(record, own_fields[1], task->pid);
    add_int(record, own_fields[2], task->tid);
    for (size_t i = 0; i < l->setup->counter_count; i++)
        nl_record_add_uint(record, l->setup->counters->list[i].field, l->values[i]);
    convert_fields(record, event, raw->data, raw->size);
    if (event->evaluate && !nl_filter_matches(l->setup->filter, record))
        return false;
    lane_put_record(l, record, (int64_t)raw->time_ns);
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
    memcpy(&id, raw->data + ID_OFFSET, sizeof id);
    const kernel_event *event = raw->size >= 8 && id < events->id_count ? events->by_id[id] : NULL;
    if (__builtin_expect(event == NULL || raw->size < event->fixed_size, 0)) {
        l->invalid++;
        return;
    }
    memcpy(&tid, raw->data + TID_OFFSET, sizeof tid);
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

/* ---- losses ---- */

static const nl_string recorder_name = {"nlkernel", 8};

static void add_time(nl_record *record, const char *name, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    size_t size = nl_time_format_ulm(time_ns, text);
    nl_record_add_string(record, name, text, size);
}

/* Accounts for `count` lost events: assigns sequence numbers to them, and reports them in a NetLogger.Lost record. */
static void log_loss(lane *l, uint64_t count, int64_t from_ns, int64_t to_ns)
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
    nl_record *record = start_record(l, NL_WARNING, recorder_name, "NetLogger.Lost", to_ns);
    add_int(record, "CPU", l->cpu);
    nl_record_add_uint(record, "COUNT", count);
    add_time(record, "FROM", from_ns);
    add_time(record, "TO", to_ns);
    lane_put_record(l, record, to_ns);
}

/* Handles a page before which the kernel has overwritten events. */
static void lane_handle_loss(lane *l, const page_walk *walk)
{
    int64_t to_ns = realtime_of(l->setup->clock, walk->time_ns), from_ns = l->last_ns != 0 ? l->last_ns : to_ns;
    if (walk->counted) {
        log_loss(l, walk->missed_count, from_ns, to_ns);
        return;
    }
    /* the page has no space for the number of lost events, so settle_losses computes it when the buffer is empty */
    if (!l->unaccounted)
        l->unaccounted_from_ns = from_ns;
    l->unaccounted = true;
    l->unaccounted_to_ns = to_ns;
}

/* Logs the losses that are not yet accounted for. The buffer must be empty. If `last` is true, also logs losses after
 * the last page. */
static void settle_losses(lane *l, bool last)
{
    if (!l->unaccounted && !last)
        return;
    uint64_t count =
        l->counted != NULL ? counted_lost(l->counted) : instance_overwritten(l->setup->instance_dir, l->cpu);
    int64_t now_ns = nl_time_now_ns();
    if (count > l->accounted)
        log_loss(l, count - l->accounted,
                 l->unaccounted    ? l->unaccounted_from_ns
                 : l->last_ns != 0 ? l->last_ns
                                   : now_ns,
                 l->unaccounted ? l->unaccounted_to_ns : now_ns);
    l->unaccounted = false;
}

/* ---- reading ---- */

/* Reads one page. Returns false if there is no page to read. Sets *caught_up to true if there is no page, or if the
 * page is less than half full, because the kernel is probably still filling such a page. */
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
        lane_handle_loss(l, &walk);
    *caught_up = (size_t)(walk.end - walk.at) < setup->page_size / 2;
    page_event raw;
    while (any && page_next(&walk, &raw))
        lane_take_event(l, &raw);
    return true;
}

/* Like read_page, but reads at most EVENTS_MAX events with counters. Sets *caught_up to true if no more events are
 * available. */
static bool read_counted(lane *l, bool *caught_up)
{
    enum { EVENTS_MAX = 256 };
    counted_event event;
    int count = 0;
    for (; count < EVENTS_MAX && counted_next(l->counted, &event); count++) {
        int64_t time_ns = realtime_of(l->setup->clock, event.raw.time_ns);
        l->values = event.values;
        if (event.lost > 0)
            log_loss(l, event.lost, l->last_ns != 0 ? l->last_ns : time_ns, time_ns);
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

static void log_dump(lane *l, const char *event, int64_t time_ns, uint64_t events, uint64_t lost, size_t bytes)
{
    nl_record *record = start_record(l, NL_SYSTEM, recorder_name, event, time_ns);
    add_int(record, "CPU", l->cpu);
    add_int(record, "PID", getpid());
    add_int(record, "TID", l->tid);
    if (strcmp(event, "NetLogger.Dump.Finish") == 0) {
        add_int(record, "EVENTS", (int64_t)events);
        add_int(record, "LOST", (int64_t)lost);
        add_int(record, "BYTES", (int64_t)bytes);
    }
    lane_put_record(l, record, time_ns);
}

/*
 * Reads the buffer up to the page that the kernel is filling. Without this limit, the loop might never end, because
 * reading may itself cause events. If `last` is true, recording is off, and the function also reads the last page. In
 * both cases, reads at most about DUMP_MAX bytes.
 */
static void read_buffer(lane *l, bool last)
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
        log_dump(l, "NetLogger.Dump.Begin", begin_ns, 0, 0, 0);
        log_dump(l, "NetLogger.Dump.Finish", nl_time_now_ns(), l->events - events, l->accounted - lost, bytes);
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
        read_buffer(l, false);
        if (l->block.record_count > 0 && trace_now_ns(l) - l->block_since_ns > NL_NS_PER_SECOND)
            finish_block(l);
        write_out(l);
    }
    uint64_t before;
    do {
        before = l->events + l->invalid;
        read_buffer(l, true);
    } while (l->events + l->invalid != before && !l->setup->sink->failed);
    finish_block(l);
    write_out(l);
    return NULL;
}

/* ---- opening and closing ---- */

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
        rights_set_open_error(path);
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
        program_fail(PROGRAM_PROBLEM, "cannot get random bytes for a stream ID: %s", strerror(errno));
    tasks_start(&l->tasks, cpu, setup->events->count, setup->saved_path);
    return true;
}

bool lane_start(lane *l)
{
    int error = nl_thread_create(&l->thread, NULL, lane_run, l);
    errno = error;
    l->running = error == 0 || nl_error_set_errno("cannot start a thread") == NL_OK;
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
