#include "config.h"

#include "gather.h"

#include "big.h"
#include "program/program.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 12,  /* lines that are fetched into the cache before they are copied */
    THREADS = 2, /* one writes, the other fetches: more would wait */
};

typedef struct gathering {
    const char *text;
    const nl_scanned_line *lines;
    size_t count;
    size_t piece;
    bool with_places;
    gather_sink *sink;
    void *user;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t turned;
    size_t next;      /* line that nobody took yet */
    uint64_t tickets; /* pieces that were taken */
    uint64_t turn;    /* the piece that is to be handed on */
} gathering;

/* What a thread works with. */
typedef struct scratch {
    char *text;
    size_t capacity;
    nl_scanned_line *places;
    size_t place_capacity;
} scratch;

/* Takes the next lines, about a piece of them. False when there are none left. */
static bool take(gathering *g, size_t *from, size_t *to, size_t *size, uint64_t *ticket)
{
    pthread_mutex_lock(&g->lock);
    *from = g->next;
    *ticket = g->tickets++;
    size_t at = *from, bytes = 0;
    for (; at < g->count && bytes < g->piece; at++)
        bytes += table_line_size(g->text, g->lines[at]) + 1;
    g->next = at;
    pthread_mutex_unlock(&g->lock);
    *to = at;
    *size = bytes;
    return at > *from;
}

/* Whether the lines lie one behind the other, so that they need not be copied. */
static bool are_together(const gathering *g, size_t from, size_t to, size_t size)
{
    uint64_t start = nl_line_offset(g->lines[from]);
    nl_scanned_line last = g->lines[to - 1];
    if (nl_line_offset(last) - start != size - table_line_size(g->text, last) - 1 || g->text[start + size - 1] != '\n')
        return false;
    for (size_t i = from; i + 1 < to; i++)
        if (nl_line_offset(g->lines[i]) + nl_line_size(g->lines[i]) + 1 != nl_line_offset(g->lines[i + 1]))
            return false;
    return true;
}

static void make_room(scratch *s, size_t size, size_t places)
{
    if (size > s->capacity) {
        s->text = big_resize(s->text, s->capacity, size);
        s->capacity = size;
    }
    if (places > s->place_capacity) {
        s->place_capacity = places + places / 4;
        s->places = realloc(s->places, s->place_capacity * sizeof *s->places);
        if (s->places == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
    }
}

static void copy_lines(const gathering *g, size_t from, size_t to, char *out)
{
    for (size_t i = from; i < to; i++) {
        if (i + AHEAD < g->count)
            table_prefetch(g->text, g->lines[i + AHEAD]);
        size_t size = table_line_size(g->text, g->lines[i]);
        memcpy(out, g->text + nl_line_offset(g->lines[i]), size);
        out[size] = '\n';
        out += size + 1;
    }
}

static void place_lines(const gathering *g, size_t from, size_t to, nl_scanned_line *places)
{
    uint64_t offset = 0;
    for (size_t i = from; i < to; i++) {
        nl_scanned_line line = g->lines[i];
        places[i - from] = (nl_scanned_line){line.time_ns, nl_line_place(offset, nl_line_size(line), true)};
        offset += table_line_size(g->text, line) + 1;
    }
}

static void work(void *user, size_t worker)
{
    (void)worker;
    gathering *g = user;
    scratch s = {0};
    size_t from, to, size;
    uint64_t ticket;
    while (take(g, &from, &to, &size, &ticket)) {
        const char *text = g->text + nl_line_offset(g->lines[from]);
        bool together = are_together(g, from, to, size);
        make_room(&s, together ? 0 : size, g->with_places ? to - from : 0);
        if (!together) {
            copy_lines(g, from, to, s.text);
            text = s.text;
        }
        if (g->with_places)
            place_lines(g, from, to, s.places);
        pthread_mutex_lock(&g->lock);
        while (g->turn != ticket)
            pthread_cond_wait(&g->turned, &g->lock);
        pthread_mutex_unlock(&g->lock);
        g->sink(g->user, text, size, g->with_places ? s.places : NULL, to - from);
        pthread_mutex_lock(&g->lock);
        g->turn++;
        pthread_cond_broadcast(&g->turned);
        pthread_mutex_unlock(&g->lock);
    }
    big_free(s.text, s.capacity);
    free(s.places);
}

void gather_lines(const char *text, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user)
{
    gathering g = {.text = text,
                   .lines = lines,
                   .count = count,
                   .piece = piece,
                   .with_places = with_places,
                   .sink = sink,
                   .user = user,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .turned = PTHREAD_COND_INITIALIZER};
    workers_run(workers_count() < THREADS ? 1 : THREADS, work, &g);
}
