#include "config.h"

#include "model/request_lines.h"

#include "model/edges.h"
#include "model/log_file.h"
#include "model/model_loading.h"
#include "requests/request_learning.h"
#include "requests/request_reader.h"

enum {
    KEPT_MAX = 4096,           /* maximum number of requests whose lines the module keeps */
    LEARNED_MAX = 300,         /* number of requests in the sample */
    LEARNED_STEPS_MAX = 20000, /* the sample ends after this number of records */
    LEARNED_GROUPS = 3,        /* the sample consists of groups of consecutive requests */
    SPAN_LOOKED_MAX = 1 << 16, /* maximum number of records among which the module searches for the records of a span */
    SPAN_READ_MAX = 4000,      /* maximum number of these records that the module reads */
};

/* What the module has learned about the requests of a lifeline, and the graph of the last request. */
typedef struct lookup {
    request_reader *reader;
    request_learning *knowledge;
    request_graph *graph;
    GArray *events;      /* request_event: the events of the graph that request_lines_graph returned */
    GHashTable *medians; /* maps request_lines_span_kind (gint64) to the sorted durations (double) of spans; NULL until
                            needed */
    GPtrArray *sample;   /* GArray of request_event: the requests of the sample, during learning */
    int8_t *balance;     /* for each pair of rows, the number of inferred lines in the sample of find_balance minus the
                            number of other lines; NULL until needed */
    uint32_t learned_count; /* number of records of the store when the sample was taken */
    bool is_sample_full;
} lookup;

struct request_lines {
    GHashTable *drawn; /* maps a lifeline and an object to a request_drawn */
    uint32_t first;    /* store.first at the time of these lookups */
    lookup *lookups; /* indexed by lifeline, and at last for REQUEST_NO_LIFELINE; an element is unused while its reader
                        is NULL */
    size_t lookup_count;
};

/* ---- creation and destruction ---- */

static void free_drawn(gpointer user)
{
    request_drawn *d = user;
    g_array_free(d->lines, TRUE);
    g_free(d->slowest);
    g_free(d);
}

request_lines *request_lines_new(void)
{
    request_lines *r = g_new0(request_lines, 1);
    r->drawn = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_drawn);
    return r;
}

static void clear_lookup(lookup *l)
{
    request_graph_free(l->graph);
    request_learning_free(l->knowledge);
    request_reader_free(l->reader);
    if (l->events != NULL)
        g_array_free(l->events, TRUE);
    if (l->medians != NULL)
        g_hash_table_destroy(l->medians);
    g_free(l->balance);
    *l = (lookup){0};
}

void request_lines_forget(request_lines *r)
{
    g_hash_table_remove_all(r->drawn);
    for (size_t i = 0; i < r->lookup_count; i++)
        clear_lookup(&r->lookups[i]);
    g_clear_pointer(&r->lookups, g_free);
    r->lookup_count = 0;
}

void request_lines_free(request_lines *r)
{
    if (r == NULL)
        return;
    request_lines_forget(r);
    g_hash_table_destroy(r->drawn);
    g_free(r);
}

/* ---- the events of a request ---- */

typedef struct event_reading {
    request_reader *reader;
    request_event event;
    uint64_t request; /* hash of the request's name; 0: the record belongs to no request */
} event_reading;

static void take_event(void *user, const nl_record *record)
{
    event_reading *e = user;
    e->request = request_reader_take(e->reader, record, &e->event);
}

static void reverse(GArray *records)
{
    for (guint i = 0; 2 * i + 1 < records->len; i++) {
        uint32_t *early = &g_array_index(records, uint32_t, i),
                 *late = &g_array_index(records, uint32_t, records->len - 1 - i), swap = *early;
        *early = *late;
        *late = swap;
    }
}

/* Returns at most REQUEST_LINES_STEPS_MAX + 1 of the latest records (uint32_t) of an object, in order of time. */
static GArray *find_steps(const store *s, unsigned layer, uint32_t object)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t record = store_last_step(s, object, layer);
    for (; record < s->count && record >= s->first && steps->len <= REQUEST_LINES_STEPS_MAX;
         record = store_previous(s, record, layer))
        g_array_append_val(steps, record);
    reverse(steps);
    return steps;
}

/* Returns the events (request_event) of records. The payload of an event is the index of its record. */
static GArray *read_events(const model *m, request_reader *reader, const GArray *steps)
{
    GArray *events = g_array_new(FALSE, TRUE, sizeof(request_event));
    for (guint i = 0; i < steps->len; i++) {
        event_reading e = {.reader = reader};
        if (!model_record(m, g_array_index(steps, uint32_t, i), take_event, &e) || e.request == 0)
            continue;
        e.event.payload = i;
        g_array_append_val(events, e.event);
    }
    return events;
}

static bool is_of_lifeline(const store *s, uint32_t last, unsigned layer, size_t lifeline)
{
    return last < s->count && last >= s->first &&
           spec_step_of(s->spec, store_event(s, last), layer).lifeline == lifeline;
}

/* ---- the records of a span that belongs to no object ---- */

/* A search for the records of an outermost span. */
typedef struct span_search {
    const model *m;
    const store *s;
    request_reader *reader;
    uint32_t record;     /* the record that describes or ends the span */
    event_reading outer; /* the event of this record */
    GArray *steps;       /* uint32_t: the records of the span, as far as found */
    GArray *events;      /* request_event: the events of these records */
    unsigned read_count;
} span_search;

/* Adds a record if it is an event of the same thread or trace as the outer span. */
static void add_if_same(span_search *f, uint32_t record)
{
    event_reading e = {.reader = f->reader};
    const bool may_be_same = f->outer.event.traced || (store_host(f->s, record) == store_host(f->s, f->record) &&
                                                       store_prog(f->s, record) == store_prog(f->s, f->record));
    if (!may_be_same || f->read_count++ >= SPAN_READ_MAX || !model_record(f->m, record, take_event, &e) ||
        e.request != f->outer.request)
        return;
    g_array_append_val(f->steps, record);
    g_array_append_val(f->events, e.event);
}

/* Removes the records after the first `count`, and sorts the remaining records by time. */
static void end_span(const span_search *f, guint count, bool is_backwards)
{
    g_array_set_size(f->steps, count);
    if (is_backwards)
        reverse(f->steps);
}

/* Finds the records in a span that one record describes. If the record has the time of the span's start, the other
 * records are later. Otherwise, the other records are earlier. */
static void find_in_whole_span(span_search *f, double duration_ns)
{
    const store *s = f->s;
    const bool is_backwards = duration_ns > 0;
    const int64_t end_ns = store_time(s, f->record) - (int64_t)duration_ns,
                  begin_ns = request_event_begin(&f->outer.event);
    guint kept = 1;
    for (uint32_t i = 1; i < SPAN_LOOKED_MAX; i++) {
        const uint32_t record = is_backwards ? f->record - i : f->record + i;
        if (record >= s->count || record < s->first ||
            (is_backwards ? store_time(s, record) < end_ns : store_time(s, record) > end_ns))
            break;
        add_if_same(f, record);
    }
    for (guint i = 1; i < f->events->len; i++) {
        const request_event *e = &g_array_index(f->events, request_event, i);
        if (request_event_begin(e) >= begin_ns && e->time_ns <= f->outer.event.time_ns)
            g_array_index(f->steps, uint32_t, kept++) = g_array_index(f->steps, uint32_t, i);
    }
    end_span(f, kept, is_backwards);
}

/* Finds the records from the start of the span that the record ends. If the start is unknown, keeps only the record. */
static void find_since_begin(span_search *f)
{
    const event_names *names = request_reader_names(f->reader);
    int open = 0;
    for (uint32_t i = 1; i < SPAN_LOOKED_MAX && i <= f->record - f->s->first; i++)
        add_if_same(f, f->record - i);
    for (guint i = 0; i < f->events->len; i++) { /* compare names only now, after the reader has numbered all of them */
        open -= request_event_nesting(&g_array_index(f->events, request_event, i), names);
        if (open > 0)
            continue;
        end_span(f, i + 1, true);
        return;
    }
    end_span(f, 1, true);
}

/* Returns the records (uint32_t) of the outermost span that a record describes or ends. */
static GArray *find_span_steps(const model *m, request_reader *reader, uint32_t record)
{
    span_search f = {.m = m,
                     .s = model_store(m),
                     .reader = reader,
                     .record = record,
                     .outer = {.reader = reader},
                     .steps = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                     .events = g_array_new(FALSE, FALSE, sizeof(request_event))};
    g_array_append_val(f.steps, record);
    if (model_record(m, record, take_event, &f.outer) && f.outer.request != 0) {
        const request_event *outer = &f.outer.event;
        const double duration_ns = store_duration(f.s, record);
        g_array_append_val(f.events, *outer);
        if (outer->role == REQUEST_WHOLE && duration_ns != 0 && (outer->thread != 0 || outer->traced))
            find_in_whole_span(&f, duration_ns);
        else if (outer->role != REQUEST_WHOLE)
            find_since_begin(&f);
    }
    g_array_free(f.events, TRUE);
    return f.steps;
}

/* ---- the sample ---- */

/* Like each_of_sample, for requests without a lifeline: calls `take` with the events of single records that have
 * durations. */
static guint each_sampled_span(const model *m, lookup *l, void (*take)(lookup *l, GArray *events))
{
    const store *s = model_store(m);
    const loadline_lists *durations = &s->loadlines[s->spec->drawn_loadlines + SPEC_DURATION];
    const size_t share = durations->count > 0 ? MAX(LEARNED_MAX / durations->count, 3) : 0;
    guint read = 0;
    for (size_t i = 0; i < durations->count && read < LEARNED_MAX; i++) {
        const list *own = durations->hosts[i].list;
        const size_t count = own->count - own->start, taken = MIN(count, share);
        for (size_t k = 0; k < taken; k++, read++) {
            const uint32_t record = list_at(own, own->start + k * count / taken);
            GArray *steps = g_array_new(FALSE, FALSE, sizeof(uint32_t));
            g_array_append_val(steps, record);
            GArray *events = read_events(m, l->reader, steps);
            take(l, events);
            g_array_free(events, TRUE);
            g_array_free(steps, TRUE);
        }
    }
    return read;
}

/* Calls `take` with the events (request_event) of each request of the sample. Returns the number of records read. */
static guint each_of_sample(const model *m, lookup *l, size_t lifeline, void (*take)(lookup *l, GArray *events))
{
    const store *s = model_store(m);
    if (lifeline >= s->spec->lifeline_count)
        return each_sampled_span(m, l, take);
    unsigned layer = s->spec->lifelines[lifeline].layer;
    uint32_t count = s->objects[layer].count, group = LEARNED_MAX / LEARNED_GROUPS;
    guint steps_read = 0;
    for (uint32_t i = 0; i < MIN(count, LEARNED_MAX) && steps_read < LEARNED_STEPS_MAX; i++) {
        uint32_t object = count <= LEARNED_MAX
                              ? i
                              : (uint32_t)((uint64_t)(count - group) * (i / group) / (LEARNED_GROUPS - 1)) + i % group;
        if (!is_of_lifeline(s, store_last_step(s, object, layer), layer, lifeline))
            continue;
        GArray *steps = find_steps(s, layer, object);
        if (steps->len <= REQUEST_LINES_STEPS_MAX) {
            GArray *events = read_events(m, l->reader, steps);
            steps_read += steps->len;
            take(l, events);
            g_array_free(events, TRUE);
        }
        g_array_free(steps, TRUE);
    }
    return steps_read;
}

static void keep_events(lookup *l, GArray *events)
{
    g_ptr_array_add(l->sample, g_array_copy(events));
}

static bool is_trace(const GArray *events)
{
    bool is_explicit = true;
    for (guint i = 0; i < events->len; i++)
        is_explicit = is_explicit && g_array_index(events, request_event, i).span_id != 0;
    return is_explicit;
}

/* Learns from the requests of the sample that are not traces. */
static void walk_sample(void *user, request_learning *knowledge)
{
    const lookup *l = user;
    for (guint i = 0; i < l->sample->len; i++) {
        const GArray *events = g_ptr_array_index(l->sample, i);
        if (!is_trace(events))
            request_learning_add(knowledge, (const request_event *)(const void *)events->data, events->len);
    }
}

static void walk_traces(void *user, request_learning *knowledge)
{
    const lookup *l = user;
    for (guint i = 0; i < l->sample->len; i++) {
        const GArray *events = g_ptr_array_index(l->sample, i);
        if (events->len > 0 && is_trace(events))
            request_learning_add_trace(knowledge, l->graph, (const request_event *)(const void *)events->data,
                                       events->len, request_reader_clocks(l->reader));
    }
}

static void learn(const model *m, lookup *l, size_t lifeline)
{
    const store *s = model_store(m);
    l->learned_count = s->count;
    if (lifeline >= s->spec->lifeline_count)
        return; /* the requests of threads need no learning, because their events are in program order */
    l->sample = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    const guint steps_read = each_of_sample(m, l, lifeline, keep_events);
    request_learning_run(l->knowledge, walk_sample, l, request_reader_clocks(l->reader));
    request_learning_run_traces(l->knowledge, walk_traces, l, request_reader_clocks(l->reader));
    g_clear_pointer(&l->sample, g_ptr_array_unref);
    l->is_sample_full =
        s->objects[s->spec->lifelines[lifeline].layer].count >= LEARNED_MAX || steps_read >= LEARNED_STEPS_MAX;
}

static lookup *find_lookup(const model *m, size_t lifeline)
{
    request_lines *r = model_request_lines(m);
    const store *s = model_store(m);
    if (r->lookups == NULL) {
        r->lookup_count = s->spec->lifeline_count + 1;
        r->lookups = g_new0(lookup, r->lookup_count);
    }
    lookup *l = &r->lookups[MIN(lifeline, s->spec->lifeline_count)];
    if (l->reader != NULL && !l->is_sample_full && s->count / 2 >= l->learned_count) {
        clear_lookup(l); /* learn again from the larger log */
        g_hash_table_remove_all(r->drawn);
    }
    if (l->reader == NULL) {
        const GPtrArray *files = model_files(m);
        l->reader = request_reader_new((const char *const *)model_lifeline(m, lifeline)->ids,
                                       files->len > 0 ? ((const log_file *)g_ptr_array_index(files, 0))->fraction
                                                      : NL_FRACTION_DECIMAL);
        if (model_has_nanoseconds(m))
            request_reader_expect_nanoseconds(l->reader);
        if (drawing_splits_unnamed(model_drawing(m)))
            request_reader_split_unnamed(l->reader);
        l->knowledge = request_learning_new(request_reader_names(l->reader));
        l->graph = request_graph_new(request_reader_names(l->reader));
        learn(m, l, lifeline);
    }
    return l;
}

/* ---- lines ---- */

static void find_slowest(request_drawn *d, const lookup *l)
{
    const request_span *slowest = NULL;
    for (size_t i = 0; i < l->graph->span_count; i++)
        if (slowest == NULL || l->graph->spans[i].path_ns > slowest->path_ns)
            slowest = &l->graph->spans[i];
    if (slowest == NULL)
        return;
    d->slowest = g_strdup(event_names_text(request_reader_names(l->reader), slowest->name));
    d->slowest_ns = slowest->path_ns;
}

/* Returns whether a child starts earlier than its parent by more than the maximum difference of the clocks. */
static bool is_impossible(const store *s, uint32_t parent, uint32_t child)
{
    double early_ns = (double)(store_time(s, parent) - store_time(s, child));
    return early_ns > 0 && early_ns > store_clock_bound_ns(s, store_host(s, parent), store_host(s, child), child);
}

/* Adds the impossible lines from a record that sends a message to records that receive the message at an earlier time.
 * The names of the events show which record sends. */
static void add_late_messages(const store *s, uint32_t record, unsigned layer, GArray *lines)
{
    spec_step sent = spec_step_of(s->spec, store_event(s, record), layer);
    const spec_order *order = s->spec->lifelines[sent.lifeline].order;
    uint32_t found[EDGES_MAX];
    size_t count = order != NULL && order->received[sent.row] != 0 ? edges_find_violations(s, record, layer, found) : 0;
    for (size_t i = 0; i < count; i++) {
        request_line line = {.from = record, .to = found[i], .certainty = 1, .is_impossible = true};
        if (order->received[sent.row] >> spec_step_of(s->spec, store_event(s, found[i]), layer).row & 1)
            g_array_append_val(lines, line);
    }
}

/* Builds the graph of the events in l->graph. There must be at least one event. */
static void build_graph(lookup *l, GArray *events)
{
    request_event *first = (request_event *)(void *)events->data;
    const bool is_explicit = is_trace(events);
    request_learning_correct(l->knowledge, first, events->len, is_explicit);
    request_learning_build(l->knowledge, l->graph, first, events->len, is_explicit, request_reader_clocks(l->reader));
}

static void draw_graph(const model *m, lookup *l, const GArray *steps, unsigned layer, request_drawn *d)
{
    const store *s = model_store(m);
    GArray *events = read_events(m, l->reader, steps), *edges = g_array_new(FALSE, FALSE, sizeof(request_edge));
    if (events->len > 0) {
        build_graph(l, events);
        request_graph_find_edges(l->graph, edges);
        d->has_graph = true;
        d->from_ns = l->graph->from_ns;
        d->to_ns = l->graph->to_ns;
        find_slowest(d, l);
    }
    for (guint i = 0; i < edges->len; i++) {
        const request_edge *edge = &g_array_index(edges, request_edge, i);
        request_line line = {
            .from = g_array_index(steps, uint32_t, g_array_index(events, request_event, edge->from).payload),
            .to = g_array_index(steps, uint32_t, g_array_index(events, request_event, edge->to).payload),
            .certainty = edge->certainty,
            .is_inferred = edge->inferred};
        line.is_impossible = edge->is_start && is_impossible(s, line.from, line.to);
        g_array_append_val(d->lines, line);
    }
    for (guint i = 0; i < steps->len; i++)
        add_late_messages(s, g_array_index(steps, uint32_t, i), layer, d->lines);
    g_array_free(edges, TRUE);
    g_array_free(events, TRUE);
}

const request_drawn *request_lines_find(const model *m, size_t lifeline, uint32_t object)
{
    request_lines *r = model_request_lines(m);
    const store *s = model_store(m);
    const unsigned layer = s->spec->lifelines[lifeline].layer;
    gint64 key = (gint64)((uint64_t)lifeline << 32 | object);
    if (r->first != s->first) /* the store may have dropped records of these requests */
        g_hash_table_remove_all(r->drawn);
    r->first = s->first;
    lookup *l = find_lookup(m, lifeline);
    request_drawn *known = g_hash_table_lookup(r->drawn, &key);
    if (known != NULL && known->last == store_last_step(s, object, layer))
        return known;
    if (g_hash_table_size(r->drawn) >= KEPT_MAX)
        g_hash_table_remove_all(r->drawn);
    request_drawn *d = g_new0(request_drawn, 1);
    d->last = store_last_step(s, object, layer);
    d->lines = g_array_new(FALSE, FALSE, sizeof(request_line));
    GArray *steps = find_steps(s, layer, object);
    const bool is_whole = steps->len <= REQUEST_LINES_STEPS_MAX;
    draw_graph(m, l, steps, layer, d);
    d->has_graph = d->has_graph && is_whole;
    g_array_free(steps, TRUE);
    g_hash_table_insert(r->drawn, g_memdup2(&key, sizeof key), d);
    return d;
}

/* Sets l->balance from requests that are spread over the log. */
static void find_balance(const model *m, lookup *l, size_t lifeline)
{
    enum { SAMPLED = 24, BALANCE_MAX = 100 };
    const store *s = model_store(m);
    const unsigned layer = s->spec->lifelines[lifeline].layer, rows = s->spec->lifelines[lifeline].rows;
    l->balance = g_new0(int8_t, (size_t)rows * rows);
    int8_t *balance = l->balance;
    for (unsigned i = 0; i < SAMPLED; i++) {
        const uint32_t at = s->first + (uint32_t)((uint64_t)(s->count - s->first) * i / SAMPLED);
        uint32_t record = at;
        while (record < s->count && record - at < SPAN_READ_MAX &&
               (spec_step_of(s->spec, store_event(s, record), layer).lifeline != lifeline ||
                store_object(s, record, layer) == STORE_NONE))
            record++;
        if (record == s->count || record - at == SPAN_READ_MAX)
            continue;
        const request_drawn *d = request_lines_find(m, lifeline, store_object(s, record, layer));
        for (guint j = 0; j < d->lines->len; j++) {
            const request_line *line = &g_array_index(d->lines, request_line, j);
            const unsigned from = spec_step_of(s->spec, store_event(s, line->from), layer).row,
                           to = spec_step_of(s->spec, store_event(s, line->to), layer).row;
            if (from < rows && to < rows && ABS(balance[from * rows + to]) < BALANCE_MAX)
                balance[from * rows + to] += line->is_inferred ? 1 : -1;
        }
    }
}

bool request_lines_usually_inferred(const model *m, size_t lifeline, unsigned from, unsigned to)
{
    if (!model_is_settled(m) || model_progress(m) < 1)
        return false;
    lookup *l = find_lookup(m, lifeline);
    if (l->balance == NULL)
        find_balance(m, l, lifeline);
    return l->balance[from * model_store(m)->spec->lifelines[lifeline].rows + to] > 0;
}

/* ---- spans ---- */

static gpointer log_of(const store *s, uint32_t record)
{
    return GUINT_TO_POINTER(place_file(store_place(s, record)));
}

/* If the log of `record` has the request's first event, removes the steps in other logs that also have this event,
 * because they belong to other requests. */
static void keep_request_of_log(const store *s, uint32_t record, GArray *steps)
{
    GHashTable *logs = g_hash_table_new(NULL, NULL); /* the logs that have the first event */
    const uint32_t first = g_array_index(steps, uint32_t, 0);
    for (guint i = 0; i < steps->len; i++) {
        const uint32_t step = g_array_index(steps, uint32_t, i);
        if (store_event(s, step) == store_event(s, first) && store_prog(s, step) == store_prog(s, first))
            g_hash_table_add(logs, log_of(s, step));
    }
    guint kept = 0;
    const bool separates = g_hash_table_contains(logs, log_of(s, record));
    for (guint i = 0; i < steps->len; i++) {
        const uint32_t step = g_array_index(steps, uint32_t, i);
        if (!separates || log_of(s, step) == log_of(s, record) || !g_hash_table_contains(logs, log_of(s, step)))
            g_array_index(steps, uint32_t, kept++) = step;
    }
    g_array_set_size(steps, kept);
    g_hash_table_destroy(logs);
}

GArray *request_lines_steps(const model *m, size_t lifeline, uint32_t record)
{
    const store *s = model_store(m);
    const unsigned layer = lifeline < s->spec->lifeline_count ? s->spec->lifelines[lifeline].layer : SPEC_LAYERS;
    const uint32_t object = layer < SPEC_LAYERS ? store_object(s, record, layer) : (uint32_t)STORE_NONE;
    GArray *steps = object != STORE_NONE ? find_steps(s, layer, object)
                                         : find_span_steps(m, find_lookup(m, lifeline)->reader, record);
    if (steps->len <= REQUEST_LINES_STEPS_MAX) {
        keep_request_of_log(s, record, steps);
        return steps;
    }
    g_array_free(steps, TRUE);
    return NULL;
}

const request_graph *request_lines_graph(const model *m, size_t lifeline, const GArray *steps, request_reader **reader)
{
    lookup *l = find_lookup(m, lifeline);
    if (l->events != NULL)
        g_array_free(l->events, TRUE);
    l->events = read_events(m, l->reader, steps);
    *reader = l->reader;
    if (l->events->len == 0)
        return NULL;
    build_graph(l, l->events);
    return l->graph;
}

uint64_t request_lines_span_kind(const request_span *span)
{
    return (uint64_t)span->program << 32 | span->name;
}

uint64_t request_lines_edge_kind(const request_graph *g, const request_step *step)
{
    const uint64_t from = step->from != REQUEST_NONE ? request_event_kind(&g->events[step->from]) : 0,
                   to = step->to != REQUEST_NONE ? request_event_kind(&g->events[step->to]) : 0;
    /* bit 63 is unused in the numbers of spans, because there are fewer than 2^31 programs */
    return (from * UINT64_C(0x9e3779b97f4a7c15) + to) | UINT64_C(1) << 63;
}

static void learn_duration(lookup *l, uint64_t kind, int64_t begin_ns, int64_t end_ns)
{
    const gint64 key = (gint64)kind;
    const double duration_ns = (double)(end_ns - begin_ns);
    GArray *durations = g_hash_table_lookup(l->medians, &key);
    if (durations == NULL) {
        durations = g_array_new(FALSE, FALSE, sizeof(double));
        g_hash_table_insert(l->medians, g_memdup2(&key, sizeof key), durations);
    }
    g_array_append_val(durations, duration_ns);
}

/* Adds the durations of a request's spans, and of the edges on its critical path, to l->medians, as arrays of double.
 */
static void learn_durations(lookup *l, GArray *events)
{
    if (events->len == 0)
        return;
    build_graph(l, events);
    const request_graph *g = l->graph;
    for (size_t i = 0; i < g->span_count; i++)
        if (!g->spans[i].incomplete)
            learn_duration(l, request_lines_span_kind(&g->spans[i]), g->spans[i].begin_ns, g->spans[i].end_ns);
    for (size_t i = 0; i < g->path_count; i++)
        if (g->path[i].kind != REQUEST_SELF)
            learn_duration(l, request_lines_edge_kind(g, &g->path[i]), g->path[i].from_ns, g->path[i].to_ns);
}

static gint compare_doubles(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void free_durations(gpointer durations)
{
    g_array_free(durations, TRUE);
}

double request_lines_median(const model *m, size_t lifeline, uint64_t kind)
{
    enum { MEDIAN_MIN = 3 };
    lookup *l = find_lookup(m, lifeline);
    if (l->medians == NULL) {
        l->medians = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_durations);
        each_of_sample(m, l, lifeline, learn_durations);
        GHashTableIter at;
        gpointer durations;
        g_hash_table_iter_init(&at, l->medians);
        while (g_hash_table_iter_next(&at, NULL, &durations))
            g_array_sort(durations, compare_doubles);
    }
    const gint64 key = (gint64)kind;
    const GArray *durations = g_hash_table_lookup(l->medians, &key);
    if (durations == NULL || durations->len < MEDIAN_MIN)
        return -1;
    return g_array_index(durations, double, durations->len / 2);
}

const request_line *request_lines_cause(const request_drawn *d, uint32_t record)
{
    const request_line *latest = NULL;
    for (guint i = 0; i < d->lines->len; i++) {
        const request_line *line = &g_array_index(d->lines, request_line, i);
        if (line->to == record && line->from < record && (latest == NULL || line->from > latest->from))
            latest = line;
    }
    return latest;
}
