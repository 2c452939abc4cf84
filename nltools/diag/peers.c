/*
 * Finds hosts that are slower than the hosts that do the same. Legs between the same events on different hosts should
 * take equal times; the time above the median of the others is the excess. The cause is what differs on the host:
 * disk, processors, retransmits, or a larger load. If nothing differs, or nothing is known, the host is a straggler.
 * The excess must exceed the error of the mean and the usual differences between hosts.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOWER 1.1 /* less could not explain a tenth */
#define LOADED 1.5 /* more to do than the others */
enum { PASSAGES_MIN = 5, BATCHES = 20 };

typedef struct peer {
    guint host;
    double local_ns, between_ns; /* excess of its own legs, and of those to and from it */
    const leg *worst;
    double worst_ns, usual_ns; /* the worst leg's excess, and what that takes elsewhere */
    double others;             /* how many peers that leg has */
    double load;               /* how many times as often as theirs it is passed */
} peer;

/* Returns the host in which a leg differs from its family; 0 if both ends differ. */
static guint varying_host(const leg *l, bool from_varies, bool to_varies)
{
    if (leg_is_local(l))
        return l->from_host;
    return from_varies == to_varies ? 0 : from_varies ? l->from_host : l->to_host;
}

/*
 * Returns the squared error of a leg's mean. Neighbouring passages are similar in queues, so the means of batches are
 * used as independent values (method of batch means).
 */
static double square_error(const leg *l)
{
    size_t batches = MIN(BATCHES, l->count / PASSAGES_MIN), each = batches >= BATCHES / 2 ? l->count / batches : 1;
    double squares = 0;
    batches = l->count / each;
    for (size_t i = 0; i < batches; i++) {
        double sum = 0;
        for (size_t k = 0; k < each; k++)
            sum += (double)l->passages[i * each + k].took_ns;
        squares += pow(sum / (double)each - l->mean_ns, 2);
    }
    return squares / (double)batches / (double)batches;
}

/* The means of the other legs: their median (NAN if none exist) and their spread around it. */
typedef struct usual {
    double ns, spread_ns;
} usual;

static usual usual_of_others(const leg *const *family, guint count, guint left_out)
{
    double *means = g_new(double, count);
    guint others = 0;
    for (guint i = 0; i < count; i++)
        if (i != left_out && family[i]->count >= PASSAGES_MIN)
            means[others++] = family[i]->mean_ns;
    usual u = {others > 0 ? median(means, others) : NAN, 0};
    if (others >= OTHERS_MIN)
        u.spread_ns = spread_around(means, others, u.ns);
    g_free(means);
    return u;
}

static bool is_certain(const leg *l, const usual *u)
{
    double excess = l->mean_ns - u->ns;
    return excess >= CERTAIN * sqrt(square_error(l)) && excess >= UNLIKE * u->spread_ns;
}

/* Returns the ratio of the passages of a leg to the median of the other legs of its family. */
static double load_of(const leg *const *family, guint count, guint index)
{
    double *counts = g_new(double, count);
    guint others = 0;
    for (guint i = 0; i < count; i++)
        if (i != index)
            counts[others++] = (double)family[i]->count;
    qsort(counts, others, sizeof *counts, compare_doubles);
    double times = (double)family[index]->count / counts[others / 2];
    g_free(counts);
    return times;
}

static void charge(GArray *peers, guint host, const leg *l, double usual_ns, guint others, double load)
{
    peer *p = &g_array_index(peers, peer, host);
    double excess = (l->mean_ns - usual_ns) * (double)l->count;
    *(leg_is_local(l) ? &p->local_ns : &p->between_ns) += excess;
    if (excess <= p->worst_ns)
        return;
    p->worst = l;
    p->worst_ns = excess;
    p->usual_ns = usual_ns;
    p->others = others;
    p->load = load;
}

/*
 * Compares a family: the legs between the same two events. A mean may be large by one accident, so the 90th percentile
 * counts, too.
 */
static void compare_family(GArray *peers, const leg *const *family, guint count)
{
    bool from_varies = false, to_varies = false;
    for (guint i = 1; i < count; i++) {
        from_varies = from_varies || family[i]->from_host != family[0]->from_host;
        to_varies = to_varies || family[i]->to_host != family[0]->to_host;
    }
    for (guint i = 0; i < count; i++) {
        const leg *l = family[i];
        usual u = usual_of_others(family, count, i);
        guint host = varying_host(l, from_varies, to_varies);
        if (host == 0 || l->count < PASSAGES_MIN || isnan(u.ns) || l->mean_ns < SLOWER * u.ns ||
            (double)l->high_ns < u.ns || !is_certain(l, &u))
            continue;
        charge(peers, host, l, u.ns, count - 1, load_of(family, count, i));
    }
}

static GArray *compare_hosts(const observed *o)
{
    const GPtrArray *legs = observed_legs(o);
    GArray *peers = g_array_new(FALSE, TRUE, sizeof(peer));
    g_array_set_size(peers, observed_host_count(o));
    for (guint first = 0, end; first < legs->len; first = end) {
        end = leg_way_end(legs, first);
        if (end - first >= 2)
            compare_family(peers, (const leg *const *)&legs->pdata[first], end - first);
    }
    return peers;
}

/* ---- why ---- */

static double member_of(const pressure *p, size_t member)
{
    return *(const double *)(const void *)((const char *)p + member);
}

/* Returns the median of a value on the other hosts. */
static double elsewhere(const findings *f, guint host, size_t member)
{
    guint count = observed_host_count(f->observed), known = 0;
    double *values = g_new(double, count);
    for (guint h = 1; h < count; h++) {
        double value = member_of(&f->pressures[h], member);
        if (h != host && !isnan(value))
            values[known++] = value;
    }
    qsort(values, known, sizeof *values, compare_doubles);
    double middle = known > 0 ? values[known / 2] : NAN;
    g_free(values);
    return middle;
}

/* A resource that may slow a host down: above a minimum, and well above the other hosts. */
typedef struct reason {
    const char *cause;
    size_t member;
    double least, times;
    bool local; /* it makes what a host does by itself slow; else the ways to and from it */
    const char *title, *name, *unit, *advice;
} reason;

#define DISK_ADVICE "check that disk: smartctl, a rebuild, other programs that use it"
#define CPU_ADVICE "find what runs there with the sensor processes"
#define MEMORY_ADVICE "add memory, or find what uses it with the sensor processes"
#define PATH_ADVICE "look for errors and drops along that path: ip -s link, the counters of switches"

static const reason reasons[] = {
    {"memory", offsetof(pressure, swapped), 1 << 20, 3, true, "too little memory on", "swapping", "bytes/s",
     MEMORY_ADVICE},
    {"memory", offsetof(pressure, memory_waited), 5, 3, true, "too little memory on", "time that tasks wait for memory",
     "%", MEMORY_ADVICE},
    {"cpu", offsetof(pressure, cpu_busy), 80, 1.4, true, "processors used by other programs on",
     "processors' busy time", "%", CPU_ADVICE},
    {"cpu", offsetof(pressure, cpu_waited), 20, 2, true, "processors used by other programs on",
     "time that tasks wait for a processor", "%", CPU_ADVICE},
    {"disk", offsetof(pressure, disk_busy), 60, 1.5, true, "a slow disk on", "disk's busy time", "%", DISK_ADVICE},
    {"disk", offsetof(pressure, disk_ms), 5, 2, true, "a slow disk on", "a disk request", "ms", DISK_ADVICE},
    {"disk", offsetof(pressure, io_waited), 20, 1.5, true, "a slow disk on", "time that tasks wait for I/O", "%",
     DISK_ADVICE},
    {"loss", offsetof(pressure, retransmits), 0.0005, 3, false, "lost packets to or from",
     "share of retransmitted TCP segments", "", PATH_ADVICE},
    {"softirq", offsetof(pressure, softirq_most), 60, 2, false, "a processor that only receives packets on",
     "softirqs on one processor", "%",
     "distribute the receiving: RSS or RPS, larger segments (GRO), interrupts on other processors"},
};

static bool is_reason(const findings *f, const reason *r, const peer *p, const pressure *here, double *there)
{
    double value = member_of(here, r->member);
    bool kind = r->local ? p->local_ns >= p->between_ns / 2 : p->between_ns >= p->local_ns / 2;
    if (!kind || !(value >= r->least))
        return false;
    *there = elsewhere(f, p->host, r->member);
    return isnan(*there) || value >= r->times * *there;
}

/* Without sensors, the names of both events show a leg of a disk. */
static bool names_disk(const leg *l)
{
    static const char *const operations[] = {"disk", "file", "fsync", "seek"};
    char *from = g_ascii_strdown(l->from, -1), *to = g_ascii_strdown(l->to, -1);
    bool found = false;
    for (size_t i = 0; i < G_N_ELEMENTS(operations); i++)
        found = found || (strstr(from, operations[i]) != NULL && strstr(to, operations[i]) != NULL);
    g_free(from);
    g_free(to);
    return found && leg_is_local(l);
}

static void show(finding *made, const observed *o, const peer *p)
{
    const char *where = text_leg(o, p->worst), *mean = text_ns(p->worst->mean_ns), *usual_text = text_ns(p->usual_ns),
               *part = text_share(p->worst_ns / observed_total_ns(o));
    finding_evidence(made, "%s: %s on average, elsewhere %s (%.0f for comparison); the difference is %s of all time",
                     where, mean, usual_text, p->others, part);
    finding_place(made, o, p->host, p->worst);
    made->is_of_host = true;
}

static void show_pressure(finding *made, const reason *r, double here, double there)
{
    if (isnan(there))
        finding_evidence(made, "%s there: %.3g %s", r->name, here, r->unit);
    else
        finding_evidence(made, "%s there: %.3g %s, elsewhere %.3g", r->name, here, r->unit, there);
}

/* A host with more work and busier processors is slower because of its load, not because of other programs. */
static bool explain_load(findings *f, const peer *p, double share, double sure)
{
    const observed *o = f->observed;
    double here = f->pressures[p->host].cpu_busy, there = elsewhere(f, p->host, offsetof(pressure, cpu_busy));
    if (p->load < LOADED || p->local_ns < p->between_ns || here < LOADED * there)
        return false;
    finding *made = findings_add(f, "balance", share, isnan(here) ? sure - 0.2 : sure,
                                 "%s has more work than the hosts that do the same", observed_host(o, p->host));
    finding_evidence(made, "it gets %.3g times as many objects as the others: %zu from %s to %s", p->load,
                     p->worst->count, p->worst->from, p->worst->to);
    show(made, o, p);
    if (!isnan(here) && !isnan(there))
        finding_evidence(made, "processors' busy time there: %.3g %%, elsewhere %.3g", here, there);
    finding_advice(made,
                   "check what distributes the work: weights of a load balancer, a hash, permanent connections; or "
                   "use a faster host");
    return true;
}

static void explain(findings *f, const peer *p, double share)
{
    const observed *o = f->observed;
    const char *host = observed_host(o, p->host);
    double sure = p->others >= 2 ? 0.9 : 0.7;
    pressure here = f->pressures[p->host];
    if (explain_load(f, p, share, sure))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
        const reason *r = &reasons[i];
        double there;
        if (!is_reason(f, r, p, &here, &there))
            continue;
        finding *made = findings_add(f, r->cause, share, sure, "%s %s", r->title, host);
        show(made, o, p);
        show_pressure(made, r, member_of(&here, r->member), there);
        finding_advice(made, "%s", r->advice);
        return;
    }
    bool disk = p->local_ns > p->between_ns && names_disk(p->worst);
    finding *made =
        disk ? findings_add(f, "disk", share, sure - 0.1, "a slow disk on %s", host)
             : findings_add(f, "straggler", share, sure - 0.1, "%s is slower than the hosts that do the same", host);
    show(made, o, p);
    if (!disk)
        finding_evidence(made, "the log does not show what else differs there");
    finding_advice(made, "%s",
                   disk ? DISK_ADVICE
                        : "compare it with the others: hardware, load, configuration; log its sensors, too");
}

/* ---- rule ---- */

/* Returns the time of the objects of each host. With many hosts, the share of all time would be small for any host. */
static double *objects_of_hosts(const observed *o)
{
    double *own_ns = g_new0(double, observed_host_count(o));
    const GArray *objects = observed_objects(o);
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        own_ns[one->host] += (double)(one->to_ns - one->from_ns);
    }
    return own_ns;
}

void find_peers(findings *f)
{
    const observed *o = f->observed;
    GArray *peers = compare_hosts(o);
    double *own_ns = objects_of_hosts(o);
    for (guint h = 1; h < peers->len; h++) {
        peer *p = &g_array_index(peers, peer, h);
        p->host = h;
        if (p->worst != NULL && own_ns[h] > 0)
            explain(f, p, (p->local_ns + p->between_ns) / own_ns[h]);
    }
    g_free(own_ns);
    g_array_free(peers, TRUE);
}
