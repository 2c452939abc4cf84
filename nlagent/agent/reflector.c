#include "config.h"

#include "agent/reflector.h"
#include "agent/reflector_limits.h"
#include "sensors/path_probes.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RETRY_S = 1, /* seconds to wait after accept has failed */
    FAMILIES = 2,
    PACKETS_PER_TURN = 64, /* maximum number of packets before nlagentd serves its other clients */
    READ_PER_TURN = 1 << 20,
    BACKLOG = 8,
};

/* Maximum size and duration of a transfer. Usually, the path sensor ends a transfer earlier. */
#define TRANSFER_BYTES_MAX UINT64_C(2000000000)
#define TRANSFER_S_MAX 15

/* A connection whose data the reflector discards. */
typedef struct sink {
    struct sink *next;
    reflector *owner;
    int fd;
    uint64_t bytes;
    struct event *readable;
    struct event *end; /* ends the transfer after TRANSFER_S_MAX */
} sink;

struct reflector {
    int probes[FAMILIES], listeners[FAMILIES]; /* for IPv4 and IPv6; -1 if this host lacks the family */
    struct event *events[2 * FAMILIES];
    struct event *retry; /* makes the reflector accept transfers again after a pause */
    struct event_base *base;
    const network_list *networks;
    reflector_limits limits;
    sink *sinks;
    int64_t clock_error_ns, clock_checked_ns;
};

/* ---- sockets ---- */

static bool set_number(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

static bool set_probe_options(int fd, int family)
{
    set_number(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    if (family == AF_INET6)
        set_number(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    else
        set_number(fd, IPPROTO_IP, IP_RECVTTL, 1);
    return (family == AF_INET6 ? set_number(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
                               : set_number(fd, IPPROTO_IP, IP_PKTINFO, 1)) &&
           path_set_ttl(fd, family, STAMP_TTL);
}

/* Opens a socket. Returns false and sets the error on failure. Sets *fd to -1 if this host lacks the family. */
static bool reflector_bind(int family, int type, uint16_t port, int *fd)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t size = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&address)->sin_port = htons(port);
    *fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0 && errno == EAFNOSUPPORT)
        return true;
    bool good = *fd >= 0 && (family == AF_INET || set_number(*fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) &&
                (type == SOCK_DGRAM ? set_probe_options(*fd, family) : set_number(*fd, SOL_SOCKET, SO_REUSEADDR, 1));
    bool bound = good && bind(*fd, (struct sockaddr *)&address, size) == 0;
    if (good && !bound && family == AF_INET6 && errno == EADDRNOTAVAIL) { /* IPv6 is disabled */
        close(*fd);
        *fd = -1;
        return true;
    }
    if (bound && (type == SOCK_DGRAM || listen(*fd, BACKLOG) == 0))
        return true;
    nl_error_set_errno("port %u", port);
    return false;
}

reflector *reflector_open(uint16_t port)
{
    static const int families[FAMILIES] = {AF_INET, AF_INET6};
    reflector *r = nl_memory_check(calloc(1, sizeof *r));
    bool good = true;
    for (int i = 0; i < FAMILIES; i++)
        r->probes[i] = r->listeners[i] = -1;
    for (int i = 0; i < FAMILIES && good; i++)
        good = reflector_bind(families[i], SOCK_DGRAM, port, &r->probes[i]) &&
               reflector_bind(families[i], SOCK_STREAM, port, &r->listeners[i]);
    if (good)
        return r;
    reflector_free(r);
    return NULL;
}

/* ---- probes ---- */

/* Keeps only the address to which the client sent the probe in a message's control data, so that the reply has this
 * source address. */
static void keep_own_address(struct msghdr *message)
{
    _Alignas(struct cmsghdr) char kept[128];
    size_t size = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        bool four = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO;
        bool six = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO;
        if ((!four && !six) || c->cmsg_len > sizeof kept)
            continue;
        if (four) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            info.ipi_spec_dst = info.ipi_addr;
            info.ipi_ifindex = 0; /* let the routing table select the interface for the reply */
            memcpy(CMSG_DATA(c), &info, sizeof info);
        }
        size = c->cmsg_len;
        memcpy(kept, c, size);
        break;
    }
    memcpy(message->msg_control, kept, size);
    message->msg_controllen = size;
}

static int64_t clock_error_now(reflector *r)
{
    int64_t now_ns = nl_monotonic_ns();
    if (r->clock_checked_ns == 0 || now_ns - r->clock_checked_ns >= NL_NS_PER_SECOND) {
        r->clock_error_ns = stamp_clock_error_ns();
        r->clock_checked_ns = now_ns;
    }
    return r->clock_error_ns;
}

/* Reads a packet, and replies if it is a probe of an allowed client. Returns false if there are no more packets. */
static bool reflect_one(reflector *r, int fd)
{
    unsigned char bytes[STAMP_SIZE], packet[STAMP_SIZE];
    struct sockaddr_storage from;
    _Alignas(struct cmsghdr) char control[256];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof from,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, 0);
    if (got < 0)
        return errno != EAGAIN; /* errors other than EAGAIN concern an earlier reply, so another packet may follow */
    stamp_probe probe;
    stamp_reply reply = {0};
    if (!network_list_contains(r->networks, (struct sockaddr *)&from) ||
        !stamp_read_probe(bytes, (size_t)got, &probe) ||
        !reflector_limits_probe(&r->limits, (struct sockaddr *)&from, nl_monotonic_ns(), &reply.sequence))
        return true;
    reply.received_ns = path_received_ns(&message, &reply.ttl);
    reply.error_ns = clock_error_now(r);
    keep_own_address(&message);
    part = (struct iovec){packet, sizeof packet};
    reply.replied_ns = nl_time_now_ns();
    stamp_write_reply(bytes, &reply, packet);
    if (sendmsg(fd, &message, 0) < 0) /* the client counts the reply as lost */
        return true;
    return true;
}

static void on_probe(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    for (int i = 0; i < PACKETS_PER_TURN && reflect_one(user, fd); i++)
        continue;
}

/* ---- transfers ---- */

static void sink_free(sink *k)
{
    sink **at = &k->owner->sinks;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    event_free(k->readable);
    event_free(k->end);
    close(k->fd);
    free(k);
}

static void on_data(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    static char discarded[READ_PER_TURN];
    sink *k = user;
    const uint64_t left = TRANSFER_BYTES_MAX - k->bytes;
    /* with MSG_TRUNC, the kernel discards the data without copying */
    ssize_t got = recv(fd, discarded, left < sizeof discarded ? (size_t)left : sizeof discarded, MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    k->bytes += got > 0 ? (uint64_t)got : 0;
    if (got <= 0 || k->bytes == TRANSFER_BYTES_MAX)
        sink_free(k);
}

static void on_transfer_end(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    sink_free(user);
}

/* Pauses the acceptance of transfers, because without free descriptors, the loop would spin. */
static void pause_listeners(reflector *r)
{
    for (int i = 0; i < FAMILIES; i++)
        if (r->listeners[i] >= 0)
            event_del(r->events[2 * i + 1]);
    event_add(r->retry, &(struct timeval){.tv_sec = RETRY_S});
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    reflector *r = user;
    for (int i = 0; i < FAMILIES; i++)
        if (r->listeners[i] >= 0)
            event_add(r->events[2 * i + 1], NULL);
}

static void on_transfer(evutil_socket_t listener, short what, void *user)
{
    (void)what;
    reflector *r = user;
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            pause_listeners(r);
        return;
    }
    int64_t now_ns = nl_monotonic_ns();
    if (!network_list_contains(r->networks, (struct sockaddr *)&from) ||
        !reflector_limits_transfer(&r->limits, (struct sockaddr *)&from, now_ns)) {
        close(fd);
        return;
    }
    sink *k = nl_memory_check(calloc(1, sizeof *k));
    *k = (sink){.next = r->sinks, .owner = r, .fd = fd};
    k->readable = nl_memory_check(event_new(r->base, fd, EV_READ | EV_PERSIST, on_data, k));
    k->end = nl_memory_check(evtimer_new(r->base, on_transfer_end, k));
    r->sinks = k;
    event_add(k->readable, NULL);
    event_add(k->end, &(struct timeval){.tv_sec = TRANSFER_S_MAX});
}

/* ---- start and end ---- */

void reflector_serve(reflector *r, struct event_base *base, const network_list *networks)
{
    r->base = base;
    r->networks = networks;
    r->retry = nl_memory_check(event_new(base, -1, 0, on_retry, r));
    for (int i = 0; i < FAMILIES; i++) {
        const int fds[] = {r->probes[i], r->listeners[i]};
        for (int kind = 0; kind < 2; kind++) {
            if (fds[kind] < 0)
                continue;
            struct event *e = nl_memory_check(
                event_new(base, fds[kind], EV_READ | EV_PERSIST, kind == 0 ? on_probe : on_transfer, r));
            event_add(e, NULL);
            r->events[2 * i + kind] = e;
        }
    }
}

void reflector_change(reflector *r, const network_list *networks)
{
    if (r != NULL)
        r->networks = networks;
}

void reflector_free(reflector *r)
{
    if (r == NULL)
        return;
    while (r->sinks != NULL)
        sink_free(r->sinks);
    for (int i = 0; i < 2 * FAMILIES; i++)
        if (r->events[i] != NULL)
            event_free(r->events[i]);
    if (r->retry != NULL)
        event_free(r->retry);
    for (int i = 0; i < FAMILIES; i++) {
        if (r->probes[i] >= 0)
            close(r->probes[i]);
        if (r->listeners[i] >= 0)
            close(r->listeners[i]);
    }
    free(r);
}
