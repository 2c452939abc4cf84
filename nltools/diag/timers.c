/*
 * Finds waits for timers from the times of objects alone: passages that all take the same round time on an idle host;
 * passages of which some take a constant time more than the others, a time-out; and passages that end together at even
 * distances, the beats of a poll.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { TOOK_MAX = 1 << 12, EXTRA_MIN = 5, BEATS_MIN = 10 };

/* ---- a timer ---- */

typedef struct mode {
    double low_ns, share; /* the narrowest band of 4 % that holds most passages, and the share of them */
} mode;

static mode find_mode(const leg *l)
{
    int64_t *took = g_new(int64_t, l->count);
    for (size_t i = 0; i < l->count; i++)
        took[i] = l->passages[i].took_ns;
    qsort(took, l->count, sizeof *took, compare_ns);
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

/*
 * Returns the round time that a programmer may have chosen, such as 1, 2, 2.5, 5 or 10 ms; 0: none. Timers end late,
 * never early.
 */
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
    const char *where = text_leg(o, l), *time = text_ns(timer), *band = text_ns(m.low_ns), *part = text_share(m.share);
    finding *made = findings_add(f, "timer", share, 0.5 + 0.4 * m.share - (isnan(p.cpu_busy) ? 0.1 : 0),
                                 "a wait of %s in %s", time, where);
    finding_evidence(made, "%s of %zu passages take %s, to within 4 %%", part, l->count, band);
    if (!isnan(p.cpu_busy))
        finding_evidence(made, "the processors of its host are %.0f %% busy meanwhile", p.cpu_busy);
    finding_place(made, o, l->from_host, l);
    finding_advice(made, "look for a sleep, a poll interval or a timer of %s there, and wait for the event instead",
                   time);
}

/* ---- a time-out ---- */

/* Two groups of passages, of which one takes a constant time more. */
typedef struct extra {
    double usual_ns, more_ns, share; /* share of passages that take more */
} extra;

/* Returns the sorted times of passages, or of a sample if there are many. */
static int64_t *sample_took(const leg *l, size_t *count)
{
    size_t each = l->count / TOOK_MAX + 1;
    int64_t *took = g_new(int64_t, l->count / each + 1);
    *count = 0;
    for (size_t i = 0; i < l->count; i += each)
        took[(*count)++] = l->passages[i].took_ns;
    qsort(took, *count, sizeof *took, compare_ns);
    return took;
}

/* Returns the distance from the 10th to the 90th percentile. */
static double width(const int64_t *took, size_t count)
{
    return (double)(took[count - 1 - count / 10] - took[count / 10]);
}

/*
 * Finds the first wide gap between the times. The passages above it waited for a constant time if they differ hardly
 * more than those below, because objects of two sizes differ in proportion to their size. If less than a tenth is
 * below, the gap is not significant.
 */
static bool find_extra(const int64_t *took, size_t count, extra *found)
{
    int64_t widest = 0;
    size_t below = EXTRA_MIN;
    for (size_t i = EXTRA_MIN; i + EXTRA_MIN <= count; i++)
        widest = MAX(widest, took[i] - took[i - 1]);
    while (below + EXTRA_MIN <= count && took[below] - took[below - 1] < widest / 2)
        below++;
    if (below + EXTRA_MIN > count)
        return false;
    size_t above = count - below;
    double usual_ns = (double)took[below / 2], more_ns = (double)took[below + above / 2] - usual_ns,
           spread_ns = width(took, below);
    *found = (extra){usual_ns, more_ns, (double)above / (double)count};
    return below >= above / 9 && spread_ns <= 0.5 * more_ns &&
           width(took + below, above) <= 2 * spread_ns + 0.02 * more_ns;
}

static void find_timeout(findings *f, const leg *l)
{
    const observed *o = f->observed;
    size_t count;
    int64_t *took = sample_took(l, &count);
    extra found;
    bool is_there = find_extra(took, count, &found);
    g_free(took);
    if (!is_there || found.more_ns < 1e6)
        return;
    double timer = round_ns(found.more_ns);
    double share = found.more_ns * found.share * (double)l->count / observed_total_ns(o);
    const char *where = text_leg(o, l), *time = text_ns(timer > 0 ? timer : found.more_ns),
               *part = text_share(found.share), *more = text_ns(found.more_ns), *usual = text_ns(found.usual_ns);
    finding *made = findings_add(f, "timer", share, timer > 0 ? 0.8 : 0.6, "some wait %s longer in %s", time, where);
    finding_evidence(made, "%s of %zu passages take %s more than the others, which take %s; none are between", part,
                     l->count, more, usual);
    finding_place(made, o, l->to_host, l);
    finding_advice(made,
                   "look for something that happens after %s there: a time-out and a retry, a name server without an "
                   "answer, a delayed acknowledgement",
                   time);
}

/* ---- a beat ---- */

/*
 * Returns the time between the beats at which passages of a leg end together; 0 if there are no beats. The distances
 * between ends are then of two kinds: almost zero, and equal distances between beats, which add up to nearly the whole
 * time.
 */
static double beat_ns(const leg *l)
{
    size_t count = MIN(l->count, TOOK_MAX), beats = 0;
    int64_t *times = g_new(int64_t, count);
    for (size_t i = 0; i < count; i++)
        times[i] = l->passages[i].from_ns + l->passages[i].took_ns;
    qsort(times, count, sizeof *times, compare_ns);
    double span = (double)(times[count - 1] - times[0]), together = 0;
    for (size_t i = 0; i + 1 < count; i++)
        times[i] = times[i + 1] - times[i];
    qsort(times, count - 1, sizeof *times, compare_ns);
    int64_t longest = times[count - 2 - (count - 2) / 100];
    while (beats + 1 < count && 2 * times[count - 2 - beats] >= longest)
        together += (double)times[count - 2 - beats++];
    double period = (double)times[count - 1 - beats / 2 - 1];
    size_t alike = 0;
    for (size_t i = 0; i < beats; i++)
        alike += fabs((double)times[count - 2 - i] - period) <= 0.1 * period;
    /* Several passages must end at each beat; otherwise, all distances are beats. */
    if (beats < BEATS_MIN || 3 * beats > count || together < 0.9 * span || (double)alike < 0.9 * (double)beats)
        period = 0;
    g_free(times);
    return period;
}

/* A passage waits for the next beat, half of the period on average. */
static void find_beat(findings *f, const leg *l)
{
    const observed *o = f->observed;
    double period = beat_ns(l);
    if (period < 1e6 || (double)l->high_ns > 1.2 * period || l->mean_ns < 0.25 * period)
        return;
    const char *where = text_leg(o, l), *time = text_ns(period), *mean = text_ns(l->mean_ns);
    finding *made = findings_add(f, "timer", leg_share(o, l), 0.85, "a beat of %s in %s", time, where);
    finding_evidence(made, "passages end together, every %s, and wait for that, %s on average", time, mean);
    finding_place(made, o, l->to_host, l);
    finding_advice(made, "look for a poll interval or a timer of %s there, and wait for what is awaited instead", time);
}

void find_timers(findings *f)
{
    const observed *o = f->observed;
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (l->count < PASSAGES_TELLING || leg_share(o, l) < FINDING_MIN / 4)
            continue;
        if (leg_is_local(l))
            find_timer(f, l);
        find_timeout(f, l);
        find_beat(f, l);
    }
}
