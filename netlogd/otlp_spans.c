#include "config.h"

#include "otlp_spans.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "output/outputs.h"
#include "program/program.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CAPACITY_MIN = 1 << 12,
    MEMORY_PER_SPAN = 100,
    SPANS_MAX = 10000000,
    PIECE_COUNT = 8192,
    HUGE_PAGE_SIZE = 1 << 21
};

/* Open addressing with linear probing. 0 marks an empty slot. At most 5/8 of the slots are used. */
typedef struct span_table {
    uint64_t *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} span_table;

static span_table young, old;
static uint64_t seed;

/* The files of the tables. The first two words of each file are the seed and its complement. */
static char *young_path, *old_path; /* NULL: spans are not saved */
static int young_file = -1;
static bool opened;
static nl_buffer unsaved; /* uint64_t: hashes that are not in the file yet; 0 marks the point where the young table
                             became the old table */

/* Returns the slot of a hash, or the empty slot where the hash would be added. */
static uint64_t *find_slot(const span_table *t, uint64_t hash)
{
    size_t at = hash & (t->capacity - 1);
    while (t->slots[at] != 0 && t->slots[at] != hash)
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

static bool has_hash(const span_table *t, uint64_t hash)
{
    return t->capacity > 0 && *find_slot(t, hash) != 0;
}

static uint64_t *empty_slots(size_t count)
{
    size_t size = count * sizeof(uint64_t);
    if (size < HUGE_PAGE_SIZE)
        return nl_memory_check(calloc(count, sizeof(uint64_t)));
    void *slots = nl_memory_check(aligned_alloc(HUGE_PAGE_SIZE, size));
    madvise(slots, size, MADV_HUGEPAGE); /* each look-up would need a page table entry that is not in the cache */
    return memset(slots, 0, size);
}

static void grow_table(span_table *t)
{
    span_table larger = {.capacity = t->capacity == 0 ? CAPACITY_MIN : 2 * t->capacity, .count = t->count};
    larger.slots = empty_slots(larger.capacity);
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i] != 0)
            *find_slot(&larger, t->slots[i]) = t->slots[i];
    free(t->slots);
    *t = larger;
}

static void replace_old(void)
{
    free(old.slots);
    old = young;
    young = (span_table){0};
}

static void add_hash(uint64_t hash)
{
    uint64_t maximum = server_settings()->max_memory / MEMORY_PER_SPAN;
    if (young.count >= (maximum < SPANS_MAX ? maximum : SPANS_MAX)) {
        replace_old();
        if (young_path != NULL)
            nl_buffer_append(&unsaved, &(uint64_t){0}, sizeof hash);
    }
    if (8 * young.count >= 5 * young.capacity)
        grow_table(&young);
    *find_slot(&young, hash) = hash;
    young.count++;
}

/* ---- the files ---- */

/* Stops saving spans and reports the error. netlogd then forgets known spans when it ends. */
static void fail_spans(const char *path)
{
    program_error("%s: %s; after a restart, netlogd may store repeated spans twice", path, strerror(errno));
    free(young_path);
    young_path = NULL;
    unsaved.size = 0;
}

static bool write_words(int fd, const void *words, size_t size)
{
    for (const char *at = words; size > 0;) {
        ssize_t put = write(fd, at, size);
        if (put <= 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* Opens the young table's file for appending. A new file begins with the seed. Returns false on failure. */
static bool open_young(void)
{
    const uint64_t head[] = {seed, ~seed};
    struct stat status;
    young_file = open(young_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (young_file < 0 || fstat(young_file, &status) != 0)
        return false;
    off_t whole = status.st_size / (off_t)sizeof seed * (off_t)sizeof seed; /* a kill may truncate a hash */
    if (whole < (off_t)sizeof head)
        return ftruncate(young_file, 0) == 0 && write_words(young_file, head, sizeof head);
    return whole == status.st_size || ftruncate(young_file, whole) == 0;
}

/* Reads a file into the young table. Ignores a file with another seed. */
static void read_spans(const char *path)
{
    uint64_t words[PIECE_COUNT];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, words, 2 * sizeof *words) : 0;
    if (got == 2 * sizeof *words && words[0] == ~words[1] && words[0] != 0 && (seed == 0 || seed == words[0])) {
        seed = words[0];
        while ((got = read(fd, words, sizeof words)) > 0)
            for (size_t i = 0; i < (size_t)got / sizeof *words; i++)
                if (words[i] != 0 && !has_hash(&young, words[i]))
                    add_hash(words[i]);
    }
    if (fd >= 0)
        close(fd);
}

static void open_spans_files(void)
{
    opened = true;
    young_path = outputs_name_beside(".spans");
    old_path = outputs_name_beside(".spans.old");
    if (young_path != NULL) {
        read_spans(old_path);
        replace_old();
        read_spans(young_path);
        unsaved.size = 0; /* reading may have moved spans to the old table because max-memory is smaller than before;
                           * the files stay unchanged */
    }
    if (seed == 0 && getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uint64_t)nl_monotonic_ns();
    if (young_path != NULL && !open_young())
        fail_spans(young_path);
}

/* Makes the young file the old file, and begins a new young file. Returns false on failure. */
static bool rotate_spans(void)
{
    close(young_file);
    young_file = -1;
    return rename(young_path, old_path) == 0 && open_young();
}

void otlp_spans_save(bool sync)
{
    const uint64_t *words = (const uint64_t *)unsaved.data;
    size_t count = unsaved.size / sizeof *words;
    if (young_path == NULL || count == 0)
        return;
    bool good = true;
    for (size_t from = 0, to; good && from < count; from = to + 1) {
        for (to = from; to < count && words[to] != 0;)
            to++;
        good = write_words(young_file, words + from, (to - from) * sizeof *words) && (to == count || rotate_spans());
    }
    if (good && sync)
        good = fdatasync(young_file) == 0;
    if (good)
        unsaved.size = 0;
    else
        fail_spans(young_path);
}

/* ---- spans ---- */

static uint64_t hash_span(nl_string trace, nl_string span)
{
    if (!opened)
        open_spans_files();
    uint64_t hash = hash_bytes(hash_bytes(seed, trace.data, trace.size), span.data, span.size);
    return hash + (hash == 0);
}

static void fetch_slot(const span_table *t, uint64_t hash)
{
    if (t->capacity > 0)
        __builtin_prefetch(&t->slots[hash & (t->capacity - 1)]);
}

void otlp_spans_expect(nl_string trace, nl_string span)
{
    uint64_t hash = hash_span(trace, span);
    fetch_slot(&young, hash);
    fetch_slot(&old, hash);
}

bool otlp_spans_has(nl_string trace, nl_string span)
{
    uint64_t hash = hash_span(trace, span);
    return has_hash(&young, hash) || has_hash(&old, hash);
}

void otlp_spans_add(nl_string trace, nl_string span)
{
    uint64_t hash = hash_span(trace, span);
    if (has_hash(&young, hash) || has_hash(&old, hash))
        return;
    add_hash(hash);
    if (young_path != NULL)
        nl_buffer_append(&unsaved, &hash, sizeof hash);
}

void otlp_spans_free(void)
{
    replace_old();
    replace_old();
    if (young_file >= 0)
        close(young_file);
    young_file = -1;
    free(young_path);
    free(old_path);
    young_path = old_path = NULL;
    nl_buffer_free(&unsaved);
}
