#include "config.h"

#include "runs.h"

#include "big.h"
#include "order.h"
#include "program/program.h"
#include "temporary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK_MOST = 256 << 10, /* bytes of text, about */
    BLOCK_LEAST = 16 << 10,
    BLOCKS_IN_MEMORY = 1024, /* at least */
    BLOCK_COST = 2,          /* what a block takes more than its text, at most: so many times that */
    MERGED_AT_ONCE = 1 << 20,
    MERGED_LINES = 64 << 10,
    MERGED_BUFFERS = 2,
    FORGOTTEN_AT_ONCE = 4 << 20,
    FETCHED_AHEAD = 8, /* lines, into the cache */
};

typedef struct run {
    off_t start, end;
} run;

/* A file and the runs in it. */
typedef struct run_file {
    int fd;
    off_t size;
    run *runs;
    size_t count;
} run_file;

struct runs {
    const char *directory;
    size_t memory;
    size_t block;
    run_file file;
};

typedef struct header {
    uint64_t lines;
    uint64_t text_size;
} header;

runs *runs_new(const char *directory, size_t memory)
{
    runs *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    size_t block = memory / BLOCKS_IN_MEMORY;
    *r = (runs){.directory = directory,
                .memory = memory,
                .block = block > BLOCK_MOST    ? BLOCK_MOST
                         : block < BLOCK_LEAST ? BLOCK_LEAST
                                               : block,
                .file = {.fd = -1}};
    return r;
}

static void free_file(run_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->runs);
    *file = (run_file){.fd = -1};
}

void runs_free(runs *r)
{
    free_file(&r->file);
    free(r);
}

size_t runs_count(const runs *r)
{
    return r->file.count;
}

/* ---- writing ---- */

/* Where blocks are written. */
typedef struct block_sink {
    const runs *r;
    run_file *file;
} block_sink;

static void write_block(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    const block_sink *to = user;
    header h = {count, size};
    temporary_write(to->file->fd, to->r->directory, &h, sizeof h);
    temporary_write(to->file->fd, to->r->directory, lines, count * sizeof *lines);
    temporary_write(to->file->fd, to->r->directory, text, size);
    to->file->size += (off_t)(sizeof h + count * sizeof *lines + size);
}

static void begin_run(const runs *r, run_file *file)
{
    if (file->fd < 0)
        file->fd = temporary_open(r->directory);
    file->runs = realloc(file->runs, (file->count + 1) * sizeof *file->runs);
    if (file->runs == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    file->runs[file->count].start = file->size;
}

static void end_run(run_file *file)
{
    file->runs[file->count++].end = file->size;
}

void runs_add(runs *r, table *t)
{
    order o = order_table(t);
    block_sink to = {r, &r->file};
    begin_run(r, &r->file);
    gather_lines(t->text, o.lines, o.count, r->block, true, write_block, &to);
    end_run(&r->file);
    order_free(&o);
    table_clear(t);
}

/* ---- reading ---- */

/* A run that is being read: its block, and the line in it that comes next. */
typedef struct cursor {
    size_t rank;
    off_t at, end;
    off_t kept; /* what lies before is given back */
    char *block;
    size_t capacity;
    const nl_scanned_line *lines;
    size_t count, next;
    const char *text;
} cursor;

/* Reads the next block; false at the end of the run. */
static bool read_block(const runs *r, const run_file *file, cursor *c)
{
    if (c->at == c->end)
        return false;
    off_t start = c->at;
    header h;
    temporary_read(file->fd, r->directory, &h, sizeof h, c->at);
    size_t places = h.lines * sizeof(nl_scanned_line), size = places + h.text_size;
    if (size > c->capacity) {
        c->block = big_resize(c->block, c->capacity, size);
        c->capacity = size;
    }
    temporary_read(file->fd, r->directory, c->block, size, c->at + (off_t)sizeof h);
    c->at += (off_t)(sizeof h + size);
    if (start - c->kept >= FORGOTTEN_AT_ONCE) {
        temporary_forget(file->fd, c->kept, start - c->kept);
        c->kept = start;
    }
    temporary_expect(file->fd, c->at, c->end - c->at < (off_t)size ? c->end - c->at : (off_t)size);
    c->lines = (const nl_scanned_line *)(const void *)c->block;
    c->count = h.lines;
    c->next = 0;
    c->text = c->block + places;
    return true;
}

static inline int64_t time_of(const cursor *c)
{
    return c->lines[c->next].time_ns;
}

static inline bool comes_before(const cursor *a, const cursor *b)
{
    int64_t first = time_of(a), second = time_of(b);
    return first != second ? first < second : a->rank < b->rank;
}

/* ---- handing on in another thread ---- */

/* Lines that were merged and are not handed on yet. */
typedef struct buffer {
    char *text;
    size_t size, capacity;
    nl_scanned_line *lines;
    size_t count;
    bool ready;
} buffer;

typedef struct outlet {
    gather_sink *sink;
    void *user;
    buffer buffers[MERGED_BUFFERS];
    size_t filling;
    bool ended;
    pthread_mutex_t lock; /* of ready and ended */
    pthread_cond_t changed;
    pthread_t thread;
} outlet;

static void *hand_on(void *argument)
{
    outlet *o = argument;
    for (size_t i = 0;; i = (i + 1) % MERGED_BUFFERS) {
        buffer *b = &o->buffers[i];
        pthread_mutex_lock(&o->lock);
        while (!b->ready && !o->ended)
            pthread_cond_wait(&o->changed, &o->lock);
        bool ready = b->ready;
        pthread_mutex_unlock(&o->lock);
        if (!ready)
            return NULL;
        o->sink(o->user, b->text, b->size, b->lines, b->count);
        b->size = b->count = 0;
        pthread_mutex_lock(&o->lock);
        b->ready = false;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->lock);
    }
}

static void outlet_open(outlet *o, gather_sink *sink, void *user)
{
    *o = (outlet){.sink = sink, .user = user, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    for (size_t i = 0; i < MERGED_BUFFERS; i++) {
        buffer *b = &o->buffers[i];
        b->capacity = MERGED_AT_ONCE;
        b->text = big_new(b->capacity);
        b->lines = big_new(MERGED_LINES * sizeof *b->lines);
    }
    int why = pthread_create(&o->thread, NULL, hand_on, o);
    if (why != 0)
        program_fail(PROGRAM_PROBLEM, "start a thread: %s", strerror(why));
}

/* What is in the buffer that is being filled goes its way; the next one is waited for. */
static void outlet_flush(outlet *o)
{
    pthread_mutex_lock(&o->lock);
    o->buffers[o->filling].ready = true;
    pthread_cond_broadcast(&o->changed);
    o->filling = (o->filling + 1) % MERGED_BUFFERS;
    while (o->buffers[o->filling].ready)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

static void outlet_put(outlet *o, const char *text, nl_scanned_line line)
{
    size_t size = table_line_size(text, line) + 1;
    buffer *b = &o->buffers[o->filling];
    if (b->count > 0 && (size > b->capacity - b->size || b->count == MERGED_LINES)) {
        outlet_flush(o);
        b = &o->buffers[o->filling];
    }
    if (size > b->capacity) {
        b->text = big_resize(b->text, b->capacity, size);
        b->capacity = size;
    }
    memcpy(b->text + b->size, text + nl_line_offset(line), size);
    b->lines[b->count++] = (nl_scanned_line){line.time_ns, nl_line_place(b->size, nl_line_size(line), true)};
    b->size += size;
}

static void outlet_close(outlet *o)
{
    if (o->buffers[o->filling].count > 0)
        outlet_flush(o);
    pthread_mutex_lock(&o->lock);
    o->ended = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->thread, NULL);
    for (size_t i = 0; i < MERGED_BUFFERS; i++) {
        big_free(o->buffers[i].text, o->buffers[i].capacity);
        big_free(o->buffers[i].lines, MERGED_LINES * sizeof(nl_scanned_line));
    }
}

/* ---- merging ---- */

/* Puts heap[at], the least of its two halves below being in place, where it belongs. */
static void sift_down(cursor **heap, size_t count, size_t at)
{
    cursor *moving = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(heap[child + 1], heap[child]))
            child++;
        if (!comes_before(heap[child], moving))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* The cursor that comes second: below the root. */
static const cursor *second_of(cursor **heap, size_t count)
{
    if (count < 3)
        return count == 2 ? heap[1] : NULL;
    return comes_before(heap[2], heap[1]) ? heap[2] : heap[1];
}

static void merge_cursors(const runs *r, const run_file *file, cursor **heap, size_t count, outlet *out)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    while (count > 0) {
        cursor *first = heap[0];
        const cursor *second = second_of(heap, count);
        bool more = true;
        do {
            if (first->next + FETCHED_AHEAD < first->count)
                __builtin_prefetch(first->text + nl_line_offset(first->lines[first->next + FETCHED_AHEAD]));
            outlet_put(out, first->text, first->lines[first->next++]);
            if (first->next == first->count)
                more = read_block(r, file, first);
        } while (more && (second == NULL || comes_before(first, second)));
        if (!more)
            heap[0] = heap[--count];
        if (count > 0)
            sift_down(heap, count, 0);
    }
}

/* Merges the runs from first up to end, and last, which may be empty. */
static void merge_some(const runs *r, const run_file *file, size_t first, size_t end, cursor *last, gather_sink *sink,
                       void *user)
{
    cursor *cursors = calloc(end - first, sizeof *cursors), **heap = calloc(end - first + 1, sizeof(cursor *));
    if (cursors == NULL || heap == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        cursor *c = &cursors[i - first];
        *c = (cursor){.rank = i, .at = file->runs[i].start, .end = file->runs[i].end, .kept = file->runs[i].start};
        if (read_block(r, file, c))
            heap[count++] = c;
    }
    if (last->count > 0)
        heap[count++] = last;
    outlet out;
    outlet_open(&out, sink, user);
    merge_cursors(r, file, heap, count, &out);
    outlet_close(&out);
    for (size_t i = 0; i < end - first; i++)
        big_free(cursors[i].block, cursors[i].capacity);
    free(cursors);
    free(heap);
}

/* Merges groups of most runs into one each: there are too many to have a block of each in memory. */
static void merge_groups(runs *r, size_t most)
{
    run_file merged = {.fd = -1};
    block_sink to = {r, &merged};
    for (size_t first = 0; first < r->file.count; first += most) {
        size_t end = first + most < r->file.count ? first + most : r->file.count;
        begin_run(r, &merged);
        cursor none = {0};
        merge_some(r, &r->file, first, end, &none, write_block, &to);
        end_run(&merged);
    }
    free_file(&r->file);
    r->file = merged;
}

/* Bytes that it takes to merge so many runs. */
static size_t merge_size(const runs *r, size_t count)
{
    return count * BLOCK_COST * r->block + MERGED_BUFFERS * (MERGED_AT_ONCE + MERGED_LINES * sizeof(nl_scanned_line));
}

void runs_merge(runs *r, table *t, gather_sink *sink, void *user)
{
    if (table_size(t) + merge_size(r, r->file.count) > r->memory) {
        runs_add(r, t);
        table_release(t);
    }
    size_t most = (r->memory - merge_size(r, 0)) / (BLOCK_COST * r->block);
    while (r->file.count > most)
        merge_groups(r, most);
    order o = order_table(t);
    cursor last = {.rank = r->file.count, .lines = o.lines, .count = o.count, .text = t->text};
    merge_some(r, &r->file, 0, r->file.count, &last, sink, user);
    order_free(&o);
}
