#include "config.h"

#include "unique.h"

#include "program/program.h"
#include "table.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct unique {
    gather_sink *sink;
    void *user;
    int64_t time_ns; /* of the lines that are held: more of them may come */
    nl_buffer held;
    nl_string *lines; /* of one time, with their newlines */
    size_t capacity;
};

unique *unique_new(gather_sink *sink, void *user)
{
    unique *u = nl_memory_check(calloc(1, sizeof *u));
    u->sink = sink;
    u->user = user;
    return u;
}

void unique_free(unique *u)
{
    nl_buffer_free(&u->held);
    free(u->lines);
    free(u);
}

static int compare(const void *first, const void *second)
{
    const nl_string *a = first, *b = second;
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static void hand_on(unique *u, const char *text, size_t size)
{
    if (size > 0)
        u->sink(u->user, text, size, NULL, 1);
}

/* Hands on lines of one time. */
static void put_group(unique *u, const char *text, size_t size)
{
    size_t count = 0;
    for (const char *at = text, *end = text + size; at < end; count++) {
        if (count == u->capacity) {
            u->capacity = 2 * u->capacity + 64;
            u->lines = nl_memory_check(realloc(u->lines, u->capacity * sizeof *u->lines));
        }
        const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        u->lines[count] = (nl_string){at, (size_t)(next - at)};
        at = next;
    }
    if (count > 1)
        qsort(u->lines, count, sizeof *u->lines, compare);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare(&u->lines[i - 1], &u->lines[i]) != 0)
            hand_on(u, u->lines[i].data, u->lines[i].size);
}

void unique_end(unique *u)
{
    put_group(u, u->held.data, u->held.size);
    u->held.size = 0;
}

/* The first line from i on whose time is another than that of i. */
static size_t end_of_group(const nl_scanned_line *lines, size_t i, size_t count)
{
    int64_t time_ns = lines[i].time_ns;
    while (i < count && lines[i].time_ns == time_ns)
        i++;
    return i;
}

void unique_put(unique *u, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    size_t i = u->held.size > 0 && count > 0 && lines[0].time_ns == u->time_ns ? end_of_group(lines, 0, count) : 0;
    size_t from = i < count ? nl_line_offset(lines[i]) : size; /* what comes before is held or handed on */
    nl_buffer_append(&u->held, text, from);
    if (i == count)
        return;
    unique_end(u);
    for (size_t next; i < count; i = next) {
        next = end_of_group(lines, i, count);
        if (next == i + 1 && next < count)
            continue; /* alone: goes with its neighbours */
        size_t start = nl_line_offset(lines[i]), end = next < count ? nl_line_offset(lines[next]) : size;
        hand_on(u, text + from, start - from);
        if (next < count)
            put_group(u, text + start, end - start);
        else
            nl_buffer_append(&u->held, text + start, end - start);
        from = end;
    }
    u->time_ns = lines[count - 1].time_ns;
}
