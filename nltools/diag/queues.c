/*
 * Finds queues from the times of objects alone.
 *
 * In a queue with one server, the time of a passage grows linearly with the number of objects on the leg when the
 * passage begins. The slope is the service time, and the line explains most of the differences. If objects leave at
 * this rate all the time, the server limits the throughput (utilization in queueing theory). If the log shows the
 * service behind the wait, capacity.c finds the number of servers. Waits before a full section wait for the same
 * server (back pressure).
 */
#include "config.h"

#include "diag/capacity.h"
#include "diag/findings.h"
#include "diag/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { NEIGHBOURS = 50 };

/* ---- one after another ---- */

/*
 * A least-squares line, time = base + slope * waiting, and the share of the differences that it explains, for all
 * passages and for neighbours.
 */
typedef struct line {
    double slope_ns, r2, near_r2, mean_waiting;
} line;

/* Returns the number of objects on the leg when each passage began, for g_free. */
static double *waiting_of(const leg *l)
{
    int64_t *ends = g_new(int64_t, l->count);
    double *waiting = g_new(double, l->count);
    for (size_t i = 0; i < l->count; i++)
        ends[i] = l->passages[i].from_ns + l->passages[i].took_ns;
    qsort(ends, l->count, sizeof *ends, compare_ns);
    size_t ended = 0;
    for (size_t i = 0; i < l->count; i++) {
        while (ended < i && ends[ended] <= l->passages[i].from_ns)
            ended++;
        waiting[i] = (double)(i - ended);
    }
    g_free(ends);
    return waiting;
}

/* Sums of squares and products of n pairs of numbers minus their means. */
typedef struct products {
    double n, mean_x, mean_y, xx, xy, yy;
} products;

static products products_of(const passage *passages, const double *waiting, size_t n)
{
    products p = {.n = (double)n};
    for (size_t i = 0; i < n; i++) {
        p.mean_x += waiting[i] / p.n;
        p.mean_y += (double)passages[i].took_ns / p.n;
    }
    for (size_t i = 0; i < n; i++) {
        double x = waiting[i] - p.mean_x, y = (double)passages[i].took_ns - p.mean_y;
        p.xx += x * x;
        p.xy += x * y;
        p.yy += y * y;
    }
    return p;
}

static double r2_of(const products *p)
{
    return p->xx > 0 && p->yy > 0 ? p->xy * p->xy / (p->xx * p->yy) : 0;
}

/*
 * A step that is slow for any reason also has more objects at a time (Little's law), and a line fits. If the waiting
 * objects are the reason, the line also fits among neighbours.
 */
static line fit(const leg *l)
{
    double *waiting = waiting_of(l);
    products all = products_of(l->passages, waiting, l->count), near = {0};
    for (size_t i = 0; i < l->count; i += NEIGHBOURS) {
        products p = products_of(l->passages + i, waiting + i, MIN(NEIGHBOURS, l->count - i));
        near.xx += p.xx;
        near.xy += p.xy;
        near.yy += p.yy;
    }
    g_free(waiting);
    line found = {.mean_waiting = all.mean_x, .r2 = r2_of(&all), .near_r2 = r2_of(&near)};
    if (all.xx > 0)
        found.slope_ns = all.xy / all.xx;
    return found;
}

/* Returns the time from the begin of the first passage to the end of the last one. */
static double span_ns(const leg *l)
{
    int64_t last = 0;
    for (size_t i = 0; i < l->count; i++)
        last = MAX(last, l->passages[i].from_ns + l->passages[i].took_ns - l->passages[0].from_ns);
    return (double)last;
}

/*
 * If the number of waiting objects is constant, there is no line. Objects that leave one after the other keep a
 * distance, while independent objects sometimes leave almost together (the shortest tenth of exponential distances is
 * below a tenth of the mean). Returns the shortest tenth of the distances by their mean.
 */
static double kept_distance(const leg *l, bool at_end)
{
    int64_t *times = g_new(int64_t, l->count);
    for (size_t i = 0; i < l->count; i++)
        times[i] = l->passages[i].from_ns + (at_end ? l->passages[i].took_ns : 0);
    qsort(times, l->count, sizeof *times, compare_ns);
    double mean_ns = (double)(times[l->count - 1] - times[0]) / (double)(l->count - 1);
    for (size_t i = 0; i + 1 < l->count; i++)
        times[i] = times[i + 1] - times[i];
    qsort(times, l->count - 1, sizeof *times, compare_ns);
    double kept = mean_ns > 0 ? (double)times[(l->count - 1) / 10] / mean_ns : 0;
    g_free(times);
    return kept;
}

bool leg_ends_singly(const leg *l)
{
    double kept = kept_distance(l, true);
    return kept >= 0.35 && kept_distance(l, false) < 0.6 * kept && l->mean_ns >= 2 * span_ns(l) / (double)l->count;
}

/* ---- queues ---- */

/* A leg on which objects wait for earlier ones. */
typedef struct queue {
    const leg *leg;
    line line;
    double served_ns, kept, share;
    bool by_line, by_ends;
    capacity behind;
    bool is_shared; /* by all hosts that have such a leg */
    double before;  /* the share of all time of waits before it that are due to it */
    bool is_due;    /* it is, to a later one */
} queue;

/* Returns the number of legs between the same events. */
static guint family_size(const GPtrArray *legs, guint index)
{
    const leg *l = g_ptr_array_index(legs, index);
    guint first = index;
    while (first > 0 && leg_is_same_way(l, g_ptr_array_index(legs, first - 1)))
        first--;
    return leg_way_end(legs, index) - first;
}

static bool judge(const observed *o, guint index, queue *q)
{
    const GPtrArray *legs = observed_legs(o);
    const leg *l = g_ptr_array_index(legs, index);
    guint family = family_size(legs, index);
    line found = fit(l);
    double served_ns = span_ns(l) / (double)l->count, kept = kept_distance(l, true);
    *q = (queue){.leg = l, .line = found, .served_ns = served_ns, .kept = kept};
    if (found.mean_waiting < 1 && family == 1)
        return false;
    q->by_line = found.r2 >= 0.5 && found.near_r2 >= 0.25 && found.slope_ns > 0 && found.slope_ns >= 0.6 * served_ns &&
                 found.slope_ns <= 1.5 * served_ns;
    q->by_ends = leg_ends_singly(l);
    if (found.mean_waiting >= 1 && l->mean_ns >= 2 * served_ns)
        q->behind = capacity_behind(o, l, false);
    if (q->behind.places == 0 && family > 1 && found.mean_waiting * family >= 1) {
        q->behind = capacity_behind(o, l, true);
        q->is_shared = q->behind.places > 0;
    }
    q->share = leg_share(o, l) * (q->is_shared ? 1 : 1 - MIN(1, served_ns / l->mean_ns));
    return q->behind.places > 0 || (found.mean_waiting >= 1 && (q->by_line || q->by_ends));
}

/* Attributes waits to a later queue if everything between is full. Legs are in the order of their places. */
static void follow_back(GArray *queues)
{
    for (guint i = 0; i < queues->len; i++) {
        queue *q = &g_array_index(queues, queue, i);
        for (guint k = i + 1; k < queues->len && !q->is_due && q->behind.places > 0; k++) {
            queue *later = &g_array_index(queues, queue, k);
            if (later->leg->lifeline == q->leg->lifeline && later->leg->from_place >= q->leg->to_place &&
                later->leg->to_place <= q->behind.until && 2 * later->leg->count >= q->leg->count) {
                q->is_due = true;
                later->before += q->share + q->before;
            }
        }
    }
}

static void show_queue(finding *made, const queue *q)
{
    const capacity *c = &q->behind;
    char **events = q->leg->lifeline->events;
    if (q->by_line)
        finding_evidence(made, "each waiting object adds %.2f ms; that explains %.0f %% of the differences",
                         q->line.slope_ns / 1e6, 100 * q->line.r2);
    else if (q->by_ends)
        finding_evidence(made, "objects leave one at a time: their distance is hardly ever below %.2f of its mean",
                         q->kept);
    if (c->places == 1)
        finding_evidence(made,
                         "behind it, from %s to %s, there is never more than one object, and one %.0f %% of the time",
                         q->leg->to, events[c->until], 100 * c->used);
    else if (c->places > 1)
        finding_evidence(made,
                         "behind it, from %s to %s, there are never more than %u objects%s, and that many %.0f %% of "
                         "the time; a waiting object enters as another leaves",
                         q->leg->to, events[c->until], c->places, q->is_shared ? " on all hosts together" : "",
                         100 * c->full);
    if (q->before > 0) {
        const char *before = text_share(q->before);
        finding_evidence(made, "earlier waits have the same cause: another %s of all time", before);
    }
}

static void tell_queue(findings *f, const queue *q)
{
    const observed *o = f->observed;
    const leg *l = q->leg;
    pressure p = f->pressures[l->from_host];
    bool other = p.disk_busy >= 70 || p.cpu_busy >= 85 || p.io_waited >= 30;
    double sure = other ? 0.4 : l->sends ? 0.6 : 0.8;
    const char *where = text_leg(o, l), *one = text_ns(q->served_ns), *mean = text_ns(l->mean_ns),
               *part = text_share(leg_share(o, l));
    finding *made =
        q->behind.places > 1
            ? findings_add(f, "lock", q->share + q->before, sure, "%u at a time: %s", q->behind.places, where)
            : findings_add(f, "lock", q->share + q->before, sure, "one at a time: %s", where);
    finding_evidence(made, "it takes %s, %s of all time; %.1f objects are there on average, and one leaves every %s",
                     mean, part, q->line.mean_waiting + 1, one);
    show_queue(made, q);
    if (!other && !isnan(p.cpu_busy))
        finding_evidence(made, "the processors of its host are %.0f %% busy%s", p.cpu_busy,
                         isnan(p.disk_busy) ? "" : ", and its disks less than 70 %");
    finding_place(made, o, l->from_host, l);
    if (q->behind.places > 1)
        finding_advice(made,
                       "look for a pool of %u there: threads, connections, slots; or for what "
                       "makes each object stay so long",
                       q->behind.places);
    else
        finding_advice(made,
                       "look for what only one object can use at a time: a lock, one thread, one connection "
                       "(nlkernel rules run locking names locks)%s",
                       l->sends ? "; or the path out of that host is full" : "");
}

/* If TCP has data to send most of the time, a leg that includes sending waits for TCP. */
static bool may_queue(const findings *f, const leg *l)
{
    return leg_is_local(l) && l->count >= PASSAGES_TELLING && leg_share(f->observed, l) >= FINDING_MIN / 4 &&
           !(l->sends && f->pressures[l->from_host].sending >= 0.5);
}

void find_queues(findings *f)
{
    const observed *o = f->observed;
    const GPtrArray *legs = observed_legs(o);
    GArray *queues = g_array_new(FALSE, FALSE, sizeof(queue));
    for (guint i = 0; i < legs->len; i++) {
        queue q;
        if (may_queue(f, g_ptr_array_index(legs, i)) && judge(o, i, &q))
            g_array_append_val(queues, q);
    }
    follow_back(queues);
    for (guint i = 0; i < queues->len; i++)
        if (!g_array_index(queues, queue, i).is_due)
            tell_queue(f, &g_array_index(queues, queue, i));
    g_array_free(queues, TRUE);
}
