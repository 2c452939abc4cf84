/*
 * The module searches the path in a graph of strands. A strand is a sequence of nodes in program order. Each span has a
 * strand, and each thread of a program has a strand for the events that no span covers. A node is an event or a join.
 * At a join, a span continues after one of its children has ended. The fork of a child is the latest node of its
 * parent's strand before the child begins. A node therefore has four possible predecessors: the node before it in its
 * strand, the end of a child, the node's fork, and an event of another program that caused the node.
 *
 * If times are consistent, the search ends, because each step goes to an earlier time, to an earlier node of a strand,
 * or from a span to its child or parent. With inconsistent times, the search could loop. Therefore, the number of steps
 * is also limited.
 */
#include "config.h"

#include "requests/critical_path.h"

#include "requests/key_map.h"
#include "requests/whole_spans.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAUSE_SCAN_MAX = 256, /* maximum number of events or nodes to examine for the causes of one event */
    SCANS_PER_NODE = 4,   /* number of additional nodes that all searches together may examine, per node of the graph */
    SMALL_STRAND_MAX = 32,
};

typedef enum node_kind { NODE_BEGIN, NODE_MIDDLE, NODE_END } node_kind;

typedef struct graph_node {
    int64_t time_ns;
    uint32_t strand;
    uint32_t order;
    uint32_t event; /* index; REQUEST_NONE for joins, and for starts and ends without a record */
    uint32_t child; /* for a join, index of the child that ended; otherwise REQUEST_NONE */
    node_kind kind;
} graph_node;

/* The strand and the nodes (indices) of a span. */
typedef struct span_nodes {
    uint32_t around; /* index of the strand in which the span begins: the strand of its parent or of its thread */
    uint32_t begin, end;
    uint32_t join; /* the join in the strand `around`; REQUEST_NONE if the parent does not wait for the span */
} span_nodes;

/* A range of nodes. A span's strand begins with the start of the span, and ends with its end. */
typedef struct strand {
    uint32_t first, count;
} strand;

struct critical_path {
    request_graph *graph; /* the latest request */
    const precedence *edges;
    const clock_alignment *alignment;
    size_t capacity; /* maximum number of events */
    key_map lanes;   /* maps a thread of a program to the index of its strand + 1 */
    uint32_t node_count, strand_count;
    size_t step_count;
    graph_node *nodes;
    strand *strands;
    span_nodes *spans;      /* indexed by span */
    uint32_t *event_strand; /* indexed by event: index of the strand of a point */
    uint32_t *event_node;   /* indexed by event: index of the event's node */
    uint32_t *replies;      /* indexed by event, if has_replies: see precedence_find_replies */
    bool has_replies;
    request_step *path;
};

critical_path *critical_path_new(void)
{
    return g_new0(critical_path, 1);
}

static void free_arrays(critical_path *p)
{
    g_free(p->nodes);
    g_free(p->strands);
    g_free(p->spans);
    g_free(p->event_strand);
    g_free(p->event_node);
    g_free(p->replies);
    g_free(p->path);
}

void critical_path_free(critical_path *p)
{
    if (p == NULL)
        return;
    free_arrays(p);
    key_map_free(&p->lanes);
    g_free(p);
}

/*
 * Allocates memory for a request with this number of events. Three facts bound the sizes: an event belongs to at most
 * one span, a span has at most three nodes, and no two steps of the path begin at the same time.
 */
static void reserve(critical_path *p, size_t events)
{
    if (events <= p->capacity)
        return;
    free_arrays(p);
    p->capacity = MAX(events, 2 * p->capacity);
    p->nodes = g_new(graph_node, 3 * p->capacity);
    p->strands = g_new(strand, 2 * p->capacity);
    p->spans = g_new(span_nodes, p->capacity);
    p->event_strand = g_new(uint32_t, p->capacity);
    p->event_node = g_new(uint32_t, p->capacity);
    p->replies = g_new(uint32_t, p->capacity);
    p->path = g_new(request_step, 3 * p->capacity + 2);
}

static request_span *span_at(const critical_path *p, uint32_t index)
{
    return &p->graph->spans[index];
}

static const request_event *event_at(const critical_path *p, uint32_t index)
{
    return &p->graph->events[index];
}

/* ---- strands ---- */

static uint32_t strand_of_thread(critical_path *p, uint32_t place, uint32_t thread)
{
    uint64_t *number = key_map_add(&p->lanes, ((uint64_t)place << 32 | thread) + 1);
    if (*number == 0) {
        *number = p->strand_count + 1;
        p->strands[p->strand_count++].count = 0;
    }
    return (uint32_t)(*number - 1);
}

static void count_nodes(critical_path *p, const uint32_t *event_span)
{
    const request_graph *g = p->graph;
    p->strand_count = (uint32_t)g->span_count;
    for (uint32_t i = 0; i < g->span_count; i++)
        p->strands[i].count = 2;
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        uint32_t around = s->parent != REQUEST_NONE ? s->parent : strand_of_thread(p, s->place, s->thread);
        p->spans[i].around = around;
        p->strands[around].count += s->parent == REQUEST_NONE || !s->outlives_parent;
    }
    for (uint32_t i = 0; i < g->event_count; i++) {
        const request_event *e = event_at(p, i);
        if (e->role != REQUEST_POINT)
            continue;
        uint32_t strand = event_span[i] != REQUEST_NONE ? event_span[i] : strand_of_thread(p, e->place, e->thread);
        p->event_strand[i] = strand;
        p->strands[strand].count++;
    }
}

/*
 * Sets the ranges of the strands from their node counts. Then sets each count to the number of nodes that the strand
 * already has: 1 for a span (its start), otherwise 0.
 */
static void place_strands(critical_path *p)
{
    p->node_count = 0;
    for (uint32_t i = 0; i < p->strand_count; i++) {
        p->strands[i].first = p->node_count;
        p->node_count += p->strands[i].count;
        p->strands[i].count = i < p->graph->span_count;
    }
}

static void add_middle(critical_path *p, graph_node node)
{
    strand *s = &p->strands[node.strand];
    p->nodes[s->first + s->count++] = node;
}

static void add_span_nodes(critical_path *p, uint32_t index)
{
    const request_span *s = span_at(p, index);
    span_nodes *nodes = &p->spans[index];
    uint32_t begin_order = s->begin != REQUEST_NONE ? event_at(p, s->begin)->order : 0;
    uint32_t end_order = s->end != REQUEST_NONE ? event_at(p, s->end)->order : UINT32_MAX;
    nodes->begin = p->strands[index].first;
    nodes->end = (index + 1 < p->strand_count ? p->strands[index + 1].first : p->node_count) - 1;
    p->nodes[nodes->begin] = (graph_node){s->begin_ns, index, begin_order, s->begin, REQUEST_NONE, NODE_BEGIN};
    p->nodes[nodes->end] = (graph_node){s->end_ns, index, end_order, s->end, REQUEST_NONE, NODE_END};
    nodes->join = REQUEST_NONE;
    if (s->parent != REQUEST_NONE && s->outlives_parent)
        return;
    int64_t join_ns = s->parent == REQUEST_NONE ? s->end_ns : MIN(s->end_ns, span_at(p, s->parent)->end_ns);
    add_middle(p, (graph_node){join_ns, nodes->around, end_order, REQUEST_NONE, index, NODE_MIDDLE});
}

static int by_time(const void *a, const void *b)
{
    const graph_node *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Sorts nodes by time. Most strands are short or already sorted. */
static void sort_nodes(graph_node *nodes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t at = i;
        graph_node node = nodes[i];
        if (by_time(&nodes[i - 1], &node) <= 0)
            continue;
        if (count > SMALL_STRAND_MAX) {
            qsort(nodes, count, sizeof *nodes, by_time);
            return;
        }
        for (; at > 0 && by_time(&nodes[at - 1], &node) > 0; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
}

static void find_strands(critical_path *p, const uint32_t *event_span)
{
    const request_graph *g = p->graph;
    key_map_reset(&p->lanes, 0);
    count_nodes(p, event_span);
    place_strands(p);
    for (uint32_t i = 0; i < g->span_count; i++)
        add_span_nodes(p, i);
    for (uint32_t i = 0; i < g->event_count; i++) {
        const request_event *e = event_at(p, i);
        if (e->role != REQUEST_POINT)
            continue;
        int64_t shift_ns = event_span[i] != REQUEST_NONE ? span_at(p, event_span[i])->shift_ns
                                                         : clock_alignment_shift(p->alignment, e->host);
        add_middle(p, (graph_node){e->time_ns + shift_ns, p->event_strand[i], e->order, i, REQUEST_NONE, NODE_MIDDLE});
    }
    for (uint32_t i = 0; i < p->strand_count; i++) {
        strand *s = &p->strands[i];
        bool is_span = i < g->span_count;
        sort_nodes(&p->nodes[s->first + is_span], s->count - is_span);
        s->count += is_span;
    }
    for (uint32_t i = 0; i < p->node_count; i++) {
        const graph_node *n = &p->nodes[i];
        if (n->event != REQUEST_NONE)
            p->event_node[n->event] = i;
        if (n->child != REQUEST_NONE)
            p->spans[n->child].join = i;
    }
}

/* ---- the path ---- */

/*
 * Returns the index of the fork of a span: the latest node of the strand around the span before the span begins. If
 * there is no such node, returns the parent's start, or REQUEST_NONE for a span without a parent.
 */
static uint32_t find_fork(const critical_path *p, uint32_t span)
{
    const request_span *s = span_at(p, span);
    const strand *around = &p->strands[p->spans[span].around];
    uint32_t low = around->first, high = around->first + around->count, join = p->spans[span].join;
    if (join != REQUEST_NONE)
        high = join;
    uint32_t begin_order = s->begin != REQUEST_NONE ? event_at(p, s->begin)->order : UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const graph_node *n = &p->nodes[middle];
        if (n->time_ns < s->begin_ns || (n->time_ns == s->begin_ns && n->order <= begin_order))
            low = middle + 1;
        else
            high = middle;
    }
    if (low > around->first)
        return low - 1;
    /* The child seems to begin before its parent, because their clocks disagree. */
    return s->parent != REQUEST_NONE ? around->first : REQUEST_NONE;
}

/* Returns the index of the reply to which an event belongs (see precedence_find_replies), or REQUEST_NONE. */
static uint32_t find_reply(const critical_path *p, uint32_t event)
{
    return p->has_replies ? p->replies[event] : REQUEST_NONE;
}

/* Returns the certainty that one event causes another event, if no event between them does. The arguments are indices.
 */
static double certainty_of(const critical_path *p, uint32_t cause, uint32_t effect)
{
    const request_event *c = event_at(p, cause), *e = event_at(p, effect);
    if (find_reply(p, effect) != REQUEST_NONE)
        return find_reply(p, effect) == cause ? precedence_replies(p->edges, e) : 0;
    const double certainty = precedence_holds(p->edges, c, e);
    return certainty > 0 ? certainty : precedence_holds_without_others(p->edges, c, e);
}

/*
 * Returns the latest event, at or after since_ns, that causes `event` and is from another program or host. Examines the
 * CAUSE_SCAN_MAX events before `event`. Returns REQUEST_NONE if there is no cause.
 */
static uint32_t find_cause(const critical_path *p, uint32_t event, int64_t since_ns)
{
    const request_event *e = event_at(p, event);
    uint32_t left = CAUSE_SCAN_MAX;
    for (uint32_t i = event; p->edges != NULL && i > 0 && left > 0; left--) {
        const request_event *c = event_at(p, --i);
        if (c->time_ns < since_ns)
            break;
        if (c->place != e->place && certainty_of(p, i, event) > 0)
            return i;
    }
    return REQUEST_NONE;
}

/* Returns whether the span consists of a single record and has no span ID. */
static bool is_whole(const request_span *s)
{
    return s->begin == REQUEST_NONE && s->end != REQUEST_NONE && s->id == 0;
}

/*
 * For a whole span without a parent, returns the latest event that ends before the span begins and is a cause of the
 * span (whole_spans_follow). Returns REQUEST_NONE if there is no such event. Sets *certainty.
 */
static uint32_t find_former(const critical_path *p, const request_span *s, float *certainty)
{
    const whole_spans *whole = precedence_whole_spans(p->edges);
    uint32_t left = CAUSE_SCAN_MAX;
    for (uint32_t i = s->end; whole != NULL && i > 0 && left > 0; left--) {
        const request_event *c = event_at(p, --i);
        int64_t rounding_ns = whole_spans_rounding(whole, c, event_at(p, s->end));
        bool is_before = c->time_ns <= s->begin_ns + rounding_ns;
        double holds = is_before ? whole_spans_follow(whole, c, event_at(p, s->end)) : 0;
        if (holds > 0) {
            *certainty = (float)holds;
            return i;
        }
    }
    return REQUEST_NONE;
}

/*
 * Returns the index of the event that a node represents: the node's own event or, for a join, the end event of the
 * child. A start or end without a record represents the end event of its span. Returns REQUEST_NONE if this event is
 * missing.
 */
static uint32_t event_of(const critical_path *p, uint32_t node)
{
    const graph_node *n = &p->nodes[node];
    while (n->child != REQUEST_NONE && span_at(p, n->child)->end == REQUEST_NONE)
        n = &p->nodes[p->spans[n->child].end];
    if (n->child != REQUEST_NONE)
        return span_at(p, n->child)->end;
    return n->event == REQUEST_NONE && n->strand < p->graph->span_count ? span_at(p, n->strand)->end : n->event;
}

/*
 * Returns whether the time between a parent's node and a child is a message between programs, and not work of the
 * parent.
 */
static bool is_message(const critical_path *p, uint32_t parent, uint32_t child, uint32_t parent_node)
{
    const graph_node *n = &p->nodes[parent_node];
    if (span_at(p, parent)->place == span_at(p, child)->place)
        return false;
    return n->kind == NODE_MIDDLE ? n->event != REQUEST_NONE : span_at(p, parent)->child_count == 1;
}

/*
 * Returns the kind of the step from node `from` to node `to`, without its times. `certainty` is the certainty of an
 * inferred edge, or 0.
 */
static request_step classify_step(const critical_path *p, uint32_t from, uint32_t to, float certainty)
{
    bool inferred = certainty > 0;
    const graph_node *a = &p->nodes[from], *b = &p->nodes[to];
    size_t spans = p->graph->span_count;
    request_step step = {
        REQUEST_EDGE, 0, 0, REQUEST_NONE, event_of(p, from), event_of(p, to), inferred, inferred ? certainty : 1};
    if (inferred)
        return step;
    if (a->strand == b->strand) {
        bool reply = a->strand < spans && a->child != REQUEST_NONE && is_message(p, a->strand, a->child, to);
        if (a->strand >= spans || reply)
            return step;
        step.kind = REQUEST_SELF;
        step.span = a->strand;
    } else if (a->strand < spans && !is_message(p, a->strand, b->strand, from)) { /* a fork */
        step.kind = REQUEST_SELF;
        step.span = a->strand;
        step.inferred = span_at(p, b->strand)->inferred_parent;
    }
    return step;
}

/*
 * Returns the latest node that had to come before `node`, or REQUEST_NONE. Sets *certainty to the certainty of an
 * inferred edge, or to 0.
 */
static uint32_t find_predecessor(const critical_path *p, uint32_t node, float *certainty)
{
    const graph_node *n = &p->nodes[node];
    *certainty = 0;
    if (n->child != REQUEST_NONE)
        return p->spans[n->child].end;
    uint32_t before = REQUEST_NONE;
    bool is_span = n->strand < p->graph->span_count;
    if (node > p->strands[n->strand].first)
        before = node - 1;
    else if (is_span)
        before = find_fork(p, n->strand);
    int64_t since_ns = before != REQUEST_NONE ? p->nodes[before].time_ns : INT64_MIN;
    if (is_span && n->kind == NODE_BEGIN && is_whole(span_at(p, n->strand)) &&
        span_at(p, n->strand)->parent == REQUEST_NONE) {
        uint32_t former = find_former(p, span_at(p, n->strand), certainty);
        if (former != REQUEST_NONE && event_at(p, former)->time_ns > since_ns)
            return p->event_node[former];
        *certainty = 0;
    }
    /*
     * A whole span has only one record, whose time is its end. The order of such records does not show what caused a
     * span.
     */
    if (n->event == REQUEST_NONE || (is_span && is_whole(span_at(p, n->strand))))
        return before;
    bool explicit = is_span && span_at(p, n->strand)->id != 0 && n->kind == NODE_BEGIN &&
                    span_at(p, n->strand)->parent != REQUEST_NONE;
    uint32_t cause = explicit ? REQUEST_NONE : find_cause(p, n->event, since_ns);
    if (cause == REQUEST_NONE || (before != REQUEST_NONE && event_at(p, cause)->time_ns <= since_ns))
        return before;
    *certainty = (float)certainty_of(p, cause, n->event);
    return p->event_node[cause];
}

static void add_step(critical_path *p, request_step step, int64_t from_ns, int64_t to_ns)
{
    step.from_ns = from_ns;
    step.to_ns = to_ns;
    if (step.kind == REQUEST_SELF)
        span_at(p, step.span)->path_ns += to_ns - from_ns;
    p->path[p->step_count++] = step;
}

static void reverse_path(critical_path *p)
{
    for (size_t i = 0, j = p->step_count; i + 1 < j; i++) {
        request_step swap = p->path[--j];
        p->path[j] = p->path[i];
        p->path[i] = swap;
    }
}

/*
 * Returns the index of the node of the request's last event. If spans were shifted, also updates the request's times.
 */
static uint32_t find_last_node(critical_path *p)
{
    request_graph *g = p->graph;
    uint32_t last = p->event_node[g->event_count - 1];
    if (!clock_alignment_has_shifts(p->alignment))
        return last;
    g->from_ns = INT64_MAX;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const graph_node *n = &p->nodes[i];
        g->from_ns = MIN(g->from_ns, n->time_ns);
        if (n->child == REQUEST_NONE && by_time(n, &p->nodes[last]) > 0)
            last = i;
    }
    /* The event that was last before the shifts may now be before other events. */
    g->to_ns = p->nodes[last].time_ns;
    return last;
}

static void find_path(critical_path *p)
{
    request_graph *g = p->graph;
    p->step_count = 0;
    for (size_t i = 0; i < g->span_count; i++)
        g->spans[i].path_ns = 0;
    uint32_t node = find_last_node(p);
    int64_t at_ns = g->to_ns;
    for (size_t left = 4 * (size_t)p->node_count + 16; left > 0; left--) {
        float certainty;
        uint32_t before = find_predecessor(p, node, &certainty);
        if (before == REQUEST_NONE)
            break;
        int64_t from_ns = MAX(p->nodes[before].time_ns, g->from_ns);
        if (from_ns < at_ns) {
            add_step(p, classify_step(p, before, node, certainty), from_ns, at_ns);
            at_ns = from_ns;
        }
        node = before;
    }
    if (at_ns > g->from_ns) {
        request_step unknown = {REQUEST_UNKNOWN, 0, 0, REQUEST_NONE, REQUEST_NONE, event_of(p, node), false, 1};
        add_step(p, unknown, g->from_ns, at_ns);
    }
    reverse_path(p);
}

void critical_path_find(critical_path *p, request_graph *g, const uint32_t *event_span, const precedence *edges,
                        const clock_alignment *alignment)
{
    p->graph = g;
    p->edges = edges;
    p->alignment = alignment;
    reserve(p, g->event_count);
    p->has_replies = edges != NULL && precedence_find_replies(edges, g->events, g->event_count, p->replies);
    find_strands(p, event_span);
    find_path(p);
    g->path = p->path;
    g->path_count = p->step_count;
}

/* ---- edges ---- */

typedef struct edge_search {
    const critical_path *p;
    GArray *found;    /* request_edge */
    GArray *replaced; /* request_edge: edges within a program that edges from other programs usually imply */
    size_t credit;    /* remaining number of nodes to examine in addition to CAUSE_SCAN_MAX nodes for each event */
} edge_search;

/* `certainty` is the certainty of an inferred edge, or 0. */
static void add_edge(GArray *edges, uint32_t from, uint32_t to, double certainty, bool is_start)
{
    request_edge edge = {from, to, certainty > 0 ? (float)certainty : 1, certainty > 0, is_start};
    if (from != REQUEST_NONE && to != REQUEST_NONE && from != to)
        g_array_append_val(edges, edge);
}

/*
 * Adds the edges to `event` from a strand's nodes before `until`. These edges lead from the ends of the children that
 * the strand waited for, latest first, and from the event before their forks. Examines at most *left nodes. Subtracts
 * the number of examined nodes from *left.
 */
static void search_strand(const edge_search *e, uint32_t number, uint32_t until, uint32_t event, size_t *left)
{
    const critical_path *p = e->p;
    /* Nodes up to this index need no edge, because a child that began after them already has an edge. */
    uint32_t covered = 0;
    bool has_joined = false;
    for (;;) {
        uint32_t first = p->strands[number].first;
        for (uint32_t i = until; i > first && *left > 0; --*left) {
            const graph_node *n = &p->nodes[--i];
            if (has_joined && i <= covered)
                return;
            if (n->child == REQUEST_NONE && n->event != REQUEST_NONE) {
                add_edge(e->found, n->event, event, 0, false);
                return;
            }
            uint32_t end = n->child != REQUEST_NONE ? event_of(p, i) : REQUEST_NONE,
                     fork = end != REQUEST_NONE ? find_fork(p, n->child) : REQUEST_NONE;
            add_edge(e->found, end, event, 0, false);
            if (fork != REQUEST_NONE)
                covered = has_joined ? MAX(covered, fork) : fork;
            has_joined = has_joined || end != REQUEST_NONE;
        }
        /* If the start of the span has no record, the search continues in the strand around the span. */
        uint32_t fork = !has_joined && *left > 0 && number < p->graph->span_count ? find_fork(p, number) : REQUEST_NONE;
        if (fork == REQUEST_NONE)
            return;
        number = p->spans[number].around;
        until = fork + 1;
        --*left;
    }
}

/*
 * Adds the edges from a strand to an event. The event after a join of many children may need many nodes; e->credit
 * limits the total to a multiple of the size of the graph.
 */
static void add_strand_edges(edge_search *e, uint32_t number, uint32_t until, uint32_t event)
{
    const size_t allowed = CAUSE_SCAN_MAX + e->credit;
    size_t left = allowed;
    search_strand(e, number, until, event, &left);
    const size_t used = allowed - left;
    e->credit -= used > CAUSE_SCAN_MAX ? used - CAUSE_SCAN_MAX : 0;
}

/* For each other program and host, adds an inferred edge from its latest event after since_ns that causes `event`. */
static void add_causes(const edge_search *e, uint32_t event, int64_t since_ns)
{
    enum { PLACES_MAX = PRECEDENCE_ROLES_MAX };
    uint32_t places[PLACES_MAX], count = 0, left = CAUSE_SCAN_MAX;
    const request_event *effect = event_at(e->p, event);
    for (uint32_t i = event; e->p->edges != NULL && i > 0 && left > 0 && count < PLACES_MAX; left--) {
        const request_event *cause = event_at(e->p, --i);
        uint32_t known = 0;
        if (cause->time_ns <= since_ns)
            return;
        while (known < count && places[known] != cause->place)
            known++;
        if (known < count || cause->place == effect->place)
            continue;
        const double certainty =
            count > 0 ? precedence_holds(e->p->edges, cause, effect) : certainty_of(e->p, i, event);
        if (certainty <= 0)
            continue;
        places[count++] = cause->place;
        add_edge(e->found, i, event, certainty, false);
        if (find_reply(e->p, event) == i)
            return;
    }
}

/*
 * `n` is the start of a span. If a record names the span's parent, and the parent's start event is later than the event
 * of `n`, returns that start event. Otherwise, returns REQUEST_NONE.
 */
static uint32_t find_later_parent(const critical_path *p, const graph_node *n)
{
    const request_span *s = span_at(p, n->strand);
    uint32_t begin = s->parent != REQUEST_NONE ? span_at(p, s->parent)->begin : REQUEST_NONE;
    bool is_later = begin != REQUEST_NONE && event_at(p, begin)->time_ns > event_at(p, n->event)->time_ns;
    return s->names_parent && is_later ? begin : REQUEST_NONE;
}

static void add_edges_to(edge_search *e, uint32_t node)
{
    const critical_path *p = e->p;
    const graph_node *n = &p->nodes[node];
    const guint first = e->found->len;
    const bool is_start = n->strand < p->graph->span_count && n->kind == NODE_BEGIN,
               is_explicit = is_start && span_at(p, n->strand)->names_parent;
    uint32_t parent = is_start ? find_later_parent(p, n) : REQUEST_NONE, fork;
    if (parent != REQUEST_NONE) {
        add_edge(e->found, parent, n->event, 0, true);
        return;
    }
    if (node > p->strands[n->strand].first)
        add_strand_edges(e, n->strand, node, n->event);
    else if (is_start && (fork = find_fork(p, n->strand)) != REQUEST_NONE)
        add_strand_edges(e, p->spans[n->strand].around, fork + 1, n->event);
    if (is_explicit)
        return;
    int64_t since_ns = INT64_MIN;
    for (guint i = first; i < e->found->len; i++)
        since_ns = MAX(since_ns, event_at(p, g_array_index(e->found, request_edge, i).from)->time_ns);
    const guint count = e->found->len - first;
    add_causes(e, n->event, since_ns);
    if (count == 1 && e->found->len > first + count) {
        g_array_append_val(e->replaced, g_array_index(e->found, request_edge, first));
        g_array_remove_index(e->found, first);
    }
}

/* The edges to each event, as linked lists. */
typedef struct edge_lists {
    const request_edge *edges;
    guint *first, *next; /* first: by event; next: by edge. G_MAXUINT ends a list. */
    bool *is_seen;       /* by event; all false between calls of is_implied */
} edge_lists;

/*
 * Returns whether a path of other edges leads from edge->from to edge->to. Follows at most IMPLIED_SCAN_MAX edges
 * backwards.
 */
static bool is_implied(const edge_lists *l, const request_edge *edge)
{
    enum { IMPLIED_SCAN_MAX = 64 };
    uint32_t stack[IMPLIED_SCAN_MAX], seen[IMPLIED_SCAN_MAX];
    unsigned depth = 0, seen_count = 0;
    bool is_found = false;
    stack[depth++] = edge->to;
    while (depth > 0 && !is_found) {
        const uint32_t event = stack[--depth];
        for (guint i = l->first[event]; i != G_MAXUINT && !is_found && seen_count < IMPLIED_SCAN_MAX; i = l->next[i]) {
            const uint32_t from = l->edges[i].from;
            if (&l->edges[i] == edge || from < edge->from || from >= event || l->is_seen[from])
                continue;
            is_found = from == edge->from;
            l->is_seen[from] = true;
            seen[seen_count++] = stack[depth++] = from;
        }
    }
    while (seen_count > 0)
        l->is_seen[seen[--seen_count]] = false;
    return is_found;
}

/*
 * Removes the inferred edges, from the edge `first` on, that other edges imply. For example, a program calls another
 * host again after a failure. The second visit then waits for the first visit only because the program waits for the
 * first visit.
 */
static void remove_implied(const critical_path *p, GArray *edges, guint first)
{
    const size_t events = p->graph->event_count;
    edge_lists l = {(const request_edge *)(const void *)edges->data, g_new(guint, events + 1),
                    g_new(guint, edges->len + 1), g_new0(bool, events + 1)};
    memset(l.first, 0xff, events * sizeof *l.first);
    for (guint i = first; i < edges->len; i++) {
        l.next[i] = l.first[l.edges[i].to];
        l.first[l.edges[i].to] = i;
    }
    bool *is_removed = g_new0(bool, edges->len + 1);
    for (guint i = first; i < edges->len; i++)
        is_removed[i] = l.edges[i].inferred && is_implied(&l, &l.edges[i]);
    guint kept = first;
    for (guint i = first; i < edges->len; i++)
        if (!is_removed[i])
            g_array_index(edges, request_edge, kept++) = g_array_index(edges, request_edge, i);
    g_array_set_size(edges, kept);
    g_free(l.first);
    g_free(l.next);
    g_free(l.is_seen);
    g_free(is_removed);
}

void critical_path_find_edges(const critical_path *p, GArray *edges)
{
    edge_search e = {p, edges, g_array_new(FALSE, FALSE, sizeof(request_edge)), (size_t)SCANS_PER_NODE * p->node_count};
    bool *has_effect = g_new0(bool, p->graph->event_count);
    const guint first = edges->len;
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].event != REQUEST_NONE && p->nodes[i].child == REQUEST_NONE)
            add_edges_to(&e, i);
    for (guint i = first; i < edges->len; i++)
        has_effect[g_array_index(edges, request_edge, i).from] = true;
    for (guint i = 0; i < e.replaced->len; i++)
        if (!has_effect[g_array_index(e.replaced, request_edge, i).from])
            g_array_append_val(edges, g_array_index(e.replaced, request_edge, i));
    remove_implied(p, edges, first);
    g_array_free(e.replaced, TRUE);
    g_free(has_effect);
}
