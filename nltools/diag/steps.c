/*
 * Finds visits that take longer than usual by a constant time, at places where the usual times differ.
 *
 * The module compares each visit with the usual time of its kind and its amount of work. A lost packet or a timeout
 * adds the same time to each visit, whatever its kind. The times of rare long work vary more: they have a Pareto
 * distribution, or vary as much as the times of the usual work. The module compares the likelihood of the long times
 * under the constant delay with the larger likelihood under these two alternatives. If an alternative is true, each
 * tested delay has a likelihood ratio of at least r with a probability of at most 1/r (Markov's inequality). No state.
 */
#include "config.h"

#include <math.h>

#include "diag/keyed_sort.h"
#include "diag/long_visits.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Minimum and maximum part of the long visits that have other reasons. */
#define OTHERS_MIN 0.1
#define OTHERS_MAX 0.95

/* Maximum ratio of two values that are near each other. */
#define NEAR 1.02

/* Minimum spread of the logarithms of the times of one kind of work. */
#define WORK_SPREAD_MIN 0.1

/* If the delay is the cause, at least this part of the visits with a similar excess has the delay. A similar excess
 * differs by at most the factor SIMILAR. */
#define DELAYED_MIN 0.6
#define SIMILAR 2.0

/* Minimum part of the delayed visits on the host that the mechanism names. */
#define HOST_MIN 0.8

/* If more than the part SOMETIMES_MAX of a site's visits has the delay, the delay is no exception, because the site is
 * slow. For a delayed acknowledgement, the maximum is ACKNOWLEDGED_MAX, because nearly all messages may wait for it. */
#define SOMETIMES_MAX 0.5
#define ACKNOWLEDGED_MAX 0.9

/* Maximum part of the delayed visits that follow a delayed visit at the same site. */
#define FOLLOW_MAX 0.7

enum { DELAYED_COUNT_MIN = 5, TRIED_MAX = 24, MIXED = 10 };

static int by_value(const void *a, const void *b)
{
    double x = ((const long_visit *)a)->value, y = ((const long_visit *)b)->value;
    return (x > y) - (x < y);
}

static double normal_density(double x, double middle, double spread)
{
    double z = (x - middle) / spread;
    return exp(-z * z / 2) / spread / sqrt(2 * G_PI);
}

/* Returns the spread of the times of visits with a delay. */
static double spread_with_delay(const long_visit *y, double delay)
{
    return hypot(y->spread, DELAY_ACCURACY * delay);
}

static bool is_delayed(const long_visit *y, double delay)
{
    return fabs(y->value - delay) <= LONG_DEVIATIONS * spread_with_delay(y, delay);
}

/*
 * Returns the logarithm of the ratio of the likelihood with a delay to the likelihood without a delay. `power` is the
 * exponent of the Pareto distribution. `spread` is the standard deviation of the logarithms of the usual times.
 * `others` is the part of the visits that have other reasons.
 */
static double ratio_of_delay(const GArray *found, double delay, double power, double spread, double others)
{
    double pareto = 0, work = 0, with = 0;
    for (guint n = 0; n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        double time = y->time, tail = power / time * pow(y->limit / time, power),
               kind = normal_density(log(time), log(delay + time - y->value), fmax(spread, WORK_SPREAD_MIN)) / time,
               constant = normal_density(y->value, delay, spread_with_delay(y, delay));
        pareto += log(tail);
        work += log((1 - others) * kind + others * tail);
        with += log((1 - others) * constant + others * tail);
    }
    return with - fmax(pareto, work);
}

/* Sets *delay to the mean value of the visits with this delay. Returns the number of these visits. */
static guint center_delay(const GArray *found, double *delay)
{
    guint count = 0;
    for (int k = 0; k < 3; k++) {
        double sum = 0, weights = 0;
        count = 0;
        for (guint n = 0; n < found->len; n++) {
            const long_visit *y = &g_array_index(found, long_visit, n);
            if (!is_delayed(y, *delay))
                continue;
            double weight = 1 / pow(spread_with_delay(y, *delay), 2);
            sum += weight * y->value;
            weights += weight;
            count++;
        }
        *delay = weights > 0 ? sum / weights : *delay;
    }
    return count;
}

/*
 * Finds the values with the largest ratio of near values to larger values. In a Pareto distribution, this ratio is
 * constant. `found` is in the order of the values. Stores at most TRIED_MAX values in `values`, and returns their
 * number.
 */
static int find_dense_values(const GArray *found, double *values)
{
    double *scores = g_new(double, found->len + 1);
    int count = 0;
    for (guint n = 0, low = 0, high = 0; n < found->len; n++) {
        double value = g_array_index(found, long_visit, n).value;
        while (g_array_index(found, long_visit, low).value * NEAR < value)
            low++;
        while (high < found->len && g_array_index(found, long_visit, high).value <= value * NEAR)
            high++;
        scores[n] = (double)(high - low) * log((high - low) / (double)(found->len - low));
        scores[n] += (high - low) * log((double)found->len);
    }
    while (count < TRIED_MAX) {
        guint best = found->len;
        for (guint n = 0; n < found->len; n++)
            if (scores[n] > 0 && (best == found->len || scores[n] > scores[best]))
                best = n;
        if (best == found->len)
            break;
        double value = values[count++] = g_array_index(found, long_visit, best).value;
        for (guint n = 0; n < found->len; n++)
            if (g_array_index(found, long_visit, n).value <= value * NEAR &&
                g_array_index(found, long_visit, n).value * NEAR >= value)
                scores[n] = 0;
    }
    g_free(scores);
    return count;
}

/* Returns the delay with the largest likelihood, in nanoseconds, or 0 if no delay is likely. Sets *chance to the
 * probability of at least this likelihood by chance, multiplied by the number of tested values and parts. */
static double find_delay(const GArray *found, double spread, double *chance)
{
    double logs = 0, best = 0, best_delay = 0, values[TRIED_MAX];
    for (guint n = 0; n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        logs += log(y->time / y->limit);
    }
    double power = found->len / fmax(logs, 0.01 * found->len);
    int count = find_dense_values(found, values);
    for (int k = 0; k < count; k++) {
        double delay = values[k];
        guint delayed = center_delay(found, &delay);
        double others = CLAMP(1 - (double)delayed / found->len, OTHERS_MIN, OTHERS_MAX),
               ratio = ratio_of_delay(found, delay, power, spread, others);
        if (ratio > best) {
            best = ratio;
            best_delay = delay;
        }
    }
    *chance = fmin(1, (double)found->len * found->len * exp(-best));
    return best_delay;
}

/* Returns whether the delayed visits come one after another. In this case, the cause is not the delay but a slow time
 * range. */
static bool come_together(const sample *x, const bool *delayed, uint32_t count)
{
    bool *was = g_new0(bool, x->visits->sites->len + 1);
    uint32_t after = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t site = visit_at(x->visits, x->index[i])->site;
        after += delayed[i] && was[site];
        was[site] = delayed[i];
    }
    g_free(was);
    return after > FOLLOW_MAX * count && count < FOLLOW_MAX * x->count;
}

/* The numbers of all visits of a site, and of its visits with a delay. */
typedef struct site_counts {
    double all, delayed;
} site_counts;

/* Returns whether nearly all delayed visits are exceptions at their sites. Frees `counts`, which has an element for
 * each site. */
static bool is_exception(const visits *v, site_counts *counts, double delay)
{
    double max = delay_is_of_acknowledgement(delay) ? ACKNOWLEDGED_MAX : SOMETIMES_MAX, all = 0, exceptions = 0;
    for (guint i = 0; i < v->sites->len; i++) {
        all += counts[i].delayed;
        exceptions += counts[i].delayed <= max * counts[i].all ? counts[i].delayed : 0;
    }
    g_free(counts);
    return exceptions >= HOST_MIN * all;
}

/* Returns the numbers of the sample's visits at each site. */
static site_counts *count_at_sites(const sample *x, const bool *delayed)
{
    site_counts *counts = g_new0(site_counts, x->visits->sites->len + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        site_counts *at = &counts[visit_at(x->visits, x->index[i])->site];
        at->all++;
        at->delayed += delayed[i];
    }
    return counts;
}

/* Returns the host of most of the delayed visits: where they begin or, if `at_begin` is false, where they end. Returns
 * NULL if there is no such host, or if all visits are on one host. */
static const char *host_of_delayed(const sample *x, const bool *delayed, bool at_begin, bool *is_mixed)
{
    GHashTable *counts = g_hash_table_new(NULL, NULL);
    const char *host = NULL;
    uint32_t largest = 0, all = 0, here = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const site *at = site_at(x->visits, visit_at(x->visits, x->index[i])->site);
        gpointer own = (gpointer)(at_begin ? at->from_host : at->host);
        uint32_t count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, own)) + delayed[i];
        g_hash_table_insert(counts, own, GUINT_TO_POINTER(count));
        all += delayed[i];
        if (count > largest) {
            largest = count;
            host = own;
        }
    }
    bool several = g_hash_table_size(counts) > 1;
    g_hash_table_destroy(counts);
    for (uint32_t i = 0; i < x->count; i++) {
        const site *at = site_at(x->visits, visit_at(x->visits, x->index[i])->site);
        here += (at_begin ? at->from_host : at->host) == host;
    }
    *is_mixed = (here - largest) * MIXED > here;
    return several && largest >= HOST_MIN * all ? host : NULL;
}

static mechanism mechanism_of(const sample *x, const sample *even, const bool *delayed, uint32_t count, double delay,
                              bool is_whole)
{
    mechanism m = {.period_ns = delay, .count = count, .given_up = is_whole, .is_within_kinds = true};
    float *waits = g_new0(float, x->count + 1);
    m.waits = g_new0(float, x->visits->all->len + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        double usual = even->median / even->factor[i],
               wait = delayed[i] ? fmin(x->y[i], is_whole ? x->y[i] - usual : delay) : 0;
        m.waits[x->index[i]] = (float)wait;
        waits[i] = (float)(wait * even->factor[i]);
        m.claim_ns += wait * x->weight[i] * x->scale;
    }
    m.explained = sample_explained_by_waits(even, waits);
    m.share = (double)count / x->count;
    m.host = host_of_delayed(x, delayed, false, &m.is_mixed);
    if (m.host == NULL && place_at(x->visits, x->place)->kind == PLACE_EDGE) {
        m.host = host_of_delayed(x, delayed, true, &m.is_mixed);
        m.is_from_host = m.host != NULL;
    }
    if (!is_whole)
        mechanism_name_delay(x, &m);
    g_free(waits);
    return m;
}

/* Judges whether long visits have a constant value. `found` contains the long visits. If `is_whole` is true, the value
 * is the whole time of visits that end without a result, because callers give up. */
static mechanism judge(const sample *x, const sample *even, GArray *found, double spread, bool is_whole)
{
    mechanism m = {0};
    double chance = 1, delay = 0, shortest = INFINITY, longest = 0;
    uint32_t similar = 0, count = 0;
    for (guint n = 0; is_whole && n < found->len; n++) {
        long_visit *y = &g_array_index(found, long_visit, n);
        y->value = y->time;
        y->spread = 0;
    }
    g_array_sort(found, by_value);
    if (found->len >= DELAYED_COUNT_MIN)
        delay = find_delay(found, spread, &chance);
    bool *delayed = g_new0(bool, x->count + 1);
    for (guint n = 0; delay > 0 && n < found->len; n++) {
        const long_visit *y = &g_array_index(found, long_visit, n);
        similar += y->value > delay / SIMILAR && y->value < delay * SIMILAR;
        delayed[y->i] = is_delayed(y, delay);
        count += delayed[y->i];
        shortest = delayed[y->i] ? fmin(shortest, y->time) : shortest;
        longest = delayed[y->i] ? fmax(longest, y->time) : longest;
    }
    if (count >= DELAYED_COUNT_MIN && count >= DELAYED_MIN * similar && !come_together(x, delayed, count) &&
        is_exception(x->visits, count_at_sites(x, delayed), delay) &&
        (!is_whole || (!delay_is_of_acknowledgement(delay) && visits_end_without_result(x, shortest, longest)))) {
        m = mechanism_of(x, even, delayed, count, delay, is_whole);
        m.p = fmin(1, 2 * chance); /* the search tests two kinds of values */
    }
    g_free(delayed);
    return m;
}

mechanism find_step(const search *s, const sample *x)
{
    long_sample l = long_sample_of(s, x);
    mechanism m = judge(x, l.even, l.found, l.spread, false);
    if (m.waits == NULL)
        m = judge(x, l.even, l.found, l.spread, true);
    long_sample_clear(&l);
    return m;
}

/* ---- losses on the way to and from a host ---- */

/* Minimum share of all time of the messages of an edge that the search for losses examines. */
#define EDGE_SHARE_MIN 1e-4

/* Maximum probability that so many of the delayed messages begin or end on one host by chance. */
#define HOST_CHANCE_MAX (FALSE_ALARMS_MAX / FAMILIES)

static bool crosses_hosts(const site *at)
{
    return *at->host != '\0' && *at->from_host != '\0' && at->host != at->from_host;
}

/* Appends the long messages between hosts of an edge to `all`; their `i` is the index of the visit. For each examined
 * visit, sets `scales` to the number of the edge's visits divided by the number of examined visits. */
static void add_messages(const search *s, uint32_t number, GArray *all, float *scales, double *spread)
{
    sample *x = sample_new(s->v, number, s->f->claimed);
    long_sample l = long_sample_of(s, x);
    for (uint32_t i = 0; i < x->count; i++)
        scales[x->index[i]] = (float)x->scale;
    for (guint n = 0; n < l.found->len; n++) {
        long_visit y = g_array_index(l.found, long_visit, n);
        y.i = x->index[y.i];
        if (crosses_hosts(site_at(s->v, visit_at(s->v, y.i)->site)))
            g_array_append_val(all, y);
    }
    if (l.found->len > 0)
        *spread = fmin(*spread, l.spread);
    long_sample_clear(&l);
    sample_free(x);
}

/* The numbers of all messages, and of delayed messages, that begin or end on a host. */
typedef struct host_messages {
    double all, delayed;
} host_messages;

static host_messages *messages_of(GHashTable *hosts, const char *host)
{
    host_messages *m = g_hash_table_lookup(hosts, host);
    if (m == NULL) {
        m = g_new0(host_messages, 1);
        g_hash_table_insert(hosts, (gpointer)host, m);
    }
    return m;
}

/*
 * Returns the host on which nearly all delayed messages begin or end, significantly more often than other messages. If
 * several hosts meet this condition, returns the host with the largest share of delayed messages. Returns NULL if no
 * host does. Ignores messages that were not examined, because they may be delayed.
 */
static const char *host_of_messages(const visits *v, const bool *examined, const bool *delayed, const float *scales)
{
    GHashTable *hosts = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* host -> host_messages */
    GHashTableIter each;
    gpointer name, data;
    host_messages all = {0};
    const char *host = NULL;
    double best = HOST_CHANCE_MAX, best_all = INFINITY;
    for (guint i = 0; i < v->all->len; i++) {
        const site *at = site_at(v, visit_at(v, i)->site);
        if (!examined[at->place] || scales[i] <= 0 || !crosses_hosts(at))
            continue;
        host_messages *ends[] = {messages_of(hosts, at->host), messages_of(hosts, at->from_host), &all};
        for (size_t k = 0; k < G_N_ELEMENTS(ends); k++) {
            ends[k]->all++;
            ends[k]->delayed += delayed[i];
        }
    }
    g_hash_table_iter_init(&each, hosts);
    while (g_hash_table_iter_next(&each, &name, &data)) {
        const host_messages *m = data;
        double p = m->delayed < HOST_MIN * all.delayed
                       ? 1
                       : g_hash_table_size(hosts) * hypergeometric_tail(all.all, all.delayed, m->all, m->delayed);
        const bool is_better = p < best || (p <= best && host != NULL &&
                                            (m->all < best_all || (m->all <= best_all && strcmp(name, host) < 0)));
        if (!is_better)
            continue;
        best = p;
        best_all = m->all;
        host = name;
    }
    g_hash_table_destroy(hosts);
    return host;
}

/* Adds a finding about messages that one host's link delays. */
static void add_losses(findings *f, const char *host, const bool *delayed, const float *scales, double delay,
                       double chance)
{
    const visits *v = f->visits;
    double *of_places = g_new0(double, v->places->len + 1), sum_ns = 0, examined_ns = 0;
    float *cut = g_new0(float, v->all->len + 1);
    uint32_t largest = 0, count = 0, places = 0;
    for (guint i = 0; i < v->all->len; i++) {
        const visit *y = visit_at(v, i);
        const site *at = site_at(v, y->site);
        if (!delayed[i] || (at->host != host && at->from_host != host))
            continue;
        cut[i] = (float)fmin(delay, fmax(0, (double)y->own_ns - (double)f->claimed[i]));
        double ns = (double)cut[i] * path_weight(y) * (double)scales[i];
        places += of_places[at->place] <= 0;
        of_places[at->place] += ns;
        sum_ns += ns;
        examined_ns += (double)cut[i] * path_weight(y);
        largest = of_places[at->place] > of_places[largest] ? at->place : largest;
        count++;
    }
    if (sum_ns < FINDING_MIN * v->total_ns || places < 2) {
        g_free(cut);
        g_free(of_places);
        return;
    }
    const bool is_acknowledgement = delay_is_of_acknowledgement(delay);
    finding *x = findings_add(f, is_acknowledgement ? "timer" : "timeout");
    x->place = largest;
    x->host = host;
    x->share = sum_ns / v->total_ns;
    x->explained = 1;
    x->chance = chance;
    x->margin = 1;
    x->cut = cut;
    x->gain = fmin(x->share, replay_gain(v, cut, 1) * sum_ns / examined_ns);
    for (guint i = 0; i < v->all->len; i++)
        f->claimed[i] += cut[i];
    for (guint i = 0; i < v->places->len; i++)
        if (i != largest && of_places[i] > 0)
            g_array_append_val(x->others, i);
    char *part = text_share(x->share), *period = text_ns(delay), *where = text_place(v, largest, NULL);
    x->answer = g_strdup_printf(
        "%s of the requests' time: messages to and from %s sometimes take %s longer, like %s (%s "
        "and %u other message%s)",
        part, host, period, is_acknowledgement ? "TCP's delayed acknowledgements" : "TCP retransmissions or timeouts",
        where, places - 1, nl_plural(places - 1));
    x->advice = is_acknowledgement
                    ? "write each message with one call, or set TCP_NODELAY"
                    : "look for lost packets on the link of this host: run nlsensor tcp on the hosts, and "
                      "check the errors and drops of the links (ip -s link)";
    finding_evidence(x, "%u messages to or from this host take %s longer than usual", count, period);
    g_free(part);
    g_free(period);
    g_free(where);
    g_free(of_places);
}

/* Finds messages of different edges that have the same delay. Nearly all of these messages must begin or end on one
 * host. A single edge may have too few delayed messages to show the cause. */
void find_losses(findings *f)
{
    const visits *v = f->visits;
    const search s = {.f = f, .v = v};
    GArray *all = g_array_new(FALSE, FALSE, sizeof(long_visit));
    bool *examined = g_new0(bool, v->places->len + 1), *delayed = g_new0(bool, v->all->len + 1);
    float *scales = g_new0(float, v->all->len + 1);
    double spread = INFINITY, chance = 1;
    uint32_t similar = 0, count = 0;
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        bool crosses = false;
        for (guint n = 0; n < p->sites->len; n++)
            crosses = crosses || crosses_hosts(site_at(v, g_array_index(p->sites, uint32_t, n)));
        examined[i] = p->kind == PLACE_EDGE && crosses && p->work_count >= KIND_COUNT_MIN &&
                      p->path_ns >= EDGE_SHARE_MIN * v->total_ns;
        if (examined[i])
            add_messages(&s, i, all, scales, &spread);
    }
    g_array_sort(all, by_value);
    double delay = all->len >= DELAYED_COUNT_MIN ? find_delay(all, spread, &chance) : 0;
    for (guint n = 0; n < all->len; n++) {
        const long_visit *y = &g_array_index(all, long_visit, n);
        similar += y->value > delay / SIMILAR && y->value < delay * SIMILAR;
        delayed[y->i] = is_delayed(y, delay);
        count += delayed[y->i];
    }
    const char *host =
        delay > 0 && chance <= HOST_CHANCE_MAX && count >= DELAYED_COUNT_MIN && count >= DELAYED_MIN * similar
            ? host_of_messages(v, examined, delayed, scales)
            : NULL;
    site_counts *counts = g_new0(site_counts, v->sites->len + 1);
    for (guint i = 0; i < v->all->len; i++) {
        counts[visit_at(v, i)->site].all++;
        counts[visit_at(v, i)->site].delayed += delayed[i] * (double)scales[i];
    }
    if (is_exception(v, counts, delay) && host != NULL)
        add_losses(f, host, delayed, scales, delay, chance);
    g_array_free(all, TRUE);
    g_free(examined);
    g_free(delayed);
    g_free(scales);
}
