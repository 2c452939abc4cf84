#include "config.h"

#include "runs.h"

#include "big.h"
#include "cursors.h"
#include "order.h"
#include "temporary.h"
#include "base/memory.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    BLOCK_MAX = 256 << 10, /* approximate bytes of text in a block */
    BLOCK_MIN = 16 << 10,
    BLOCKS_IN_MEMORY = 1024, /* a block has 1/1024 of the memory, within BLOCK_MIN and BLOCK_MAX bytes */
    BLOCK_COST = 2,          /* maximum ratio of a block's memory to its text */
    FORGOTTEN_AT_ONCE = 4 << 20,
};

typedef struct run {
    off_t start, end;
} run;

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
    runs *r = nl_memory_check(calloc(1, sizeof *r));
    size_t block = memory / BLOCKS_IN_MEMORY;
    *r = (runs){.directory = directory,
                .memory = memory,
                .block = block > BLOCK_MAX   ? BLOCK_MAX
                         : block < BLOCK_MIN ? BLOCK_MIN
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
    file->runs = nl_memory_check(realloc(file->runs, (file->count + 1) * sizeof *file->runs));
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
    gather_lines(t, o.lines, o.count, r->block, true, write_block, &to);
    end_run(&r->file);
    order_free(&o);
    table_clear(t);
}

/* ---- reading ---- */

typedef struct run_cursor {
    cursor base;
    const runs *r;
    int fd;
    off_t at, end;
    off_t kept; /* the disk space before this offset in the file has been freed */
    char *block;
    size_t capacity;
} run_cursor;

static bool read_block(cursor *base)
{
    run_cursor *c = (run_cursor *)base;
    if (c->at == c->end)
        return false;
    const char *directory = c->r->directory;
    off_t start = c->at;
    header h;
    temporary_read(c->fd, directory, &h, sizeof h, start);
    size_t places = h.lines * sizeof(nl_scanned_line), size = places + h.text_size;
    if (size > c->capacity) {
        c->block = big_resize(c->block, c->capacity, size);
        c->capacity = size;
    }
    temporary_read(c->fd, directory, c->block, size, start + (off_t)sizeof h);
    c->at += (off_t)(sizeof h + size);
    temporary_expect(c->fd, c->at, c->end - c->at < (off_t)size ? c->end - c->at : (off_t)size);
    if (start - c->kept >= FORGOTTEN_AT_ONCE) {
        temporary_forget(c->fd, c->kept, start - c->kept);
        c->kept = start;
    }
    base->lines = (const nl_scanned_line *)(const void *)c->block;
    base->count = h.lines;
    base->next = 0;
    base->text = c->block + places;
    return true;
}

static bool no_more(cursor *base)
{
    (void)base;
    return false;
}

/* ---- merging ---- */

/* Merges the runs [first, end) with the lines of the cursor `last`, which may have no lines. */
static void merge_some(const runs *r, const run_file *file, size_t first, size_t end, cursor *last, gather_sink *sink,
                       void *user)
{
    run_cursor *cursors = nl_memory_check(calloc(end - first, sizeof *cursors));
    cursor **all = nl_memory_check(calloc(end - first + 1, sizeof(cursor *)));
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        const run *from = &file->runs[i];
        run_cursor *c = &cursors[i - first];
        *c = (run_cursor){.base = {.rank = i, .more = read_block},
                          .r = r,
                          .fd = file->fd,
                          .at = from->start,
                          .end = from->end,
                          .kept = from->start};
        if (read_block(&c->base))
            all[count++] = &c->base;
    }
    if (last->count > 0)
        all[count++] = last;
    cursors_merge(all, count, sink, user);
    for (size_t i = 0; i < end - first; i++)
        big_free(cursors[i].block, cursors[i].capacity);
    free(cursors);
    free(all);
}

/* Merges the runs in groups of at most `maximum` runs, because the memory is too small for one block of every run. */
static void merge_groups(runs *r, size_t maximum)
{
    run_file merged = {.fd = -1};
    block_sink to = {r, &merged};
    for (size_t first = 0; first < r->file.count; first += maximum) {
        size_t end = first + maximum < r->file.count ? first + maximum : r->file.count;
        begin_run(r, &merged);
        cursor none = {0};
        merge_some(r, &r->file, first, end, &none, write_block, &to);
        end_run(&merged);
    }
    free_file(&r->file);
    r->file = merged;
}

/* Returns the memory for merging `count` runs, in bytes. */
static size_t merge_size(const runs *r, size_t count)
{
    return count * BLOCK_COST * r->block + cursors_merge_size;
}

void runs_merge(runs *r, table *t, gather_sink *sink, void *user)
{
    if (table_refers(t) || table_size(t) + merge_size(r, r->file.count) > r->memory) {
        runs_add(r, t);
        table_release(t);
    }
    size_t maximum = (r->memory - merge_size(r, 0)) / (BLOCK_COST * r->block);
    while (r->file.count > maximum)
        merge_groups(r, maximum);
    order o = order_table(t);
    cursor last = {.rank = r->file.count, .lines = o.lines, .count = o.count, .text = t->text, .more = no_more};
    merge_some(r, &r->file, 0, r->file.count, &last, sink, user);
    order_free(&o);
}
