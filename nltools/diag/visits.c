#include "config.h"

#include <math.h>

#include "diag/processes.h"
#include "diag/servers.h"
#include "diag/visit_tables.h"

#include "base/hash_bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    SITES_MAX = 1 << 16,
    BOUNDS_MAX = 1024,
    EDGE_NONE = UINT32_MAX,
    CONNECTION_SLICES_MAX = 1 << 17,
    VISITS_UNCHECKED = 4096 /* maximum number of new visits between checks of memory; a single request may have more */
};

/* Initial length of the time slices in which the module examines connections. */
#define CONNECTION_SLICE_NS (NL_NS_PER_SECOND / 10)

#define ON_PATH (UINT32_C(1) << 31) /* bit in event_begin and event_end: the message is on the critical path */

/* The requests of one lifeline. */
typedef struct kind {
    visits_reader *reader;
    assembler *assembler;
    GHashTable *sites; /* maps a site_key to its index */
    bool is_thread;    /* without ID fields: the outermost spans of threads are requests */
} kind;

typedef struct site_key {
    uint32_t kind, a, b, place, from_place; /* a, b: numbers of the names of events or spans; place, from_place: numbers
                                               of places in the graph */
} site_key;

struct visits_reader {
    visits *result;
    subject *subject;
    visits_clock *clock;
    void *user;
    kind *kinds;
    uint32_t kind_count;
    size_t memory_max;
    nl_fraction fraction;
    const request_filter *where; /* NULL: all requests */
    bool configured;             /* the lifelines come from a file */
    bool has_ids;                /* options name the ID fields or the lifelines */
    uint32_t keep_mask;          /* bit mask: the reader keeps only requests whose number has none of these bits */
    uint32_t number;
    uint32_t checked;                             /* number of visits at the last check of memory */
    GArray *span_visit, *event_begin, *event_end; /* uint32_t: of the current request */
    GArray *edges;                                /* request_edge: of the current request */
    GHashTable *place_index;                      /* maps the text of a place to 1 plus the place's index */
};

/* ---- sites ---- */

static guint site_key_hash(gconstpointer key)
{
    return (guint)hash_bytes(0, key, sizeof(site_key));
}

static gboolean site_key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(site_key)) == 0;
}

static uint32_t find_place(visits_reader *r, const place *wanted)
{
    char *text = g_strjoin("\n", wanted->span, wanted->from, wanted->to, wanted->program, wanted->from_program, NULL);
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(r->place_index, text));
    if (found != 0) {
        g_free(text);
        return found - 1;
    }
    place p = *wanted;
    p.sites = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_val(r->result->places, p);
    g_hash_table_insert(r->place_index, text, GUINT_TO_POINTER(r->result->places->len));
    return r->result->places->len - 1;
}

static uint32_t add_site(visits_reader *r, const place *p, const char *host, const char *from_host)
{
    visits *v = r->result;
    uint32_t number = find_place(r, p), index = v->sites->len;
    const site s = {.place = number, .host = g_intern_string(host), .from_host = g_intern_string(from_host)};
    g_array_append_val(v->sites, s);
    g_array_append_val(place_at(v, number)->sites, index);
    return index;
}

/* Returns a pointer to a site's index. For a new site, the index is VISIT_NONE, and the caller must set the index. */
static uint32_t *site_slot(kind *k, const site_key *key)
{
    uint32_t *found = g_hash_table_lookup(k->sites, key);
    if (found == NULL) {
        found = g_new(uint32_t, 1);
        *found = VISIT_NONE;
        g_hash_table_insert(k->sites, g_memdup2(key, sizeof *key), found);
    }
    return found;
}

static site_key span_key(const request_span *s)
{
    return (site_key){PLACE_SPAN, s->name, 0, s->place, 0};
}

static site_key edge_key(const request_event *from, const request_event *to)
{
    return (site_key){from != NULL ? PLACE_EDGE : PLACE_UNKNOWN, from != NULL ? from->name : 0,
                      to != NULL ? to->name : 0, to != NULL ? to->place : 0, from != NULL ? from->place : 0};
}

static uint32_t span_site(kind *k, const request_span *s)
{
    const site_key key = span_key(s);
    uint32_t *slot = site_slot(k, &key);
    if (*slot == VISIT_NONE) {
        const request_reader *names = assembler_reader(k->assembler);
        const place p = {.kind = PLACE_SPAN,
                         .span = g_intern_string(event_names_text(request_reader_names(names), s->name)),
                         .from = "",
                         .to = "",
                         .program = g_intern_string(request_reader_program(names, s->program)),
                         .from_program = ""};
        *slot = add_site(k->reader, &p, request_reader_host(names, s->host), "");
    }
    return *slot;
}

static uint32_t edge_site(kind *k, const request_event *from, const request_event *to)
{
    const site_key key = edge_key(from, to);
    uint32_t *slot = site_slot(k, &key);
    if (*slot == VISIT_NONE) {
        const request_reader *names = assembler_reader(k->assembler);
        const event_names *events = request_reader_names(names);
        const place p = {.kind = key.kind,
                         .span = "",
                         .from = from != NULL ? g_intern_string(event_names_text(events, from->name)) : "",
                         .to = to != NULL ? g_intern_string(event_names_text(events, to->name)) : "",
                         .program = to != NULL ? g_intern_string(request_reader_program(names, to->program)) : "",
                         .from_program =
                             from != NULL ? g_intern_string(request_reader_program(names, from->program)) : ""};
        *slot = add_site(k->reader, &p, to != NULL ? request_reader_host(names, to->host) : "",
                         from != NULL ? request_reader_host(names, from->host) : "");
        if (key.kind == PLACE_EDGE && from != NULL && to != NULL) {
            site *s = site_at(k->reader->result, *slot);
            s->kind = (uint32_t)(k - k->reader->kinds);
            s->from_number = from->host;
            s->number = to->host;
        }
    }
    return *slot;
}

/* Returns whether all spans and edges of a request already have sites. */
static bool sites_are_known(const kind *k, const request_graph *g)
{
    for (uint32_t i = 0; i < g->span_count; i++) {
        const site_key key = span_key(&g->spans[i]);
        if (!g_hash_table_contains(k->sites, &key))
            return false;
    }
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        const site_key key = edge_key(step->from != REQUEST_NONE ? &g->events[step->from] : NULL,
                                      step->to != REQUEST_NONE ? &g->events[step->to] : NULL);
        if (step->kind != REQUEST_SELF && !g_hash_table_contains(k->sites, &key))
            return false;
    }
    return true;
}

/* The column number that marks the number of a connection in the payload of an event. A float represents the number of
 * the connection exactly (VISIT_ENDS_MAX). */
#define ENDS_COLUMN UINT32_MAX

/* Appends the values of a record's fields to `buffer`, the event's payload. */
static void pack_fields(void *user, const nl_record *record, nl_buffer *buffer)
{
    const kind *k = user;
    for (size_t i = 0; i < record->field_count; i++) {
        column_value value;
        if (columns_read(k->reader->result->columns, &record->fields[i], &value))
            nl_buffer_append(buffer, &value, sizeof value);
    }
    const column_value ends = {ENDS_COLUMN, (float)visit_ends_read(k->reader->result->ends, record)};
    if (ends.value > 0)
        nl_buffer_append(buffer, &ends, sizeof ends);
}

/* ---- requests ---- */

static uint32_t *slot_of(GArray *a, uint32_t i)
{
    return &g_array_index(a, uint32_t, i);
}

static void add_visit(visits *v, const visit *x)
{
    g_array_append_val(v->all, *x);
}

/* Returns whether a part of a span's own time is between two programs. This part is then a message, not work of the
 * span. */
static bool is_crossing(const request_graph *g, const request_step *step)
{
    return step->from != REQUEST_NONE && step->to != REQUEST_NONE &&
           g->events[step->from].place != g->events[step->to].place;
}

static void add_spans(kind *k, const request_graph *g, uint32_t number)
{
    visits *v = k->reader->result;
    GArray *map = k->reader->span_visit;
    g_array_set_size(map, (guint)g->span_count);
    for (uint32_t i = 0; i < g->span_count; i++)
        *slot_of(map, i) = v->all->len + i;
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        visit x = {.from_ns = s->begin_ns,
                   .to_ns = s->end_ns,
                   .own_ns = s->child_count == 0 ? (float)s->self_ns : 0,
                   .request = number,
                   .site = span_site(k, s),
                   .parent = s->parent == REQUEST_NONE ? VISIT_NONE : *slot_of(map, s->parent),
                   .span = VISIT_NONE,
                   .failed = s->failed};
        site *at = site_at(v, x.site);
        place_at(v, at->place)->has_children |= s->child_count > 0;
        at->span_count++;
        at->parent_count += s->child_count > 0;
        add_visit(v, &x);
        if (s->begin != REQUEST_NONE)
            *slot_of(k->reader->event_begin, s->begin) = i;
        if (s->end != REQUEST_NONE)
            *slot_of(k->reader->event_end, s->end) = i;
    }
}

/* Returns the span that begins with event `to`. If no span begins there, returns the span that ends with event `from`,
 * or REQUEST_NONE. */
static uint32_t span_beside(const visits_reader *r, uint32_t from, uint32_t to)
{
    if (to != REQUEST_NONE && *slot_of(r->event_begin, to) != EDGE_NONE)
        return *slot_of(r->event_begin, to) & ~ON_PATH;
    if (from != REQUEST_NONE && *slot_of(r->event_end, from) != EDGE_NONE)
        return *slot_of(r->event_end, from) & ~ON_PATH;
    return REQUEST_NONE;
}

static uint32_t visit_of_span(const visits_reader *r, uint32_t span)
{
    return span == REQUEST_NONE ? VISIT_NONE : *slot_of(r->span_visit, span);
}

/* Returns the index of the visit whose time contains an edge, or VISIT_NONE. `beside` is a span beside the edge. */
static uint32_t visit_around(const visits_reader *r, const request_graph *g, const request_step *step, uint32_t beside)
{
    if (step->kind == REQUEST_SELF)
        return visit_of_span(r, step->span);
    return beside == REQUEST_NONE ? VISIT_NONE : visit_of_span(r, g->spans[beside].parent);
}

/* Returns whether an event is neither the start nor the end of a span. */
static bool is_inside(const visits_reader *r, uint32_t event)
{
    return *slot_of(r->event_begin, event) == EDGE_NONE && *slot_of(r->event_end, event) == EDGE_NONE;
}

/* Adds a span's own time between two events if one of them is inside the span. */
static void add_part(kind *k, const request_graph *g, const request_step *step)
{
    const visits_reader *r = k->reader;
    if (step->from == REQUEST_NONE || step->to == REQUEST_NONE ||
        (!is_inside(r, step->from) && !is_inside(r, step->to)))
        return;
    const event_names *events = request_reader_names(assembler_reader(k->assembler));
    span_parts_add(r->result->parts, *slot_of(r->span_visit, step->span),
                   g_intern_string(event_names_text(events, g->events[step->from].name)),
                   g_intern_string(event_names_text(events, g->events[step->to].name)),
                   (float)(step->from_ns - g->spans[step->span].begin_ns), (float)(step->to_ns - step->from_ns));
}

/* Returns the number of the connection that an event names, or 0 if it names no connection. `e` may be NULL. */
static uint32_t ends_of(const request_graph *g, const request_event *e)
{
    for (uint32_t c = 0; e != NULL && c < e->payload_size / sizeof(column_value); c++) {
        column_value value;
        memcpy(&value, g->payloads + e->payload + c * sizeof value, sizeof value);
        if (value.column == ENDS_COLUMN)
            return (uint32_t)value.value;
    }
    return 0;
}

/* Returns the number of the connection of a message. */
static uint32_t ends_of_edge(const request_graph *g, const request_event *from, const request_event *to)
{
    uint32_t ends = ends_of(g, to);
    return ends != 0 ? ends : ends_of(g, from);
}

static void add_path(kind *k, const request_graph *g, uint32_t number)
{
    visits *v = k->reader->result;
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        float length = (float)(step->to_ns - step->from_ns);
        if (step->kind == REQUEST_SELF && !is_crossing(g, step)) {
            add_part(k, g, step);
            visit *x = visit_at(v, *slot_of(k->reader->span_visit, step->span));
            x->path_ns += length;
            if (g->spans[step->span].child_count > 0)
                x->own_ns += length;
            continue;
        }
        const request_event *from = step->from != REQUEST_NONE ? &g->events[step->from] : NULL,
                            *to = step->to != REQUEST_NONE ? &g->events[step->to] : NULL;
        if (step->to != REQUEST_NONE && *slot_of(k->reader->event_begin, step->to) != EDGE_NONE)
            *slot_of(k->reader->event_begin, step->to) |= ON_PATH;
        if (step->from != REQUEST_NONE && *slot_of(k->reader->event_end, step->from) != EDGE_NONE)
            *slot_of(k->reader->event_end, step->from) |= ON_PATH;
        uint32_t beside = span_beside(k->reader, step->from, step->to);
        visit x = {.from_ns = step->from_ns,
                   .to_ns = step->to_ns,
                   .own_ns = length,
                   .path_ns = length,
                   .request = number,
                   .site = edge_site(k, from, to),
                   .parent = visit_around(k->reader, g, step, beside),
                   .span = visit_of_span(k->reader, beside),
                   .ends = ends_of_edge(g, from, to),
                   .failed = to != NULL && to->failed};
        place_at(v, site_at(v, x.site)->place)->inferred |= step->inferred;
        add_visit(v, &x);
    }
}

/* Sets the missing parents of a request's visits. The parent is the shortest span that contains the visit and is longer
 * than the visit. */
static void find_visits_around(visits *v, uint32_t first)
{
    enum { VISITS_MAX = 512 };
    uint32_t count = v->all->len - first;
    for (uint32_t i = first; i < v->all->len && count <= VISITS_MAX; i++) {
        visit *x = visit_at(v, i);
        uint32_t around = VISIT_NONE;
        for (uint32_t k = first; x->parent == VISIT_NONE && k < v->all->len; k++) {
            const visit *y = visit_at(v, k);
            if (y->from_ns <= x->from_ns && y->to_ns >= x->to_ns && y->to_ns - y->from_ns > x->to_ns - x->from_ns &&
                place_at(v, place_of_visit(v, y))->kind == PLACE_SPAN &&
                (around == VISIT_NONE ||
                 y->to_ns - y->from_ns < visit_at(v, around)->to_ns - visit_at(v, around)->from_ns))
                around = k;
        }
        if (x->parent == VISIT_NONE)
            x->parent = around;
    }
}

/* Adds an edge that is not on the critical path. `parent` is the number of the span around it, or REQUEST_NONE. */
static void add_side_edge(kind *k, const request_graph *g, uint32_t from, uint32_t to, uint32_t parent, uint32_t number)
{
    const request_event *a = &g->events[from], *b = &g->events[to];
    const visit x = {.from_ns = a->time_ns,
                     .to_ns = b->time_ns,
                     .own_ns = (float)(b->time_ns - a->time_ns),
                     .request = number,
                     .site = edge_site(k, a, b),
                     .parent = visit_of_span(k->reader, parent),
                     .span = visit_of_span(k->reader, span_beside(k->reader, from, to)),
                     .ends = ends_of_edge(g, a, b),
                     .failed = b->failed};
    if (b->time_ns >= a->time_ns)
        add_visit(k->reader->result, &x);
}

/* Returns the event after which a parent called a child: the parent's start, or the latest end of an earlier child. */
static uint32_t fork_of(const request_graph *g, uint32_t child)
{
    const request_span *s = &g->spans[child], *p = &g->spans[s->parent];
    uint32_t fork = p->begin;
    for (uint32_t i = 0; p->child_count > 1 && i < g->span_count; i++) {
        const request_span *o = &g->spans[i];
        if (o->parent == s->parent && i != child && o->end != REQUEST_NONE && o->end_ns <= s->begin_ns &&
            (fork == REQUEST_NONE || o->end_ns > g->events[fork].time_ns))
            fork = o->end;
    }
    return fork;
}

/* Adds the messages to and from children that are not on the critical path. If a span makes several calls at the same
 * time, only the slowest call is on the critical path, but the search needs the faster messages for comparisons. */
static void add_side_edges(kind *k, const request_graph *g, uint32_t number)
{
    enum { SPANS_MAX = 512 };
    for (uint32_t i = 0; i < g->span_count && g->span_count <= SPANS_MAX; i++) {
        const request_span *s = &g->spans[i];
        if (s->parent == REQUEST_NONE || g->spans[s->parent].place == s->place)
            continue;
        const request_span *p = &g->spans[s->parent];
        if (s->begin != REQUEST_NONE && *slot_of(k->reader->event_begin, s->begin) == i) {
            uint32_t fork = fork_of(g, i);
            if (fork != REQUEST_NONE)
                add_side_edge(k, g, fork, s->begin, s->parent, number);
        }
        if (s->end != REQUEST_NONE && p->end != REQUEST_NONE && p->child_count == 1 &&
            *slot_of(k->reader->event_end, s->end) == i)
            add_side_edge(k, g, s->end, p->end, s->parent, number);
    }
}

/* Adds the edges to points of a process that are not on the critical path. If a request waits for several processes at
 * the same time, only the slowest process is on the critical path. The others show which waits ended together. */
static void add_side_points(kind *k, const request_graph *g, uint32_t number)
{
    enum { EVENTS_MAX = 256 };
    visits_reader *r = k->reader;
    bool on_path[EVENTS_MAX] = {false};
    size_t points = 0;
    if (g->event_count > EVENTS_MAX)
        return;
    for (size_t i = 0; i < g->path_count; i++)
        if (g->path[i].to != REQUEST_NONE)
            on_path[g->path[i].to] = true;
    for (uint32_t i = 1; i < g->event_count; i++)
        points += !on_path[i] && is_inside(r, i);
    if (points == 0)
        return;
    g_array_set_size(r->edges, 0);
    request_graph_find_edges(g, r->edges);
    for (guint i = 0; i < r->edges->len; i++) {
        const request_edge *e = &g_array_index(r->edges, request_edge, i);
        if (on_path[e->to] || !is_inside(r, e->to) || g->events[e->from].place != g->events[e->to].place)
            continue;
        on_path[e->to] = true;
        add_side_edge(k, g, e->from, e->to, REQUEST_NONE, number);
    }
}

/*
 * Returns whether a value in an event is valid from the start of the event's span. If a record describes a whole span,
 * the program writes the record at the end, but a text in the record usually describes what the span does. A number may
 * be a result, which the program does not know at the start.
 */
static bool is_valid_from_begin(const request_event *e, const column *of)
{
    return e->role == REQUEST_WHOLE && !of->has_number;
}

/* Returns the index of the event that begins first. */
static uint32_t first_event_of(const request_graph *g)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < g->event_count; i++)
        if (request_event_begin(&g->events[i]) < request_event_begin(&g->events[first]))
            first = i;
    return first;
}

/* Sets the connection of a span's visit, unless an earlier event of the span has set it. A part of a connection's data,
 * which is often known only at the end, replaces a connection. */
static void set_ends(kind *k, uint32_t span, uint32_t ends)
{
    if (span == EDGE_NONE)
        return;
    visit *x = visit_at(k->reader->result, *slot_of(k->reader->span_visit, span));
    const visit_ends *all = k->reader->result->ends;
    bool is_part =
        x->ends != 0 && ends != 0 && visit_ends_part(all, x->ends).size <= 0 && visit_ends_part(all, ends).size > 0;
    x->ends = x->ends != 0 && !is_part ? x->ends : ends;
}

/*
 * Sets the values of a request and of its spans. A text from the request's first program describes the request, and is
 * always valid. Any other value is valid only for visits that begin after the program logged the value, because it may
 * be a consequence of earlier visits.
 */
static void set_fields(kind *k, const request_graph *g, uint32_t number)
{
    visits *v = k->reader->result;
    const uint32_t first_index = first_event_of(g);
    for (uint32_t i = 0; i < g->event_count; i++) {
        const request_event *e = &g->events[i];
        uint32_t begins = *slot_of(k->reader->event_begin, i), ends = *slot_of(k->reader->event_end, i);
        bool first = i == first_index || (begins != EDGE_NONE && g->spans[begins].begin_ns == g->from_ns);
        for (uint32_t c = 0; c < e->payload_size / sizeof(column_value); c++) {
            column_value value;
            memcpy(&value, g->payloads + e->payload + c * sizeof value, sizeof value);
            if (value.column == ENDS_COLUMN) {
                set_ends(k, begins, (uint32_t)value.value);
                set_ends(k, ends, (uint32_t)value.value);
                continue;
            }
            column *of = &v->columns->all[value.column];
            of->at_begin += first && isnan(column_get(of->of_requests, number));
            if (isnan(column_get(of->of_requests, number)) &&
                (of->has_number || e->program != g->events[first_index].program))
                column_set(of->since, number,
                           (float)((is_valid_from_begin(e, of) ? request_event_begin(e) : e->time_ns) - g->from_ns));
            column_set(of->of_requests, number, value.value);
            *(begins != EDGE_NONE && ends == EDGE_NONE ? &of->starts : &of->others) += 1;
            if (begins != EDGE_NONE) {
                uint32_t index = *slot_of(k->reader->span_visit, begins);
                column_set(of->of_visits, index, value.value);
                visit_at(v, index)->begin_columns |= UINT64_C(1) << value.column;
            }
            if (ends != EDGE_NONE) {
                uint32_t index = *slot_of(k->reader->span_visit, ends);
                column_set(of->of_visits, index, value.value);
                if (is_valid_from_begin(e, of))
                    visit_at(v, index)->begin_columns |= UINT64_C(1) << value.column;
            }
        }
    }
}

/* ---- clocks ---- */

static clock_bound *find_bound(kind *k, const request_span *caller, const request_span *callee)
{
    const request_reader *names = assembler_reader(k->assembler);
    GArray *bounds = k->reader->result->bounds;
    const char *a = g_intern_string(request_reader_host(names, caller->host)),
               *b = g_intern_string(request_reader_host(names, callee->host)),
               *program = g_intern_string(request_reader_program(names, callee->program));
    for (guint n = 0; n < bounds->len; n++) {
        clock_bound *of = &g_array_index(bounds, clock_bound, n);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the array has elements */
        if (of->a == a && of->b == b && of->program == program)
            return of;
    }
    if (bounds->len >= BOUNDS_MAX)
        return NULL;
    const clock_bound new_bound = {.a = a,
                                   .b = b,
                                   .program = program,
                                   .begins_ns = g_new(float, CLOCK_CALLS_MAX),
                                   .ends_ns = g_new(float, CLOCK_CALLS_MAX),
                                   .stride = 1,
                                   .kind = (uint32_t)(k - k->reader->kinds),
                                   .a_number = caller->host,
                                   .b_number = callee->host};
    g_array_append_val(bounds, new_bound);
    return &g_array_index(bounds, clock_bound, bounds->len - 1);
}

static void clock_bound_add(clock_bound *b, double begins_ns, double ends_ns)
{
    if (b->kept == CLOCK_CALLS_MAX) {
        b->kept /= 2;
        b->stride *= 2;
        for (uint32_t i = 0; i < b->kept; i++) {
            b->begins_ns[i] = b->begins_ns[2 * i];
            b->ends_ns[i] = b->ends_ns[2 * i];
        }
    }
    if (b->forward++ % b->stride == 0) {
        b->begins_ns[b->kept] = (float)begins_ns;
        b->ends_ns[b->kept++] = (float)ends_ns;
    }
    b->late += ends_ns > 0;
    b->early += begins_ns < 0;
}

/*
 * Updates the bounds of clock differences from calls whose records name the parent span. The callee begins after its
 * caller and, if the caller waits, ends before the caller. These relations limit the time by which the callee's clock
 * can be ahead. Uses the logged times of events, because the graph's times are corrected if a clock seems wrong.
 */
static void learn_bounds(kind *k, const request_graph *g)
{
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i], *p = s->parent != REQUEST_NONE ? &g->spans[s->parent] : NULL;
        if (p == NULL || s->inferred_parent || s->id == 0 || p->host == s->host || s->begin == REQUEST_NONE ||
            s->end == REQUEST_NONE || p->begin == REQUEST_NONE || p->end == REQUEST_NONE)
            continue;
        clock_bound *of = find_bound(k, p, s);
        if (of != NULL)
            clock_bound_add(of, (double)(g->events[s->begin].time_ns - g->events[p->begin].time_ns),
                            (double)(g->events[s->end].time_ns - g->events[p->end].time_ns));
    }
}

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void find_site_clocks(const visits_reader *r)
{
    for (guint i = 0; i < r->result->sites->len; i++) {
        site *s = site_at(r->result, i);
        const clock_bounds *known = request_reader_clocks(assembler_reader(r->kinds[s->kind].assembler));
        int64_t bound_ns = s->host == s->from_host ? 0 : clock_bounds_between(known, s->from_number, s->number);
        s->clock_ns = bound_ns == CLOCK_BOUND_UNKNOWN ? INFINITY : (double)bound_ns;
    }
}

static void clock_bound_finish(const visits_reader *r, clock_bound *b)
{
    const clock_bounds *known = request_reader_clocks(assembler_reader(r->kinds[b->kind].assembler));
    b->measured = clock_bounds_between(known, b->a_number, b->b_number) != CLOCK_BOUND_UNKNOWN;
    qsort(b->begins_ns, b->kept, sizeof(float), by_float);
    qsort(b->ends_ns, b->kept, sizeof(float), by_float);
    b->high_ns = (double)b->begins_ns[b->kept / 20];
    b->low_ns = (double)b->ends_ns[b->kept - 1 - b->kept / 20];
}

static void add_clock_doubts(visits *v, const assembler *a)
{
    size_t count;
    const clock_doubt *doubts = clock_doubts_list(assembler_clock_doubts(a), &count);
    for (size_t i = 0; i < count; i++) {
        const visits_clock_doubt doubt = {g_intern_string(request_reader_host(assembler_reader(a), doubts[i].host)),
                                          g_intern_string(request_reader_host(assembler_reader(a), doubts[i].other)),
                                          (double)doubts[i].ahead_ns};
        g_array_append_val(v->clock_doubts, doubt);
    }
}

static void limit_memory(visits_reader *r)
{
    visits *v = r->result;
    while (v->requests->len > 1 && visits_memory(v) > r->memory_max) {
        visits_halve(v);
        r->keep_mask = r->keep_mask * 2 + 1;
    }
    r->checked = v->all->len;
}

static void take_graph(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)name;
    (void)by;
    kind *k = user;
    visits_reader *r = k->reader;
    visits *v = r->result;
    v->cut += cut;
    v->lossy += (request_problems_doubts(&g->problems) & REQUEST_DOUBT_RECORDS) != 0;
    learn_bounds(k, g);
    host_orders_learn(v->orders, (uint32_t)(k - r->kinds), g, assembler_reader(k->assembler));
    bool has_sites = v->sites->len < SITES_MAX || sites_are_known(k, g),
         keep = (r->number++ & r->keep_mask) == 0 && has_sites;
    v->sites_dropped += !has_sites;
    if (keep && (g->event_count > 1 || g->span_count > 0)) {
        g_array_set_size(r->event_begin, (guint)g->event_count);
        g_array_set_size(r->event_end, (guint)g->event_count);
        memset(r->event_begin->data, 0xff, g->event_count * sizeof(uint32_t));
        memset(r->event_end->data, 0xff, g->event_count * sizeof(uint32_t));
        uint32_t number = v->requests->len, first = v->all->len;
        add_spans(k, g, number);
        set_fields(k, g, number);
        add_path(k, g, number);
        add_side_edges(k, g, number);
        add_side_points(k, g, number);
        find_visits_around(v, first);
        const request q = {g->from_ns, g->to_ns, first, v->all->len - first, g->failed};
        g_array_append_val(v->requests, q);
        if (v->all->len - r->checked >= VISITS_UNCHECKED)
            limit_memory(r);
    }
    v->dropped += !keep && has_sites;
}

/* ---- reading ---- */

static bool is_sensor(const nl_record *record)
{
    static const char *const programs[] = {"nlsensor", "nlkernel", "nlagentd", "netlogd"};
    for (size_t i = 0; i < G_N_ELEMENTS(programs); i++)
        if (record->prog.size == strlen(programs[i]) && memcmp(record->prog.data, programs[i], record->prog.size) == 0)
            return true;
    return false;
}

static void begin_kinds(void *user, const drawing *d)
{
    visits_reader *r = user;
    bool threads = d->lifelines->len == 0 && !r->has_ids;
    GPtrArray *lifelines = threads ? g_ptr_array_new() : drawing_find_requests(d, r->configured);
    if (threads)
        g_ptr_array_add(lifelines, (void *)&drawing_threads);
    r->kind_count = lifelines->len;
    r->kinds = g_new0(kind, r->kind_count + 1);
    for (uint32_t i = 0; i < r->kind_count; i++) {
        const drawing_lifeline *lifeline = g_ptr_array_index(lifelines, i);
        kind *k = &r->kinds[i];
        const assembler_options options = {
            .ids = threads ? NULL : (const char *const *)lifeline->ids,
            .events = r->configured ? (const char *const *)lifeline->events : NULL,
            .again = lifeline->again,
            .untraced = !lifeline->traced && ((drawing_lifeline *)g_ptr_array_index(lifelines, 0))->traced,
            .splits_unnamed = drawing_splits_unnamed(d),
            .fraction = r->fraction,
            .where = r->where,
            .memory_max = r->memory_max / r->kind_count,
            .pack = pack_fields,
            .take = take_graph,
            .user = k,
        };
        *k = (kind){r, assembler_new(&options), g_hash_table_new_full(site_key_hash, site_key_equal, g_free, g_free),
                    threads};
        columns_exclude(r->result->columns, (const char *const *)lifeline->ids);
        for (size_t n = 0; lifeline->ids[n] != NULL; n++)
            g_ptr_array_add(r->result->ids, g_strdup(lifeline->ids[n]));
    }
    g_ptr_array_free(lifelines, TRUE);
    r->result->lifelines = r->kind_count;
}

static void take_record(void *user, const nl_record *original)
{
    visits_reader *r = user;
    nl_record record = *original;
    r->result->records++;
    if (r->kind_count > 0)
        time_units_add(r->result->units, original);
    if (r->clock != NULL)
        record.time_ns = r->clock(r->user, original);
    bool any = false;
    for (uint32_t i = 0; i < r->kind_count && !is_sensor(&record); i++) {
        any = assembler_add(r->kinds[i].assembler, &record) || any;
    }
    if (any)
        return;
    series_set_add(r->result->series, &record);
    connection_table_add(r->result->connections, &record);
}

visits_reader *visits_reader_new(subject_options *options, visits_clock *clock, void *user)
{
    visits_reader *r = g_new0(visits_reader, 1);
    visits *v = r->result = g_new0(visits, 1);
    v->requests = g_array_new(FALSE, FALSE, sizeof(request));
    v->all = g_array_new(FALSE, FALSE, sizeof(visit));
    v->sites = g_array_new(FALSE, FALSE, sizeof(site));
    v->places = g_array_new(FALSE, FALSE, sizeof(place));
    v->instances = g_array_new(FALSE, FALSE, sizeof(instance));
    v->repeats = g_array_new(FALSE, FALSE, sizeof(repeat_end));
    v->bounds = g_array_new(FALSE, FALSE, sizeof(clock_bound));
    v->orders = host_orders_new();
    v->corrections = g_array_new(FALSE, FALSE, sizeof(clock_correction));
    v->clock_doubts = g_array_new(FALSE, FALSE, sizeof(visits_clock_doubt));
    v->ids = g_ptr_array_new_with_free_func(g_free);
    v->columns = columns_new();
    v->ends = visit_ends_new();
    v->parts = span_parts_new();
    v->units = time_units_new();
    v->series = series_new();
    v->connections = connection_table_new(CONNECTION_SLICE_NS, CONNECTION_SLICES_MAX);
    r->clock = clock;
    r->user = user;
    r->memory_max = options->memory_max / 2;
    r->fraction = options->reading.fraction;
    r->where = options->requests;
    v->selects_records = options->where.filter != NULL;
    r->configured = options->config != NULL;
    r->has_ids = options->ids != NULL || r->configured;
    r->span_visit = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    r->edges = g_array_new(FALSE, FALSE, sizeof(request_edge));
    r->event_begin = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    r->event_end = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    r->place_index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->subject = subject_new(options, (subject_user){begin_kinds, take_record, r});
    return r;
}

bool visits_read(visits_reader *r, const char *source)
{
    return subject_read(r->subject, source);
}

void visits_add(visits_reader *r, const nl_record *record)
{
    subject_add(r->subject, record);
}

visits *visits_finish(visits_reader *r)
{
    visits *v = r->result;
    subject_settle(r->subject);
    for (uint32_t i = 0; i < r->kind_count; i++) {
        assembler_finish(r->kinds[i].assembler);
        v->overlapping += assembler_overlapping(r->kinds[i].assembler);
        add_clock_doubts(v, r->kinds[i].assembler);
        const request_reader *reader = assembler_reader(r->kinds[i].assembler);
        v->has_nanoseconds |= request_reader_has_nanoseconds(reader);
        if (v->failure_test == NULL && *request_reader_failure_test(reader) != '\0')
            v->failure_test = g_intern_string(request_reader_failure_test(reader));
    }
    v->separate = r->number;
    v->from_ns = INT64_MAX;
    v->to_ns = INT64_MIN;
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        v->from_ns = MIN(v->from_ns, q->from_ns);
        v->to_ns = MAX(v->to_ns, q->to_ns);
        v->total_ns += (double)(q->to_ns - q->from_ns);
    }
    find_site_clocks(r);
    for (guint i = 0; i < v->bounds->len; i++)
        clock_bound_finish(r, &g_array_index(v->bounds, clock_bound, i));
    visits_move_to_servers(v);
    visits_join_processes(v);
    visits_index(v);
    series_finish(v->series);
    v->connection_results = connection_table_finish(v->connections);
    for (uint32_t i = 0; i < r->kind_count; i++) {
        assembler_free(r->kinds[i].assembler);
        g_hash_table_destroy(r->kinds[i].sites);
    }
    g_free(r->kinds);
    g_array_free(r->span_visit, TRUE);
    g_array_free(r->edges, TRUE);
    g_array_free(r->event_begin, TRUE);
    g_array_free(r->event_end, TRUE);
    g_hash_table_destroy(r->place_index);
    subject_free(r->subject);
    g_free(r);
    return v;
}
