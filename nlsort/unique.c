#include "config.h"

#include "unique.h"

#include "merge.h"
#include "spill.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_COST = 2 * sizeof(nl_string), /* bytes per line, for the list and for the copy that qsort makes */
    RUN_BUFFER_MAX = 1 << 20,
    RUN_BUFFER_MIN = 16 << 10,
    MERGED_RUNS_MIN = 2,
};

struct unique {
    gather_sink *sink;
    void *user;
    const char *directory;
    size_t memory;   /* maximum memory for a group in bytes */
    int64_t time_ns; /* time of the current group, which may get more lines */
    nl_buffer held;  /* the lines of the group that are kept in memory */
    size_t held_count;
    spill *runs; /* the lines of the group that are on disk, or NULL */
    size_t longest_line;
    nl_string *lines; /* the distinct lines of a text in order, with their newlines */
    size_t capacity;
};

unique *unique_new(size_t memory, const char *directory, gather_sink *sink, void *user)
{
    unique *u = nl_memory_check(calloc(1, sizeof *u));
    *u = (unique){.sink = sink, .user = user, .directory = directory, .memory = memory};
    return u;
}

void unique_free(unique *u)
{
    nl_buffer_free(&u->held);
    free(u->lines);
    free(u);
}

static int compare_lines(const void *first, const void *second)
{
    const nl_string *a = first, *b = second;
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static void put_text(unique *u, const char *text, size_t size)
{
    if (size > 0)
        u->sink(u->user, text, size, NULL, 1);
}

/* Lists the distinct lines of a text in u->lines, in order. Returns their number. */
static size_t list_distinct_lines(unique *u, const char *text, size_t size, size_t count)
{
    if (count > u->capacity) {
        u->capacity = count;
        u->lines = nl_memory_check(reallocarray(u->lines, u->capacity, sizeof *u->lines));
    }
    size_t listed = 0;
    for (const char *at = text, *end = text + size; at < end; listed++) {
        const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        u->lines[listed] = (nl_string){at, (size_t)(next - at)};
        at = next;
    }
    if (listed > 1)
        qsort(u->lines, listed, sizeof *u->lines, compare_lines);
    size_t kept = 0;
    for (size_t i = 0; i < listed; i++)
        if (kept == 0 || compare_lines(&u->lines[kept - 1], &u->lines[i]) != 0)
            u->lines[kept++] = u->lines[i];
    return kept;
}

/* Passes the distinct lines of a group in memory to the sink. */
static void put_group(unique *u, const char *text, size_t size, size_t count)
{
    size_t distinct = list_distinct_lines(u, text, size, count);
    for (size_t i = 0; i < distinct; i++)
        put_text(u, u->lines[i].data, u->lines[i].size);
}

/* ---- groups that are larger than memory ---- */

static void spill_held(unique *u)
{
    size_t distinct = list_distinct_lines(u, u->held.data, u->held.size, u->held_count);
    if (u->runs == NULL)
        u->runs = spill_new(u->directory);
    spill_begin(u->runs);
    for (size_t i = 0; i < distinct; i++) {
        nl_string line = u->lines[i];
        item it = {item_prefix(line.data, line.size), line.data, line.data, (uint32_t)line.size, 0};
        spill_put(u->runs, &it);
        u->longest_line = line.size > u->longest_line ? line.size : u->longest_line;
    }
    spill_end(u->runs);
    u->held.size = u->held_count = 0;
}

static void hold(unique *u, const char *text, size_t size, size_t count)
{
    nl_buffer_append(&u->held, text, size);
    u->held_count += count;
    if (u->held.size + u->held_count * LINE_COST >
        u->memory / 2) /* half of the memory, because the spill also buffers a part of the group */
        spill_held(u);
}

/*
 * Merges the distinct lines of the runs [first, end) into a run in `merged`. If `merged` is NULL, passes the lines to
 * the sink instead.
 */
static void merge_runs(unique *u, size_t first, size_t end, spill *merged)
{
    size_t count = end - first, buffer = u->memory / count;
    buffer = buffer > RUN_BUFFER_MAX ? RUN_BUFFER_MAX : buffer < RUN_BUFFER_MIN ? RUN_BUFFER_MIN : buffer;
    merge_input **inputs = nl_memory_check(calloc(count, sizeof(merge_input *)));
    for (size_t i = 0; i < count; i++)
        inputs[i] = spill_open_run(u->runs, first + i, buffer);
    merge *m = merge_new(inputs, count);
    nl_buffer previous = {0};
    item it;
    while (merge_next(m, &it)) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): keys are not empty */
        if (previous.size == it.key_size && memcmp(previous.data, it.key, it.key_size) == 0)
            continue;
        previous.size = 0;
        nl_buffer_append(&previous, it.key, it.key_size);
        if (merged != NULL)
            spill_put(merged, &it);
        else
            put_text(u, it.key, it.key_size);
    }
    nl_buffer_free(&previous);
    merge_free(m);
    free(inputs);
}

/* Merges the runs in groups of up to merged_runs runs. Each group becomes one run. */
static void merge_into_fewer_runs(unique *u, size_t merged_runs)
{
    spill *fewer = spill_new(u->directory);
    size_t count = spill_run_count(u->runs);
    for (size_t first = 0; first < count; first += merged_runs) {
        spill_begin(fewer);
        merge_runs(u, first, first + merged_runs < count ? first + merged_runs : count, fewer);
        spill_end(fewer);
    }
    spill_free(u->runs);
    u->runs = fewer;
}

static void put_spilled_group(unique *u)
{
    if (u->held_count > 0)
        spill_held(u);
    nl_buffer_free(&u->held); /* the buffers of the runs need the memory */
    free(u->lines);
    u->lines = NULL;
    u->capacity = 0;
    size_t buffer = u->longest_line > RUN_BUFFER_MIN ? u->longest_line : RUN_BUFFER_MIN;
    size_t merged_runs = u->memory / buffer > MERGED_RUNS_MIN ? u->memory / buffer : MERGED_RUNS_MIN;
    while (spill_run_count(u->runs) > merged_runs)
        merge_into_fewer_runs(u, merged_runs);
    merge_runs(u, 0, spill_run_count(u->runs), NULL);
    spill_free(u->runs);
    u->runs = NULL;
    u->longest_line = 0;
}

/* ---- input ---- */

static bool has_group(const unique *u)
{
    return u->held_count > 0 || u->runs != NULL;
}

void unique_end(unique *u)
{
    if (u->runs != NULL)
        put_spilled_group(u);
    else
        put_group(u, u->held.data, u->held.size, u->held_count);
    u->held.size = u->held_count = 0;
}

/* Returns the index of the first line after line i that has a different time, or `count`. */
static size_t end_of_group(const nl_scanned_line *lines, size_t i, size_t count)
{
    int64_t time_ns = lines[i].time_ns;
    while (i < count && lines[i].time_ns == time_ns)
        i++;
    return i;
}

void unique_put(unique *u, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    size_t i = has_group(u) && count > 0 && lines[0].time_ns == u->time_ns ? end_of_group(lines, 0, count) : 0;
    size_t from = i < count ? nl_line_offset(lines[i]) : size; /* the earlier lines belong to the current group */
    hold(u, text, from, i);
    if (i == count)
        return;
    unique_end(u);
    for (size_t next; i < count; i = next) {
        next = end_of_group(lines, i, count);
        if (next == i + 1 && next < count)
            continue; /* a group of one line is written together with its neighbors */
        size_t start = nl_line_offset(lines[i]), end = next < count ? nl_line_offset(lines[next]) : size;
        put_text(u, text + from, start - from);
        if (next < count)
            put_group(u, text + start, end - start, next - i);
        else
            hold(u, text + start, end - start, next - i);
        from = end;
    }
    u->time_ns = lines[count - 1].time_ns;
}
