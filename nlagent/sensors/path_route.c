#include "config.h"

#include "sensors/path_route.h"

#include "base/monotonic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SILENT_HOPS_MAX = 5, /* the search ends after this number of consecutive hops without a reply */
    HOP_ATTEMPTS = 2,
    SIZE_ATTEMPTS = 4,
    MTU_MIN_IPV4 = 576,
    MTU_MIN_IPV6 = 1280,
    MTU_MAX = 65535,
    HEADERS_IPV4 = 28, /* total size of the headers of IP and UDP */
    HEADERS_IPV6 = 48,
    ERRORS_MAX = 16,
};

#define WAIT_MIN_NS (NL_NS_PER_SECOND / 5)
#define WAIT_MAX_NS NL_NS_PER_SECOND

/* The event that ends the wait for an answer to a packet. */
typedef enum answer_kind {
    NO_ANSWER,
    ANSWER_REPLY,
    ANSWER_TIME_EXCEEDED,
    ANSWER_TOO_LARGE,
    ANSWER_UNREACHABLE
} answer_kind;

typedef struct answer {
    answer_kind kind;
    bool local;    /* this host has reported the error without sending a packet */
    unsigned mtu;  /* for ANSWER_TOO_LARGE; 0 if unknown */
    int64_t at_ns; /* time of arrival, since 1970 */
    char address[INET6_ADDRSTRLEN];
} answer;

typedef struct route_socket {
    path_probes *probes;
    int fd, family;
    uint32_t sequence;
} route_socket;

static bool route_open(route_socket *s, path_probes *p)
{
    *s = (route_socket){.probes = p, .family = p->peer.ss_family};
    s->fd = socket(s->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return false;
    bool six = s->family == AF_INET6;
    int probe = six ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE; /* send packets that must not be fragmented */
    int level = six ? IPPROTO_IPV6 : IPPROTO_IP;
    bool good = setsockopt(s->fd, level, six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe, sizeof probe) == 0 &&
                setsockopt(s->fd, level, six ? IPV6_RECVERR : IP_RECVERR, &(int){1}, sizeof(int)) == 0 &&
                setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int)) == 0 &&
                path_set_ttl(s->fd, s->family, STAMP_TTL) &&
                connect(s->fd, (struct sockaddr *)&p->peer, p->peer_size) == 0;
    if (!good)
        close(s->fd);
    return good;
}

/* ---- answers ---- */

static void read_icmp(const struct sock_extended_err *e, answer *a)
{
    bool six = e->ee_origin == SO_EE_ORIGIN_ICMP6;
    if (e->ee_origin == SO_EE_ORIGIN_LOCAL) {
        a->local = true;
        a->kind = e->ee_errno == EMSGSIZE ? ANSWER_TOO_LARGE : NO_ANSWER;
    } else if (six ? e->ee_type == ICMP6_TIME_EXCEEDED : e->ee_type == ICMP_TIME_EXCEEDED) {
        a->kind = ANSWER_TIME_EXCEEDED;
    } else if (six ? e->ee_type == ICMP6_PACKET_TOO_BIG
                   : e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_FRAG_NEEDED) {
        a->kind = ANSWER_TOO_LARGE;
    } else if (six ? e->ee_type == ICMP6_DST_UNREACH : e->ee_type == ICMP_DEST_UNREACH) {
        a->kind = ANSWER_UNREACHABLE;
    }
    if (a->kind == ANSWER_TOO_LARGE)
        a->mtu = e->ee_info;
    const struct sockaddr *offender = SO_EE_OFFENDER(e);
    if (offender->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)offender)->sin_addr, a->address,
                  sizeof a->address);
    else if (offender->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)offender)->sin6_addr, a->address,
                  sizeof a->address);
}

/*
 * Reads an error of the socket. Ignores the error if it contains the beginning of a packet other than the last packet.
 * Returns false if there is no error.
 */
static bool read_error(route_socket *s, answer *a)
{
    unsigned char bytes[STAMP_SIZE];
    _Alignas(struct cmsghdr) char control[512];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(s->fd, &message, MSG_ERRQUEUE);
    if (got < 0)
        return false;
    uint32_t sequence;
    if (got >= (ssize_t)sizeof sequence) {
        memcpy(&sequence, bytes, sizeof sequence);
        if (ntohl(sequence) != s->sequence)
            return true;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            read_icmp((const struct sock_extended_err *)(const void *)CMSG_DATA(c), a);
    a->at_ns = path_received_ns(&message, NULL);
    return true;
}

static void read_packet(route_socket *s, answer *a)
{
    unsigned char bytes[STAMP_SIZE];
    _Alignas(struct cmsghdr) char control[256];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    stamp_reply reply;
    ssize_t got = recvmsg(s->fd, &message, 0);
    if (got >= 0 && stamp_read_reply(bytes, (size_t)got, &reply) && reply.probe.sequence == s->sequence) {
        a->kind = ANSWER_REPLY;
        a->at_ns = path_received_ns(&message, NULL);
    }
}

/* Sends a probe in an IP packet of `size` bytes, and returns the answer. Sets *round_trip_ns to the time between probe
 * and answer. */
static answer route_try(route_socket *s, size_t size, int64_t wait_ns, int64_t *round_trip_ns)
{
    static unsigned char packet[MTU_MAX]; /* static, because only the thread of the sensor uses the packet */
    answer a = {0};
    s->sequence++;
    int64_t sent_ns = nl_time_now_ns(), deadline_ns = nl_monotonic_ns() + wait_ns;
    stamp_write_probe(&(stamp_probe){.sequence = s->sequence, .sent_ns = sent_ns, .error_ns = STAMP_ERROR_UNKNOWN},
                      packet);
    ssize_t sent = send(s->fd, packet, size - (s->family == AF_INET6 ? HEADERS_IPV6 : HEADERS_IPV4), 0);
    if (sent < 0 && errno != EMSGSIZE) /* try again, because the error may belong to an earlier packet */
        sent = send(s->fd, packet, size - (s->family == AF_INET6 ? HEADERS_IPV6 : HEADERS_IPV4), 0);
    if (sent < 0 && errno == EMSGSIZE)
        a.kind = ANSWER_TOO_LARGE, a.local = true;
    for (int i = 0; i < ERRORS_MAX && read_error(s, &a); i++)
        continue;
    while (a.kind == NO_ANSWER && path_probes_wait(s->probes, s->fd, POLLIN, deadline_ns)) {
        read_packet(s, &a);
        for (int i = 0; i < ERRORS_MAX && a.kind == NO_ANSWER && read_error(s, &a); i++)
            continue;
    }
    *round_trip_ns = a.at_ns > sent_ns ? a.at_ns - sent_ns : 0;
    return a;
}

/* ---- routers ---- */

static void address_of_peer(const path_probes *p, char *out)
{
    if (p->peer.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&p->peer)->sin6_addr, out, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&p->peer)->sin_addr, out, INET6_ADDRSTRLEN);
}

/* Finds the hop with this TTL. Returns whether the hop is the last. */
static bool find_hop(route_socket *s, int ttl, path_hop *hop)
{
    *hop = (path_hop){0};
    for (int attempt = 0; attempt < HOP_ATTEMPTS && path_set_ttl(s->fd, s->family, ttl); attempt++) {
        int64_t round_trip_ns;
        size_t headers = s->family == AF_INET6 ? HEADERS_IPV6 : HEADERS_IPV4;
        answer a = route_try(s, STAMP_SIZE + headers, WAIT_MAX_NS, &round_trip_ns);
        if (a.kind == NO_ANSWER)
            continue;
        snprintf(hop->address, sizeof hop->address, "%s", a.address);
        if (a.kind == ANSWER_REPLY)
            address_of_peer(s->probes, hop->address);
        hop->round_trip_ns = round_trip_ns;
        return a.kind != ANSWER_TIME_EXCEEDED;
    }
    return false;
}

size_t path_find_hops(path_probes *p, path_hop hops[PATH_HOPS_MAX])
{
    route_socket s;
    size_t count = 0, silent = 0;
    bool last = false;
    if (!route_open(&s, p))
        return 0;
    while (count < PATH_HOPS_MAX && silent < SILENT_HOPS_MAX && !last) {
        last = find_hop(&s, (int)count + 1, &hops[count]);
        silent = hops[count].address[0] != '\0' ? 0 : silent + 1;
        count++;
    }
    close(s.fd);
    return count;
}

/* ---- packet size ---- */

/* Returns whether a packet of this size reaches the peer. Keeps the MTU that this host or a router reports. */
static bool size_fits(route_socket *s, unsigned size, path_mtu *m)
{
    int64_t wait_ns = 4 * s->probes->round_trip_ns, round_trip_ns;
    wait_ns = wait_ns < WAIT_MIN_NS ? WAIT_MIN_NS : wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS;
    for (int attempt = 0; attempt < SIZE_ATTEMPTS; attempt++) {
        answer a = route_try(s, size, wait_ns, &round_trip_ns);
        if (a.kind == ANSWER_REPLY)
            return true;
        if (a.kind != ANSWER_TOO_LARGE)
            continue;
        if (a.local && a.mtu > 0)
            m->local = a.mtu;
        else if (a.mtu > 0 && (m->reported == 0 || a.mtu < m->reported))
            m->reported = a.mtu;
        return false;
    }
    return false;
}

/* Returns the largest size that fits. The size `low` fits, and `high` does not. */
static unsigned search_size(route_socket *s, unsigned low, unsigned high, path_mtu *m)
{
    while (high - low > 1) {
        /* first try a router's report, which is usually right; if this size fits, also try the next larger size */
        bool reported = m->reported > low && m->reported < high;
        unsigned middle = reported ? m->reported : m->reported == low ? low + 1 : low + (high - low) / 2;
        if (size_fits(s, middle, m))
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool path_find_mtu(path_probes *p, path_mtu *result)
{
    route_socket s;
    path_mtu m = {.local = MTU_MAX};
    if (!route_open(&s, p))
        return false;
    unsigned minimum = s.family == AF_INET6 ? MTU_MIN_IPV6 : MTU_MIN_IPV4;
    size_fits(&s, MTU_MAX, &m); /* makes this host report its MTU; sends no packet */
    bool good = m.local >= minimum && size_fits(&s, minimum, &m);
    if (good)
        m.path = size_fits(&s, m.local, &m) ? m.local : search_size(&s, minimum, m.local, &m);
    close(s.fd);
    *result = m;
    return good;
}
