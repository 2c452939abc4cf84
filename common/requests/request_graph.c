#include "config.h"

#include "requests/request_graph.h"

#include "base/hash_bytes.h"
#include "requests/awaited_spans.h"
#include "requests/clock_alignment.h"
#include "requests/critical_path.h"
#include "requests/key_map.h"
#include "requests/precedence.h"
#include "requests/whole_spans.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL_ARRAY_MAX = 32,
    ENCLOSING_MAX = 128,  /* maximum number of open spans to examine for the parent of a span or the span of a point */
    WHOLE_SCAN_MAX = 512, /* maximum number of open spans to examine for the parent of a span in another program */
    WHOLE_SCAN_BACK = 16, /* maximum number of spans to examine in addition, because they seem to end before a span that
                             they contain: times are rounded */
};

#define ZONE_NS (INT64_C(1800) * 1000000000)
#define ZONE_DELAY_NS (INT64_C(600) * 1000000000)
#define ZONE_EARLY_NS (INT64_C(60) * 1000000000)
#define ZONE_MAX_NS (26 * 2 * ZONE_NS)

/* The index of a span or event, and its sort key. */
typedef struct sort_item {
    uint64_t major;
    int64_t time_ns;
    int64_t then; /* breaks ties */
    uint32_t index;
} sort_item;

/* The data of a span that is needed only during request_graph_build. */
typedef struct span_work {
    uint32_t next;  /* index of the next span in the list of spans with the same key and no end */
    uint32_t last;  /* index of the last span of the list; only for the first span of a list whose spans do not nest */
    uint32_t below; /* index + 1 of the span that began just before this span in the same thread; set only if
                       has_unnamed is true */
    uint32_t up;    /* index of the smallest span of the same thread that encloses this span */
    int64_t covered_ns; /* end of the part of the span that its children cover so far */
} span_work;

typedef struct graph {
    request_graph public;
    const event_names *names;
    const precedence *edges; /* edges of the latest build; NULL: unknown */
    clock_alignment *alignment;
    critical_path *path;
    uint64_t seed;
    bool has_unnamed; /* some events end spans of their threads without naming the spans (see name_end) */
    bool has_zones;   /* some spans begin and end in different time zones */
    key_map open;     /* maps the key of a span to the index + 1 of the span that ends next (see pair_begin) */
    key_map ids;      /* maps a span ID to the index + 1 of the first span with this ID */
    size_t capacity;  /* maximum number of events */
    uint32_t span_count, item_count;
    request_span *spans;
    span_work *work;      /* by span */
    sort_item *items;     /* items for sorting spans and events */
    uint32_t *event_span; /* indexed by event (see critical_path_find) */
} graph;

#define EVENT(g, index) (&(g)->public.events[index])

int request_event_nesting(const request_event *e, const event_names *names)
{
    uint32_t span;
    const event_side side = event_names_side(names, e->name, &span);
    const bool begins = e->role == REQUEST_BEGIN || (e->role == REQUEST_POINT && side == EVENT_SIDE_BEGIN),
               ends = e->role == REQUEST_END || (e->role == REQUEST_POINT && side == EVENT_SIDE_END);
    return begins - ends;
}

request_graph *request_graph_new(const event_names *names)
{
    graph *g = g_new0(graph, 1);
    g->names = names;
    g->alignment = clock_alignment_new();
    g->path = critical_path_new();
    g->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    return &g->public;
}

static void free_arrays(graph *g)
{
    g_free(g->spans);
    g_free(g->work);
    g_free(g->items);
    g_free(g->event_span);
}

void request_graph_free(request_graph *public)
{
    graph *g = (graph *)public;
    if (g == NULL)
        return;
    free_arrays(g);
    key_map_free(&g->open);
    key_map_free(&g->ids);
    critical_path_free(g->path);
    clock_alignment_free(g->alignment);
    g_free(g);
}

/* Allocates memory for a request with this number of events. Each event belongs to at most one span. */
static void reserve(graph *g, size_t events)
{
    if (events <= g->capacity)
        return;
    free_arrays(g);
    g->capacity = MAX(events, 2 * g->capacity);
    g->spans = g_new(request_span, g->capacity);
    g->work = g_new(span_work, g->capacity);
    g->items = g_new(sort_item, g->capacity);
    g->event_span = g_new(uint32_t, g->capacity);
}

/* ---- sorting ---- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int request_event_compare(const void *a, const void *b)
{
    const request_event *x = a, *y = b;
    return x->time_ns != y->time_ns ? compare(x->time_ns, y->time_ns) : compare(x->order, y->order);
}

static int by_item(const void *a, const void *b)
{
    const sort_item *x = a, *y = b;
    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return compare(x->time_ns, y->time_ns);
    return x->then != y->then ? compare(x->then, y->then) : compare(x->index, y->index);
}

/* Sorts the items. Tries insertion first, because most arrays of items are small or already sorted. */
static void sort_items(graph *g)
{
    for (uint32_t i = 1; i < g->item_count; i++) {
        uint32_t at = i;
        sort_item item = g->items[i];
        if (by_item(&g->items[i - 1], &item) <= 0)
            continue;
        if (g->item_count > SMALL_ARRAY_MAX) {
            qsort(g->items, g->item_count, sizeof *g->items, by_item);
            return;
        }
        for (; at > 0 && by_item(&g->items[at - 1], &item) > 0; at--)
            g->items[at] = g->items[at - 1];
        g->items[at] = item;
    }
}

static void sort_events(request_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (request_event_compare(&events[i - 1], &events[i]) > 0) {
            qsort(events, count, sizeof *events, request_event_compare);
            return;
        }
}

static uint64_t lane_of(uint32_t place, uint32_t thread)
{
    return (uint64_t)place << 32 | thread;
}

/* ---- spans ---- */

/*
 * error_ns is the sum of two times. The first is the difference of the time zones, which is a multiple of half an hour.
 * The second is a delay of at most ZONE_DELAY_NS until the end was logged. Because times and durations are rounded,
 * error_ns may be up to ZONE_EARLY_NS smaller than this sum.
 */
int64_t request_find_zone(int64_t error_ns)
{
    int64_t from_ns = error_ns + ZONE_EARLY_NS, zone_ns = from_ns / ZONE_NS * ZONE_NS;
    if (from_ns < zone_ns) /* the start is in a zone to the east */
        zone_ns -= ZONE_NS;
    return from_ns - zone_ns <= ZONE_DELAY_NS && zone_ns >= -ZONE_MAX_NS && zone_ns <= ZONE_MAX_NS ? zone_ns : 0;
}

/*
 * Adds a span, and returns its index. `begin` and `end` are indices of events; one of them is REQUEST_NONE. The graph
 * adds a span when its first event occurs, so the spans are in the order of their first events.
 */
static uint32_t add_span(graph *g, uint32_t begin, uint32_t end)
{
    const request_event *e = EVENT(g, begin != REQUEST_NONE ? begin : end);
    g->spans[g->span_count] = (request_span){
        .begin_ns = begin != REQUEST_NONE ? e->time_ns : e->time_ns - MAX(e->duration_ns, 0),
        .end_ns = e->time_ns,
        .id = e->span_id,
        .name = e->span_name,
        .place = e->place,
        .program = e->program,
        .host = e->host,
        .thread = e->thread,
        .process = e->process,
        .begin = begin,
        .end = end,
        .parent = REQUEST_NONE,
        .incomplete = e->span_id != 0 && (end == REQUEST_NONE || e->role == REQUEST_END),
        .failed = e->failed,
    };
    if (e->span_id != 0) {
        uint64_t *first = key_map_add(&g->ids, e->span_id);
        *first = *first != 0 ? *first : g->span_count + 1;
    }
    return g->span_count++;
}

/*
 * Sets the end of a span to the event `end`. Also finds the difference of the time zones if this event has a duration.
 */
static void end_span(graph *g, request_span *s, uint32_t end)
{
    const request_event *first = EVENT(g, s->begin), *last = EVENT(g, end);
    s->end = end;
    s->end_ns = last->time_ns;
    s->incomplete = false;
    s->failed = s->failed || last->failed;
    if (last->duration_ns <= 0)
        return;
    s->zone_ns =
        first->zone != 0 ? first->zone * ZONE_NS : request_find_zone(s->end_ns - last->duration_ns - s->begin_ns);
    g->has_zones = g->has_zones || s->zone_ns != 0;
}

/* Sets the role of an event whose name begins or ends a span. */
static void find_role(const graph *g, request_event *e)
{
    if (e->role != REQUEST_POINT && e->role != REQUEST_WHOLE)
        return;
    event_side side = event_names_side(g->names, e->name, &e->span_name);
    /* An end with a duration may be a whole span without a start record. pair_end detects this case. */
    if (side == EVENT_SIDE_END)
        e->role = REQUEST_END;
    else if (side == EVENT_SIDE_BEGIN && e->role == REQUEST_POINT)
        e->role = REQUEST_BEGIN;
}

/*
 * Returns a key that is equal for the start event and the end event of a span: the span ID, or a hash of
 * the thread and the span's name.
 */
static uint64_t key_of(const graph *g, const request_event *e)
{
    if (e->span_id != 0)
        return e->span_id;
    return hash_mix(lane_of(e->place, e->thread) ^ g->seed, e->span_name ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/*
 * Returns whether spans with an event's key nest. In a known thread or with a span ID, an end belongs to the latest
 * open start. Otherwise, an end belongs to the first open start, because spans with the same key may run side by side.
 */
static bool nests(const request_event *e)
{
    return e->thread != 0 || e->span_id != 0;
}

/* Returns the key in g->open of the latest span of the event's thread. */
static uint64_t thread_key(const graph *g, const request_event *e)
{
    return hash_mix(lane_of(e->place, e->thread) ^ ~g->seed, 1) | 1;
}

static bool is_unnamed_end(const graph *g, const request_event *e)
{
    return e->role == REQUEST_END && e->span_id == 0 && e->thread != 0 &&
           strcmp(event_names_text(g->names, e->name), EVENT_NAME_NONE) == 0;
}

/* Gives an end without a name, such as Chrome's events of phase E, the name of the latest open span of its thread. */
static void name_end(graph *g, request_event *e)
{
    uint64_t *latest = key_map_find(&g->open, thread_key(g, e));
    uint32_t span = latest != NULL ? (uint32_t)*latest : 0;
    while (span != 0 && g->spans[span - 1].end != REQUEST_NONE)
        span = g->work[span - 1].below;
    if (span == 0)
        return;
    *latest = span;
    e->name = EVENT(g, g->spans[span - 1].begin)->name;
    e->span_name = g->spans[span - 1].name;
}

/*
 * Adds a span that has no end yet. If spans with this key nest, the next end with the key belongs to the new span.
 * Otherwise, the next end belongs to the earliest open span with the key.
 */
static void pair_begin(graph *g, uint32_t event)
{
    uint32_t span = add_span(g, event, REQUEST_NONE);
    uint64_t *open = key_map_add(&g->open, key_of(g, EVENT(g, event)));
    bool is_queue = *open != 0 && !nests(EVENT(g, event));
    uint32_t first = is_queue ? (uint32_t)*open - 1 : span;
    g->work[span].next = is_queue || *open == 0 ? REQUEST_NONE : (uint32_t)*open - 1;
    if (is_queue)
        g->work[g->work[first].last].next = span;
    g->work[first].last = span;
    *open = first + 1;
    if (!g->has_unnamed)
        return;
    uint64_t *latest = key_map_add(&g->open, thread_key(g, EVENT(g, event)));
    g->work[span].below = (uint32_t)*latest;
    *latest = span + 1;
}

static void pair_end(graph *g, uint32_t event)
{
    request_event *e = EVENT(g, event);
    if (g->has_unnamed && is_unnamed_end(g, e))
        name_end(g, e);
    uint64_t *open = key_map_find(&g->open, key_of(g, e));
    if (open != NULL && *open != 0) {
        const span_work *first = &g->work[*open - 1];
        end_span(g, &g->spans[*open - 1], event);
        if (first->next != REQUEST_NONE && !nests(e))
            g->work[first->next].last = first->last;
        *open = first->next == REQUEST_NONE ? 0 : (uint64_t)first->next + 1;
        return;
    }
    bool whole = e->duration_ns > 0, explicit = e->span_id != 0;
    e->role = whole ? REQUEST_WHOLE : explicit ? REQUEST_END : REQUEST_POINT;
    g->public.problems.no_begin += !whole;
    if (whole || explicit)
        add_span(g, REQUEST_NONE, event);
}

/*
 * Sets the end of each span without an end and without a span ID to the last event of its program. estimate_sides
 * estimates the ends of explicit spans.
 */
static void end_open_spans(graph *g)
{
    if (g->public.problems.no_end == 0)
        return;
    GHashTable *last = g_hash_table_new(NULL, NULL); /* maps a place to the index of its last event */
    for (uint32_t i = 0; i < g->public.event_count; i++)
        g_hash_table_insert(last, GUINT_TO_POINTER(EVENT(g, i)->place), GUINT_TO_POINTER(i));
    for (uint32_t i = 0; i < g->span_count; i++) {
        request_span *s = &g->spans[i];
        if (s->begin != REQUEST_NONE && s->end == REQUEST_NONE && s->id == 0)
            s->end_ns = EVENT(g, GPOINTER_TO_UINT(g_hash_table_lookup(last, GUINT_TO_POINTER(s->place))))->time_ns;
    }
    g_hash_table_destroy(last);
}

/*
 * Corrects the times of start events that are in another time zone than the end of their span. Sets the times of these
 * ends to the corrected start plus the measured duration. Returns whether any time was corrected.
 */
static bool correct_zones(graph *g)
{
    bool found = false;
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        request_event *begin = s->zone_ns != 0 ? EVENT(g, s->begin) : NULL;
        if (begin == NULL || begin->zone != 0)
            continue;
        found = true;
        begin->zone = (int8_t)(s->zone_ns / ZONE_NS) & 0x7f;
        begin->time_ns += s->zone_ns;
        EVENT(g, s->end)->time_ns = begin->time_ns + EVENT(g, s->end)->duration_ns;
    }
    if (found)
        qsort(g->public.events, g->public.event_count, sizeof *g->public.events, request_event_compare);
    return found;
}

static void find_spans(graph *g)
{
    g->span_count = 0;
    g->public.problems = (request_problems){0};
    g->has_zones = false;
    key_map_reset(&g->open, g->public.event_count / 2);
    key_map_reset(&g->ids, g->public.event_count / 2);
    g->has_unnamed = false;
    for (uint32_t i = 0; i < g->public.event_count && !g->has_unnamed; i++)
        g->has_unnamed = is_unnamed_end(g, EVENT(g, i));
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        request_event *e = EVENT(g, i);
        find_role(g, e);
        if (e->role == REQUEST_WHOLE)
            add_span(g, REQUEST_NONE, i);
        else if (e->role == REQUEST_BEGIN)
            pair_begin(g, i);
        else if (e->role == REQUEST_END)
            pair_end(g, i);
    }
    if (g->has_zones && correct_zones(g)) {
        find_spans(g);
        return;
    }
    for (uint32_t i = 0; i < g->span_count; i++)
        g->public.problems.no_end += g->spans[i].end == REQUEST_NONE;
    end_open_spans(g);
}

/* ---- parents ---- */

static uint64_t parent_id_of(const graph *g, const request_span *s)
{
    uint64_t begin = s->begin != REQUEST_NONE ? EVENT(g, s->begin)->parent : 0;
    return begin != 0 || s->end == REQUEST_NONE ? begin : EVENT(g, s->end)->parent;
}

/* Returns the index of the first span with this span ID, or REQUEST_NONE. */
static uint32_t find_id(const graph *g, uint64_t id)
{
    const uint64_t *first = key_map_find(&g->ids, id);
    return first != NULL ? (uint32_t)*first - 1 : REQUEST_NONE;
}

/* Sets the parents of the spans whose records name a parent, and event_span of the points that name a span. */
static void find_explicit_parents(graph *g)
{
    for (uint32_t i = 0; i < g->span_count; i++) {
        request_span *s = &g->spans[i];
        uint64_t id = parent_id_of(g, s);
        s->names_parent = id != 0;
        if (id == 0)
            continue;
        s->parent = find_id(g, id);
        if (s->parent == i)
            g->public.problems.cycles++;
        else if (s->parent == REQUEST_NONE)
            g->public.problems.no_parent++;
        s->parent = s->parent == i ? REQUEST_NONE : s->parent;
    }
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        const request_event *e = EVENT(g, i);
        g->event_span[i] = e->role == REQUEST_POINT && e->span_id != 0 ? find_id(g, e->span_id) : REQUEST_NONE;
    }
}

/*
 * Returns whether the outer span has not ended at a time. `event` is the index of the event at this time, or
 * REQUEST_NONE. If the span ends at exactly this time, it has ended only if its end event precedes `event`.
 */
static bool lasts_until(const request_span *outer, int64_t time_ns, uint32_t event)
{
    if (outer->end_ns != time_ns || outer->end == REQUEST_NONE || event == REQUEST_NONE)
        return outer->end_ns >= time_ns;
    return event < outer->end;
}

/* Returns whether the outer span encloses the inner span. If both spans are whole-span records and end at the same
 * time, the order of the records does not matter, because it does not show which span ended first. */
static bool encloses(const request_span *outer, const request_span *inner)
{
    const bool are_whole = outer->begin == REQUEST_NONE && inner->begin == REQUEST_NONE;
    return outer->begin_ns <= inner->begin_ns && lasts_until(outer, inner->begin_ns, inner->begin) &&
           lasts_until(outer, inner->end_ns, are_whole ? REQUEST_NONE : inner->end);
}

/* Returns whether a span encloses a point. The span must not begin later than the point. */
static bool encloses_point(const request_span *outer, int64_t time_ns, uint32_t event)
{
    bool has_begun = outer->begin_ns < time_ns || outer->begin == REQUEST_NONE || outer->begin < event;
    return has_begun && lasts_until(outer, time_ns, event);
}

typedef enum lane_kind { LANE_THREAD, LANE_PROCESS, LANE_PROGRAM } lane_kind;

/*
 * Fills g->items with the spans, sorted by thread, process or program (`kind`), and then by start time. If `points` is
 * true, includes the points that have no span yet.
 */
static void sort_by_lane(graph *g, lane_kind kind, bool points)
{
    g->item_count = 0;
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        uint32_t part = kind == LANE_THREAD ? s->thread : kind == LANE_PROCESS ? s->process : 0;
        g->items[g->item_count++] = (sort_item){lane_of(s->place, part), s->begin_ns, -s->end_ns, i};
    }
    for (uint32_t i = 0; points && i < g->public.event_count; i++) {
        const request_event *e = EVENT(g, i);
        if (e->role == REQUEST_POINT && g->event_span[i] == REQUEST_NONE)
            g->items[g->item_count++] = (sort_item){lane_of(e->place, e->thread), e->time_ns, INT64_MAX, i};
    }
    sort_items(g);
}

/*
 * Returns whether all spans are explicit and all points have a span. In this case, the graph does not infer parents
 * from threads.
 */
static bool is_explicit(const graph *g)
{
    for (uint32_t i = 0; i < g->span_count; i++)
        if (g->spans[i].id == 0)
            return false;
    for (uint32_t i = 0; i < g->public.event_count; i++)
        if (EVENT(g, i)->role == REQUEST_POINT && g->event_span[i] == REQUEST_NONE)
            return false;
    return true;
}

static uint32_t first_event(const request_span *s)
{
    return s->begin != REQUEST_NONE ? s->begin : s->end;
}

/*
 * Returns the smallest span that may contain the span s (see precedence_nests): `around`, or a span that encloses
 * `around`. Examines at most ENCLOSING_MAX spans. Returns REQUEST_NONE if none of them may contain the span.
 */
static uint32_t find_container(const graph *g, uint32_t around, const request_span *s)
{
    for (int left = ENCLOSING_MAX; around != REQUEST_NONE && left > 0; left--) {
        if (precedence_nests(g->edges, EVENT(g, first_event(&g->spans[around])), EVENT(g, first_event(s))))
            return around;
        around = g->work[around].up;
    }
    return REQUEST_NONE;
}

/*
 * Returns the smallest span that encloses a point: `around`, or a span that encloses `around`. Examines at most
 * ENCLOSING_MAX spans. Returns REQUEST_NONE if none of them encloses the point.
 */
static uint32_t find_span_of_point(const graph *g, uint32_t around, int64_t time_ns, uint32_t event)
{
    for (int left = ENCLOSING_MAX; around != REQUEST_NONE && left > 0; left--) {
        if (encloses_point(&g->spans[around], time_ns, event))
            return around;
        around = g->work[around].up;
    }
    return REQUEST_NONE;
}

/*
 * Sets the parent of each span that has no span ID and no explicit parent to the smallest span of its thread that
 * encloses the span. Sets the span of each point in the same way.
 */
static void find_enclosing(graph *g)
{
    sort_by_lane(g, LANE_THREAD, true);
    uint32_t latest = REQUEST_NONE;
    for (uint32_t i = 0; i < g->item_count; i++) {
        const sort_item *item = &g->items[i];
        if (i == 0 || item->major != item[-1].major)
            latest = REQUEST_NONE;
        if (item->then == INT64_MAX) {
            /* Drop the spans that have ended at this time, because they enclose no later point or span. */
            while (latest != REQUEST_NONE && !lasts_until(&g->spans[latest], item->time_ns, item->index))
                latest = g->work[latest].up;
            g->event_span[item->index] = find_span_of_point(g, latest, item->time_ns, item->index);
            continue;
        }
        request_span *s = &g->spans[item->index];
        /* A span that does not enclose s is not examined again, so the loop takes constant time per span on average. */
        while (latest != REQUEST_NONE && !encloses(&g->spans[latest], s))
            latest = g->work[latest].up;
        g->work[item->index].up = latest;
        if (s->parent == REQUEST_NONE && s->id == 0)
            s->parent = find_container(g, latest, s);
        latest = item->index;
    }
}

/*
 * Returns the smallest span that encloses the span s: `around`, or a span that encloses `around`. Examines at most
 * ENCLOSING_MAX spans. Returns REQUEST_NONE if none of them encloses the span.
 */
static uint32_t find_span_around(const graph *g, uint32_t around, const request_span *s)
{
    for (int left = ENCLOSING_MAX; around != REQUEST_NONE && left > 0; left--) {
        if (encloses(&g->spans[around], s))
            return around;
        around = g->work[around].up;
    }
    return REQUEST_NONE;
}

/*
 * If a span without a span ID has no parent yet, sets its parent to an enclosing span in the main thread of its
 * process or program (`kind`). The main thread is the thread with the first span of the process or program in this
 * request.
 */
static void find_enclosing_threads(graph *g, lane_kind kind)
{
    bool has_threads = false;
    for (uint32_t i = 0; i < g->span_count && !has_threads; i++) {
        const request_span *s = &g->spans[i];
        has_threads = s->id == 0 && (kind == LANE_PROCESS ? s->thread : s->process) != 0;
    }
    if (!has_threads)
        return;
    sort_by_lane(g, kind, false);
    uint32_t latest = REQUEST_NONE, main_thread = 0;
    for (uint32_t i = 0; i < g->item_count; i++) {
        const sort_item *item = &g->items[i];
        request_span *s = &g->spans[item->index];
        if (i == 0 || item->major != item[-1].major) {
            latest = REQUEST_NONE;
            main_thread = s->thread;
        }
        while (latest != REQUEST_NONE && g->spans[latest].end_ns < s->begin_ns)
            latest = g->work[latest].up;
        if (s->thread == main_thread) {
            latest = item->index;
        } else if (s->parent == REQUEST_NONE && s->id == 0) {
            s->parent = find_span_around(g, latest, s);
            s->inferred_parent = s->parent != REQUEST_NONE;
        }
    }
}

/* Returns whether one record describes the span and names neither an identifier nor a parent. */
static bool is_whole(const request_span *s)
{
    return s->begin == REQUEST_NONE && s->end != REQUEST_NONE && s->id == 0 && !s->names_parent;
}

/*
 * Returns whether a whole span can be the parent of another whole span: their times permit this, and spans of the outer
 * kind usually contain spans of the inner kind (whole_spans.h).
 */
static bool is_nested_whole(const graph *g, uint32_t outer, uint32_t inner)
{
    return is_whole(&g->spans[outer]) && is_whole(&g->spans[inner]) &&
           whole_spans_are_nested(precedence_whole_spans(g->edges), EVENT(g, g->spans[outer].end),
                                  EVENT(g, g->spans[inner].end));
}

/* Returns the smallest whole span that contains the span with index i: its parent, or one of the last WHOLE_SCAN_MAX of
 * the spans in `open`. Returns REQUEST_NONE if there is no such span. */
static uint32_t find_whole_around(const graph *g, uint32_t i, const uint32_t *open, uint32_t open_count)
{
    uint32_t best = g->spans[i].parent;
    for (uint32_t n = open_count; n > 0 && open_count - n < WHOLE_SCAN_MAX; n--) {
        uint32_t k = open[n - 1];
        const request_span *outer = &g->spans[k];
        if (k != i &&
            (best == REQUEST_NONE ||
             outer->end_ns - outer->begin_ns < g->spans[best].end_ns - g->spans[best].begin_ns ||
             (outer->end_ns - outer->begin_ns == g->spans[best].end_ns - g->spans[best].begin_ns &&
              is_nested_whole(g, best, k))) &&
            is_nested_whole(g, k, i))
            best = k;
    }
    return best;
}

/*
 * Removes the spans that begin after `time_ns` from the last 2 * WHOLE_SCAN_MAX elements of the list. This suffices,
 * because find_whole_around examines only the last WHOLE_SCAN_MAX elements. Returns the number of remaining elements.
 */
static uint32_t drop_later_spans(const graph *g, uint32_t *open, uint32_t open_count, int64_t time_ns)
{
    uint32_t first = open_count > 2 * WHOLE_SCAN_MAX ? open_count - 2 * WHOLE_SCAN_MAX : 0, kept = first;
    for (uint32_t n = first; n < open_count; n++)
        if (g->spans[open[n]].begin_ns <= time_ns)
            open[kept++] = open[n];
    return kept;
}

/*
 * Sets the parents of whole spans to the smallest spans that contain them, in any program, if this relation holds in
 * nearly all requests (whole_spans.h). The spans are in the order of their ends. The function examines the last span
 * first, and keeps a list of the spans that can contain spans which end earlier. Because of rounding, a span can seem
 * to end up to WHOLE_SCAN_BACK spans before a span that it contains. Spans of known threads keep the parents in their
 * thread.
 */
static void find_parents_of_whole(graph *g)
{
    const whole_spans *whole = precedence_whole_spans(g->edges);
    if (whole == NULL)
        return;
    uint32_t *open = g_new(uint32_t, (size_t)g->span_count + 1), open_count = 0;
    for (uint32_t i = g->span_count, next = g->span_count; i-- > 0;) {
        request_span *s = &g->spans[i];
        for (; next > 0 && next + WHOLE_SCAN_BACK > i; next--)
            if (is_whole(&g->spans[next - 1]) && whole_spans_can_contain(whole, EVENT(g, g->spans[next - 1].end)))
                open[open_count++] = next - 1;
        open_count = drop_later_spans(g, open, open_count, s->end_ns + WHOLE_ROUNDING_MAX_NS);
        if (!is_whole(s) || (s->thread != 0 && s->parent != REQUEST_NONE))
            continue;
        if (s->parent != REQUEST_NONE && is_nested_whole(g, i, s->parent))
            s->parent = REQUEST_NONE; /* find_enclosing chose the wrong parent, because both have equal times */
        uint32_t best = find_whole_around(g, i, open, open_count);
        s->inferred_parent = s->inferred_parent || best != s->parent;
        s->parent = best;
    }
    g_free(open);
}

/*
 * Removes one parent from each cycle, and sets the depths. During the function, a depth of 0 means unknown, and other
 * depths are 1 more than their final values.
 */
static void break_cycles(graph *g)
{
    enum { OPEN = UINT32_MAX };
    for (uint32_t i = 0; i < g->span_count; i++)
        g->spans[i].depth = 0;
    for (uint32_t i = 0; i < g->span_count; i++) {
        uint32_t at = i, length = 0;
        for (; at != REQUEST_NONE && g->spans[at].depth == 0; at = g->spans[at].parent, length++)
            g->spans[at].depth = OPEN;
        uint32_t depth = length + (at != REQUEST_NONE && g->spans[at].depth != OPEN ? g->spans[at].depth : 0);
        bool cycle = at != REQUEST_NONE && g->spans[at].depth == OPEN;
        for (at = i; length > 0; length--, depth--) {
            request_span *s = &g->spans[at];
            s->depth = depth;
            if (length == 1 && cycle) {
                s->parent = REQUEST_NONE;
                g->public.problems.cycles++;
            }
            at = s->parent;
        }
    }
    for (uint32_t i = 0; i < g->span_count; i++)
        g->spans[i].depth--;
}

/*
 * If the record of a span's start or end is missing, extends the span to the start or end of `other`, which is its
 * parent or one of its children.
 */
static void extend_span(request_span *s, const request_span *other)
{
    if (s->begin == REQUEST_NONE)
        s->begin_ns = MIN(s->begin_ns, other->begin_ns);
    if (s->end == REQUEST_NONE)
        s->end_ns = MAX(s->end_ns, other->end_ns);
}

/*
 * Estimates the missing starts and ends of explicit spans. A span contains its children. A missing start of a parent is
 * therefore the earliest start of its children, and a missing end is the latest end of the children. If an only child
 * has no children, its missing start or end is that of its parent. The function does not extend other children, so the
 * missing part of such a child counts as the parent's own time.
 */
static void estimate_sides(graph *g)
{
    const request_problems *p = &g->public.problems;
    if (p->no_begin + p->no_end == 0)
        return;
    g->item_count = g->span_count;
    for (uint32_t i = 0; i < g->span_count; i++)
        g->items[i] = (sort_item){.major = UINT32_MAX - g->spans[i].depth, .index = i};
    sort_items(g); /* puts children before their parents */
    for (uint32_t i = 0; i < g->item_count; i++) {
        const request_span *s = &g->spans[g->items[i].index];
        request_span *parent = s->parent != REQUEST_NONE ? &g->spans[s->parent] : NULL;
        if (parent != NULL && parent->incomplete)
            extend_span(parent, s);
    }
    for (uint32_t i = g->item_count; i-- > 0;) {
        request_span *s = &g->spans[g->items[i].index];
        const request_span *parent = s->parent != REQUEST_NONE ? &g->spans[s->parent] : NULL;
        if (parent != NULL && s->incomplete && s->child_count == 0 && parent->child_count == 1)
            extend_span(s, parent);
    }
}

/* Returns the maximum difference of two times of whole spans that rounding explains, or 0. */
static int64_t rounding_between(const graph *g, const request_span *a, const request_span *b)
{
    const whole_spans *whole = precedence_whole_spans(g->edges);
    return whole != NULL && is_whole(a) && is_whole(b) ? whole_spans_rounding(whole, EVENT(g, a->end), EVENT(g, b->end))
                                                       : 0;
}

static void find_parents(graph *g, const clock_bounds *clocks, const awaited_spans *awaited)
{
    find_explicit_parents(g);
    if (!is_explicit(g)) {
        find_enclosing(g);
        find_enclosing_threads(g, LANE_PROCESS);
        find_enclosing_threads(g, LANE_PROGRAM);
        find_parents_of_whole(g);
    }
    break_cycles(g);
    for (uint32_t i = 0; i < g->span_count; i++)
        if (g->spans[i].parent != REQUEST_NONE)
            g->spans[g->spans[i].parent].child_count++;
    g->public.spans = g->spans;
    g->public.span_count = g->span_count;
    clock_alignment_shift_spans(g->alignment, &g->public, clocks, awaited);
    estimate_sides(g);
    clock_alignment_check_parents(&g->public, clocks, awaited);
    for (uint32_t i = 0; i < g->span_count; i++) {
        request_span *s = &g->spans[i];
        if (s->parent == REQUEST_NONE)
            continue;
        const request_span *parent = &g->spans[s->parent];
        int64_t bound_ns = clock_bounds_between(clocks, s->host, parent->host);
        int64_t rounding_ns = s->inferred_parent ? rounding_between(g, s, parent) : 0;
        int64_t late_ns = s->end_ns - parent->end_ns;
        s->outlives_parent = late_ns > MAX(rounding_ns, bound_ns == CLOCK_BOUND_UNKNOWN ? 0 : bound_ns) &&
                             (s->inferred_parent || !awaited_spans_include(awaited, parent, s, late_ns));
    }
}

/* Sets the self time of each span: its duration without the time that its children cover. */
static void find_self_times(graph *g)
{
    g->item_count = g->span_count;
    for (uint32_t i = 0; i < g->span_count; i++) {
        request_span *s = &g->spans[i];
        s->self_ns = s->end_ns - s->begin_ns;
        g->work[i].covered_ns = s->begin_ns;
        g->items[i] = (sort_item){.time_ns = s->begin_ns, .index = i};
    }
    sort_items(g);
    for (uint32_t i = 0; i < g->item_count; i++) {
        const request_span *child = &g->spans[g->items[i].index];
        if (child->parent == REQUEST_NONE)
            continue;
        request_span *parent = &g->spans[child->parent];
        int64_t *covered_ns = &g->work[child->parent].covered_ns;
        int64_t from_ns = MAX(child->begin_ns, *covered_ns), to_ns = MIN(child->end_ns, parent->end_ns);
        if (to_ns > from_ns) {
            parent->self_ns -= to_ns - from_ns;
            *covered_ns = to_ns;
        }
    }
}

unsigned request_problems_doubts(const request_problems *p)
{
    bool records = p->no_begin + p->no_end + p->no_parent + p->missing > 0,
         clocks = p->unknown_clocks + p->late + p->doubtful_clocks + p->rivals > 0 || p->violations > p->one_clock,
         times = p->one_clock + p->cycles > 0;
    return (records ? REQUEST_DOUBT_RECORDS : 0u) | (clocks ? REQUEST_DOUBT_CLOCKS : 0u) |
           (times ? REQUEST_DOUBT_TIMES : 0u);
}

void request_graph_build(request_graph *public, request_event *events, size_t count, const precedence *edges,
                         const clock_bounds *clocks, const awaited_spans *awaited)
{
    graph *g = (graph *)public;
    g->edges = edges;
    *public = (request_graph){.events = events, .event_count = count};
    reserve(g, count);
    sort_events(events, count);
    find_spans(g);
    public->from_ns = events[0].time_ns;
    public->to_ns = events[count - 1].time_ns;
    for (size_t i = 0; i < count; i++) {
        int64_t begin_ns = events[i].time_ns - (events[i].role == REQUEST_WHOLE ? MAX(events[i].duration_ns, 0) : 0);
        public->from_ns = MIN(public->from_ns, begin_ns);
        public->failed = public->failed || events[i].failed;
    }
    public->problems.missing = edges != NULL ? precedence_count_missing(edges, events, count) : 0;
    find_parents(g, clocks, awaited);
    find_self_times(g);
    critical_path_find(g->path, public, g->event_span, edges, g->alignment);
}

void request_graph_find_edges(const request_graph *public, GArray *edges)
{
    critical_path_find_edges(((const graph *)public)->path, edges);
}
