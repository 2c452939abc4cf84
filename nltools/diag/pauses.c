/*
 * Finds pauses: times without steps although objects are under way. Steps are counted in bins with about ten steps
 * each. A pause is a run of empty bins that chance would hardly make (by Poisson's law, with probability e to the
 * power of -CHANCE). Three or more pauses at even distances have one cause, such as garbage collection or a
 * checkpoint. Each host is examined, and all hosts together. In a pause, unlike a lull, the objects under way take
 * longer than usual for their steps. If that is clear, the distances need not be even.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/numbers.h"
#include "base/time_internal.h"

#include <math.h>
#include <stdlib.h>

#define CHANCE 25.0
enum { BINS_MAX = 200000, PAUSES_MIN = 3, STEPS_A_BIN = 10, STEPS_MIN = 100 };

typedef struct pause_at {
    int64_t from_ns, took_ns;
} pause_at;

typedef struct rhythm {
    GArray *pauses;
    double period_ns, spread, total_ns; /* spread: of the distances, by the period */
    double span_ns;                     /* in which they were looked for */
} rhythm;

/* Returns the ends of the passages to a host; host 0: all. */
static GArray *steps_of(const observed *o, guint host)
{
    const GPtrArray *legs = observed_legs(o);
    GArray *times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        for (size_t k = 0; (host == 0 || l->to_host == host) && k < l->count; k++) {
            int64_t end = l->passages[k].from_ns + l->passages[k].took_ns;
            g_array_append_val(times, end);
        }
    }
    return times;
}

static guint *count_bins(const GArray *times, int64_t from_ns, int64_t width_ns, guint bins)
{
    guint *counts = g_new0(guint, bins + 1);
    for (guint i = 0; i < times->len; i++) {
        int64_t bin = (g_array_index(times, int64_t, i) - from_ns) / width_ns;
        if (bin >= 0 && bin < bins)
            counts[bin]++;
    }
    return counts;
}

/*
 * A pause lasts from the last step before its empty bins to the first step after them. For the bins before and after,
 * edges has the index + 1 of the pause.
 */
typedef struct edges {
    guint *before, *after;
} edges;

static void set_edges(const edges *e, GArray *pauses, const GArray *times, int64_t from_ns, int64_t width_ns,
                      guint bins)
{
    for (guint i = 0; i < pauses->len; i++) {
        pause_at *p = &g_array_index(pauses, pause_at, i);
        *p = (pause_at){INT64_MIN, INT64_MAX}; /* took_ns is when it ends, for now */
    }
    for (guint i = 0; i < times->len; i++) {
        int64_t time_ns = g_array_index(times, int64_t, i), bin = (time_ns - from_ns) / width_ns;
        if (bin < 0 || bin >= bins)
            continue;
        if (e->before[bin] != 0) {
            pause_at *p = &g_array_index(pauses, pause_at, e->before[bin] - 1);
            p->from_ns = MAX(p->from_ns, time_ns);
        }
        if (e->after[bin] != 0) {
            pause_at *p = &g_array_index(pauses, pause_at, e->after[bin] - 1);
            p->took_ns = MIN(p->took_ns, time_ns);
        }
    }
    for (guint i = 0; i < pauses->len; i++) {
        pause_at *p = &g_array_index(pauses, pause_at, i);
        p->took_ns -= p->from_ns;
    }
}

/* The time before a host's first step is not a pause. */
static GArray *find_gaps(const GArray *times, int64_t from_ns, int64_t to_ns)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(pause_at));
    guint bins = CLAMP(times->len / STEPS_A_BIN, 1, BINS_MAX);
    int64_t width_ns = MAX((to_ns - from_ns) / bins, 1);
    guint *counts = count_bins(times, from_ns, width_ns, bins);
    double a_bin = (double)times->len / bins;
    edges e = {g_new0(guint, bins + 1), g_new0(guint, bins + 1)};
    for (guint i = 0; i < bins;) {
        guint end = i;
        while (end < bins && counts[end] == 0)
            end++;
        if ((end - i) * a_bin >= CHANCE && end < bins && i > 0) {
            pause_at p = {0};
            g_array_append_val(found, p);
            e.before[i - 1] = e.after[end] = found->len;
        }
        i = MAX(end, i + 1);
    }
    set_edges(&e, found, times, from_ns, width_ns, bins);
    g_free(e.before);
    g_free(e.after);
    g_free(counts);
    return found;
}

/*
 * Examines the distances between the begins of pauses. A distance may be several periods, because a pause may be
 * missed.
 */
static rhythm rhythm_of(GArray *pauses)
{
    rhythm r = {.pauses = pauses, .spread = INFINITY};
    guint count = pauses->len > 0 ? pauses->len - 1 : 0;
    double *distances = g_new(double, count + 1);
    for (guint i = 0; i < pauses->len; i++)
        r.total_ns += (double)g_array_index(pauses, pause_at, i).took_ns;
    for (guint i = 0; i < count; i++)
        distances[i] =
            (double)(g_array_index(pauses, pause_at, i + 1).from_ns - g_array_index(pauses, pause_at, i).from_ns);
    qsort(distances, count, sizeof *distances, compare_doubles);
    if (count >= PAUSES_MIN - 1) {
        double squares = 0;
        r.period_ns = distances[count / 2];
        for (guint i = 0; i < count; i++) {
            double times = MAX(1, round(distances[i] / r.period_ns));
            squares += pow(distances[i] / times / r.period_ns - 1, 2) / count;
        }
        r.spread = sqrt(squares);
    }
    g_free(distances);
    return r;
}

/* Returns the pauses of at least least_ns. */
static GArray *long_ones(const GArray *pauses, int64_t least_ns)
{
    GArray *kept = g_array_new(FALSE, FALSE, sizeof(pause_at));
    for (guint i = 0; i < pauses->len; i++)
        if (g_array_index(pauses, pause_at, i).took_ns >= least_ns)
            g_array_append_val(kept, g_array_index(pauses, pause_at, i));
    return kept;
}

/*
 * Returns the most regular of: all pauses, and those of at least a quarter, half, or three quarters of the longest.
 * Shorter pauses result from the queues that a long pause leaves.
 */
static rhythm best_rhythm(GArray *pauses)
{
    rhythm best = rhythm_of(pauses);
    int64_t longest = 0;
    for (guint i = 0; i < pauses->len; i++)
        longest = MAX(longest, g_array_index(pauses, pause_at, i).took_ns);
    for (int quarters = 1; quarters <= 3; quarters++) {
        rhythm other = rhythm_of(long_ones(pauses, longest / 4 * quarters));
        rhythm *worse = other.spread < best.spread ? &best : &other;
        g_array_free(worse->pauses, TRUE);
        if (worse == &best)
            best = other;
        pauses = best.pauses;
    }
    return best;
}

/*
 * A rhythm has most of the pauses that its period predicts. Two equal distances are not a rhythm, and few pauses must
 * be very regular. A host that stands still most of the time is slow, and works in bursts; that is not a rhythm of
 * pauses.
 */
static bool is_regular(const rhythm *r)
{
    guint count = r->pauses->len;
    double asked = r->period_ns > 0 ? r->span_ns / r->period_ns : INFINITY;
    double spread_most = count >= 8 ? 0.2 : count >= 5 ? 0.1 : 0.05;
    return count >= PAUSES_MIN && r->spread <= spread_most && count + 1 >= 0.7 * asked &&
           r->total_ns <= 0.5 * r->span_ns;
}

/*
 * Returns how much earlier the pauses of a end than the overlapping pauses of b, on average; NAN if none overlap.
 * Their begins tell less, because an idle host seems to stand still already.
 */
static double lead_ns(const rhythm *a, const rhythm *b)
{
    double sum = 0;
    guint count = 0;
    for (guint i = 0, k = 0; i < a->pauses->len && k < b->pauses->len;) {
        const pause_at *p = &g_array_index(a->pauses, pause_at, i), *q = &g_array_index(b->pauses, pause_at, k);
        if (p->from_ns < q->from_ns + q->took_ns && q->from_ns < p->from_ns + p->took_ns) {
            sum += (double)(q->from_ns + q->took_ns - p->from_ns - p->took_ns);
            count++;
        }
        if (p->from_ns + p->took_ns < q->from_ns + q->took_ns)
            i++;
        else
            k++;
    }
    return count > 0 ? sum / count : NAN;
}

/* Returns the host that continues before all other hosts with a rhythm; 0: none. */
static guint leader(const rhythm *found, guint count)
{
    for (guint h = 1; h < count; h++) {
        bool first = is_regular(&found[h]);
        for (guint k = 1; first && k < count; k++)
            if (k != h && is_regular(&found[k]))
                first = lead_ns(&found[h], &found[k]) > 0.02 * found[h].total_ns / found[h].pauses->len;
        if (first)
            return h;
    }
    return 0;
}

/* ---- objects in pauses ---- */

/* Returns the first pause that ends after a time. */
static guint first_pause(const GArray *pauses, int64_t time_ns)
{
    guint low = 0, high = pauses->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        const pause_at *p = &g_array_index(pauses, pause_at, middle);
        if (p->from_ns + p->took_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The time that objects waited in pauses. held_ns counts only pauses that are long compared with the step's usual
 * time.
 */
typedef struct stopped {
    double all_ns, held_ns;
} stopped;

static void add_passage(stopped *s, const leg *l, const passage *passage, const GArray *pauses)
{
    for (guint i = first_pause(pauses, passage->from_ns); i < pauses->len; i++) {
        const pause_at *p = &g_array_index(pauses, pause_at, i);
        int64_t end_ns = p->from_ns + p->took_ns;
        if (passage->from_ns + passage->took_ns < end_ns)
            break;
        double in_it = (double)(end_ns - MAX(p->from_ns, passage->from_ns));
        s->all_ns += in_it;
        s->held_ns += p->took_ns > l->median_ns ? in_it : 0;
    }
}

/* Measures the objects on a host or on the way there; host 0: anywhere. */
static stopped stopped_on(const observed *o, guint host, const GArray *pauses)
{
    const GPtrArray *legs = observed_legs(o);
    stopped s = {0};
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        for (size_t k = 0; (host == 0 || l->to_host == host) && k < l->count; k++)
            add_passage(&s, l, &l->passages[k], pauses);
    }
    return s;
}

/* Idle times and long steps have no events either. A pause holds up most objects that are under way. */
static bool is_stop(const observed *o, guint host, const rhythm *r)
{
    stopped s = stopped_on(o, host, r->pauses);
    return s.held_ns >= 0.5 * s.all_ns && s.held_ns / observed_total_ns(o) >= 0.1 * r->total_ns / r->span_ns;
}

static void pauses_tell(findings *f, guint host, const rhythm *r)
{
    const observed *o = f->observed;
    double wall = (double)(observed_to_ns(o) - observed_from_ns(o));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only a rhythm of pauses is told of */
    char first[NL_TIME_TEXT_SIZE];
    const char *period = text_ns(r->period_ns), *each = text_ns(r->total_ns / r->pauses->len),
               *part = text_share(r->total_ns / wall);
    finding *made = findings_add(f, "pause", r->total_ns / wall, 0.95 - r->spread, "%s stops every %s for %s",
                                 host == 0 ? "everything" : observed_host(o, host), period, each);
    finding_evidence(made, "%u times, nothing happened for %s, %s of the time; the distances differ by %.0f %%",
                     r->pauses->len, each, part, 100 * r->spread);
    nl_time_format_iso(g_array_index(r->pauses, pause_at, 0).from_ns, first);
    finding_evidence(made, "the first time at %s", first);
    finding_place(made, o, host, NULL);
    finding_advice(made,
                   "look for what happens every %s there: garbage collection, a checkpoint, a cron job, write-back "
                   "(nlkernel record shows what runs then)",
                   period);
}

/* ---- at uneven distances ---- */

static double mean_took(const GArray *pauses, guint from, guint to)
{
    double sum = 0;
    for (guint i = from; i < to; i++)
        sum += (double)g_array_index(pauses, pause_at, i).took_ns;
    return sum / (to - from);
}

static void tell_uneven(findings *f, guint host, const GArray *pauses, double held)
{
    const observed *o = f->observed;
    guint third = pauses->len / 3;
    double first_ns = mean_took(pauses, 0, third), last_ns = mean_took(pauses, pauses->len - third, pauses->len);
    char first[NL_TIME_TEXT_SIZE];
    const char *each = text_ns(mean_took(pauses, 0, pauses->len)), *early = text_ns(first_ns), *late = text_ns(last_ns);
    finding *made = findings_add(f, "pause", held / observed_total_ns(o), 0.75, "%s stops now and then, for %s",
                                 observed_host(o, host), each);
    finding_evidence(made, "%u times, nothing happened there for %s on average, while objects waited", pauses->len,
                     each);
    if (last_ns > 1.5 * first_ns || first_ns > 1.5 * last_ns)
        finding_evidence(made, "they become %s: the first third take %s, the last third %s",
                         last_ns > first_ns ? "longer" : "shorter", early, late);
    nl_time_format_iso(g_array_index(pauses, pause_at, 0).from_ns, first);
    finding_evidence(made, "the first time at %s", first);
    finding_place(made, o, host, NULL);
    finding_advice(made, "look for what stops it: garbage collection, write-back, lack of memory, a global "
                         "lock (nlkernel record shows what runs then)");
}

/* Reports the host whose uneven pauses hold up the most time. */
static void find_uneven(findings *f, GArray *const *pauses, guint hosts)
{
    const observed *o = f->observed;
    double most = 0;
    guint worst = 0;
    for (guint h = 1; h < hosts; h++) {
        double wall = (double)(observed_to_ns(o) - observed_from_ns(o)),
               stood = pauses[h]->len >= PAUSES_MIN ? mean_took(pauses[h], 0, pauses[h]->len) * pauses[h]->len : wall;
        stopped s = stood <= 0.5 * wall ? stopped_on(o, h, pauses[h]) : (stopped){0};
        double held = s.held_ns >= 0.5 * s.all_ns ? s.held_ns : 0;
        if (held > most) {
            most = held;
            worst = h;
        }
    }
    if (worst != 0 && most >= FINDING_MIN * observed_total_ns(o))
        tell_uneven(f, worst, pauses[worst], most);
}

/*
 * If one host pauses, the others soon have nothing to do. The cause is the host with the longest pauses or, if they
 * are equal, the host that continues first, unless all continue at once.
 */
void find_pauses(findings *f)
{
    const observed *o = f->observed;
    guint longest = 0, count = observed_host_count(o);
    rhythm *found = g_new0(rhythm, count);
    GArray **gaps = g_new(GArray *, count);
    for (guint h = 0; h < count; h++) {
        GArray *times = steps_of(o, h);
        found[h].pauses = g_array_new(FALSE, FALSE, sizeof(pause_at));
        gaps[h] = g_array_new(FALSE, FALSE, sizeof(pause_at));
        if (times->len >= STEPS_MIN) {
            g_array_free(found[h].pauses, TRUE);
            g_array_free(gaps[h], TRUE);
            gaps[h] = find_gaps(times, observed_from_ns(o), observed_to_ns(o));
            found[h] = best_rhythm(long_ones(gaps[h], 0));
        }
        found[h].span_ns = (double)(observed_to_ns(o) - observed_from_ns(o));
        g_array_free(times, TRUE);
        if (!is_regular(&found[h]))
            found[h].total_ns = 0;
        if (found[h].total_ns > 1.3 * found[longest].total_ns)
            longest = h;
    }
    guint first = leader(found, count);
    if (first != 0 && 2 * found[first].total_ns >= found[longest].total_ns)
        longest = first;
    if (is_regular(&found[longest]) && is_stop(o, longest, &found[longest]))
        pauses_tell(f, longest, &found[longest]);
    else
        find_uneven(f, gaps, count);
    for (guint h = 0; h < count; h++) {
        g_array_free(found[h].pauses, TRUE);
        g_array_free(gaps[h], TRUE);
    }
    g_free(gaps);
    g_free(found);
}
