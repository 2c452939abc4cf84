#include "config.h"

#include "connections/connection_causes.h"

#include "program/units.h"

#include <math.h>

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

/* Another connection must be faster by this factor to show what the path carries. */
#define FASTER 1.2

double connection_gain_of_path(const connection_result *r)
{
    if ((r->first != CAUSE_SEND_BUFFER && r->first != CAUSE_RECEIVE_BUFFER) || r->carried < FASTER * r->rate ||
        r->rate <= 0 || r->rtt_min_ns <= 0)
        return 1;
    double share = share_of(r, r->first); /* the part of the time that becomes shorter */
    return 1 / (1 - share + share * r->rate / r->carried);
}

bool connection_gain_of_reuse(const connection_result *r, double *minimum, double *maximum)
{
    double left = 1 - share_of(r, CAUSE_SLOW_START) - share_of(r, CAUSE_HANDSHAKE);
    double rate = fmax(r->carried, r->rate);
    if (r->first != CAUSE_SLOW_START || left <= 0)
        return false;
    *maximum = 1 / left;
    /* the remaining time, and the time for the bytes at the rate that the path has carried */
    *minimum = fmax(1, 1 / (left + r->rate / rate));
    return true;
}

/* Describes the window or buffer that limits the connection. Half of a buffer is overhead. */
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
    double delay_product = r->carried * r->rtt_min_ns / 1e9;
    if (connection_gain_of_path(r) > 1)
        return g_strdup_printf("the %s limits this connection to %s (size %s, round-trip time %s). The path has "
                               "carried %s, so the bandwidth-delay product is %s. Set the %s on %s to %s; this can "
                               "make the connection up to %.1f times as fast",
                               limit, rate, units_amount(size, "B", window), units_time(r->rtt_ns, rtt),
                               units_amount(r->carried * 8, "bit/s", carried),
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

/* Describes the rate of the path, and adds the text, which the function frees. */
static char *describe_path(const connection_result *r, char *text)
{
    char rate[UNITS_SIZE], all[UNITS_SIZE];
    units_amount(r->rate * 8, "bit/s", rate);
    char *description = r->sharing == 0 ? g_strdup_printf("the path carries %s; %s", rate, text)
                                        : g_strdup_printf("the connection shares the path with %" G_GUINT64_FORMAT
                                                          " other%s, and carries %s of the total %s; %s",
                                                          r->sharing, r->sharing == 1 ? "" : "s", rate,
                                                          units_amount(r->shared_rate * 8, "bit/s", all), text);
    g_free(text);
    return description;
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
        return g_strdup_printf("the program waited only for the disk for %.0f %% of the time. %s", percent, unknown);
    case CAUSE_SENDER_IDLE:
    case CAUSE_RECEIVER_PROGRAM:
        return g_strdup_printf(
            "the program waited neither for the disk nor for the network for %.0f %% of the time. %s", percent,
            unknown);
    default:
        return g_strdup_printf("the program waited for the network for %.0f %% of the time. %s", percent, unknown);
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
        return describe_window(r, "receive window", r->window, "maximum of net.ipv4.tcp_rmem, or SO_RCVBUF", r->peer);
    case CAUSE_SEND_BUFFER:
        return describe_window(r, "send buffer", r->send_buffer / 2, "maximum of net.ipv4.tcp_wmem, or SO_SNDBUF",
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
            "the sending program waited for a processor or a disk of %s for %.0f %% of the time, and "
            "had no data to send",
            r->host, share);
    case CAUSE_RECEIVER_HOST:
        return g_strdup_printf(
            "unread data closed the window for %.0f %% of the time while the receiving program waited "
            "for a processor or a disk of %s",
            share, r->peer_host);
    case CAUSE_LOSS:
        return g_strdup_printf(
            "%s of %s segments were sent again (%.2g %%), and the round-trip time is near its minimum "
            "of %s: the path loses segments although it is not full; check its links",
            units_quantity(round(r->retransmitted), a), units_quantity(round(r->segments), b),
            r->segments > 0 ? 100 * r->retransmitted / r->segments : 0, units_time(r->rtt_min_ns, c));
    case CAUSE_PATH_QUEUE:
        return describe_path(r,
                             g_strdup_printf("its queue adds %s to the round-trip time of %s",
                                             units_time(r->rtt_ns - r->rtt_min_ns, b), units_time(r->rtt_min_ns, c)));
    case CAUSE_PATH:
        return describe_path(r, g_strdup("no buffer or program limits the connection"));
    case CAUSE_POLICED:
        return g_strdup_printf(
            "the path drops segments whenever the congestion window reaches about the same size, and "
            "nothing waits in a queue: a policer, or a link with a short queue, limits the rate to "
            "about %s; shape the traffic to this rate, or raise the limit",
            units_amount(r->rate * 8, "bit/s", a));
    case CAUSE_REVERSE:
        return g_strdup_printf("the acknowledgements from %s wait in a queue on the way back, so the round-trip time "
                               "is %s instead of %s; check the rate and the load of the reverse path",
                               r->peer, units_time(r->rtt_ns, a), units_time(r->rtt_min_ns, b));
    case CAUSE_SLOW_START:
        return describe_start(r);
    case CAUSE_HANDSHAKE:
        return g_strdup_printf("connecting took %s: check whether the peer answers, and keep connections open",
                               units_time(r->cause_ns[CAUSE_HANDSHAKE], a));
    default:
        if (r->brief)
            return g_strdup("the connection ended before the sensor measured it twice, so only its handshake is known");
        if (r->ends == ENDS_RECEIVER)
            return g_strdup_printf("the receiver did not limit the connection, and the records of the sender are "
                                   "missing: run nlsensor connections at %s",
                                   r->local);
        return g_strdup("counters decreased, so the records do not belong to one connection");
    }
}
