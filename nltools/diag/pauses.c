/*
 * Finds pauses. While a program is stopped, none of its visits begins or ends. A pause is therefore a gap between two
 * consecutive events of a program on a host, across which all visits in progress last. The usual durations of a place's
 * visits determine the probability that a visit lasts across the gap. In a pause, the product of these probabilities is
 * very small. A single visit is not evidence, because it may simply be long. While no child of a span is running, the
 * program works or waits in the span itself. Each part of a span without a running child therefore counts as a visit.
 * If requests usually arrive while others are in progress, the time between two arrivals also counts as a visit,
 * because no request arrives while a program is stopped. The time between arrivals counts at most as much as the real
 * visits, because a time without load is not a pause. The evidence for a program that stops only once or twice must be
 * stronger.
 *
 * A program may still accept requests while its work is stopped, or other programs may write the records of their
 * starts. The module therefore also examines the gaps between two consecutive ends of work, in which visits may begin.
 * Work that waits for a lock, for a batch or for a timer also has gaps between its ends. The ends of the visits that
 * begin in the gaps show which of these models is the most likely. After a pause, each of these visits takes its usual
 * time, independently of the others.
 *
 * If a program has several processes on a host, the module examines each process, because one process can stop while
 * the others continue. The module also examines the whole host and, if a program has several hosts, all hosts as if
 * they were a single host. With all hosts together, fewer requests are sufficient to find pauses that occur everywhere
 * at the same time.
 */
#include "config.h"

#include <math.h>

#include "diag/keyed_sort.h"
#include "diag/mechanisms.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAUSES_MIN = 3,
    ACTIVE_MIN = 2,
    SCAN_MAX = 256,
    SLOT_COUNT = 2 * SCAN_MAX, /* a power of two */
    BLOCK_SIZE = 16,
    SURVIVAL_MAX = 2048,
    SUSPECT = 7,       /* minimum improbability of a gap, as a natural logarithm */
    CLAIM_SUSPECT = 5, /* minimum improbability of further gaps if the program has pauses */
    GAPS_MAX = 1000,
    EQUAL_MAX = 20000, /* maximum number of gaps to examine if the GAPS_MAX-th longest gap is as long as many others */
    FEW_GAPS = 20,     /* if the search with GAP_CHANCE finds more gaps, it has found nearly all, and a second search
                          with CLAIM_CHANCE is unnecessary */
    LATE_MAX = 256,    /* maximum number of visits of a gap whose ends are compared with the models */
    RESTARTS = 16,     /* number of times at which a program may have continued after a gap */
    RESULTS_MAX = 16   /* each result has a number for each visit of the log */
};

/* Maximum expected share of gaps without a pause among the gaps that gaps_are_pauses tests. */
#define GAP_CHANCE 0.01

/* Maximum expected share of gaps without a pause among the gaps that the result claims. If a program has pauses, gaps
 * that are at least as long as its shortest pause are probably pauses, too. */
#define CLAIM_CHANCE 0.1

/* The maximum share if fewer than PAUSES_MIN gaps are pauses: few pauses are evidence only if they are long. */
#define STALL_CHANCE (GAP_CHANCE * GAP_CHANCE * GAP_CHANCE)

/* Maximum mean quantile that gaps_are_pauses accepts. The expected mean is 0.5 or less. */
#define REST_MAX 0.65

/* Maximum probability that a station is idle in so many of its pauses by chance. */
#define IDLE_CHANCE 0.01

/* log_density counts the durations from a duration divided by this factor to the duration times this factor. */
#define DENSITY_RANGE 1.3

/* The gaps are not pauses if, per visit, the log likelihood of ends at the same time exceeds the log likelihood of
 * pauses by more than this value. */
#define TOGETHER_BETTER 0.5

/*
 * RARE is the minimum probability that the module assumes. Beyond RARE_Z, normal_tail is less than RARE. Below
 * CERTAIN_Z, normal_tail is 1.
 */
#define RARE 1e-4
#define RARE_Z 3.72
#define CERTAIN_Z (-9.0)

/* The distribution of the durations of a place's visits. */
typedef struct survival {
    double *values;             /* sorted */
    double *sums;               /* sums[i] is the sum of values[0] to values[i] */
    double log_middle, sigma;   /* log-normal distribution of the shorter half; see the function `longer` */
    double certain_ns, rare_ns; /* durations at which this distribution reaches CERTAIN_Z and RARE_Z */
    uint32_t count;
} survival;

/* A visit, or the time between two arrivals. For a time between arrivals, `visit` is VISIT_NONE, and `place` is the
 * number of places. */
typedef struct active {
    int64_t from_ns, to_ns;
    uint32_t visit, place;
    uint32_t request; /* the visit's request */
    bool is_inside;   /* the visit is inside the station: a span, or an edge between two events of the station */
    bool is_way;      /* a message between hosts */
} active;

/* The children of all visits. The children of visit i are children[first[i]] to children[first[i + 1] - 1]. */
typedef struct family {
    uint32_t *first, *children;
} family;

/* A process of a program, or all processes on one host, or on all hosts. */
typedef struct station {
    const visits *v;
    const family *family;
    bool is_joint;              /* all programs belong to the station */
    const char *program;        /* as in places */
    const char *host, *process; /* NULL: all hosts; all processes */
    GArray *times;              /* int64_t: times at which visits of the program begin and end */
    GArray *active;             /* the program's visits, in order of their start times */
    GArray *ends;               /* int64_t: the latest end of each BLOCK_SIZE elements of `active` */
    GArray *places;             /* uint32_t: the places of `active`, which have values in `lasting` */
    survival *lasting;          /* indexed by place; shared by all stations */
    GArray *gaps;               /* elements are active, with from_ns and to_ns */
    bool by_ends;               /* visits may begin in the gaps; only visits inside the station count */
} station;

static bool in_gap(const station *s, const active *a)
{
    guint low = 0, high = s->gaps->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->gaps, active, middle).to_ns <= a->from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->gaps->len && g_array_index(s->gaps, active, low).from_ns < a->to_ns;
}

static survival *survival_of(const station *s, const active *a)
{
    return &s->lasting[a->place];
}

static void sort_survival(survival *l)
{
    sort_doubles(l->values, l->count);
    if (l->count == 0)
        return;
    l->sums[0] = l->values[0];
    for (uint32_t i = 1; i < l->count; i++)
        l->sums[i] = l->sums[i - 1] + l->values[i];
    const double middle = MAX(l->values[l->count / 2], 1), low = MAX(l->values[l->count * 3 / 20], 1);
    l->log_middle = log(middle);
    l->sigma = MAX(log(middle / low) / 1.036, 0.05);
    l->certain_ns = exp(l->log_middle + CERTAIN_Z * l->sigma);
    l->rare_ns = exp(l->log_middle + RARE_Z * l->sigma);
}

/* Learns the durations of each place's visits. Excludes visits that overlap a known gap. */
static void learn_survival(station *s)
{
    for (guint i = 0; i < s->places->len; i++)
        s->lasting[g_array_index(s->places, uint32_t, i)].count = 0;
    for (guint i = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        survival *of = survival_of(s, a);
        if (of->count < SURVIVAL_MAX && !in_gap(s, a))
            of->values[of->count++] = (double)(a->to_ns - a->from_ns);
    }
    for (guint i = 0; i < s->places->len; i++)
        sort_survival(&s->lasting[g_array_index(s->places, uint32_t, i)]);
}

/* Returns the number of visits that last at most x nanoseconds. The place must have at least one visit. */
static uint32_t count_up_to(const survival *l, double x)
{
    const double *from = l->values;
    /* search without branches, because the processor would predict half of the branches wrongly */
    for (uint32_t size = l->count; size > 1; size -= size / 2)
        from += from[size / 2 - 1] <= x ? size / 2 : 0;
    return (uint32_t)(from - l->values) + (*from <= x ? 1 : 0);
}

/*
 * Returns a number that is approximately proportional to the part of visits that last longer than x nanoseconds. In the
 * first pass (`first`), the durations include pauses, so the function uses a log-normal distribution that is fitted to
 * the shorter half of the durations. In later passes, it counts the visits outside the known gaps.
 */
static double longer(const survival *l, double x, bool first)
{
    if (first) {
        if (x <= l->certain_ns || x >= l->rare_ns)
            return x <= l->certain_ns ? 1 : RARE;
        return MAX(normal_tail((log(x) - l->log_middle) / l->sigma), RARE);
    }
    /* many visits began in the gap and are shorter than all values, so they need no search */
    return x < *l->values ? l->count + 1.0 : l->count - count_up_to(l, x) + 1.0;
}

/* Returns whether a visit is a message between hosts that usually takes longer than a gap. Several of these messages
 * are usually on the way at the same time, so gaps between their ends are normal. */
static bool is_usual_way(const active *a, const survival *l, double gap_ns)
{
    return a->is_way && gap_ns < l->values[l->count / 2];
}

/* Returns whether instance `number` of a program belongs to the station. `program` is the program's name in places. */
static bool has_instance(const station *s, const char *program, uint32_t number)
{
    const instance *of = instance_at(s->v, number);
    return s->is_joint || (program == s->program && (s->host == NULL || of->host == s->host) &&
                           (s->process == NULL || of->program == s->process));
}

/* Returns whether a visit, or the time between two arrivals, is evidence in the station's gaps. */
static bool counts_at(const station *s, const active *a)
{
    return !s->by_ends || (a->visit != VISIT_NONE && a->is_inside);
}

/* The evidence of a request in a gap: the largest negative logarithm of the probability of one of its visits. */
typedef struct request_evidence {
    uint32_t request;
    double inside, message; /* for visits inside the station; for messages to the station */
} request_evidence;

/* The evidence of the requests in a gap. */
typedef struct gap_evidence {
    request_evidence requests[SCAN_MAX];
    uint32_t count;
    uint16_t slots[SLOT_COUNT]; /* hash table with linear probing: the index of a request + 1, or 0 */
} gap_evidence;

/* Returns the evidence of a request, and adds an element for a new request. */
static request_evidence *evidence_of(gap_evidence *all, uint32_t request)
{
    uint32_t slot = request % SLOT_COUNT;
    for (; all->slots[slot] != 0; slot = (slot + 1) % SLOT_COUNT)
        if (all->requests[all->slots[slot] - 1].request == request)
            return &all->requests[all->slots[slot] - 1];
    all->requests[all->count] = (request_evidence){.request = request};
    all->slots[slot] = (uint16_t)++all->count;
    return &all->requests[all->count - 1];
}

/*
 * Returns the negative logarithm of the probability that no visit ends between from_ns and to_ns. Sets *count to the
 * number of requests in progress. The times of a request's visits may depend on each other, for example on the amount
 * of the requested work, so only its most improbable visit counts. A message to the station may wait because a long
 * visit keeps the station busy. Messages therefore count at most as much as the visits inside the station that are in
 * progress.
 */
static double improbability(const station *s, int64_t from_ns, int64_t to_ns, bool first, uint32_t *count)
{
    guint low = 0, high = s->active->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->active, active, middle).from_ns < to_ns)
            low = middle + 1;
        else
            high = middle;
    }
    gap_evidence all;
    double sum = 0, arrival = 0, messages = 0;
    bool has_inside = false;
    uint32_t arrivals = 0;
    all.count = 0;
    memset(all.slots, 0, sizeof all.slots);
    for (guint i = low, end = low > SCAN_MAX ? low - SCAN_MAX : 0; i > end;) {
        if (i % BLOCK_SIZE == 0 && g_array_index(s->ends, int64_t, i / BLOCK_SIZE - 1) < to_ns) {
            i -= MIN(BLOCK_SIZE, i - end);
            continue;
        }
        const active *a = &g_array_index(s->active, active, --i);
        if (a->to_ns < to_ns || !counts_at(s, a))
            continue;
        const survival *l = survival_of(s, a);
        double age = (double)(MAX(from_ns, a->from_ns) - a->from_ns), then = (double)(to_ns - a->from_ns);
        if (a->visit == VISIT_NONE) {
            if (l->count >= 20) {
                arrival = log(longer(l, age, first) / longer(l, then, first));
                arrivals++;
            }
            continue;
        }
        if (l->count < 20 || is_usual_way(a, l, (double)(to_ns - from_ns)))
            continue;
        double ratio = longer(l, age, first) / longer(l, then, first); /* 1 to 10,000 */
        request_evidence *of = evidence_of(&all, a->request);
        if (a->is_inside) {
            has_inside = true;
            of->inside = fmax(of->inside, log(ratio));
        } else {
            of->message = fmax(of->message, log(ratio));
        }
    }
    for (uint32_t i = 0; i < all.count; i++) {
        sum += all.requests[i].inside;
        messages += all.requests[i].message;
    }
    *count = all.count + arrivals;
    sum += has_inside ? fmin(messages, sum) : messages;
    return sum + fmin(arrival, sum);
}

static int by_improbability(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Returns the smallest improbability of a gap that counts as a pause (procedure of Benjamini and Hochberg). `count` is
 * the number of gaps. The k-th largest improbability qualifies if at most chance * k gaps would exceed it by chance. */
static double threshold_of(GArray *improbabilities, guint count, double chance)
{
    double threshold = INFINITY;
    g_array_sort(improbabilities, by_improbability);
    for (guint k = 0; k < improbabilities->len; k++) {
        double x = g_array_index(improbabilities, double, k);
        if (x >= log(count) + log(1 / chance) - log(k + 1))
            threshold = x;
    }
    return threshold;
}

/* Finds the improbable gaps that are at least `long_ns` long. `chance` is the maximum expected share of gaps without a
 * pause among them. In the first pass, `chance` is 1, which finds all suspect gaps. */
static void find_gaps(station *s, double long_ns, double chance)
{
    bool first = chance >= 1;
    GArray *found = g_array_new(FALSE, FALSE, sizeof(active)), *all = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 1; i < s->times->len; i++) {
        int64_t from_ns = g_array_index(s->times, int64_t, i - 1), to_ns = g_array_index(s->times, int64_t, i);
        uint32_t count;
        if ((double)(to_ns - from_ns) < long_ns)
            continue;
        double x = improbability(s, from_ns, to_ns, first, &count);
        if (x < (chance > GAP_CHANCE && !first ? CLAIM_SUSPECT : SUSPECT) || count < ACTIVE_MIN)
            continue;
        const active gap = {.from_ns = from_ns, .to_ns = to_ns};
        g_array_append_val(found, gap);
        g_array_append_val(all, x);
    }
    if (!first) {
        GArray *sorted = g_array_copy(all);
        double threshold = threshold_of(sorted, s->times->len, chance);
        for (guint i = found->len; i-- > 0;)
            if (g_array_index(all, double, i) < threshold)
                g_array_remove_index(found, i);
        g_array_free(sorted, TRUE);
    }
    g_array_free(all, TRUE);
    g_array_free(s->gaps, TRUE);
    s->gaps = found;
}

/*
 * Returns the minimum length of the gaps to examine, in nanoseconds: twice the median or the length of the GAPS_MAX-th
 * longest gap, whichever is longer. If coarse or regular times make too many gaps equally long, these gaps are too
 * frequent to be pauses, so the minimum excludes them.
 */
static double long_gap(const station *s)
{
    guint count = s->times->len - 1;
    keyed *gaps = g_new(keyed, count);
    for (guint i = 0; i < count; i++)
        gaps[i] = (keyed){g_array_index(s->times, int64_t, i + 1) - g_array_index(s->times, int64_t, i), i};
    keyed_sort(gaps, count);
    int64_t middle = (gaps[(count - 1) / 2].key + gaps[count / 2].key) / 2,
            shortest = MAX(2 * middle, gaps[count > GAPS_MAX ? count - GAPS_MAX : 0].key);
    if (count > EQUAL_MAX && gaps[count - EQUAL_MAX - 1].key >= shortest)
        shortest++;
    g_free(gaps);
    return (double)shortest;
}

/* Allocates memory for the durations of a place's visits. */
static void add_place(station *s, uint32_t number)
{
    survival *of = &s->lasting[number];
    if (of->values != NULL)
        return;
    of->values = g_new(double, 2 * SURVIVAL_MAX);
    of->sums = of->values + SURVIVAL_MAX;
    g_array_append_val(s->places, number);
}

/* Adds a visit, or a part of a visit. */
static void add_active(station *s, int64_t from_ns, int64_t to_ns, uint32_t index)
{
    const visit *x = visit_at(s->v, index);
    const site *at = site_at(s->v, x->site);
    const place *p = place_at(s->v, at->place);
    const active a = {.from_ns = from_ns,
                      .to_ns = to_ns,
                      .visit = index,
                      .place = at->place,
                      .request = x->request,
                      .is_inside = p->kind == PLACE_SPAN || has_instance(s, p->from_program, at->from_instance),
                      .is_way = p->kind == PLACE_EDGE && at->host != at->from_host};
    g_array_append_val(s->active, a);
    add_place(s, at->place);
}

/* Adds the parts of a span in which none of its children is running. */
static void add_pieces(station *s, uint32_t index)
{
    const family *f = s->family;
    const visit *x = visit_at(s->v, index);
    uint32_t count = f->first[index + 1] - f->first[index];
    keyed *order = g_new(keyed, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t child = f->children[f->first[index] + i];
        order[i] = (keyed){visit_at(s->v, child)->from_ns, child};
    }
    keyed_sort(order, count);
    int64_t from_ns = x->from_ns;
    for (uint32_t i = 0; i < count; i++) {
        const visit *child = visit_at(s->v, order[i].index);
        if (child->from_ns > from_ns)
            add_active(s, from_ns, child->from_ns, index);
        from_ns = MAX(from_ns, child->to_ns);
    }
    if (x->to_ns > from_ns)
        add_active(s, from_ns, x->to_ns, index);
    g_free(order);
}

/* Returns the position in `repeats` of the first repeat whose visit has this index or a larger index. */
static guint first_repeat(const visits *v, uint32_t index)
{
    guint low = 0, high = v->repeats->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(v->repeats, repeat_end, middle).visit < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the repeats of a joined visit, or the whole visit if it has no repeats. Adds the ends of the repeats to `times`,
 * and returns the number of repeats. */
static size_t add_repeats(station *s, uint32_t index, keyed *times)
{
    const visit *x = visit_at(s->v, index);
    guint first = first_repeat(s->v, index), i = first;
    int64_t from_ns = x->from_ns;
    for (; i < s->v->repeats->len && g_array_index(s->v->repeats, repeat_end, i).visit == index; i++) {
        int64_t to_ns = g_array_index(s->v->repeats, repeat_end, i).time_ns;
        add_active(s, from_ns, to_ns, index);
        times[i - first].key = from_ns = to_ns;
    }
    add_active(s, from_ns, x->to_ns, index);
    return i - first;
}

/*
 * Adds the times between arrivals of requests at the station, if at least a quarter of the requests arrive while
 * another request is in progress. `begins` contains the spans whose parents are at other stations, in the order
 * in which they begin.
 */
static void add_arrivals(station *s, const keyed *begins, size_t count)
{
    enum { OVERLAPPING_ONE_OF = 4 };
    int64_t until_ns = INT64_MIN;
    size_t overlapping = 0;
    for (size_t i = 0; i < count; i++) {
        overlapping += begins[i].key < until_ns;
        until_ns = MAX(until_ns, visit_at(s->v, begins[i].index)->to_ns);
    }
    if (count < 2 || overlapping * OVERLAPPING_ONE_OF < count)
        return;
    add_place(s, s->v->places->len);
    for (size_t i = 1; i < count; i++) {
        const active a = {
            .from_ns = begins[i - 1].key, .to_ns = begins[i].key, .visit = VISIT_NONE, .place = s->v->places->len};
        g_array_append_val(s->active, a);
    }
}

static bool is_at_station(const station *s, uint32_t index)
{
    if (index == VISIT_NONE)
        return false;
    const site *at = site_at(s->v, visit_at(s->v, index)->site);
    return has_instance(s, place_at(s->v, at->place)->program, at->instance);
}

/* Sorts the visits by their start times. Visits that begin at the same time remain in the order of their indices. */
static void sort_active(station *s)
{
    const guint count = s->active->len;
    keyed *order = g_new(keyed, count + 1);
    GArray *sorted = g_array_sized_new(FALSE, FALSE, sizeof(active), count + 1);
    for (guint i = 0; i < count; i++)
        order[i] = (keyed){g_array_index(s->active, active, i).from_ns, i};
    keyed_sort(order, count);
    for (guint i = 0; i < count; i++)
        g_array_append_val(sorted, g_array_index(s->active, active, order[i].index));
    g_array_free(s->active, TRUE);
    s->active = sorted;
    g_free(order);
}

/* Finds the latest end of each block of visits. */
static void find_ends(station *s)
{
    for (guint i = 0; i < s->active->len; i += BLOCK_SIZE) {
        int64_t latest_ns = INT64_MIN;
        for (guint k = i; k < MIN(i + BLOCK_SIZE, s->active->len); k++)
            latest_ns = MAX(latest_ns, g_array_index(s->active, active, k).to_ns);
        g_array_append_val(s->ends, latest_ns);
    }
}

/*
 * Collects the visits of a station, and the times at which the visits begin and end. Both lists are in the order of
 * time.
 */
static void gather_station(station *s, const uint32_t *indices, uint32_t count)
{
    keyed *times = g_new(keyed, 2 * (size_t)count + s->v->repeats->len + 1), *arrivals = g_new(keyed, count + 1);
    size_t time_count = 0, arrival_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const visit *x = visit_at(s->v, indices[i]);
        const site *at = site_at(s->v, x->site);
        const place *p = place_at(s->v, at->place);
        bool is_call = p->kind == PLACE_SPAN && has_instance(s, p->program, at->from_instance), /* or its own span */
            ends = has_instance(s, p->program, at->instance) || is_call,
             begins_here = p->kind == PLACE_EDGE ? has_instance(s, p->from_program, at->from_instance) : ends;
        if (begins_here)
            times[time_count++].key = x->from_ns;
        if (ends)
            times[time_count++].key = x->to_ns;
        if (ends && p->kind == PLACE_SPAN && !is_at_station(s, x->parent))
            arrivals[arrival_count++] = (keyed){x->from_ns, indices[i]};
        if (ends && p->kind == PLACE_SPAN && p->has_children)
            add_pieces(s, indices[i]);
        else if (ends && p->kind != PLACE_UNKNOWN)
            time_count += add_repeats(s, indices[i], times + time_count);
    }
    keyed_sort(times, time_count);
    for (size_t i = 0; i < time_count; i++)
        g_array_append_val(s->times, times[i].key);
    keyed_sort(arrivals, arrival_count);
    add_arrivals(s, arrivals, arrival_count);
    sort_active(s);
    find_ends(s);
    g_free(times);
    g_free(arrivals);
}

/* Computes the members of *m from the gaps: the visits' waits and their sum, the number and mean length of the gaps,
 * and the period. */
static void sum_pauses(const station *s, mechanism *m)
{
    double sum = 0, square = 0, length = 0;
    uint32_t n = s->gaps->len;
    for (guint i = 0; i < n; i++) {
        const active *gap = &g_array_index(s->gaps, active, i);
        length += (double)(gap->to_ns - gap->from_ns);
        if (i > 0) {
            double step = (double)(gap->from_ns - g_array_index(s->gaps, active, i - 1).from_ns);
            sum += step;
            square += step * step;
        }
    }
    double mean = sum / MAX(n - 1, 1), variance = square / MAX(n - 1, 1) - mean * mean;
    m->count = n;
    m->length_ns = length / n;
    m->period_ns = n >= 5 && variance < 0.04 * mean * mean ? mean : 0;
    m->host = s->host;
    m->process = s->process;
    m->waits = g_new0(float, s->v->all->len + 1);
    for (guint i = 0, g = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        if (a->visit == VISIT_NONE)
            continue;
        const visit *x = visit_at(s->v, a->visit);
        while (g < n && g_array_index(s->gaps, active, g).to_ns <= a->from_ns)
            g++;
        double wait = 0;
        for (guint k = g; k < n && g_array_index(s->gaps, active, k).from_ns < a->to_ns; k++) {
            const active *gap = &g_array_index(s->gaps, active, k);
            if (a->to_ns >= gap->to_ns) /* a message can arrive in a gap between two ends */
                wait += (double)(gap->to_ns - MAX(gap->from_ns, a->from_ns));
        }
        double before = (double)m->waits[a->visit];
        m->waits[a->visit] = (float)MIN(before + wait, (double)x->own_ns);
        m->claim_ns += ((double)m->waits[a->visit] - before) * path_weight(x);
    }
}

/* Adds a result to `results`, which keeps the RESULTS_MAX results with the largest claims. Frees the result that is not
 * kept. */
static void keep_result(GArray *results, pause_result *r)
{
    guint smallest = 0;
    if (results->len < RESULTS_MAX) {
        g_array_append_val(results, *r);
        return;
    }
    for (guint i = 1; i < results->len; i++)
        if (g_array_index(results, pause_result, i).m.claim_ns <
            g_array_index(results, pause_result, smallest).m.claim_ns)
            smallest = i;
    pause_result *other = &g_array_index(results, pause_result, smallest);
    if (other->m.claim_ns >= r->m.claim_ns) {
        g_free(r->m.waits);
        return;
    }
    g_free(other->m.waits);
    *other = *r;
}

/* Returns the part of the total duration of a place's visits, 0 to 1, that belongs to visits of at most x nanoseconds.
 * The place must have at least one visit. */
static double part_up_to(const survival *l, double x)
{
    uint32_t count = count_up_to(l, x);
    double all = l->sums[l->count - 1];
    return count > 0 && all > 0 ? l->sums[count - 1] / all : 0;
}

/* The visits that last across a gap: the sum of their quantiles, and the smallest quantile (gaps_are_pauses). */
typedef struct gap_rests {
    double sum, minimum;
    uint32_t count;
    bool has_inside; /* at least one visit is inside the station */
} gap_rests;

/*
 * Returns whether the visits that last across the gaps would have usual durations without the gaps. If the visits take
 * long for another reason than a pause, gaps between their events are normal. A random moment is in a long visit more
 * often than in a short visit, so the function weights the usual durations by their length. In this distribution, the
 * quantile of a duration is uniform from 0 to 1, or smaller if the work ends during the pause. If only messages last
 * across a gap, they wait for each other after the gap, so only the shortest message counts.
 */
static bool gaps_are_pauses(const station *s)
{
    gap_rests *rests = g_new0(gap_rests, s->gaps->len + 1);
    double sum = 0;
    uint32_t n = 0;
    for (guint i = 0, g = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        const survival *l = survival_of(s, a);
        double rest = (double)(a->to_ns - a->from_ns);
        while (g < s->gaps->len && g_array_index(s->gaps, active, g).to_ns <= a->from_ns)
            g++;
        guint k = g;
        for (; k < s->gaps->len && g_array_index(s->gaps, active, k).from_ns < a->to_ns; k++) {
            const active *gap = &g_array_index(s->gaps, active, k);
            rest -= (double)(MIN(gap->to_ns, a->to_ns) - MAX(gap->from_ns, a->from_ns));
        }
        if (k == g || a->visit == VISIT_NONE || l->count < 20 || !counts_at(s, a))
            continue;
        gap_rests *r = &rests[g];
        double quantile = part_up_to(l, rest);
        r->minimum = r->count == 0 ? quantile : fmin(r->minimum, quantile);
        r->sum += quantile;
        r->count++;
        r->has_inside = r->has_inside || a->is_inside;
    }
    for (guint g = 0; g < s->gaps->len; g++) {
        sum += rests[g].has_inside ? rests[g].sum : rests[g].minimum;
        n += rests[g].has_inside ? rests[g].count : rests[g].count > 0;
    }
    g_free(rests);
    return sum <= REST_MAX * n;
}

/* ---- pauses, or waits for a lock, a batch or a timer ---- */

/* The logarithms of the likelihoods of the ends of visits that begin in gaps. In each gap, the visit that ends first
 * shows when the program continues, so the sums contain only the other visits. */
typedef struct gap_models {
    double pause;       /* each visit takes its usual time */
    double lock;        /* the visits take their usual times one after another */
    double together_ns; /* the sum of the times by which the visits end after the first visit, in nanoseconds */
    uint32_t count;     /* number of visits */
} gap_models;

/* A visit that begins in a gap and ends after the gap. */
typedef struct late_visit {
    int64_t to_ns;
    const survival *usual;
} late_visit;

static int by_late_end(const void *a, const void *b)
{
    const late_visit *x = a, *y = b;
    return (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns);
}

/* Returns the logarithm of the density of a place's durations. Counts the durations in a range around `ns`. Unlike the
 * density of the logarithms, this density does not increase below the shortest durations. */
static double log_density(const survival *l, double ns)
{
    double x = fmax(ns, 1), count = count_up_to(l, x * DENSITY_RANGE) - count_up_to(l, x / DENSITY_RANGE);
    return log((count + 0.5) / (l->count + 1) / (2 * log(DENSITY_RANGE)) / fmax(x, l->values[l->count / 20]));
}

/*
 * Adds the visits of one gap. `late` contains at least two visits in the order of their ends. The program continues at
 * an unknown time before the first end. The function tries several times, and uses the most likely time of each model.
 */
static void add_late_visits(gap_models *m, const late_visit *late, uint32_t count)
{
    double best[2] = {-INFINITY, -INFINITY}, others[2] = {0}; /* of a pause, and of a lock */
    for (uint32_t k = 0; k < RESTARTS; k++) {
        double first_ns = late[0].usual->values[late[0].usual->count * (2 * k + 1) / (2 * RESTARTS)],
               first = log_density(late[0].usual, first_ns), sums[2] = {0};
        for (uint32_t i = 1; i < count; i++) {
            sums[0] += log_density(late[i].usual, (double)(late[i].to_ns - late[0].to_ns) + first_ns);
            sums[1] += log_density(late[i].usual, (double)(late[i].to_ns - late[i - 1].to_ns));
        }
        for (int n = 0; n < 2; n++)
            if (first + sums[n] > best[n]) {
                best[n] = first + sums[n];
                others[n] = sums[n];
            }
    }
    m->pause += others[0];
    m->lock += others[1];
    m->count += count - 1;
    for (uint32_t i = 1; i < count; i++)
        m->together_ns += (double)(late[i].to_ns - late[0].to_ns);
}

/*
 * Returns whether the visits that begin in the gaps end as they would after pauses. Visits that wait for a lock end one
 * after another. Visits that wait for a batch or a timer end nearly at the same time. The model of a batch assumes an
 * exponential distribution, which also describes the ends after pauses nearly as well as the usual times do.
 */
static bool ends_are_of_pauses(const station *s)
{
    gap_models m = {0};
    late_visit late[LATE_MAX];
    guint i = 0;
    for (guint g = 0; g < s->gaps->len; g++) {
        const active *gap = &g_array_index(s->gaps, active, g);
        uint32_t count = 0;
        for (; i < s->active->len && g_array_index(s->active, active, i).from_ns < gap->to_ns; i++) {
            const active *a = &g_array_index(s->active, active, i);
            if (a->from_ns >= gap->from_ns && a->to_ns >= gap->to_ns && counts_at(s, a) &&
                survival_of(s, a)->count >= 20 && count < LATE_MAX)
                late[count++] = (late_visit){a->to_ns, survival_of(s, a)};
        }
        qsort(late, count, sizeof *late, by_late_end);
        if (count > 1)
            add_late_visits(&m, late, count);
    }
    if (m.count == 0)
        return false;
    double together = -(double)m.count * (log(fmax(m.together_ns / m.count, 1)) + 1);
    return m.pause - m.lock >= log(1 / GAP_CHANCE) && m.pause >= together - TOGETHER_BETTER * m.count;
}

/*
 * A station is idle while only messages to it are in progress. Returns whether the station was idle in more of the gaps
 * than expected by chance. The messages then probably waited before they reached the station, for example until a batch
 * was full. Pauses occur at any time, so the expected part of the gaps in which the station is idle equals the idle
 * part of all time.
 */
static bool gaps_are_idle(const station *s)
{
    int64_t busy_ns = 0, until_ns = INT64_MIN, first_ns = g_array_index(s->times, int64_t, 0),
            last_ns = g_array_index(s->times, int64_t, s->times->len - 1);
    uint32_t idle = 0;
    guint g = 0;
    for (guint i = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        if (a->visit == VISIT_NONE || !a->is_inside)
            continue;
        /* The visits are in the order of their starts, so no later visit is in progress when these gaps begin. */
        for (; g < s->gaps->len && g_array_index(s->gaps, active, g).from_ns < a->from_ns; g++)
            idle += until_ns <= g_array_index(s->gaps, active, g).from_ns;
        busy_ns += MAX(0, a->to_ns - MAX(a->from_ns, until_ns));
        until_ns = MAX(until_ns, a->to_ns);
    }
    for (; g < s->gaps->len; g++)
        idle += until_ns <= g_array_index(s->gaps, active, g).from_ns;
    double busy = (double)busy_ns / (double)MAX(last_ns - first_ns, 1);
    return busy > 0 && busy < 1 && idle > (1 - busy) * s->gaps->len &&
           binomial_tail(s->gaps->len - idle, s->gaps->len, busy) < IDLE_CHANCE;
}

/* Returns the length of the station's shortest gap, in nanoseconds. */
static double shortest_gap(const station *s)
{
    double shortest = INFINITY;
    for (guint i = 0; i < s->gaps->len; i++) {
        const active *gap = &g_array_index(s->gaps, active, i);
        shortest = fmin(shortest, (double)(gap->to_ns - gap->from_ns));
    }
    return shortest;
}

/* Finds the gaps of a station. Returns whether they are pauses. */
static bool search_gaps(station *s)
{
    if (s->times->len < 100 || s->active->len < 50)
        return false;
    double shortest = long_gap(s);
    g_array_set_size(s->gaps, 0);
    learn_survival(s);
    find_gaps(s, shortest, 1);
    learn_survival(s);
    find_gaps(s, shortest, GAP_CHANCE);
    if (s->gaps->len < PAUSES_MIN)
        find_gaps(s, shortest, STALL_CHANCE);
    if (s->gaps->len == 0 || !gaps_are_pauses(s) || (s->by_ends ? !ends_are_of_pauses(s) : gaps_are_idle(s)))
        return false;
    if (s->gaps->len <= FEW_GAPS)
        find_gaps(s, shortest_gap(s), CLAIM_CHANCE);
    return true;
}

/* Replaces the station's times with the ends of the visits inside the station. */
static void use_ends(station *s)
{
    keyed *times = g_new(keyed, s->active->len + 1);
    size_t count = 0;
    for (guint i = 0; i < s->active->len; i++) {
        const active *a = &g_array_index(s->active, active, i);
        if (counts_at(s, a))
            times[count++].key = a->to_ns;
    }
    keyed_sort(times, count);
    g_array_set_size(s->times, 0);
    for (size_t i = 0; i < count; i++)
        g_array_append_val(s->times, times[i].key);
    g_free(times);
}

/* Finds the pauses of a station with its current `times`. Replaces the result if the pauses claim more time. */
static void examine_gaps(station *s, pause_result *r)
{
    pause_result other = {0};
    if (!search_gaps(s))
        return;
    sum_pauses(s, &other.m);
    other.m.by_ends = s->by_ends;
    other.m.p = STALL_CHANCE;
    other.first_ns = g_array_index(s->gaps, active, 0).from_ns;
    other.last_ns = g_array_index(s->gaps, active, s->gaps->len - 1).to_ns;
    bool is_larger = other.m.claim_ns > r->m.claim_ns;
    g_free(is_larger ? r->m.waits : other.m.waits);
    if (is_larger)
        *r = other;
}

/* Finds the pauses of a station with the visits `indices`. If there are no pauses, m.waits of the result is NULL. */
static pause_result examine_station(station *s, const uint32_t *indices, uint32_t count)
{
    pause_result r = {0};
    s->by_ends = false;
    s->times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    s->active = g_array_new(FALSE, FALSE, sizeof(active));
    s->gaps = g_array_new(FALSE, FALSE, sizeof(active));
    s->ends = g_array_new(FALSE, FALSE, sizeof(int64_t));
    s->places = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    gather_station(s, indices, count);
    examine_gaps(s, &r);
    s->by_ends = true;
    use_ends(s);
    examine_gaps(s, &r);
    for (guint i = 0; i < s->places->len; i++)
        g_clear_pointer(&s->lasting[g_array_index(s->places, uint32_t, i)].values, g_free);
    g_array_free(s->times, TRUE);
    g_array_free(s->active, TRUE);
    g_array_free(s->gaps, TRUE);
    g_array_free(s->ends, TRUE);
    g_array_free(s->places, TRUE);
    return r;
}

/* ---- all stations ---- */

typedef struct instance_list {
    const char **programs;  /* the name of each instance's program in places */
    uint32_t *numbers;      /* for each instance: the number of the first instance of its program */
    uint32_t *order, count; /* the instances, by program and then by host */
    uint32_t *first;        /* indexed by instance, with one more element: the instance's first index in visits */
    uint32_t *visits;       /* indices of visits, grouped by instance */
} instance_list;

static int by_program_and_host(const void *a, const void *b, void *user)
{
    const void *const *context = user;
    const instance_list *l = context[0];
    const visits *v = context[1];
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint32_t host = instance_at(v, i)->first, other_host = instance_at(v, j)->first;
    if (l->numbers[i] != l->numbers[j])
        return l->numbers[i] < l->numbers[j] ? -1 : 1;
    return host != other_host ? (host < other_host ? -1 : 1) : (i > j) - (i < j);
}

/* Sorts the instances by program and then by host. */
static void sort_instances(instance_list *l, const visits *v)
{
    GHashTable *firsts = g_hash_table_new(NULL, NULL); /* maps a program to its first instance + 1 */
    const void *context[] = {l, v};
    l->numbers = g_new0(uint32_t, v->instances->len + 1);
    l->order = g_new0(uint32_t, v->instances->len + 1);
    l->count = 0;
    for (guint n = 0; n < v->instances->len; n++) {
        guint known = GPOINTER_TO_UINT(g_hash_table_lookup(firsts, l->programs[n]));
        if (l->programs[n] == NULL)
            continue;
        if (known == 0)
            g_hash_table_insert(firsts, (gpointer)l->programs[n], GUINT_TO_POINTER(known = n + 1));
        l->numbers[n] = known - 1;
        l->order[l->count++] = n;
    }
    g_hash_table_destroy(firsts);
    qsort_r(l->order, l->count, sizeof *l->order, by_program_and_host, context);
}

static void instance_list_fill(instance_list *l, const visits *v)
{
    guint count = v->instances->len;
    l->programs = g_new0(const char *, count + 1);
    l->first = g_new0(uint32_t, count + 2);
    l->visits = g_new(uint32_t, 2 * (size_t)v->all->len + 1);
    for (guint i = 0; i < v->sites->len; i++) {
        const site *at = site_at(v, i);
        const place *p = place_at(v, at->place);
        l->programs[at->instance] = p->program;
        if (p->kind == PLACE_EDGE)
            l->programs[at->from_instance] = p->from_program;
    }
    sort_instances(l, v);
    for (int pass = 0; pass < 2; pass++) { /* count, then write; first[n + 1] is the next index for instance n */
        for (guint i = 0; i < v->all->len; i++) {
            const site *at = site_at(v, visit_at(v, i)->site);
            uint32_t *slot = &l->first[at->instance + 1 + !pass];
            if (pass == 1)
                l->visits[*slot] = i;
            ++*slot;
            if (at->from_instance == at->instance)
                continue;
            slot = &l->first[at->from_instance + 1 + !pass];
            if (pass == 1)
                l->visits[*slot] = i;
            ++*slot;
        }
        for (guint n = 0; pass == 0 && n < count; n++)
            l->first[n + 2] += l->first[n + 1];
    }
}

static family family_new(const visits *v)
{
    uint32_t count = v->all->len;
    family f = {g_new0(uint32_t, count + 2), g_new(uint32_t, count + 1)};
    for (int pass = 0; pass < 2; pass++) { /* pass 0 counts, and pass 1 writes */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t parent = visit_at(v, i)->parent;
            if (parent == VISIT_NONE)
                continue;
            uint32_t *slot = &f.first[parent + 1];
            if (pass == 1)
                f.children[*slot] = i;
            ++*slot;
        }
        if (pass == 1)
            break;
        /* Replace each count by the number of children of earlier parents. The second pass then increases this number
         * by the count. */
        uint32_t before = 0;
        for (uint32_t i = 1; i <= count; i++) {
            uint32_t own = f.first[i];
            f.first[i] = before;
            before += own;
        }
    }
    return f;
}

/* Returns the largest claim of the results from index `first`, in nanoseconds. */
static double largest_claim(const GArray *results, guint first)
{
    double largest_ns = 0;
    for (guint i = first; i < results->len; i++)
        largest_ns = fmax(largest_ns, g_array_index(results, pause_result, i).m.claim_ns);
    return largest_ns;
}

/*
 * The results from index `first` on belong to the parts of a station. If the pauses of the whole station claim more
 * time than the pauses of any part, replaces these results with the result of the station. Otherwise, frees the
 * station's result.
 */
static void add_whole(GArray *results, guint first, pause_result *r)
{
    if (r->m.claim_ns <= largest_claim(results, first)) {
        g_free(r->m.waits);
        return;
    }
    for (guint i = first; i < results->len; i++)
        g_free(g_array_index(results, pause_result, i).m.waits);
    g_array_set_size(results, first);
    g_array_append_val(results, *r);
}

/* Examines a station that consists of the instances from `from` to `to` - 1 in the order of `l`. An edge between two of
 * these instances is in the lists of both instances, but counts once. */
static pause_result examine_instances(station *s, const instance_list *l, uint32_t from, uint32_t to)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = from; i < to; i++)
        count += l->first[l->order[i] + 1] - l->first[l->order[i]];
    keyed *all = g_new(keyed, count + 1);
    uint32_t *indices = g_new(uint32_t, count + 1), added = 0;
    for (uint32_t i = from; i < to; i++)
        for (uint32_t k = l->first[l->order[i]]; k < l->first[l->order[i] + 1]; k++)
            all[added++].key = l->visits[k];
    keyed_sort(all, count);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || all[i].key != indices[kept - 1])
            indices[kept++] = (uint32_t)all[i].key;
    g_free(all);
    pause_result r = examine_station(s, indices, kept);
    g_free(indices);
    return r;
}

/* Examines the processes of a program on a host and, if there are several, the whole host. */
static void examine_host(station *s, const instance_list *l, uint32_t from, uint32_t to, GArray *found)
{
    guint first = found->len;
    for (uint32_t i = from; i < to && to - from > 1; i++) {
        s->process = instance_at(s->v, l->order[i])->program;
        pause_result r = examine_instances(s, l, i, i + 1);
        if (r.m.waits != NULL)
            keep_result(found, &r);
    }
    s->process = NULL;
    pause_result r = examine_instances(s, l, from, to);
    add_whole(found, first, &r);
}

/* Examines the stations of a program and adds their results. The instances of the program are `from` to `to` - 1 in the
 * order of `l`. */
static void examine_program(station *s, const instance_list *l, uint32_t from, uint32_t to, GArray *results)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(pause_result));
    int hosts = 0;
    s->program = l->programs[l->order[from]];
    for (uint32_t first = from, end; first < to; first = end, hosts++) {
        s->host = instance_at(s->v, l->order[first])->host;
        for (end = first; end < to && instance_at(s->v, l->order[end])->host == s->host; end++)
            ;
        examine_host(s, l, first, end, found);
    }
    s->host = NULL;
    if (hosts > 1) {
        pause_result r = examine_instances(s, l, from, to);
        r.m.hosts = hosts;
        add_whole(found, 0, &r);
    }
    for (guint i = 0; i < found->len; i++)
        keep_result(results, &g_array_index(found, pause_result, i));
    g_array_free(found, TRUE);
}

/* Several programs stop at the same time if their pauses together claim this factor times the time of the pauses of any
 * program. */
#define JOINT_FACTOR 1.5

/* Finds pauses of all programs at the same time, for example if each of them needs a service that stops. `programs` is
 * the number of programs that have pauses. */
static void examine_jointly(station *s, const instance_list *l, uint32_t programs, GArray *results)
{
    if (programs < 2)
        return;
    s->is_joint = true;
    s->program = s->host = s->process = NULL;
    pause_result r = examine_instances(s, l, 0, l->count);
    r.m.is_joint = true;
    if (r.m.waits != NULL && r.m.claim_ns > JOINT_FACTOR * largest_claim(results, 0))
        keep_result(results, &r);
    else
        g_free(r.m.waits);
}

GArray *find_pauses(const visits *v)
{
    GArray *results = g_array_new(FALSE, FALSE, sizeof(pause_result));
    instance_list l;
    survival *lasting = g_new0(survival, v->places->len + 1);
    instance_list_fill(&l, v);
    family f = family_new(v);
    station s = {.v = v, .family = &f, .lasting = lasting};
    uint32_t programs = 0;
    for (uint32_t from = 0, to; from < l.count; from = to) {
        for (to = from; to < l.count && l.numbers[l.order[to]] == l.numbers[l.order[from]]; to++)
            ;
        guint before = results->len;
        examine_program(&s, &l, from, to, results);
        programs += results->len > before;
    }
    examine_jointly(&s, &l, programs, results);
    g_free(f.first);
    g_free(f.children);
    g_free(l.programs);
    g_free(l.numbers);
    g_free(l.order);
    g_free(l.first);
    g_free(l.visits);
    g_free(lasting);
    return results;
}
