#include "config.h"

#include "diag/host_orders.h"

#include <math.h>

enum {
    EVENTS_MAX = 64,     /* maximum number of events of a request from which the module learns */
    PAIRS_MAX = 8000000, /* maximum number of pairs of events at which the module looks */
    REQUESTS_MIN = 20    /* minimum number of requests of a host, and of the other hosts */
};

/* An order is a rule if at most this part of the requests has the opposite order. */
#define EXCEPTIONS_MAX 0.01

/* A host has the opposite order if at least this part of its requests has this order. */
#define REVERSED_MIN 0.9

/*
 * A wrong clock shifts all gaps between the host's events and events of other hosts by the same time. An order agrees
 * with a shift S if the shift of its gaps differs from S by at most SAME_SHIFT * S plus SAME_ERRORS standard errors. At
 * least CONSISTENT_MIN of the orders must agree. Orders for which these standard errors exceed ERRORS_MAX * S do not
 * count, because they would agree with any shift.
 */
#define SAME_SHIFT 0.2
#define SAME_ERRORS 4
#define CONSISTENT_MIN 0.9
#define ERRORS_MAX 0.3

/*
 * The shift by a wrong clock changes only slowly, but the delay of a host that works later than the others is not
 * constant. Therefore, successive gaps may vary by at most VARIATION_MAX times the standard deviation on the other
 * hosts, plus NOISE_MAX * S.
 */
#define VARIATION_MAX 2
#define NOISE_MAX 0.1

/* The gaps from event `a` to event `b`, which is on another host. `host` is the host of `b` if `of_second` is true,
 * otherwise the host of `a`. */
typedef struct order {
    uint64_t a, b; /* kinds of events; a < b */
    bool of_second;
    uint32_t lifeline;
    const char *host, *program; /* interned; `program` is the program of the other event */
    uint32_t count, reversed;   /* count: number of requests; reversed: number of requests in which `b` comes first */
    double sum, square;         /* sum of the gaps in nanoseconds; sum of the squares of the gaps */
    double steps, last_ns;      /* sum of the squared differences between successive gaps; the last gap */
} order;

struct host_orders {
    GHashTable *orders; /* a set of order */
    uint32_t pairs;
};

static guint order_hash(gconstpointer data)
{
    const order *o = data;
    uint64_t mixed = (o->a * UINT64_C(0x9e3779b97f4a7c15)) ^ (o->b * UINT64_C(0xc2b2ae3d27d4eb4f));
    return (guint)(mixed >> 32) ^ g_direct_hash(o->host) ^ (guint)o->of_second ^ o->lifeline << 1;
}

static gboolean order_equal(gconstpointer a, gconstpointer b)
{
    const order *x = a, *y = b;
    return x->a == y->a && x->b == y->b && x->of_second == y->of_second && x->lifeline == y->lifeline &&
           x->host == y->host;
}

host_orders *host_orders_new(void)
{
    host_orders *o = g_new0(host_orders, 1);
    o->orders = g_hash_table_new_full(order_hash, order_equal, g_free, NULL);
    return o;
}

void host_orders_free(host_orders *o)
{
    g_hash_table_destroy(o->orders);
    g_free(o);
}

static void add_gap(host_orders *o, const order *key, double gap_ns)
{
    order *of = g_hash_table_lookup(o->orders, key);
    if (of == NULL) {
        of = g_memdup2(key, sizeof *key);
        g_hash_table_add(o->orders, of);
    }
    if (of->count > 0)
        of->steps += (gap_ns - of->last_ns) * (gap_ns - of->last_ns);
    of->last_ns = gap_ns;
    of->count++;
    of->reversed += gap_ns < 0;
    of->sum += gap_ns;
    of->square += gap_ns * gap_ns;
}

/* Returns whether a request has no other event of the same kind. */
static bool is_single(const request_graph *g, uint32_t i)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < g->event_count; k++)
        count += request_event_kind(&g->events[k]) == request_event_kind(&g->events[i]);
    return count == 1;
}

void host_orders_learn(host_orders *o, uint32_t lifeline, const request_graph *g, const request_reader *names)
{
    const char *hosts[EVENTS_MAX], *programs[EVENTS_MAX];
    bool single[EVENTS_MAX];
    if (o->pairs >= PAIRS_MAX || g->event_count > EVENTS_MAX)
        return;
    o->pairs += (uint32_t)(g->event_count * g->event_count);
    for (uint32_t i = 0; i < g->event_count; i++) {
        hosts[i] = g_intern_string(request_reader_host(names, g->events[i].host));
        programs[i] = g_intern_string(request_reader_program(names, g->events[i].program));
        single[i] = is_single(g, i);
    }
    for (uint32_t i = 0; i < g->event_count; i++)
        for (uint32_t k = 0; k < g->event_count; k++) {
            const request_event *x = &g->events[i], *y = &g->events[k];
            uint64_t a = request_event_kind(x), b = request_event_kind(y);
            if (a >= b || !single[i] || !single[k] || hosts[i] == hosts[k] || *hosts[i] == '\0' || *hosts[k] == '\0')
                continue;
            double gap_ns = (double)(y->time_ns - x->time_ns);
            order key = {.a = a, .b = b, .lifeline = lifeline, .host = hosts[i], .program = programs[k]};
            add_gap(o, &key, gap_ns);
            key.of_second = true;
            key.host = hosts[k];
            key.program = programs[i];
            add_gap(o, &key, gap_ns);
        }
}

/* The sum of the orders of all hosts for the same events and the same side. */
typedef struct order_total {
    order sum;
    uint32_t hosts;
} order_total;

static double mean_of(const order *o)
{
    return o->sum / o->count;
}

static double deviation_of(const order *o)
{
    return sqrt(fmax(0, o->square / o->count - mean_of(o) * mean_of(o)));
}

/*
 * Returns the standard deviation of the gaps about a value that changes slowly (von Neumann, Ann. Math. Stat. 12,
 * 1941).
 */
static double variation_of(const order *o)
{
    return sqrt(o->steps / (2 * fmax(1, o->count - 1)));
}

/*
 * Returns whether nearly all requests of a host have an order that the requests of the other hosts do not have. If
 * there is only one other host, the orders do not show which of the two clocks is wrong. In this case, the gap between
 * the events must also be larger on this host, because a wrong clock adds its error to the gap.
 */
static bool is_reversed(const order *of, const order *others, uint32_t other_hosts)
{
    if (of->count < REQUESTS_MIN || others->count < REQUESTS_MIN)
        return false;
    double here = (double)of->reversed / of->count, there = (double)others->reversed / others->count;
    bool differs =
        (there <= EXCEPTIONS_MAX && here >= REVERSED_MIN) || (there >= 1 - EXCEPTIONS_MAX && here <= 1 - REVERSED_MIN);
    return differs && (other_hosts > 1 || fabs(mean_of(of)) > fabs(mean_of(others)));
}

/*
 * Returns the time by which a host's clock is ahead. Assumes that the true mean gap of the host's requests equals the
 * mean gap of the other hosts.
 */
static double ahead_of(const order *of, const order *others)
{
    double shift = mean_of(of) - mean_of(others);
    return of->of_second ? shift : -shift;
}

/* Returns the standard error of the time that ahead_of returns. */
static double error_of(const order *of, const order *others)
{
    return sqrt(pow(deviation_of(of), 2) / of->count + pow(deviation_of(others), 2) / others->count);
}

/* Adds the evidence of an order to the hosts that were found. Prefers the evidence with the most constant gaps. */
static void add_evidence(GArray *found, const order *of, const order *others)
{
    const host_order e = {.host = of->host,
                          .ahead_ns = ahead_of(of, others),
                          .error_ns = error_of(of, others),
                          .reversed = mean_of(others) >= 0 ? of->reversed : of->count - of->reversed,
                          .requests = of->count,
                          .program = of->program};
    for (guint i = 0; i < found->len; i++) {
        host_order *known = &g_array_index(found, host_order, i);
        if (known->host != e.host)
            continue;
        if (e.error_ns < known->error_ns)
            *known = e;
        return;
    }
    g_array_append_val(found, e);
}

/* Returns the orders of the other hosts for the same events as `of`. */
static order others_of(GHashTable *totals, const order *of, uint32_t *other_hosts)
{
    const order any = {.a = of->a, .b = of->b, .of_second = of->of_second, .lifeline = of->lifeline};
    const order_total *t = g_hash_table_lookup(totals, &any);
    *other_hosts = t->hosts - 1;
    return (order){.count = t->sum.count - of->count,
                   .reversed = t->sum.reversed - of->reversed,
                   .sum = t->sum.sum - of->sum,
                   .square = t->sum.square - of->square};
}

/* Returns the kind of an order's event on the order's host. The other event is on another host. */
static uint64_t own_kind(const order *of)
{
    return of->of_second ? of->b : of->a;
}

/*
 * Returns whether the gaps before and after a host's events all differ from the gaps on the other hosts by the same
 * time, as with a wrong clock. If the host only works longer, or if its callers do not wait, only some gaps differ. The
 * evidence must include at least two different events of this host. Some events of other hosts must come before events
 * of this host, and some must come after them.
 */
static bool is_consistent(const host_orders *o, GHashTable *totals, const host_order *e)
{
    uint32_t all = 0, same = 0, other_hosts;
    /* has_after: an event of this host comes after an event of another host; has_two: the orders contain two events of
     * this host. */
    bool has_after = false, has_before = false, has_two = false;
    uint64_t kind = 0;
    const double shift_ns = fabs(e->ahead_ns);
    GHashTableIter i;
    gpointer key;
    g_hash_table_iter_init(&i, o->orders);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        const order *of = key, others = others_of(totals, of, &other_hosts);
        if (of->host != e->host || of->count < REQUESTS_MIN || others.count < REQUESTS_MIN)
            continue;
        double errors_ns = SAME_ERRORS * (error_of(of, &others) + e->error_ns),
               part = (double)others.reversed / others.count;
        if (errors_ns > ERRORS_MAX * shift_ns)
            continue;
        all++;
        same += fabs(ahead_of(of, &others) - e->ahead_ns) <= SAME_SHIFT * shift_ns + errors_ns &&
                variation_of(of) <= VARIATION_MAX * deviation_of(&others) + NOISE_MAX * shift_ns;
        if (part > EXCEPTIONS_MAX && part < 1 - EXCEPTIONS_MAX)
            continue;
        bool is_after = (part <= EXCEPTIONS_MAX) == of->of_second;
        has_after = has_after || is_after;
        has_before = has_before || !is_after;
        has_two = has_two || (kind != 0 && kind != own_kind(of));
        kind = own_kind(of);
    }
    return has_after && has_before && has_two && same >= CONSISTENT_MIN * all;
}

/*
 * Finds pairs of hosts whose clocks seem wrong by opposite times, and makes each host the rival of the other. If two
 * hosts exchange messages only with each other, both clocks seem wrong, although one of them is right.
 */
static void find_rivals(const GArray *found)
{
    for (guint i = 0; i < found->len; i++)
        for (guint k = 0; k < i; k++) {
            host_order *x = &g_array_index(found, host_order, i), *y = &g_array_index(found, host_order, k);
            if (fabs(x->ahead_ns + y->ahead_ns) >
                SAME_SHIFT * fabs(x->ahead_ns) + SAME_ERRORS * (x->error_ns + y->error_ns))
                continue;
            x->rival = y->host;
            y->rival = x->host;
        }
}

GArray *host_orders_find(const host_orders *o)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(host_order));
    GHashTable *totals = g_hash_table_new_full(order_hash, order_equal, g_free, NULL); /* a set of order_total */
    GHashTableIter i;
    gpointer key;
    g_hash_table_iter_init(&i, o->orders);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        const order *of = key, any = {.a = of->a, .b = of->b, .of_second = of->of_second, .lifeline = of->lifeline};
        order_total *t = g_hash_table_lookup(totals, &any);
        if (t == NULL) {
            t = g_new0(order_total, 1);
            t->sum = any;
            g_hash_table_add(totals, t);
        }
        t->hosts++;
        t->sum.count += of->count;
        t->sum.reversed += of->reversed;
        t->sum.sum += of->sum;
        t->sum.square += of->square;
    }
    g_hash_table_iter_init(&i, o->orders);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        uint32_t other_hosts;
        const order *of = key, others = others_of(totals, of, &other_hosts);
        if (is_reversed(of, &others, other_hosts))
            add_evidence(found, of, &others);
    }
    for (guint n = found->len; n-- > 0;)
        if (!is_consistent(o, totals, &g_array_index(found, host_order, n)))
            g_array_remove_index(found, n);
    find_rivals(found);
    g_hash_table_destroy(totals);
    return found;
}
