#include "config.h"

#include "sensors/path_probes.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/monotonic.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { READ_MAX = 64 };

#define ANSWERED_NS (10 * NL_NS_PER_SECOND)
#define CLOCK_NS NL_NS_PER_SECOND
#define SILENT_PERIOD_NS NL_NS_PER_SECOND

bool path_set_ttl(int fd, int family, int ttl)
{
    return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &ttl, sizeof ttl) == 0
                              : setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl) == 0;
}

bool path_probes_open(path_probes *p, int64_t period_ns)
{
    int family = p->peer.ss_family;
    p->random = hash_seed() | 1;
    p->period_ns = period_ns;
    p->heard_ns = INT64_MIN;
    p->clock_error_ns = p->reported_error_ns = STAMP_ERROR_UNKNOWN;
    pthread_mutex_init(&p->lock, NULL);
    path_tally_begin(&p->tally, (uint16_t)p->random, (uint32_t)(p->random >> 17));
    p->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || !path_set_ttl(p->fd, family, STAMP_TTL) ||
        connect(p->fd, (struct sockaddr *)&p->peer, p->peer_size) != 0) {
        nl_error_set_errno("socket");
        return false;
    }
    setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
    if (family == AF_INET6)
        setsockopt(p->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &(int){1}, sizeof(int));
    else
        setsockopt(p->fd, IPPROTO_IP, IP_RECVTTL, &(int){1}, sizeof(int));
    return true;
}

bool path_probes_answered(const path_probes *p)
{
    return p->heard_ns != INT64_MIN && nl_monotonic_ns() - p->heard_ns < ANSWERED_NS;
}

/* Stores the message of errno. The caller holds the lock. */
static void keep_problem(path_probes *p)
{
    snprintf(p->problem, sizeof p->problem, "%s%s", strerror(errno),
             errno == ECONNREFUSED ? "; does the peer's nlagentd have --reflect?" : "");
}

/* Schedules the next probe. The times between probes vary, so that the probes do not have the same period as other
 * traffic (RFC 3432). */
static void probes_schedule(path_probes *p, int64_t now_ns)
{
    int64_t period_ns = p->period_ns;
    if (!path_probes_answered(p) && period_ns < SILENT_PERIOD_NS)
        period_ns = SILENT_PERIOD_NS;
    p->random = hash_mix(p->random ^ (uint64_t)now_ns, UINT64_C(0x9e3779b97f4a7c15)) | 1;
    p->next_ns = now_ns + period_ns / 2 + (int64_t)(p->random >> 1) % period_ns;
}

static void probes_send(path_probes *p, int64_t now_ns)
{
    unsigned char packet[STAMP_SIZE];
    if (p->clock_checked_ns == 0 || now_ns - p->clock_checked_ns >= CLOCK_NS) {
        p->clock_error_ns = stamp_clock_error_ns();
        p->clock_checked_ns = now_ns;
    }
    pthread_mutex_lock(&p->lock);
    p->reported_error_ns = p->clock_error_ns;
    stamp_probe probe = path_tally_send(&p->tally, now_ns, nl_time_now_ns(), p->clock_error_ns);
    pthread_mutex_unlock(&p->lock);
    stamp_write_probe(&probe, packet);
    if (send(p->fd, packet, sizeof packet, 0) < 0) { /* count the probe as lost */
        pthread_mutex_lock(&p->lock);
        keep_problem(p);
        pthread_mutex_unlock(&p->lock);
    }
    probes_schedule(p, now_ns);
}

int64_t path_received_ns(struct msghdr *message, unsigned *ttl)
{
    int64_t at_ns = 0;
    int value = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec at;
            memcpy(&at, CMSG_DATA(c), sizeof at);
            at_ns = (int64_t)at.tv_sec * NL_NS_PER_SECOND + at.tv_nsec;
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
            memcpy(&value, CMSG_DATA(c), sizeof value);
        }
    }
    if (ttl != NULL)
        *ttl = (unsigned)value;
    return at_ns != 0 ? at_ns : nl_time_now_ns();
}

/* Reads one packet. Returns false if there is no packet. */
static bool probes_read(path_probes *p)
{
    unsigned char bytes[STAMP_SIZE];
    _Alignas(struct cmsghdr) char control[256];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    stamp_reply reply;
    ssize_t got = recvmsg(p->fd, &message, 0);
    if (got < 0 && errno == EAGAIN)
        return false;
    pthread_mutex_lock(&p->lock);
    if (got < 0) {
        keep_problem(p);
    } else if (stamp_read_reply(bytes, (size_t)got, &reply)) {
        unsigned ttl;
        int64_t at_ns = path_received_ns(&message, &ttl);
        if (path_tally_reply(&p->tally, &reply, at_ns, ttl)) {
            p->heard_ns = nl_monotonic_ns();
            p->round_trip_ns = at_ns - reply.probe.sent_ns;
            p->problem[0] = '\0';
        }
    }
    pthread_mutex_unlock(&p->lock);
    return true;
}

bool path_probes_wait(path_probes *p, int fd, short events, int64_t deadline_ns)
{
    for (;;) {
        int64_t now_ns = nl_monotonic_ns();
        if (now_ns >= p->next_ns)
            probes_send(p, now_ns);
        if (now_ns >= deadline_ns)
            return false;
        int64_t left_ns = (p->next_ns < deadline_ns ? p->next_ns : deadline_ns) - now_ns;
        struct timespec left = nl_monotonic_timespec(left_ns > 0 ? left_ns : 0);
        struct pollfd polled[2] = {{.fd = p->fd, .events = POLLIN}, {.fd = fd, .events = events}};
        if (ppoll(polled, 2, &left, NULL) <= 0)
            continue;
        for (int i = 0; i < READ_MAX && polled[0].revents != 0 && probes_read(p); i++)
            continue;
        if (polled[1].revents != 0)
            return true;
    }
}

path_report path_probes_take(path_probes *p, char problem[PATH_PROBLEM_SIZE], int64_t *clock_error_ns)
{
    pthread_mutex_lock(&p->lock);
    path_tally_decide(&p->tally, nl_monotonic_ns());
    path_report report = path_tally_take(&p->tally);
    memcpy(problem, p->problem, PATH_PROBLEM_SIZE);
    *clock_error_ns = p->reported_error_ns;
    pthread_mutex_unlock(&p->lock);
    return report;
}
