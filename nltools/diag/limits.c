/*
 * Finds the limits of hosts and of TCP, from the records of sensors (doc/sensors.md) during requests.
 *
 * A limit becomes the cause of a finding if the limit has an effect in most of the finding's time. A limit that slows
 * all requests in the same way explains no variation, so the search creates no finding. The module adds a finding for a
 * limit that affects more than half of the time. For a limit of connections, the share alone_min is sufficient, because
 * the records show which part of each visit the limit takes.
 */
#include "config.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/connection_limits.h"
#include "diag/retransmissions.h"
#include "diag/search.h"
#include "diag/slow_disks.h"

/* A limit explains a finding only if its effect is known for at least this part of the finding's time. */
#define KNOWN_MIN 0.25

/* The module adds a finding for a limit that has an effect in more than this share of all time. */
#define FELT_PART_MIN 0.5

/* Weak visits (limit.h) count only if a limit has an effect in this share of all time. */
#define WEAK_MIN 0.3

enum { SENT_MIN = 65536 }; /* the module ignores connections that have sent fewer bytes */

/* A program is too slow for its input if at least this share of the bytes is unread. */
#define UNREAD 0.2

/* Minimum rate of a saturated interface, without headers, as a share of the interface's speed. */
#define LINK_FULL 0.9

/* The connections of a host that have sent many bytes: sums of increases, and means weighted by bytes. */
typedef struct tcp {
    uint32_t connections;
    double busy_us, receiver_us, buffer_us, wall_us, sent, again;
    double rtt_us, rtt_min_us, window, cwnd, unsent;
} tcp;

typedef struct load {
    double cpu_busy, cpu_waited, disk_busy, io_waited, memory_waited, swapped, major_faults,
        disk_ms;                                /* NAN if unknown */
    double softirq, softirq_busy, softirq_user; /* values of the processor with the most softirqs, in percent */
    double retransmits, felt; /* retransmits: share of the segments that were sent again; felt: share of the time in
                                 which these losses delay data */
    double link, unread;
    tcp tcp;
} load;

/* ---- series ---- */

static bool is_of(const sensor_series *s, const char *event, const char *field, const char *instance)
{
    return strcmp(s->field, field) == 0 && strcmp(s->event, event) == 0 &&
           (instance == NULL || strcmp(s->instance, instance) == 0);
}

/*
 * Adds up the samples of a series that sensors took during requests. Returns the number of these samples. Sets *rise to
 * the last value minus the first value.
 */
static uint32_t sum_series(const visits *v, const sensor_series *s, double *sum, double *rise)
{
    uint32_t count = 0;
    double first = 0, last = 0;
    *sum = 0;
    for (guint i = 0; i < s->samples->len; i++) {
        const series_sample *x = &g_array_index(s->samples, series_sample, i);
        if (x->time_ns < v->from_ns || x->time_ns > v->to_ns)
            continue;
        first = count == 0 ? x->value : first;
        last = x->value;
        *sum += x->value;
        count++;
    }
    *rise = last - first;
    return count;
}

static double mean_of(const visits *v, const sensor_series *s)
{
    double sum, rise;
    uint32_t count = sum_series(v, s, &sum, &rise);
    return count > 0 ? sum / count : NAN;
}

static double rise_of(const visits *v, const sensor_series *s)
{
    double sum, rise;
    sum_series(v, s, &sum, &rise);
    return rise;
}

static double share_above(const visits *v, const sensor_series *s, double low)
{
    uint32_t count = 0, above = 0;
    for (guint i = 0; i < s->samples->len; i++) {
        const series_sample *x = &g_array_index(s->samples, series_sample, i);
        if (x->time_ns < v->from_ns || x->time_ns > v->to_ns)
            continue;
        count++;
        above += x->value >= low;
    }
    return count > 0 ? (double)above / count : 0;
}

/*
 * Returns the largest mean of a sensor's field in a host's series, or NAN. Considers the series of `instance` or, if
 * `instance` is NULL, of all instances. Sets *of to the series with the largest mean, unless `of` is NULL.
 */
static double largest_mean(const visits *v, const GPtrArray *all, const char *event, const char *field,
                           const char *instance, const sensor_series **of)
{
    double largest = NAN;
    for (guint i = 0; i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        double mean = is_of(s, event, field, instance) ? mean_of(v, s) : NAN;
        if (isnan(mean) || mean <= largest)
            continue;
        largest = mean;
        if (of != NULL)
            *of = s;
    }
    return largest;
}

static double rise_beside(const visits *v, const sensor_series *s, const char *field)
{
    const GPtrArray *all = series_of_host(v->series, s->host);
    for (guint i = 0; i < all->len; i++)
        if (is_of(g_ptr_array_index(all, i), s->event, field, s->instance))
            return rise_of(v, g_ptr_array_index(all, i));
    return 0;
}

static double mean_beside(const visits *v, const sensor_series *s, const char *field)
{
    return largest_mean(v, series_of_host(v->series, s->host), s->event, field, s->instance, NULL);
}

/* ---- measuring ---- */

static void measure_sender(const visits *v, const sensor_series *s, tcp *t)
{
    double sent = rise_of(v, s);
    if (sent < SENT_MIN)
        return;
    t->connections++;
    t->sent += sent;
    t->again += rise_beside(v, s, "TCP.BYTES.RETRANS");
    t->busy_us += rise_beside(v, s, "TCP.BUSY");
    t->receiver_us += rise_beside(v, s, "TCP.LIMITED.RECEIVER");
    t->buffer_us += rise_beside(v, s, "TCP.LIMITED.BUFFER");
    t->rtt_us += sent * mean_beside(v, s, "TCP.RTT");
    t->rtt_min_us = fmin(t->rtt_min_us, mean_beside(v, s, "TCP.RTT.MIN"));
    t->window += sent * mean_beside(v, s, "TCP.WINDOW");
    t->cwnd += sent * mean_beside(v, s, "TCP.CWND") * mean_beside(v, s, "TCP.MSS");
    t->unsent += sent * mean_beside(v, s, "TCP.UNSENT");
    t->wall_us += (double)(v->to_ns - v->from_ns) / 1e3;
}

static void measure_connections(const visits *v, const GPtrArray *all, load *l)
{
    double waits = 0, capacity = 0;
    l->tcp.rtt_min_us = INFINITY;
    for (guint i = 0; i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (is_of(s, "TcpConnection", "TCP.BYTES.SENT", NULL))
            measure_sender(v, s, &l->tcp);
        if (!is_of(s, "TcpConnection", "TCP.BYTES.RECEIVED", NULL) || rise_of(v, s) < SENT_MIN)
            continue;
        double queue = mean_beside(v, s, "TCP.QUEUE.IN"), window = mean_beside(v, s, "TCP.WINDOW.RECEIVE");
        if (!isnan(queue) && !isnan(window)) {
            waits += queue;
            capacity += window;
        }
    }
    l->unread = waits + capacity > 0 ? waits / (waits + capacity) : 0;
    if (l->tcp.sent > 0) {
        l->tcp.rtt_us /= l->tcp.sent;
        l->tcp.window /= l->tcp.sent;
        l->tcp.cwnd /= l->tcp.sent;
        l->tcp.unsent /= l->tcp.sent;
    }
}

/* TCP.RETRANS counts the segments sent again since the previous record. TCP.OUT is a rate, and excludes segments that
 * only retransmit (RFC 2012, tcpOutSegs). A loss has an effect for several round trips. */
static void measure_loss(const visits *v, const GPtrArray *all, load *l)
{
    const sensor_series *again = NULL;
    double count = largest_mean(v, all, "TcpSegments", "TCP.RETRANS", NULL, &again),
           out = largest_mean(v, all, "TcpSegments", "TCP.OUT", NULL, NULL);
    l->retransmits = l->tcp.sent > 0 ? l->tcp.again / l->tcp.sent : 0;
    l->felt = 1;
    if (again == NULL || again->samples->len < 2)
        return;
    const series_sample *first = &g_array_index(again->samples, series_sample, 0),
                        *last = first + again->samples->len - 1;
    double seconds = (double)(last->time_ns - first->time_ns) / 1e9 / (again->samples->len - 1) / again->joined;
    if (seconds > 0 && out >= 0 && count > 0)
        l->retransmits = fmax(l->retransmits, count / (count + out * seconds));
    l->felt = fmin(1, 3 * share_above(v, again, 0.01));
}

/* If the rate of an interface is nearly always near a usual speed, returns the mean rate as a share of this speed.
 * Otherwise, returns 0, because a rate that varies shows the demand, not a limit. */
static double full_link(const visits *v, const GPtrArray *all, const char *field)
{
    static const double speeds[] = {100, 1000, 2500, 5000, 10000, 25000, 40000, 50000, 100000, 200000, 400000};
    const sensor_series *s = NULL;
    double mean = largest_mean(v, all, "NetworkInterface", field, NULL, &s);
    for (size_t i = 0; s != NULL && s->samples->len >= 5 && i < G_N_ELEMENTS(speeds); i++) {
        double bytes = speeds[i] * 1e6 / 8;
        if (share_above(v, s, 1.02 * bytes) <= 0.05)
            return share_above(v, s, LINK_FULL * bytes) >= 0.8 ? mean / bytes : 0;
    }
    return 0;
}

/* Returns the load of a host, computed from the host's series. The caller frees it with g_free. */
static load *measure(const visits *v, const GPtrArray *all)
{
    load *l = g_new0(load, 1);
    const sensor_series *processor = NULL;
    l->cpu_busy = largest_mean(v, all, "CpuLoad", "CPU.BUSY", NULL, NULL);
    l->cpu_waited = largest_mean(v, all, "Pressure", "PSI.SOME", "cpu", NULL);
    l->io_waited = largest_mean(v, all, "Pressure", "PSI.SOME", "io", NULL);
    l->memory_waited = largest_mean(v, all, "Pressure", "PSI.SOME", "memory", NULL);
    l->disk_busy = fmax(largest_mean(v, all, "DiskDevice", "DISK.BUSY", NULL, NULL),
                        largest_mean(v, all, "DiskIo", "DISK.BUSY", NULL, NULL));
    l->disk_ms = fmax(largest_mean(v, all, "DiskDevice", "DISK.READ.MS", NULL, NULL),
                      largest_mean(v, all, "DiskDevice", "DISK.WRITE.MS", NULL, NULL));
    l->swapped = fmax(largest_mean(v, all, "SwapUse", "SWAP.IN", NULL, NULL),
                      largest_mean(v, all, "SwapUse", "SWAP.OUT", NULL, NULL));
    l->major_faults = largest_mean(v, all, "VmActivity", "VM.FAULTS.MAJOR", NULL, NULL);
    l->softirq = largest_mean(v, all, "CpuOne", "CPU.SOFTIRQ", NULL, &processor);
    l->softirq_busy = processor != NULL ? mean_beside(v, processor, "CPU.BUSY") : NAN;
    l->softirq_user = processor != NULL ? mean_beside(v, processor, "CPU.USER") : NAN;
    measure_connections(v, all, l);
    measure_loss(v, all, l);
    l->link = fmax(full_link(v, all, "NET.IN"), full_link(v, all, "NET.OUT"));
    return l;
}

/* ---- limits ---- */

/*
 * The limits, with root causes first. For example, a host that swaps also has a busy disk, and a full interface also
 * loses packets.
 */
enum { MEMORY, DISK, SOFTIRQ, CPU, LINK, WINDOW, LOSS, STREAMS, LIMITS };

static const limit kinds[LIMITS] = {
    [MEMORY] = {.cause = "memory",
                .what = "too little memory on",
                .advice = "add memory, or run nlsensor processes to find what uses the memory",
                .felt = FELT_WITHIN | FELT_TO,
                .alone = FELT_WITHIN,
                .part = 1,
                .sure = 0.8},
    [DISK] = {.cause = "disk",
              .what = "a disk at its limit on",
              .advice =
                  "read less, use larger requests, spread the data over more disks, or find other users of the disk",
              .felt = FELT_WITHIN | FELT_TO,
              .alone = FELT_WITHIN,
              .part = 1,
              .sure = 0.8},
    [SOFTIRQ] = {.cause = "softirq",
                 .what = "a processor fully occupied with receiving packets on",
                 .advice = "spread the work of receiving packets: use RSS or RPS, larger segments (GRO), or move "
                           "interrupts to other processors",
                 .felt = FELT_WITHIN | FELT_TO | FELT_FROM,
                 .alone = FELT_TO | FELT_FROM,
                 .part = 1,
                 .sure = 0.8},
    [CPU] = {.cause = "cpu",
             .what = "too few processors on",
             .advice = "run nlsensor processes or nlkernel record to find what uses the processors",
             .felt = FELT_WITHIN | FELT_TO,
             .alone = FELT_WITHIN,
             .part = 1,
             .sure = 0.8},
    [LINK] = {.cause = "link",
              .what = "a full network interface on",
              .advice = "send less (compression, caches, fewer copies), or use faster or more interfaces",
              .felt = FELT_TO | FELT_FROM,
              .alone = FELT_TO | FELT_FROM,
              .part = 1,
              .sure = 0.85},
    [WINDOW] = {.cause = "window",
                .what = "TCP windows or buffers too small for the path from",
                .advice = "let buffers grow to the rate times the round-trip time: remove SO_RCVBUF and SO_SNDBUF from "
                          "the program, and raise net.ipv4.tcp_rmem and tcp_wmem",
                .felt = FELT_FROM,
                .alone = FELT_FROM,
                .part = 1,
                .sure = 0.9},
    [LOSS] = {.cause = "loss",
              .what = "packets are lost on the way from",
              .advice = "look for errors and drops along that path: ip -s link, the counters of switches; drops are "
                        "normal on a full path",
              .felt = FELT_FROM,
              .alone = FELT_FROM,
              .part = 1,
              .sure = 0.8},
    [STREAMS] = {.cause = "streams",
                 .what = "too few requests are in progress at the same time on the path from",
                 .advice = "use more streams, or request more data in advance on each stream",
                 .alone = FELT_TO | FELT_FROM,
                 .part = 1,
                 .sure = 0.8},
};

/*
 * Adds a host to a limit. Returns whether the host is the limit's first host. The report contains only the evidence
 * from this host.
 */
static bool add_host(limit *l, const char *host)
{
    g_hash_table_add(l->hosts, (gpointer)host);
    return g_hash_table_size(l->hosts) == 1;
}

static void G_GNUC_PRINTF(3, 4) tell(limit *l, bool holds, const char *format, ...)
{
    va_list values;
    if (!holds)
        return;
    va_start(values, format);
    g_ptr_array_add(l->evidence, g_strdup_vprintf(format, values));
    va_end(values);
}

/* Returns whether softirqs use most of a processor's time, or much of the time of a busy processor. */
static bool is_softirq_bound(const load *l)
{
    bool is_most = l->softirq > l->softirq_busy / 2 || l->softirq > 2 * l->softirq_user;
    return l->softirq >= 60 || (l->softirq >= 40 && (l->softirq_busy >= 90 || l->cpu_waited >= 40) && is_most);
}

static void limit_host(limit *all, const char *host, const load *l)
{
    bool swaps = l->swapped >= 1 << 20, faults = l->major_faults >= 100, waits = l->memory_waited >= 5;
    bool softirqs = is_softirq_bound(l), memory = waits || (swaps && faults);
    if (memory && add_host(&all[MEMORY], host)) {
        tell(&all[MEMORY], swaps, "the host transfers %.1f MB/s to or from swap space", l->swapped / 1e6);
        tell(&all[MEMORY], waits, "at least one task waited for memory during %.0f %% of the time", l->memory_waited);
        tell(&all[MEMORY], faults, "%.0f page faults per second read from disk (major faults)", l->major_faults);
    }
    if (!memory && (l->disk_busy >= 85 || l->io_waited >= 30) && add_host(&all[DISK], host)) {
        tell(&all[DISK], l->disk_busy >= 0, "the disk is busy during %.0f %% of the time", l->disk_busy);
        tell(&all[DISK], l->io_waited >= 0, "at least one task waited for I/O during %.0f %% of the time",
             l->io_waited);
        tell(&all[DISK], l->disk_ms > 0, "an I/O request takes %.1f ms", l->disk_ms);
    }
    if (softirqs && add_host(&all[SOFTIRQ], host)) {
        tell(&all[SOFTIRQ], true, "softirqs take %.0f %% of one processor", l->softirq);
        tell(&all[SOFTIRQ], l->softirq_user >= 0, "programs get %.0f %% of this processor", l->softirq_user);
        tell(&all[SOFTIRQ], l->softirq_busy >= 0, "this processor is busy during %.0f %% of the time", l->softirq_busy);
    }
    if (!softirqs && (l->cpu_busy >= 90 || l->cpu_waited >= 40)) {
        if (l->unread >= UNREAD) /* the program reads its input too slowly */
            all[CPU].alone |= FELT_TO;
        if (add_host(&all[CPU], host)) {
            tell(&all[CPU], l->cpu_busy >= 0, "the processors are %.0f %% busy", l->cpu_busy);
            tell(&all[CPU], l->cpu_waited >= 0, "at least one task waited for a processor during %.0f %% of the time",
                 l->cpu_waited);
            tell(&all[CPU], l->unread > 0, "unread data fills %.0f %% of the receive windows", 100 * l->unread);
        }
    }
    if (l->link >= LINK_FULL && add_host(&all[LINK], host))
        tell(&all[LINK], true, "the mean rate is %.0f %% of the interface's probable speed", 100 * l->link);
}

/*
 * Checks the limits of TCP. If the receiver does not read its input, the receiver causes the small window, so the
 * window is not a limit. With a loss rate p, TCP transfers at most MSS / RTT * sqrt(3/2) / sqrt(p) (Mathis and others,
 * CCR 27(3), 1997).
 */
static void limit_tcp(limit *all, const char *host, const load *l, bool is_read)
{
    const tcp *t = &l->tcp;
    double receiver = t->receiver_us / t->busy_us, buffer = t->buffer_us / t->busy_us, waited = fmax(receiver, buffer),
           busy = t->wall_us > 0 ? fmin(1, t->busy_us / t->wall_us) : 0;
    if (waited >= 0.3 && (is_read || buffer > receiver) && add_host(&all[WINDOW], host)) {
        all[WINDOW].part = fmin(1, 1.2 * waited);
        all[WINDOW].busy = busy;
        tell(&all[WINDOW], true, "connections waited for the %s in %.0f %% of the time in which they had data to send",
             receiver >= buffer ? "receiver's window" : "send buffer", 100 * waited);
        tell(&all[WINDOW], true,
             "with a window of %.0f kB and a round trip of %.1f ms, a connection carries at most %.1f MB/s",
             t->window / 1e3, t->rtt_us / 1e3, t->window / t->rtt_us);
        tell(&all[WINDOW], true, "%u connection%s", t->connections, nl_plural(t->connections));
    }
    if (l->retransmits >= 0.0005 && add_host(&all[LOSS], host)) {
        all[LOSS].part = l->felt;
        all[LOSS].busy = busy;
        tell(&all[LOSS], true, "TCP retransmitted %.2f %% of the segments", 100 * l->retransmits);
        tell(&all[LOSS], true, "losses reduce the rate during %.0f %% of the time", 100 * l->felt);
        tell(&all[LOSS], t->rtt_us > 0, "with a round trip of %.1f ms, this limits a connection to about %.1f MB/s",
             t->rtt_us / 1e3, 1448 / (t->rtt_us / 1e6) * sqrt(1.5 / l->retransmits) / 1e6);
    }
    /* A single small message keeps TCP busy for a round trip although no other data waits to be sent. */
    bool starved = t->unsent < 0.05 * t->cwnd || busy<0.7, stands = t->rtt_us> 1.5 * t->rtt_min_us;
    if (t->connections > 0 && starved && !stands && add_host(&all[STREAMS], host)) {
        tell(&all[STREAMS], true, "connections have unacknowledged data during %.0f %% of the time", 100 * busy);
        tell(&all[STREAMS], t->unsent >= 0,
             "on average %.0f bytes wait to be sent; the congestion window is %.0f bytes", t->unsent, t->cwnd);
        tell(&all[STREAMS], true, "the round trip takes %.1f ms; its minimum is %.1f ms", t->rtt_us / 1e3,
             t->rtt_min_us / 1e3);
        tell(&all[STREAMS], true, "%u connection%s", t->connections, nl_plural(t->connections));
    }
}

/* ---- where limits have an effect ---- */

/* Compares the visits' times on hosts with a limit with the times on other hosts with sensors. Returns the ratio of the
 * means or the ratio of the medians, whichever is larger. Returns INFINITY if either group has too few visits. */
static double ratio_of_hosts(const visits *v, const limit *l, const place *p)
{
    double *times[2] = {g_new(double, p->count + 1), g_new(double, p->count + 1)}, sums[2] = {0}, medians[2];
    size_t counts[2] = {0};
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        const visit *x = visit_at(v, v->by_place[i]);
        const char *host = site_at(v, x->site)->host;
        int limited = g_hash_table_contains(l->hosts, host);
        if (!limited && series_of_host(v->series, host) == NULL)
            continue;
        times[limited][counts[limited]++] = (double)x->own_ns;
        sums[limited] += (double)x->own_ns;
    }
    for (int k = 0; k < 2; k++) {
        medians[k] = median_of(times[k], counts[k]);
        g_free(times[k]);
    }
    return counts[0] < KIND_COUNT_MIN || counts[1] < KIND_COUNT_MIN
               ? INFINITY
               : fmax(sums[1] / (double)counts[1] / fmax(sums[0] / (double)counts[0], 1),
                      medians[1] / fmax(medians[0], 1));
}

/* Finds the places at which a limit has no effect, because other hosts do the same work without the limit in the same
 * time. For each place, sets an element of the returned array, which the caller frees with g_free. */
static bool *find_refuted(const visits *v, const limit *l)
{
    bool *refuted = g_new0(bool, v->places->len + 1);
    for (guint i = 0; i < v->places->len; i++)
        refuted[i] = ratio_of_hosts(v, l, place_at(v, i)) <= EFFECT_MIN;
    return refuted;
}

/*
 * Returns the part of a visit's time in which a limit has an effect, 0 to 1. A visit that waits for data from another
 * host does not wait for work of its own host. For a visit that waits for data, a limit of its own host counts only if
 * the limit has an effect on the way to this host.
 */
static double felt_part(const visits *v, const limit *l, int scopes, uint32_t index)
{
    if (l->parts != NULL)
        return l->parts[index];
    const visit *x = visit_at(v, index);
    const site *at = site_at(v, x->site);
    if (l->refuted != NULL && l->refuted[at->place])
        return 0;
    bool here = g_hash_table_contains(l->hosts, at->host);
    const char *sender = l->senders[index].host;
    bool waits = visit_crosses(v, x) || (sender != NULL && sender != at->host);
    if (here && (scopes & (waits ? FELT_TO : FELT_WITHIN)) != 0)
        return 1;
    if ((scopes & FELT_FROM) == 0 || sender == NULL || !g_hash_table_contains(l->hosts, sender))
        return 0;
    return l->senders[index].sends ? l->busy : 1;
}

/* Returns the host that has a limit, or NULL if several hosts have the limit. */
static const char *only_host_of(const limit *l)
{
    GHashTableIter i;
    gpointer host = NULL;
    g_hash_table_iter_init(&i, l->hosts);
    return g_hash_table_size(l->hosts) == 1 && g_hash_table_iter_next(&i, &host, NULL) ? host : NULL;
}

/* If the cause of a finding explains variation, keeps this cause as a rival of the finding. Call the function before a
 * limit replaces the cause. */
static void keep_former_cause(finding *x)
{
    if (x->answer == NULL || x->explained <= 0)
        return;
    finding *former = g_memdup2(x, sizeof *x);
    former->answer = g_strdup(x->answer);
    former->evidence = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < x->evidence->len; i++)
        finding_evidence(former, "%s", (const char *)g_ptr_array_index(x->evidence, i));
    former->rivals = g_ptr_array_new();
    former->others = g_array_copy(x->others);
    former->cut = NULL;
    finding_add_rival(x, former);
}

void limit_name_finding(const findings *f, finding *x, const limit *l)
{
    keep_former_cause(x);
    const char *host = only_host_of(l);
    if (host == NULL && x->host != NULL && g_hash_table_contains(l->hosts, x->host))
        host = x->host;
    char *hosts = host != NULL ? g_strdup(host) : g_strdup_printf("%u hosts", g_hash_table_size(l->hosts));
    char *part = text_share(x->share), *where = text_place(f->visits, x->place, NULL);
    g_free(x->answer);
    x->cause = l->cause;
    x->confirmed = true;
    x->is_ordinary = false;
    x->of_connections = l->parts != NULL;
    x->host = host;
    x->answer = g_strdup_printf("%s of the requests' time: %s %s (%s)", part, l->what, hosts, where);
    x->advice = l->advice;
    for (guint i = l->evidence->len; i-- > 0;)
        g_ptr_array_insert(x->evidence, 0, g_strdup(g_ptr_array_index(l->evidence, i)));
    g_free(hosts);
    g_free(part);
    g_free(where);
}

static bool is_queue(const finding *x)
{
    return strcmp(x->cause, "load") == 0 || strcmp(x->cause, "lock") == 0 || strcmp(x->cause, "pool") == 0;
}

/* Returns whether a limit has an effect in so much of a finding's time that the limit is the finding's cause. */
static bool explains(const findings *f, const limit *l, const finding *x)
{
    static const char *const others[] = {"clock", "failures", "field", "calls", "memory",
                                         "disk",  "softirq",  "cpu",   "link",  "window"};
    const visits *v = f->visits;
    double felt = 0, known = 0, all = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(x->cause, others[i]) == 0)
            return false;
    if (l->of_queues && !is_queue(x))
        return false;
    if (x->cut == NULL || (x->host != NULL && (l->felt & FELT_FROM) == 0 && !g_hash_table_contains(l->hosts, x->host)))
        return false;
    for (guint i = 0; i < v->all->len; i++) {
        const visit *y = visit_at(v, i);
        double claim = (double)x->cut[i] * path_weight(y);
        all += claim;
        double part = claim > 0 ? felt_part(v, l, l->felt, i) : 0;
        known += isnan(part) ? 0 : claim;
        felt += isnan(part) ? 0 : claim * part;
    }
    return felt > (l->of_queues ? l->alone_min : 0.5) * known && known >= KNOWN_MIN * all &&
           (l->parts != NULL || strcmp(l->cause, "loss") != 0 || retransmissions_go_with(v, l->senders, x));
}

/* Joins the findings that a limit explains. Returns the joint finding, or NULL if the limit explains no finding. */
static finding *join_explained(findings *f, const limit *l)
{
    finding *first = NULL;
    for (guint i = 0; i < f->list->len;) {
        finding *x = g_ptr_array_index(f->list, i);
        if (!explains(f, l, x)) {
            i++;
        } else if (first == NULL) {
            first = x;
            i++;
        } else {
            findings_join(f, first, i);
        }
    }
    return first;
}

/* Sets the cut of each visit to its unclaimed time in which a limit has an effect. Sets *place to the place that has
 * most of this time. Returns the sum of the cuts as a share of all time. Ignores weak visits unless `weak` is true. */
static double find_felt(const findings *f, const limit *l, bool weak, float *cut, uint32_t *place)
{
    const visits *v = f->visits;
    double felt = 0, largest_felt = 0, *of_places = g_new0(double, v->places->len + 1);
    *place = VISIT_NONE;
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        double rest = (double)(x->own_ns - f->claimed[i]);
        bool counts = rest > 0 && x->path_ns > 0 && (weak || l->weak == NULL || !l->weak[i]);
        double part = counts ? felt_part(v, l, l->alone, i) * l->part : 0;
        cut[i] = 0;
        if (!(part > 0))
            continue;
        uint32_t at = place_of_visit(v, x);
        cut[i] = (float)(rest * part);
        felt += (double)cut[i] * path_weight(x) / v->total_ns;
        of_places[at] += (double)cut[i] * path_weight(x);
        if (of_places[at] > largest_felt) {
            largest_felt = of_places[at];
            *place = at;
        }
    }
    g_free(of_places);
    return felt;
}

bool limit_find(findings *f, const limit *l)
{
    finding *x = join_explained(f, l);
    const visits *v = f->visits;
    float *cut = g_new0(float, v->all->len + 1);
    uint32_t place;
    double known = x != NULL ? x->share : 0, felt = find_felt(f, l, true, cut, &place);
    bool is_found = felt > 0 && felt + known > FELT_PART_MIN;
    if (felt < WEAK_MIN && l->parts != NULL)
        felt = find_felt(f, l, false, cut, &place);
    if (is_found || (l->parts != NULL && felt > 0 && felt + known >= l->alone_min)) {
        if (x == NULL) {
            x = findings_add(f, l->cause);
            x->place = place;
            x->sure = l->sure;
            x->margin = 1;
            x->cut = g_new0(float, v->all->len + 1);
        }
        for (guint i = 0; i < v->all->len; i++) {
            x->cut[i] += cut[i];
            f->claimed[i] += cut[i];
        }
        x->share += felt;
    }
    if (x != NULL)
        limit_name_finding(f, x, l);
    g_free(cut);
    return is_found;
}

/* Finds the edge between hosts with the most time. Returns whether the times of its visits are nearly constant, as on a
 * network path without queues. */
static bool is_path_constant(const visits *v)
{
    const place *largest = NULL;
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, 0));
        if (p->kind == PLACE_EDGE && at->from_host != at->host && (largest == NULL || p->path_ns > largest->path_ns))
            largest = p;
    }
    if (largest == NULL || largest->count < 30)
        return false;
    double *times = g_new(double, largest->count);
    for (uint32_t i = 0; i < largest->count; i++)
        times[i] = (double)visit_at(v, v->by_place[largest->first + i])->own_ns;
    sort_doubles(times, largest->count);
    bool constant = times[largest->count * 9 / 10] < 1.5 * times[largest->count / 10];
    g_free(times);
    return constant;
}

/* ---- all hosts ---- */

static bool has_cause(const findings *f, const char *cause)
{
    for (guint i = 0; i < f->list->len; i++)
        if (strcmp(((const finding *)g_ptr_array_index(f->list, i))->cause, cause) == 0)
            return true;
    return false;
}

/* Makes lost packets the cause of the timeouts for which there are enough retransmissions. */
static void name_losses(const findings *f)
{
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        if ((strcmp(x->cause, "timeout") != 0 && !x->is_sometimes) || x->cut == NULL)
            continue;
        retransmissions r = retransmissions_count(f->visits, x);
        /* the link of this host loses the packets that the host sends */
        if (x->host != NULL && g_hash_table_size(r.from) > 1 && g_hash_table_contains(r.from, x->host)) {
            g_hash_table_remove_all(r.from);
            g_hash_table_add(r.from, (gpointer)x->host);
        }
        limit l = kinds[LOSS];
        l.hosts = r.from;
        l.evidence = g_ptr_array_new_with_free_func(g_free);
        tell(&l, true, "TCP retransmitted %.0f segments on these connections, and %u visit%s waited for a timeout",
             r.count, r.late, nl_plural(r.late));
        if (r.are_cause)
            limit_name_finding(f, x, &l);
        g_hash_table_destroy(r.from);
        g_ptr_array_free(l.evidence, TRUE);
    }
}

void find_limits(findings *f)
{
    const visits *v = f->visits;
    GPtrArray *hosts = g_ptr_array_new(), *loads = g_ptr_array_new_with_free_func(g_free);
    limit all[LIMITS];
    bool is_read = true, is_found = false;
    for (size_t i = 0; i < LIMITS; i++) {
        all[i] = kinds[i];
        all[i].hosts = g_hash_table_new(NULL, NULL);
        all[i].evidence = g_ptr_array_new_with_free_func(g_free);
    }
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < v->sites->len; i++) {
        const char *host = site_at(v, i)->host;
        const GPtrArray *of = g_hash_table_add(seen, (gpointer)host) ? series_of_host(v->series, host) : NULL;
        if (of == NULL)
            continue;
        load *l = measure(v, of);
        is_read = is_read && l->unread < UNREAD;
        g_ptr_array_add(hosts, (gpointer)host);
        g_ptr_array_add(loads, l);
    }
    g_hash_table_destroy(seen);
    for (guint i = 0; i < hosts->len; i++) {
        limit_host(all, g_ptr_array_index(hosts, i), g_ptr_array_index(loads, i));
        limit_tcp(all, g_ptr_array_index(hosts, i), g_ptr_array_index(loads, i), is_read);
    }
    guint limited = 0;
    for (size_t i = 0; i < LIMITS; i++)
        limited += g_hash_table_size(all[i].hosts);
    sender *senders = limited > 0 || v->connection_results->len > 0 ? senders_find(v) : NULL;
    connection_joins *joins = senders != NULL ? connection_joins_new(v, senders) : NULL;
    for (size_t i = 0; i < LIMITS; i++)
        all[i].senders = senders;
    name_slow_disks(f);
    for (size_t k = 0; k < STREAMS && !is_found; k++) {
        if (k == WINDOW && joins != NULL)
            is_found = connection_limits_find(f, joins);
        /* The visits' own connections are better evidence than the totals of a host. */
        bool is_known = joins != NULL && (k == WINDOW || k == LOSS);
        if (is_found || is_known || g_hash_table_size(all[k].hosts) == 0 || has_cause(f, all[k].cause))
            continue;
        /* only for limits of work within a host; SOFTIRQ also delays the messages that a host sends */
        bool *refuted = k <= CPU && k != SOFTIRQ ? find_refuted(v, &all[k]) : NULL;
        all[k].refuted = refuted;
        is_found = limit_find(f, &all[k]);
        all[k].refuted = NULL;
        g_free(refuted);
    }
    name_losses(f);
    findings_drop_small(f);
    if (!findings_have_fault(f) && g_hash_table_size(all[STREAMS].hosts) > 0 && is_path_constant(v))
        limit_find(f, &all[STREAMS]);
    if (joins != NULL)
        connection_limits_add_evidence(f, joins);
    connection_joins_free(joins);
    for (size_t i = 0; i < LIMITS; i++) {
        g_hash_table_destroy(all[i].hosts);
        g_ptr_array_free(all[i].evidence, TRUE);
    }
    g_free(senders);
    g_ptr_array_free(hosts, TRUE);
    g_ptr_array_free(loads, TRUE);
}
