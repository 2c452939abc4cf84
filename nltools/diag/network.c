/*
 * Finds what limits TCP, from the counters of connections (sensor connections, from the kernel's TCP_INFO; see RFC
 * 4898) and of hosts. The share is the time of objects between hosts.
 */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

/* The connections of a host over the time of all objects. */
typedef struct tcp {
    guint connections;
    double busy_us, receiver_us, buffer_us; /* rises */
    double sent, again;                     /* bytes */
    double rtt_us, rtt_least_us, window;    /* means, weighted by bytes sent; least: the least of all */
    double cwnd, unsent;                    /* bytes; unsent is written and waits to be sent */
    bool knows_unsent;
    double wall_us;
} tcp;

static double rise(const observed *o, const resource *beside, const char *field)
{
    const resource *r = observed_find(o, beside->host, "TcpConnection", field, beside->instance);
    return r != NULL ? resource_rise(r, observed_from_ns(o), observed_to_ns(o)) : 0;
}

static double mean(const observed *o, const resource *beside, const char *field)
{
    const resource *r = observed_find(o, beside->host, "TcpConnection", field, beside->instance);
    return r != NULL ? resource_mean(r, observed_from_ns(o), observed_to_ns(o)) : NAN;
}

static void add_weighted(double *sum, double value, double weight)
{
    if (!isnan(value))
        *sum += value * weight;
}

/* Counts only connections that sent more than a window. */
static tcp tcp_of(const observed *o, guint host)
{
    guint count;
    resource *const *all = observed_resources_of(o, host, &count);
    tcp t = {.rtt_least_us = INFINITY};
    for (guint i = 0; i < count; i++) {
        const resource *r = all[i];
        if (strcmp(r->event, "TcpConnection") != 0 || strcmp(r->field, "TCP.BYTES.SENT") != 0)
            continue;
        double sent = resource_rise(r, observed_from_ns(o), observed_to_ns(o)), least = mean(o, r, "TCP.RTT.MIN"),
               unsent = mean(o, r, "TCP.UNSENT");
        if (sent < 65536)
            continue;
        t.connections++;
        t.sent += sent;
        t.again += rise(o, r, "TCP.BYTES.RETRANS");
        t.busy_us += rise(o, r, "TCP.BUSY");
        t.receiver_us += rise(o, r, "TCP.LIMITED.RECEIVER");
        t.buffer_us += rise(o, r, "TCP.LIMITED.BUFFER");
        add_weighted(&t.rtt_us, mean(o, r, "TCP.RTT"), sent);
        add_weighted(&t.window, mean(o, r, "TCP.WINDOW"), sent);
        add_weighted(&t.cwnd, mean(o, r, "TCP.CWND") * mean(o, r, "TCP.MSS"), sent);
        add_weighted(&t.unsent, unsent, sent);
        t.knows_unsent = t.knows_unsent || !isnan(unsent);
        t.rtt_least_us = least < t.rtt_least_us ? least : t.rtt_least_us;
    }
    t.wall_us = (double)(observed_to_ns(o) - observed_from_ns(o)) / 1e3 * t.connections;
    if (t.sent > 0) {
        t.rtt_us /= t.sent;
        t.window /= t.sent;
        t.cwnd /= t.sent;
        t.unsent /= t.sent;
    }
    return t;
}

/*
 * Returns the share of the time on legs from a host (0: any) to others, and on legs that include sending, multiplied
 * by busy, the share of time in which TCP has data to send. *most is the leg with the most time.
 */
static double between(const observed *o, guint host, double busy, const leg **most)
{
    const GPtrArray *legs = observed_legs(o);
    double total = 0;
    *most = NULL;
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (host != 0 && l->from_host != host)
            continue;
        bool local = leg_is_local(l);
        if (local && (busy == 0 || !l->sends))
            continue;
        total += leg_share(o, l) * (local ? busy : 1);
        if (*most == NULL || l->total_ns > (*most)->total_ns)
            *most = l;
    }
    return total;
}

/* Returns the share of time in which the connections had data to send; 1 if unknown. */
static double busy_of(const tcp *t)
{
    return t->wall_us > 0 && t->busy_us > 0 ? MIN(1, t->busy_us / t->wall_us) : 1;
}

/* Returns the host on the way to which objects from host spend the most time; 0: none. */
static guint receiver_of(const observed *o, guint host)
{
    const GPtrArray *legs = observed_legs(o);
    const leg *most = NULL;
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (l->from_host == host && !leg_is_local(l) && (most == NULL || l->total_ns > most->total_ns))
            most = l;
    }
    return most != NULL ? most->to_host : 0;
}

/* A window is also small if the receiver does not read its input; then the receiver is slow. */
static void find_window(findings *f, guint host, const tcp *t, double share, const leg *most)
{
    const observed *o = f->observed;
    double receiver = t->receiver_us / t->busy_us, buffer = t->buffer_us / t->busy_us;
    if (!(t->busy_us > 0) || (receiver < 0.3 && buffer < 0.3))
        return;
    bool by_receiver = receiver >= buffer;
    if (by_receiver && f->pressures[receiver_of(o, host)].unread >= UNREAD)
        return;
    finding *made = findings_add(f, "window", share * MIN(1, 1.2 * MAX(receiver, buffer)), 0.9,
                                 by_receiver ? "TCP windows too small for the path from %s"
                                             : "TCP send buffers too small for the path from %s",
                                 observed_host(o, host));
    finding_evidence(made, "its %u connections waited for the %s in %.0f %% of the time in which they had data to send",
                     t->connections, by_receiver ? "receiver's window" : "send buffer", 100 * MAX(receiver, buffer));
    finding_evidence(made, "window %.0f kB, round trip %.1f ms: at most %.1f MB/s per connection", t->window / 1e3,
                     t->rtt_us / 1e3, t->window / t->rtt_us);
    finding_place(made, o, host, most);
    finding_advice(
        made, "let buffers grow to rate times round trip: remove SO_RCVBUF and SO_SNDBUF from the program, and raise "
              "net.ipv4.tcp_rmem and tcp_wmem");
}

/*
 * Returns the share of the time in which losses are felt. A loss is felt for some round trips, so losses in a third of
 * the samples count as always. 1 if the log does not say.
 */
static double felt(const observed *o, guint host)
{
    const resource *again = observed_find(o, host, "TcpSegments", "TCP.RETRANS", NULL);
    if (again == NULL)
        return 1;
    return MIN(1, 3 * resource_share_above(again, 0.01, observed_from_ns(o), observed_to_ns(o)));
}

/* With a loss rate p, TCP transfers at most MSS / RTT * sqrt(3/2) / sqrt(p) (Mathis and others, CCR 27(3), 1997). */
static void find_loss(findings *f, guint host, const tcp *t, double share, const leg *most)
{
    const observed *o = f->observed;
    double of_connections = t->sent > 0 ? t->again / t->sent : 0, of_host = f->pressures[host].retransmits;
    double lost = MAX(of_connections, isnan(of_host) ? 0 : of_host);
    if (lost < 0.0005)
        return;
    finding *made = findings_add(f, "loss", share * felt(o, host), lost < 0.002 ? 0.6 : 0.85,
                                 "packets are lost on the way from %s", observed_host(o, host));
    finding_evidence(made, "TCP retransmitted %.2f %%", 100 * lost);
    if (t->rtt_us > 0)
        finding_evidence(made, "with a round trip of %.1f ms, this limits a connection to about %.1f MB/s",
                         t->rtt_us / 1e3, 1448 / (t->rtt_us / 1e6) * sqrt(1.5 / lost) / 1e6);
    finding_place(made, o, host, most);
    finding_advice(made,
                   "look for errors and drops along that path: ip -s link, the counters of switches; if the path is "
                   "only full, drops are normal");
}

/* ---- too little on the way at once ---- */

/* Returns the number of objects under way, on average. */
static double in_flight(const observed *o)
{
    double wall = (double)(observed_to_ns(o) - observed_from_ns(o));
    return wall > 0 ? observed_total_ns(o) / wall : 0;
}

/* Returns whether processors, disks and connections have capacity left. */
static bool is_idle(const findings *f)
{
    for (guint h = 1; h < observed_host_count(f->observed); h++) {
        pressure p = f->pressures[h];
        if (p.cpu_busy >= 80 || p.disk_busy >= 70 || p.cpu_waited >= 40 || p.io_waited >= 30 || p.link >= LINK_FULL)
            return false;
    }
    return true;
}

/*
 * Returns whether TCP limits the connections. TCP is busy while data is unacknowledged, so that one small message at a
 * time keeps it busy for the round trip; but then nothing waits to be sent.
 */
static bool tcp_waits(const tcp *t)
{
    bool starved = t->knows_unsent && t->unsent < 0.05 * t->cwnd;
    return !starved && t->wall_us > 0 && t->busy_us > 0.7 * t->wall_us;
}

/*
 * Objects take a round trip and little else, and few are under way: more at once would not take longer. In a queue,
 * their times would vary, the round trip would exceed its minimum, or they would end one at a time.
 */
static void find_streams(findings *f)
{
    const observed *o = f->observed;
    const leg *most;
    double share = between(o, 0, 0, &most), rtt_us = 0, least_us = INFINITY, busy = 0, wall = 0;
    bool waits = false;
    for (guint h = 1; h < observed_host_count(o); h++) {
        tcp t = tcp_of(o, h);
        if (t.connections == 0)
            continue;
        rtt_us = MAX(rtt_us, t.rtt_us);
        least_us = MIN(least_us, t.rtt_least_us);
        busy += t.busy_us;
        wall += t.wall_us;
        waits = waits || tcp_waits(&t);
    }
    bool queues = isfinite(least_us) && least_us > 0 && rtt_us > 1.5 * least_us;
    if (share < 0.5 || most == NULL || most->low_ns < 2000000 || (double)most->high_ns > 1.5 * (double)most->low_ns ||
        queues || !is_idle(f) || waits || leg_ends_singly(most))
        return;
    const char *took = text_ns((double)most->median_ns), *where = text_leg(o, most), *part = text_share(share);
    finding *made = findings_add(f, "streams", share, wall > 0 ? 0.8 : 0.6,
                                 "too few objects are under way at a time: %.1f on average", in_flight(o));
    finding_evidence(made, "%s of all time is between hosts; %s nearly always takes %s, the time of the path", part,
                     where, took);
    if (wall > 0)
        finding_evidence(made,
                         "connections have data under way %.0f %% of the time, and none waits to be sent; no "
                         "processor or disk is busy",
                         100 * busy / wall);
    finding_place(made, o, 0, most);
    finding_advice(made, "request more at a time: more streams, or more requests in advance on each");
}

void find_network(findings *f)
{
    const observed *o = f->observed;
    for (guint h = 1; h < observed_host_count(o); h++) {
        const leg *most;
        tcp t = tcp_of(o, h);
        double share = between(o, h, busy_of(&t), &most);
        if (most == NULL)
            continue;
        find_window(f, h, &t, share, most);
        find_loss(f, h, &t, share, most);
    }
    find_streams(f);
}
