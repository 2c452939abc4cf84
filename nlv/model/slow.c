#include "config.h"

#include "model/slow.h"

#include "model/edges.h"

#include <stdlib.h>

enum { REQUESTS = 2000, STEPS_MAX = 200 };

/* A line of a critical path. */
typedef struct path_line {
    uint64_t kind; /* identifies the lifeline and the two rows */
    int64_t end_ns;
    double long_ns; /* duration of the part in the time range */
    uint32_t from, to;
} path_line;

static uint64_t kind_of(const store *s, size_t lifeline, unsigned layer, uint32_t from, uint32_t to)
{
    return (uint64_t)lifeline << 32 | (uint64_t)spec_step_of(s->spec, store_event(s, from), layer).row << 16 |
           spec_step_of(s->spec, store_event(s, to), layer).row;
}

/* Adds the lines of a request's path that are at least partly between two times. */
static void add_path(const store *s, size_t lifeline, unsigned layer, uint32_t last, int64_t from_ns, int64_t to_ns,
                     GArray *lines)
{
    uint32_t causes[EDGES_MAX];
    for (unsigned steps = 0; steps < STEPS_MAX && edges_find(s, last, layer, causes) > 0; steps++) {
        uint32_t from = causes[0]; /* the latest cause */
        path_line line = {kind_of(s, lifeline, layer, from, last), store_time(s, last), 0, from, last};
        line.long_ns = (double)(MIN(store_time(s, last), to_ns) - MAX(store_time(s, from), from_ns));
        if (store_time(s, last) >= from_ns && store_time(s, from) <= to_ns)
            g_array_append_val(lines, line);
        last = from;
    }
}

static size_t add_requests(const store *s, size_t lifeline, int64_t from_ns, int64_t to_ns, GArray *lines)
{
    int64_t later_ns;
    if (__builtin_sub_overflow(to_ns, from_ns, &later_ns) || __builtin_add_overflow(to_ns, later_ns, &later_ns))
        later_ns = INT64_MAX - 1;
    uint32_t first = store_find_time(s, from_ns), end = store_find_time(s, later_ns + 1);
    unsigned layer = s->spec->lifelines[lifeline].layer;
    const objects *all = &s->objects[layer];
    size_t looked_at = 0;
    for (uint64_t i = 0, step = MAX(all->count / REQUESTS, 1); i < all->count; i += step) {
        uint32_t last = store_last_step(s, (uint32_t)i, layer);
        if (last == STORE_NONE || last < first || last >= end ||
            spec_step_of(s->spec, store_event(s, last), layer).lifeline != lifeline)
            continue;
        add_path(s, lifeline, layer, last, from_ns, to_ns, lines);
        looked_at++;
    }
    return looked_at;
}

static int by_kind(const void *a, const void *b)
{
    const path_line *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->long_ns > y->long_ns) - (x->long_ns < y->long_ns);
}

static int by_end(const void *a, const void *b)
{
    const path_line *x = a, *y = b;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Returns the result for the lines of one kind, which are sorted by duration. */
static slow_line describe(path_line *lines, size_t count)
{
    const path_line *longest = &lines[count - 1];
    slow_line found = {.is_found = longest->long_ns > 0,
                       .lifeline = (size_t)(longest->kind >> 32),
                       .from = longest->from,
                       .to = longest->to,
                       .typical_ns = lines[count / 2].long_ns};
    qsort(lines, count, sizeof *lines, by_end);
    found.typical_at = lines[count / 2].end_ns;
    return found;
}

slow_line slow_find(const store *s, int64_t from_ns, int64_t to_ns)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(path_line));
    slow_line found = {0};
    size_t requests = 0;
    for (size_t i = 0; i < s->spec->lifeline_count; i++)
        requests += add_requests(s, i, from_ns, to_ns, lines);
    qsort(lines->data, lines->len, sizeof(path_line), by_kind);
    double sum = 0, max = 0;
    guint from = 0, best = 0, best_count = 0;
    for (guint i = 0; i < lines->len; i++) {
        const path_line *line = &g_array_index(lines, path_line, i);
        sum += line->long_ns;
        if (i + 1 < lines->len && g_array_index(lines, path_line, i + 1).kind == line->kind)
            continue;
        if (sum > max) {
            max = sum;
            best = from;
            best_count = i + 1 - from;
        }
        from = i + 1;
        sum = 0;
    }
    if (best_count > 0)
        found = describe(&g_array_index(lines, path_line, best), best_count);
    found.requests = requests;
    g_array_free(lines, TRUE);
    return found;
}
