#include "config.h"

#include "model/slow.h"

#include "model/edges.h"
#include "model/request_lines.h"
#include "base/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS = 2000,
    RECORDS_MAX = 20000, /* if a time range has more records, the module samples its requests */
    STEPS_MAX = 200,
    GRAPHS_MAX = 400
};

#define KIND_BAR (UINT64_C(1) << 31)

/* A line of a critical path, or a bar: the span of a record with a duration. */
typedef struct path_line {
    uint64_t kind;            /* identifies the lifeline and the two rows; with KIND_BAR: the lifeline and the row */
    int64_t begin_ns, end_ns; /* times of the whole path */
    double long_ns;           /* duration of the part of the line in the time range, in nanoseconds */
    uint32_t from, to;        /* records at the ends; equal for a bar */
} path_line;

static uint64_t kind_of(const store *s, size_t lifeline, unsigned layer, uint32_t from, uint32_t to)
{
    return (uint64_t)lifeline << 32 | (uint64_t)spec_step_of(s->spec, store_event(s, from), layer).row << 16 |
           spec_step_of(s->spec, store_event(s, to), layer).row;
}

/* The requests of a lifeline that the module examines. */
typedef struct path_search {
    const model *model;
    const store *s;
    size_t lifeline;
    unsigned layer;
    bool has_graphs; /* there are few requests, so the module uses their graphs */
} path_search;

/* Returns the latest cause of a record, or STORE_NONE. `request` is NULL if graphs are not used. */
static uint32_t find_latest_cause(const path_search *p, const request_drawn *request, uint32_t record)
{
    uint32_t causes[EDGES_MAX];
    if (request != NULL) {
        const request_line *line = request_lines_cause(request, record);
        return line != NULL ? line->from : (uint32_t)STORE_NONE;
    }
    return edges_find(p->s, record, p->layer, causes) > 0 ? causes[0] : (uint32_t)STORE_NONE;
}

/* Returns the start of the span that a record ends. Without such a span, returns the time of the record. */
static int64_t find_begin(const store *s, uint32_t record)
{
    const double duration_ns = store_duration(s, record);
    return store_time(s, record) - (int64_t)CLAMP(duration_ns, 0, 4e18);
}

/* Appends a line or bar of a path if at least a part of it is between two times. */
static void add_line(const path_line *line, int64_t begin_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                     GArray *lines)
{
    path_line own = *line;
    own.long_ns = (double)(MIN(end_ns, to_ns) - MAX(begin_ns, from_ns));
    if (end_ns >= from_ns && begin_ns <= to_ns)
        g_array_append_val(lines, own);
}

/*
 * Appends to `lines` the lines of a request's critical path that are at least partly between two times. If no cause of
 * a record is inside its bar, the time of the bar belongs to the record's span alone. In this case, also appends the
 * bar, and ends the line from the cause at the start of the bar.
 */
static void add_path(const path_search *p, uint32_t object, int64_t from_ns, int64_t to_ns, GArray *lines)
{
    const store *s = p->s;
    const request_drawn *request = p->has_graphs ? request_lines_find(p->model, p->lifeline, object) : NULL;
    uint32_t end = store_last_step(s, object, p->layer), last = end;
    int64_t first_ns = store_time(s, end);
    const guint first = lines->len;
    for (unsigned steps = 0; steps < STEPS_MAX && last != STORE_NONE; steps++) {
        const uint32_t from = find_latest_cause(p, request, last);
        int64_t end_ns = store_time(s, last);
        const int64_t bar_ns = find_begin(s, last), begin_ns = from != STORE_NONE ? store_time(s, from) : bar_ns;
        first_ns = MIN(first_ns, bar_ns);
        if (bar_ns < end_ns && bar_ns >= begin_ns) {
            const path_line bar = {
                .kind = kind_of(s, p->lifeline, p->layer, last, last) | KIND_BAR, .from = last, .to = last};
            add_line(&bar, bar_ns, end_ns, from_ns, to_ns, lines);
            end_ns = bar_ns;
        }
        if (from != STORE_NONE) {
            const path_line line = {.kind = kind_of(s, p->lifeline, p->layer, from, last), .from = from, .to = last};
            add_line(&line, begin_ns, end_ns, from_ns, to_ns, lines);
            first_ns = MIN(first_ns, begin_ns);
        }
        last = from;
    }
    for (guint i = first; i < lines->len; i++) {
        g_array_index(lines, path_line, i).begin_ns = first_ns;
        g_array_index(lines, path_line, i).end_ns = store_time(s, end);
    }
}

static bool is_in_lifeline(const path_search *p, uint32_t last)
{
    return spec_step_of(p->s->spec, store_event(p->s, last), p->layer).lifeline == p->lifeline;
}

/* Appends the requests (uint32_t) whose last records have numbers from `first` to `end` - 1. */
static void find_requests(const path_search *p, uint32_t first, uint32_t end, GArray *found)
{
    for (uint32_t record = first; record < end; record++) {
        const uint32_t object = store_object(p->s, record, p->layer);
        if (object != STORE_NONE && store_last_step(p->s, object, p->layer) == record && is_in_lifeline(p, record))
            g_array_append_val(found, object);
    }
}

/* Like find_requests, but examines only a sample of all requests. */
static void sample_requests(const path_search *p, uint32_t first, uint32_t end, GArray *found)
{
    const objects *all = &p->s->objects[p->layer];
    for (uint64_t i = 0, step = MAX(all->count / REQUESTS, 1); i < all->count; i += step) {
        const uint32_t object = (uint32_t)i, last = store_last_step(p->s, object, p->layer);
        if (last != STORE_NONE && last >= first && last < end && is_in_lifeline(p, last))
            g_array_append_val(found, object);
    }
}

static size_t add_requests(const model *m, size_t lifeline, int64_t from_ns, int64_t to_ns, GArray *lines,
                           bool *is_sampled)
{
    const store *s = model_store(m);
    int64_t later_ns;
    if (__builtin_sub_overflow(to_ns, from_ns, &later_ns) || __builtin_add_overflow(to_ns, later_ns, &later_ns))
        later_ns = INT64_MAX - 1;
    uint32_t first = store_find_time(s, from_ns), end = store_find_time(s, later_ns + 1);
    path_search p = {m, s, lifeline, s->spec->lifelines[lifeline].layer, false};
    GArray *found = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    *is_sampled = *is_sampled || end - first > RECORDS_MAX;
    (end - first <= RECORDS_MAX ? find_requests : sample_requests)(&p, first, end, found);
    const size_t count = found->len;
    p.has_graphs = count <= GRAPHS_MAX;
    for (guint i = 0; i < found->len; i++)
        add_path(&p, g_array_index(found, uint32_t, i), from_ns, to_ns, lines);
    g_array_free(found, TRUE);
    return count;
}

static int by_kind(const void *a, const void *b)
{
    const path_line *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->long_ns > y->long_ns) - (x->long_ns < y->long_ns);
}

/* Returns the result for the lines of one kind, which are sorted by duration. */
static slow_line describe(const path_line *lines, guint count)
{
    int64_t *ends = g_new(int64_t, count);
    for (guint i = 0; i < count; i++)
        ends[i] = lines[i].end_ns;
    qsort(ends, count, sizeof *ends, nl_compare_int64);
    const path_line *longest = &lines[count - 1], *shown = longest;
    while (shown > lines && (shown->end_ns < ends[count / 4] || shown->end_ns > ends[count - 1 - count / 4]))
        shown--;
    if (longest->long_ns > 2 * shown->long_ns)
        shown = longest;
    g_free(ends);
    return (slow_line){.is_found = longest->long_ns > 0,
                       .lifeline = (size_t)(longest->kind >> 32),
                       .from = longest->from,
                       .to = longest->to,
                       .begin_ns = shown->begin_ns,
                       .end_ns = shown->end_ns};
}

/* Returns the lines (path_line) of the critical paths in a time range. Sets *requests to the number of requests. */
static GArray *find_lines(const model *m, int64_t from_ns, int64_t to_ns, size_t *requests, bool *is_sampled)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(path_line));
    *requests = 0;
    *is_sampled = false;
    for (size_t i = 0; i < model_store(m)->spec->lifeline_count; i++)
        *requests += add_requests(m, i, from_ns, to_ns, lines, is_sampled);
    return lines;
}

slow_line slow_find_longest(const model *m, int64_t from_ns, int64_t to_ns)
{
    slow_line found = {0};
    size_t requests;
    bool is_sampled;
    double max_ns = 0;
    GArray *lines = find_lines(m, from_ns, to_ns, &requests, &is_sampled);
    for (guint i = 0; i < lines->len; i++) {
        const path_line *line = &g_array_index(lines, path_line, i);
        if (line->long_ns <= max_ns)
            continue;
        max_ns = line->long_ns;
        found = describe(line, 1);
    }
    found.requests = requests;
    found.is_sampled = is_sampled;
    g_array_free(lines, TRUE);
    return found;
}

slow_line slow_find(const model *m, int64_t from_ns, int64_t to_ns)
{
    slow_line found = {0};
    size_t requests;
    bool is_sampled;
    GArray *lines = find_lines(m, from_ns, to_ns, &requests, &is_sampled);
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
    found.is_sampled = is_sampled;
    g_array_free(lines, TRUE);
    return found;
}

char *slow_hosts(const model *m, const slow_line *slow)
{
    const store *s = model_store(m);
    const uint16_t from = store_host(s, slow->from), to = store_host(s, slow->to);
    const spec_lifeline *l = &s->spec->lifelines[slow->lifeline];
    const char *from_text = names_text(s->names.hosts, from), *to_text = names_text(s->names.hosts, to);
    if (from == to)
        return g_strdup(to_text);
    const uint32_t object = store_object(s, slow->to, l->layer);
    const unsigned number = model_object_color(m, slow->lifeline, object);
    const char *color = number < model_color_count(m) ? model_color_text(m, number) : "";
    if (l->color != COLOR_BY_HOST || strcmp(color, from_text) == 0 || strcmp(color, to_text) == 0)
        return g_strdup(color);
    return g_strdup_printf("%s \342\206\222 %s", from_text, to_text);
}

static bool begins_request(const store *s, uint32_t record, size_t lifeline)
{
    const unsigned layer = s->spec->lifelines[lifeline].layer;
    return store_object(s, record, layer) != STORE_NONE && store_previous(s, record, layer) == STORE_NONE &&
           spec_step_of(s->spec, store_event(s, record), layer).lifeline == lifeline;
}

/*
 * Returns the first record of the nearest request that begins after `record`, or before `record` if `step` is -1.
 * Returns STORE_NONE if there is no such request.
 */
static uint32_t next_request(const store *s, uint32_t record, int step, size_t lifeline)
{
    for (uint32_t i = record + (uint32_t)step; i >= s->first && i < s->count; i += (uint32_t)step)
        if (begins_request(s, i, lifeline))
            return i;
    return STORE_NONE;
}

void slow_find_neighbours(const store *s, const slow_line *slow, unsigned count, int64_t *from_ns, int64_t *to_ns)
{
    enum { LENGTH = 60 }; /* maximum length of the range, as a multiple of the path's length */
    const double max_ns = LENGTH * ((double)slow->end_ns - (double)slow->begin_ns);
    uint32_t first = store_find_time(s, slow->begin_ns), last = store_find_time(s, slow->end_ns);
    unsigned begun = 0;
    *from_ns = slow->begin_ns;
    *to_ns = slow->end_ns;
    for (uint32_t i = first; i <= last; i++)
        begun += begins_request(s, i, slow->lifeline);
    uint32_t before = next_request(s, first, -1, slow->lifeline), after = next_request(s, last, 1, slow->lifeline);
    for (; begun < count && (before != STORE_NONE || after != STORE_NONE); begun++) {
        const double left_ns = before == STORE_NONE ? INFINITY : (double)(*from_ns - store_time(s, before)),
                     right_ns = after == STORE_NONE ? INFINITY : (double)(store_time(s, after) - *to_ns);
        if ((double)(*to_ns - *from_ns) + MIN(left_ns, right_ns) > max_ns)
            break;
        if (left_ns < right_ns) {
            *from_ns = MIN(*from_ns, store_time(s, before));
            before = next_request(s, before, -1, slow->lifeline);
        } else {
            *to_ns = MAX(*to_ns, store_time(s, after));
            after = next_request(s, after, 1, slow->lifeline);
        }
    }
    if (after == STORE_NONE) { /* show the end of the last request */
        const int64_t rest_ns = MAX(0, store_time(s, s->count - 1) - *to_ns);
        *to_ns += MIN(rest_ns, slow->end_ns - slow->begin_ns);
    }
}
