#include "config.h"

#include "requests/clock_shifts.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOMENTS_MAX = 48,    /* maximum number of starts and ends of a request from which the module learns */
    PAIRS_MAX = 1000000, /* maximum number of pairs of moments at which the module looks */
    HOSTS_MAX = 64,      /* the module ignores requests that visit further hosts */
    REQUESTS_MIN = 30,   /* minimum number of requests that show an order */
    DURATION_PART = 10,  /* a shift is at most this part of the median duration of the requests */
    MARGIN_PART = 10,    /* the margin of the orders is at most this part of the largest shift */
    WRONG_GAPS_MIN = 10, /* minimum number of gaps between two hosts that show a wrong clock */
    USUAL_PART = 20,     /* one in this number of gaps is smaller than a usual small gap */
};

/* An order may have exceptions in at most this part of the requests, because of records with wrong times. */
static const double exceptions_max = 0.005;

/* A clock is wrong if at least this part of the gaps between two hosts has the opposite order. */
#define WRONG_PART 0.9

/* An event is the first event of a program if it is the first in this part of the requests. */
#define ENTRANCE_MIN 0.9

/* The kind of a span's start is the kind of its event (program_families_kind), plus this bit. */
#define KIND_BEGIN (UINT64_C(1) << 62)

/* The start or the end of a span, or a point. */
typedef struct moment {
    uint64_t kind;
    int64_t time_ns;
    uint32_t place;
    uint16_t host;    /* index in clock_shifts.hosts */
    bool is_first;    /* the first moment at its place */
    bool is_entrance; /* the first of several moments at its place; a single moment may also cause a reply */
} moment;

/* The gaps from the moments of one kind to the moments of another kind, on two hosts. */
typedef struct gap_set {
    uint64_t a, b; /* a < b */
    uint16_t host_a, host_b;
    uint32_t count, below, above;      /* numbers of all gaps, of gaps below -CLOCK_SHIFT_MAX_NS, and of gaps above
                                          CLOCK_SHIFT_MAX_NS */
    uint32_t firsts_a, firsts_b;       /* numbers of gaps from and to the first moment of a place */
    uint32_t entrances_a, entrances_b; /* numbers of these gaps, if the place has several moments */
    GArray *gaps;                      /* int32_t: the gaps between these limits, in nanoseconds */
} gap_set;

struct clock_shifts {
    GArray *hosts;     /* uint32_t: numbers of the hosts, without 0 */
    GHashTable *sets;  /* a set of gap_set */
    GArray *durations; /* int64_t: durations of the requests */
    uint32_t pairs;
    GArray *shifts; /* int64_t: time to add, by number of the host */
    bool has_shifts, has_wrong_clock;
};

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

clock_shifts *clock_shifts_new(void)
{
    clock_shifts *s = g_new0(clock_shifts, 1);
    s->hosts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    s->sets = g_hash_table_new_full(gap_set_hash, gap_set_equal, gap_set_free, NULL);
    s->durations = g_array_new(FALSE, FALSE, sizeof(int64_t));
    s->shifts = g_array_new(FALSE, TRUE, sizeof(int64_t));
    return s;
}

void clock_shifts_free(clock_shifts *s)
{
    if (s == NULL)
        return;
    g_array_free(s->hosts, TRUE);
    g_hash_table_destroy(s->sets);
    g_array_free(s->durations, TRUE);
    g_array_free(s->shifts, TRUE);
    g_free(s);
}

/* ---- gaps ---- */

/* Returns the index of a host, or HOSTS_MAX if there are too many hosts. */
static uint16_t index_of_host(clock_shifts *s, uint32_t host)
{
    for (guint i = 0; i < s->hosts->len; i++)
        if (g_array_index(s->hosts, uint32_t, i) == host)
            return (uint16_t)i;
    if (s->hosts->len == HOSTS_MAX)
        return HOSTS_MAX;
    g_array_append_val(s->hosts, host);
    return (uint16_t)(s->hosts->len - 1);
}

static size_t add_moment(moment *moments, size_t count, moment m)
{
    for (size_t i = 0; i < count; i++)
        if (moments[i].kind == m.kind)
            return count; /* only the first moment of each kind */
    if (count < MOMENTS_MAX)
        moments[count] = m;
    return count + 1;
}

/* Finds the first moment of each kind. Returns the number of moments, or 0 if there are too many moments or hosts. */
static size_t find_moments(clock_shifts *s, const program_families *families, const request_event *events,
                           size_t event_count, moment moments[MOMENTS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < event_count && count <= MOMENTS_MAX; i++) {
        const request_event *e = &events[i];
        uint16_t host = e->host != 0 ? index_of_host(s, e->host) : HOSTS_MAX;
        if (host == HOSTS_MAX)
            return 0;
        uint64_t kind = program_families_kind(families, e);
        count =
            add_moment(moments, count, (moment){.kind = kind, .time_ns = e->time_ns, .place = e->place, .host = host});
        if (e->role == REQUEST_WHOLE && count <= MOMENTS_MAX)
            count = add_moment(
                moments, count,
                (moment){
                    .kind = kind | KIND_BEGIN, .time_ns = request_event_begin(e), .place = e->place, .host = host});
    }
    return count <= MOMENTS_MAX ? count : 0;
}

/* Returns whether a moment comes before another moment of the same array. */
static bool is_earlier(const moment *a, const moment *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a < b);
}

/* Sets is_entrance of the moments of a request. */
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

static void add_gap(clock_shifts *s, const moment *a, const moment *b)
{
    gap_set key = {.a = a->kind, .b = b->kind, .host_a = a->host, .host_b = b->host};
    gap_set *of = g_hash_table_lookup(s->sets, &key);
    if (of == NULL) {
        of = g_memdup2(&key, sizeof key);
        of->gaps = g_array_new(FALSE, FALSE, sizeof(int32_t));
        g_hash_table_add(s->sets, of);
    }
    int64_t gap_ns = b->time_ns - a->time_ns;
    of->count++;
    of->firsts_a += a->is_first;
    of->firsts_b += b->is_first;
    of->entrances_a += a->is_entrance;
    of->entrances_b += b->is_entrance;
    of->below += gap_ns < -CLOCK_SHIFT_MAX_NS;
    of->above += gap_ns > CLOCK_SHIFT_MAX_NS;
    if (llabs(gap_ns) > CLOCK_SHIFT_MAX_NS)
        return;
    int32_t gap = (int32_t)gap_ns;
    g_array_append_val(of->gaps, gap);
}

void clock_shifts_learn(clock_shifts *s, const program_families *families, const request_event *events, size_t count)
{
    moment moments[MOMENTS_MAX];
    size_t found = s->pairs < PAIRS_MAX ? find_moments(s, families, events, count, moments) : 0;
    int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
    mark_entrances(moments, found);
    for (size_t i = 0; i < found; i++) {
        from_ns = MIN(from_ns, moments[i].time_ns);
        to_ns = MAX(to_ns, moments[i].time_ns);
        for (size_t k = 0; k < i; k++) {
            if (moments[i].host == moments[k].host)
                continue;
            bool is_first = moments[i].kind < moments[k].kind;
            add_gap(s, &moments[is_first ? i : k], &moments[is_first ? k : i]);
        }
    }
    s->pairs += (uint32_t)(found * found / 2);
    if (found > 0) {
        int64_t duration_ns = to_ns - from_ns;
        g_array_append_val(s->durations, duration_ns);
    }
}

/* ---- orders ---- */

/* The order of the events of two kinds, on all pairs of hosts: the sets [from, to) of the sorted sets. */
typedef struct order {
    int64_t need_ns; /* the largest difference of two clocks that the order needs, or 0 */
    guint from, to;
    bool reversed; /* the events of the second kind come first */
} order;

static int by_gap(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Returns the gap with an index in ascending order or, if `reversed` is true, the same for the opposite direction. */
static int64_t gap_at(const gap_set *set, uint32_t index, bool reversed)
{
    uint32_t far = reversed ? set->above : set->below;
    if (index < far)
        return -2 * CLOCK_SHIFT_MAX_NS; /* no shift is so large */
    index -= far;
    if (index >= set->gaps->len)
        return CLOCK_SHIFT_MAX_NS;
    return reversed ? -g_array_index(set->gaps, int32_t, set->gaps->len - 1 - index)
                    : g_array_index(set->gaps, int32_t, index);
}

/*
 * Returns the smallest gap of a set in one direction. Ignores a few exceptions that are far below the other gaps,
 * because their records may have wrong times.
 */
static int64_t smallest_gap(const gap_set *set, bool reversed)
{
    uint32_t first = (uint32_t)(exceptions_max * set->count);
    int64_t low_ns = gap_at(set, first, reversed), usual_ns = gap_at(set, set->count / USUAL_PART, reversed);
    while (first > 0 && gap_at(set, first - 1, reversed) >= 2 * low_ns - usual_ns)
        first--;
    return gap_at(set, first, reversed);
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

/* Returns the order of the sets [from, to), which have the same kinds, in one direction. */
static order order_of(const GPtrArray *sets, guint from, guint to, bool reversed)
{
    order o = {.from = from, .to = to, .reversed = reversed};
    for (guint i = from; i < to; i++)
        o.need_ns = MAX(o.need_ns, -smallest_gap(g_ptr_array_index(sets, i), reversed));
    return o;
}

/*
 * Returns the right one of two opposite orders, or NULL if neither is certain. The first event of a program in a
 * request needs a cause in another program, so it is probably the effect if the other event is not such an event. In
 * other cases, an order is certain only if equal clocks permit it, because the events may be concurrent.
 */
static const order *choose_order(const GPtrArray *sets, const order *forward, const order *back, int64_t max_ns)
{
    double count = 0, entrances_a = 0, entrances_b = 0, firsts_a = 0, firsts_b = 0;
    for (guint i = forward->from; i < forward->to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        count += set->count;
        entrances_a += set->entrances_a;
        entrances_b += set->entrances_b;
        firsts_a += set->firsts_a;
        firsts_b += set->firsts_b;
    }
    if (MAX(forward->need_ns, back->need_ns) <= max_ns) {
        if (entrances_a >= ENTRANCE_MIN * count && firsts_b <= (1 - ENTRANCE_MIN) * count)
            return back;
        if (entrances_b >= ENTRANCE_MIN * count && firsts_a <= (1 - ENTRANCE_MIN) * count)
            return forward;
    }
    return back->need_ns == 0 ? back : forward->need_ns == 0 ? forward : NULL;
}

/* Returns the number of gaps of a set in the direction opposite to an order. */
static uint32_t count_opposite(const gap_set *set, bool reversed)
{
    uint32_t count = reversed ? set->above : set->below;
    for (guint i = 0; i < set->gaps->len; i++) {
        int32_t gap = g_array_index(set->gaps, int32_t, i);
        count += reversed ? gap > 0 : gap < 0;
    }
    return count;
}

/*
 * Returns whether most pairs of hosts permit the order of the sets [from, to), but other pairs have the opposite order
 * by more than max_ns. In this case, a clock is probably wrong.
 */
static bool shows_wrong_clock(const GPtrArray *sets, guint from, guint to, bool reversed, int64_t max_ns)
{
    uint32_t count = 0, permitted = 0, opposite = 0;
    for (guint i = from; i < to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        count += set->count;
        if (-smallest_gap(set, reversed) <= max_ns)
            permitted += set->count;
        else if (set->count >= WRONG_GAPS_MIN && count_opposite(set, reversed) >= WRONG_PART * set->count)
            opposite += set->count;
    }
    return opposite > 0 && 2 * permitted > count;
}

/* Adds the order of the sets [from, to), which have the same kinds, if differences of the clocks up to max_ns permit an
 * order. */
static void add_order(clock_shifts *s, GArray *orders, const GPtrArray *sets, guint from, guint to, int64_t max_ns)
{
    uint32_t count = 0;
    for (guint i = from; i < to; i++)
        count += ((const gap_set *)g_ptr_array_index(sets, i))->count;
    const order forward = order_of(sets, from, to, false), back = order_of(sets, from, to, true);
    const order *chosen = choose_order(sets, &forward, &back, max_ns);
    s->has_wrong_clock = s->has_wrong_clock || shows_wrong_clock(sets, from, to, false, max_ns) ||
                         shows_wrong_clock(sets, from, to, true, max_ns);
    if (count >= REQUESTS_MIN && chosen != NULL)
        g_array_append_vals(orders, chosen, 1);
}

static int by_need(const void *a, const void *b)
{
    const order *x = a, *y = b;
    return (x->need_ns > y->need_ns) - (x->need_ns < y->need_ns);
}

/* Returns the sets, sorted by their kinds. Sorts the gaps of each set. The caller frees the array. */
static GPtrArray *sort_sets(const clock_shifts *s)
{
    GPtrArray *sets = g_ptr_array_new();
    GHashTableIter i;
    gpointer key;
    g_hash_table_iter_init(&i, s->sets);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        const gap_set *set = key;
        g_array_sort(set->gaps, by_gap);
        g_ptr_array_add(sets, key);
    }
    g_ptr_array_sort(sets, by_kinds);
    return sets;
}

/* Returns the orders of all pairs of kinds, those that need the smallest differences first. The caller frees the array.
 */
static GArray *find_orders(clock_shifts *s, const GPtrArray *sets, int64_t max_ns)
{
    GArray *orders = g_array_new(FALSE, FALSE, sizeof(order));
    for (guint from = 0, to; from < sets->len; from = to) {
        const gap_set *first = g_ptr_array_index(sets, from);
        for (to = from + 1; to < sets->len; to++) {
            const gap_set *set = g_ptr_array_index(sets, to);
            if (set->a != first->a || set->b != first->b)
                break;
        }
        add_order(s, orders, sets, from, to, max_ns);
    }
    g_array_sort(orders, by_need);
    return orders;
}

/* ---- limits ---- */

/* A limit of the difference of two clocks, from their bounds or from an order of events. */
typedef struct clock_limit {
    int64_t max_ns;
    bool is_order;
} clock_limit;

/* limits[a][b] limits the time by which the clock of host b is ahead of the clock of host a. */
typedef clock_limit limit_table[HOSTS_MAX][HOSTS_MAX];

/* Limits the differences of the clocks to max_ns, and to their known bounds. */
static void set_bounds(const clock_shifts *s, const clock_bounds *clocks, int64_t max_ns, limit_table limits)
{
    for (guint a = 0; a < s->hosts->len; a++)
        for (guint b = 0; b < s->hosts->len; b++) {
            int64_t bound_ns = clock_bounds_between(clocks, g_array_index(s->hosts, uint32_t, a),
                                                    g_array_index(s->hosts, uint32_t, b));
            limits[a][b] = (clock_limit){bound_ns == CLOCK_BOUND_UNKNOWN ? max_ns : MIN(bound_ns, max_ns), false};
        }
}

/* Adds the limits of an order. */
static void add_limits(const GPtrArray *sets, const order *o, limit_table limits)
{
    for (guint i = o->from; i < o->to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        clock_limit *limit = o->reversed ? &limits[set->host_b][set->host_a] : &limits[set->host_a][set->host_b];
        int64_t gap_ns = smallest_gap(set, o->reversed);
        if (gap_ns <= limit->max_ns)
            *limit = (clock_limit){gap_ns, true};
    }
}

/*
 * Finds, for each clock, the time by which it is ahead, so that all limits hold: the shortest paths from a host that
 * has the limit 0 to all hosts (Bellman and Ford). Gaps in the direction of an order remain at least margin_ns. Returns
 * false if no times respect the limits.
 */
static bool solve_limits(const limit_table limits, guint hosts, int64_t margin_ns, int64_t ahead[HOSTS_MAX])
{
    bool changed = true;
    memset(ahead, 0, HOSTS_MAX * sizeof *ahead);
    for (guint round = 0; changed && round <= hosts; round++) {
        changed = false;
        for (guint a = 0; a < hosts; a++)
            for (guint b = 0; b < hosts; b++) {
                int64_t max_ns = ahead[a] + limits[a][b].max_ns - (limits[a][b].is_order ? margin_ns : 0);
                changed = changed || max_ns < ahead[b];
                ahead[b] = MIN(ahead[b], max_ns);
            }
    }
    return !changed;
}

/*
 * Solves the limits with the largest possible margin, up to max_ns, because the smallest gap in the sample is rarely
 * the smallest possible gap. The limits must have a solution.
 */
static void find_margin(const limit_table limits, guint hosts, int64_t max_ns, int64_t ahead[HOSTS_MAX])
{
    int64_t low = 0, high = max_ns + 1;
    while (low + 1 < high) {
        int64_t middle = low + (high - low) / 2;
        if (solve_limits(limits, hosts, middle, ahead))
            low = middle;
        else
            high = middle;
    }
    solve_limits(limits, hosts, low, ahead);
}

static int by_duration(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median_duration(const clock_shifts *s)
{
    g_array_sort(s->durations, by_duration);
    return s->durations->len > 0 ? g_array_index(s->durations, int64_t, s->durations->len / 2) : 0;
}

void clock_shifts_settle(clock_shifts *s, const clock_bounds *clocks)
{
    limit_table *limits = g_new0(limit_table, 1), *more = g_new0(limit_table, 1);
    int64_t ahead[HOSTS_MAX], max_ns = MIN(CLOCK_SHIFT_MAX_NS, median_duration(s) / DURATION_PART);
    GPtrArray *sets = sort_sets(s);
    GArray *orders = find_orders(s, sets, max_ns);
    set_bounds(s, clocks, max_ns, *limits);
    for (guint i = 0; i < orders->len; i++) {
        const order *o = &g_array_index(orders, order, i);
        if (o->need_ns == 0) { /* equal clocks permit this order and all orders before it */
            add_limits(sets, o, *limits);
            continue;
        }
        memcpy(*more, *limits, sizeof *more);
        add_limits(sets, o, *more);
        if (!solve_limits(*more, s->hosts->len, 0, ahead))
            continue;
        memcpy(*limits, *more, sizeof *more);
        s->has_shifts = true;
    }
    find_margin(*limits, s->hosts->len, max_ns / MARGIN_PART, ahead);
    for (guint i = 0; i < s->hosts->len; i++) {
        uint32_t host = g_array_index(s->hosts, uint32_t, i);
        if (host >= s->shifts->len)
            g_array_set_size(s->shifts, host + 1);
        g_array_index(s->shifts, int64_t, host) = -ahead[i];
    }
    g_ptr_array_free(sets, TRUE);
    g_array_free(orders, TRUE);
    g_free(limits);
    g_free(more);
    g_hash_table_remove_all(s->sets);
}

bool clock_shifts_apply(const clock_shifts *s, request_event *events, size_t count)
{
    bool changed = false;
    for (size_t i = 0; i < count && s->has_shifts && !s->has_wrong_clock; i++) {
        int64_t shift_ns = events[i].host < s->shifts->len ? g_array_index(s->shifts, int64_t, events[i].host) : 0;
        events[i].time_ns += shift_ns;
        changed = changed || shift_ns != 0;
    }
    return changed;
}
