/*
 * Measures round-trip times to a host with ICMP echo requests, and counts losses. A measurement reads the replies that
 * have arrived since the last measurement, and sends new requests. A measurement never waits. The time of a reply is
 * the time at which the kernel received it. A request without a reply after two intervals counts as lost. The sensor
 * uses ICMP sockets (net.ipv4.ping_group_range), or raw sockets if the user has the right to open raw sockets.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 100, REPLIES_MAX = 4 * COUNT_MAX };

/* The data after the ICMP header. */
typedef struct payload {
    uint64_t mark; /* identifies packets of this process */
    uint32_t round, number;
    int64_t sent_ns;
} payload;

typedef struct ping_state {
    int fd;
    bool raw;
    struct sockaddr_storage peer;
    socklen_t peer_size;
    char host[256], address[INET6_ADDRSTRLEN];
    uint64_t mark;
    uint32_t round; /* number of the current measurement */
    long count;
    uint32_t sent[2]; /* number of requests in this round and the previous round, indexed by the round modulo 2 */
    uint32_t replied[2];
    double sum_us, min_us, max_us; /* round-trip times of the replies that the current measurement reads */
    uint32_t found;
} ping_state;

static bool open_socket(ping_state *s)
{
    int family = s->peer.ss_family, protocol = family == AF_INET6 ? (int)IPPROTO_ICMPV6 : (int)IPPROTO_ICMP;
    s->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    s->raw = s->fd < 0;
    if (s->raw)
        s->fd = socket(family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (s->fd < 0) {
        nl_error_set_errno("socket");
        return false;
    }
    setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
    return true;
}

static bool ping_open(void *state, const sensor_spec *spec)
{
    ping_state *s = state;
    const char *host = spec_argument(spec, "host");
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    if (!spec_number(spec, "count", 1, COUNT_MAX, 1, &s->count))
        return false;
    int error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0)
        return nl_error_false(NL_ERROR_NOT_FOUND, "%s: %s", host, gai_strerror(error));
    memcpy(&s->peer, found->ai_addr, found->ai_addrlen);
    s->peer_size = found->ai_addrlen;
    getnameinfo(found->ai_addr, found->ai_addrlen, s->address, sizeof s->address, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    snprintf(s->host, sizeof s->host, "%s", host);
    s->mark = (uint64_t)nl_time_now_ns() ^ (uint64_t)getpid() << 40;
    return open_socket(s);
}

static uint16_t checksum(const void *data, size_t size)
{
    const unsigned char *at = data;
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < size; i += 2)
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the packet has no padding */
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

static void send_one(ping_state *s, uint32_t number)
{
    struct {
        struct icmphdr head; /* ICMPv6 has the same header */
        payload load;
    } packet = {.head = {.type = s->peer.ss_family == AF_INET6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO,
                         .un.echo = {.id = htons((uint16_t)getpid()), .sequence = htons((uint16_t)s->round)}},
                .load = {.mark = s->mark, .round = s->round, .number = number}};
    packet.load.sent_ns = nl_time_now_ns();
    if (s->peer.ss_family == AF_INET)
        packet.head.checksum = checksum(&packet, sizeof packet); /* for IPv6, the kernel computes the checksum */
    s->sent[s->round % 2]++;                                     /* also count an unsent packet, which counts as lost */
    if (sendto(s->fd, &packet, sizeof packet, 0, (const struct sockaddr *)&s->peer, s->peer_size) < 0)
        return;
}

/* Returns the time at which the kernel received the message, or the current time if the message does not contain this
 * time. */
static int64_t received_ns(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec at;
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return (int64_t)at.tv_sec * NL_NS_PER_SECOND + at.tv_nsec;
        }
    return nl_time_now_ns();
}

static void read_reply(ping_state *s, const unsigned char *bytes, size_t size, int64_t at_ns)
{
    payload load;
    struct icmphdr head;
    bool six = s->peer.ss_family == AF_INET6;
    size_t skip = s->raw && !six && size > 0 ? (size_t)(bytes[0] & 15) * 4 : 0; /* size of the IP header */
    if (size < skip + sizeof head + sizeof load)
        return;
    memcpy(&head, bytes + skip, sizeof head);
    memcpy(&load, bytes + skip + sizeof head, sizeof load);
    if (head.type != (six ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) || load.mark != s->mark || s->round - load.round > 1)
        return; /* the reply belongs to another process, or is too late */
    double us = (double)(at_ns - load.sent_ns) / 1e3;
    us = us > 0 ? us : 0; /* the difference is negative if the clock was set back in the meantime */
    s->min_us = s->found == 0 || us < s->min_us ? us : s->min_us;
    s->max_us = s->found == 0 || us > s->max_us ? us : s->max_us;
    s->sum_us = (s->found == 0 ? 0 : s->sum_us) + us;
    s->found++;
    s->replied[load.round % 2]++;
}

static void read_replies(ping_state *s)
{
    s->found = 0;
    for (int i = 0; i < REPLIES_MAX; i++) {
        unsigned char bytes[256];
        _Alignas(struct cmsghdr) char control[128];
        struct iovec part = {bytes, sizeof bytes};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t got = recvmsg(s->fd, &message, 0);
        if (got < 0)
            break;
        read_reply(s, bytes, (size_t)got, received_ns(&message));
    }
}

static void log_round_trips(measurement *m, uint32_t sent, uint32_t lost)
{
    const ping_state *s = m->state;
    nl_record *record = record_begin(m, "Ping");
    add_text(record, "PING.HOST", s->host);
    add_text(record, "PING.ADDRESS", s->address);
    if (s->found > 0) {
        add_rounded(record, "PING.RTT", s->sum_us / s->found, 1);
        add_rounded(record, "PING.RTT.MIN", s->min_us, 1);
        add_rounded(record, "PING.RTT.MAX", s->max_us, 1);
    }
    nl_record_add_uint(record, "PING.ANSWERED", s->found);
    add_rounded(record, "PING.LOSS", sent > 0 ? 100.0 * lost / sent : 0, 1);
    record_end(m);
}

static bool ping_measure(measurement *m)
{
    ping_state *s = m->state;
    read_replies(s);
    if (m->seconds > 0) {
        /* report the round before the latest round, whose requests are two intervals old */
        uint32_t before = (s->round - 1) % 2, now = s->round % 2;
        uint32_t sent = s->round > 1 ? s->sent[before] : s->sent[now];
        uint32_t lost = s->round > 1 ? s->sent[before] - s->replied[before] : 0;
        log_round_trips(m, sent, lost);
    }
    s->round++;
    s->sent[s->round % 2] = s->replied[s->round % 2] = 0;
    for (long i = 0; i < s->count; i++)
        send_one(s, (uint32_t)i);
    return true;
}

static const sensor_field fields[] = {
    {"Ping", "PING.HOST", "", "host"},
    {"Ping", "PING.ADDRESS", "", "address of the host"},
    {"Ping", "PING.RTT", "us", "mean round-trip time; absent if there were no replies"},
    {"Ping", "PING.RTT.MIN", "us", "minimum round-trip time"},
    {"Ping", "PING.RTT.MAX", "us", "maximum round-trip time"},
    {"Ping", "PING.ANSWERED", "packets", "new replies"},
    {"Ping", "PING.LOSS", "%", "share of packets lost in the previous measurement"},
    {0},
};

const sensor_kind ping_sensor = {.name = "ping",
                                 .what = "the round-trip times to a host, and packet loss",
                                 .arguments = " host count ",
                                 .arguments_help = "host=NAME (required), count=N (packets per measurement, default 1)",
                                 .required = "host=NAME",
                                 .fields = fields,
                                 .open = ping_open,
                                 .measure = ping_measure,
                                 .state_size = sizeof(ping_state)};
