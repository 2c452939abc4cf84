#include "config.h"

#include "gather.h"

#include "big.h"
#include "table.h"
#include "windows.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 12,       /* lines to prefetch */
    THREADS = 2,      /* one thread writes while the other fetches lines; more threads would only wait */
    BESIDE = 4 << 20, /* approximate memory for passing lines to the sink, in bytes */
};

typedef struct gathering {
    table *t;
    const nl_scanned_line *lines;
    size_t count;
    size_t piece;     /* size in bytes at which the text for one call of the sink ends */
    size_t taken;     /* size in bytes at which a share ends, including line_cost for each line */
    size_t line_cost; /* memory that each line of a share needs in addition to its text, in bytes */
    bool with_places;
    gather_sink *sink;
    void *user;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t turned;
    size_t next;              /* index of the first line that no thread has taken */
    uint64_t tickets;         /* number of shares taken so far */
    uint64_t turn;            /* ticket of the next share to pass on */
    struct filling *fillings; /* THREADS elements, if the table refers to files */
} gathering;

/* A range of lines that a thread fetches together. */
typedef struct share {
    size_t from, to; /* indices of lines */
    size_t size;     /* in bytes, including newlines */
    uint64_t ticket;
} share;

typedef struct scratch {
    char *text;
    size_t capacity;
    nl_scanned_line *places;
    size_t place_capacity;
} scratch;

static size_t size_at(const gathering *g, size_t at)
{
    return table_line_size(g->t->text, g->lines[at]) + 1;
}

/* Returns the next share, which is empty if no lines are left. The caller must hold the lock. */
static share next_share(gathering *g)
{
    share s = {.from = g->next, .to = g->next, .ticket = g->tickets++};
    for (size_t cost = 0; s.to < g->count && cost < g->taken; s.to++) {
        s.size += size_at(g, s.to);
        cost = s.size + (s.to - s.from) * g->line_cost;
    }
    g->next = s.to;
    return s;
}

static bool nlsort_gather_take(gathering *g, share *s)
{
    pthread_mutex_lock(&g->lock);
    *s = next_share(g);
    pthread_mutex_unlock(&g->lock);
    return s->to > s->from;
}

/* Returns whether the lines of a share are contiguous in the text, so that they need not be copied. */
static bool are_together(const gathering *g, const share *s)
{
    uint64_t start = nl_line_offset(g->lines[s->from]);
    const char *text = g->t->text;
    if (nl_line_offset(g->lines[s->to - 1]) - start != s->size - size_at(g, s->to - 1) ||
        text[start + s->size - 1] != '\n')
        return false;
    for (size_t i = s->from; i + 1 < s->to; i++)
        if (nl_line_offset(g->lines[i]) + nl_line_size(g->lines[i]) + 1 != nl_line_offset(g->lines[i + 1]))
            return false;
    return true;
}

static void copy_lines(const gathering *g, const share *s, char *out)
{
    const char *text = g->t->text;
    for (size_t i = s->from; i < s->to; i++) {
        if (i + AHEAD < g->count)
            table_prefetch(text, g->lines[i + AHEAD]);
        size_t size = table_line_size(text, g->lines[i]);
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the memory was reserved for the share */
        memcpy(out, text + nl_line_offset(g->lines[i]), size);
        out[size] = '\n';
        out += size + 1;
    }
}

static void nlsort_gather_reserve(scratch *own, size_t size)
{
    if (size <= own->capacity)
        return;
    own->text = big_resize(own->text, own->capacity, size);
    own->capacity = size;
}

/* Returns the contiguous text of a share, copied if necessary. */
static const char *fetch(const gathering *g, const share *s, scratch *own)
{
    if (are_together(g, s))
        return g->t->text + nl_line_offset(g->lines[s->from]);
    nlsort_gather_reserve(own, s->size);
    copy_lines(g, s, own->text);
    return own->text;
}

static const nl_scanned_line *place_lines(const gathering *g, size_t from, size_t to, scratch *own)
{
    if (!g->with_places)
        return NULL;
    size_t count = to - from;
    if (count > own->place_capacity) {
        own->place_capacity = count + count / 4;
        own->places = nl_memory_check(reallocarray(own->places, own->place_capacity, sizeof *own->places));
    }
    uint64_t offset = 0;
    for (size_t i = from; i < to; i++) {
        nl_scanned_line line = g->lines[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the memory was reserved for the share */
        own->places[i - from] = (nl_scanned_line){line.time_ns, nl_line_place(offset, nl_line_size(line), true)};
        offset += size_at(g, i);
    }
    return own->places;
}

/* Passes a share to the sink in pieces. */
static void gather_pass_on(const gathering *g, const share *s, const char *text, scratch *own)
{
    for (size_t from = s->from, to = from; from < s->to; from = to) {
        size_t size = 0;
        while (to < s->to && size < g->piece)
            size += size_at(g, to++);
        g->sink(g->user, text, size, place_lines(g, from, to, own), to - from);
        text += size;
    }
}

static void scratch_free(scratch *own)
{
    big_free(own->text, own->capacity);
    free(own->places);
}

static void work(void *user, size_t worker)
{
    (void)worker;
    gathering *g = user;
    scratch own = {0};
    share s;
    while (nlsort_gather_take(g, &s)) {
        const char *text = fetch(g, &s, &own);
        pthread_mutex_lock(&g->lock);
        while (g->turn != s.ticket)
            pthread_cond_wait(&g->turned, &g->lock);
        pthread_mutex_unlock(&g->lock);
        gather_pass_on(g, &s, text, &own);
        pthread_mutex_lock(&g->lock);
        g->turn++;
        pthread_cond_broadcast(&g->turned);
        pthread_mutex_unlock(&g->lock);
    }
    scratch_free(&own);
}

/* ---- lines in files that are read again ---- */

/*
 * A pass over the files takes the same time for any number of lines. Therefore, shares are large, and all threads fetch
 * the same share, window by window. The thread that completes a share passes it to the sink while other threads begin
 * the next share.
 */
typedef enum filling_state { EMPTY, BEGUN, COPYING, WHOLE, HANDED_ON } filling_state;

typedef struct filling {
    filling_state state;
    share share;
    scratch own;
    windows windows;
    size_t next; /* index of the first window that no thread has taken */
    size_t done; /* number of finished windows */
} filling;

static filling *filling_of(const gathering *g, uint64_t ticket)
{
    return &g->fillings[ticket % THREADS];
}

/*
 * Passes the next share to the sink if the share is complete. Returns whether a share was passed. The caller must hold
 * the lock; the function releases the lock while the sink runs.
 */
static bool gather_pass_on_whole(gathering *g)
{
    filling *f = filling_of(g, g->turn);
    if (f->state != WHOLE)
        return false;
    f->state = HANDED_ON;
    pthread_mutex_unlock(&g->lock);
    gather_pass_on(g, &f->share, f->own.text, &f->own);
    pthread_mutex_lock(&g->lock);
    f->state = EMPTY;
    g->turn++;
    return true;
}

static bool copy_some(gathering *g)
{
    for (uint64_t ticket = g->turn; ticket < g->tickets; ticket++) {
        filling *f = filling_of(g, ticket);
        if (f->state != COPYING || f->next == f->windows.count)
            continue;
        size_t window = f->next++;
        pthread_mutex_unlock(&g->lock);
        windows_copy(&f->windows, g->t, window, f->own.text);
        pthread_mutex_lock(&g->lock);
        if (++f->done == f->windows.count)
            f->state = WHOLE;
        return true;
    }
    return false;
}

static bool begin_next(gathering *g)
{
    filling *f = filling_of(g, g->tickets);
    if (g->next == g->count || f->state != EMPTY)
        return false;
    f->state = BEGUN;
    f->share = next_share(g);
    pthread_mutex_unlock(&g->lock);
    nlsort_gather_reserve(&f->own, f->share.size);
    windows_distribute(&f->windows, g->t, g->lines + f->share.from, f->share.to - f->share.from);
    f->next = f->done = 0;
    pthread_mutex_lock(&g->lock);
    f->state = COPYING;
    return true;
}

static void work_on_files(void *user, size_t worker)
{
    (void)worker;
    gathering *g = user;
    pthread_mutex_lock(&g->lock);
    while (g->turn < g->tickets || g->next < g->count) {
        if (gather_pass_on_whole(g) || copy_some(g) || begin_next(g))
            pthread_cond_broadcast(&g->turned);
        else
            pthread_cond_wait(&g->turned, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}

/* Uses the memory of the table's list for fetched text, because the kernel would have to clear new memory. */
static void gather_reuse_list(line_list *list, scratch *own)
{
    own->text = (char *)list->lines;
    own->capacity = list->capacity * sizeof *list->lines;
    *list = (line_list){0};
}

static void gather_from_files(gathering *g, size_t threads)
{
    filling fillings[THREADS] = {0};
    g->fillings = fillings;
    for (size_t i = 0; i < THREADS; i++)
        gather_reuse_list(&g->t->lists[i], &fillings[i].own);
    workers_run(threads, work_on_files, g);
    for (size_t i = 0; i < THREADS; i++) {
        scratch_free(&fillings[i].own);
        windows_free(&fillings[i].windows);
    }
}

size_t gather_share(size_t memory, size_t lines)
{
    size_t fixed = lines * sizeof(nl_scanned_line) + THREADS * WINDOWS_COST + BESIDE;
    return memory > fixed ? (memory - fixed) / THREADS : 0;
}

void gather_lines(table *t, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user)
{
    gathering g = {.t = t,
                   .lines = lines,
                   .count = count,
                   .piece = piece,
                   .taken = piece,
                   .with_places = with_places,
                   .sink = sink,
                   .user = user,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .turned = PTHREAD_COND_INITIALIZER};
    if (table_refers(t)) {
        size_t maximum = gather_share(t->memory > t->kept ? t->memory - t->kept : 0, count);
        g.taken = maximum > g.taken ? maximum : g.taken;
        g.line_cost = WINDOWS_LINE_COST;
    }
    size_t threads = workers_count() < THREADS ? 1 : THREADS;
    if (table_refers(t))
        gather_from_files(&g, threads);
    else
        workers_run(threads, work, &g);
}
