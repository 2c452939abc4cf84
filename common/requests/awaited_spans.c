#include "config.h"

#include "requests/awaited_spans.h"
#include "base/compare.h"

#include <glib.h>
#include <string.h>

enum {
    LATE_MIN = 10,     /* minimum number of late children from which the module learns */
    LATE_OF_HOSTS = 5, /* minimum number of late children between two hosts, to learn about these hosts */
    EXCEPTIONS = 20,   /* minimum number of children for each exception, such as a child that ends after a timeout */
    SPREAD_PART = 4,   /* minimum ratio of the spread of the durations to the spread of the ends */
    LIMIT_FACTOR = 2,  /* ratio of the limit to the usual maximum time by which children are late */
};

/* A parent and its child: their names, programs and hosts. */
typedef struct span_pair {
    uint32_t names[2], programs[2], hosts[2];
} span_pair;

/* The children of a pair that end after their parents. */
typedef struct pair_times {
    span_pair pair;       /* the key */
    GArray *durations_ns; /* int64_t: durations of the children */
    GArray *late_ns;      /* int64_t: times by which the children end after their parents */
} pair_times;

/* The result for a pair, or for all pairs with the same names and programs. */
typedef struct pair_limit {
    span_pair pair;
    int64_t late_ns; /* maximum time by which an awaited child ends after its parent */
} pair_limit;

struct awaited_spans {
    GHashTable *times;  /* a set of pair_times */
    GHashTable *limits; /* a set of pair_limit, after the learning; a limit for all hosts has the hosts 0 */
};

static guint span_pair_hash(gconstpointer key)
{
    const span_pair *p = key;
    uint64_t mixed = 0;
    for (int i = 0; i < 2; i++) {
        mixed = (mixed ^ ((uint64_t)p->names[i] << 32 | p->programs[i])) * UINT64_C(0x9e3779b97f4a7c15);
        mixed = (mixed ^ mixed >> 32 ^ p->hosts[i]) * UINT64_C(0xc2b2ae3d27d4eb4f);
    }
    return (guint)(mixed >> 32);
}

static gboolean span_pair_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(span_pair)) == 0;
}

static void pair_times_free(gpointer data)
{
    pair_times *t = data;
    g_array_free(t->durations_ns, TRUE);
    g_array_free(t->late_ns, TRUE);
    g_free(t);
}

awaited_spans *awaited_spans_new(void)
{
    awaited_spans *a = g_new0(awaited_spans, 1);
    a->times = g_hash_table_new_full(span_pair_hash, span_pair_equal, pair_times_free, NULL);
    a->limits = g_hash_table_new_full(span_pair_hash, span_pair_equal, g_free, NULL);
    return a;
}

void awaited_spans_free(awaited_spans *a)
{
    if (a == NULL)
        return;
    g_hash_table_destroy(a->times);
    g_hash_table_destroy(a->limits);
    g_free(a);
}

static span_pair pair_of(const request_span *parent, const request_span *child)
{
    return (span_pair){{parent->name, child->name}, {parent->program, child->program}, {parent->host, child->host}};
}

static span_pair without_hosts(span_pair pair)
{
    pair.hosts[0] = pair.hosts[1] = 0;
    return pair;
}

void awaited_spans_learn(awaited_spans *a, const request_graph *g)
{
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i], *parent = s->parent != REQUEST_NONE ? &g->spans[s->parent] : NULL;
        if (parent == NULL || s->inferred_parent || s->incomplete || parent->incomplete)
            continue;
        const int64_t duration_ns = s->end_ns - s->begin_ns,
                      late_ns = (s->end_ns - s->shift_ns) - (parent->end_ns - parent->shift_ns);
        if (late_ns <= 0)
            continue;
        const span_pair pair = pair_of(parent, s);
        pair_times *t = g_hash_table_lookup(a->times, &pair);
        if (t == NULL && g_hash_table_size(a->times) < AWAITED_KINDS_MAX) {
            t = g_new(pair_times, 1);
            *t = (pair_times){pair, g_array_new(FALSE, FALSE, sizeof(int64_t)),
                              g_array_new(FALSE, FALSE, sizeof(int64_t))};
            g_hash_table_add(a->times, t);
        }
        if (t == NULL || t->durations_ns->len == AWAITED_TIMES_MAX)
            continue;
        g_array_append_val(t->durations_ns, duration_ns);
        g_array_append_val(t->late_ns, late_ns);
    }
}

/* Returns a bound of the sorted times: 1/part of the times are below it or, if `above` is true, above it. */
static int64_t quantile_of(const GArray *times, guint part, bool above)
{
    const guint index = times->len / part;
    return g_array_index(times, int64_t, above ? times->len - 1 - index : index);
}

static int64_t spread_of(GArray *times, guint part)
{
    int64_t spread_ns;
    g_array_sort(times, nl_compare_int64);
    if (__builtin_sub_overflow(quantile_of(times, part, true), quantile_of(times, part, false), &spread_ns))
        return INT64_MAX;
    return spread_ns;
}

/* Appends times to `all`, relative to their median if `centered` is true. Sorts the times. */
static void append_times(GArray *all, GArray *times, bool centered)
{
    g_array_sort(times, nl_compare_int64);
    const int64_t middle_ns = centered && times->len > 0 ? g_array_index(times, int64_t, times->len / 2) : 0;
    for (guint i = 0; i < times->len; i++) {
        const int64_t time_ns = g_array_index(times, int64_t, i) - middle_ns;
        g_array_append_val(all, time_ns);
    }
}

static void add_limit(awaited_spans *a, span_pair pair, int64_t late_ns)
{
    const pair_limit limit = {pair, LIMIT_FACTOR * MIN(late_ns, REQUEST_TIME_MAX / LIMIT_FACTOR)};
    g_hash_table_add(a->limits, g_memdup2(&limit, sizeof limit));
}

/*
 * Decides whether the parents waited. `kind` is an array of the pair_times of one pair of names and programs. If
 * `centered` is true, compares only times between the same hosts, because the clocks of other hosts differ by another
 * time. Otherwise, compares the times of all hosts. Returns whether there are enough late children for a decision.
 */
static bool decide_kind(awaited_spans *a, const GPtrArray *kind, bool centered)
{
    GArray *late_ns = g_array_new(FALSE, FALSE, sizeof(int64_t)),
           *durations_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t latest_ns = 0;
    for (guint i = 0; i < kind->len; i++) {
        const pair_times *t = g_ptr_array_index(kind, i);
        if (centered && t->late_ns->len < LATE_OF_HOSTS)
            continue;
        append_times(late_ns, t->late_ns, centered);
        append_times(durations_ns, t->durations_ns, centered);
        latest_ns = MAX(latest_ns, quantile_of(t->late_ns, EXCEPTIONS, true));
    }
    const bool decided = late_ns->len >= LATE_MIN;
    if (decided && spread_of(late_ns, EXCEPTIONS) < spread_of(durations_ns, EXCEPTIONS) / SPREAD_PART) {
        const pair_times *first = g_ptr_array_index(kind, 0);
        add_limit(a, without_hosts(first->pair), latest_ns);
        for (guint i = 0; i < kind->len; i++) {
            const pair_times *t = g_ptr_array_index(kind, i);
            const bool has_hosts = t->pair.hosts[0] != 0 || t->pair.hosts[1] != 0; /* 0: the record names no host */
            if (has_hosts && t->late_ns->len >= LATE_OF_HOSTS)
                add_limit(a, t->pair, quantile_of(t->late_ns, EXCEPTIONS, true));
        }
    }
    g_array_free(late_ns, TRUE);
    g_array_free(durations_ns, TRUE);
    return decided;
}

void awaited_spans_settle(awaited_spans *a)
{
    GHashTable *kinds =
        g_hash_table_new_full(span_pair_hash, span_pair_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    GHashTableIter i;
    gpointer key, value;
    g_hash_table_iter_init(&i, a->times);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        const span_pair kind = without_hosts(((const pair_times *)key)->pair);
        GPtrArray *members = g_hash_table_lookup(kinds, &kind);
        if (members == NULL) {
            members = g_ptr_array_new();
            g_hash_table_insert(kinds, g_memdup2(&kind, sizeof kind), members);
        }
        g_ptr_array_add(members, key);
    }
    g_hash_table_iter_init(&i, kinds);
    while (g_hash_table_iter_next(&i, NULL, &value))
        if (!decide_kind(a, value, true))
            decide_kind(a, value, false);
    g_hash_table_destroy(kinds);
    g_hash_table_remove_all(a->times);
}

bool awaited_spans_include(const awaited_spans *a, const request_span *parent, const request_span *child,
                           int64_t late_ns)
{
    if (a == NULL || g_hash_table_size(a->limits) == 0)
        return false;
    const span_pair pair = pair_of(parent, child), kind = without_hosts(pair);
    const pair_limit *limit = g_hash_table_lookup(a->limits, &pair);
    if (limit == NULL)
        limit = g_hash_table_lookup(a->limits, &kind);
    return limit != NULL && late_ns <= limit->late_ns;
}
