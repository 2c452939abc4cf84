/*
 * Waiting for one another, and waiting for a timer, from the times of a leg alone.
 *
 * One after another: at a server that takes one at a time an object waits for those that are there before it. What a
 * passage takes then grows with how many were on the leg when it began, by the time that one is served: a straight line
 * through (how many, how long) that explains most of what passages differ by. Served one by one they leave no faster
 * than that, and when they leave about as fast all the time it is what holds everything up (utilization, as queueing
 * theory has it). Plainer still where the log has the service as a leg of its own, behind the wait: no two are ever on
 * it at once, and hardly ever none, while others wait.
 *
 * A timer: passages that all take the same time though nothing else does, a round one, on a host that is not busy.
 */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSAGES_LEAST = 30 };

/* ---- one after another ---- */

/* Least squares: took = base + slope * waiting. */
typedef struct line {
    double slope_ns, base_ns, r2, mean_waiting;
} line;

static int compare_ends(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* How many were on the leg when each passage began: those that began before less those that had ended. */
static double *waiting_of(const leg *l)
{
    int64_t *ends = g_new(int64_t, l->count);
    double *waiting = g_new(double, l->count);
    for (size_t i = 0; i < l->count; i++)
        ends[i] = l->passages[i].from_ns + l->passages[i].took_ns;
    qsort(ends, l->count, sizeof *ends, compare_ends);
    size_t ended = 0;
    for (size_t i = 0; i < l->count; i++) {
        while (ended < i && ends[ended] <= l->passages[i].from_ns)
            ended++;
        waiting[i] = (double)(i - ended);
    }
    g_free(ends);
    return waiting;
}

static line fit(const leg *l)
{
    double *waiting = waiting_of(l), n = (double)l->count, mean_x = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < l->count; i++)
        mean_x += waiting[i] / n;
    for (size_t i = 0; i < l->count; i++) {
        double x = waiting[i] - mean_x, y = (double)l->passages[i].took_ns - l->mean_ns;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    g_free(waiting);
    line found = {.mean_waiting = mean_x};
    if (xx > 0 && yy > 0) {
        found.slope_ns = xy / xx;
        found.base_ns = l->mean_ns - found.slope_ns * mean_x;
        found.r2 = xy * xy / (xx * yy);
    }
    return found;
}

/* The time from the first passage's beginning to the last one's end. */
static double span_ns(const leg *l)
{
    int64_t last = 0;
    for (size_t i = 0; i < l->count; i++)
        last = MAX(last, l->passages[i].from_ns + l->passages[i].took_ns - l->passages[0].from_ns);
    return (double)last;
}

/*
 * With always as many there a line has nothing to go by. Then what leaves is looked at: those that leave one after the
 * other keep a distance, while those that have nothing to do with one another now and then leave nearly together (the
 * shortest tenth of exponential distances is a tenth of their mean). The former, by the latter.
 */
static double kept_distance(const leg *l, bool at_end)
{
    int64_t *times = g_new(int64_t, l->count);
    for (size_t i = 0; i < l->count; i++)
        times[i] = l->passages[i].from_ns + (at_end ? l->passages[i].took_ns : 0);
    qsort(times, l->count, sizeof *times, compare_ends);
    double mean_ns = (double)(times[l->count - 1] - times[0]) / (double)(l->count - 1);
    for (size_t i = 0; i + 1 < l->count; i++)
        times[i] = times[i + 1] - times[i];
    qsort(times, l->count - 1, sizeof *times, compare_ends);
    double kept = mean_ns > 0 ? (double)times[(l->count - 1) / 10] / mean_ns : 0;
    g_free(times);
    return kept;
}

/* Whether of this leg no two passages are under way at once (but for a fiftieth), and mostly one is. */
static bool is_one_at_a_time(const leg *l)
{
    double shared_ns = 0;
    int64_t end_ns = INT64_MIN;
    for (size_t i = 0; i < l->count; i++) {
        int64_t from = l->passages[i].from_ns, to = from + l->passages[i].took_ns;
        if (end_ns > from)
            shared_ns += (double)(MIN(end_ns, to) - from);
        end_ns = MAX(end_ns, to);
    }
    return shared_ns <= 0.02 * l->total_ns && l->total_ns >= 0.6 * span_ns(l);
}

/* The leg behind l on its host that one object has at a time; NULL where there is none. */
static const leg *served_behind(const observed *o, const leg *l)
{
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *next = g_ptr_array_index(legs, i);
        if (next->lifeline == l->lifeline && next->from_place == l->to_place && next->from_host == l->to_host &&
            leg_is_local(next) && 2 * next->count >= l->count && is_one_at_a_time(next))
            return next;
    }
    return NULL;
}

static void find_serial(findings *f, const leg *l)
{
    const observed *o = f->observed;
    line found = fit(l);
    double served_ns = span_ns(l) / (double)l->count, kept = kept_distance(l, true);
    bool by_line =
        found.r2 >= 0.5 && found.slope_ns > 0 && found.slope_ns >= 0.6 * served_ns && found.slope_ns <= 1.5 * served_ns;
    /* Not where they came at such distances already. */
    bool by_ends = kept >= 0.35 && kept_distance(l, false) < 0.6 * kept && l->mean_ns >= 2 * served_ns;
    const leg *behind = found.mean_waiting < 1 || l->mean_ns < 2 * served_ns ? NULL : served_behind(o, l);
    if (found.mean_waiting < 1 || (!by_line && !by_ends && behind == NULL))
        return;
    guint host = l->from_host;
    pressure p = f->pressures[host];
    double waited = 1 - MIN(1, served_ns / l->mean_ns);
    bool other = p.disk_busy >= 70 || p.cpu_busy >= 85 || p.io_waited >= 30;
    char *where = text_leg(o, l), *one = text_ns(served_ns), *mean = text_ns(l->mean_ns),
         *part = text_share(leg_share(o, l));
    finding *made =
        findings_add(f, "lock", leg_share(o, l) * waited, other ? 0.4 : 0.8, "one after another: %s", where);
    finding_evidence(made, "it takes %s, %s of all time; %.1f are there on the average, and one leaves every %s", mean,
                     part, found.mean_waiting + 1, one);
    if (by_line)
        finding_evidence(
            made, "each one that is there before makes it %.2f ms longer; that explains %.0f %% of its differences",
            found.slope_ns / 1e6, 100 * found.r2);
    else if (by_ends)
        finding_evidence(made, "they leave one at a time: the distance is hardly ever below %.2f of its mean", kept);
    if (behind != NULL)
        finding_evidence(made,
                         "behind it, from %s to %s, there are never two at once, and one is there %.0f %% of the time",
                         behind->from, behind->to, 100 * MIN(1, behind->total_ns / span_ns(behind)));
    if (!other && !isnan(p.cpu_busy))
        finding_evidence(made, "its host's processors are %.0f %% busy%s", p.cpu_busy,
                         isnan(p.disk_busy) ? "" : ", its disks less than 70 %");
    finding_place(made, o, host, l);
    finding_advice(made, "look for what only one may have at a time: a lock, one thread, one connection "
                         "(nlkernel schema run locking names locks)");
    g_free(where);
    g_free(one);
    g_free(mean);
    g_free(part);
}

/* ---- a timer ---- */

typedef struct mode {
    double low_ns, share; /* the narrowest band of 4 % that holds most passages, and the share of them */
} mode;

static mode find_mode(const leg *l)
{
    int64_t *took = g_new(int64_t, l->count);
    for (size_t i = 0; i < l->count; i++)
        took[i] = l->passages[i].took_ns;
    qsort(took, l->count, sizeof *took, compare_ends);
    mode best = {0, 0};
    for (size_t first = 0, end = 0; first < l->count; first++) {
        while (end < l->count && (double)took[end] <= 1.04 * (double)took[first] + 100000)
            end++;
        if ((double)(end - first) > best.share * (double)l->count && took[first] > 0)
            best = (mode){(double)took[first], (double)(end - first) / (double)l->count};
    }
    g_free(took);
    return best;
}

/* Times that people write into programs: 1, 2, 2.5, 3, 4, 5, 10, 15, 20, 25, 30, 40, 50, 75 ms and so on. Timers end
 * late, never early. */
static double round_ns(double ns)
{
    static const double numbers[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7.5, 8};
    /* NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter,cert-flp30-c): powers of ten are exact here */
    for (double decade = 1e5; decade < 1e12; decade *= 10)
        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
            double timer = numbers[i] * decade;
            if (ns >= 0.995 * timer && ns <= 1.05 * timer + 150000)
                return timer;
        }
    return 0;
}

static void find_timer(findings *f, const leg *l)
{
    const observed *o = f->observed;
    mode m = find_mode(l);
    double timer = round_ns(m.low_ns);
    pressure p = f->pressures[l->from_host];
    if (m.share < 0.4 || m.low_ns < 1e6 || timer == 0 || p.cpu_busy >= 70 || p.disk_busy >= 50)
        return;
    double share = leg_share(o, l) * MIN(1, m.share * m.low_ns / l->mean_ns);
    char *where = text_leg(o, l), *time = text_ns(timer), *band = text_ns(m.low_ns), *part = text_share(m.share);
    finding *made = findings_add(f, "timer", share, 0.5 + 0.4 * m.share - (isnan(p.cpu_busy) ? 0.1 : 0),
                                 "a wait of %s in %s", time, where);
    finding_evidence(made, "%s of its %zu passages take %s, to within 4 %%", part, l->count, band);
    if (!isnan(p.cpu_busy))
        finding_evidence(made, "the processors of its host are %.0f %% busy meanwhile", p.cpu_busy);
    finding_place(made, o, l->from_host, l);
    finding_advice(
        made, "look for a sleep, a poll interval or a timer of %s there, and wait for what is awaited instead", time);
    g_free(where);
    g_free(time);
    g_free(band);
    g_free(part);
}

void find_waiting(findings *f)
{
    const observed *o = f->observed;
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (!leg_is_local(l) || l->count < PASSAGES_LEAST || leg_share(o, l) < FINDING_LEAST / 2)
            continue;
        if (!l->sends)
            find_serial(f, l);
        find_timer(f, l);
    }
}
