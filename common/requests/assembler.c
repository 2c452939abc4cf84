#include "config.h"

#include "requests/assembler.h"

#include "clocks/name_table.h"
#include "base/hash_bytes.h"
#include "requests/key_map.h"
#include "requests/request_learning.h"
#include "requests/restarts.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_MIN = 2,
    EVENTS_USUAL_MAX = 32,
    GROUPS_MAX = 1 << 16,
    THREAD_EVENTS_MIN = 1024,
    LATER_EVENTS_MIN = 1 << 16, /* number of later events after which a missing end of a span counts as lost */
    AHEAD_COUNT = 100,
};

#define AHEAD_NS ((int64_t)ASSEMBLER_IDLE_S * NL_NS_PER_SECOND)

/* The number of the group that the record of an event names. */
typedef struct group_mark {
    uint32_t order; /* position of the event in the request (request_event.order) */
    uint32_t by;
} group_mark;

/*
 * A request that has not been handed out. Until the request is over, it is in one of the assembler's lists. The lists
 * are sorted by the arrival of the requests' latest events.
 */
typedef struct open_request open_request;
struct open_request {
    uint64_t key;
    open_request *before, *after;
    request_event *events;
    uint32_t count, capacity;
    nl_buffer payloads;
    int64_t latest_ns;  /* time of the latest event */
    uint32_t by;        /* number of the group; 0: unknown */
    uint32_t name_size; /* size of `name` in bytes, including the NUL */
    GArray *marks;      /* group_mark, while learning; otherwise NULL */
    bool complete;
    bool explicit;      /* the request has a trace ID */
    bool root_ended;    /* for a trace: its first event began a span without a parent, and this span has ended */
    int32_t open_spans; /* for a trace: number of spans with span IDs that have begun but not ended */
    bool is_thread;     /* has the events of a thread, whose outermost spans are requests */
    uint32_t split_at;  /* for a thread: number of events at which split_thread is called */
    char *name;
};

typedef struct request_list {
    open_request *oldest, *newest;
} request_list;

struct assembler {
    assembler_options options;
    request_reader *reader;
    request_graph *graph;
    request_learning *knowledge;
    restarts *restarts;
    key_map open;          /* maps a key to an open_request */
    request_list lists[2]; /* the list of incomplete requests, and the list of complete requests */
    GPtrArray *learning;   /* open_request: requests that are over but not handed out, because learning has not ended;
                              NULL after learning */
    GPtrArray *waiting;    /* open_request: traces that are over but not handed out, because the module has not learned
                              from them yet; NULL after this learning */
    uint32_t round_count;  /* while learning: number of events that repeated the first event of their request */
    size_t memory;         /* bytes of all open_requests */
    uint64_t overlapping;  /* see assembler_overlapping */
    uint64_t unselected;   /* see assembler_unselected */
    uint32_t usual_count;  /* number of events of the request that ended last, between EVENTS_MIN and EVENTS_USUAL_MAX;
                              the initial capacity of new requests */
    int64_t now_ns;        /* the time of the log (see advance) */
    /* The latest consecutive events that are more than AHEAD_NS ahead of now_ns. */
    int64_t ahead_ns; /* the earliest time of these events */
    uint32_t ahead_host, ahead_count;
    /* The kind of event with which most requests ended, by majority vote (Boyer and Moore, MJRTY, 1991). */
    uint64_t last_kind;
    uint64_t votes;
    bool by_host;
    name_table groups;
    GArray *visits; /* uint32_t, indexed by host: number of visits by requests */
};

assembler *assembler_new(const assembler_options *options)
{
    assembler *a = g_new0(assembler, 1);
    a->options = *options;
    a->reader = request_reader_new(options->ids, options->fraction);
    if (options->has_nanoseconds)
        request_reader_expect_nanoseconds(a->reader);
    if (options->splits_unnamed)
        request_reader_split_unnamed(a->reader);
    a->graph = request_graph_new(request_reader_names(a->reader));
    a->knowledge = request_learning_new(request_reader_names(a->reader));
    a->restarts = restarts_new();
    a->learning = g_ptr_array_new();
    a->waiting = g_ptr_array_new();
    a->now_ns = -REQUEST_TIME_MAX;
    a->usual_count = EVENTS_MIN;
    a->by_host = options->by != NULL && strcmp(options->by, "HOST") == 0;
    a->visits = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    return a;
}

static size_t memory_of(const open_request *r)
{
    size_t marks = r->marks != NULL ? r->marks->len : 0;
    return sizeof *r + r->capacity * sizeof *r->events + r->payloads.capacity + r->name_size +
           2 * marks * sizeof(group_mark) + 64; /* 64: approximate bytes of the request's entry in the table */
}

static void open_request_free(assembler *a, open_request *r)
{
    a->memory -= memory_of(r);
    g_free(r->events);
    nl_buffer_free(&r->payloads);
    if (r->marks != NULL)
        g_array_free(r->marks, TRUE);
    g_free(r->name);
    g_free(r);
}

void assembler_free(assembler *a)
{
    if (a == NULL)
        return;
    for (int i = 0; i < 2; i++)
        while (a->lists[i].oldest != NULL) {
            open_request *r = a->lists[i].oldest;
            a->lists[i].oldest = r->after;
            open_request_free(a, r);
        }
    GPtrArray *kept[] = {a->learning, a->waiting};
    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        for (guint k = 0; kept[i] != NULL && k < kept[i]->len; k++)
            open_request_free(a, g_ptr_array_index(kept[i], k));
        if (kept[i] != NULL)
            g_ptr_array_free(kept[i], TRUE);
    }
    key_map_free(&a->open);
    g_array_free(a->visits, TRUE);
    name_table_free(&a->groups);
    request_learning_free(a->knowledge);
    restarts_free(a->restarts);
    request_graph_free(a->graph);
    request_reader_free(a->reader);
    g_free(a);
}

/* ---- the lists of open requests ---- */

static void unlink_request(assembler *a, open_request *r)
{
    request_list *l = &a->lists[r->complete];
    *(r->before != NULL ? &r->before->after : &l->oldest) = r->after;
    *(r->after != NULL ? &r->after->before : &l->newest) = r->before;
    r->before = r->after = NULL;
}

static void append_request(assembler *a, open_request *r)
{
    request_list *l = &a->lists[r->complete];
    r->before = l->newest;
    *(l->newest != NULL ? &l->newest->after : &l->oldest) = r;
    l->newest = r;
}

/* ---- requests that are over ---- */

static uint32_t *visits_of(const assembler *a, uint32_t host)
{
    if (host >= a->visits->len)
        g_array_set_size(a->visits, host + 1);
    return &g_array_index(a->visits, uint32_t, host);
}

/* Counts the visits of a request. A visit begins with the first event, and with each event on another host than the
 * event before it. */
static void count_hosts(assembler *a, const request_event *events, uint32_t count)
{
    for (uint32_t i = 0; a->by_host && i < count; i++)
        if (i == 0 || events[i].host != events[i - 1].host)
            ++*visits_of(a, events[i].host);
}

static uint32_t rarest_host(const assembler *a, const request_event *events, uint32_t count)
{
    uint32_t rarest = events[0].host;
    for (uint32_t i = 1; i < count; i++)
        if (*visits_of(a, events[i].host) < *visits_of(a, rarest))
            rarest = events[i].host;
    return rarest;
}

static void drop_events(assembler *a, open_request *r, uint32_t count)
{
    a->memory -= memory_of(r);
    r->count -= count;
    memmove(r->events, r->events + count, r->count * sizeof *r->events);
    if (r->count == 0)
        r->payloads.size = 0;
    a->memory += memory_of(r);
}

/* Returns the maximum time in nanoseconds by which rounding may make a span overlap the spans before and after it. */
static int64_t rounding_of(const request_graph *g, const request_span *s)
{
    const request_event *end = s->begin == REQUEST_NONE ? &g->events[s->end] : NULL;
    if (end != NULL && end->rounding > 3)
        return request_event_rounding(end);
    return s->begin_ns % 1000 == 0 && s->end_ns % 1000 == 0 ? 1000 : 0;
}

/*
 * Returns the number of a thread's outermost spans if they overlap by more than the rounding of their times. Otherwise,
 * returns 0.
 */
static uint32_t count_overlapping(const request_graph *g)
{
    uint32_t outermost = 0;
    int64_t rounding_ns = 0;
    double spans_ns = 0;
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        if (s->parent != REQUEST_NONE)
            continue;
        outermost++;
        rounding_ns += rounding_of(g, s);
        spans_ns += (double)(s->end_ns - s->begin_ns);
    }
    return spans_ns > (double)(g->to_ns - g->from_ns) + (double)rounding_ns ? outermost : 0;
}

void assembler_build_part(const assembler *a, request_graph *g, request_event *events, size_t count)
{
    request_learning_build(a->knowledge, g, events, count, events[0].traced, request_reader_clocks(a->reader));
}

static void hand_out_events(assembler *a, const open_request *r, uint32_t from, uint32_t to, bool cut)
{
    if (!r->is_thread)
        request_learning_correct(a->knowledge, r->events + from, to - from, r->events[from].traced);
    assembler_build_part(a, a->graph, r->events + from, to - from);
    a->graph->payloads = r->payloads.data;
    const char *name = r->name;
    if (r->is_thread) {
        if (a->graph->span_count == 0 && a->options.rest != NULL)
            a->options.rest(a->options.user, a->graph, name, r->by, cut);
        uint32_t overlapping = count_overlapping(a->graph);
        a->overlapping += overlapping;
        a->graph->overlaps = overlapping > 0;
        if (a->graph->span_count == 0)
            return;
        const request_span *outermost = &a->graph->spans[0];
        while (outermost->parent != REQUEST_NONE)
            outermost = &a->graph->spans[outermost->parent];
        name = event_names_text(request_reader_names(a->reader), outermost->name);
    }
    bool selected = a->options.where == NULL || a->graph->overlaps ||
                    request_filter_matches(a->options.where, a->graph, request_reader_names(a->reader));
    a->unselected += !selected;
    assembler_take *take = selected ? a->options.take : a->options.others;
    if (take != NULL)
        take(a->options.user, a->graph, name, r->by, cut);
}

/* The state of a thread after an event. */
typedef struct thread_state {
    int64_t begin_ns; /* the earliest start (request_event_begin) of this event and all later events */
    uint32_t open;    /* number of spans that are open after the event */
    uint32_t low;     /* the minimum of `open` for this event and all later events */
} thread_state;

/*
 * Returns an array with a state for each of a thread's sorted events, and a sentinel. The caller frees the array with
 * g_free.
 */
static thread_state *find_states(const assembler *a, const open_request *r)
{
    thread_state *states = g_new(thread_state, r->count + 1);
    uint32_t open = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        int nesting = request_event_nesting(&r->events[i], request_reader_names(a->reader));
        open = nesting > 0 ? open + 1 : open - (nesting < 0 && open > 0);
        states[i].open = open;
    }
    states[r->count] = (thread_state){INT64_MAX, 0, UINT32_MAX};
    for (uint32_t i = r->count; i-- > 0;) {
        states[i].begin_ns = MIN(states[i + 1].begin_ns, request_event_begin(&r->events[i]));
        states[i].low = MIN(states[i + 1].low, states[i].open);
    }
    return states;
}

/*
 * Hands out the outermost spans of a thread that ended before before_ns, and keeps the other events. before_ns is
 * INT64_MAX if no more events will arrive. If the record of an end was lost, the number of open spans stays too large.
 * In this case, the outermost span counts as ended when another span of the same name begins. The loss is certain only
 * after all events of the thread, or more than LATER_EVENTS_MIN later events, have arrived.
 */
static void split_thread(assembler *a, open_request *r, int64_t before_ns)
{
    uint32_t from = 0, lost = 0; /* lost: number of spans that never end, because the records of their ends were lost */
    qsort(r->events, r->count, sizeof *r->events, request_event_compare);
    thread_state *states = find_states(a, r);
    for (uint32_t i = 0; i < r->count && r->events[i].time_ns < before_ns; i++) {
        const thread_state *next = &states[i + 1];
        bool may_end = next->begin_ns >= r->events[i].time_ns, ended = states[i].open <= lost,
             is_certain = before_ns == INT64_MAX || r->count - i > LATER_EVENTS_MIN;
        bool begins_again = !ended && is_certain && i + 1 < r->count && next->open > states[i].open &&
                            next->low >= states[i].open &&
                            request_event_kind(&r->events[i + 1]) == request_event_kind(&r->events[from]);
        if (!may_end || !(ended || begins_again))
            continue;
        hand_out_events(a, r, from, i + 1, false);
        from = i + 1;
        lost = states[i].open;
    }
    g_free(states);
    drop_events(a, r, from);
    r->split_at = MAX(THREAD_EVENTS_MIN, 2 * r->count);
}

static void hand_out(assembler *a, open_request *r, bool cut)
{
    r->by = a->by_host ? rarest_host(a, r->events, r->count) : r->by;
    if (r->is_thread)
        split_thread(a, r, INT64_MAX);
    if (r->count > 0)
        hand_out_events(a, r, 0, r->count, cut);
    open_request_free(a, r);
}

static void vote(assembler *a, const request_event *last)
{
    uint64_t kind = request_event_kind(last);
    if (a->votes == 0)
        a->last_kind = kind;
    a->votes += kind == a->last_kind ? 1 : -1;
}

/* ---- learning ---- */

/* Returns the index after the last event of the round (restarts.h) that begins at the event `from`. */
static uint32_t round_end(const assembler *a, const open_request *r, uint32_t from)
{
    uint32_t i = from + 1;
    while (i < r->count && (i < from + EVENTS_MIN ||
                            !restarts_splits(a->restarts, &r->events[from], &r->events[i - 1], &r->events[i], false)))
        i++;
    return i;
}

static int by_order(const void *a, const void *b)
{
    const group_mark *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* Returns the group of the round [from, to): its rarest host, or the first group that its records name, or 0. */
static uint32_t group_of_round(const assembler *a, const open_request *r, uint32_t from, uint32_t to)
{
    if (a->by_host)
        return rarest_host(a, r->events + from, to - from);
    group_mark first = {UINT32_MAX, 0};
    for (uint32_t i = from; i < to && r->marks != NULL; i++) {
        group_mark key = {r->events[i].order, 0};
        const group_mark *found = bsearch(&key, r->marks->data, r->marks->len, sizeof key, by_order);
        if (found != NULL && found->order < first.order)
            first = *found;
    }
    return first.by;
}

/* Calls `take` for the rounds of a request. Omits the last round unless `over` is true. */
static void each_round(const assembler *a, const open_request *r, bool over,
                       void (*take)(void *user, const request_event *events, uint32_t count), void *user)
{
    for (uint32_t from = 0, to; from < r->count; from = to) {
        to = round_end(a, r, from);
        if (to == r->count && !over)
            break;
        take(user, r->events + from, to - from);
    }
}

/* The requests from which the module learns (finish_learning). */
typedef struct learned_requests {
    assembler *assembler;
    GPtrArray *kept, *unfinished; /* open_request */
} learned_requests;

/* Calls `take` for the rounds of all requests from which the module learns. */
static void each_learned(const learned_requests *s,
                         void (*take)(void *user, const request_event *events, uint32_t count), void *user)
{
    for (guint i = 0; i < s->kept->len; i++)
        each_round(s->assembler, g_ptr_array_index(s->kept, i), true, take, user);
    for (guint i = 0; i < s->unfinished->len; i++)
        each_round(s->assembler, g_ptr_array_index(s->unfinished, i), false, take, user);
}

static void learn_round(void *user, const request_event *events, uint32_t count)
{
    request_learning_add(user, events, count);
}

static void walk_learned(void *user, request_learning *l)
{
    each_learned(user, learn_round, l);
}

static void count_round(void *user, const request_event *events, uint32_t count)
{
    assembler *a = user;
    request_event *corrected = g_memdup2(events, count * sizeof *events);
    request_learning_correct(a->knowledge, corrected, count, false);
    count_hosts(a, corrected, count);
    vote(a, &corrected[count - 1]);
    g_free(corrected);
}

/* Hands out the rounds of a request. If `over` is true, frees the request. Otherwise, keeps its last round. */
static void hand_out_rounds(assembler *a, open_request *r, bool over)
{
    uint32_t from = 0;
    for (uint32_t to; from < r->count; from = to) {
        to = round_end(a, r, from);
        if (to == r->count && !over)
            break;
        uint32_t whole_by = r->by;
        r->by = group_of_round(a, r, from, to);
        hand_out_events(a, r, from, to, false);
        r->by = whole_by;
    }
    if (over) {
        open_request_free(a, r);
        return;
    }
    r->by = a->by_host ? 0 : group_of_round(a, r, from, r->count);
    drop_events(a, r, from);
    if (r->marks != NULL) {
        a->memory -= memory_of(r);
        g_array_free(r->marks, TRUE);
        r->marks = NULL;
        a->memory += memory_of(r);
    }
}

static bool learns_from(const assembler *a, const open_request *r)
{
    return a->learning != NULL && !r->is_thread && !r->explicit && r->count > 0;
}

/*
 * Returns the open requests from which the module learns: the complete requests, then the incomplete requests. In both
 * groups, the request that has been idle longest is first. Sorts the events of these requests by time. The caller frees
 * the array.
 */
static GPtrArray *find_unfinished(const assembler *a)
{
    GPtrArray *found = g_ptr_array_new();
    for (int complete = 1; complete >= 0; complete--)
        for (open_request *r = a->lists[complete].oldest; r != NULL; r = r->after)
            if (learns_from(a, r)) {
                qsort(r->events, r->count, sizeof *r->events, request_event_compare);
                g_ptr_array_add(found, r);
            }
    return found;
}

/*
 * Ends the learning. Hands out the requests that were kept for learning, and the ended rounds of the other requests.
 */
static void finish_learning(assembler *a)
{
    if (a->learning == NULL)
        return;
    GPtrArray *kept = a->learning, *unfinished = find_unfinished(a);
    for (guint i = 0; i < kept->len + unfinished->len; i++) {
        const open_request *r = g_ptr_array_index(i < kept->len ? kept : unfinished, i < kept->len ? i : i - kept->len);
        restarts_learn(a->restarts, r->events, r->count, i < kept->len + unfinished->len / 2);
    }
    restarts_settle(a->restarts);
    learned_requests learned = {a, kept, unfinished};
    request_learning_run(a->knowledge, walk_learned, &learned, request_reader_clocks(a->reader));
    each_learned(&learned, count_round, a);
    a->learning = NULL;
    for (guint i = 0; i < kept->len; i++)
        hand_out_rounds(a, g_ptr_array_index(kept, i), true);
    for (guint i = 0; i < unfinished->len; i++)
        hand_out_rounds(a, g_ptr_array_index(unfinished, i), false);
    g_ptr_array_free(kept, TRUE);
    g_ptr_array_free(unfinished, TRUE);
}

static void walk_waiting(void *user, request_learning *l)
{
    const assembler *a = user;
    for (guint i = 0; i < a->waiting->len; i++) {
        const open_request *r = g_ptr_array_index(a->waiting, i);
        request_learning_add_trace(l, a->graph, r->events, r->count, request_reader_clocks(a->reader));
    }
}

/* Learns from the traces that are over, and hands them out. */
static void finish_waiting(assembler *a)
{
    GPtrArray *kept = a->waiting;
    if (kept == NULL)
        return;
    request_learning_run_traces(a->knowledge, walk_waiting, a, request_reader_clocks(a->reader));
    a->waiting = NULL;
    for (guint i = 0; i < kept->len; i++) {
        const open_request *r = g_ptr_array_index(kept, i);
        qsort(r->events, r->count, sizeof *r->events, request_event_compare);
        count_hosts(a, r->events, r->count);
    }
    for (guint i = 0; i < kept->len; i++)
        hand_out(a, g_ptr_array_index(kept, i), false);
    g_ptr_array_free(kept, TRUE);
}

/*
 * Removes a request that is over from the table. Keeps the request for learning, or hands it out. `cut` is true if
 * memory ran out before the request was over.
 */
static void end_request(assembler *a, open_request *r, bool cut)
{
    unlink_request(a, r);
    key_map_remove(&a->open, r->key);
    a->usual_count = CLAMP(r->count, EVENTS_MIN, EVENTS_USUAL_MAX);
    if (a->waiting != NULL && r->explicit && !cut) {
        g_ptr_array_add(a->waiting, r);
        if (a->waiting->len == ASSEMBLER_LEARNED)
            finish_waiting(a);
        return;
    }
    if (!learns_from(a, r) || cut) {
        count_hosts(a, r->events, r->count);
        hand_out(a, r, cut);
        return;
    }
    qsort(r->events, r->count, sizeof *r->events, request_event_compare);
    g_ptr_array_add(a->learning, r);
    if (a->learning->len == ASSEMBLER_LEARNED)
        finish_learning(a);
}

static open_request *oldest_request(const assembler *a)
{
    return a->lists[1].oldest != NULL ? a->lists[1].oldest : a->lists[0].oldest;
}

/* Returns whether `first` begins the span that `last` ends. */
static bool is_pair(const assembler *a, const request_event *first, const request_event *last)
{
    uint32_t begun, ended;
    const event_names *names = request_reader_names(a->reader);
    return first->place == last->place && first->span_id == last->span_id &&
           event_names_side(names, first->name, &begun) == EVENT_SIDE_BEGIN &&
           event_names_side(names, last->name, &ended) == EVENT_SIDE_END && begun == ended;
}

/* Returns whether the request's latest event is probably its last. */
static bool is_complete(const assembler *a, const open_request *r)
{
    const request_event *first = &r->events[0], *last = &r->events[r->count - 1];
    if (r->is_thread)
        return r->count == 1 && first->role == REQUEST_WHOLE && first->thread == 0;
    if (r->explicit)
        return r->root_ended && r->open_spans <= 0;
    return a->votes > 0 && request_event_kind(last) == a->last_kind;
}

/* Finds the requests that are now complete because last_kind changed after their latest events. */
static void find_complete(assembler *a)
{
    for (open_request *r = a->lists[0].oldest, *after; r != NULL; r = after) {
        after = r->after;
        if (r->count == 0 || !is_complete(a, r))
            continue;
        unlink_request(a, r);
        r->complete = true;
        append_request(a, r);
    }
}

/*
 * Counts the last events of the requests that have been idle longest as votes for last_kind, because these requests are
 * probably over. These votes may complete other requests.
 */
static void vote_for_idle(assembler *a)
{
    uint32_t left = ASSEMBLER_LEARNED;
    for (const open_request *r = a->lists[0].oldest; r != NULL && left > 0; r = r->after, left--)
        if (r->count > 0)
            vote(a, &r->events[r->count - 1]);
    find_complete(a);
}

/* Ends the learning early, because memory is short. */
static void learn_early(assembler *a)
{
    vote_for_idle(a);
    for (uint32_t left = MIN(ASSEMBLER_LEARNED, a->open.count); a->learning != NULL && left > 0; left--)
        end_request(a, oldest_request(a), false);
    finish_learning(a);
}

static void end_idle(assembler *a)
{
    const int64_t pause_s = a->options.pause_s > 0 ? a->options.pause_s : ASSEMBLER_PAUSE_MAX_S,
                  idle_ns[] = {pause_s * NL_NS_PER_SECOND, ASSEMBLER_IDLE_S * NL_NS_PER_SECOND};
    for (int i = 0; i < 2; i++)
        while (a->lists[i].oldest != NULL && a->now_ns - a->lists[i].oldest->latest_ns > idle_ns[i]) {
            open_request *r = a->lists[i].oldest;
            if (r->count > 0)
                vote(a, &r->events[r->count - 1]);
            end_request(a, r, false);
        }
    if (a->waiting != NULL && a->memory > a->options.memory_max)
        finish_waiting(a);
    if (a->learning != NULL && a->memory > a->options.memory_max)
        learn_early(a);
    else if (a->round_count >= ASSEMBLER_LEARNED)
        finish_learning(a);
    while (a->memory > a->options.memory_max && oldest_request(a) != NULL)
        end_request(a, oldest_request(a), !oldest_request(a)->complete);
}

/* ---- records ---- */

/*
 * Returns whether an event belongs to a request of its thread, because it has no trace ID and there are no ID fields.
 */
static bool is_thread(const assembler *a, const request_event *event)
{
    return !event->traced && (a->options.ids == NULL || a->options.ids[0] == NULL);
}

static open_request *new_request(assembler *a, uint64_t key, const request_event *event)
{
    open_request *r = g_new0(open_request, 1);
    r->key = key;
    r->name = request_reader_name_request(a->reader);
    r->name_size = (uint32_t)strlen(r->name) + 1;
    r->latest_ns = INT64_MIN;
    r->explicit = event->traced;
    r->is_thread = is_thread(a, event);
    r->split_at = THREAD_EVENTS_MIN;
    a->memory += memory_of(r);
    *key_map_add(&a->open, key) = (uintptr_t)r;
    append_request(a, r);
    return r;
}

/*
 * Returns whether an event may begin another request with the same ID, because it is of the same kind as the request's
 * first event.
 */
static bool may_begin_again(const open_request *r, const request_event *event)
{
    return !r->explicit && !r->is_thread && r->count >= EVENTS_MIN && event->time_ns >= r->latest_ns &&
           restarts_repeats(&r->events[0], &r->events[r->count - 1], event);
}

/*
 * Returns whether an event ends the request r, because the event begins another request with the same ID. Always
 * returns false while learning.
 */
static bool begins_again(assembler *a, const open_request *r, const request_event *event)
{
    const request_event *first = &r->events[0], *last = &r->events[r->count - 1];
    if (!may_begin_again(r, event))
        return false;
    a->round_count += a->learning != NULL;
    if (a->learning != NULL ||
        !restarts_splits(a->restarts, first, last, event, is_pair(a, first, last) || is_complete(a, r)))
        return false;
    vote(a, last);
    return true;
}

/* Returns the number of the record's group; 0 if the record names no group. */
static uint32_t group_of_record(assembler *a, const nl_record *record)
{
    static const nl_string other = {NAME_OTHER, sizeof NAME_OTHER - 1};
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!nl_record_find(record, a->options.by, &field))
        return 0;
    nl_string text = nl_field_text(&field, scratch);
    if (text.size == 0 || *text.data == '\0')
        return 0;
    size_t number = name_table_find(&a->groups, text);
    if (number == NAME_NONE)
        number = name_table_add(&a->groups, a->groups.count < GROUPS_MAX ? text : other);
    return (uint32_t)number + 1;
}

/*
 * Stores the group of the latest event's record as the request's group, unless the request already has a group. While
 * learning, also stores the group of the event. Ignores the group 0.
 */
static void note_group(assembler *a, open_request *r, uint32_t by)
{
    r->by = r->by == 0 ? by : r->by;
    if (by == 0 || !learns_from(a, r))
        return;
    a->memory -= memory_of(r);
    if (r->marks == NULL)
        r->marks = g_array_new(FALSE, FALSE, sizeof(group_mark));
    group_mark mark = {r->events[r->count - 1].order, by};
    g_array_append_val(r->marks, mark);
    a->memory += memory_of(r);
}

/*
 * Returns whether the event of a record may belong to requests. Sets *first to whether the event is the first in
 * options.events.
 */
static bool selects_event(const assembler *a, const nl_record *record, bool *first)
{
    const char *const *events = a->options.events;
    char buffer[REQUEST_UNNAMED_SIZE];
    nl_string name = record->event;
    int64_t duration_ns;
    bool begins, has_nanoseconds = a->options.has_nanoseconds;
    size_t i = 0;
    if (events != NULL && name.size == 0 &&
        request_duration(record, a->options.fraction, &has_nanoseconds, &duration_ns, &begins))
        name = request_unnamed(a->options.splits_unnamed ? record->prog : (nl_string){0}, buffer);
    while (events != NULL && events[i] != NULL &&
           (strlen(events[i]) != name.size || memcmp(events[i], name.data, name.size) != 0))
        i++;
    *first = events != NULL && i == 0;
    return events == NULL || events[i] != NULL;
}

/*
 * Updates open_spans and root_ended of a trace for an event. Both members are necessary, because a child may end after
 * its root if the root did not wait for the child.
 */
static void count_open_spans(const assembler *a, open_request *r, const request_event *event)
{
    uint32_t span;
    event_side side = event_names_side(request_reader_names(a->reader), event->name, &span);
    if (event->role == REQUEST_BEGIN || event->role == REQUEST_END)
        side = event->role == REQUEST_BEGIN ? EVENT_SIDE_BEGIN : EVENT_SIDE_END;
    if (event->span_id != 0 && (side == EVENT_SIDE_BEGIN || side == EVENT_SIDE_END))
        r->open_spans += side == EVENT_SIDE_BEGIN ? 1 : -1;
    r->root_ended = r->root_ended || (r->events[0].parent == 0 && is_pair(a, &r->events[0], event));
}

static void append_event(assembler *a, open_request *r, const nl_record *record, request_event event)
{
    a->memory -= memory_of(r);
    if (r->count == r->capacity) {
        r->capacity = MAX(EVENTS_MIN, r->capacity == 0 ? a->usual_count : 2 * r->capacity);
        r->events = g_renew(request_event, r->events, r->capacity);
    }
    event.matches = a->options.where != NULL ? request_filter_match_record(a->options.where, record) : 0;
    event.payload = (uint32_t)r->payloads.size;
    if (a->options.pack != NULL && r->payloads.size <= UINT32_MAX - ASSEMBLER_PAYLOAD_MAX) {
        a->options.pack(a->options.user, record, &r->payloads);
        event.payload_size = (uint32_t)(r->payloads.size - event.payload);
        if (event.payload_size > ASSEMBLER_PAYLOAD_MAX) {
            r->payloads.size = event.payload;
            event.payload_size = 0;
        }
    }
    a->memory += memory_of(r);
    r->events[r->count++] = event;
    r->latest_ns = MAX(r->latest_ns, event.time_ns);
}

/*
 * Advances the time of the log to the time of an event. If the event is more than AHEAD_NS ahead, the clock of its host
 * may be wrong. In this case, the time advances only after AHEAD_COUNT consecutive events far ahead, or after two
 * consecutive events far ahead from different hosts.
 */
static void advance(assembler *a, const request_event *event)
{
    if (event->time_ns - a->now_ns <= AHEAD_NS) {
        a->now_ns = MAX(a->now_ns, event->time_ns);
        a->ahead_count = 0;
        return;
    }
    bool agrees = a->ahead_count > 0 && event->host != a->ahead_host;
    a->ahead_ns = a->ahead_count > 0 ? MIN(a->ahead_ns, event->time_ns) : event->time_ns;
    a->ahead_host = event->host;
    if (++a->ahead_count < AHEAD_COUNT && !agrees)
        return;
    a->now_ns = a->ahead_ns;
    a->ahead_count = 0;
}

bool assembler_add(assembler *a, const nl_record *record)
{
    request_event event;
    bool first;
    request_reader_learn(a->reader, record);
    if (!selects_event(a, record, &first))
        return false;
    uint64_t key = request_reader_take(a->reader, record, &event);
    if (key == 0 || (event.traced && a->options.untraced))
        return false;
    advance(a, &event);
    /* Each whole span without a thread is its own request, because it is unknown which spans contain others. */
    if (is_thread(a, &event) && event.thread == 0 && event.role == REQUEST_WHOLE)
        key = hash_mix(key ^ event.order, UINT64_C(0x9e3779b97f4a7c15)) | 1;
    const uint64_t *known = key_map_find(&a->open, key);
    open_request *r = known != NULL ? (open_request *)(uintptr_t)*known : NULL;
    if (r != NULL && (a->options.again ? first : begins_again(a, r, &event))) {
        end_request(a, r, false);
        r = NULL;
    }
    if (r == NULL)
        r = new_request(a, key, &event);
    append_event(a, r, record, event);
    if (r->explicit)
        count_open_spans(a, r, &event);
    if (a->options.by != NULL && !a->by_host && (r->by == 0 || learns_from(a, r)))
        note_group(a, r, group_of_record(a, record));
    if (r->is_thread && r->count >= r->split_at)
        split_thread(a, r, a->now_ns - (int64_t)ASSEMBLER_IDLE_S * NL_NS_PER_SECOND);
    unlink_request(a, r);
    r->complete = r->count > 0 && is_complete(a, r);
    append_request(a, r);
    if (a->options.request_max > 0 && memory_of(r) > a->options.request_max)
        end_request(a, r, true);
    end_idle(a);
    return true;
}

void assembler_learn(assembler *a, bool enough)
{
    if (a->learning != NULL) {
        vote_for_idle(a);
        end_idle(a);
    }
    if (enough) {
        finish_learning(a);
        finish_waiting(a);
    }
}

void assembler_finish(assembler *a)
{
    while (oldest_request(a) != NULL)
        end_request(a, oldest_request(a), false);
    finish_learning(a);
    finish_waiting(a);
}

uint64_t assembler_overlapping(const assembler *a)
{
    return a->overlapping;
}

uint64_t assembler_unselected(const assembler *a)
{
    return a->unselected;
}

const request_reader *assembler_reader(const assembler *a)
{
    return a->reader;
}

size_t assembler_corrected_hosts(const assembler *a, int64_t *max_ns)
{
    return request_learning_corrected_hosts(a->knowledge, max_ns);
}

const clock_doubts *assembler_clock_doubts(const assembler *a)
{
    return request_learning_clock_doubts(a->knowledge);
}

const char *assembler_by(const assembler *a, uint32_t by)
{
    if (a->by_host)
        return request_reader_host(a->reader, by);
    return by == 0 || by > a->groups.count ? "" : a->groups.texts[by - 1];
}
