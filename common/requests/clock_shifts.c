#include "config.h"

#include "requests/clock_shifts.h"

#include "requests/clock_gaps.h"

#include <glib.h>
#include <string.h>

enum {
    HOSTS_MAX = CLOCK_GAPS_HOSTS_MAX,
    REQUESTS_MIN = 30,   /* minimum number of requests that show an order */
    DURATION_PART = 10,  /* a shift is at most 1/DURATION_PART of the median duration of the requests */
    MARGIN_PART = 10,    /* the margin of the orders is at most 1/MARGIN_PART of the largest shift */
    WRONG_GAPS_MIN = 10, /* minimum number of gaps between two hosts that show a wrong clock */
    USUAL_PART = 20,     /* one in this number of gaps is smaller than the usual small gap (smallest_gap) */
};

/* An order may have exceptions in at most this part of the requests, because of records with wrong times. */
static const double exceptions_max = 0.005;

/* A clock is wrong if at least this part of the gaps between two hosts has the opposite order. */
#define WRONG_PART 0.9

/* An event is the first event of a program if it is the first in this part of the requests. */
#define ENTRANCE_MIN 0.9

struct clock_shifts {
    clock_gaps *gaps;
    clock_doubts *doubts;
    GArray *shifts;  /* int64_t: time to add, by number of the host */
    GArray *indices; /* uint16_t: index of the host in `rest` + 1, by number of the host; 0: unknown */
    int64_t rest[HOSTS_MAX][HOSTS_MAX]; /* see clock_shifts_rest; rest[a][b]: b may be ahead of a */
    bool has_shifts, has_wrong_clock;
};

clock_shifts *clock_shifts_new(const event_names *names)
{
    clock_shifts *s = g_new0(clock_shifts, 1);
    s->gaps = clock_gaps_new(names);
    s->doubts = clock_doubts_new();
    s->shifts = g_array_new(FALSE, TRUE, sizeof(int64_t));
    s->indices = g_array_new(FALSE, TRUE, sizeof(uint16_t));
    return s;
}

void clock_shifts_free(clock_shifts *s)
{
    if (s == NULL)
        return;
    clock_gaps_free(s->gaps);
    clock_doubts_free(s->doubts);
    g_array_free(s->shifts, TRUE);
    g_array_free(s->indices, TRUE);
    g_free(s);
}

void clock_shifts_learn(clock_shifts *s, const program_families *families, const request_event *events, size_t count)
{
    clock_gaps_learn(s->gaps, families, events, count);
}

void clock_shifts_learn_trace(clock_shifts *s, const request_graph *g, const awaited_spans *awaited)
{
    clock_gaps_learn_calls(s->gaps, g, awaited);
}

/* ---- orders ---- */

/* The order of the events of two kinds, on all pairs of hosts: the sets [from, to) of the sorted sets. */
typedef struct order {
    int64_t need_ns; /* the largest difference of two clocks that the order needs, or 0 */
    guint from, to;
    bool reversed; /* the events of the second kind come first */
} order;

/* Returns the gap with this index in ascending order. If `reversed` is true, all gaps have the opposite sign. */
static int64_t gap_at(const gap_set *set, uint32_t index, bool reversed)
{
    const int64_t gap_ns = reversed ? -g_array_index(set->gaps, int64_t, set->gaps->len - 1 - index)
                                    : g_array_index(set->gaps, int64_t, index);
    if (gap_ns < -CLOCK_SHIFT_MAX_NS)
        return -2 * CLOCK_SHIFT_MAX_NS; /* no shift is so large */
    return MIN(gap_ns, CLOCK_SHIFT_MAX_NS);
}

/*
 * Returns the smallest gap of a set in one direction. Ignores a few exceptions that are far below the other gaps,
 * because their records may have wrong times.
 */
static int64_t smallest_gap(const gap_set *set, bool reversed)
{
    uint32_t first = (uint32_t)(exceptions_max * set->gaps->len);
    int64_t low_ns = gap_at(set, first, reversed), usual_ns = gap_at(set, set->gaps->len / USUAL_PART, reversed);
    while (first > 0 && gap_at(set, first - 1, reversed) >= 2 * low_ns - usual_ns)
        first--;
    return gap_at(set, first, reversed);
}

/* Returns the order of the sets [from, to), which have the same kinds, in one direction. */
static order order_of(const GPtrArray *sets, guint from, guint to, bool reversed)
{
    order o = {.from = from, .to = to, .reversed = reversed};
    for (guint i = from; i < to; i++)
        o.need_ns = MAX(o.need_ns, -smallest_gap(g_ptr_array_index(sets, i), reversed));
    return o;
}

/* Returns whether the parents waited for nearly all children whose replies have the order. */
static bool are_awaited(const GPtrArray *sets, const order *o)
{
    double count = 0, outliving = 0;
    for (guint i = o->from; i < o->to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        count += set->gaps->len;
        outliving += set->outliving;
    }
    return outliving <= exceptions_max * count;
}

/*
 * Returns the correct order of two opposite orders, or NULL if neither is certain. The order of a call is known, but a
 * child may outlive its parent, and a clock may be wrong by more than max_ns. The first event of a program in a request
 * has a cause in another program. If only one of the two events is the first event of its program, it is probably the
 * effect. If requests visit only two programs, the first event of one program is the cause of the first event of the
 * other. In other cases, an order is certain only if equal clocks permit it, because the events may be concurrent.
 */
static const order *choose_order(const GPtrArray *sets, const order *forward, const order *back, int64_t max_ns)
{
    const gap_set *first = g_ptr_array_index(sets, forward->from);
    if (first->is_call || first->is_reply)
        return forward->need_ns <= max_ns && are_awaited(sets, forward) ? forward : NULL;
    double count = 0, entrances_a = 0, entrances_b = 0, firsts_a = 0, firsts_b = 0, alone = 0;
    for (guint i = forward->from; i < forward->to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        count += set->gaps->len;
        entrances_a += set->entrances_a;
        entrances_b += set->entrances_b;
        firsts_a += set->firsts_a;
        firsts_b += set->firsts_b;
        alone += set->alone;
    }
    if (MIN(MIN(firsts_a, firsts_b), alone) >= ENTRANCE_MIN * count &&
        (forward->need_ns <= max_ns) != (back->need_ns <= max_ns))
        return forward->need_ns <= max_ns ? forward : back;
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
    uint32_t count = 0;
    for (guint i = 0; i < set->gaps->len; i++) {
        int64_t gap_ns = g_array_index(set->gaps, int64_t, i);
        count += reversed ? gap_ns > 0 : gap_ns < 0;
    }
    return count;
}

/*
 * Returns whether a clock is probably wrong. This is the case if the events of most pairs of hosts have the order of
 * the sets [from, to), within an error of max_ns, and the events of other pairs have the opposite order by more than
 * max_ns. A call that begins before its parent suffices, because the order of calls is certain.
 */
static bool shows_wrong_clock(const GPtrArray *sets, guint from, guint to, bool reversed, int64_t max_ns)
{
    uint32_t count = 0, permitted = 0, opposite = 0;
    bool is_call = false;
    for (guint i = from; i < to; i++) {
        const gap_set *set = g_ptr_array_index(sets, i);
        const bool is_opposite = count_opposite(set, reversed) >= WRONG_PART * set->gaps->len;
        is_call = is_call || set->is_call;
        count += set->gaps->len;
        if (-smallest_gap(set, reversed) <= max_ns)
            permitted += is_opposite ? 0 : set->gaps->len;
        else if (set->gaps->len >= WRONG_GAPS_MIN && is_opposite)
            opposite += set->gaps->len;
    }
    return opposite > 0 && (is_call || 2 * permitted > count);
}

static uint32_t count_gaps(const GPtrArray *sets, const order *o)
{
    uint32_t count = 0;
    for (guint i = o->from; i < o->to; i++)
        count += ((const gap_set *)g_ptr_array_index(sets, i))->gaps->len;
    return count;
}

/* The two opposite orders of a pair of kinds. */
typedef struct order_pair {
    order forward, back;
    const order *chosen; /* one of the two orders, or NULL if neither is certain */
} order_pair;

/* The starts of a pair of spans. `x` begins before `y`. */
typedef struct span_starts {
    uint64_t x, y; /* the kinds of the spans; the key */
    const order *begins;
} span_starts;

static guint span_starts_hash(gconstpointer key)
{
    const span_starts *s = key;
    return (guint)(((s->x * UINT64_C(0x9e3779b97f4a7c15)) ^ (s->y * UINT64_C(0xc2b2ae3d27d4eb4f))) >> 32);
}

static gboolean span_starts_equal(gconstpointer a, gconstpointer b)
{
    const span_starts *v = a, *w = b;
    return v->x == w->x && v->y == w->y;
}

/* Returns the starts of all pairs of spans of which one certainly begins before the other. */
static GHashTable *find_starts(const GPtrArray *sets, const GArray *pairs)
{
    GHashTable *starts = g_hash_table_new_full(span_starts_hash, span_starts_equal, g_free, NULL);
    for (guint i = 0; i < pairs->len; i++) {
        const order *begins = g_array_index(pairs, order_pair, i).chosen;
        if (begins == NULL)
            continue;
        const gap_set *set = g_ptr_array_index(sets, begins->from);
        if (set->side_a != EVENT_SIDE_BEGIN || set->side_b != EVENT_SIDE_BEGIN)
            continue;
        const span_starts found = {begins->reversed ? set->span_b : set->span_a,
                                   begins->reversed ? set->span_a : set->span_b, begins};
        g_hash_table_add(starts, g_memdup2(&found, sizeof found));
    }
    return starts;
}

/* Returns the set of an order whose spans are on the same hosts as those of `set`, or NULL. */
static const gap_set *find_same_hosts(const GPtrArray *sets, const order *o, const gap_set *set)
{
    for (guint i = o->from; i < o->to; i++) {
        const gap_set *other = g_ptr_array_index(sets, i);
        bool is_swapped = other->span_a != set->span_a;
        if (other->host_a == (is_swapped ? set->host_b : set->host_a) &&
            other->host_b == (is_swapped ? set->host_a : set->host_b))
            return other;
    }
    return NULL;
}

/*
 * Returns whether a span x, which began before a span y, always took longer than y. The order `ends` leads from the end
 * of y to the end of x. The difference of two durations does not depend on the clocks. It is at least the smallest gap
 * between the starts plus the smallest gap between the ends.
 */
static bool always_encloses(const GPtrArray *sets, const order *begins, const order *ends)
{
    uint32_t count = 0;
    for (guint i = ends->from; i < ends->to; i++) {
        const gap_set *end = g_ptr_array_index(sets, i), *begin = find_same_hosts(sets, begins, end);
        if (begin == NULL)
            continue;
        if (smallest_gap(begin, begins->reversed) + smallest_gap(end, ends->reversed) <= 0)
            return false;
        count += MIN(begin->gaps->len, end->gaps->len);
    }
    return count >= REQUESTS_MIN;
}

/*
 * If the kinds of a pair are the ends of a call and of the work that the call began on another host, chooses the order
 * in which the work ends first, even if equal clocks do not permit this order.
 */
static void choose_reply(GHashTable *starts, const GPtrArray *sets, order_pair *pair, int64_t max_ns)
{
    const gap_set *set = g_ptr_array_index(sets, pair->forward.from);
    if (set->side_a != EVENT_SIDE_END || set->side_b != EVENT_SIDE_END)
        return;
    for (int i = 0; i < 2; i++) {
        const order *ends = i == 0 ? &pair->back : &pair->forward;
        const span_starts key = {i == 0 ? set->span_a : set->span_b, i == 0 ? set->span_b : set->span_a, NULL};
        const span_starts *found = g_hash_table_lookup(starts, &key);
        if (found != NULL && ends->need_ns <= max_ns && always_encloses(sets, found->begins, ends)) {
            pair->chosen = ends;
            return;
        }
    }
}

/* Returns both orders of the sets [from, to), which have the same kinds; neither is chosen yet. Also finds out whether
 * the sets show a wrong clock. */
static order_pair order_pair_of(clock_shifts *s, const GPtrArray *sets, guint from, guint to, int64_t max_ns)
{
    const gap_set *first = g_ptr_array_index(sets, from);
    const bool examines[] = {!first->is_reply, !first->is_call && !first->is_reply};
    for (int reversed = 0; reversed < 2; reversed++)
        s->has_wrong_clock =
            s->has_wrong_clock || (examines[reversed] && shows_wrong_clock(sets, from, to, reversed == 1, max_ns));
    return (order_pair){order_of(sets, from, to, false), order_of(sets, from, to, true), NULL};
}

static int by_need(const void *a, const void *b)
{
    const order *x = a, *y = b;
    return (x->need_ns > y->need_ns) - (x->need_ns < y->need_ns);
}

/* Finds the orders of all pairs of kinds. The caller frees the array. */
static GArray *find_pairs(clock_shifts *s, const GPtrArray *sets, int64_t max_ns)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(order_pair));
    for (guint from = 0, to; from < sets->len; from = to) {
        const gap_set *first = g_ptr_array_index(sets, from);
        for (to = from + 1; to < sets->len; to++) {
            const gap_set *set = g_ptr_array_index(sets, to);
            if (set->a != first->a || set->b != first->b)
                break;
        }
        const order_pair pair = order_pair_of(s, sets, from, to, max_ns);
        g_array_append_val(pairs, pair);
    }
    for (guint i = 0; i < pairs->len; i++) {
        order_pair *pair = &g_array_index(pairs, order_pair, i);
        pair->chosen = choose_order(sets, &pair->forward, &pair->back, max_ns);
    }
    return pairs;
}

/* Returns the chosen orders of all pairs of kinds that have enough requests, sorted by need_ns, the smallest first. The
 * caller frees the array. */
static GArray *find_orders(clock_shifts *s, const GPtrArray *sets, int64_t max_ns)
{
    GArray *orders = g_array_new(FALSE, FALSE, sizeof(order)), *pairs = find_pairs(s, sets, max_ns);
    GHashTable *starts = find_starts(sets, pairs);
    for (guint i = 0; i < pairs->len; i++) {
        order_pair *pair = &g_array_index(pairs, order_pair, i);
        choose_reply(starts, sets, pair, max_ns);
        if (pair->chosen != NULL && count_gaps(sets, pair->chosen) >= REQUESTS_MIN)
            g_array_append_vals(orders, pair->chosen, 1);
    }
    g_array_sort(orders, by_need);
    g_hash_table_destroy(starts);
    g_array_free(pairs, TRUE);
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
    for (guint a = 0; a < s->gaps->hosts->len; a++)
        for (guint b = 0; b < s->gaps->hosts->len; b++) {
            int64_t bound_ns = clock_bounds_between(clocks, g_array_index(s->gaps->hosts, uint32_t, a),
                                                    g_array_index(s->gaps->hosts, uint32_t, b));
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
 * Finds, for each clock, the time by which it is ahead, so that all limits hold. These times are the lengths of the
 * shortest paths from a host that has the limit 0 to all hosts (Bellman and Ford). Gaps in the direction of an order
 * remain at least margin_ns. Returns false if no times respect the limits.
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

/*
 * Finds the rest of the differences that the limits permit: the shortest paths between all pairs of hosts (Floyd and
 * Warshall).
 */
static void find_rest(clock_shifts *s, const limit_table limits, const int64_t ahead[HOSTS_MAX])
{
    const guint hosts = s->gaps->hosts->len;
    for (guint a = 0; a < hosts; a++)
        for (guint b = 0; b < hosts; b++)
            s->rest[a][b] = a == b ? 0 : limits[a][b].max_ns;
    for (guint k = 0; k < hosts; k++)
        for (guint a = 0; a < hosts; a++)
            for (guint b = 0; b < hosts; b++)
                s->rest[a][b] = MIN(s->rest[a][b], s->rest[a][k] + s->rest[k][b]);
    for (guint a = 0; a < hosts && s->has_shifts && !s->has_wrong_clock; a++) /* see clock_shifts_apply */
        for (guint b = 0; b < hosts; b++)
            s->rest[a][b] -= ahead[b] - ahead[a];
}

void clock_shifts_settle(clock_shifts *s, const clock_bounds *clocks)
{
    limit_table *limits = g_new0(limit_table, 1), *more = g_new0(limit_table, 1);
    GPtrArray *sets = clock_gaps_sort(s->gaps);
    int64_t ahead[HOSTS_MAX], max_ns = MIN(CLOCK_SHIFT_MAX_NS, clock_gaps_median_duration(s->gaps) / DURATION_PART);
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
        if (!solve_limits(*more, s->gaps->hosts->len, 0, ahead))
            continue;
        memcpy(*limits, *more, sizeof *more);
        s->has_shifts = true;
    }
    find_margin(*limits, s->gaps->hosts->len, max_ns / MARGIN_PART, ahead);
    for (guint i = 0; i < s->gaps->hosts->len; i++) {
        uint32_t host = g_array_index(s->gaps->hosts, uint32_t, i);
        if (host >= s->shifts->len) {
            g_array_set_size(s->shifts, host + 1);
            g_array_set_size(s->indices, host + 1);
        }
        g_array_index(s->shifts, int64_t, host) = -ahead[i];
        g_array_index(s->indices, uint16_t, host) = (uint16_t)(i + 1);
    }
    find_rest(s, *limits, ahead);
    clock_doubts_settle(s->doubts, s->gaps, sets, clocks);
    g_ptr_array_free(sets, TRUE);
    g_array_free(orders, TRUE);
    g_free(limits);
    g_free(more);
    clock_gaps_clear(s->gaps);
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

size_t clock_shifts_count(const clock_shifts *s, int64_t *max_ns)
{
    size_t count = 0;
    *max_ns = 0;
    for (guint i = 0; i < s->shifts->len && s->has_shifts && !s->has_wrong_clock; i++) {
        const int64_t shift_ns = ABS(g_array_index(s->shifts, int64_t, i));
        count += shift_ns != 0;
        *max_ns = MAX(*max_ns, shift_ns);
    }
    return count;
}

int64_t clock_shifts_rest(const clock_shifts *s, uint32_t host, uint32_t other)
{
    if (host >= s->indices->len || other >= s->indices->len)
        return 0;
    const uint16_t a = g_array_index(s->indices, uint16_t, other), b = g_array_index(s->indices, uint16_t, host);
    return a == 0 || b == 0 ? 0 : s->rest[a - 1][b - 1];
}

const clock_doubts *clock_shifts_doubts(const clock_shifts *s)
{
    return s->doubts;
}
