#include "config.h"

#include "requests/clock_doubts.h"

#include <stdlib.h>

enum {
    GAPS_MIN = 30,      /* minimum number of gaps between two kinds of events */
    SPREAD_PART = 20,   /* one in this number of gaps at each end may be unusual */
    LINK_FACTOR = 4,    /* a link varies at most this many times as much as the link that varies least */
    GAP_PART = 4,       /* the gaps of a link vary by at most 1/GAP_PART of their median */
    DURATION_PART = 20, /* a doubtful difference is at least 1/DURATION_PART of the median duration of the requests */
};

#define DOUBT_MIN_NS INT64_C(2000000)

/* The gaps between two kinds of events on two hosts, which are usually linked by a message. */
typedef struct clock_link {
    uint16_t hosts[2]; /* indices in clock_gaps.hosts, in ascending order */
    uint64_t kinds[2]; /* the kinds of the events on these hosts */
    int64_t gap_ns;    /* the median gap from the event on the first host to the event on the second host */
    int64_t spread_ns;
} clock_link;

struct clock_doubts {
    GArray *found;                           /* clock_doubt */
    uint64_t partners[CLOCK_GAPS_HOSTS_MAX]; /* bit i of the element k: the clocks of the hosts i and k are doubtful */
    uint32_t hosts[CLOCK_GAPS_HOSTS_MAX];    /* numbers of the hosts */
    size_t host_count;
};

clock_doubts *clock_doubts_new(void)
{
    clock_doubts *d = g_new0(clock_doubts, 1);
    d->found = g_array_new(FALSE, FALSE, sizeof(clock_doubt));
    return d;
}

void clock_doubts_free(clock_doubts *d)
{
    if (d == NULL)
        return;
    g_array_free(d->found, TRUE);
    g_free(d);
}

/* ---- links ---- */

static clock_link link_of(const gap_set *set)
{
    const guint count = set->gaps->len, low = count / SPREAD_PART, high = count - 1 - low;
    const bool is_swapped = set->host_a > set->host_b;
    const int64_t gap_ns = g_array_index(set->gaps, int64_t, count / 2);
    int64_t spread_ns;
    if (__builtin_sub_overflow(g_array_index(set->gaps, int64_t, high), g_array_index(set->gaps, int64_t, low),
                               &spread_ns))
        spread_ns = INT64_MAX;
    return (clock_link){.hosts = {MIN(set->host_a, set->host_b), MAX(set->host_a, set->host_b)},
                        .kinds = {is_swapped ? set->b : set->a, is_swapped ? set->a : set->b},
                        .gap_ns = is_swapped ? -gap_ns : gap_ns,
                        .spread_ns = spread_ns};
}

/* A kind of event on one host, and the spread of the link that varies least. */
typedef struct link_end {
    uint64_t kind;
    uint16_t host;
    int64_t spread_ns;
} link_end;

static guint link_end_hash(gconstpointer key)
{
    const link_end *e = key;
    return (guint)(((e->kind * UINT64_C(0x9e3779b97f4a7c15)) ^ e->host * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 32);
}

static gboolean link_end_equal(gconstpointer a, gconstpointer b)
{
    const link_end *x = a, *y = b;
    return x->kind == y->kind && x->host == y->host;
}

static void note_end(GHashTable *ends, uint64_t kind, uint16_t host, int64_t spread_ns)
{
    const link_end end = {kind, host, spread_ns};
    link_end *known = g_hash_table_lookup(ends, &end);
    if (known == NULL)
        g_hash_table_add(ends, g_memdup2(&end, sizeof end));
    else
        known->spread_ns = MIN(known->spread_ns, spread_ns);
}

/* Returns whether a link varies least among the links of one of its two events. */
static bool is_direct(GHashTable *ends, const clock_link *l)
{
    for (int i = 0; i < 2; i++) {
        const link_end key = {l->kinds[i], l->hosts[i], 0}, *end = g_hash_table_lookup(ends, &key);
        if (end != NULL && l->spread_ns <= end->spread_ns)
            return true;
    }
    return false;
}

static int by_hosts(const void *a, const void *b)
{
    const clock_link *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->hosts[i] != y->hosts[i])
            return x->hosts[i] < y->hosts[i] ? -1 : 1;
    return (x->spread_ns > y->spread_ns) - (x->spread_ns < y->spread_ns);
}

/* Returns the direct links, sorted by their hosts, and then by how much they vary. The caller frees the array. */
static GArray *find_links(const GPtrArray *sets)
{
    GArray *links = g_array_new(FALSE, FALSE, sizeof(clock_link));
    GHashTable *ends = g_hash_table_new_full(link_end_hash, link_end_equal, g_free, NULL);
    for (guint i = 0; i < sets->len; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        if (set->gaps->len < GAPS_MIN)
            continue;
        const clock_link l = link_of(set);
        g_array_append_val(links, l);
        for (int k = 0; k < 2; k++)
            note_end(ends, l.kinds[k], l.hosts[k], l.spread_ns);
    }
    guint kept = 0;
    for (guint i = 0; i < links->len; i++)
        if (is_direct(ends, &g_array_index(links, clock_link, i)))
            g_array_index(links, clock_link, kept++) = g_array_index(links, clock_link, i);
    g_array_set_size(links, kept);
    g_array_sort(links, by_hosts);
    g_hash_table_destroy(ends);
    return links;
}

/* ---- doubts ---- */

/*
 * Returns the smallest gap of the links [from, to) of two hosts, from the first host to the second host. Considers only
 * the links that vary little. Returns 0 if the gaps have different signs, or if they vary too much for their length.
 */
static int64_t common_gap(const GArray *links, guint from, guint to)
{
    const clock_link *first = &g_array_index(links, clock_link, from);
    int64_t gap_ns = first->gap_ns;
    for (guint i = from; i < to; i++) {
        const clock_link *l = &g_array_index(links, clock_link, i);
        if (l->spread_ns / LINK_FACTOR > first->spread_ns)
            break;
        if ((l->gap_ns > 0) != (gap_ns > 0))
            return 0;
        if (llabs(l->gap_ns) < llabs(gap_ns))
            gap_ns = l->gap_ns;
    }
    return first->spread_ns <= llabs(gap_ns) / GAP_PART ? gap_ns : 0;
}

static gint by_difference(gconstpointer a, gconstpointer b)
{
    const clock_doubt *x = a, *y = b;
    return (x->ahead_ns < y->ahead_ns) - (x->ahead_ns > y->ahead_ns);
}

void clock_doubts_settle(clock_doubts *d, const clock_gaps *gaps, const GPtrArray *sets, const clock_bounds *clocks)
{
    const int64_t minimum_ns = MAX(DOUBT_MIN_NS, clock_gaps_median_duration(gaps) / DURATION_PART);
    GArray *links = find_links(sets);
    d->host_count = gaps->hosts->len;
    for (size_t i = 0; i < d->host_count; i++)
        d->hosts[i] = g_array_index(gaps->hosts, uint32_t, i);
    for (guint from = 0, to; from < links->len; from = to) {
        const clock_link *first = &g_array_index(links, clock_link, from);
        for (to = from + 1; to < links->len; to++)
            if (g_array_index(links, clock_link, to).hosts[0] != first->hosts[0] ||
                g_array_index(links, clock_link, to).hosts[1] != first->hosts[1])
                break;
        const uint16_t a = first->hosts[0], b = first->hosts[1];
        const int64_t gap_ns = common_gap(links, from, to);
        if (llabs(gap_ns) < minimum_ns || clock_bounds_between(clocks, d->hosts[a], d->hosts[b]) != CLOCK_BOUND_UNKNOWN)
            continue;
        d->partners[a] |= UINT64_C(1) << b;
        d->partners[b] |= UINT64_C(1) << a;
        const clock_doubt found = {d->hosts[gap_ns > 0 ? b : a], d->hosts[gap_ns > 0 ? a : b], llabs(gap_ns)};
        g_array_append_val(d->found, found);
    }
    g_array_sort(d->found, by_difference);
    g_array_free(links, TRUE);
}

uint32_t clock_doubts_count(const clock_doubts *d, const request_event *events, size_t count)
{
    uint64_t visited = 0;
    uint32_t pairs = 0;
    for (size_t i = 0; i < count && d->found->len > 0; i++)
        for (size_t k = 0; k < d->host_count && (i == 0 || events[i].host != events[i - 1].host); k++)
            visited |= (uint64_t)(d->hosts[k] == events[i].host) << k;
    for (size_t k = 0; k < d->host_count; k++)
        if (visited >> k & 1)
            pairs += (uint32_t)__builtin_popcountll(d->partners[k] & visited);
    return pairs / 2;
}

const clock_doubt *clock_doubts_list(const clock_doubts *d, size_t *count)
{
    *count = d->found->len;
    return (const clock_doubt *)(const void *)d->found->data;
}
