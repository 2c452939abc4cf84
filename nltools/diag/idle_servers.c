#include "config.h"

#include <math.h>

#include "diag/keyed_sort.h"
#include "diag/mechanisms.h"

#include <string.h>

/*
 * Waits for an idle server. An edge leads to a span of a server that executes one span at a time. A visit to the edge
 * normally waits only while the server is busy. If it also waits while the server is idle, the end of the wait shows
 * the reason: another visit arrives (the server collects a batch), or a period ends (the server polls its queue).
 */

enum { IDLE_MIN = 40 /* minimum number of visits whose wait ends while their server is idle */, PERIODS = 400 };

/* A server executes one span at a time if at most this part of its spans begins before the previous span has ended. */
#define CONCURRENT_MAX 0.02

/* A wait ends while the server is idle if the server has been idle for at least this part of the mean wait. Shorter
 * idle times occur in each queue, while the server takes the next visit. */
#define IDLE_PART 0.1

/* The waits for an idle server are at least this part of all time of the sample. */
#define IDLE_SHARE_MIN 0.2

/* Visits complete batches if at least this part of the waits ends within NEAR_PART of the mean wait after the arrival
 * of another visit, and at most NEAR_CHANCE_MAX of them would by chance. */
#define TRIGGERED_MIN 0.8
#define NEAR_PART 0.05
#define NEAR_CHANCE_MAX 0.3

/* Minimum regularity of the ends of the waits, and minimum difference from the regularity of the arrivals. */
#define REGULARITY_MIN 0.75
#define REGULARITY_MORE 0.4

/* Waits for the end of a period differ by at least this part of the longest wait. */
#define SPREAD_MIN 0.5

/* A span that a server executes. */
typedef struct service {
    int64_t from_ns, to_ns;
} service;

/* A visit to the edge. `idle_ns` is the time for which it waits while its server is idle. */
typedef struct waiting {
    int64_t from_ns, to_ns;
    double idle_ns;
    int64_t free_ns; /* the end of the server's previous span; INT64_MIN: no such span */
    uint32_t visit, server;
} waiting;

typedef struct idle_servers {
    const visits *v;
    waiting *all; /* the visits to the edge, by server and then by end */
    uint32_t count;
    double mean_ns; /* mean wait of a visit */
} idle_servers;

static int by_service(const void *a, const void *b)
{
    const service *x = a, *y = b;
    return x->from_ns != y->from_ns ? (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns)
                                    : (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns);
}

static int by_server_and_end(const void *a, const void *b)
{
    const waiting *x = a, *y = b;
    if (x->server != y->server)
        return x->server < y->server ? -1 : 1;
    return x->to_ns != y->to_ns ? (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns)
                                : (x->visit > y->visit) - (x->visit < y->visit);
}

/* Returns the spans that an instance executes at a place, in the order of their starts. The caller frees the array with
 * g_array_free. */
static GArray *services_of(const visits *v, uint32_t span, uint32_t server)
{
    const place *p = place_at(v, span);
    GArray *found = g_array_new(FALSE, FALSE, sizeof(service));
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        const visit *x = visit_at(v, v->by_place[i]);
        const service s = {x->from_ns, x->to_ns};
        if (site_at(v, x->site)->instance == server)
            g_array_append_val(found, s);
    }
    g_array_sort(found, by_service);
    return found;
}

/* Sets the idle times of the visits from `first` to `last` - 1, which wait for one server. Returns the number of spans
 * that begin before the server's previous span has ended. */
static uint32_t find_idle_times(idle_servers *s, const GArray *services, uint32_t first, uint32_t last)
{
    uint32_t concurrent = 0;
    int64_t until_ns = INT64_MIN;
    for (guint i = 0; i < services->len; i++) {
        const service *x = &g_array_index(services, service, i);
        concurrent += x->from_ns < until_ns;
        until_ns = MAX(until_ns, x->to_ns);
    }
    for (uint32_t i = first; i < last; i++) {
        enum { LOOKED_BACK_MAX = 1000 };
        waiting *w = &s->all[i];
        guint low = 0, high = services->len; /* the first service that begins at or after the end of the wait */
        while (low < high) {
            guint middle = low + (high - low) / 2;
            bool before = g_array_index(services, service, middle).from_ns < w->to_ns;
            *(before ? &low : &high) = before ? middle + 1 : middle;
        }
        w->free_ns = low > 0 ? g_array_index(services, service, low - 1).to_ns : INT64_MIN;
        w->idle_ns = (double)(w->to_ns - w->from_ns);
        for (guint k = low; k > 0 && low - k < LOOKED_BACK_MAX; k--) {
            const service *x = &g_array_index(services, service, k - 1);
            if (x->to_ns <= w->from_ns)
                break;
            w->idle_ns -= (double)(MIN(x->to_ns, w->to_ns) - MAX(x->from_ns, w->from_ns));
        }
        w->idle_ns = fmax(0, w->idle_ns);
    }
    return concurrent;
}

/* Gathers the visits to an edge whose servers execute the spans of the place `span`. Returns false if the servers
 * execute several spans at a time. */
static bool gather(idle_servers *s, const place *edge, uint32_t span)
{
    const visits *v = s->v;
    uint32_t concurrent = 0, services = 0;
    double sum = 0;
    s->all = g_new(waiting, edge->count + 1);
    for (uint32_t i = 0; i < edge->count; i++) {
        uint32_t index = v->by_place[edge->first + i];
        const visit *x = visit_at(v, index);
        s->all[s->count++] = (waiting){
            .from_ns = x->from_ns, .to_ns = x->to_ns, .visit = index, .server = site_at(v, x->site)->instance};
        sum += (double)(x->to_ns - x->from_ns);
    }
    s->mean_ns = sum / MAX(s->count, 1);
    qsort(s->all, s->count, sizeof *s->all, by_server_and_end);
    for (uint32_t first = 0, last; first < s->count; first = last) {
        for (last = first; last < s->count && s->all[last].server == s->all[first].server; last++)
            ;
        GArray *of = services_of(v, span, s->all[first].server);
        concurrent += find_idle_times(s, of, first, last);
        services += of->len;
        g_array_free(of, TRUE);
    }
    return concurrent <= CONCURRENT_MAX * services;
}

/* Returns whether the wait of a visit ends while the server is idle. */
static bool ends_idle(const idle_servers *s, const waiting *w)
{
    double idle_min = IDLE_PART * s->mean_ns;
    return w->idle_ns > idle_min && (w->free_ns == INT64_MIN || (double)(w->to_ns - w->free_ns) > idle_min);
}

/* Returns whether another visit to the same server arrives at most near_ns before the wait of visit i ends. */
static bool is_triggered(const idle_servers *s, uint32_t i, double near_ns)
{
    enum { NEXT_MAX = 32 };
    const waiting *w = &s->all[i];
    for (uint32_t k = i + 1; k < s->count && k <= i + NEXT_MAX && s->all[k].server == w->server; k++)
        if (s->all[k].from_ns <= w->to_ns && (double)(w->to_ns - s->all[k].from_ns) <= near_ns &&
            s->all[k].from_ns > w->from_ns)
            return true;
    return false;
}

/* Decides whether the servers collect batches. Returns the probability by chance, or 1. */
static double find_triggers(const idle_servers *s, mechanism *m)
{
    static const double near[] = {0.05, 0.1, 0.2}; /* parts of the mean wait, for servers that react slowly */
    uint32_t servers = 0;
    for (uint32_t i = 0; i < s->count; i++)
        servers += i == 0 || s->all[i].server != s->all[i - 1].server;
    const double rate = s->count / (double)MAX(s->v->to_ns - s->v->from_ns, 1) / MAX(servers, 1);
    for (size_t k = 0; k < G_N_ELEMENTS(near); k++) {
        const double near_ns = near[k] * s->mean_ns, expected = 1 - exp(-near_ns * rate);
        uint32_t idle = 0, triggered = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            bool is_idle = ends_idle(s, &s->all[i]);
            idle += is_idle;
            triggered += is_idle && is_triggered(s, i, near_ns);
        }
        if (idle < IDLE_MIN || triggered < TRIGGERED_MIN * idle || expected > NEAR_CHANCE_MAX)
            continue;
        m->count = idle;
        m->length_ns = (double)s->count / idle;
        m->share = (double)triggered / idle;
        m->by_arrivals = true;
        return G_N_ELEMENTS(near) * binomial_tail(idle - triggered, idle, 1 - expected);
    }
    return 1;
}

/* The regularity of times with a period, and the probability of at least this regularity by chance. */
typedef struct rhythm {
    double regularity, p, period_ns;
} rhythm;

/* Returns the regularity of the times at which idle visits end or, if `of_arrivals` is true, begin. If `since_free` is
 * true, measures these times from the end of the server's previous span. Each server has a phase of its own. Under
 * independence, the sum of the squared resultants, divided by the numbers of visits, has a gamma distribution
 * (Rayleigh's test). */
static rhythm rhythm_of(const idle_servers *s, double period_ns, bool since_free, bool of_arrivals)
{
    double sum = 0, z = 0;
    uint32_t all = 0, servers = 0;
    for (uint32_t first = 0, last; first < s->count; first = last) {
        double x = 0, y = 0;
        uint32_t n = 0;
        for (last = first; last < s->count && s->all[last].server == s->all[first].server; last++) {
            const waiting *w = &s->all[last];
            if (!ends_idle(s, w) || w->free_ns == INT64_MIN)
                continue;
            int64_t at_ns = of_arrivals ? w->from_ns : w->to_ns, base_ns = since_free ? w->free_ns : s->v->from_ns;
            double angle = 2 * G_PI * fmod((double)(at_ns - base_ns), period_ns) / period_ns;
            x += cos(angle);
            y += sin(angle);
            n++;
        }
        if (n == 0)
            continue;
        sum += hypot(x, y);
        z += (x * x + y * y) / n;
        all += n;
        servers++;
    }
    double term = exp(-z), tail = 0;
    for (uint32_t k = 0; k < servers; k++) {
        tail += term;
        term *= z / (k + 1);
    }
    return (rhythm){all > 0 ? sum / all : 0, fmin(1, tail), period_ns};
}

/* Decides whether the servers look for work only when a period ends. Returns the probability by chance, or 1. */
static double find_polls(const idle_servers *s, mechanism *m)
{
    double *idle = g_new(double, s->count + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (ends_idle(s, &s->all[i]) && s->all[i].free_ns != INT64_MIN)
            idle[count++] = s->all[i].idle_ns;
    sort_doubles(idle, count);
    double longest_ns = count > 0 ? idle[count * 19 / 20] : 0, shortest_ns = count > 0 ? idle[count / 20] : 0;
    g_free(idle);
    if (count < IDLE_MIN || longest_ns - shortest_ns < SPREAD_MIN * longest_ns)
        return 1;
    rhythm best = {0, 1, 0};
    bool since_free = false;
    /* a wait lasts at most a period, and most visits arrive at any time of the period */
    for (int k = 0; k < PERIODS; k++)
        for (int since = 0; since < 2; since++) {
            rhythm r = rhythm_of(s, longest_ns * (0.8 + 0.8 * k / PERIODS), since, false);
            since_free = r.regularity > best.regularity ? since : since_free;
            best = r.regularity > best.regularity ? r : best;
        }
    if (!since_free) {
        /* in a long log, a small error of the period changes the phase */
        double width_ns = longest_ns * 0.8 / PERIODS, middle_ns = best.period_ns;
        for (int k = -PERIODS / 2; k <= PERIODS / 2; k++) {
            rhythm r = rhythm_of(s, middle_ns + 2 * width_ns * k / PERIODS, false, false);
            best = r.regularity > best.regularity ? r : best;
        }
    }
    if (best.regularity < REGULARITY_MIN ||
        rhythm_of(s, best.period_ns, since_free, true).regularity > best.regularity - REGULARITY_MORE)
        return 1;
    m->period_ns = best.period_ns;
    m->count = (uint32_t)count;
    return fmin(1, best.p * PERIODS * 3);
}

/* Claims the waits for an idle server. Returns the part of the sample's time that it claims. */
static double claim_idle(const idle_servers *s, const sample *x, mechanism *m)
{
    double sum = 0;
    m->waits = g_new0(float, s->v->all->len + 1);
    float *waits = g_new0(float, x->count + 1), *idle = g_new0(float, s->v->all->len + 1);
    for (uint32_t i = 0; i < s->count; i++)
        idle[s->all[i].visit] = (float)s->all[i].idle_ns;
    for (uint32_t i = 0; i < x->count; i++) {
        waits[i] = m->waits[x->index[i]] = fminf(idle[x->index[i]], (float)x->y[i]);
        m->claim_ns += (double)waits[i] * x->weight[i] * x->scale;
        sum += x->y[i] * x->weight[i] * x->scale;
    }
    m->explained = sample_explained_by_waits(x, waits);
    g_free(waits);
    g_free(idle);
    return sum > 0 ? m->claim_ns / sum : 0;
}

mechanism find_idle_servers(const sample *x, bool *is_batch)
{
    mechanism m = {0};
    const place *p = place_at(x->visits, x->place);
    uint32_t span = p->kind == PLACE_EDGE && x->count >= IDLE_MIN ? next_span(x->visits, x->place) : VISIT_NONE;
    if (span == VISIT_NONE || x->scale > 1.5)
        return m;
    idle_servers s = {.v = x->visits};
    double p_batch = 1, p_polls = 1;
    if (gather(&s, p, span) && claim_idle(&s, x, &m) >= IDLE_SHARE_MIN) {
        p_batch = find_triggers(&s, &m);
        p_polls = p_batch < 1 ? 1 : find_polls(&s, &m);
    }
    g_free(s.all);
    m.p = fmin(1, 2 * fmin(p_batch, p_polls));
    *is_batch = p_batch < 1;
    if (p_batch >= 1 && p_polls >= 1)
        g_clear_pointer(&m.waits, g_free);
    return m;
}
