#include "config.h"

#include "connections/connection_causes.h"

#include "program/units.h"

#include <math.h>

/* The size of the smallest headers of IP and TCP, in bytes. */
#define HEADERS_V4 40
#define HEADERS_V6 60

static double share_of(const connection_result *r, connection_cause cause)
{
    return r->wall_ns > 0 ? r->cause_ns[cause] / r->wall_ns : 0;
}

double connection_gain_of_doubling(const connection_result *r)
{
    if (r->first != CAUSE_SEND_BUFFER && r->first != CAUSE_RECEIVE_BUFFER)
        return 1;
    double share = share_of(r, r->first); /* the part of the time that becomes half as long */
    return 1 / (1 - share / 2);
}

/* Another connection or the path sensor must have been faster by this factor to show that the path carries more. */
#define FASTER 1.2

/* Returns the highest rate that any connection or the path sensor has achieved on the path. */
static double capacity_of(const connection_result *r)
{
    return fmax(r->carried, r->path.rate);
}

/* Returns the path sensor's minimum round-trip time or, without it, the connection's minimum; 0 if unknown. */
static double trip_of(const connection_result *r)
{
    return r->path.rtt_min_ns > 0 ? r->path.rtt_min_ns : r->rtt_min_ns;
}

double connection_gain_of_path(const connection_result *r)
{
    if ((r->first != CAUSE_SEND_BUFFER && r->first != CAUSE_RECEIVE_BUFFER) || capacity_of(r) < FASTER * r->rate ||
        r->rate <= 0 || trip_of(r) <= 0)
        return 1;
    double share = share_of(r, r->first); /* the part of the time that becomes shorter */
    return 1 / (1 - share + share * r->rate / capacity_of(r));
}

bool connection_gain_of_reuse(const connection_result *r, double *minimum, double *maximum)
{
    double left = 1 - share_of(r, CAUSE_SLOW_START) - share_of(r, CAUSE_HANDSHAKE);
    double rate = fmax(capacity_of(r), r->rate);
    if (r->first != CAUSE_SLOW_START || left <= 0)
        return false;
    *maximum = 1 / left;
    /* 1 is the present duration; `left` is the part without start-up, and r->rate / rate is the time for all bytes */
    *minimum = fmax(1, 1 / (left + r->rate / rate));
    return true;
}

/* Describes the limiting window or buffer. Doubles the recommended size, because half of a buffer is overhead. */
static char *describe_window(const connection_result *r, const char *limit, double size, const char *setting,
                             const char *host)
{
    char window[UNITS_SIZE], rtt[UNITS_SIZE], rate[UNITS_SIZE], twice[UNITS_SIZE];
    double gain = connection_gain_of_doubling(r);
    units_amount(r->rate * 8, "bit/s", rate);
    if (size <= 0)
        return g_strdup_printf("the %s limits this connection to %s; the log does not contain the size of the %s",
                               limit, rate, limit);
    char carried[UNITS_SIZE], product[UNITS_SIZE];
    double delay_product = capacity_of(r) * trip_of(r) / 1e9;
    if (connection_gain_of_path(r) > 1)
        return g_strdup_printf("the %s limits this connection to %s (size %s, round-trip time %s). %s "
                               "%s, so the bandwidth-delay product is %s%s. Set the %s on %s to %s; this can "
                               "make the connection up to %.1f times as fast",
                               limit, rate, units_amount(size, "B", window), units_time(r->rtt_ns, rtt),
                               r->path.rate > r->carried ? "The path sensor has measured" : "The path has carried",
                               units_amount(capacity_of(r) * 8, "bit/s", carried), r->path.rate > 0 ? "at least " : "",
                               units_amount(delay_product, "B", product), setting, host,
                               units_amount(2 * delay_product, "B", twice), connection_gain_of_path(r));
    return g_strdup_printf(
        "the %s limits this connection to %s (size %s, round-trip time %s). Set the %s to at least %s on %s; this can "
        "make the connection up to %.1f times as fast, if the path can carry this rate",
        limit, rate, units_amount(size, "B", window), units_time(r->rtt_ns, rtt), setting,
        units_amount(4 * size, "B", twice), host, gain);
}

static char *describe_start(const connection_result *r)
{
    char time[UNITS_SIZE], rtt[UNITS_SIZE];
    double minimum, maximum;
    char *gain =
        connection_gain_of_reuse(r, &minimum, &maximum)
            ? g_strdup_printf("; this can make them %.1f to %.1f times as fast, depending on the rate of the path",
                              minimum, maximum)
            : g_strdup("");
    char *text = g_strdup_printf("the connection was in slow start for %s, with a round-trip time of %s; keep "
                                 "connections open for further transfers%s",
                                 units_time(r->cause_ns[CAUSE_SLOW_START], time), units_time(r->rtt_ns, rtt), gain);
    g_free(gain);
    return text;
}

/* Appends the connections between other addresses that share the bottleneck. */
static void add_elsewhere(GString *text, const connection_result *r)
{
    char all[UNITS_SIZE];
    if (r->elsewhere > 0)
        g_string_append_printf(text,
                               "; the round-trip times of this connection and of %" G_GUINT64_FORMAT
                               " connection%s between other addresses rise and fall together, so they share the "
                               "bottleneck; %s %s",
                               r->elsewhere, r->elsewhere == 1 ? "" : "s",
                               r->elsewhere == 1 ? "the other connection carries" : "the other connections carry",
                               units_amount(r->elsewhere_rate * 8, "bit/s", all));
}

/* Describes the rate of the path, and appends `text` to the description. Frees `text`. */
static char *describe_path(const connection_result *r, char *text)
{
    char rate[UNITS_SIZE], all[UNITS_SIZE], measured[UNITS_SIZE];
    GString *description = g_string_new("");
    units_amount(r->rate * 8, "bit/s", rate);
    units_amount(r->path.rate * 8, "bit/s", measured);
    if (r->sharing > 0)
        g_string_printf(description,
                        "the connection shares the path with %" G_GUINT64_FORMAT " other%s, and carries %s of the "
                        "total %s",
                        r->sharing, r->sharing == 1 ? "" : "s", rate, units_amount(r->shared_rate * 8, "bit/s", all));
    else if (r->path.rate > 0)
        g_string_printf(description,
                        "the path sensor measured at least %s on this path, and this connection carried %s", measured,
                        rate);
    else
        g_string_printf(description, r->elsewhere > 0 ? "the connection carries %s" : "the path carries %s", rate);
    add_elsewhere(description, r);
    g_string_append_printf(description, "; %s", text);
    g_free(text);
    return g_string_free(description, FALSE);
}

/* Returns the size of the smallest packet that contains a full segment. */
static double packet_of(const connection_result *r)
{
    return r->mss + (r->peer[0] == '[' ? HEADERS_V6 : HEADERS_V4);
}

/* Describes the direction in which the path loses packets. */
static char *describe_direction(const connection_result *r)
{
    connection_loss out = connection_path_loss_out(&r->path), back = connection_path_loss_back(&r->path);
    double again = r->segments > 0 ? r->retransmitted / r->segments : 0;
    if (!r->path.during || r->path.probes_out <= 0)
        return g_strdup("check its links");
    if (out.minimum > back.maximum)
        return g_strdup_printf("probes are lost on the way to %s, so check the links in this direction", r->peer);
    if (back.minimum > out.maximum)
        return g_strdup_printf("probes are lost on the way back from %s, so check the links in this direction",
                               r->peer);
    if (out.maximum < again)
        return g_strdup_printf("the path loses at most %.2g %% of the path sensor's small packets, so check for links "
                               "that lose large packets or many packets at once",
                               100 * out.maximum);
    return g_strdup("check its links");
}

static char *describe_loss(const connection_result *r)
{
    char again[UNITS_SIZE], all[UNITS_SIZE], trip[UNITS_SIZE];
    if (r->stalled && r->path.mtu > 0 && packet_of(r) > r->path.mtu)
        return g_strdup_printf(
            "full segments (%.0f bytes) need packets of %.0f bytes, but the path to %s carries packets "
            "of at most %.0f bytes%s, so full segments are lost; lower the MTU of the route at %s, or "
            "let routers report the MTU (ICMP \"fragmentation needed\")",
            r->mss, packet_of(r), r->peer, r->path.mtu, r->path.mtu_reported ? "" : ", and no router reports this",
            r->local);
    char *direction = describe_direction(r);
    char *text = g_strdup_printf(
        "%s of %s segments were sent again (%.2g %%), and the round-trip time is near its "
        "minimum of %s, so the path loses segments although it is not full; %s",
        units_quantity(round(r->retransmitted), again), units_quantity(round(r->segments), all),
        r->segments > 0 ? 100 * r->retransmitted / r->segments : 0, units_time(r->rtt_min_ns, trip), direction);
    g_free(direction);
    return text;
}

static void add_loss_text(GString *text, const char *direction, connection_loss loss)
{
    g_string_append_printf(text, " %.2g %% on the way %s (95 %% interval: %.2g to %.2g %%)", 100 * loss.share,
                           direction, 100 * loss.minimum, 100 * loss.maximum);
}

char *connection_path_text(const connection_result *r)
{
    const connection_path *p = &r->path;
    char a[UNITS_SIZE], b[UNITS_SIZE];
    if (!p->measured)
        return NULL;
    GString *text =
        g_string_new(p->during ? "path, measured during the connection:" : "path, measured at another time:");
    gsize head = text->len;
    if (p->rtt_min_ns > 0)
        g_string_append_printf(text, " minimum round-trip time %s;", units_time(p->rtt_min_ns, a));
    if (isfinite(p->delay_error_ns))
        g_string_append_printf(text, " mean delay %s out and %s back, each with an error of at most %.3g ms;",
                               units_time(p->delay_out_ns, a), units_time(p->delay_back_ns, b),
                               p->delay_error_ns / 1e6);
    if (p->queue_out_ns > 0 || p->queue_back_ns > 0)
        g_string_append_printf(text, " delay above its minimum %s out and %s back;", units_time(p->queue_out_ns, a),
                               units_time(p->queue_back_ns, b));
    if (p->probes_out > 0) {
        g_string_append_printf(text, " lost");
        add_loss_text(text, "out", connection_path_loss_out(p));
        g_string_append(text, " and");
        add_loss_text(text, "back", connection_path_loss_back(p));
        g_string_append_c(text, ';');
    }
    if (p->routers_out >= 0 && p->routers_back >= 0)
        g_string_append_printf(text, " routers: %.0f out, %.0f back;", p->routers_out, p->routers_back);
    if (p->mtu > 0)
        g_string_append_printf(text, " MTU %.0f bytes;", p->mtu);
    if (p->rate > 0)
        g_string_append_printf(text, " rate at least %s;", units_amount(p->rate * 8, "bit/s", a));
    bool empty = text->len == head;
    g_string_truncate(text, text->len - 1);
    return g_string_free(text, empty);
}

/* The end of advice on logs without TcpConnection records. */
#define RUN_SENSORS "run nlsensor connections at both ends"

/* Describes a transfer for which the log has a single record. */
static char *describe_transfer(const connection_result *r)
{
    char rate[UNITS_SIZE], buffer[UNITS_SIZE], rtt[UNITS_SIZE];
    units_amount(r->rate, "B/s", rate);
    if (r->window <= 0 || r->rate <= 0)
        return g_strdup_printf("%.0f stream%s carried %s. The log contains no buffer sizes, round-trip times, losses "
                               "or waits of the programs; " RUN_SENSORS,
                               r->streams, r->streams == 1 ? "" : "s", rate);
    return g_strdup_printf(
        "%.0f stream%s carried %s with buffers of %s. The buffers are the limit if the round-trip time is at least %s. "
        "The log contains no round-trip times, losses or waits of the programs; " RUN_SENSORS,
        r->streams, r->streams == 1 ? "" : "s", rate, units_amount(r->window, "B", buffer),
        units_time(r->streams * r->window / r->rate * 1e9, rtt));
}

/* Describes a stream for which the log has the starts and ends of reads and writes. */
static char *describe_spans(const connection_result *r, double percent)
{
    static const char unknown[] =
        "The log does not show whether a buffer, the path or the other program limited the transfer; " RUN_SENSORS;
    switch (r->first) {
    case CAUSE_SENDER_HOST:
    case CAUSE_RECEIVER_HOST:
        return g_strdup_printf("for %.0f %% of the time, the program waited only for the disk. %s", percent, unknown);
    case CAUSE_SENDER_IDLE:
    case CAUSE_RECEIVER_PROGRAM:
        return g_strdup_printf(
            "for %.0f %% of the time, the program waited neither for the disk nor for the network. %s", percent,
            unknown);
    default:
        return g_strdup_printf("for %.0f %% of the time, the program waited for the network. %s", percent, unknown);
    }
}

char *connection_advice(const connection_result *r)
{
    char a[UNITS_SIZE], b[UNITS_SIZE], c[UNITS_SIZE];
    double share = share_of(r, r->first) * 100;
    if (r->origin != ORIGIN_SOCKET)
        return r->origin == ORIGIN_TRANSFER ? describe_transfer(r) : describe_spans(r, share);
    switch (r->first) {
    case CAUSE_RECEIVE_BUFFER:
        return describe_window(r, "receive window", r->window, "maximum of net.ipv4.tcp_rmem (or SO_RCVBUF)", r->peer);
    case CAUSE_SEND_BUFFER:
        return describe_window(r, "send buffer", r->send_buffer / 2, "maximum of net.ipv4.tcp_wmem (or SO_SNDBUF)",
                               r->local);
    case CAUSE_RECEIVER_PROGRAM:
        return g_strdup_printf("unread data closed the window for %.0f %% of the time: the program at %s reads only %s",
                               share, r->peer, units_amount(r->rate, "B/s", a));
    case CAUSE_SENDER_IDLE:
        if (r->path_rate <= r->rate)
            return g_strdup_printf("the sending program had no data to send for %.0f %% of the time", share);
        return g_strdup_printf("the sending program had no data to send for %.0f %% of the time; while it sent, the "
                               "connection carried up to %s",
                               share, units_amount(r->path_rate * 8, "bit/s", a));
    case CAUSE_SENDER_HOST:
        return g_strdup_printf(
            "for %.0f %% of the time, the sending program had no data to send, because it waited for a processor or a "
            "disk of %s",
            share, r->host);
    case CAUSE_RECEIVER_HOST:
        return g_strdup_printf(
            "for %.0f %% of the time, unread data closed the window while the receiving program waited for a processor "
            "or a disk of %s",
            share, r->peer_host);
    case CAUSE_LOSS:
        return describe_loss(r);
    case CAUSE_PATH_QUEUE:
        return describe_path(r,
                             g_strdup_printf("the queue of the path adds %s to the minimum round-trip time of %s",
                                             units_time(r->rtt_ns - r->rtt_min_ns, b), units_time(r->rtt_min_ns, c)));
    case CAUSE_PATH:
        return describe_path(r, g_strdup("no buffer or program limits the connection"));
    case CAUSE_POLICED:
        return g_strdup_printf(
            "the path drops segments whenever the congestion window reaches about the same size, but the round-trip "
            "time shows no queue. A policer, or a link with a short queue, limits the rate to about %s; shape the "
            "traffic to this rate, or raise the limit",
            units_amount(r->rate * 8, "bit/s", a));
    case CAUSE_REVERSE:
        return g_strdup_printf("the acknowledgements from %s wait in a queue on the way back, so the round-trip time "
                               "is %s instead of %s; check the rate and the load of the reverse path",
                               r->peer, units_time(r->rtt_ns, a), units_time(r->rtt_min_ns, b));
    case CAUSE_SLOW_START:
        return describe_start(r);
    case CAUSE_HANDSHAKE:
        if (r->tls_ns > r->cause_ns[CAUSE_HANDSHAKE] / 2)
            return g_strdup_printf("the TLS handshake took %s; resume sessions, and keep connections open",
                                   units_time(r->tls_ns, a));
        return g_strdup_printf("connecting took %s; check whether the peer answers, and keep connections open",
                               units_time(r->cause_ns[CAUSE_HANDSHAKE], a));
    default:
        if (r->brief)
            return g_strdup("the connection ended before the sensor measured it twice, so only its handshake is known");
        if (r->ends == ENDS_RECEIVER)
            return g_strdup_printf("the receiver did not limit the connection, and the log lacks the records of the "
                                   "sender; run nlsensor connections at %s",
                                   r->local);
        return g_strdup("the connection's counters decreased, so the records belong to several connections");
    }
}
