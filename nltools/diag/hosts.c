/*
 * Finds hosts whose resources are used up, regardless of other hosts. The legs on the host and to it wait for that.
 * The time that could be saved is estimated by the legs' 10th percentiles, but as at least half, because all passages
 * may be slow.
 */
#include "config.h"

#include "diag/findings.h"

#include <math.h>

/* The time of legs on or to a host, and the part above their 10th percentiles. */
typedef struct burden {
    double total_ns, excess_ns;
    const leg *worst;
} burden;

static void hosts_add(burden *b, const leg *l)
{
    double excess = l->total_ns - (double)l->low_ns * (double)l->count;
    b->total_ns += l->total_ns;
    b->excess_ns += excess;
    if (b->worst == NULL || l->total_ns > b->worst->total_ns)
        b->worst = l;
}

static burden burden_of(const observed *o, guint host, bool local)
{
    const GPtrArray *legs = observed_legs(o);
    burden b = {0};
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (local ? leg_is_local(l) && l->from_host == host
                  : !leg_is_local(l) && (l->from_host == host || l->to_host == host))
            hosts_add(&b, l);
    }
    return b;
}

/* Adds the time of the legs to a host above their 10th percentiles. */
static void add_arrivals(burden *b, const observed *o, guint host)
{
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (leg_is_local(l) || l->to_host != host)
            continue;
        double excess = l->total_ns - (double)l->low_ns * (double)l->count;
        b->total_ns += excess;
        b->excess_ns += excess;
        if (b->worst == NULL || l->total_ns > b->worst->total_ns)
            b->worst = l;
    }
}

static double share_of(const observed *o, const burden *b)
{
    double all = observed_total_ns(o);
    return all > 0 ? MAX(b->excess_ns, b->total_ns / 2) / all : 0;
}

static finding *hosts_tell(findings *f, guint host, const char *cause, const burden *b, double sure, const char *title)
{
    const observed *o = f->observed;
    finding *made = findings_add(f, cause, share_of(o, b), sure, "%s %s", title, observed_host(o, host));
    finding_place(made, o, host, b->worst);
    if (b->worst != NULL) {
        const char *where = text_leg(o, b->worst), *part = text_share(leg_share(o, b->worst)),
                   *mean = text_ns(b->worst->mean_ns), *low = text_ns((double)b->worst->low_ns);
        finding_evidence(made, "%s takes %s of all time: mean %s, 10th percentile %s", where, part, mean, low);
    }
    return made;
}

static void find_memory(findings *f, guint host, const pressure *p)
{
    bool swaps = p->swapped >= 1 << 20, waits = p->memory_waited >= 5, faults = p->major_faults >= 100;
    if (!swaps && !waits)
        return;
    burden b = burden_of(f->observed, host, true);
    finding *made = hosts_tell(f, host, "memory", &b, swaps && (waits || faults) ? 0.9 : 0.7, "too little memory on");
    if (swaps)
        finding_evidence(made, "%.1f MB/s to and from swap space", p->swapped / 1e6);
    if (waits)
        finding_evidence(made, "some task waited for memory %.0f %% of the time", p->memory_waited);
    if (faults)
        finding_evidence(made, "%.0f page faults per second read from a disk", p->major_faults);
    finding_advice(made, "add memory, or find what uses it with the sensor processes");
}

/* Swapping also makes the disk busy, so a host that swaps is not reported here. */
static void find_disk(findings *f, guint host, const pressure *p)
{
    bool busy = p->disk_busy >= 85, waits = p->io_waited >= 30;
    if ((!busy && !waits) || p->swapped >= 1 << 20)
        return;
    burden b = burden_of(f->observed, host, true);
    finding *made = hosts_tell(f, host, "disk", &b, busy && waits ? 0.85 : 0.7, "a disk at its limit on");
    if (busy)
        finding_evidence(made, "the disk is busy %.0f %% of the time", p->disk_busy);
    if (waits)
        finding_evidence(made, "some task waited for I/O %.0f %% of the time", p->io_waited);
    if (p->disk_ms > 0)
        finding_evidence(made, "a request takes %.1f ms", p->disk_ms);
    finding_advice(made,
                   "read less, use larger requests, spread the data over more disks, or find other users of the disk");
}

/*
 * A processor with many softirqs; or a busy one whose softirqs exceed its other work, or are far more than programs'
 * own code, because the kernel's other work is mostly for the same packets.
 */
static bool is_softirq_bound(const pressure *p)
{
    bool is_most = p->softirq_most > p->softirq_busy / 2 || p->softirq_most > 2 * p->softirq_user;
    return p->softirq_most >= 60 || (p->softirq_most >= 40 && p->softirq_busy >= 90 && is_most);
}

/*
 * A program that gets no processor leaves its input unread, so that the legs to it are longer, too. Processors busy
 * with softirqs are another cause.
 */
static void find_cpu(findings *f, guint host, const pressure *p)
{
    bool busy = p->cpu_busy >= 90, waits = p->cpu_waited >= 40;
    if ((!busy && !waits) || is_softirq_bound(p))
        return;
    burden b = burden_of(f->observed, host, true);
    if (p->unread >= UNREAD)
        add_arrivals(&b, f->observed, host);
    finding *made = hosts_tell(f, host, "cpu", &b, busy && waits ? 0.85 : 0.7, "too few processors on");
    if (busy)
        finding_evidence(made, "the processors are %.0f %% busy", p->cpu_busy);
    if (waits)
        finding_evidence(made, "some task waited for a processor %.0f %% of the time", p->cpu_waited);
    if (p->unread >= UNREAD)
        finding_evidence(made, "input waits to be read: %.0f %% of the receive windows of TCP", 100 * p->unread);
    finding_advice(made, "find what runs there with the sensor processes, or with nlkernel record");
}

static void find_softirq(findings *f, guint host, const pressure *p)
{
    if (!is_softirq_bound(p))
        return;
    burden b = burden_of(f->observed, host, false);
    finding *made = hosts_tell(f, host, "softirq", &b, 0.8, "a processor that only receives packets on");
    finding_evidence(made, "softirqs take %.0f %% of one processor", p->softirq_most);
    if (p->softirq_user < p->softirq_most)
        finding_evidence(made, "programs get %.0f %% of it", p->softirq_user);
    finding_advice(made, "distribute the receiving: RSS or RPS, larger segments (GRO), interrupts on other processors");
}

/* Reports the legs to and from a host whose interface is full. */
static void find_link(findings *f, guint host, const pressure *p)
{
    if (!(p->link >= LINK_FULL))
        return;
    burden b = burden_of(f->observed, host, false);
    finding *made = hosts_tell(f, host, "link", &b, 0.85, "a full network interface on");
    finding_evidence(made, "its mean rate is %.0f %% of that of such an interface", 100 * p->link);
    finding_advice(made, "send less (compression, caches, fewer copies), or use faster or more interfaces");
}

/* A nearly full filesystem may search long for space and write in small pieces; the certainty is low. */
static void find_space(findings *f, guint host, const pressure *p)
{
    if (!(p->space_used >= 0.95))
        return;
    burden b = burden_of(f->observed, host, true);
    finding *made = hosts_tell(f, host, "disk", &b, 0.6, "a filesystem that is nearly full on");
    finding_evidence(made, "%.1f %% of the filesystem is used, and usage grows", 100 * p->space_used);
    finding_advice(made, "free space there, and measure again");
}

void find_hosts(findings *f)
{
    const observed *o = f->observed;
    for (guint host = 1; host < observed_host_count(o); host++) {
        pressure p = f->pressures[host];
        find_memory(f, host, &p);
        find_disk(f, host, &p);
        find_cpu(f, host, &p);
        find_softirq(f, host, &p);
        find_link(f, host, &p);
        find_space(f, host, &p);
    }
}
