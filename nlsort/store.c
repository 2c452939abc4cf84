#include "config.h"

#include "store.h"

#include "program/program.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    CHUNK_SIZE = 4 << 20,
    SHORT_RUN = 24,        /* insertion sort is used for at most this number of entries */
    THREAD_MIN = 64 << 10, /* minimum number of entries for a second thread */
};

/* An item. `place` is in a chunk and contains two sizes, the rest of the item's key, and the item's line. */
typedef struct entry {
    uint64_t prefix;
    const char *place;
} entry;

typedef struct sizes {
    uint32_t key;
    uint32_t line;
} sizes;

typedef struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    char bytes[];
} chunk;

struct store {
    entry *entries;
    size_t count;
    size_t capacity;
    chunk *chunks; /* list of chunks; the store adds items to the first chunk */
    size_t chunk_bytes;
    bool keys_differ; /* a key is longer than its prefix */
};

store *store_new(void)
{
    return nl_memory_check(calloc(1, sizeof(store)));
}

static void free_chunks(chunk *c)
{
    for (chunk *next; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
}

void store_free(store *s)
{
    free_chunks(s->chunks);
    free(s->entries);
    free(s);
}

void store_clear(store *s)
{
    if (s->chunks != NULL) {
        free_chunks(s->chunks->next);
        s->chunks->next = NULL;
        s->chunks->used = 0;
        s->chunk_bytes = s->chunks->size;
    }
    s->count = 0;
    s->keys_differ = false;
}

static char *allocate(store *s, size_t size)
{
    if (s->chunks == NULL || s->chunks->size - s->chunks->used < size) {
        size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        chunk *c = malloc(sizeof *c + capacity);
        if (c == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory; use a smaller --buffer-size");
        *c = (chunk){.next = s->chunks, .size = capacity};
        s->chunks = c;
        s->chunk_bytes += capacity;
    }
    char *bytes = s->chunks->bytes + s->chunks->used;
    s->chunks->used += size;
    return bytes;
}

static void store_grow(store *s)
{
    s->capacity = s->capacity == 0 ? 4096 : s->capacity + s->capacity / 2;
    s->entries = realloc(s->entries, s->capacity * sizeof *s->entries);
    if (s->entries == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory; use a smaller --buffer-size");
}

void store_add(store *s, const char *key, size_t key_size, const char *line, size_t line_size)
{
    if (s->count == s->capacity)
        store_grow(s);
    size_t rest = key_size > 8 ? key_size - 8 : 0;
    sizes both = {(uint32_t)rest, (uint32_t)line_size};
    char *place = allocate(s, sizeof both + rest + line_size);
    memcpy(place, &both, sizeof both);
    memcpy(place + sizeof both, key + key_size - rest, rest);
    memcpy(place + sizeof both + rest, line, line_size);
    s->entries[s->count++] = (entry){item_prefix(key, key_size), place};
    s->keys_differ |= rest > 0;
}

size_t store_memory(const store *s)
{
    return s->chunk_bytes + s->capacity * sizeof(entry) + s->count * sizeof(entry) / 2 + CHUNK_SIZE;
}

size_t store_count(const store *s)
{
    return s->count;
}

static item item_of(const entry *e)
{
    sizes both;
    memcpy(&both, e->place, sizeof both);
    const char *key = e->place + sizeof both;
    return (item){e->prefix, key, key + both.key, both.key, both.line};
}

item store_get(const store *s, size_t i)
{
    return item_of(&s->entries[i]);
}

/* Returns whether entry b must precede entry a. */
static inline bool out_of_order(const store *s, const entry *a, const entry *b)
{
    if (a->prefix != b->prefix || !s->keys_differ)
        return b->prefix < a->prefix;
    item first = item_of(a), second = item_of(b);
    return item_compare(&second, &first) < 0;
}

static void insert_each(const store *s, entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        entry moving = entries[i];
        size_t to = i;
        for (; to > 0 && out_of_order(s, &entries[to - 1], &moving); to--)
            entries[to] = entries[to - 1];
        entries[to] = moving;
    }
}

/* Merges the sorted ranges entries[0..middle) and entries[middle..count). `spare` has space for the first range. */
static void merge_halves(const store *s, entry *entries, size_t middle, size_t count, entry *spare)
{
    if (!out_of_order(s, &entries[middle - 1], &entries[middle]))
        return; /* the ranges are already in order */
    memcpy(spare, entries, middle * sizeof *entries);
    size_t left = 0, right = middle, to = 0;
    while (left < middle && right < count)
        entries[to++] = out_of_order(s, &spare[left], &entries[right]) ? entries[right++] : spare[left++];
    memcpy(entries + to, spare + left, (middle - left) * sizeof *entries);
}

static void merge_sort(const store *s, entry *entries, size_t count, entry *spare)
{
    if (count <= SHORT_RUN) {
        insert_each(s, entries, count);
        return;
    }
    size_t middle = count / 2;
    merge_sort(s, entries, middle, spare);
    merge_sort(s, entries + middle, count - middle, spare);
    merge_halves(s, entries, middle, count, spare);
}

typedef struct half {
    const store *s;
    entry *entries;
    size_t count;
    entry *spare;
} half;

static void *sort_half(void *argument)
{
    half *h = argument;
    merge_sort(h->s, h->entries, h->count, h->spare);
    return NULL;
}

void store_sort(store *s)
{
    size_t disorder = 1;
    while (disorder < s->count && !out_of_order(s, &s->entries[disorder - 1], &s->entries[disorder]))
        disorder++;
    if (disorder >= s->count)
        return;
    size_t middle = s->count / 2;
    entry *spare = malloc((s->count - middle + 1) * sizeof *spare);
    if (spare == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory; use a smaller --buffer-size");
    /* each half uses half of `spare` */
    half first = {s, s->entries, middle, spare};
    half second = {s, s->entries + middle, s->count - middle, spare + middle / 2};
    pthread_t thread;
    if (s->count >= THREAD_MIN && pthread_create(&thread, NULL, sort_half, &first) == 0) {
        sort_half(&second);
        pthread_join(thread, NULL);
        merge_halves(s, s->entries, middle, s->count, spare);
    } else {
        merge_sort(s, s->entries, s->count, spare);
    }
    free(spare);
}
