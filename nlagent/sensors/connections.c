/*
 * Reports the kernel's state of each TCP connection: windows, round-trip times, and what limits the sender. Uses
 * sock_diag(7) and struct tcp_info; similar to Web100 (RFC 4898).
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SHOWN_MAX = 512, ESTABLISHED = 1, LISTENING = 10, STATES = 12 };

typedef struct connections_state {
    int fd;
    long port;     /* local or remote port; 0: any port */
    char peer[64]; /* glob for the peer's address; "": any address */
    int shown;
} connections_state;

static bool connections_open(void *state, const sensor_spec *spec)
{
    connections_state *s = state;
    const char *peer = spec_argument(spec, "peer");
    if (!spec_number(spec, "port", 1, 65535, 0, &s->port))
        return false;
    snprintf(s->peer, sizeof s->peer, "%s", peer != NULL ? peer : "");
    s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (s->fd < 0)
        nl_error_set_errno("sock_diag");
    return s->fd >= 0;
}

/* Requests all connections of an address family, except listening and closed sockets. */
static bool connections_request(int fd, int family)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 what;
    } request = {.head = {.nlmsg_len = sizeof request,
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                 .what = {.sdiag_family = (unsigned char)family,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1),
                          .idiag_states = ((1u << STATES) - 1) & ~(1u << LISTENING | 1u << 6 | 1u << 7)}};
    return send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request;
}

static void address_text(const struct inet_diag_msg *d, const uint32_t *address, unsigned port, char out[64])
{
    char host[INET6_ADDRSTRLEN];
    inet_ntop(d->idiag_family, address, host, sizeof host);
    snprintf(out, 64, d->idiag_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

static const char *state_name(unsigned state)
{
    static const char *const names[STATES] = {"",           "established", "syn-sent",  "syn-received",
                                              "fin-wait-1", "fin-wait-2",  "time-wait", "closed",
                                              "close-wait", "last-ack",    "listen",    "closing"};
    return state < STATES ? names[state] : "";
}

/* Adds the members of tcp_info. The counters start at 0 with the connection. */
static void add_info(nl_record *record, const struct tcp_info *i)
{
    const struct {
        const char *name;
        uint64_t value;
    } values[] = {
        {"TCP.CWND", i->tcpi_snd_cwnd},
        {"TCP.SSTHRESH", i->tcpi_snd_ssthresh},
        {"TCP.MSS", i->tcpi_snd_mss},
        {"TCP.WINDOW", i->tcpi_snd_wnd},
        {"TCP.WINDOW.RECEIVE", i->tcpi_rcv_space},
        {"TCP.RTT", i->tcpi_rtt},
        {"TCP.RTT.VAR", i->tcpi_rttvar},
        {"TCP.RTT.MIN", i->tcpi_min_rtt},
        {"TCP.RTO", i->tcpi_rto},
        {"TCP.UNACKED", i->tcpi_unacked},
        {"TCP.LOST", i->tcpi_lost},
        {"TCP.RETRANS", i->tcpi_total_retrans},
        {"TCP.BYTES.SENT", i->tcpi_bytes_sent},
        {"TCP.BYTES.ACKED", i->tcpi_bytes_acked},
        {"TCP.BYTES.RECEIVED", i->tcpi_bytes_received},
        {"TCP.BYTES.RETRANS", i->tcpi_bytes_retrans},
        {"TCP.UNSENT", i->tcpi_notsent_bytes},
        {"TCP.RATE", i->tcpi_delivery_rate},
        {"TCP.BUSY", i->tcpi_busy_time},
        {"TCP.LIMITED.RECEIVER", i->tcpi_rwnd_limited},
        {"TCP.LIMITED.BUFFER", i->tcpi_sndbuf_limited},
    };
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
        nl_record_add_uint(record, values[v].name, values[v].value);
    uint64_t limited = i->tcpi_rwnd_limited + i->tcpi_sndbuf_limited;
    nl_record_add_uint(record, "TCP.LIMITED.NETWORK", i->tcpi_busy_time > limited ? i->tcpi_busy_time - limited : 0);
}

static void log_connection(measurement *m, const struct inet_diag_msg *d, const struct tcp_info *info,
                           const char *algorithm)
{
    connections_state *s = m->state;
    char local[64], peer[64];
    unsigned ports[2] = {ntohs(d->id.idiag_sport), ntohs(d->id.idiag_dport)};
    address_text(d, d->id.idiag_src, ports[0], local);
    address_text(d, d->id.idiag_dst, ports[1], peer);
    if ((s->port != 0 && (long)ports[0] != s->port && (long)ports[1] != s->port) ||
        (s->peer[0] != '\0' && fnmatch(s->peer, peer, 0) != 0) || s->shown++ >= SHOWN_MAX)
        return;
    nl_record *record = record_begin(m, "TcpConnection");
    add_text(record, "TCP.LOCAL", local);
    add_text(record, "TCP.PEER", peer);
    add_text(record, "TCP.STATE", state_name(d->idiag_state));
    nl_record_add_uint(record, "TCP.INODE", d->idiag_inode);
    nl_record_add_uint(record, "TCP.QUEUE.IN", d->idiag_rqueue);
    nl_record_add_uint(record, "TCP.QUEUE.OUT", d->idiag_wqueue);
    add_text(record, "TCP.ALGORITHM", algorithm);
    add_info(record, info);
    record_end(m);
}

static void log_message(measurement *m, const struct nlmsghdr *head)
{
    const struct inet_diag_msg *d = NLMSG_DATA(head);
    struct tcp_info info = {0};
    char algorithm[24] = "";
    bool has_info = false;
    int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof *d));
    for (const struct rtattr *a = (const struct rtattr *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        size_t size = RTA_PAYLOAD(a);
        if (a->rta_type == INET_DIAG_INFO) {
            memcpy(&info, RTA_DATA(a), size < sizeof info ? size : sizeof info); /* older kernels have fewer members */
            has_info = true;
        } else if (a->rta_type == INET_DIAG_CONG) {
            snprintf(algorithm, sizeof algorithm, "%.*s", (int)size, (const char *)RTA_DATA(a));
        }
    }
    if (has_info)
        log_connection(m, d, &info, algorithm);
}

/* Reads the whole reply. */
static bool read_reply(measurement *m, int fd)
{
    static _Alignas(struct nlmsghdr) char bytes[32 << 10];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        for (const struct nlmsghdr *head = (const struct nlmsghdr *)(void *)bytes; NLMSG_OK(head, got);
             head = NLMSG_NEXT(head, got)) {
            if (head->nlmsg_type == NLMSG_DONE)
                return true;
            if (head->nlmsg_type == NLMSG_ERROR)
                return false;
            log_message(m, head);
        }
    }
}

static bool connections_measure(measurement *m)
{
    connections_state *s = m->state;
    s->shown = 0;
    bool four = connections_request(s->fd, AF_INET) && read_reply(m, s->fd);
    bool six = connections_request(s->fd, AF_INET6) && read_reply(m, s->fd);
    if (!four && !six)
        nl_error_set(NL_ERROR_SYSTEM, "sock_diag: the kernel does not list connections");
    return four || six;
}

#define TCP(name, unit, meaning)                                                                                       \
    {                                                                                                                  \
        "TcpConnection", name, unit, meaning                                                                           \
    }

static const sensor_field fields[] = {
    TCP("TCP.LOCAL", "", "local address and port"),
    TCP("TCP.PEER", "", "remote address and port"),
    TCP("TCP.STATE", "", "established, close-wait ..."),
    TCP("TCP.INODE", "", "inode of the socket, which identifies it"),
    TCP("TCP.QUEUE.IN", "bytes", "data received, but not read by the program"),
    TCP("TCP.QUEUE.OUT", "bytes", "data written, but not acknowledged"),
    TCP("TCP.ALGORITHM", "", "congestion control algorithm"),
    TCP("TCP.CWND", "segments", "congestion window"),
    TCP("TCP.SSTHRESH", "segments", "slow start threshold"),
    TCP("TCP.MSS", "bytes", "maximum segment size"),
    TCP("TCP.WINDOW", "bytes", "receive window of the peer"),
    TCP("TCP.WINDOW.RECEIVE", "bytes", "receive window for the peer, approximately"),
    TCP("TCP.RTT", "us", "smoothed round-trip time"),
    TCP("TCP.RTT.VAR", "us", "variation of the round-trip time"),
    TCP("TCP.RTT.MIN", "us", "minimum round-trip time"),
    TCP("TCP.RTO", "us", "retransmission timeout"),
    TCP("TCP.UNACKED", "segments", "in flight"),
    TCP("TCP.LOST", "segments", "segments presumed lost now"),
    TCP("TCP.RETRANS", "segments", "segments retransmitted since the connection began"),
    TCP("TCP.BYTES.SENT", "bytes", "data sent since the connection began, including retransmissions"),
    TCP("TCP.BYTES.ACKED", "bytes", "data acknowledged since the connection began"),
    TCP("TCP.BYTES.RECEIVED", "bytes", "data received since the connection began"),
    TCP("TCP.BYTES.RETRANS", "bytes", "data retransmitted since the connection began"),
    TCP("TCP.UNSENT", "bytes", "data written, but not sent"),
    TCP("TCP.RATE", "bytes/s", "recent delivery rate"),
    TCP("TCP.BUSY", "us", "time in which the connection had data to send"),
    TCP("TCP.LIMITED.RECEIVER", "us", "part of TCP.BUSY in which the peer's window was the limit"),
    TCP("TCP.LIMITED.BUFFER", "us", "part of TCP.BUSY in which the send buffer was the limit"),
    TCP("TCP.LIMITED.NETWORK", "us", "part of TCP.BUSY in which congestion control was the limit"),
    {0},
};

const sensor_kind connections_sensor = {
    .name = "connections",
    .what = "the windows, round-trip times and sender limits of each TCP connection",
    .arguments = " port peer ",
    .arguments_help = "port=N (log only connections with this local or remote port), peer=GLOB (log only connections "
                      "whose remote ADDRESS:PORT matches). The sensor logs at most 512 connections",
    .fields = fields,
    .open = connections_open,
    .measure = connections_measure,
    .state_size = sizeof(connections_state)};
