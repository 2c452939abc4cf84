#include "config.h"

#include <math.h>

#include "diag/keyed_sort.h"
#include "diag/mechanisms.h"
#include "diag/processes.h"
#include "requests/key_map.h"

#include <stdlib.h>
#include <string.h>

/* A gap is the time between the ends of two consecutive visits. It is short if it is at most this fraction of the
 * median gap. */
#define SHORT_GAP 0.25

/* A pool counts as a lock if the ends of its visits are far apart, and the probability of these distances by chance is
 * at most SERIAL_CHANCE. */
#define SERIAL_CHANCE 0.01

/* With a lock, the share of short gaps is less than this part of the share that expected_shorter returns. */
#define SERIAL_PART 0.5

/*
 * A visit begins too early if it begins more than EARLY_PART of its duration before a server is free. At most EARLY_MAX
 * of the visits may begin too early.
 */
#define EARLY_PART 0.05
#define EARLY_MAX 0.05

/* Maximum probability that a queue predicts the visits better than another queue by chance. */
#define OTHER_CHANCE 1e-9

/* Maximum ratio of the claims of two queues that explain the same waits. */
#define SAME_WAITS 1.5

/* If the logarithm of a queue's likelihood ratio is at least MUCH_LIKELIER times that of the other queue, the maximum
 * ratio of the claims is SIMILAR_WAITS. */
#define MUCH_LIKELIER 1.5
#define SIMILAR_WAITS 3

/* Maximum absolute value of the logarithm of a visit's likelihood ratio, which limits the effect of a single visit. */
#define GAIN_MAX 5

/* Times with a resolution of at most this many nanoseconds need no random fractions (spread_times). */
#define UNIT_FINE_NS 1000

/* Hosts count as chosen at the end of the visits if part_in_turn of the ends exceeds part_in_turn of the starts by this
 * number. */
#define CHOSEN_LATE_MIN 0.2

/* The result names a host if at least this part of the claim belongs to the host. */
#define HOST_PART_MIN 0.75

/* The part of the significance level that belongs to the usual tests; the unusual tests share the rest. */
#define USUAL_WEIGHT 0.9

enum {
    USUAL_OF_EDGES = 2, /* USUAL_OF_EDGES, USUAL_OF_SPANS: numbers of queue_scopes that belong to the usual tests */
    USUAL_OF_SPANS = 1,
    SCOPES_OF_SPANS = 4, /* number of tests of a span, without the tests of its calls */
    LOG_BINS = 512,
    VISITS_MIN = 60,
    POSITIONS = 64,
    SERVERS_MAX = 32,
    OUTSIDE_SERVERS_MAX = 8,
    CHOICES = 56,
    FAST_ONE_OF = 10, /* used by time_alone; one in this number of visits counts as fast */
    CHOOSING_MAX = 8192,
    SHUFFLES = 20,
    BUSY_MIN = 20,
    ALONE_MIN = 8,
    HOSTS_TOGETHER = 2 /* number of tests of all hosts together: with separate servers, and with shared servers */
};

/* The time for which a visit holds a server or waits for a server: from its arrival to its end. The visit has the
 * server at begin_ns at the latest, because its other work begins then. */
typedef struct holding {
    int64_t from_ns, to_ns, begin_ns;
    uint32_t visit, host; /* number of the host */
} holding;

/* Returns a new array with the indices of holdings as keyed items, in the order of arrivals. */
static keyed *order_by_arrival(const holding *held, size_t count)
{
    keyed *order = g_new(keyed, count + 1);
    for (size_t i = 0; i < count; i++)
        order[i] = (keyed){held[i].from_ns, (uint32_t)i};
    keyed_sort(order, count);
    return order;
}

/* Sorts holdings by host, then by end, then by arrival. */
static void sort_by_end(holding *held, size_t count)
{
    keyed *order = order_by_arrival(held, count);
    holding *sorted = g_new(holding, count + 1);
    for (size_t i = 0; i < count; i++)
        order[i].key = held[order[i].index].to_ns;
    keyed_sort(order, count);
    for (size_t i = 0; i < count; i++)
        order[i].key = held[order[i].index].host;
    keyed_sort(order, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = held[order[i].index];
    memcpy(held, sorted, count * sizeof *held);
    g_free(sorted);
    g_free(order);
}

/* The smoothed density of the logarithms of times. */
typedef struct density {
    double low, width;
    double share[LOG_BINS];
} density;

/* Returns the bin of a time with this logarithm. */
static uint16_t density_bin(const density *d, double logarithm)
{
    return (uint16_t)CLAMP((logarithm - d->low) / d->width, 0, LOG_BINS - 1);
}

/* Replaces each element with the mean of the elements at a distance of at most `reach`. */
static void smooth(double *values, int reach)
{
    double sums[LOG_BINS + 1] = {0};
    for (int b = 0; b < LOG_BINS; b++)
        sums[b + 1] = sums[b] + values[b];
    for (int b = 0; b < LOG_BINS; b++)
        values[b] = (sums[MIN(b + reach + 1, LOG_BINS)] - sums[MAX(b - reach, 0)]) / (2 * reach + 1);
}

/* Estimates the density from a half of the times with a triangular kernel. `bins` contains the bins of all times.
 * Chooses the width of the kernel by cross-validation within this half; few times need a wide kernel. */
static void density_fit(density *d, const uint16_t *bins, size_t count, int half)
{
    enum { REACH_MAX = 16 };
    double counts[LOG_BINS] = {0}, n = 0, best = -INFINITY;
    for (size_t i = (size_t)half; i < count; i += 2) {
        counts[bins[i]]++;
        n++;
    }
    for (int reach = 1; reach <= REACH_MAX; reach *= 2) {
        double tried[LOG_BINS], own = 1.0 / (2 * reach + 1), sum = 0;
        memcpy(tried, counts, sizeof tried);
        smooth(tried, reach);
        smooth(tried, reach);
        for (int b = 0; b < LOG_BINS; b++)
            sum += counts[b] > 0 ? counts[b] * log(MAX(tried[b] - own, 0) + 0.01) : 0;
        if (sum <= best)
            continue;
        best = sum;
        memcpy(d->share, tried, sizeof tried);
    }
    for (int b = 0; b < LOG_BINS; b++)
        d->share[b] = (d->share[b] + 0.01) / (n + 0.01 * LOG_BINS) / d->width;
}

/* Computes the log likelihood of each time from the distribution of the half that does not contain the time. `logs`
 * contains the logarithms of the times. */
static void likelihoods(const double *logs, size_t count, double low, double high, double *out)
{
    density d = {.low = low, .width = MAX((high - low) / (LOG_BINS - 8), 0.02)};
    uint16_t *bins = g_new(uint16_t, count + 1);
    for (size_t i = 0; i < count; i++)
        bins[i] = density_bin(&d, logs[i]);
    for (int half = 0; half < 2; half++) {
        double of_bin[LOG_BINS];
        density_fit(&d, bins, count, half);
        for (int b = 0; b < LOG_BINS; b++)
            of_bin[b] = log(d.share[b]);
        for (size_t i = (size_t)!half; i < count; i += 2)
            out[i] = of_bin[bins[i]] - logs[i];
    }
    g_free(bins);
}

/* Returns the instance of the program that logged the ends of a site's visits, also if a field names a server
 * (servers.h). */
static uint32_t logged_at(const visits *v, const site *at)
{
    return place_at(v, at->place)->kind == PLACE_SPAN ? at->from_instance : at->instance;
}

/* Returns the instance of the program that logged the end of a visit. */
static uint32_t logged_by(const visits *v, const visit *x)
{
    return logged_at(v, site_at(v, x->site));
}

/* Returns the index of the visit of a span that begins when a visit of an edge ends, or VISIT_NONE. */
static uint32_t span_after(const visits *v, const visit *x)
{
    const request *q = request_at(v, x->request);
    const place *edge = place_at(v, place_of_visit(v, x));
    for (uint32_t i = 0; edge->kind == PLACE_EDGE && i < q->count; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->from_ns == x->to_ns && place_at(v, place_of_visit(v, y))->kind == PLACE_SPAN &&
            logged_by(v, y) == logged_by(v, x))
            return q->first + i;
    }
    return VISIT_NONE;
}

uint32_t next_span(const visits *v, uint32_t edge)
{
    enum { LOOKED_AT = 50 };
    const place *p = place_at(v, edge);
    for (uint32_t i = 0; i < MIN(p->count, LOOKED_AT); i++) {
        uint32_t next =
            span_after(v, visit_at(v, v->by_place[p->first + (uint64_t)i * p->count / LOOKED_AT % p->count]));
        if (next != VISIT_NONE)
            return place_of_visit(v, visit_at(v, next));
    }
    return VISIT_NONE;
}

/* The functions below look at all visits of a request for each visit, which takes too long in larger requests. */
enum { LOOKED_THROUGH_MAX = 512 };

/* Returns the end of the last visit of a request to the process at which an edge ends. If the request repeats the edge
 * to the same instance, only visits before the next repetition count. `logged` contains logged_at for each site. */
static int64_t end_at_program(const visits *v, const visit *x, const uint32_t *logged)
{
    const request *q = request_at(v, x->request);
    const site *at = site_at(v, x->site);
    const uint32_t process = logged[x->site];
    int64_t end_ns = x->to_ns, next_ns = INT64_MAX;
    if (q->count > LOOKED_THROUGH_MAX)
        return end_ns;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->from_ns >= x->to_ns && y->from_ns < next_ns && site_at(v, y->site)->place == at->place &&
            site_at(v, y->site)->instance == at->instance)
            next_ns = y->from_ns;
    }
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->from_ns >= x->to_ns && y->from_ns < next_ns && logged[y->site] == process)
            end_ns = MAX(end_ns, y->to_ns);
    }
    return end_ns;
}

/* Returns the end of the first span after a visit that has the same caller. Without such a span, returns the visit's
 * end. */
static int64_t end_of_next(const visits *v, const visit *x)
{
    const request *q = request_at(v, x->request);
    const visit *next = NULL;
    for (uint32_t i = 0; i < q->count && q->count <= LOOKED_THROUGH_MAX; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->from_ns >= x->to_ns && y->to_ns > y->from_ns && y->parent == x->parent &&
            place_at(v, place_of_visit(v, y))->kind == PLACE_SPAN &&
            (next == NULL || y->from_ns < next->from_ns || (y->from_ns == next->from_ns && y->to_ns > next->to_ns)))
            next = y;
    }
    return next != NULL ? next->to_ns : x->to_ns;
}

/* Returns the start of the first span that a visit contains. Without such a span, returns the visit's end. */
static int64_t start_of_first_call(const visits *v, const visit *x)
{
    const request *q = request_at(v, x->request);
    int64_t start_ns = x->to_ns;
    for (uint32_t i = 0; i < q->count && q->count <= LOOKED_THROUGH_MAX; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->parent != VISIT_NONE && visit_at(v, y->parent) == x && y->from_ns > x->from_ns &&
            place_at(v, place_of_visit(v, y))->kind == PLACE_SPAN)
            start_ns = MIN(start_ns, y->from_ns);
    }
    return start_ns;
}

/*
 * Finds the first call of a span to a place. Returns the visit of the call, or NULL. Sets *ready_ns to the time from
 * which the span can wait for the call: the end of its earlier calls, or its own start.
 */
static const visit *find_call(const visits *v, const visit *x, uint32_t place, int64_t *ready_ns)
{
    const request *q = request_at(v, x->request);
    const visit *call = NULL;
    for (uint32_t i = 0; i < q->count && q->count <= LOOKED_THROUGH_MAX; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y->parent != VISIT_NONE && visit_at(v, y->parent) == x && place_of_visit(v, y) == place &&
            (call == NULL || y->from_ns < call->from_ns))
            call = y;
    }
    *ready_ns = x->from_ns;
    for (uint32_t i = 0; i < q->count && call != NULL; i++) {
        const visit *y = visit_at(v, q->first + i);
        if (y != call && y->parent != VISIT_NONE && visit_at(v, y->parent) == x && y->from_ns < call->from_ns)
            *ready_ns = MAX(*ready_ns, MIN(y->to_ns, call->from_ns));
    }
    return call;
}

/* Returns the time at which the caller of an edge without a parent has its answer: the first later time at which the
 * request is at the caller. If the request does not return to the caller, or for a span, returns the end of the
 * visit. */
static int64_t end_of_answer(const visits *v, const visit *x)
{
    const request *q = request_at(v, x->request);
    const uint32_t caller = site_at(v, x->site)->from_instance;
    int64_t end_ns = INT64_MAX;
    bool is_edge = place_at(v, place_of_visit(v, x))->kind == PLACE_EDGE;
    for (uint32_t i = 0; i < q->count && q->count <= LOOKED_THROUGH_MAX && is_edge; i++) {
        const visit *y = visit_at(v, q->first + i);
        const site *at = site_at(v, y->site);
        if (y->from_ns >= x->to_ns && at->instance == caller && at->from_instance != caller)
            end_ns = MIN(end_ns, y->to_ns);
    }
    return end_ns == INT64_MAX ? x->to_ns : end_ns;
}

/* Returns the time at which the server of a visit is free again. `logged` contains logged_at for each site. */
static int64_t end_of_service(const visits *v, const visit *x, queue_scope scope, const uint32_t *logged)
{
    if (scope == QUEUE_PROGRAM)
        return end_at_program(v, x, logged);
    if (scope == QUEUE_FIRST)
        return start_of_first_call(v, x);
    if (scope == QUEUE_NEXT)
        return end_of_next(v, x);
    if (scope == QUEUE_CALLER)
        return x->parent != VISIT_NONE ? MAX(x->to_ns, visit_at(v, x->parent)->to_ns) : end_of_answer(v, x);
    uint32_t span = span_after(v, x);
    return span != VISIT_NONE ? visit_at(v, span)->to_ns : x->to_ns;
}

/* ---- hosts of edges ---- */

/* A visit of an edge: the time of its start or end, and the numbers of the hosts at its start and end. */
typedef struct transfer {
    int64_t time_ns;
    uint32_t from_host, host;
} transfer;

static int by_transfer(const void *a, const void *b)
{
    const transfer *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
    return x->from_host != y->from_host ? (x->from_host > y->from_host) - (x->from_host < y->from_host)
                                        : (x->host > y->host) - (x->host < y->host);
}

/* Of all pairs of consecutive visits from one host, returns the part whose second target is the most frequent successor
 * of the first target. The part is 1 if each host uses its targets in turn. Sorts the transfers. */
static double part_in_turn(transfer *all, size_t count, uint32_t from_hosts, uint32_t hosts)
{
    /* `last` contains, for each calling host, the number of its last target + 1. */
    uint32_t *last = g_new0(uint32_t, from_hosts), *counts = g_new0(uint32_t, (size_t)hosts * hosts);
    double usual = 0, pairs = 0;
    qsort(all, count, sizeof *all, by_transfer);
    for (size_t i = 0; i < count; i++) {
        if (last[all[i].from_host] > 0) {
            counts[(last[all[i].from_host] - 1) * hosts + all[i].host]++;
            pairs++;
        }
        last[all[i].from_host] = all[i].host + 1;
    }
    for (uint32_t h = 0; h < hosts; h++) {
        uint32_t largest = 0;
        for (uint32_t k = 0; k < hosts; k++)
            largest = MAX(largest, counts[h * hosts + k]);
        usual += largest;
    }
    g_free(last);
    g_free(counts);
    return pairs > 0 ? usual / pairs : 0;
}

static uint32_t number_of_host(GHashTable *numbers, const char *host)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, host));
    if (known == 0) {
        known = g_hash_table_size(numbers) + 1;
        g_hash_table_insert(numbers, (gpointer)host, GUINT_TO_POINTER(known));
    }
    return known - 1;
}

/* Fills `all` with the visits of an edge, with the times of their starts or of their ends. */
static void gather_transfers(const visits *v, const place *p, GHashTable *from_numbers, GHashTable *numbers, bool ends,
                             transfer *all)
{
    transfer *of_sites = g_new0(transfer, v->sites->len + 1); /* for each site: the numbers of its hosts + 1 */
    for (uint32_t i = 0; i < p->count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + i]);
        transfer *of = &of_sites[x->site];
        if (of->host == 0) {
            const site *at = site_at(v, x->site);
            of->from_host = number_of_host(from_numbers, at->from_host) + 1;
            of->host = number_of_host(numbers, at->host) + 1;
        }
        all[i] = (transfer){ends ? x->to_ns : x->from_ns, of->from_host - 1, of->host - 1};
    }
    g_free(of_sites);
}

/*
 * Returns whether programs choose the hosts at the ends of an edge's visits only when the visits end. The order of the
 * ends then shows that the programs use the hosts in turn, and the order of the starts does not. No visit has waited
 * for its host, although the ends at one host are at regular times. The function tests one order for each calling host,
 * and one order for all calling hosts.
 */
static bool hosts_are_chosen_at_end(const visits *v, const place *p)
{
    enum { TARGETS_MAX = 64 };
    if (p->kind != PLACE_EDGE || place_only_host(v, p) != NULL)
        return false;
    GHashTable *numbers = g_hash_table_new(NULL, NULL), *from_numbers = g_hash_table_new(NULL, NULL);
    transfer *all = g_new(transfer, p->count + 1);
    bool chosen = false;
    for (int together = 0; together < 2 && !chosen; together++) {
        double parts[2] = {0};
        for (int ends = 0; ends < 2; ends++) {
            gather_transfers(v, p, from_numbers, numbers, ends, all);
            for (uint32_t i = 0; i < p->count && together; i++)
                all[i].from_host = 0;
            uint32_t hosts = g_hash_table_size(numbers);
            if (hosts > 1 && hosts <= TARGETS_MAX)
                parts[ends] = part_in_turn(all, p->count, g_hash_table_size(from_numbers), hosts);
        }
        chosen = parts[1] > parts[0] + CHOSEN_LATE_MIN;
    }
    g_hash_table_destroy(numbers);
    g_hash_table_destroy(from_numbers);
    g_free(all);
    return chosen;
}

/*
 * If a place's times are coarse, adds random fractions of their resolution. Without these fractions, short times would
 * have few different values, and density_fit would overestimate their density. Gaps between ends would then seem more
 * likely than the longer durations.
 */
static void spread_times(const visits *v, const place *p, holding *held, size_t count)
{
    double unit_ns = place_find_resolution(v, p);
    if (unit_ns <= UNIT_FINE_NS)
        return;
    GRand *chance = g_rand_new_with_seed(1); /* the same log always has the same result */
    for (size_t i = 0; i < count; i++) {
        held[i].from_ns += (int64_t)(g_rand_double(chance) * unit_ns);
        held[i].to_ns += (int64_t)(g_rand_double(chance) * unit_ns);
        held[i].to_ns = MAX(held[i].to_ns, held[i].from_ns + 1);
    }
    g_rand_free(chance);
}

/*
 * Returns the number of the instance whose host or process may own the server that a visit occupies. All instances of a
 * host count as its first instance, unless each process has its own servers. `at_start` is the result of
 * hosts_are_chosen_at_end. If `at_start` is true, the visit cannot wait at the end of the edge, so the server is at the
 * start.
 */
static uint32_t holder_of_visit(const visits *v, const visit *x, const mechanism *m, bool at_start)
{
    const site *at = site_at(v, x->site);
    bool is_edge = place_at(v, at->place)->kind == PLACE_EDGE;
    uint32_t number = m->scope == QUEUE_CALLER && x->parent != VISIT_NONE
                          ? site_at(v, visit_at(v, x->parent)->site)->instance
                      : at_start || (m->scope == QUEUE_CALLER && is_edge) ? at->from_instance
                                                                          : at->instance;
    return m->by_process ? number : instance_at(v, number)->first;
}

/*
 * Gathers the visits of a place, grouped by host or process and sorted by end (see end_of_service). holder_of_visit
 * determines the hosts and processes. Adds the instances of the hosts or processes to `hosts`, by number (elements are
 * const instance *).
 */
static size_t gather_holdings(const visits *v, uint32_t number, const mechanism *m, holding *held, GPtrArray *hosts)
{
    const place *p = place_at(v, number);
    const bool at_start = hosts_are_chosen_at_end(v, p);
    uint32_t *numbers = g_new0(uint32_t, v->instances->len + 1); /* for each instance: its number in `hosts` + 1 */
    uint32_t *logged = g_new(uint32_t, v->sites->len + 1);
    size_t count = 0;
    for (guint i = 0; i < v->sites->len; i++)
        logged[i] = logged_at(v, site_at(v, i));
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        const visit *x = visit_at(v, index);
        uint32_t holder = holder_of_visit(v, x, m, at_start);
        if (numbers[holder] == 0) {
            g_ptr_array_add(hosts, (gpointer)instance_at(v, holder));
            numbers[holder] = hosts->len;
        }
        holding h = {x->from_ns, x->to_ns, x->to_ns, index, numbers[holder] - 1};
        if (m->scope == QUEUE_CALL) {
            const visit *call = find_call(v, x, m->call, &h.from_ns);
            h.to_ns = call != NULL ? call->to_ns : h.from_ns;
            h.begin_ns = call != NULL ? call->from_ns : h.from_ns;
        } else if (h.to_ns > h.from_ns) {
            h.to_ns = end_of_service(v, x, m->scope, logged);
        }
        if (h.to_ns > h.from_ns)
            held[count++] = h;
    }
    g_free(numbers);
    g_free(logged);
    spread_times(v, p, held, count);
    sort_by_end(held, count);
    return count;
}

/*
 * For each visit, computes the number of earlier arrivals that are still present when the visit ends. If servers serve
 * visits in the order of arrival, these numbers are small. A model with another order must also predict which visit
 * ends next, so its likelihood is lower. `arrivals` contains the numbers of the visits in the order of arrival. All
 * positions from POSITIONS - 1 on count as one position. Sets shared[i] to the number of present visits that share the
 * position of visit i.
 */
static void find_positions(const holding *held, const uint32_t *arrivals, size_t count, uint8_t *positions,
                           uint32_t *shared)
{
    size_t *order = g_new(size_t, count + 1);
    uint32_t *tree =
        g_new0(uint32_t, count + 2); /* Fenwick tree of the visits that are present, in the order of arrival */
    for (size_t i = 0; i < count; i++)
        order[arrivals[i]] = i;
    for (size_t i = 1; i <= count; i++) {
        tree[i]++;
        if (i + (i & -i) <= count)
            tree[i + (i & -i)] += tree[i];
    }
    for (size_t i = 0, arrived = 0; i < count; i++) {
        uint32_t before = 0;
        for (size_t at = order[i]; at > 0; at -= at & -at)
            before += tree[at];
        positions[i] = (uint8_t)MIN(before, POSITIONS - 1);
        while (arrived < count && held[arrivals[arrived]].from_ns < held[i].to_ns)
            arrived++;
        shared[i] =
            before >= POSITIONS - 1 && arrived > i + POSITIONS - 1 ? (uint32_t)(arrived - i) - (POSITIONS - 1) : 1;
        for (size_t at = order[i] + 1; at <= count; at += at & -at)
            tree[at]--;
    }
    g_free(order);
    g_free(tree);
}

/* How servers serve visits. */
typedef struct service {
    int servers;
    bool any_order;
    int64_t outside_ns; /* see mechanism */
} service;

/*
 * Computes when the service of each visit begins, if the servers serve visits in any order. With k servers, a server is
 * free when the visit that is k positions earlier in the order of the ends has ended. Sets before[i] to the number of
 * the visit that occupied the server before visit i, or to i if no visit occupied it. Returns whether any visit waits.
 */
static bool serve_any(const holding *held, size_t count, service by, int64_t *served, uint32_t *before)
{
    bool waits = false;
    for (size_t i = 0; i < count; i++) {
        bool has_before = i >= (size_t)by.servers;
        before[i] = has_before ? (uint32_t)i - (uint32_t)by.servers : (uint32_t)i;
        served[i] = has_before ? MAX(held[i].from_ns, held[before[i]].to_ns - by.outside_ns) : held[i].from_ns;
        waits = waits || served[i] > held[i].from_ns;
    }
    return waits;
}

/*
 * Like serve_any, but for servers that serve visits in the order of arrival. A service begins as soon as one of the k
 * servers is free.
 */
static bool serve_in_order(const holding *held, const uint32_t *arrivals, size_t count, service by, int64_t *served,
                           uint32_t *before)
{
    int64_t free_ns[SERVERS_MAX];
    uint32_t last[SERVERS_MAX] = {0};
    bool waits = false;
    for (int k = 0; k < SERVERS_MAX; k++)
        free_ns[k] = INT64_MIN;
    for (size_t n = 0; n < count; n++) {
        uint32_t i = arrivals[n];
        int first = 0;
        for (int k = 1; k < by.servers; k++)
            if (free_ns[k] < free_ns[first])
                first = k;
        before[i] = free_ns[first] > INT64_MIN ? last[first] : i;
        served[i] = MAX(held[i].from_ns, free_ns[first]);
        free_ns[first] = held[i].to_ns - by.outside_ns;
        last[first] = i;
        waits = waits || served[i] > held[i].from_ns;
    }
    return waits;
}

/* The data about the visits of a place. The visits are grouped by host, and each host has its own servers. */
typedef struct queue_work {
    const holding *held;
    size_t count;
    uint32_t *arrivals; /* for each host, the numbers of its visits from 0, sorted by arrival */
    uint8_t *positions;
    uint32_t *shared; /* for each visit, the number of present visits with the same position */
    int64_t *served;
    uint32_t *before; /* for each visit, the number of the visit that occupied its server before, or its own number */
    /* values: the time of each visit from its arrival or from the start of its service; logs: the logarithms of values;
     * alone, with: log likelihoods without and with the servers */
    double *values, *logs, *alone, *with;
    double *alone_logs; /* for each visit, the logarithm of the time from its arrival */
    uint32_t *requests; /* the index of each visit's request, from 0 */
    double *gains;      /* for each request, the sum of its visits' log likelihood ratios */
    double low, high;   /* bounds of the logarithms of the times */
} queue_work;

/* Returns the end of the visits that have the same host as the visit with index `from`. */
static size_t end_of_host(const holding *held, size_t from, size_t count)
{
    size_t to = from;
    while (to < count && held[to].host == held[from].host)
        to++;
    return to;
}

/* Computes when the service of each visit begins if the servers `by` exist on each host. Returns whether any visit
 * waits. */
static bool serve(queue_work *w, service by)
{
    bool waits = false;
    for (size_t from = 0, to; from < w->count; from = to) {
        to = end_of_host(w->held, from, w->count);
        bool waits_here = by.any_order ? serve_any(w->held + from, to - from, by, w->served + from, w->before + from)
                                       : serve_in_order(w->held + from, w->arrivals + from, to - from, by,
                                                        w->served + from, w->before + from);
        waits = waits || waits_here;
        for (size_t i = from; i < to; i++)
            w->before[i] += (uint32_t)from;
    }
    return waits;
}

/* Adds the log likelihood of each visit's position, computed from the positions in the other half of the visits. */
static void add_positions(queue_work *w)
{
    for (int half = 0; half < 2; half++) {
        double counts[POSITIONS] = {0}, of_position[POSITIONS], n = 0;
        for (size_t i = (size_t)half; i < w->count; i += 2) {
            counts[w->positions[i]]++;
            n++;
        }
        for (int p = 0; p < POSITIONS; p++) {
            counts[p] = (counts[p] + 0.1) / (n + 0.1 * POSITIONS);
            of_position[p] = log(counts[p]);
        }
        for (size_t i = (size_t)!half; i < w->count; i += 2)
            w->with[i] +=
                w->shared[i] == 1 ? of_position[w->positions[i]] : log(counts[w->positions[i]] / w->shared[i]);
    }
}

/* Sets *gain to the mean log likelihood ratio of a visit, and *z to its significance. The visits of a request depend on
 * each other, so their sum counts as one value. Returns false if the model is impossible. */
static bool judge_servers(queue_work *w, service by, double *gain, double *z)
{
    double tiny = exp(w->low) / 50;
    size_t impossible = 0;
    for (size_t i = 0; i < w->count; i++) {
        double taken = (double)(w->held[i].to_ns - w->served[i]);
        impossible += taken < tiny;
        w->values[i] = MAX(taken, tiny);
    }
    if (impossible > w->count / 30)
        return false;
    for (size_t i = 0; i < w->count; i++) {
        bool is_alone = w->served[i] == w->held[i].from_ns && w->values[i] > tiny;
        w->logs[i] = is_alone ? w->alone_logs[i] : log(w->values[i]);
    }
    likelihoods(w->logs, w->count, w->low - log(50), w->high, w->with);
    if (by.any_order)
        add_positions(w);
    double sum = 0, square = 0, n = 0;
    memset(w->gains, 0, w->count * sizeof *w->gains);
    for (size_t i = 0; i < w->count; i++) {
        /* a visit that ends before a server is free contradicts the model, but has the shortest time; if many visits
         * had this time, the model would seem likely */
        double d = w->values[i] > tiny ? CLAMP(w->with[i] - w->alone[i], -GAIN_MAX, GAIN_MAX) : 0;
        /* visits of one request may end together for another reason, such as a time limit of the request */
        if (w->before[i] != i && w->requests[w->before[i]] == w->requests[i])
            continue;
        sum += d;
        w->gains[w->requests[i]] += d;
        n = fmax(n, w->requests[i] + 1);
    }
    for (size_t i = 0; i < (size_t)n; i++)
        square += w->gains[i] * w->gains[i];
    *gain = sum / (double)w->count;
    *z = sum / sqrt(MAX(square - sum * sum / n, 1e-9) + 1e-9);
    return true;
}

/* Returns the maximum number of visits on a host at the same time. */
static double peak_of_host(const holding *held, size_t count)
{
    keyed *begins = order_by_arrival(held, count);
    size_t ended = 0, peak = 0;
    for (size_t i = 0; i < count; i++) {
        while (ended < count && held[ended].to_ns <= begins[i].key)
            ended++;
        peak = MAX(peak, i + 1 - ended);
    }
    g_free(begins);
    return (double)peak;
}

static double peak_of(const holding *held, size_t count)
{
    double peak = 0;
    for (size_t from = 0, to; from < count; from = to) {
        to = end_of_host(held, from, count);
        peak = fmax(peak, peak_of_host(held + from, to - from));
    }
    return peak;
}

/* Numbers the requests of the visits from 0. */
static void number_requests(queue_work *w, const visits *v)
{
    key_map numbers = {0}; /* maps a request + 1 to its number + 1 */
    key_map_reset(&numbers, w->count);
    for (size_t i = 0; i < w->count; i++) {
        uint64_t *number = key_map_add(&numbers, (uint64_t)visit_at(v, w->held[i].visit)->request + 1);
        if (*number == 0)
            *number = numbers.count;
        w->requests[i] = (uint32_t)*number - 1;
    }
    key_map_free(&numbers);
}

/* Prepares a queue_work for `serve`. Sorts the visits of each host by arrival. */
static void queue_work_init(queue_work *w, const holding *held, size_t count)
{
    *w = (queue_work){.held = held, .count = count};
    w->served = g_new(int64_t, count + 1);
    w->before = g_new(uint32_t, count + 1);
    w->arrivals = g_new(uint32_t, count + 1);
    for (size_t from = 0, to; from < count; from = to) {
        to = end_of_host(held, from, count);
        keyed *order = order_by_arrival(held + from, to - from);
        for (size_t i = from; i < to; i++)
            w->arrivals[i] = order[i - from].index;
        g_free(order);
    }
}

/* Prepares a queue_work for judge_servers, after queue_work_init. */
static void queue_work_prepare(queue_work *w, const visits *v)
{
    const size_t count = w->count;
    w->values = g_new(double, 6 * count + 1);
    w->logs = w->values + count;
    w->alone = w->logs + count;
    w->with = w->alone + count;
    w->alone_logs = w->with + count;
    w->gains = w->alone_logs + count;
    w->requests = g_new(uint32_t, count + 1);
    number_requests(w, v);
    w->positions = g_new(uint8_t, count + 1);
    w->shared = g_new(uint32_t, count + 1);
    w->high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        w->values[i] = (double)(w->held[i].to_ns - w->held[i].from_ns);
        w->alone_logs[i] = log(w->values[i]);
        w->high = fmax(w->high, w->alone_logs[i]);
    }
    sort_doubles(w->values, count);
    w->low = log(MAX(w->values[count / 100], 1));
    for (size_t from = 0, to; from < count; from = to) {
        to = end_of_host(w->held, from, count);
        find_positions(w->held + from, w->arrivals + from, to - from, w->positions + from, w->shared + from);
    }
    likelihoods(w->alone_logs, count, w->low - log(50), w->high, w->alone);
}

static void queue_work_clear(queue_work *w)
{
    g_free(w->served);
    g_free(w->before);
    g_free(w->arrivals);
    g_free(w->values);
    g_free(w->requests);
    g_free(w->positions);
    g_free(w->shared);
}

/* Returns the median time, in nanoseconds, of visits during which their host has no other visits. If there are few of
 * them, returns the time of the fast visits. `held` is sorted by end. */
static double time_alone(const holding *held, size_t count)
{
    double *alone = g_new(double, count + 1), result;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || held[i].from_ns >= held[i - 1].to_ns) &&
            (i + 1 == count || held[i + 1].from_ns >= held[i].from_ns))
            alone[n++] = (double)(held[i].to_ns - held[i].from_ns);
    if (n < ALONE_MIN) {
        for (n = 0; n < count; n++)
            alone[n] = (double)(held[n].to_ns - held[n].from_ns);
        sort_doubles(alone, n);
        result = n > 0 ? alone[n / FAST_ONE_OF] : 0;
    } else {
        result = median_of(alone, n);
    }
    g_free(alone);
    return result;
}

/* A service, and how well it predicts the visits. */
typedef struct choice {
    service by;
    double gain, z; /* see judge_servers; 0: not significant */
} choice;

/* Returns whether a choice is better than another. If the larger gain leads by less than its standard error, the choice
 * with the more significant gain is better. */
static bool is_preferred(const choice *a, const choice *b)
{
    const choice *first = a->gain > b->gain ? a : b, *second = first == a ? b : a;
    bool is_tie = first->gain > 0 && first->gain - second->gain < first->gain / first->z && second->z > first->z;
    return (is_tie ? second : first) == a;
}

/* Replaces *best if a service predicts the visits significantly better. Ignores a service under which no visit waits:
 * it predicts the same times as independent visits, and the order of the visits alone is not certain evidence. */
static void try_service(queue_work *w, service by, choice *best)
{
    double gain, z;
    if ((size_t)by.servers * 4 > w->count)
        return;
    if (serve(w, by) && judge_servers(w, by, &gain, &z) && z >= 5 && gain > best->gain)
        *best = (choice){by, gain, z};
}

/* Returns the median service time, in nanoseconds, of the visits that wait for a server. Sets w->served. */
static double time_of_service(queue_work *w, service by)
{
    size_t count = 0;
    double *times = g_new(double, w->count + 1);
    serve(w, by);
    for (size_t i = 0; i < w->count; i++)
        if (w->served[i] > w->held[i].from_ns)
            times[count++] = (double)(w->held[i].to_ns - w->served[i] - by.outside_ns);
    double middle = median_of(times, count);
    g_free(times);
    return middle;
}

/* Tries a service whose visits also take time outside of their server: the difference between the time of a visit alone
 * and the time for which a visit occupies the server. */
static void try_outside(queue_work *w, int servers, bool any_order, double alone_ns, choice *best)
{
    service by = {servers, any_order, (int64_t)(alone_ns / 2)};
    by.outside_ns = (int64_t)CLAMP(alone_ns - time_of_service(w, by), 0, alone_ns);
    try_service(w, by, best);
}

/*
 * Chooses the service that predicts the visits best. If the best service has one server, also finds the best service
 * with several servers, and vice versa. The chosen service has no servers if no number predicts the visits
 * significantly better than independent times. Spans that also take time outside of their server look like spans with
 * more servers, because some visits are outside of the server while another visit occupies it. The function therefore
 * also tries fewer servers, together with a time outside of the server.
 */
static choice choose_servers(const visits *v, const holding *held, size_t count, mechanism *m)
{
    static const int tried[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, SERVERS_MAX};
    queue_work w;
    choice best[2] = {0}; /* for one server, and for several servers */
    queue_work_init(&w, held, count);
    queue_work_prepare(&w, v);
    G_STATIC_ASSERT(4 * G_N_ELEMENTS(tried) == CHOICES);
    for (size_t t = 0; t < G_N_ELEMENTS(tried); t++)
        for (int any = 1; any >= 0; any--)
            try_service(&w, (service){tried[t], any, 0}, &best[tried[t] > 1]);
    bool is_span = count > 0 && place_at(v, place_of_visit(v, visit_at(v, held[0].visit)))->kind == PLACE_SPAN;
    double alone_ns = time_alone(held, count);
    int found = best[best[1].gain > best[0].gain].by.servers, below = found > 0 ? found : OUTSIDE_SERVERS_MAX + 1;
    for (size_t t = 0; is_span && (m->scope == QUEUE_SPAN || m->scope == QUEUE_FIRST) && tried[t] < below; t++)
        for (int any = 1; any >= 0; any--)
            try_outside(&w, tried[t], any, alone_ns, &best[tried[t] > 1]);
    queue_work_clear(&w);
    bool several = is_preferred(&best[1], &best[0]);
    const choice *chosen = &best[several], *other = &best[!several];
    m->servers = chosen->by.servers;
    m->outside_ns = chosen->by.outside_ns;
    m->other_servers = other->by.servers;
    m->other_gain = chosen->gain > 0 ? other->gain / chosen->gain : 0;
    m->likelihood = chosen->gain * (double)count;
    return *chosen;
}

/*
 * Returns whether the work of many visits begins long before a server is free. In this case, the servers do not limit
 * this work.
 */
static bool begins_too_early(const queue_work *w)
{
    size_t early = 0;
    for (size_t i = 0; i < w->count; i++) {
        const holding *h = &w->held[i];
        double before = (double)(w->served[i] - h->begin_ns);
        early += before > EARLY_PART * (double)(h->to_ns - h->from_ns);
    }
    return early > EARLY_MAX * w->count;
}

/* Finds the number of servers of a place, on one host or on each of several hosts, and adds the waits. Returns the
 * claimed time in nanoseconds. */
static double find_servers(const visits *v, const holding *held, size_t count, mechanism *m, double *z)
{
    double claim_ns = 0;
    size_t first = count > CHOOSING_MAX ? (count - CHOOSING_MAX) / 2 : 0;
    choice chosen = choose_servers(v, held + first, MIN(count, CHOOSING_MAX), m);
    *z = chosen.z;
    if (m->servers == 0)
        return 0;
    queue_work w;
    queue_work_init(&w, held, count);
    serve(&w, chosen.by);
    if (m->scope != QUEUE_SPAN && begins_too_early(&w)) {
        queue_work_clear(&w);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const visit *x = visit_at(v, held[i].visit);
        double wait = CLAMP((double)(w.served[i] - held[i].from_ns), 0, (double)x->own_ns);
        m->waits[held[i].visit] = (float)wait;
        claim_ns += wait * path_weight(x);
    }
    queue_work_clear(&w);
    return claim_ns;
}

/* Makes a host the mechanism's host and returns true if its claim, in nanoseconds, is the largest so far. */
static bool choose_host(mechanism *m, double *largest_ns, double claim_ns, const instance *host, double share)
{
    if (claim_ns <= *largest_ns)
        return false;
    *largest_ns = claim_ns;
    m->host = host->host;
    m->process = m->by_process ? host->program : NULL;
    m->share = share;
    return true;
}

/* Removes the mechanism's host if less than HOST_PART_MIN of the claim belongs to this host. */
static void require_most_on_host(mechanism *m, double largest_ns)
{
    if (largest_ns < HOST_PART_MIN * m->claim_ns)
        m->host = m->process = NULL;
}

/* Examines all hosts together, as if they had the same number of servers, because each host may have too few visits to
 * show a queue. */
static void find_on_all_hosts(const visits *v, const holding *held, size_t count, const GPtrArray *hosts, mechanism *m)
{
    double z = 0, largest_ns = 0;
    m->claim_ns = find_servers(v, held, count, m, &z);
    m->count = (uint32_t)count;
    m->p = normal_tail(z) * CHOICES * (hosts->len + HOSTS_TOGETHER);
    m->peak = peak_of(held, count);
    for (size_t from = 0, to; from < count; from = to) {
        double claim_ns = 0;
        to = end_of_host(held, from, count);
        for (size_t i = from; i < to; i++)
            claim_ns += (double)m->waits[held[i].visit] * path_weight(visit_at(v, held[i].visit));
        choose_host(m, &largest_ns, claim_ns, g_ptr_array_index(hosts, held[from].host),
                    (double)(to - from) / (double)count * hosts->len);
    }
    require_most_on_host(m, largest_ns);
}

/* ---- locks that visits take after other work ---- */

/* Numbers of gaps between the ends of a host's visits. A gap counts only if another visit is in progress. */
typedef struct gap_counts {
    uint32_t gaps, shorter;
} gap_counts;

/* Counts the gaps of a host's visits, and the gaps that are at most `short_ns` nanoseconds. `held` is sorted by end. */
static gap_counts count_gaps(const holding *held, size_t count, double short_ns)
{
    gap_counts c = {0};
    for (size_t i = 1; i < count; i++)
        if (held[i].from_ns < held[i - 1].to_ns) {
            c.gaps++;
            c.shorter += (double)(held[i].to_ns - held[i - 1].to_ns) <= short_ns;
        }
    return c;
}

/* Returns the share of short gaps that is expected if the durations of the visits do not depend on other visits. To
 * compute this share, assigns the durations to the visits in random order. */
static double expected_shorter(const holding *held, size_t count, double short_ns)
{
    GRand *chance = g_rand_new_with_seed(1); /* the same log always has the same result */
    keyed *arrivals = order_by_arrival(held, count), *ends = g_new(keyed, count + 1);
    holding *other = g_new(holding, count + 1);
    int64_t *durations = g_new(int64_t, count + 1);
    double gaps = 0, shorter = 0;
    for (size_t i = 0; i < count; i++)
        durations[i] = held[i].to_ns - held[i].from_ns;
    for (int k = 0; k < SHUFFLES; k++) {
        for (size_t i = count; i > 1; i--) {
            size_t n = (size_t)g_rand_int_range(chance, 0, (gint32)i);
            int64_t swapped = durations[n];
            durations[n] = durations[i - 1];
            durations[i - 1] = swapped;
        }
        for (size_t i = 0; i < count; i++)
            ends[i] = (keyed){arrivals[i].key + durations[arrivals[i].index], (uint32_t)i};
        keyed_sort(ends, count); /* the sort is stable: visits with the same end remain in the order of arrival */
        for (size_t i = 0; i < count; i++)
            other[i] = (holding){.from_ns = arrivals[ends[i].index].key, .to_ns = ends[i].key};
        gap_counts c = count_gaps(other, count, short_ns);
        gaps += c.gaps;
        shorter += c.shorter;
    }
    g_rand_free(chance);
    g_free(arrivals);
    g_free(ends);
    g_free(other);
    g_free(durations);
    return gaps > 0 ? shorter / gaps : 0;
}

/* Sets the waits of a host's visits for a lock that they take after other work. Returns the claimed time in
 * nanoseconds. */
static double claim_serial(const visits *v, const holding *held, size_t count, double service_ns, float *waits)
{
    double before_ns = fmax(0, time_alone(held, count) - service_ns), claim_ns = 0;
    for (size_t i = 1; i < count; i++) {
        const visit *x = visit_at(v, held[i].visit);
        double wait = CLAMP((double)(held[i - 1].to_ns - held[i].from_ns) - before_ns, 0, (double)x->own_ns);
        waits[held[i].visit] = (float)wait;
        claim_ns += wait * path_weight(x);
    }
    return claim_ns;
}

/*
 * Finds a lock that visits take only after other work. The order of arrival does not show this lock, but the ends do:
 * the gap between two ends is at least the time for which a visit holds the lock. Compares the number of short gaps on
 * all hosts with the number for durations that do not depend on other visits. Returns a mechanism without waits if the
 * probability of so few short gaps by chance is more than SERIAL_CHANCE.
 */
static mechanism find_serial(const visits *v, const holding *held, size_t count, GPtrArray *hosts,
                             const mechanism *queue)
{
    mechanism m = {.servers = 1, .scope = queue->scope, .by_process = queue->by_process};
    double expected = 0, largest_ns = 0, *gaps = g_new(double, count + 1);
    gap_counts all = {0};
    m.waits = g_new0(float, v->all->len + 1);
    for (size_t from = 0, to; from < count; from = to) {
        size_t gap_count = 0;
        to = end_of_host(held, from, count);
        for (size_t i = from + 1; i < to; i++)
            if (held[i].from_ns < held[i - 1].to_ns)
                gaps[gap_count++] = (double)(held[i].to_ns - held[i - 1].to_ns);
        if (gap_count < BUSY_MIN)
            continue;
        double median_ns = median_of(gaps, gap_count), claim_ns;
        size_t used = MIN(to - from, CHOOSING_MAX);
        gap_counts here = count_gaps(held + from, used, SHORT_GAP * median_ns);
        all.gaps += here.gaps;
        all.shorter += here.shorter;
        expected += here.gaps * expected_shorter(held + from, used, SHORT_GAP * median_ns);
        claim_ns = claim_serial(v, held + from, to - from, median_ns, m.waits);
        m.claim_ns += claim_ns;
        m.count += (uint32_t)(to - from);
        m.peak = fmax(m.peak, peak_of_host(held + from, to - from));
        choose_host(&m, &largest_ns, claim_ns, g_ptr_array_index(hosts, held[from].host),
                    (double)(to - from) / (double)count * hosts->len);
    }
    require_most_on_host(&m, largest_ns);
    m.p = all.gaps > 0 && all.shorter < SERIAL_PART * expected
              ? binomial_tail(all.shorter, all.gaps, expected / all.gaps)
              : 1;
    g_free(gaps);
    if (m.p > SERIAL_CHANCE || m.claim_ns <= 0)
        g_clear_pointer(&m.waits, g_free);
    return m;
}

/* If the search has found no queue, or only a pool, tries a lock that visits take after other work. Keeps the pool if
 * it is less probable by chance than the lock. */
static void try_serial(const visits *v, const holding *held, size_t count, GPtrArray *hosts, mechanism *m)
{
    if (m->claim_ns > 0 && m->servers == 1)
        return;
    mechanism serial = find_serial(v, held, count, hosts, m);
    if (serial.waits == NULL)
        return;
    if (m->claim_ns > 0 && m->p < serial.p) {
        g_free(serial.waits);
        return;
    }
    if (m->claim_ns > 0) { /* the pool is evidence of a queue, and the gaps are evidence of a single server */
        serial.p = fmin(1, 2 * fmin(m->p, serial.p)); /* the smaller p of two tests */
        serial.other_servers = m->servers;
        serial.other_gain = 0.5;
        serial.likelihood = m->likelihood;
    }
    g_free(m->waits);
    *m = serial;
}

/* Treats all hosts as one host, to which all servers belong. */
static void share_servers(holding *held, size_t count)
{
    for (size_t i = 0; i < count; i++)
        held[i].host = 0;
    sort_by_end(held, count);
}

/*
 * Replaces `best` with `other` if `best` is empty or `other` predicts the visits significantly better. Frees the waits
 * of the queue that is not kept. If `same_waits` is true, `other` must also be a much likelier pool with similar waits,
 * or `best` must be significant and `other` must explain the same waits. A queue that claims much more time is a
 * different cause, not a better model. For example, a link that carries the data of all hosts one after another looks
 * like a lock.
 */
static void keep_likelier(mechanism *best, mechanism *other, bool same_waits)
{
    bool is_first = best->waits == NULL || best->claim_ns <= 0,
         is_better = other->likelihood > best->likelihood && other->p <= OTHER_CHANCE,
         is_same = best->likelihood > 0 && best->p <= OTHER_CHANCE && other->claim_ns <= SAME_WAITS * best->claim_ns,
         is_much_better = other->servers > 1 && other->likelihood > MUCH_LIKELIER * best->likelihood &&
                          other->claim_ns <= SIMILAR_WAITS * best->claim_ns,
         likelier = other->claim_ns > 0 && (is_first || (is_better && (is_same || is_much_better || !same_waits)));
    g_free(likelier ? best->waits : other->waits);
    if (likelier)
        *best = *other;
}

/* Examines all hosts as one host, because they may share servers, such as a lock in a database. Changes the hosts in
 * `held`. */
static void try_shared(const visits *v, holding *held, size_t count, const GPtrArray *hosts, mechanism *m)
{
    double z = 0;
    mechanism shared = {.scope = m->scope, .call = m->call, .is_shared = true, .waits = g_new0(float, v->all->len + 1)};
    share_servers(held, count);
    shared.claim_ns = find_servers(v, held, count, &shared, &z);
    shared.count = (uint32_t)count;
    shared.p = normal_tail(z) * CHOICES * (hosts->len + HOSTS_TOGETHER);
    shared.peak = peak_of(held, count);
    keep_likelier(m, &shared, true);
}

/* Finds a queue with servers on each host or in each process. `m` has the scope of the queue. */
static mechanism find_queue_of(const visits *v, uint32_t number, mechanism m)
{
    const queue_scope scope = m.scope;
    const place *p = place_at(v, number);
    holding *held = g_new(holding, p->count + 1);
    GPtrArray *hosts = g_ptr_array_new();
    size_t all = gather_holdings(v, number, &m, held, hosts);
    double largest_ns = 0;
    m.waits = g_new0(float, v->all->len + 1);
    for (size_t from = 0, to = 0; from < all; from = to) {
        while (to < all && held[to].host == held[from].host)
            to++;
        size_t count = to - from;
        mechanism here = {.waits = m.waits, .scope = scope, .call = m.call};
        double z = 0, claim_ns = count >= VISITS_MIN ? find_servers(v, held + from, count, &here, &z) : 0;
        if (claim_ns <= 0)
            continue;
        m.claim_ns += claim_ns;
        m.likelihood += here.likelihood;
        m.count += (uint32_t)count;
        if (choose_host(&m, &largest_ns, claim_ns, g_ptr_array_index(hosts, held[from].host),
                        (double)count / p->count * hosts->len)) {
            m.servers = here.servers;
            m.outside_ns = here.outside_ns;
            m.other_servers = here.other_servers;
            m.other_gain = here.other_gain;
            m.p = normal_tail(z) * CHOICES * (hosts->len + HOSTS_TOGETHER);
            m.peak = peak_of(held + from, count);
        }
    }
    require_most_on_host(&m, largest_ns);
    if (m.claim_ns <= 0 && hosts->len > 1 && all >= VISITS_MIN && all <= CHOOSING_MAX)
        find_on_all_hosts(v, held, all, hosts, &m);
    if (scope == QUEUE_SPAN)
        try_serial(v, held, all, hosts, &m);
    if (hosts->len > 1 && all >= VISITS_MIN && !m.by_process)
        try_shared(v, held, all, hosts, &m);
    g_ptr_array_free(hosts, TRUE);
    g_free(held);
    if (m.claim_ns <= 0) {
        g_free(m.waits);
        m.waits = NULL;
    }
    return m;
}

/* Finds a queue with servers on each host or, if `by_process` is true, in each process. */
static mechanism find_queue_for(const visits *v, uint32_t number, queue_scope scope, bool by_process)
{
    return find_queue_of(v, number, (mechanism){.scope = scope, .by_process = by_process});
}

/* Replaces a mechanism if `m` claims more time, and frees the waits of the mechanism that is not kept. */
static void keep_larger(mechanism *best, mechanism m)
{
    bool larger = m.waits != NULL && (best->waits == NULL || m.claim_ns > best->claim_ns);
    g_free(larger ? best->waits : m.waits);
    if (larger)
        *best = m;
}

/* Returns the number of unusual tests of a place: unusual queue_scopes, and servers of processes. */
static double count_unusual(const visits *v, const place *p)
{
    int usual = p->kind == PLACE_EDGE ? USUAL_OF_EDGES : USUAL_OF_SPANS,
        scopes = p->kind == PLACE_EDGE ? USUAL_OF_EDGES + 1 : SCOPES_OF_SPANS + 2 * p->has_children;
    return scopes - usual + (place_has_processes(v, p) ? usual : 0);
}

/* Returns the place of the calls before which the visits of a span spend most of their own time, or VISIT_NONE.
 * Examines only a part of the visits, to save time. */
static uint32_t find_awaited_call(const visits *v, const place *p)
{
    enum { EXAMINED_MAX = 2048 };
    double *sums = g_new0(double, v->places->len + 1), all = 0;
    uint32_t *seen = g_new0(uint32_t, v->places->len + 1); /* for each place: the last visit that calls it, plus 1 */
    uint32_t examined = MIN(p->count, EXAMINED_MAX), best = 0;
    for (uint32_t k = 0; k < examined; k++) {
        keyed calls[LOOKED_THROUGH_MAX];
        uint32_t index = v->by_place[p->first + (uint64_t)k * p->count / examined], count = 0;
        const visit *x = visit_at(v, index);
        const request *q = request_at(v, x->request);
        int64_t ready_ns = x->from_ns;
        all += (double)x->own_ns;
        for (uint32_t i = 0; i < q->count && q->count <= LOOKED_THROUGH_MAX; i++)
            if (visit_at(v, q->first + i)->parent == index)
                calls[count++] = (keyed){visit_at(v, q->first + i)->from_ns, q->first + i};
        keyed_sort(calls, count);
        for (uint32_t i = 0; i < count; i++) {
            const visit *y = visit_at(v, calls[i].index);
            uint32_t called = place_of_visit(v, y);
            if (place_at(v, called)->kind == PLACE_SPAN && seen[called] != k + 1) {
                sums[called] += (double)MAX(0, y->from_ns - ready_ns);
                seen[called] = k + 1;
            }
            ready_ns = MAX(ready_ns, y->to_ns);
        }
    }
    for (uint32_t i = 1; i < v->places->len; i++)
        best = sums[i] > sums[best] ? i : best;
    bool found = 2 * sums[best] > all;
    g_free(sums);
    g_free(seen);
    return found ? best : VISIT_NONE;
}

/* Tries servers that the visits of a span occupy only until their first calls, or only during one of their calls. If
 * the calls of the span take much longer than its own work, the ends of the visits show nothing about these servers. */
static void try_calls_of_span(const visits *v, uint32_t number, mechanism *best)
{
    const place *p = place_at(v, number);
    if (p->kind != PLACE_SPAN || !p->has_children)
        return;
    const uint32_t call = find_awaited_call(v, p);
    for (int k = 0; k < (call != VISIT_NONE ? 2 : 1); k++) {
        mechanism m = find_queue_of(v, number,
                                    (mechanism){.scope = k == 0 ? QUEUE_FIRST : QUEUE_CALL, .call = k == 0 ? 0 : call});
        m.p *= count_unusual(v, p) / (1 - USUAL_WEIGHT);
        /* if each visit occupies a server only during one call, the number of servers also limits how many visits are
         * in progress, so both models explain the same waits */
        bool is_exact = k == 1 && m.p <= OTHER_CHANCE && m.claim_ns > 0 && m.servers <= best->servers &&
                        best->claim_ns <= SAME_WAITS * m.claim_ns;
        if (is_exact)
            g_clear_pointer(&best->waits, g_free);
        keep_likelier(best, &m, false);
    }
}

mechanism find_queue(const visits *v, uint32_t number)
{
    static const queue_scope of_edges[USUAL_OF_EDGES] = {QUEUE_SPAN, QUEUE_PROGRAM},
                             of_spans[SCOPES_OF_SPANS] = {QUEUE_SPAN, QUEUE_NEXT, QUEUE_CALLER, QUEUE_PROGRAM};
    const place *p = place_at(v, number);
    bool is_edge = p->kind == PLACE_EDGE;
    const queue_scope *scopes = is_edge ? of_edges : of_spans;
    const int usual = is_edge ? USUAL_OF_EDGES : USUAL_OF_SPANS, count = is_edge ? USUAL_OF_EDGES : SCOPES_OF_SPANS;
    mechanism best = {0};
    for (int i = 0; i < usual; i++)
        keep_larger(&best, find_queue_for(v, number, scopes[i], false));
    if (best.waits != NULL) {
        best.p *= usual / USUAL_WEIGHT;
        /* locks of several processes on a host may look like a pool of the host */
        for (int i = 0; i < usual && place_has_processes(v, p); i++) {
            mechanism m = find_queue_for(v, number, scopes[i], true);
            m.p *= count_unusual(v, p) / (1 - USUAL_WEIGHT);
            keep_likelier(&best, &m, false);
        }
        try_calls_of_span(v, number, &best);
        return best;
    }
    /* if these models explain nothing, a server may be busy for longer, or each process may have its own servers */
    for (int i = usual; i < count && best.waits == NULL; i++)
        best = find_queue_for(v, number, scopes[i], false);
    for (int i = 0; i < usual && best.waits == NULL && place_has_processes(v, p); i++)
        best = find_queue_for(v, number, scopes[i], true);
    best.p *= count_unusual(v, p) / (1 - USUAL_WEIGHT);
    try_calls_of_span(v, number, &best);
    return best;
}

mechanism queue_find_caller(const visits *v, uint32_t number)
{
    const place *p = place_at(v, number);
    const site *at = site_at(v, g_array_index(p->sites, uint32_t, 0));
    if (p->kind != PLACE_EDGE || at->from_instance == at->instance)
        return (mechanism){0};
    mechanism m = find_queue_for(v, number, QUEUE_CALLER, false);
    m.p *= count_unusual(v, p) / (1 - USUAL_WEIGHT);
    return m;
}

static void add_savings(const visits *v, const queue_work *w, const mechanism *queue, const float *cut, float *saved)
{
    int64_t free_ns[SERVERS_MAX];
    for (int k = 0; k < SERVERS_MAX; k++)
        free_ns[k] = INT64_MIN;
    for (size_t n = 0; n < w->count; n++) { /* visits are in the order of arrival, as in serve_in_order */
        const holding *h = &w->held[w->arrivals[n]];
        int64_t served_ns = w->served[w->arrivals[n]];
        const visit *x = visit_at(v, h->visit);
        bool is_edge = place_at(v, place_of_visit(v, x))->kind == PLACE_EDGE;
        uint32_t span = is_edge ? span_after(v, x) : h->visit;
        int first = 0;
        for (int k = 1; k < queue->servers; k++)
            if (free_ns[k] < free_ns[first])
                first = k;
        int64_t begin_ns = MAX(h->from_ns, free_ns[first]);
        int64_t taken_ns = h->to_ns - served_ns - (span != VISIT_NONE ? (int64_t)cut[span] : 0);
        free_ns[first] = begin_ns + MAX(taken_ns, 0) - queue->outside_ns;
        saved[h->visit] = (float)CLAMP((double)(served_ns - begin_ns), 0, (double)x->own_ns);
    }
}

double queue_find_savings(const visits *v, uint32_t number, const mechanism *queue, const float *cut, float *saved)
{
    const place *p = place_at(v, number);
    holding *held = g_new(holding, p->count + 1);
    GPtrArray *hosts = g_ptr_array_new();
    size_t all = gather_holdings(v, number, queue, held, hosts);
    if (queue->is_shared)
        share_servers(held, all);
    for (size_t from = 0, to = 0; from < all; from = to) {
        queue_work w;
        while (to < all && held[to].host == held[from].host)
            to++;
        queue_work_init(&w, held + from, to - from);
        serve(&w, (service){queue->servers, false, queue->outside_ns});
        add_savings(v, &w, queue, cut, saved);
        queue_work_clear(&w);
    }
    g_ptr_array_free(hosts, TRUE);
    g_free(held);
    double sum = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        sum += (double)saved[index] * path_weight(visit_at(v, index));
    }
    return sum;
}
