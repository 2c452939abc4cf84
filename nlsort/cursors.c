#include "config.h"

#include "cursors.h"

#include "big.h"
#include "program/program.h"
#include "table.h"

#include <pthread.h>
#include <string.h>

enum {
    MERGED_AT_ONCE = 1 << 20,
    MERGED_LINES = 64 << 10,
    MERGED_BUFFERS = 2,
    FETCHED_AHEAD = 8, /* number of lines to prefetch */
};

const size_t cursors_merge_size = MERGED_BUFFERS * (MERGED_AT_ONCE + MERGED_LINES * sizeof(nl_scanned_line));

/* ---- output in another thread ---- */

/* A buffer of merged lines that the sink has not received yet. */
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
    pthread_mutex_t lock; /* protects ready and ended */
    pthread_cond_t changed;
    pthread_t thread;
} outlet;

static void *gather_pass_on(void *argument)
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
    int error = pthread_create(&o->thread, NULL, gather_pass_on, o);
    if (error != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
}

/* Passes the filled buffer to the output thread and waits for an empty buffer. */
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

static inline int64_t time_of(const cursor *c)
{
    return c->lines[c->next].time_ns;
}

static inline bool comes_before(const cursor *a, const cursor *b)
{
    int64_t first = time_of(a), second = time_of(b);
    return first != second ? first < second : a->rank < b->rank;
}

/* Moves heap[at] down until the heap is in order. Both subtrees of heap[at] must be heaps. */
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

/* Returns the smaller of the root's children; NULL if the root has no children. */
static const cursor *second_of(cursor **heap, size_t count)
{
    if (count < 3)
        return count == 2 ? heap[1] : NULL;
    return comes_before(heap[2], heap[1]) ? heap[2] : heap[1];
}

static void merge_heap(cursor **heap, size_t count, outlet *out)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    while (count > 0) {
        cursor *first = heap[0];
        const cursor *second = second_of(heap, count);
        bool more = true;
        do {
            if (first->next + FETCHED_AHEAD < first->count)
                table_prefetch(first->text, first->lines[first->next + FETCHED_AHEAD]);
            outlet_put(out, first->text, first->lines[first->next++]);
            if (first->next == first->count)
                more = first->more(first);
        } while (more && (second == NULL || comes_before(first, second)));
        if (!more)
            heap[0] = heap[--count];
        if (count > 0)
            sift_down(heap, count, 0);
    }
}

void cursors_merge(cursor **cursors, size_t count, gather_sink *sink, void *user)
{
    outlet out;
    outlet_open(&out, sink, user);
    merge_heap(cursors, count, &out);
    outlet_close(&out);
}
