#include "config.h"

#include "flow.h"

#include "big.h"
#include "order.h"
#include "program/program.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SLOTS = 64,
    AHEAD = 8, /* number of slots to read in advance; the other slots are the window */
    SLOT_MAX = 512 << 10,
    SLOT_MIN = 64 << 10,
    SLOTS_IN_MEMORY = 256, /* ratio of the memory for all data to the size of a slot; this ratio is large because lists
                              of short lines are larger than the text of the lines */
    SHORT_LINE = 100,      /* estimated length of a line in bytes */
    PLACES = 16,           /* number of positions in the file that flow_is_likely examines */
    PLACE_SIZE = 16 << 10,
    PLACE_LINES = PLACE_SIZE / 8,
    FETCHED_AHEAD = 8, /* number of lines to prefetch */
    WRITTEN_AT_ONCE =
        256 << 10, /* bytes per write; small enough to stay in the processor's cache until the kernel copies them */
};

/* The lines of a slot, in order. */
typedef struct batch {
    line_list list;
    int64_t minimum, maximum; /* minimum and maximum time */
} batch;

/*
 * The reading thread fills the slots in turn with the text of the file. The number of batches is small, because the
 * first access to new memory costs more than reading the file.
 */
typedef struct flow {
    const flow_settings *settings;
    char *text; /* the text of all slots */
    size_t slot_size;
    size_t file_size;
    batch batches[AHEAD];

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    size_t filled; /* number of slots filled so far */
    size_t taken;  /* number of slots whose batches were merged and can be used again */
    size_t freed;  /* number of slots whose text was written and can be overwritten */
    bool ended;    /* no more slots will be filled */
    bool gave_up;  /* one of the threads gave up */
} flow;

static char *text_of_slot(const flow *f, size_t index)
{
    return f->text + index % SLOTS * f->slot_size;
}

/* ---- the examination ---- */

static size_t read_some(int fd, char *to, size_t size, off_t at)
{
    size_t done = 0;
    for (ssize_t got = 1; done < size && got != 0;) {
        got = pread(fd, to + done, size - done, at + (off_t)done);
        if (got < 0 && errno != EINTR)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    return done;
}

/*
 * Finds the earliest time of up to PLACE_LINES lines at an offset in the file. Returns false if there are no lines, or
 * if a line needs the decoder.
 */
static bool find_minimum(const flow_settings *s, off_t at, int64_t *minimum)
{
    static char text[PLACE_SIZE];
    static nl_scanned_line lines[PLACE_LINES];
    size_t size = read_some(s->fd, text, sizeof text, at), used;
    const char *start = at == 0 ? text : memchr(text, '\n', size);
    if (start == NULL)
        return false;
    start += at != 0;
    nl_line_scanner *scanner = nl_line_scanner_new(s->format, s->fraction);
    size_t count = nl_lines_scan(scanner, start, (size_t)(text + size - start), 0, lines, PLACE_LINES, &used);
    bool good = count > 0 && !nl_line_scanner_met_nul(scanner);
    nl_line_scanner_free(scanner);
    *minimum = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        good &= nl_line_is_plain(lines[i]);
        *minimum = lines[i].time_ns < *minimum ? lines[i].time_ns : *minimum;
    }
    return good;
}

bool flow_is_likely(const flow_settings *settings)
{
    struct stat status;
    char last;
    if (fstat(settings->fd, &status) != 0 || status.st_size < PLACES * PLACE_SIZE ||
        pread(settings->fd, &last, 1, status.st_size - 1) != 1 || last != '\n')
        return false;
    int64_t before = INT64_MIN, minimum;
    for (off_t i = 0; i < PLACES; i++) {
        if (!find_minimum(settings, (status.st_size - PLACE_SIZE) / (PLACES - 1) * i, &minimum) || minimum < before)
            return false;
        before = minimum;
    }
    return true;
}

/* ---- reading ---- */

/* Waits until a slot and its batch are free. Returns false if the other thread gave up. */
static bool wait_for_free_slot(flow *f, size_t index)
{
    pthread_mutex_lock(&f->lock);
    while (!f->gave_up && (index - f->freed >= SLOTS || index - f->taken >= AHEAD))
        pthread_cond_wait(&f->changed, &f->lock);
    bool go_on = !f->gave_up;
    pthread_mutex_unlock(&f->lock);
    return go_on;
}

static void advance(flow *f, size_t *counter)
{
    pthread_mutex_lock(&f->lock);
    ++*counter;
    pthread_cond_signal(&f->changed); /* at most one thread is waiting */
    pthread_mutex_unlock(&f->lock);
}

static void flow_end(flow *f, bool gave_up)
{
    pthread_mutex_lock(&f->lock);
    f->ended = true;
    f->gave_up |= gave_up;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

typedef struct reading {
    nl_line_scanner *scanner;
    line_list found, spare;
} reading;

/*
 * Finds and sorts the lines of a text. Returns the total size of the lines in bytes, or 0 if there is no line or a line
 * needs the decoder.
 */
static size_t find_lines(const flow *f, reading *r, const char *text, size_t size, batch *b)
{
    size_t done = 0;
    r->found.count = r->spare.count = b->list.count = 0;
    for (size_t used = 1; used > 0;) {
        line_list_reserve(&r->found, (size - done) / SHORT_LINE + 1);
        r->found.count += nl_lines_scan(r->scanner, text + done, size - done, (size_t)(text - f->text) + done,
                                        r->found.lines + r->found.count, r->found.capacity - r->found.count, &used);
        done += used;
    }
    size_t count = r->found.count;
    for (size_t i = 0; i < count; i++)
        if (!nl_line_is_plain(r->found.lines[i]))
            return 0;
    if (count == 0 || nl_line_scanner_met_nul(r->scanner))
        return 0;
    line_list_reserve(&b->list, count);
    line_list_reserve(&r->spare, count);
    piece p = piece_of(&r->found, 0, count);
    order_piece(&p, b->list.lines, r->spare.lines);
    b->list.count = count;
    b->minimum = p.minimum;
    b->maximum = p.maximum;
    return done;
}

/* Fills slots up to the end of the file. Returns false if the thread gives up. */
static bool fill(flow *f, reading *r)
{
    const char *rest = NULL; /* start of a line that continues from the previous slot */
    size_t rest_size = 0, at = 0;
    for (size_t i = 0; at < f->file_size; i++) {
        if (!wait_for_free_slot(f, i))
            return false;
        char *text = text_of_slot(f, i);
        if (rest_size > 0)
            memcpy(text, rest, rest_size);
        size_t space = f->slot_size - rest_size, left = f->file_size - at, wanted = left < space ? left : space;
        if (read_some(f->settings->fd, text + rest_size, wanted, (off_t)at) < wanted)
            return false;
        size_t size = rest_size + wanted, used = find_lines(f, r, text, size, &f->batches[i % AHEAD]);
        if (used == 0)
            return false;
        at += wanted;
        rest = text + used;
        rest_size = size - used;
        advance(f, &f->filled);
    }
    return rest_size == 0;
}

static void *read_file(void *argument)
{
    flow *f = argument;
    reading r = {.scanner = nl_line_scanner_new(f->settings->format, f->settings->fraction)};
    bool good = fill(f, &r);
    line_list_free(&r.found);
    line_list_free(&r.spare);
    nl_line_scanner_free(r.scanner);
    flow_end(f, !good);
    return NULL;
}

/* ---- writing ---- */

/* Sorted lines that have not been written yet, from index `first` on. */
typedef struct waiting {
    line_list list;
    line_list spare;
    size_t first;
    int64_t passed; /* the time of the last written line */
    int64_t maximum[SLOTS];
    char *out;
    size_t out_size;
} waiting;

/* Merges a batch into the waiting lines. Returns false if a line of the batch is older than a line already written. */
static bool flow_merge_batch(waiting *w, const batch *b)
{
    if (b->minimum < w->passed)
        return false;
    size_t count = b->list.count, left = w->list.count - w->first;
    if (w->list.count + count > w->list.capacity && w->first > left) {
        memmove(w->list.lines, w->list.lines + w->first, left * sizeof *w->list.lines);
        w->list.count = left;
        w->first = 0;
    }
    line_list_reserve(&w->list, count);
    memcpy(w->list.lines + w->list.count, b->list.lines, count * sizeof *w->list.lines);
    w->list.count += count;
    order_merge(w->list.lines + w->first, left, left + count, &w->spare);
    return true;
}

static void put_out(const flow *f, waiting *w)
{
    if (w->out_size > 0)
        f->settings->sink(f->settings->user, w->out, w->out_size, NULL, 0);
    w->out_size = 0;
}

/* Writes the lines whose times are not later than `maximum`. */
static void write_up_to(const flow *f, waiting *w, int64_t maximum)
{
    size_t count = order_count_before(w->list.lines + w->first, w->list.count - w->first, maximum, true);
    for (size_t i = w->first; i < w->first + count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): order_count_before returned count */
        nl_scanned_line line = w->list.lines[i];
        if (i + FETCHED_AHEAD < w->list.count)
            table_prefetch(f->text, w->list.lines[i + FETCHED_AHEAD]);
        size_t size = table_line_size(f->text, line);
        if (w->out_size >= WRITTEN_AT_ONCE)
            put_out(f, w);
        memcpy(w->out + w->out_size, f->text + nl_line_offset(line), size);
        w->out[w->out_size + size] = '\n';
        w->out_size += size + 1;
    }
    w->first += count;
    if (count > 0)
        w->passed = w->list.lines[w->first - 1].time_ns;
}

/* Waits until a slot is filled. Returns false at the end of the file, or if the other thread gave up. */
static bool wait_for_slot(flow *f, size_t index)
{
    pthread_mutex_lock(&f->lock);
    while (f->filled <= index && !f->ended && !f->gave_up)
        pthread_cond_wait(&f->changed, &f->lock);
    bool there = f->filled > index && !f->gave_up;
    pthread_mutex_unlock(&f->lock);
    return there;
}

static bool has_given_up(flow *f)
{
    pthread_mutex_lock(&f->lock);
    bool gave_up = f->gave_up;
    pthread_mutex_unlock(&f->lock);
    return gave_up;
}

/* Writes all lines. Returns false if one of the threads gave up. */
static bool write_lines(flow *f, waiting *w)
{
    int64_t maximum = INT64_MIN;
    for (size_t i = 0; wait_for_slot(f, i); i++) {
        const batch *b = &f->batches[i % AHEAD];
        if (!flow_merge_batch(w, b)) {
            flow_end(f, true);
            return false;
        }
        w->maximum[i % SLOTS] = b->maximum;
        advance(f, &f->taken);
        if (i + AHEAD < SLOTS)
            continue;
        int64_t oldest = w->maximum[(i + AHEAD) % SLOTS]; /* latest time in the oldest slot of the window; lines up to
                                                           * the maximum of these times can be written */
        maximum = oldest > maximum ? oldest : maximum;
        write_up_to(f, w, maximum);
        advance(f, &f->freed);
        program_progress("sorting", i * f->slot_size, f->file_size, 0);
    }
    if (has_given_up(f))
        return false;
    write_up_to(f, w, INT64_MAX);
    put_out(f, w);
    return true;
}

bool flow_run(const flow_settings *settings)
{
    struct stat status;
    if (fstat(settings->fd, &status) != 0)
        return false;
    size_t slot_size = settings->memory / SLOTS_IN_MEMORY;
    slot_size = slot_size > SLOT_MAX ? SLOT_MAX : slot_size < SLOT_MIN ? SLOT_MIN : slot_size;
    flow f = {.settings = settings,
              .slot_size = slot_size,
              .file_size = (size_t)status.st_size,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    f.text = big_new(SLOTS * slot_size);
    size_t out_capacity = WRITTEN_AT_ONCE + slot_size; /* no line is longer than a slot */
    waiting w = {.passed = INT64_MIN, .out = big_new(out_capacity)};
    pthread_t reader;
    int error = pthread_create(&reader, NULL, read_file, &f);
    if (error != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
    bool good = write_lines(&f, &w);
    pthread_join(reader, NULL);
    for (size_t i = 0; i < AHEAD; i++)
        line_list_free(&f.batches[i].list);
    line_list_free(&w.list);
    line_list_free(&w.spare);
    big_free(w.out, out_capacity);
    big_free(f.text, SLOTS * slot_size);
    return good;
}
