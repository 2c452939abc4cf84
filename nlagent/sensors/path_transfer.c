#include "config.h"

#include "sensors/path_transfer.h"

#include "base/monotonic.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_SIZE = 64 << 10 };

#define CONNECT_NS (5 * NL_NS_PER_SECOND)
#define POLL_NS (NL_NS_PER_SECOND / 1000)

static bool fail_transfer(path_transfer *t, const char *what)
{
    snprintf(t->problem, sizeof t->problem, "%s: %s", what, strerror(errno));
    return false;
}

/* Connects to the peer. On failure, sets t->problem and returns false. */
static bool transfer_connect(path_probes *p, int fd, path_transfer *t)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, (struct sockaddr *)&p->peer, p->peer_size) == 0)
        return true;
    if (errno != EINPROGRESS)
        return fail_transfer(t, "connect");
    if (!path_probes_wait(p, fd, POLLOUT, nl_monotonic_ns() + CONNECT_NS))
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    errno = error;
    return error == 0 || fail_transfer(t, "connect");
}

/* Reads the connection's counters. Returns whether the peer has acknowledged all `bytes`. */
static bool is_acknowledged(int fd, uint64_t bytes, path_transfer *t)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    t->bytes = info.tcpi_bytes_acked > bytes ? bytes : info.tcpi_bytes_acked; /* the kernel also counts the SYN */
    t->retransmitted = info.tcpi_total_retrans;
    return info.tcpi_bytes_acked >= bytes;
}

static bool transfer_send(path_probes *p, int fd, uint64_t bytes_max, int64_t duration_ns, path_transfer *t)
{
    static const unsigned char zeros[WRITE_SIZE];
    int64_t begin_ns = nl_monotonic_ns(), end_ns = begin_ns + duration_ns;
    uint64_t sent = 0;
    bool good = true;
    while (good && sent < bytes_max && nl_monotonic_ns() < end_ns) {
        size_t size = bytes_max - sent < WRITE_SIZE ? (size_t)(bytes_max - sent) : WRITE_SIZE;
        ssize_t written = send(fd, zeros, size, MSG_NOSIGNAL);
        if (written > 0)
            sent += (uint64_t)written;
        else if (errno == EAGAIN)
            path_probes_wait(p, fd, POLLOUT, end_ns);
        else
            good = fail_transfer(t, "the peer ended the transfer");
        path_probes_wait(p, -1, 0, 0); /* sends the probes that are due */
    }
    while (good && !is_acknowledged(fd, sent, t) && nl_monotonic_ns() < end_ns)
        path_probes_wait(p, -1, 0, nl_monotonic_ns() + POLL_NS);
    t->duration_ns = nl_monotonic_ns() - begin_ns;
    return good;
}

path_transfer path_transfer_measure(path_probes *p, uint64_t bytes_max, int64_t duration_ns)
{
    path_transfer t = {0};
    int fd = socket(p->peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail_transfer(&t, "socket");
        return t;
    }
    if (transfer_connect(p, fd, &t))
        transfer_send(p, fd, bytes_max, duration_ns, &t);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger)); /* drop unsent data */
    close(fd);
    return t;
}
