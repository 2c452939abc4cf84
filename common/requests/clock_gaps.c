#include "config.h"

#include "requests/clock_gaps.h"
#include "base/compare.h"
#include "base/hash_bytes.h"

enum {
    MOMENTS_MAX = 48,    /* maximum number of starts and ends of a request from which the module learns */
    PAIRS_MAX = 1000000, /* maximum number of pairs of moments that the module examines */
    CALLS_MAX = 1000,    /* maximum number of calls of one trace from which the module learns */
};

/* The kind of a span's start is the kind of its event (program_families_kind), plus this bit. */
#define KIND_BEGIN (UINT64_C(1) << 62)

/* A point, or the start or the end of a span. */
typedef struct moment {
    uint64_t kind;
    uint64_t span; /* the kind of the span that the moment begins or ends; 0 for a point */
    event_side side;
    int64_t time_ns;
    uint32_t place;
    uint16_t host;    /* index in clock_gaps.hosts */
    bool is_first;    /* the first moment at its place */
    bool is_entrance; /* the first of several moments at its place; a single moment may also cause a reply */
} moment;

static guint gap_set_hash(gconstpointer key)
{
    const gap_set *s = key;
    uint64_t mixed = (s->a * UINT64_C(0x9e3779b97f4a7c15)) ^ (s->b * UINT64_C(0xc2b2ae3d27d4eb4f)) ^
                     ((uint64_t)s->host_a << 16 | s->host_b) * UINT64_C(0xff51afd7ed558ccd);
    return (guint)(mixed >> 32);
}

static gboolean gap_set_equal(gconstpointer a, gconstpointer b)
{
    const gap_set *x = a, *y = b;
    return x->a == y->a && x->b == y->b && x->host_a == y->host_a && x->host_b == y->host_b;
}

static void gap_set_free(gpointer data)
{
    gap_set *s = data;
    g_array_free(s->gaps, TRUE);
    g_free(s);
}

clock_gaps *clock_gaps_new(const event_names *names)
{
    clock_gaps *c = g_new0(clock_gaps, 1);
    c->names = names;
    c->hosts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    c->sets = g_hash_table_new_full(gap_set_hash, gap_set_equal, gap_set_free, NULL);
    c->durations = g_array_new(FALSE, FALSE, sizeof(int64_t));
    return c;
}

void clock_gaps_free(clock_gaps *c)
{
    if (c == NULL)
        return;
    g_array_free(c->hosts, TRUE);
    g_hash_table_destroy(c->sets);
    g_array_free(c->durations, TRUE);
    g_free(c);
}

void clock_gaps_clear(clock_gaps *c)
{
    g_hash_table_remove_all(c->sets);
    g_array_set_size(c->durations, 0);
}

/* Returns the index of a host. Adds the host if it is new. Returns CLOCK_GAPS_HOSTS_MAX if there are too many hosts. */
static uint16_t index_of_host(clock_gaps *c, uint32_t host)
{
    for (guint i = 0; i < c->hosts->len; i++)
        if (g_array_index(c->hosts, uint32_t, i) == host)
            return (uint16_t)i;
    if (c->hosts->len == CLOCK_GAPS_HOSTS_MAX)
        return CLOCK_GAPS_HOSTS_MAX;
    g_array_append_val(c->hosts, host);
    return (uint16_t)(c->hosts->len - 1);
}

static size_t add_moment(moment *moments, size_t count, moment m)
{
    for (size_t i = 0; i < count; i++)
        if (moments[i].kind == m.kind)
            return count; /* a later moment of the same kind does not count */
    if (count < MOMENTS_MAX)
        moments[count] = m;
    return count + 1;
}

/* Returns whether an event begins or ends a span. Sets *span to the number of the span's name. */
static event_side side_of(const clock_gaps *c, const request_event *e, uint32_t *span)
{
    *span = e->span_name;
    if (e->role != REQUEST_POINT)
        return e->role == REQUEST_BEGIN ? EVENT_SIDE_BEGIN : EVENT_SIDE_END;
    return c->names != NULL ? event_names_side(c->names, e->name, span) : EVENT_SIDE_NONE;
}

/* Returns the moment at which an event was logged. */
static moment moment_of(const clock_gaps *c, const program_families *families, const request_event *e, uint16_t host)
{
    request_event span = *e;
    moment m = {.kind = program_families_kind(families, e), .time_ns = e->time_ns, .place = e->place, .host = host};
    m.side = side_of(c, e, &span.name);
    m.span = m.side != EVENT_SIDE_NONE ? program_families_kind(families, &span) : 0;
    return m;
}

/*
 * Finds the first moment of each kind. Returns the number of moments, or 0 if there are too many moments or hosts, or
 * an event has no host.
 */
static size_t find_moments(clock_gaps *c, const program_families *families, const request_event *events,
                           size_t event_count, moment moments[MOMENTS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < event_count && count <= MOMENTS_MAX; i++) {
        const request_event *e = &events[i];
        uint16_t host = e->host != 0 ? index_of_host(c, e->host) : CLOCK_GAPS_HOSTS_MAX;
        if (host == CLOCK_GAPS_HOSTS_MAX)
            return 0;
        moment m = moment_of(c, families, e, host);
        count = add_moment(moments, count, m);
        if (e->role != REQUEST_WHOLE || count > MOMENTS_MAX)
            continue;
        m.kind |= KIND_BEGIN;
        m.side = EVENT_SIDE_BEGIN;
        m.time_ns = request_event_begin(e);
        count = add_moment(moments, count, m);
    }
    return count <= MOMENTS_MAX ? count : 0;
}

/* Returns whether a moment comes before another moment of the same array. */
static bool is_earlier(const moment *a, const moment *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a < b);
}

/* Sets is_first and is_entrance of the moments of a request. */
static void mark_entrances(moment *moments, size_t count)
{
    const moment *end = moments + count;
    for (moment *m = moments; m < end; m++) {
        bool is_first = true, is_last = true;
        for (const moment *other = moments; other < end; other++) {
            is_first = is_first && (other->place != m->place || !is_earlier(other, m));
            is_last = is_last && (other->place != m->place || !is_earlier(m, other));
        }
        m->is_first = is_first;
        m->is_entrance = is_first && !is_last;
    }
}

/* Returns the set with the same kinds and hosts as `key`. Creates the set if necessary. */
static gap_set *find_set(clock_gaps *c, const gap_set *key)
{
    gap_set *set = g_hash_table_lookup(c->sets, key);
    if (set == NULL) {
        set = g_memdup2(key, sizeof *key);
        set->gaps = g_array_new(FALSE, FALSE, sizeof(int64_t));
        g_hash_table_add(c->sets, set);
    }
    return set;
}

static void add_gap(clock_gaps *c, const moment *a, const moment *b, bool alone)
{
    const gap_set key = {.a = a->kind,
                         .b = b->kind,
                         .host_a = a->host,
                         .host_b = b->host,
                         .span_a = a->span,
                         .span_b = b->span,
                         .side_a = a->side,
                         .side_b = b->side};
    gap_set *of = find_set(c, &key);
    int64_t gap_ns = b->time_ns - a->time_ns;
    of->firsts_a += a->is_first;
    of->firsts_b += b->is_first;
    of->entrances_a += a->is_entrance;
    of->entrances_b += b->is_entrance;
    of->alone += alone;
    g_array_append_val(of->gaps, gap_ns);
}

void clock_gaps_learn(clock_gaps *c, const program_families *families, const request_event *events, size_t count)
{
    moment moments[MOMENTS_MAX];
    size_t found = c->pairs < PAIRS_MAX ? find_moments(c, families, events, count, moments) : 0;
    int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
    mark_entrances(moments, found);
    unsigned places = 0;
    for (size_t i = 0; i < found; i++)
        places += moments[i].is_first;
    for (size_t i = 0; i < found; i++) {
        from_ns = MIN(from_ns, moments[i].time_ns);
        to_ns = MAX(to_ns, moments[i].time_ns);
        for (size_t k = 0; k < i; k++) {
            if (moments[i].host == moments[k].host)
                continue;
            bool is_first = moments[i].kind < moments[k].kind;
            add_gap(c, &moments[is_first ? i : k], &moments[is_first ? k : i], places == 2);
        }
    }
    c->pairs += (uint32_t)(found * found / 2);
    if (found > 0) {
        int64_t duration_ns = to_ns - from_ns;
        g_array_append_val(c->durations, duration_ns);
    }
}

/* Adds the gap between the starts or, if `ends` is true, between the ends of a parent and its child. The kinds of a set
 * depend on the names and the programs of both spans. */
static void add_call_gap(clock_gaps *c, const awaited_spans *awaited, const request_span *parent, uint16_t parent_host,
                         const request_span *child, uint16_t child_host, bool ends)
{
    const uint64_t kind = hash_mix(hash_mix((uint64_t)parent->name << 32 | parent->program, ends),
                                   (uint64_t)child->name << 32 | child->program) &
                          ~UINT64_C(1);
    const gap_set key = {.a = kind,
                         .b = kind | 1,
                         .host_a = ends ? child_host : parent_host,
                         .host_b = ends ? parent_host : child_host,
                         .is_call = !ends,
                         .is_reply = ends};
    const int64_t gap_ns = ends ? (parent->end_ns - parent->shift_ns) - (child->end_ns - child->shift_ns)
                                : (child->begin_ns - child->shift_ns) - (parent->begin_ns - parent->shift_ns);
    gap_set *set = find_set(c, &key);
    if (ends && gap_ns < 0 && !awaited_spans_include(awaited, parent, child, -gap_ns))
        set->outliving++;
    else
        g_array_append_val(set->gaps, gap_ns);
}

/* Returns whether a record gives the start of a span, or its end and its duration. */
static bool has_begin(const request_span *s)
{
    return s->begin != REQUEST_NONE || !s->incomplete;
}

void clock_gaps_learn_calls(clock_gaps *c, const request_graph *g, const awaited_spans *awaited)
{
    const int64_t duration_ns = g->to_ns - g->from_ns;
    size_t calls = 0;
    for (size_t i = 0; i < g->span_count && calls < CALLS_MAX && c->pairs < PAIRS_MAX; i++) {
        const request_span *s = &g->spans[i], *parent = s->parent != REQUEST_NONE ? &g->spans[s->parent] : NULL;
        if (parent == NULL || s->inferred_parent || s->host == parent->host || s->host == 0 || parent->host == 0)
            continue;
        const uint16_t host = index_of_host(c, s->host), parent_host = index_of_host(c, parent->host);
        if (host == CLOCK_GAPS_HOSTS_MAX || parent_host == CLOCK_GAPS_HOSTS_MAX)
            continue;
        if (has_begin(s) && has_begin(parent))
            add_call_gap(c, awaited, parent, parent_host, s, host, false);
        if (s->end != REQUEST_NONE && parent->end != REQUEST_NONE)
            add_call_gap(c, awaited, parent, parent_host, s, host, true);
        calls++;
        c->pairs++;
    }
    if (calls > 0)
        g_array_append_val(c->durations, duration_ns);
}

static gint by_kinds(gconstpointer a, gconstpointer b)
{
    const gap_set *x = *(gap_set *const *)a, *y = *(gap_set *const *)b;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->host_a != y->host_a ? x->host_a - y->host_a : x->host_b - y->host_b;
}

GPtrArray *clock_gaps_sort(clock_gaps *c)
{
    GPtrArray *sets = g_ptr_array_new();
    GHashTableIter i;
    gpointer key;
    g_hash_table_iter_init(&i, c->sets);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        const gap_set *set = key;
        if (set->gaps->len == 0)
            continue;
        g_array_sort(set->gaps, nl_compare_int64);
        g_ptr_array_add(sets, key);
    }
    g_ptr_array_sort(sets, by_kinds);
    g_array_sort(c->durations, nl_compare_int64);
    return sets;
}

int64_t clock_gaps_median_duration(const clock_gaps *c)
{
    return c->durations->len > 0 ? g_array_index(c->durations, int64_t, c->durations->len / 2) : 0;
}
