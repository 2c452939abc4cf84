#include "config.h"

#include "live.h"

#include "base/text.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "shown.h"
#include "transport/writer.h"
#include "record/format.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAUSE_NS = 10000000, /* nanoseconds between polls of idle inputs */
    TURN = 1024,         /* number of records between polls of idle inputs */
    WRITE_SIZE = 64 << 10,
    SHOWN = 5,
};

typedef struct held {
    int64_t time_ns;
    uint64_t number; /* position in the order of arrival */
    char *line;
    size_t size;
} held;

typedef struct source {
    program_log *log;  /* NULL: the source has ended */
    int64_t latest_ns; /* time of the record that was read last from the source */
    bool dry;          /* the source has no records at present */
} source;

typedef struct window {
    const live *what;
    source *sources;
    size_t open;
    held *heap; /* the root is the next record to write */
    size_t count, capacity;
    size_t bytes;
    uint64_t came;
    int64_t newest_ns;
    int64_t written_ns; /* the latest time that was written to the output */
    int64_t arrival_ns; /* time of the latest arrival, on the monotonic clock */
    nl_writer *output, *late_output;
    bool on_terminal; /* the output is a terminal */
    nl_buffer line;
    nl_record *record; /* the decoded record of a line */
    uint64_t late, early;
} window;

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- the heap ---- */

static bool comes_before(const held *a, const held *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void hold(window *w, held h)
{
    NL_ARRAY_GROW(w->heap, w->count, w->capacity);
    size_t at = w->count++;
    for (; at > 0 && comes_before(&h, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = h;
    w->bytes += h.size + sizeof h;
}

static held live_remove_first(window *w)
{
    held first = w->heap[0], moving = w->heap[--w->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->count; at = child) {
        if (child + 1 < w->count && comes_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_before(&w->heap[child], &moving))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = moving;
    w->bytes -= first.size + sizeof first;
    return first;
}

/* ---- writing ---- */

static nl_writer *open_output(const window *w, const char *path, bool truncate)
{
    nl_writer_options how = {.format = w->what->settings->format, .buffer_size = WRITE_SIZE, .truncate = truncate};
    nl_writer *writer = nl_writer_open(path, &how);
    if (writer == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    return writer;
}

static void live_put(window *w, nl_writer *writer, const char *line, size_t size)
{
    nl_status status = w->what->settings->packed ? packed_put(writer, NULL, w->record, (nl_string){line, size - 1}, 0)
                                                 : shown_put(writer, writer == w->output && w->on_terminal, line, size);
    if (status != NL_OK)
        program_fail_with_error(PROGRAM_PROBLEM);
}

static nl_writer *output_of(window *w)
{
    if (w->output == NULL) {
        w->output = open_output(w, w->what->output != NULL ? w->what->output : "-", true);
        w->on_terminal = shown_on_terminal(w->what->output);
    }
    return w->output;
}

static void live_flush(nl_writer *writer)
{
    if (writer != NULL && nl_writer_flush(writer) != NL_OK)
        program_fail_with_error(PROGRAM_PROBLEM);
}

/* Limits the time of a record to this host's clock plus the window. */
static int64_t live_limit_time(const window *w, int64_t time_ns)
{
    int64_t maximum;
    if (__builtin_add_overflow(nl_time_now_ns(), w->what->window_ns, &maximum))
        maximum = INT64_MAX;
    return time_ns < maximum ? time_ns : maximum;
}

static void release_first(window *w)
{
    held first = live_remove_first(w);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the line was removed from the heap */
    live_put(w, output_of(w), first.line, first.size);
    int64_t time_ns = live_limit_time(w, first.time_ns);
    if (time_ns > w->written_ns)
        w->written_ns = time_ns;
    free(first.line);
}

/*
 * Writes the records that have left the window, or all records if `all` is true. Then writes the oldest records until
 * the rest fits into the memory.
 */
static void release(window *w, bool all)
{
    int64_t until = w->newest_ns < INT64_MIN + w->what->window_ns ? INT64_MIN : w->newest_ns - w->what->window_ns;
    while (w->count > 0 && (all || w->heap[0].time_ns <= until))
        release_first(w);
    while (w->bytes > w->what->memory) {
        w->early++;
        release_first(w);
    }
}

static void live_put_late(window *w, const nl_record *record)
{
    if (w->late++ < SHOWN) {
        char time[NL_TIME_TEXT_SIZE];
        nl_time_format_ulm(record->time_ns, time);
        program_error("late record of %s: nlsort has already written records that are %.3f s later", time,
                      ((double)w->written_ns - (double)record->time_ns) / 1e9);
    }
    if (w->what->late == NULL) {
        live_put(w, output_of(w), w->line.data, w->line.size);
        return;
    }
    if (w->late_output == NULL)
        w->late_output = open_output(w, w->what->late, false);
    live_put(w, w->late_output, w->line.data, w->line.size);
}

/* ---- reading ---- */

static void live_take(window *w, const nl_record *record)
{
    input_make_line(w->what->settings, record, &w->line);
    w->came++;
    if (record->time_ns < w->written_ns) {
        live_put_late(w, record);
        return;
    }
    held h = {record->time_ns, w->came, nl_memory_check(malloc(w->line.size)), w->line.size};
    memcpy(h.line, w->line.data, w->line.size);
    hold(w, h);
    int64_t time_ns = record->time_ns > w->newest_ns ? live_limit_time(w, record->time_ns) : INT64_MIN;
    if (time_ns > w->newest_ns)
        w->newest_ns = time_ns;
    release(w, false);
}

static void close_source(window *w, source *from)
{
    program_log_close(from->log);
    from->log = NULL;
    w->open--;
}

/*
 * Returns the source whose latest record is the earliest, so that files are merged. Returns NULL if no source has
 * records at present.
 */
static source *next_source(window *w)
{
    source *next = NULL;
    for (size_t i = 0; i < w->what->file_count; i++) {
        source *s = &w->sources[i];
        if (s->log != NULL && !s->dry && (next == NULL || s->latest_ns < next->latest_ns))
            next = s;
    }
    return next;
}

/* Reads up to TURN records that are available. Returns false if all sources were idle. */
static bool live_read_some(window *w)
{
    const nl_record *record;
    bool some = false;
    for (size_t i = 0; i < w->what->file_count; i++)
        w->sources[i].dry = false;
    source *from;
    for (int turn = 0; turn < TURN && (from = next_source(w)) != NULL; turn++) {
        nl_status status = program_log_next(from->log, w->what->settings->where.filter, &record);
        from->dry = status == NL_AGAIN;
        some |= status != NL_AGAIN;
        if (status == NL_OK) {
            from->latest_ns = record->time_ns;
            live_take(w, record);
        } else if (status != NL_AGAIN) {
            close_source(w, from);
        }
    }
    return some;
}

static void open_sources(window *w)
{
    const live *what = w->what;
    w->sources = nl_memory_check(calloc(what->file_count + 1, sizeof *w->sources));
    for (size_t i = 0; i < what->file_count; i++) {
        source *s = &w->sources[i];
        s->log = program_log_open(&what->settings->reading, what->files[i], what->follow, true);
        s->latest_ns = INT64_MIN;
        w->open += s->log != NULL;
    }
}

static void nlsort_live_read_all(window *w)
{
    w->arrival_ns = nl_monotonic_ns();
    while (w->open > 0 && !stopped) {
        bool some = live_read_some(w);
        int64_t now_ns = nl_monotonic_ns();
        if (some) {
            w->arrival_ns = now_ns;
            continue;
        }
        if (now_ns - w->arrival_ns >= w->what->window_ns)
            release(w, true);
        live_flush(w->output);
        live_flush(w->late_output);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

static void live_close_writer(nl_writer *writer)
{
    if (writer != NULL && nl_writer_close(writer) != NL_OK)
        program_fail_with_error(PROGRAM_PROBLEM);
}

bool live_run(const live *what)
{
    window w = {.what = what, .newest_ns = INT64_MIN, .written_ns = INT64_MIN, .record = nl_record_new()};
    struct sigaction action = {.sa_handler = on_stop}; /* sets a flag; the loop ends after the current read */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    open_sources(&w);
    nlsort_live_read_all(&w);
    release(&w, true);
    for (size_t i = 0; i < what->file_count; i++)
        if (w.sources[i].log != NULL)
            close_source(&w, &w.sources[i]);
    live_close_writer(w.output);
    live_close_writer(w.late_output);
    if (w.late > SHOWN)
        program_error("%" PRIu64 " late record%s", w.late, nl_plural(w.late));
    if (w.early > 0)
        program_error("%" PRIu64 " record%s written early, because the window needs more memory than --buffer-size",
                      w.early, nl_plural(w.early));
    nl_record_free(w.record);
    nl_buffer_free(&w.line);
    free(w.sources);
    free(w.heap);
    return w.late == 0;
}
