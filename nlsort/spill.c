#include "config.h"

#include "spill.h"

#include "temporary.h"
#include "base/memory.h"

#include <stdlib.h>
#include <unistd.h>

enum { WRITE_SIZE = 1 << 20 };

typedef struct run {
    off_t start;
    off_t end;
} run;

struct spill {
    const char *directory;
    int fd;
    run *runs;
    size_t count;
    nl_buffer buffer;
    off_t size;
};

/* The header of an item in the file. The rest of the item's key and its line follow. */
typedef struct stored {
    uint64_t prefix;
    uint32_t key_size;
    uint32_t line_size;
} stored;

spill *spill_new(const char *directory)
{
    spill *s = nl_memory_check(calloc(1, sizeof *s));
    s->directory = directory;
    s->fd = -1;
    return s;
}

void spill_free(spill *s)
{
    if (s->fd >= 0)
        close(s->fd);
    nl_buffer_free(&s->buffer);
    free(s->runs);
    free(s);
}

static void write_buffer(spill *s)
{
    temporary_write(s->fd, s->directory, s->buffer.data, s->buffer.size);
    s->size += (off_t)s->buffer.size;
    s->buffer.size = 0;
}

void spill_begin(spill *s)
{
    if (s->fd < 0)
        s->fd = temporary_open(s->directory);
    s->runs = nl_memory_check(realloc(s->runs, (s->count + 1) * sizeof *s->runs));
    s->runs[s->count].start = s->size;
}

void spill_put(spill *s, const item *it)
{
    stored header = {it->prefix, it->key_size, it->line_size};
    if (s->buffer.size + sizeof header + it->key_size + it->line_size > WRITE_SIZE)
        write_buffer(s);
    nl_buffer_append(&s->buffer, &header, sizeof header);
    nl_buffer_append(&s->buffer, it->key, it->key_size);
    nl_buffer_append(&s->buffer, it->line, it->line_size);
}

void spill_end(spill *s)
{
    write_buffer(s);
    s->runs[s->count++].end = s->size;
}

size_t spill_run_count(const spill *s)
{
    return s->count;
}

typedef struct run_input {
    merge_input base;
    int fd;
    off_t at; /* offset in the file of the next read */
    off_t end;
    char *buffer;
    size_t size;
    size_t from, to; /* bounds of the unused part of the buffer */
    const char *directory;
} run_input;

/* Reads until the buffer contains at least `wanted` bytes. Returns false at the end of the run. */
static bool fill(run_input *r, size_t wanted)
{
    if (r->to - r->from >= wanted)
        return true;
    memmove(r->buffer, r->buffer + r->from, r->to - r->from);
    r->to -= r->from;
    r->from = 0;
    if (wanted > r->size) {
        r->size = wanted;
        r->buffer = nl_memory_check(realloc(r->buffer, r->size));
    }
    size_t capacity = r->size - r->to, left = (size_t)(r->end - r->at), more = capacity < left ? capacity : left;
    temporary_read(r->fd, r->directory, r->buffer + r->to, more, r->at);
    r->to += more;
    r->at += (off_t)more;
    return r->to >= wanted;
}

static bool run_next(merge_input *base, item *out)
{
    run_input *r = (run_input *)base;
    stored header;
    if (!fill(r, sizeof header))
        return false;
    memcpy(&header, r->buffer + r->from, sizeof header);
    size_t size = sizeof header + header.key_size + header.line_size;
    fill(r, size);
    const char *key = r->buffer + r->from + sizeof header;
    *out = (item){header.prefix, key, key + header.key_size, header.key_size, header.line_size};
    r->from += size;
    return true;
}

static void run_close(merge_input *base)
{
    free(((run_input *)base)->buffer);
    free(base);
}

merge_input *spill_open_run(spill *s, size_t i, size_t buffer_size)
{
    run_input *r = nl_memory_check(calloc(1, sizeof *r));
    char *buffer = nl_memory_check(malloc(buffer_size));
    *r = (run_input){
        .base = {run_next, run_close},
        .fd = s->fd,
        .at = s->runs[i].start,
        .end = s->runs[i].end,
        .buffer = buffer,
        .size = buffer_size,
        .directory = s->directory,
    };
    return &r->base;
}
