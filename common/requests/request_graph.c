/*
 * Strands. A strand is a sequence of nodes in program order. Each span has a strand, and each thread of a program has a
 * strand for the events that no span covers. Nodes are events and joins: at a join, a span continues after one of its
 * children has ended. A child begins after its fork, the latest node of its parent's strand at that time. So the
 * predecessors of a node are the node before it in its strand, a child's end, its fork, and an event of another program
 * that caused it.
 *
 * The walk over the path ends: each step goes to an earlier time, or to an earlier node of a strand, or from a span to
 * its child or parent. Inconsistent times could lead the walk in a circle, so the number of steps is also limited.
 */
#include "config.h"

#include "requests/request_graph.h"

#include "requests/clock_alignment.h"
#include "requests/precedence.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAUSE_SCAN_MAX = 256, /* maximum number of events that are examined to find the cause of an event */
    SMALL_ARRAY_MAX = 32,
    RANK_BEGIN = 0,
    RANK_MIDDLE = 1,
    RANK_END = 2,
};

#define ZONE_NS (INT64_C(1800) * 1000000000)
#define ZONE_DELAY_NS (INT64_C(600) * 1000000000)
#define ZONE_EARLY_NS (INT64_C(60) * 1000000000)
#define ZONE_MAX_NS (26 * 2 * ZONE_NS)

/* An index and its sort key. */
typedef struct sort_item {
    uint64_t major, minor;
    int64_t time_ns;
    int64_t then; /* breaks ties */
    uint32_t index;
} sort_item;

typedef struct graph_node {
    int64_t time_ns;
    uint32_t strand;
    uint32_t order;
    uint32_t event; /* REQUEST_NONE for joins and for sides without a record */
    uint32_t child; /* for a join, the span that ended; otherwise REQUEST_NONE */
    uint8_t rank;
} graph_node;

/* The nodes of a span. */
typedef struct span_nodes {
    uint32_t begin, end;
    uint32_t join; /* the join in the parent's strand; REQUEST_NONE if the parent does not wait */
    uint32_t up;   /* the smallest span of the same thread that encloses this span */
} span_nodes;

/* A range of nodes. */
typedef struct strand {
    uint32_t first, count;
} strand;

typedef struct graph {
    request_graph public;
    const event_names *names;
    const precedence *edges;
    const clock_bounds *clocks;
    clock_alignment *alignment;
    bool has_zones;                                          /* some spans begin in another time zone than they end */
    GArray *spans, *places, *items, *nodes, *strands, *path; /* places: span_nodes */
    GArray *event_strand, *event_node;                       /* uint32_t by event */
    GArray *lanes;                                           /* uint64_t: place and thread, by number */
    guint item_capacity, node_capacity;
} graph;

#define AT(array, type, index) (&g_array_index((array), type, (index)))
#define SPAN(g, index) AT((g)->spans, request_span, index)
#define NODES(g, index) AT((g)->places, span_nodes, index)
#define NODE(g, index) AT((g)->nodes, graph_node, index)
#define EVENT(g, index) (&(g)->public.events[index])

request_graph *request_graph_new(const event_names *names)
{
    graph *g = g_new0(graph, 1);
    g->names = names;
    g->spans = g_array_new(FALSE, FALSE, sizeof(request_span));
    g->places = g_array_new(FALSE, FALSE, sizeof(span_nodes));
    g->items = g_array_new(FALSE, FALSE, sizeof(sort_item));
    g->nodes = g_array_new(FALSE, FALSE, sizeof(graph_node));
    g->strands = g_array_new(FALSE, TRUE, sizeof(strand));
    g->path = g_array_new(FALSE, FALSE, sizeof(request_step));
    g->event_strand = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g->event_node = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g->lanes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g->alignment = clock_alignment_new();
    return &g->public;
}

void request_graph_free(request_graph *public)
{
    graph *g = (graph *)public;
    if (g == NULL)
        return;
    GArray *arrays[] = {g->spans, g->places,       g->items,      g->nodes, g->strands,
                        g->path,  g->event_strand, g->event_node, g->lanes};
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_free(arrays[i], TRUE);
    clock_alignment_free(g->alignment);
    g_free(g);
}

/* Makes space for one more element. g_array_append_val, which copies with a call, would take a tenth of the time. */
static void make_space(GArray *a, guint *capacity)
{
    guint length = a->len;
    if (length < *capacity)
        return;
    *capacity = MAX(64, 2 * *capacity);
    g_array_set_size(a, *capacity);
    g_array_set_size(a, length);
}

static void add_item(graph *g, sort_item item)
{
    make_space(g->items, &g->item_capacity);
    *AT(g->items, sort_item, g->items->len++) = item;
}

/* ---- sorting ---- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_event_time(const void *a, const void *b)
{
    const request_event *x = a, *y = b;
    return x->time_ns != y->time_ns ? compare(x->time_ns, y->time_ns) : compare(x->order, y->order);
}

/* Each event belongs to one span at most, so no two items are equal. */
static int by_first_event(const void *a, const void *b)
{
    const request_span *x = a, *y = b;
    return compare(x->begin != REQUEST_NONE ? x->begin : x->end, y->begin != REQUEST_NONE ? y->begin : y->end);
}

static int by_item(const void *a, const void *b)
{
    const sort_item *x = a, *y = b;
    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return compare(x->time_ns, y->time_ns);
    return x->then != y->then ? compare(x->then, y->then) : compare(x->index, y->index);
}

static int by_strand(const void *a, const void *b)
{
    const graph_node *x = a, *y = b;
    if (x->strand != y->strand)
        return x->strand < y->strand ? -1 : 1;
    if (x->rank != y->rank &&
        (x->rank == RANK_BEGIN || y->rank == RANK_BEGIN || x->rank == RANK_END || y->rank == RANK_END))
        return x->rank < y->rank ? -1 : 1;
    return x->time_ns != y->time_ns ? compare(x->time_ns, y->time_ns) : compare(x->order, y->order);
}

/* Sorts an array. Most arrays are small or already sorted. `spare` has space for one element. */
static void sort_array(GArray *a, int (*order)(const void *, const void *), void *spare)
{
    size_t size = g_array_get_element_size(a);
    if (a->len > SMALL_ARRAY_MAX) {
        for (guint i = 1; i < a->len; i++)
            if (order(a->data + (i - 1) * size, a->data + i * size) > 0) {
                qsort(a->data, a->len, size, order);
                return;
            }
        return;
    }
    for (guint i = 1; i < a->len; i++) {
        guint at = i;
        while (at > 0 && order(a->data + (at - 1) * size, a->data + i * size) > 0)
            at--;
        if (at == i)
            continue;
        memcpy(spare, a->data + i * size, size);
        memmove(a->data + (at + 1) * size, a->data + at * size, (i - at) * size);
        memcpy(a->data + at * size, spare, size);
    }
}

static void sort_items(graph *g)
{
    sort_item spare;
    sort_array(g->items, by_item, &spare);
}

static uint64_t lane_of(uint32_t place, uint32_t thread)
{
    return (uint64_t)place << 32 | thread;
}

/* ---- spans ---- */

/*
 * Returns the difference between the time zones of a begin and an end. error_ns is the time between them minus the
 * measured duration. It consists of the difference, in whole half hours, and of at most ZONE_DELAY_NS until the end was
 * logged. Because times and durations are rounded, it may be up to ZONE_EARLY_NS less.
 */
int64_t request_find_zone(int64_t error_ns)
{
    int64_t from_ns = error_ns + ZONE_EARLY_NS, zone_ns = from_ns / ZONE_NS * ZONE_NS;
    if (from_ns < zone_ns) /* the begin is in a zone to the east */
        zone_ns -= ZONE_NS;
    return from_ns - zone_ns <= ZONE_DELAY_NS && zone_ns >= -ZONE_MAX_NS && zone_ns <= ZONE_MAX_NS ? zone_ns : 0;
}

static uint32_t add_span(graph *g, uint32_t begin, uint32_t end)
{
    const request_event *first = EVENT(g, begin != REQUEST_NONE ? begin : end),
                        *last = end != REQUEST_NONE ? EVENT(g, end) : first;
    request_span s = {
        .begin_ns = begin != REQUEST_NONE ? first->time_ns : last->time_ns - MAX(last->duration_ns, 0),
        .end_ns = last->time_ns,
        .id = first->span_id,
        .name = first->span_name,
        .place = first->place,
        .program = first->program,
        .host = first->host,
        .thread = first->thread,
        .process = first->process,
        .begin = begin,
        .end = end,
        .parent = REQUEST_NONE,
        .incomplete =
            first->span_id != 0 && (end == REQUEST_NONE || (begin == REQUEST_NONE && last->role == REQUEST_END)),
        .failed = first->failed || last->failed,
    };
    if (begin != REQUEST_NONE && end != REQUEST_NONE && last->duration_ns > 0) {
        s.zone_ns =
            first->zone != 0 ? first->zone * ZONE_NS : request_find_zone(s.end_ns - last->duration_ns - s.begin_ns);
        if (first->zone != 0)
            s.end_ns = s.begin_ns + last->duration_ns;
        g->has_zones = g->has_zones || s.zone_ns != 0;
    }
    g_array_append_val(g->spans, s);
    return g->spans->len - 1;
}

/* Adds the sides of spans to items. The key that pairs two sides is an explicit identifier, or else the thread and the
 * name. */
static void collect_sides(graph *g)
{
    g_array_set_size(g->items, 0);
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        request_event *e = EVENT(g, i);
        if (e->role == REQUEST_POINT || e->role == REQUEST_WHOLE) {
            event_side side = event_names_side(g->names, e->name, &e->span_name);
            if (side == EVENT_SIDE_END) /* with a duration: the begin may be missing */
                e->role = REQUEST_END;
            else if (side == EVENT_SIDE_BEGIN && e->role == REQUEST_POINT)
                e->role = REQUEST_BEGIN;
        }
        if (e->role == REQUEST_WHOLE)
            add_span(g, REQUEST_NONE, i);
        if (e->role != REQUEST_BEGIN && e->role != REQUEST_END)
            continue;
        sort_item item = {.major = e->span_id, .minor = 0, .then = i, .index = i};
        if (e->span_id == 0) {
            item.major = lane_of(e->place, e->thread);
            item.minor = (uint64_t)1 << 32 | e->span_name;
        }
        add_item(g, item);
    }
    sort_items(g);
}

/*
 * Pairs the sides of one key, which are in order of time. If the thread is known, an end belongs to the latest open
 * begin, because calls nest. Otherwise, it belongs to the first open begin, because the same span runs several times
 * side by side.
 */
static void pair_sides(graph *g, guint from, guint to)
{
    const request_event *first = EVENT(g, AT(g->items, sort_item, from)->index);
    bool nests = first->thread != 0 || first->span_id != 0;
    guint open_from = g->event_strand->len,
          open = open_from; /* event_strand is not in use yet, so it holds the begins that wait for an end */
    for (guint i = from; i < to; i++) {
        uint32_t index = AT(g->items, sort_item, i)->index;
        if (EVENT(g, index)->role == REQUEST_BEGIN) {
            g_array_append_val(g->event_strand, index);
        } else if (open == g->event_strand->len) {
            bool whole = EVENT(g, index)->duration_ns > 0, explicit = first->span_id != 0;
            EVENT(g, index)->role = whole ? REQUEST_WHOLE : explicit ? REQUEST_END : REQUEST_POINT;
            g->public.problems.no_begin += !whole;
            if (whole || explicit)
                add_span(g, REQUEST_NONE, index);
        } else if (nests) {
            add_span(g, g_array_index(g->event_strand, uint32_t, g->event_strand->len - 1), index);
            g_array_set_size(g->event_strand, g->event_strand->len - 1);
        } else {
            add_span(g, g_array_index(g->event_strand, uint32_t, open++), index);
        }
    }
    for (; open < g->event_strand->len; open++) {
        add_span(g, g_array_index(g->event_strand, uint32_t, open), REQUEST_NONE);
        g->public.problems.no_end++;
    }
    g_array_set_size(g->event_strand, open_from);
}

/* Spans without an end last until the last event of their program; see also estimate_sides. */
static void end_open_spans(graph *g)
{
    if (g->public.problems.no_end == 0)
        return;
    GHashTable *last = g_hash_table_new(NULL, NULL); /* place to index of its last event */
    for (uint32_t i = 0; i < g->public.event_count; i++)
        g_hash_table_insert(last, GUINT_TO_POINTER(EVENT(g, i)->place), GUINT_TO_POINTER(i));
    for (guint i = 0; i < g->spans->len; i++) {
        request_span *s = SPAN(g, i);
        if (s->begin != REQUEST_NONE && s->end == REQUEST_NONE && s->id == 0)
            s->end_ns = EVENT(g, GPOINTER_TO_UINT(g_hash_table_lookup(last, GUINT_TO_POINTER(s->place))))->time_ns;
    }
    g_hash_table_destroy(last);
}

/* Corrects the times of begins in other time zones. Returns whether it has corrected any begin. */
static bool correct_zones(graph *g)
{
    bool found = false;
    for (guint i = 0; i < g->spans->len; i++) {
        const request_span *s = SPAN(g, i);
        request_event *begin = s->zone_ns != 0 ? EVENT(g, s->begin) : NULL;
        if (begin == NULL || begin->zone != 0)
            continue;
        found = true;
        begin->zone = (int8_t)(s->zone_ns / ZONE_NS) & 0x7f;
        begin->time_ns += s->zone_ns;
    }
    if (found)
        qsort(g->public.events, g->public.event_count, sizeof *g->public.events, by_event_time);
    return found;
}

static void find_spans(graph *g)
{
    g_array_set_size(g->spans, 0);
    g_array_set_size(g->event_strand, 0);
    g->public.problems = (request_problems){0};
    g->has_zones = false;
    collect_sides(g);
    guint from = 0;
    for (guint i = 1; i <= g->items->len; i++) {
        const sort_item *a = AT(g->items, sort_item, from), *b = AT(g->items, sort_item, i);
        if (i == g->items->len || a->major != b->major || a->minor != b->minor) {
            pair_sides(g, from, i);
            from = i;
        }
    }
    if (g->has_zones && correct_zones(g)) {
        find_spans(g);
        return;
    }
    /* Pairing used the order of hashes, which differ between runs. */
    request_span spare;
    sort_array(g->spans, by_first_event, &spare);
    end_open_spans(g);
    g_array_set_size(g->places, g->spans->len);
    for (guint i = 0; i < g->spans->len; i++)
        *NODES(g, i) = (span_nodes){REQUEST_NONE, REQUEST_NONE, REQUEST_NONE, REQUEST_NONE};
}

/* ---- parents ---- */

static uint64_t parent_id_of(const graph *g, const request_span *s)
{
    uint64_t begin = s->begin != REQUEST_NONE ? EVENT(g, s->begin)->parent : 0;
    return begin != 0 || s->end == REQUEST_NONE ? begin : EVENT(g, s->end)->parent;
}

/* Returns the index of the first item with this major key, or REQUEST_NONE. */
static uint32_t find_major(const GArray *items, uint64_t major)
{
    guint low = 0, high = items->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (AT(items, sort_item, middle)->major < major)
            low = middle + 1;
        else
            high = middle;
    }
    return low < items->len && AT(items, sort_item, low)->major == major ? AT(items, sort_item, low)->index
                                                                         : REQUEST_NONE;
}

/* Sorts the explicit spans into items by their identifiers. */
static void sort_by_id(graph *g)
{
    g_array_set_size(g->items, 0);
    for (guint i = 0; i < g->spans->len; i++) {
        sort_item item = {.major = SPAN(g, i)->id, .index = i};
        if (item.major != 0)
            add_item(g, item);
    }
    sort_items(g);
}

/* Sets the parents that records name, and the spans of the points that name a span. */
static void find_explicit_parents(graph *g)
{
    sort_by_id(g);
    for (guint i = 0; i < g->spans->len; i++) {
        request_span *s = SPAN(g, i);
        uint64_t id = parent_id_of(g, s);
        s->names_parent = id != 0;
        if (id == 0)
            continue;
        s->parent = find_major(g->items, id);
        if (s->parent == i)
            g->public.problems.cycles++;
        else if (s->parent == REQUEST_NONE)
            g->public.problems.no_parent++;
        s->parent = s->parent == i ? REQUEST_NONE : s->parent;
    }
    g_array_set_size(g->event_strand, (guint)g->public.event_count);
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        const request_event *e = EVENT(g, i);
        g_array_index(g->event_strand, uint32_t, i) =
            e->role == REQUEST_POINT && e->span_id != 0 ? find_major(g->items, e->span_id) : REQUEST_NONE;
    }
}

/*
 * Returns whether the outer span has not ended at a time. If it ends at that time, the order of the two records
 * decides, if both exist. `event` is the index of the record at that time, or REQUEST_NONE.
 */
static bool lasts_until(const request_span *outer, int64_t time_ns, uint32_t event)
{
    if (outer->end_ns != time_ns || outer->end == REQUEST_NONE || event == REQUEST_NONE)
        return outer->end_ns >= time_ns;
    return event < outer->end;
}

static bool encloses(const request_span *outer, const request_span *inner)
{
    return outer->begin_ns <= inner->begin_ns && lasts_until(outer, inner->begin_ns, inner->begin) &&
           lasts_until(outer, inner->end_ns, inner->end);
}

/* Returns whether a point is within a span that begins no later. */
static bool encloses_point(const request_span *outer, int64_t time_ns, uint32_t event)
{
    bool has_begun = outer->begin_ns < time_ns || outer->begin == REQUEST_NONE || outer->begin < event;
    return has_begun && lasts_until(outer, time_ns, event);
}

typedef enum lane_kind { LANE_THREAD, LANE_PROCESS, LANE_PROGRAM } lane_kind;

/*
 * Sorts the begins of spans by thread, process or program, and then by time. If `points` is true, sorts the points
 * together with the begins.
 */
static void sort_by_lane(graph *g, lane_kind kind, bool points)
{
    g_array_set_size(g->items, 0);
    for (guint i = 0; i < g->spans->len; i++) {
        const request_span *s = SPAN(g, i);
        uint32_t part = kind == LANE_THREAD ? s->thread : kind == LANE_PROCESS ? s->process : 0;
        sort_item item = {lane_of(s->place, part), 0, s->begin_ns, -s->end_ns, i};
        add_item(g, item);
    }
    for (uint32_t i = 0; points && i < g->public.event_count; i++) {
        const request_event *e = EVENT(g, i);
        sort_item item = {lane_of(e->place, e->thread), 0, e->time_ns, INT64_MAX, i};
        if (e->role == REQUEST_POINT && g_array_index(g->event_strand, uint32_t, i) == REQUEST_NONE)
            add_item(g, item);
    }
    sort_items(g);
}

/*
 * Sets the parent of each span without an explicit parent to the smallest span of its thread that encloses it. Sets the
 * span of each point in the same way.
 */
static void find_enclosing(graph *g)
{
    sort_by_lane(g, LANE_THREAD, true);
    uint32_t latest = REQUEST_NONE;
    for (guint i = 0; i < g->items->len; i++) {
        const sort_item *item = AT(g->items, sort_item, i);
        if (i == 0 || item->major != AT(g->items, sort_item, i - 1)->major)
            latest = REQUEST_NONE;
        if (item->then == INT64_MAX) {
            /*
             * A span that ended before this point encloses nothing that follows, so later points need not examine it
             * again.
             */
            while (latest != REQUEST_NONE && !lasts_until(SPAN(g, latest), item->time_ns, item->index))
                latest = NODES(g, latest)->up;
            uint32_t around = latest;
            while (around != REQUEST_NONE && !encloses_point(SPAN(g, around), item->time_ns, item->index))
                around = NODES(g, around)->up;
            g_array_index(g->event_strand, uint32_t, item->index) = around;
            continue;
        }
        request_span *s = SPAN(g, item->index);
        uint32_t around = latest;
        while (around != REQUEST_NONE && !encloses(SPAN(g, around), s))
            around = NODES(g, around)->up;
        NODES(g, item->index)->up = around;
        if (s->parent == REQUEST_NONE && s->id == 0)
            s->parent = around;
        latest = item->index;
    }
}

/*
 * A span that no other span of its thread encloses may be the child of a span in the main thread of its process or
 * program. The main thread is the thread with the first event of the process or program in this request.
 */
static void find_enclosing_threads(graph *g, lane_kind kind)
{
    bool has_threads = false;
    for (guint i = 0; i < g->spans->len && !has_threads; i++) {
        const request_span *s = SPAN(g, i);
        has_threads = s->id == 0 && (kind == LANE_PROCESS ? s->thread : s->process) != 0;
    }
    if (!has_threads)
        return;
    sort_by_lane(g, kind, false);
    uint32_t latest = REQUEST_NONE, main_thread = 0;
    for (guint i = 0; i < g->items->len; i++) {
        const sort_item *item = AT(g->items, sort_item, i);
        request_span *s = SPAN(g, item->index);
        if (i == 0 || item->major != AT(g->items, sort_item, i - 1)->major) {
            latest = REQUEST_NONE;
            main_thread = s->thread;
        }
        while (latest != REQUEST_NONE && SPAN(g, latest)->end_ns < s->begin_ns)
            latest = NODES(g, latest)->up;
        uint32_t around = latest;
        while (around != REQUEST_NONE && !encloses(SPAN(g, around), s))
            around = NODES(g, around)->up;
        if (s->thread == main_thread) {
            latest = item->index;
        } else if (s->parent == REQUEST_NONE && s->id == 0 && around != REQUEST_NONE) {
            s->parent = around;
            s->inferred_parent = true;
        }
    }
}

/*
 * Removes one parent from each cycle and sets the depths. In this function, a depth is 0 while it is unknown, and
 * otherwise 1 more than its final value.
 */
static void break_cycles(graph *g)
{
    enum { OPEN = UINT32_MAX };
    for (guint i = 0; i < g->spans->len; i++)
        SPAN(g, i)->depth = 0;
    for (guint i = 0; i < g->spans->len; i++) {
        uint32_t at = i, length = 0;
        for (; at != REQUEST_NONE && SPAN(g, at)->depth == 0; at = SPAN(g, at)->parent, length++)
            SPAN(g, at)->depth = OPEN;
        uint32_t depth = length + (at != REQUEST_NONE && SPAN(g, at)->depth != OPEN ? SPAN(g, at)->depth : 0);
        bool cycle = at != REQUEST_NONE && SPAN(g, at)->depth == OPEN;
        for (at = i; length > 0; length--, depth--) {
            request_span *s = SPAN(g, at);
            s->depth = depth;
            if (length == 1 && cycle) {
                s->parent = REQUEST_NONE;
                g->public.problems.cycles++;
            }
            at = s->parent;
        }
    }
    for (guint i = 0; i < g->spans->len; i++)
        SPAN(g, i)->depth--;
}

/* Sets a side of a span to the same side of a parent or child, if the record of this side is missing. */
static void extend_span(request_span *s, const request_span *other)
{
    if (s->begin == REQUEST_NONE)
        s->begin_ns = MIN(s->begin_ns, other->begin_ns);
    if (s->end == REQUEST_NONE)
        s->end_ns = MAX(s->end_ns, other->end_ns);
}

/*
 * Estimates the times of explicit spans whose begin or end is missing: they contain their children, and an only child
 * without children fills its parent. Otherwise, the time counts for the parent.
 */
static void estimate_sides(graph *g)
{
    const request_problems *p = &g->public.problems;
    if (p->no_begin + p->no_end == 0)
        return;
    g_array_set_size(g->items, 0);
    for (guint i = 0; i < g->spans->len; i++)
        add_item(g, (sort_item){.major = UINT32_MAX - SPAN(g, i)->depth, .index = i});
    sort_items(g); /* children first */
    for (guint i = 0; i < g->items->len; i++) {
        const request_span *s = SPAN(g, AT(g->items, sort_item, i)->index);
        request_span *parent = s->parent != REQUEST_NONE ? SPAN(g, s->parent) : NULL;
        if (parent != NULL && parent->incomplete)
            extend_span(parent, s);
    }
    for (guint i = g->items->len; i-- > 0;) {
        request_span *s = SPAN(g, AT(g->items, sort_item, i)->index);
        const request_span *parent = s->parent != REQUEST_NONE ? SPAN(g, s->parent) : NULL;
        if (parent != NULL && s->incomplete && s->child_count == 0 && parent->child_count == 1)
            extend_span(s, parent);
    }
}

static void find_parents(graph *g)
{
    find_explicit_parents(g);
    find_enclosing(g);
    find_enclosing_threads(g, LANE_PROCESS);
    find_enclosing_threads(g, LANE_PROGRAM);
    break_cycles(g);
    for (guint i = 0; i < g->spans->len; i++)
        SPAN(g, i)->child_count = 0;
    for (guint i = 0; i < g->spans->len; i++) {
        request_span *s = SPAN(g, i);
        if (s->parent == REQUEST_NONE)
            continue;
        SPAN(g, s->parent)->child_count++;
    }
    g->public.spans = (request_span *)g->spans->data;
    g->public.span_count = g->spans->len;
    clock_alignment_shift_spans(g->alignment, &g->public, g->clocks);
    estimate_sides(g);
    clock_alignment_check_parents(&g->public, g->clocks);
    for (guint i = 0; i < g->spans->len; i++) {
        request_span *s = SPAN(g, i);
        if (s->parent == REQUEST_NONE)
            continue;
        int64_t bound_ns = clock_bounds_between(g->clocks, s->host, SPAN(g, s->parent)->host);
        s->outlives_parent = s->end_ns - SPAN(g, s->parent)->end_ns > (bound_ns == CLOCK_BOUND_UNKNOWN ? 0 : bound_ns);
    }
}

/* Sets the self times: a span's duration without the union of its children's times. */
static void find_self_times(graph *g)
{
    g_array_set_size(g->items, 0);
    for (guint i = 0; i < g->spans->len; i++) {
        request_span *s = SPAN(g, i);
        s->self_ns = s->end_ns - s->begin_ns;
        sort_item item = {.major = s->parent, .time_ns = s->begin_ns, .index = i};
        if (s->parent != REQUEST_NONE)
            add_item(g, item);
    }
    sort_items(g);
    int64_t covered_ns = 0;
    for (guint i = 0; i < g->items->len; i++) {
        const sort_item *item = AT(g->items, sort_item, i);
        const request_span *child = SPAN(g, item->index);
        request_span *parent = SPAN(g, child->parent);
        if (i == 0 || item->major != AT(g->items, sort_item, i - 1)->major)
            covered_ns = parent->begin_ns;
        int64_t from_ns = MAX(child->begin_ns, covered_ns), to_ns = MIN(child->end_ns, parent->end_ns);
        if (to_ns > from_ns) {
            parent->self_ns -= to_ns - from_ns;
            covered_ns = to_ns;
        }
    }
}

/* ---- strands ---- */

static uint32_t strand_of_lane(graph *g, uint32_t place, uint32_t thread)
{
    uint64_t lane = lane_of(place, thread);
    guint low = 0, high = g->lanes->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(g->lanes, uint64_t, middle) < lane)
            low = middle + 1;
        else
            high = middle;
    }
    return g->spans->len + low;
}

static int by_lane(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers the threads of the request's programs. */
static void find_lanes(graph *g)
{
    g_array_set_size(g->lanes, 0);
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        uint64_t lane = lane_of(EVENT(g, i)->place, EVENT(g, i)->thread);
        if (g->lanes->len == 0 || g_array_index(g->lanes, uint64_t, g->lanes->len - 1) != lane)
            g_array_append_val(g->lanes, lane);
    }
    uint64_t spare;
    sort_array(g->lanes, by_lane, &spare);
    guint kept = 0;
    for (guint i = 0; i < g->lanes->len; i++)
        if (i == 0 || g_array_index(g->lanes, uint64_t, i) != g_array_index(g->lanes, uint64_t, kept - 1))
            g_array_index(g->lanes, uint64_t, kept++) = g_array_index(g->lanes, uint64_t, i);
    g_array_set_size(g->lanes, kept);
}

static uint32_t strand_around(graph *g, const request_span *s)
{
    return s->parent != REQUEST_NONE ? s->parent : strand_of_lane(g, s->place, s->thread);
}

static void add_node(graph *g, int64_t time_ns, uint32_t strand, uint32_t order, uint32_t event, uint32_t child,
                     uint8_t rank)
{
    make_space(g->nodes, &g->node_capacity);
    *NODE(g, g->nodes->len++) = (graph_node){time_ns, strand, order, event, child, rank};
}

static void add_span_nodes(graph *g, uint32_t index)
{
    const request_span *s = SPAN(g, index);
    uint32_t begin_order = s->begin != REQUEST_NONE ? EVENT(g, s->begin)->order : 0;
    uint32_t end_order = s->end != REQUEST_NONE ? EVENT(g, s->end)->order : UINT32_MAX;
    add_node(g, s->begin_ns, index, begin_order, s->begin, REQUEST_NONE, RANK_BEGIN);
    add_node(g, s->end_ns, index, end_order, s->end, REQUEST_NONE, RANK_END);
    if (s->parent == REQUEST_NONE || !s->outlives_parent) {
        int64_t join_ns = s->parent == REQUEST_NONE ? s->end_ns : MIN(s->end_ns, SPAN(g, s->parent)->end_ns);
        add_node(g, join_ns, strand_around(g, s), end_order, REQUEST_NONE, index, RANK_MIDDLE);
    }
}

static void find_strands(graph *g)
{
    find_lanes(g);
    g_array_set_size(g->nodes, 0);
    for (uint32_t i = 0; i < g->spans->len; i++)
        add_span_nodes(g, i);
    for (uint32_t i = 0; i < g->public.event_count; i++) {
        const request_event *e = EVENT(g, i);
        uint32_t span = g_array_index(g->event_strand, uint32_t, i);
        int64_t shift_ns =
            span != REQUEST_NONE ? SPAN(g, span)->shift_ns : clock_alignment_shift(g->alignment, e->host);
        if (e->role == REQUEST_POINT)
            add_node(g, e->time_ns + shift_ns, span != REQUEST_NONE ? span : strand_of_lane(g, e->place, e->thread),
                     e->order, i, REQUEST_NONE, RANK_MIDDLE);
    }
    graph_node spare;
    sort_array(g->nodes, by_strand, &spare);
    g_array_set_size(g->strands, 0);
    g_array_set_size(g->strands, g->spans->len + g->lanes->len);
    g_array_set_size(g->event_node, (guint)g->public.event_count);
    for (guint i = 0; i < g->nodes->len; i++) {
        const graph_node *n = NODE(g, i);
        strand *of = AT(g->strands, strand, n->strand);
        if (of->count++ == 0)
            of->first = i;
        if (n->event != REQUEST_NONE)
            g_array_index(g->event_node, uint32_t, n->event) = i;
        if (n->child != REQUEST_NONE)
            NODES(g, n->child)->join = i;
        if (n->rank == RANK_BEGIN)
            NODES(g, n->strand)->begin = i;
        if (n->rank == RANK_END)
            NODES(g, n->strand)->end = i;
    }
}

/* ---- the critical path ---- */

/* Returns the node of the parent's strand after which a span begins, or REQUEST_NONE. */
static uint32_t find_fork(graph *g, uint32_t span)
{
    const request_span *s = SPAN(g, span);
    const strand *around = AT(g->strands, strand, strand_around(g, s));
    uint32_t low = around->first, high = around->first + around->count, join = NODES(g, span)->join;
    if (join != REQUEST_NONE)
        high = join;
    uint32_t begin_order = s->begin != REQUEST_NONE ? EVENT(g, s->begin)->order : UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const graph_node *n = NODE(g, middle);
        if (n->time_ns < s->begin_ns || (n->time_ns == s->begin_ns && n->order <= begin_order))
            low = middle + 1;
        else
            high = middle;
    }
    if (low > around->first)
        return low - 1;
    /* The clocks disagree: the child begins before its parent. */
    return s->parent != REQUEST_NONE ? around->first : REQUEST_NONE;
}

/* Returns the latest event after since_ns that causes an event of another program, or REQUEST_NONE. */
static uint32_t find_cause(const graph *g, uint32_t event, int64_t since_ns)
{
    const request_event *e = EVENT(g, event);
    uint32_t left = CAUSE_SCAN_MAX;
    for (uint32_t i = event; g->edges != NULL && i > 0 && left > 0; left--) {
        const request_event *c = EVENT(g, --i);
        if (c->time_ns < since_ns)
            break;
        if (c->place != e->place && precedence_holds(g->edges, c, e) > 0)
            return i;
    }
    return REQUEST_NONE;
}

/*
 * Returns the event that a node represents: its own event, the end of the span for which it waited, or, if a span's
 * begin is missing, the end of that span.
 */
static uint32_t event_of(const graph *g, uint32_t node)
{
    const graph_node *n = NODE(g, node);
    while (n->child != REQUEST_NONE && SPAN(g, n->child)->end == REQUEST_NONE)
        n = NODE(g, NODES(g, n->child)->end);
    if (n->child != REQUEST_NONE)
        return SPAN(g, n->child)->end;
    return n->event == REQUEST_NONE && n->strand < g->spans->len ? SPAN(g, n->strand)->end : n->event;
}

/* Returns whether the time between a parent's node and its child on another host is an edge and not the parent's own
 * work. */
static bool is_message(const graph *g, uint32_t parent, uint32_t child, uint32_t parent_node)
{
    if (SPAN(g, parent)->place == SPAN(g, child)->place)
        return false;
    return NODE(g, parent_node)->rank == RANK_MIDDLE ? NODE(g, parent_node)->event != REQUEST_NONE
                                                     : SPAN(g, parent)->child_count == 1;
}

/* Classifies the time from node `from` to node `to`. `certainty` is the certainty of an inferred edge, or 0. */
static request_step classify_step(graph *g, uint32_t from, uint32_t to, float certainty)
{
    bool inferred = certainty > 0;
    const graph_node *a = NODE(g, from), *b = NODE(g, to);
    uint32_t spans = g->spans->len;
    request_step step = {
        REQUEST_EDGE, 0, 0, REQUEST_NONE, event_of(g, from), event_of(g, to), inferred, inferred ? certainty : 1};
    if (inferred)
        return step;
    if (a->strand == b->strand) {
        bool reply = a->strand < spans && a->child != REQUEST_NONE && is_message(g, a->strand, a->child, to);
        if (a->strand >= spans || reply)
            return step;
        step.kind = REQUEST_SELF;
        step.span = a->strand;
    } else if (a->strand < spans && !is_message(g, a->strand, b->strand, from)) { /* a fork */
        step.kind = REQUEST_SELF;
        step.span = a->strand;
        step.inferred = SPAN(g, b->strand)->inferred_parent;
    }
    return step;
}

/*
 * Returns the latest node that had to come before `node`, or REQUEST_NONE. Sets *certainty to the certainty of an
 * inferred edge, or to 0.
 */
static uint32_t find_predecessor(graph *g, uint32_t node, float *certainty)
{
    const graph_node *n = NODE(g, node);
    *certainty = 0;
    if (n->child != REQUEST_NONE)
        return NODES(g, n->child)->end;
    uint32_t before = REQUEST_NONE;
    if (node > AT(g->strands, strand, n->strand)->first)
        before = node - 1;
    else if (n->strand < g->spans->len)
        before = find_fork(g, n->strand);
    if (n->event == REQUEST_NONE)
        return before;
    bool explicit = n->strand < g->spans->len && SPAN(g, n->strand)->id != 0 && n->rank == RANK_BEGIN &&
                    SPAN(g, n->strand)->parent != REQUEST_NONE;
    int64_t since_ns = before != REQUEST_NONE ? NODE(g, before)->time_ns : INT64_MIN;
    uint32_t cause = explicit ? REQUEST_NONE : find_cause(g, n->event, since_ns);
    if (cause == REQUEST_NONE || (before != REQUEST_NONE && EVENT(g, cause)->time_ns <= since_ns))
        return before;
    *certainty = (float)precedence_holds(g->edges, EVENT(g, cause), EVENT(g, n->event));
    return g_array_index(g->event_node, uint32_t, cause);
}

static void add_step(graph *g, request_step step, int64_t from_ns, int64_t to_ns)
{
    step.from_ns = from_ns;
    step.to_ns = to_ns;
    if (step.kind == REQUEST_SELF)
        SPAN(g, step.span)->path_ns += to_ns - from_ns;
    g_array_append_val(g->path, step);
}

static void reverse_path(graph *g)
{
    for (guint i = 0, j = g->path->len; i + 1 < j; i++) {
        request_step swap = *AT(g->path, request_step, --j);
        *AT(g->path, request_step, j) = *AT(g->path, request_step, i);
        *AT(g->path, request_step, i) = swap;
    }
}

/* Returns the node of the request's last event. Sets the request's times if shifts changed them. */
static uint32_t find_last_node(graph *g)
{
    uint32_t last = g_array_index(g->event_node, uint32_t, g->public.event_count - 1);
    if (!clock_alignment_has_shifts(g->alignment))
        return last;
    g->public.from_ns = INT64_MAX;
    for (guint i = 0; i < g->nodes->len; i++) {
        const graph_node *n = NODE(g, i);
        g->public.from_ns = MIN(g->public.from_ns, n->time_ns);
        if (n->child == REQUEST_NONE && (n->time_ns > NODE(g, last)->time_ns ||
                                         (n->time_ns == NODE(g, last)->time_ns && n->order > NODE(g, last)->order)))
            last = i;
    }
    /* The event that was last by its own clock may have been shifted to a time before other events. */
    g->public.to_ns = NODE(g, last)->time_ns;
    return last;
}

static void find_path(graph *g)
{
    g_array_set_size(g->path, 0);
    for (guint i = 0; i < g->spans->len; i++)
        SPAN(g, i)->path_ns = 0;
    uint32_t node = find_last_node(g);
    int64_t at_ns = g->public.to_ns;
    for (size_t left = 4 * (size_t)g->nodes->len + 16; left > 0; left--) {
        float certainty;
        uint32_t before = find_predecessor(g, node, &certainty);
        if (before == REQUEST_NONE)
            break;
        int64_t from_ns = MAX(NODE(g, before)->time_ns, g->public.from_ns);
        if (from_ns < at_ns) {
            add_step(g, classify_step(g, before, node, certainty), from_ns, at_ns);
            at_ns = from_ns;
        }
        node = before;
    }
    if (at_ns > g->public.from_ns) {
        request_step unknown = {REQUEST_UNKNOWN, 0, 0, REQUEST_NONE, REQUEST_NONE, event_of(g, node), false, 1};
        add_step(g, unknown, g->public.from_ns, at_ns);
    }
    reverse_path(g);
}

unsigned request_problems_doubts(const request_problems *p)
{
    bool records = p->no_begin + p->no_end + p->no_parent + p->missing > 0,
         clocks = p->unknown_clocks + p->late > 0 || p->violations > p->one_clock, times = p->one_clock + p->cycles > 0;
    return (records ? REQUEST_DOUBT_RECORDS : 0u) | (clocks ? REQUEST_DOUBT_CLOCKS : 0u) |
           (times ? REQUEST_DOUBT_TIMES : 0u);
}

void request_graph_build(request_graph *public, request_event *events, size_t count, const precedence *edges,
                         const clock_bounds *clocks)
{
    graph *g = (graph *)public;
    g->edges = edges;
    g->clocks = clocks;
    *public = (request_graph){.events = events, .event_count = count};
    for (size_t i = 1; i < count; i++)
        if (by_event_time(&events[i - 1], &events[i]) > 0) {
            qsort(events, count, sizeof *events, by_event_time);
            break;
        }
    find_spans(g);
    public->from_ns = events[0].time_ns;
    public->to_ns = events[count - 1].time_ns;
    for (size_t i = 0; i < count; i++) {
        int64_t begin_ns = events[i].time_ns - (events[i].role == REQUEST_WHOLE ? MAX(events[i].duration_ns, 0) : 0);
        public->from_ns = MIN(public->from_ns, begin_ns);
        public->failed = public->failed || events[i].failed;
    }
    g->public.problems.missing = edges != NULL ? precedence_count_missing(edges, events, count) : 0;
    find_parents(g);
    find_self_times(g);
    find_strands(g);
    find_path(g);
    public->path = (request_step *)g->path->data;
    public->path_count = g->path->len;
}
