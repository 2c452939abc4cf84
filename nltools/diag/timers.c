#include "config.h"

#include <math.h>

#include "diag/mechanisms.h"
#include "diag/processes.h"
#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

enum {
    PERIODS = 256 /* number of periods that find_period tries */,
    GAPS_MIN = 10,
    VISITS_MIN = 60,
    TIMED_OUT_MIN = 5,
    FREQUENT_ONE_OF = 100, /* a timeout needs at least one waiting visit in FREQUENT_ONE_OF visits */
    RARE_ONE_OF = 400,     /* a timeout of TCP needs at least one in RARE_ONE_OF visits */
    RESOLUTION_STEPS = 4,  /* differences below this number of steps of the log's resolution are no evidence */
    GIVEN_UP_PERCENT = 3,  /* minimum part of the visits that callers give up, in percent */
    GIVEN_UP_LONGER = 10,  /* at most one visit may be longer for each 10 given-up visits */
    GIVEN_UP_DENSITY = 5,  /* minimum ratio of the given-up visits to the visits with similar times */
    MIXED_ONE_OF = 10,     /* at a mixed site or host, more than one in MIXED_ONE_OF visits is short */
    BETWEEN_MAX = 3        /* maximum number of visits whose times are between the usual times and a timeout */
};

/* Visits that callers give up: NARROW is the maximum ratio of the longest to the shortest time. GIVEN_UP_FACTOR is the
 * minimum ratio of the shortest time to the median of all visits. */
#define NARROW 1.02
#define GIVEN_UP_FACTOR 1.5

/* TCP delays an acknowledgement for TCP_DELACK_MIN of Linux and, at most, one period of the kernel's timer (HZ=250). */
#define DELACK_MIN_NS 40e6
#define KERNEL_TICK_NS 4e6

/* Linux sends a lost segment again after TCP_RTO_MIN plus the round-trip time. */
#define RETRANSMISSION_MIN_NS 200e6
#define ROUND_TRIP_MAX_NS 30e6

/* Maximum part of the delayed messages that wait for less than the whole delay if TCP sends lost segments again. */
#define PARTLY_MAX 0.1

/* Maximum probability that the number of given-up visits without a result is as large by chance. */
#define WITHOUT_RESULT_CHANCE 1e-3

/* If at least this part of the slow visits follows a slow visit, all visits are slow in a time range. */
#define FOLLOW_MIN 0.9

/* The module raises usual times and their spread to at least this part of a slow visit's time. */
#define NOTHING 0.01

/* Maximum range of the middle half of constant times, as a part of their median. */
#define CONSTANT_SPREAD 0.05

/* Minimum regularity of the ends of visits that wait for a timer. */
#define REGULARITY_MIN 0.8

/* A visit without calls has at least this part of its duration as its own time. The other part is rounding. */
#define OWN_PART_MIN 0.99

/* If all messages wait for a delay, at least this part of them takes the same time. */
#define CONSTANT_MIN 0.9

/* Returns the number of gaps from half a period to `periods_max` periods. */
static size_t count_gaps(const double *gaps, size_t count, double period, double periods_max)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += gaps[i] > period / 2 && gaps[i] < periods_max * period;
    return n;
}

/*
 * Returns the mean of cos(2 pi gap / period) over the gaps that count_gaps counts. The mean is 1 if all these gaps are
 * multiples of the period. Returns 0 if the mean is less than `result_min`. The loop ends as soon as the mean cannot
 * reach `result_min`, because few periods are regular, and cosines are expensive.
 */
static double regularity(const double *gaps, size_t count, double period, double periods_max, double result_min)
{
    size_t used = count_gaps(gaps, count, period, periods_max);
    double missing = 0, missing_max = (1 - result_min) * (double)used; /* difference from `used` */
    for (size_t i = 0; i < count && missing <= missing_max; i++)
        if (gaps[i] > period / 2 && gaps[i] < periods_max * period)
            missing += 1 - cos(2 * G_PI * gaps[i] / period);
    return used > 0 && missing <= missing_max ? 1 - missing / (double)used : 0;
}

/* Finds the longest period such that most gaps are close to a multiple of the period. Returns 0 if no period is regular
 * enough. Sets *best to the regularity of the gaps, or to 0 if the regularity is much less than REGULARITY_MIN. */
static double find_period(double *gaps, size_t count, double *best)
{
    double middle = median_of(gaps, count), period = 0;
    *best = 0;
    for (double p = middle / 12; p < 1.2 * middle; p *= 1.01) {
        size_t used = count_gaps(gaps, count, p, 8);
        if (used < GAPS_MIN || used * 2 <= count)
            continue;
        /* integer fractions of a period are as regular as the period, so prefer the longest period */
        double result_min = fmax(*best, REGULARITY_MIN) * 0.97, r = regularity(gaps, count, p, 8, result_min);
        if (r > *best || (r > *best * 0.97 && p > 1.5 * period)) {
            *best = fmax(r, *best);
            period = p;
        }
    }
    for (double p = 0.99 * period; period > 0 && p < 1.01 * period; p *= 1.0005) {
        double r = regularity(gaps, count, p, 20, *best);
        if (r > *best) {
            *best = r;
            period = p;
        }
    }
    return period;
}

/* Sorts times, and computes the gaps between them that are longer than `resolution`. Returns the number of gaps. */
static size_t gaps_between(int64_t *times, size_t count, double resolution, double *gaps)
{
    size_t n = 0;
    qsort(times, count, sizeof *times, nl_compare_int64);
    for (size_t i = 1; i < count; i++)
        if ((double)(times[i] - times[i - 1]) > resolution)
            gaps[n++] = (double)(times[i] - times[i - 1]);
    return n;
}

static double quantile_of(const sample *s, double share)
{
    double *sorted = g_memdup2(s->y, s->count * sizeof(double));
    sort_doubles(sorted, s->count);
    double value = sorted[(size_t)(share * (s->count - 1))];
    g_free(sorted);
    return value;
}

static void claim_above(const sample *s, double base, mechanism *m)
{
    m->waits = g_new0(float, s->visits->all->len + 1);
    for (uint32_t i = 0; i < s->count; i++) {
        double wait = MAX(0, s->y[i] - base);
        m->waits[s->index[i]] = (float)wait;
        m->claim_ns += wait * s->weight[i] * s->scale;
    }
}

/* Returns whether the visits take place within a program, and not on the path between hosts. */
static bool is_local(const sample *s)
{
    const place *p = place_at(s->visits, s->place);
    const site *at = site_at(s->visits, g_array_index(p->sites, uint32_t, 0));
    return p->kind == PLACE_SPAN || (p->program == p->from_program && at->host == at->from_host);
}

/*
 * Computes those gaps between the ends, or between the starts, of a site's visits that are longer than `resolution`. If
 * `number` is VISIT_NONE, computes the gaps of each site. Returns the number of gaps.
 */
static size_t gaps_of_site(const sample *s, uint32_t number, bool ends, double resolution, double *gaps)
{
    const place *p = place_at(s->visits, s->place);
    int64_t *times = g_new(int64_t, s->count + 1);
    size_t gap_count = 0;
    for (guint n = 0; n < p->sites->len; n++) {
        uint32_t of = g_array_index(p->sites, uint32_t, n);
        size_t count = 0;
        for (uint32_t i = 0; i < s->count && (number == VISIT_NONE || of == number); i++) {
            const visit *x = visit_at(s->visits, s->index[i]);
            if (x->site == of)
                times[count++] = ends ? x->to_ns : x->from_ns;
        }
        gap_count += gaps_between(times, count, resolution, gaps + gap_count);
    }
    g_free(times);
    return gap_count;
}

/* If the visits of a site end at regular times, but do not begin at regular times, adds the waits to *m and returns
 * true. If `number` is VISIT_NONE, examines all sites, which have the same period but different phases. */
static bool find_beat(const sample *s, uint32_t number, mechanism *m)
{
    const place *p = place_at(s->visits, s->place);
    double *gaps = g_new(double, s->count + 1), *times = g_new(double, s->count + 1), r = 0, period = 0;
    size_t count = 0, used = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (number == VISIT_NONE || visit_at(s->visits, s->index[i])->site == number)
            times[count++] = s->y[i];
    sort_doubles(times, count);
    double low = count > 0 ? times[count / 20] : 0, high = count > 0 ? times[count - 1 - count / 20] : 0;
    /* after a poll, a worker may continue with several visits one by one; ignore the gaps between these visits */
    double resolution = fmax(0.02 * s->median, 0.1 * (high - low));
    size_t end_count = gaps_of_site(s, number, true, resolution, gaps);
    if (end_count >= GAPS_MIN) {
        period = find_period(gaps, end_count, &r);
        used = count_gaps(gaps, end_count, period, 8);
    }
    size_t begin_count = period > 0 ? gaps_of_site(s, number, false, resolution, gaps) : 0;
    /* a wait for the next regular time lasts at most a period */
    bool found = period > 0 && r > REGULARITY_MIN && period > 0.3 * (high - low) && period < 4 * (high - low) &&
                 regularity(gaps, begin_count, period, 8, r - 0.4) < r - 0.4;
    for (uint32_t i = 0; found && i < s->count; i++)
        if (number == VISIT_NONE || visit_at(s->visits, s->index[i])->site == number) {
            double wait = MAX(0, s->y[i] - low);
            m->waits[s->index[i]] = (float)wait;
            m->claim_ns += wait * s->weight[i] * s->scale;
        }
    if (found && r > m->explained) {
        m->period_ns = period;
        m->explained = r;
        m->p = PERIODS * (p->sites->len + 1) * normal_tail(r * sqrt(2.0 * (double)used));
        m->host = number != VISIT_NONE ? site_at(s->visits, number)->host : NULL;
        m->process = number != VISIT_NONE && place_has_processes(s->visits, p)
                         ? instance_at(s->visits, site_at(s->visits, number)->instance)->program
                         : NULL;
    }
    g_free(gaps);
    g_free(times);
    return found;
}

/* Returns the weighted mean time of a visit, in nanoseconds. */
static double mean_of(const sample *s)
{
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        sum += s->y[i] * s->weight[i];
        weights += s->weight[i];
    }
    return sum / weights;
}

/* Returns whether several visits are in progress at the same time and end one by one at even intervals, as behind a
 * lock. */
static bool is_serial(const sample *s)
{
    int64_t *ends = g_new(int64_t, s->count + 1);
    double *gaps = g_new(double, s->count + 1);
    for (uint32_t i = 0; i < s->count; i++)
        ends[i] = visit_at(s->visits, s->index[i])->to_ns;
    size_t count = gaps_between(ends, s->count, 0, gaps);
    sort_doubles(gaps, count);
    double middle = count > 0 ? gaps[count / 2] : INFINITY;
    bool serial = middle * 2 < s->median && gaps[count / 20] > 0.5 * middle;
    g_free(ends);
    g_free(gaps);
    return serial;
}

/* Returns whether the name of an event shows that a program has waited too long. */
static bool name_is_timeout(const char *name)
{
    static const char *const words[] = {"timeout",  "timedout", "timed.out", "timed_out", "timed-out", "time-out",
                                        "time_out", "deadline", "expired",   "noanswer",  "no.answer", "no_answer"};
    char *lower = g_ascii_strdown(name, -1);
    bool found = false;
    for (size_t i = 0; i < G_N_ELEMENTS(words) && !found; i++)
        found = strstr(lower, words[i]) != NULL;
    g_free(lower);
    return found;
}

static bool place_is_timeout(const place *p)
{
    return name_is_timeout(p->kind == PLACE_EDGE ? p->to : p->span);
}

/* Returns whether at least half of the spans of a place have children. A few spans with children, such as waits for a
 * processor, do not change the own times of the other spans. */
static bool usually_has_children(const visits *v, const place *p)
{
    uint64_t spans = 0, parents = 0;
    for (guint i = 0; i < p->sites->len; i++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, i));
        spans += at->span_count;
        parents += at->parent_count;
    }
    return parents > 0 && parents * 2 >= spans;
}

/* Returns a sample of the visits that consist only of their own time, or NULL if these are all visits or too few. The
 * other visits contain calls, and may end when a call has ended. */
static sample *select_visits_without_calls(const sample *s)
{
    bool *chosen = g_new(bool, s->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const visit *x = visit_at(s->visits, s->index[i]);
        chosen[i] = (double)x->own_ns > OWN_PART_MIN * (double)(x->to_ns - x->from_ns);
        count += chosen[i];
    }
    sample *selected = count >= VISITS_MIN && count < s->count ? sample_select(s, chosen) : NULL;
    g_free(chosen);
    return selected;
}

static mechanism find_timer_of(const sample *s)
{
    mechanism m = {0};
    const place *p = place_at(s->visits, s->place);
    if (s->count < VISITS_MIN || s->scale > 1.5 || usually_has_children(s->visits, p) || place_is_timeout(p))
        return m;
    double low = quantile_of(s, 0.05), high = quantile_of(s, 0.75);
    /* a sleep never ends early, but ends late if the processor is busy; much longer visits have another cause */
    if (is_local(s) && !s->reduced && s->median > 1e6 && s->median - low < 0.005 * s->median &&
        high - low < 0.05 * s->median && mean_of(s) < 1.2 * s->median && !is_serial(s)) {
        m.constant = true;
        m.period_ns = s->median;
        m.explained = 1;
        claim_above(s, 0, &m);
        return m;
    }
    if (place_times_are_coarse(s->visits, p))
        return m;
    m.waits = g_new0(float, s->visits->all->len + 1);
    uint32_t sites = 0;
    for (guint n = 0; n < p->sites->len; n++)
        if (find_beat(s, g_array_index(p->sites, uint32_t, n), &m))
            sites++;
    /* each site may have too few visits to show a period */
    if (sites == 0 && p->sites->len > 1 && find_beat(s, VISIT_NONE, &m))
        sites = p->sites->len;
    if (sites == 0) {
        g_free(m.waits);
        return (mechanism){0};
    }
    if (sites > 1 || p->sites->len == 1)
        m.host = m.process = NULL;
    return m;
}

mechanism find_timer(const sample *s)
{
    mechanism m = find_timer_of(s);
    sample *selected = m.waits == NULL ? select_visits_without_calls(s) : NULL;
    if (selected != NULL) {
        m = find_timer_of(selected);
        m.p = fmin(1, 2 * m.p);
        sample_free(selected);
    }
    return m;
}

bool delay_is_of_acknowledgement(double ns)
{
    return ns > DELACK_MIN_NS - KERNEL_TICK_NS / 4 && ns < DELACK_MIN_NS + KERNEL_TICK_NS;
}

/* ---- delayed acknowledgements ---- */

/* Returns the host where a visit of the sample begins or, if `at_begin` is false, where it ends. */
static const char *host_of_visit(const sample *s, uint32_t i, bool at_begin)
{
    const site *at = site_at(s->visits, visit_at(s->visits, s->index[i])->site);
    return at_begin ? at->from_host : at->host;
}

/* Returns the number of visits whose times are in the range [from, to), in nanoseconds. */
static uint32_t count_between(const sample *s, double from, double to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        count += s->y[i] >= from && s->y[i] < to;
    return count;
}

/* Returns the number of visits that last at least `from` nanoseconds, at sites where more than a tenth of the visits
 * are shorter. At a site with fewer short visits, the whole host may be slow. */
static uint32_t count_at_mixed_sites(const sample *s, double from)
{
    const visits *v = s->visits;
    uint32_t *longer = g_new0(uint32_t, v->sites->len + 1), *all = g_new0(uint32_t, v->sites->len + 1), count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t site = visit_at(v, s->index[i])->site;
        all[site]++;
        longer[site] += s->y[i] >= from;
    }
    for (guint i = 0; i < v->sites->len; i++)
        count += (all[i] - longer[i]) * MIXED_ONE_OF > all[i] ? longer[i] : 0;
    g_free(longer);
    g_free(all);
    return count;
}

/*
 * Returns the host of nearly all visits that last at least `from` nanoseconds: the host where they begin or, if
 * `at_begin` is false, where they end. Returns NULL if there is no such host, or if all visits are on one host.
 */
static const char *host_of_nearly_all(const sample *s, double from, bool at_begin)
{
    const char *host = NULL, *first = NULL;
    uint32_t votes = 0, same = 0, all = 0;
    bool several = false;
    for (uint32_t i = 0; i < s->count; i++) { /* find the majority (Boyer and Moore) */
        const char *own = host_of_visit(s, i, at_begin);
        first = i == 0 ? own : first;
        several = several || own != first;
        if (s->y[i] < from)
            continue;
        host = votes == 0 ? own : host;
        votes += own == host ? 1 : -1;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (s->y[i] >= from) {
            all++;
            same += host_of_visit(s, i, at_begin) == host;
        }
    return several && same * 10 >= all * 9 ? host : NULL;
}

/* Sets the mechanism's host if nearly all visits that last at least `from` nanoseconds begin or end there. */
static void find_host(const sample *s, double from, mechanism *m)
{
    m->host = host_of_nearly_all(s, from, false);
    m->is_from_host = m->host == NULL && place_at(s->visits, s->place)->kind == PLACE_EDGE;
    if (m->is_from_host)
        m->host = host_of_nearly_all(s, from, true);
    m->is_from_host = m->is_from_host && m->host != NULL;
    uint32_t all = 0, shorter = 0;
    for (uint32_t i = 0; i < s->count && m->host != NULL; i++)
        if (host_of_visit(s, i, m->is_from_host) == m->host) {
            all++;
            shorter += s->y[i] < from;
        }
    m->is_mixed = shorter * MIXED_ONE_OF > all;
}

/* Returns whether the visits of a sample may wait for the network, which spans and edges between hosts can. */
static bool may_use_network(const sample *s)
{
    const place *p = place_at(s->visits, s->place);
    bool may = p->kind == PLACE_SPAN;
    for (guint n = 0; n < p->sites->len && !may; n++) {
        const site *at = site_at(s->visits, g_array_index(p->sites, uint32_t, n));
        may = at->host != at->from_host;
    }
    return may;
}

/* Returns whether a constant delay is that of TCP's first retransmission. */
static bool is_of_retransmission(double delay_ns)
{
    return delay_ns > 0.975 * RETRANSMISSION_MIN_NS && delay_ns < RETRANSMISSION_MIN_NS + ROUND_TRIP_MAX_NS;
}

/* Returns whether a place has a site with the same hosts as `wanted` or, if `reversed` is true, with these hosts in the
 * other order. */
static bool has_hosts(const visits *v, const place *p, const site *wanted, bool reversed)
{
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        if ((reversed ? at->from_host : at->host) == wanted->host &&
            (reversed ? at->host : at->from_host) == wanted->from_host)
            return true;
    }
    return false;
}

/*
 * Returns the median time of the messages at other edges between the same programs, or INFINITY if there are too few
 * messages. If `reversed` is true, uses the messages in the other direction. Ignores messages between hosts that do not
 * occur in the sample, because the clocks of two hosts may differ.
 */
static double time_of_other_messages(const sample *s, bool reversed)
{
    const visits *v = s->visits;
    const place *p = place_at(v, s->place);
    GArray *times = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < v->places->len; i++) {
        const place *o = place_at(v, i);
        if (i == s->place || o->kind != PLACE_EDGE || o->program != (reversed ? p->from_program : p->program) ||
            o->from_program != (reversed ? p->program : p->from_program))
            continue;
        for (uint32_t n = o->first; n < o->first + o->count; n++) {
            const visit *x = visit_at(v, v->by_place[n]);
            double ns = (double)x->own_ns;
            if (has_hosts(v, p, site_at(v, x->site), reversed))
                g_array_append_val(times, ns);
        }
    }
    double middle = times->len >= VISITS_MIN ? median_of((double *)times->data, times->len) : INFINITY;
    g_array_free(times, TRUE);
    return middle;
}

/*
 * Returns the median time of the messages in the other direction. Returns INFINITY unless the sample's messages seem to
 * wait for an acknowledgement. Nearly all must take at least the delay, and their median must exceed the delay by at
 * most a tick of the kernel's timer. No wrong clock may explain the delay.
 */
static double time_of_answers(const sample *s, double low)
{
    return low > DELACK_MIN_NS - KERNEL_TICK_NS / 4 && delay_is_of_acknowledgement(s->median) &&
                   place_clocks_are_known(s->visits, place_at(s->visits, s->place), DELACK_MIN_NS / 8)
               ? time_of_other_messages(s, true)
               : INFINITY;
}

/*
 * Finds messages that all wait for TCP's delayed acknowledgement. Nearly all messages take the delay plus at most a
 * tick of the kernel's timer and an eighth of the delay. Other messages between the same programs and hosts are fast,
 * so neither the path nor a clock explains the delay.
 */
static mechanism find_constant_acknowledgement(const sample *s)
{
    mechanism m = {0};
    double low = quantile_of(s, 0.02);
    uint32_t here = count_between(s, DELACK_MIN_NS - KERNEL_TICK_NS / 4, 1.125 * DELACK_MIN_NS + KERNEL_TICK_NS);
    if (here < CONSTANT_MIN * s->count || fabs(low - DELACK_MIN_NS) > KERNEL_TICK_NS)
        return m;
    double other = time_of_other_messages(s, false); /* called late, because it takes long if the log has many hosts */
    if (!isfinite(other))
        other = time_of_answers(s, low);
    if (!isfinite(other) || other > DELACK_MIN_NS / 8)
        return m;
    m.period_ns = DELACK_MIN_NS;
    m.share = m.explained = (double)here / s->count;
    m.acknowledgement = m.is_mixed = true;
    m.p = 0;
    claim_above(s, fmin(other, low), &m);
    return m;
}

mechanism find_acknowledgement(const sample *s)
{
    static const double delays_ns[] = {DELACK_MIN_NS, 200e6}; /* the second delay is TCP_DELACK_MAX of Linux */
    mechanism m = {0};
    if (s->count < VISITS_MIN || is_local(s))
        return m;
    m = find_constant_acknowledgement(s);
    if (m.waits != NULL)
        return m;
    double low = quantile_of(s, 0.02);
    for (size_t i = 0; i < G_N_ELEMENTS(delays_ns); i++) {
        double d = delays_ns[i];
        uint32_t here = count_between(s, low + 0.97 * d, low + 1.12 * d),
                 before = count_between(s, low + 0.82 * d, low + 0.97 * d),
                 after = count_between(s, low + 1.12 * d, INFINITY), at_once = count_between(s, 0, low + 0.2 * d);
        /* most visits wait for at most the delay, and many visits wait for exactly the delay */
        if (here * 10 < s->count || here < 3 * before || here < 3 * after || at_once * 10 < s->count ||
            2 * count_at_mixed_sites(s, low + 0.2 * d) < s->count - at_once)
            continue;
        m.period_ns = d;
        m.share = (double)(s->count - at_once) / s->count;
        m.p = normal_tail((double)(here - before) / sqrt(here + before + 1.0)) * G_N_ELEMENTS(delays_ns);
        m.explained = (double)here / (here + before + after);
        /* an acknowledgement can be delayed by less than the whole delay, but a retransmission cannot */
        m.is_retransmission =
            d >= RETRANSMISSION_MIN_NS && count_between(s, low + 0.2 * d, low + 0.97 * d) <= PARTLY_MAX * here;
        m.acknowledgement = !m.is_retransmission;
        find_host(s, low + 0.2 * d, &m);
        claim_above(s, low, &m);
        return m;
    }
    return m;
}

/* ---- batches ---- */

/* Minimum part of the visits that end together with visits of other requests. */
#define TOGETHER_MIN 0.5

/* Visits complete batches if at least this part of the batches ends when a visit arrives. */
#define COMPLETED_MIN 0.8

/* Maximum part of the visits that would end together by chance. */
#define TOGETHER_CHANCE_MAX 0.3

/* The end of a visit. `i` is the visit's position in the sample, or VISIT_NONE. The visits of a group can be in one
 * batch. */
typedef struct ending {
    int64_t end_ns;
    double wait_ns;
    uint32_t visit, i, site, group;
} ending;

static int by_ending(const void *a, const void *b)
{
    const ending *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->end_ns != y->end_ns ? (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns)
                                  : (x->visit > y->visit) - (x->visit < y->visit);
}

/* Returns the number of the group of each site: the index of a site that ends on the same host. The caller frees the
 * array with g_free. */
static uint32_t *group_sites_by_host(const visits *v)
{
    uint32_t *groups = g_new(uint32_t, v->sites->len + 1);
    GHashTable *hosts = g_hash_table_new(NULL, NULL); /* maps a host to one of its sites */
    for (guint i = 0; i < v->sites->len; i++) {
        const char *host = site_at(v, i)->host;
        if (!g_hash_table_contains(hosts, host))
            g_hash_table_insert(hosts, (gpointer)host, GUINT_TO_POINTER(i));
        groups[i] = GPOINTER_TO_UINT(g_hash_table_lookup(hosts, host));
    }
    g_hash_table_destroy(hosts);
    return groups;
}

/*
 * Returns whether visits end together only because the place of the next span was busy, and accepted all waiting visits
 * when one of its own visits ended. Most clusters of ends then come just after the end of a visit to that place on the
 * same host.
 */
static bool follows_service(const sample *s, const ending *clusters, uint32_t count)
{
    const visits *v = s->visits;
    uint32_t next = next_span(v, s->place), followed = 0;
    if (next == VISIT_NONE || count == 0)
        return false;
    const place *p = place_at(v, next);
    ending *ends = g_new(ending, p->count + 1);
    double *times = g_new(double, p->count + 1);
    uint32_t *groups = group_sites_by_host(v);
    for (uint32_t i = 0; i < p->count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + i]);
        ends[i] = (ending){x->to_ns, 0, i, i, x->site, groups[x->site]};
        times[i] = (double)(x->to_ns - x->from_ns);
    }
    qsort(ends, p->count, sizeof *ends, by_ending);
    /* the next visit begins at most a tenth of the median service time after the end of a service */
    int64_t soon_ns = (int64_t)(0.1 * median_of(times, p->count));
    for (uint32_t c = 0; c < count; c++) {
        uint32_t host = groups[clusters[c].site], low = 0, high = p->count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            bool before =
                ends[middle].group != host ? ends[middle].group < host : ends[middle].end_ns <= clusters[c].end_ns;
            *(before ? &low : &high) = before ? middle + 1 : middle;
        }
        followed += low > 0 && ends[low - 1].group == host && clusters[c].end_ns - ends[low - 1].end_ns <= soon_ns;
    }
    g_free(groups);
    g_free(ends);
    g_free(times);
    return followed * 2 > count;
}

/* Returns whether the endings from `from` to `to` - 1 belong to several requests. */
static bool are_of_requests(const visits *v, const ending *e, uint32_t from, uint32_t to)
{
    uint32_t first = visit_at(v, e[from].visit)->request;
    while (from < to && visit_at(v, e[from].visit)->request == first)
        from++;
    return from < to;
}

/* Returns the ends of all visits to the place, sorted by group and time. The visits outside of the sample, for which
 * other calls of the request take longer, can complete a batch. The caller frees the array with g_free. */
static ending *sort_endings(const sample *s, bool is_joint)
{
    const visits *v = s->visits;
    const place *p = place_at(v, s->place);
    ending *e = g_new(ending, p->count + 1);
    uint32_t *groups = group_sites_by_host(v), *positions = g_new(uint32_t, v->all->len + 1);
    for (uint32_t i = 0; i < p->count; i++)
        positions[v->by_place[p->first + i]] = VISIT_NONE;
    for (uint32_t i = 0; i < s->count; i++)
        positions[s->index[i]] = i;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i], position = positions[index];
        const visit *x = visit_at(v, index);
        e[i] = (ending){x->to_ns, position != VISIT_NONE ? s->y[position] : (double)(x->to_ns - x->from_ns),
                        index,    position,
                        x->site,  is_joint ? 0 : groups[x->site]};
    }
    g_free(groups);
    g_free(positions);
    qsort(e, p->count, sizeof *e, by_ending);
    return e;
}

/* Finds visits that end together within `near_ns`, on one host or, if `is_joint` is true, on all hosts. */
static mechanism find_batch_within(const sample *s, double near_ns, bool is_joint)
{
    const visits *v = s->visits;
    const uint32_t count = place_at(v, s->place)->count;
    mechanism m = {.waits = g_new0(float, v->all->len + 1)};
    ending *e = sort_endings(s, is_joint), *ends = g_new(ending, count + 1); /* ends of clusters */
    uint32_t clusters = 0, large = 0, completed = 0;
    double together = 0;
    for (uint32_t from = 0, to; from < count; from = to, clusters++) {
        double shortest = e[from].wait_ns;
        for (to = from + 1;
             to < count && e[to].group == e[from].group && (double)(e[to].end_ns - e[to - 1].end_ns) <= near_ns; to++)
            shortest = MIN(shortest, e[to].wait_ns);
        if (!are_of_requests(v, e, from, to))
            continue;
        ends[large++] = e[from];
        completed += shortest <= near_ns;
        for (uint32_t i = from; i < to; i++) {
            double wait = e[i].wait_ns - shortest;
            if (e[i].i == VISIT_NONE)
                continue;
            together++;
            m.waits[e[i].visit] = (float)wait;
            m.claim_ns += wait * s->weight[e[i].i] * s->scale;
        }
    }
    m.share = together / s->count;
    m.count = clusters;
    m.length_ns = (double)count / MAX(clusters, 1); /* number of visits in a cluster */
    m.explained = m.share;
    m.is_completed = completed >= COMPLETED_MIN * large;
    double rate = count / (double)MAX(v->to_ns - v->from_ns, 1), expected = 1 - exp(-2 * near_ns * rate);
    m.p = normal_tail((m.share - expected) * sqrt(s->count) / sqrt(MAX(expected * (1 - expected), 1e-3)));
    if (m.share < TOGETHER_MIN || expected > TOGETHER_CHANCE_MAX || follows_service(s, ends, large))
        g_clear_pointer(&m.waits, g_free);
    g_free(e);
    g_free(ends);
    return m;
}

mechanism find_batch(const sample *s)
{
    static const double near[] = {0.005, 0.02}; /* parts of the usual time */
    enum { TESTS = 2 * G_N_ELEMENTS(near) };
    mechanism best = {0};
    if (s->count < VISITS_MIN || s->scale > 1.5 || place_at(s->visits, s->place)->has_children)
        return best;
    /* the visits that complete a batch do not wait, so the median can be very short */
    double usual_ns = 0;
    for (uint32_t i = 0; i < s->count; i++)
        usual_ns += s->y[i] / s->count;
    usual_ns = fmax(usual_ns, s->median);
    for (size_t k = 0; k < TESTS; k++) {
        if (k % 2 != 0 && !is_local(s))
            continue; /* the ends on different hosts depend on their clocks */
        mechanism m = find_batch_within(s, near[k / 2] * usual_ns, k % 2 != 0);
        m.p = fmin(1, TESTS * m.p);
        bool is_better = m.waits != NULL && (best.waits == NULL || m.claim_ns > best.claim_ns);
        g_free(is_better ? best.waits : m.waits);
        best = is_better ? m : best;
    }
    return best;
}

/* ---- timeouts ---- */

static double spread(const double *sorted, size_t count)
{
    return sorted[count * 3 / 4] - sorted[count / 4];
}

/*
 * `between` values are in a gap of length `gap`, and `count` values are in an adjacent range of length `range`. Returns
 * the probability of at most `between` values in the gap if the gap has at least the density of the range. Both lengths
 * are positive.
 */
static double chance_of_gap(uint32_t between, uint32_t count, double gap, double range)
{
    double inside = gap / (gap + range), n = between + count, sum = 0;
    for (uint32_t k = 0; k <= between; k++)
        sum += exp(lgamma(n + 1) - lgamma(k + 1.0) - lgamma(n - k + 1) + k * log(inside) + (n - k) * log1p(-inside));
    return sum;
}

/*
 * Returns the probability that the logarithms of times have a gap as wide as the gap before y[split] by chance. `y`
 * contains the times in ascending order. If the density of the logarithms has a single maximum, its mean in the gap is
 * at least its mean in an adjacent range, either below or above the gap. The function tries every range that ends at
 * the gap and, on each side, uses the range with the smallest probability. A few visits may be within the gap. The
 * upper range ends at or before y[end].
 */
static double chance_of_split(const double *y, uint32_t count, uint32_t split, uint32_t end)
{
    double floor = NOTHING * y[split], high = log(y[split]), smallest = 1;
    for (uint32_t between = 0; between <= MIN(BETWEEN_MAX, split - 2); between++) {
        uint32_t last = split - 1 - between;
        double low = log(MAX(y[last], floor)), below = 1, above = 1;
        for (uint32_t i = 0; i < last; i++)
            if (y[i] < y[last] || y[last] <= 0)
                below = fmin(below,
                             chance_of_gap(between, last - i, high - low, fmax(low - log(MAX(y[i], floor)), NOTHING)));
        for (uint32_t i = split + 1; i < end; i++) { /* times in a range of at most NOTHING count as equal */
            double range = y[i] > y[split] ? log(y[i]) - high : NOTHING;
            above = fmin(above, chance_of_gap(between, i - split, high - low, range));
        }
        smallest = fmin(smallest, fmax(below, above));
    }
    /* the factor is the number of tests: pairs of a gap and a range, for each number of visits within the gap */
    return fmin(1, (double)count * count / 2 * (BETWEEN_MAX + 1) * smallest);
}

/* Returns whether nearly all visits are slow during a part of the log, and other visits are not: nearly all slow visits
 * then follow a slow visit of the same site. A visit is slow if it lasts at least `from` nanoseconds. */
static bool is_slow_for_a_time(const sample *s, double from)
{
    bool *was_slow = g_new0(bool, s->visits->sites->len + 1);
    uint32_t slow = 0, after_slow = 0;
    for (uint32_t i = 0; i < s->count; i++) { /* visits are in order of time */
        bool *was = &was_slow[visit_at(s->visits, s->index[i])->site];
        if (s->y[i] >= from) {
            slow++;
            after_slow += *was;
        }
        *was = s->y[i] >= from;
    }
    g_free(was_slow);
    return after_slow > FOLLOW_MIN * slow && slow < FOLLOW_MIN * FOLLOW_MIN * s->count;
}

/* Returns the number of visits outside of the sample that have no own time. A visit of this place has own time only
 * after an unusual event, such as the wait for a timeout. */
static uint32_t count_idle(const sample *s)
{
    const place *p = place_at(s->visits, s->place);
    return p->kind == PLACE_SPAN && s->count == sample_size(p) ? (uint32_t)((p->count - p->work_count) / s->scale) : 0;
}

/* Returns the part of the variation that the waits explain if most visits have no own time. */
static double explained_of_idle(const sample *s, const float *waits)
{
    double all = 0, left = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        all += s->y[i];
        left += fabs(s->y[i] - (double)waits[i]);
    }
    return all > 0 ? 1 - left / all : 0;
}

void mechanism_name_delay(const sample *s, mechanism *m)
{
    m->is_sometimes = m->acknowledgement = delay_is_of_acknowledgement(m->period_ns);
    m->is_retransmission = is_of_retransmission(m->period_ns) && may_use_network(s);
}

/*
 * Judges whether the visits from y[split] on have waited for a timeout. `y` contains `n` times in ascending order: the
 * times of the sample, and the times of visits without own time. If the visits have not waited for a timeout, the waits
 * of the returned mechanism are NULL.
 */
static mechanism judge_timeout(const sample *s, const double *y, uint32_t n, uint32_t split)
{
    mechanism m = {0};
    uint32_t end = split;
    double base = y[split / 2], base_spread = MAX(spread(y, split), NOTHING * y[split]),
           first = y[split] - y[split / 10];
    while (end < n && y[end] < y[split] + 0.8 * first)
        end++;
    double middle = y[(split + end) / 2], upper_spread = spread(y + split, end - split),
           ratio = middle / MAX(base, NOTHING * middle);
    /* a timeout shifts the distribution of the times, but does not stretch it */
    if (end - split < TIMED_OUT_MIN || ratio < 2 || upper_spread >= sqrt(ratio) * base_spread ||
        is_slow_for_a_time(s, y[split]))
        return m;
    /* additional work of some visits would take varying times */
    if (base <= 0 && upper_spread > CONSTANT_SPREAD * middle)
        return m;
    m.period_ns = middle - base;
    mechanism_name_delay(s, &m);
    m.count = n - split;
    m.share = (double)(n - split) / n;
    m.waits = g_new0(float, s->visits->all->len + 1);
    find_host(s, y[split], &m);
    float *waits = g_new(float, n);
    for (uint32_t i = 0; i < s->count; i++) {
        double times = s->y[i] >= y[split] ? MAX(1, round((s->y[i] - base) / m.period_ns)) : 0;
        double wait = MIN(s->y[i], times * m.period_ns);
        m.waits[s->index[i]] = waits[i] = (float)wait;
        m.claim_ns += wait * s->weight[i] * s->scale;
    }
    m.p = chance_of_split(y, n, split, end);
    m.explained = base <= 0 ? explained_of_idle(s, waits) : sample_explained_by_waits(s, waits);
    g_free(waits);
    return m;
}

/* Finds a timeout above one of the widest gaps between the times `y`, which are in ascending order. At least `fewest`
 * visits are above the gap. */
static mechanism find_timeout_above(const sample *s, const double *y, uint32_t n, uint32_t fewest)
{
    enum { GAPS = 3 }; /* number of gaps to try; a few other long visits can cause a wider gap below the timeout */
    mechanism m = {0};
    double width[GAPS] = {0},
           gap_min = RESOLUTION_STEPS * place_find_resolution(s->visits, place_at(s->visits, s->place));
    uint32_t split[GAPS] = {0};
    for (uint32_t i = n * 2 / 5; i + fewest < n; i++) {
        double gap = y[i + 1] > 0 && y[i + 1] - y[i] >= gap_min ? log(y[i + 1] / MAX(y[i], NOTHING * y[i + 1])) : 0;
        int k = GAPS;
        for (; k > 0 && gap > width[k - 1]; k--)
            if (k < GAPS) {
                width[k] = width[k - 1];
                split[k] = split[k - 1];
            }
        if (k < GAPS) {
            width[k] = gap;
            split[k] = i + 1;
        }
    }
    for (int k = 0; k < GAPS && m.waits == NULL; k++)
        if (split[k] > 0 && width[k] >= log(1.35))
            m = judge_timeout(s, y, n, split[k]);
    return m;
}

mechanism find_timeout(const sample *s)
{
    mechanism m = {0};
    uint32_t n = s->count + count_idle(s);
    if (n < VISITS_MIN)
        return m;
    double *y = g_new0(double, n + 1);
    memcpy(y, s->y, s->count * sizeof *y);
    sort_doubles(y, n);
    m = find_timeout_above(s, y, n, MAX(TIMED_OUT_MIN, n / FREQUENT_ONE_OF));
    if (m.waits == NULL && place_at(s->visits, s->place)->kind == PLACE_EDGE) {
        m = find_timeout_above(s, y, n, MAX(TIMED_OUT_MIN, n / RARE_ONE_OF));
        m.p = fmin(1, 2 * m.p); /* the smaller p of the smaller p of two searches */
        if (!m.is_retransmission)
            g_clear_pointer(&m.waits, g_free);
    }
    g_free(y);
    return m;
}

/* Returns the place of the request's next visit after a visit, or VISIT_NONE. Returns VISIT_NONE for very large
 * requests, to save time. */
static uint32_t place_after(const visits *v, uint32_t index)
{
    enum { LOOKED_THROUGH_MAX = 4096 };
    const visit *x = visit_at(v, index), *next = NULL;
    const request *q = request_at(v, x->request);
    for (uint32_t i = q->first; i < q->first + q->count && q->count <= LOOKED_THROUGH_MAX; i++) {
        const visit *y = visit_at(v, i);
        if (i != index && y->from_ns >= x->to_ns && (next == NULL || y->from_ns < next->from_ns))
            next = y;
    }
    return next != NULL ? place_of_visit(v, next) : VISIT_NONE;
}

/* Returns the place that most often follows those visits of a sample whose times are below `from` or above `to`. */
static uint32_t usual_place_after(const sample *s, const uint32_t *after, double from, double to)
{
    GHashTable *counts = g_hash_table_new(NULL, NULL); /* maps a place to its number of visits */
    uint32_t usual = VISIT_NONE, largest = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->y[i] >= from && s->y[i] <= to)
            continue;
        uint32_t count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, GUINT_TO_POINTER(after[i]))) + 1;
        g_hash_table_insert(counts, GUINT_TO_POINTER(after[i]), GUINT_TO_POINTER(count));
        usual = count > largest ? after[i] : usual;
        largest = MAX(largest, count);
    }
    g_hash_table_destroy(counts);
    return usual;
}

bool visits_end_without_result(const sample *s, double from, double to)
{
    const visits *v = s->visits;
    uint32_t *after = g_new(uint32_t, s->count + 1), inside = 0, failed[2] = {0}, other[2] = {0};
    for (uint32_t i = 0; i < s->count; i++)
        after[i] = place_after(v, s->index[i]);
    uint32_t usual = usual_place_after(s, after, from, to);
    for (uint32_t i = 0; i < s->count; i++) {
        bool is_inside = s->y[i] >= from && s->y[i] <= to, fails = visit_at(v, s->index[i])->failed,
             differs = after[i] != usual;
        inside += is_inside;
        failed[0] += fails;
        failed[1] += fails && is_inside;
        other[0] += differs;
        other[1] += differs && is_inside;
    }
    g_free(after);
    return (2 * failed[1] >= inside &&
            hypergeometric_tail(s->count, failed[0], inside, failed[1]) < WITHOUT_RESULT_CHANCE) ||
           (2 * other[1] >= inside &&
            hypergeometric_tail(s->count, other[0], inside, other[1]) < WITHOUT_RESULT_CHANCE);
}

/*
 * Returns whether the place is the time between two attempts of few requests: an edge that begins and ends with the
 * same event of the same program. If the program repeats the event in many requests, or often in one request, it
 * probably reports its progress.
 */
static bool is_second_attempt(const sample *s)
{
    enum { REQUESTS_ONE_OF = 4 };
    const visits *v = s->visits;
    const place *p = place_at(v, s->place);
    if (p->kind != PLACE_EDGE || p->program != p->from_program || strcmp(p->from, p->to) != 0)
        return false;
    GHashTable *requests = g_hash_table_new(NULL, NULL);
    for (uint32_t i = p->first; i < p->first + p->count; i++)
        g_hash_table_add(requests, GUINT_TO_POINTER(visit_at(v, v->by_place[i])->request + 1));
    guint count = g_hash_table_size(requests);
    g_hash_table_destroy(requests);
    return count * REQUESTS_ONE_OF <= v->requests->len && 2 * count > p->count;
}

mechanism find_named_timeout(const sample *s)
{
    mechanism m = {0};
    const place *p = place_at(s->visits, s->place);
    if (s->count < TIMED_OUT_MIN || (!place_is_timeout(p) && !is_second_attempt(s)))
        return m;
    uint32_t inside = count_between(s, s->median / NARROW, s->median * NARROW), outside = s->count - inside;
    /* without a timeout, at most half of the times would be in this narrow range */
    m.p = 2 * outside < s->count ? binomial_tail(outside, s->count, 0.5) : 1;
    m.period_ns = s->median;
    m.given_up = true;
    m.count = inside;
    m.share = (double)inside / s->count;
    m.explained = m.share;
    claim_above(s, 0, &m);
    find_host(s, 0, &m);
    return m;
}

mechanism find_given_up(const sample *s)
{
    mechanism m = {0};
    if (s->count < VISITS_MIN)
        return m;
    double *y = g_memdup2(s->y, s->count * sizeof(double));
    sort_doubles(y, s->count);
    uint32_t n = s->count, best = 0, best_end = 0;
    double narrow_min = RESOLUTION_STEPS * place_find_resolution(s->visits, place_at(s->visits, s->place));
    for (uint32_t i = n / 2, below = 0, end = 0, above = 0; i < n; i++) {
        if (y[i] * (NARROW - 1) < narrow_min)
            continue;
        while (y[below] * NARROW < y[i])
            below++;
        end = MAX(end, i);
        while (end < n && y[end] <= y[i] * NARROW)
            end++;
        above = MAX(above, end);
        while (above < n && y[above] <= y[i] * NARROW * NARROW)
            above++;
        uint32_t inside = end - i, beside = i - below + above - end;
        if (inside <= MAX(best_end - best, TIMED_OUT_MIN + n * GIVEN_UP_PERCENT / 100) ||
            y[i] < GIVEN_UP_FACTOR * y[n / 2] || inside < GIVEN_UP_DENSITY * (beside + 1) ||
            (n - end) * GIVEN_UP_LONGER > inside)
            continue;
        double p = n * binomial_tail(beside, inside + beside, 2.0 / 3);
        if (p > m.p && m.count > 0)
            continue;
        m.p = p;
        m.count = inside;
        best = i;
        best_end = end;
    }
    if (m.count == 0 || delay_is_of_acknowledgement(y[(best + best_end) / 2]) || is_slow_for_a_time(s, y[best]) ||
        !visits_end_without_result(s, y[best], y[best_end - 1])) {
        g_free(y);
        return (mechanism){0};
    }
    double base = y[best / 2];
    m.period_ns = y[(best + best_end) / 2];
    m.given_up = true;
    m.share = (double)m.count / n;
    m.waits = g_new0(float, s->visits->all->len + 1);
    find_host(s, y[best], &m);
    float *waits = g_new0(float, n);
    for (uint32_t i = 0; i < n; i++) {
        double wait = s->y[i] >= y[best] && s->y[i] <= y[best_end - 1] ? s->y[i] - base : 0;
        m.waits[s->index[i]] = waits[i] = (float)wait;
        m.claim_ns += wait * s->weight[i] * s->scale;
    }
    m.explained = sample_explained_by_waits(s, waits);
    g_free(waits);
    g_free(y);
    return m;
}
