/*
 * Sends probes to a reflector at a bounded rate, and reads the replies. The other measurements of a path (path_route.h,
 * path_transfer.h) wait with path_probes_wait, so that the probes continue during the wait.
 *
 * A session belongs to one thread. Only path_probes_take may be called by another thread.
 */
#ifndef NLAGENT_PATH_PROBES_H
#define NLAGENT_PATH_PROBES_H

#include "sensors/path_tally.h"

#include <pthread.h>
#include <sys/socket.h>

enum { PATH_PROBLEM_SIZE = 128 };

typedef struct path_probes {
    struct sockaddr_storage peer;
    socklen_t peer_size;
    int fd;
    int64_t period_ns; /* mean time between two probes */
    int64_t next_ns;   /* time of the next probe, on the monotonic clock */
    int64_t heard_ns;  /* time of the last reply, on the monotonic clock; INT64_MIN before the first reply */
    int64_t round_trip_ns;
    int64_t clock_error_ns, clock_checked_ns; /* error of this host's clock, and the time when it was read */
    uint64_t random;
    pthread_mutex_t lock; /* protects the following members */
    path_tally tally;
    char problem[PATH_PROBLEM_SIZE]; /* the last error of the socket since the last reply; "" if there was no error */
    int64_t reported_error_ns;       /* copy of clock_error_ns */
} path_probes;

/* Opens the socket. The caller has set `peer` and `peer_size`. period_ns is the mean time between two probes. Without
 * replies, the period is at least 1 s. Returns false and sets the error on failure. */
bool path_probes_open(path_probes *p, int64_t period_ns);

/*
 * Sends and reads probes until fd is ready for `events` (see poll(2)), or until the deadline on the monotonic clock. fd
 * may be -1. Returns whether fd is ready.
 */
bool path_probes_wait(path_probes *p, int fd, short events, int64_t deadline_ns);

/* Returns whether the peer has replied to a probe in the last 10 s. The sensor sends only a few small packets to a peer
 * that has not replied, because this peer may not permit measurements. */
bool path_probes_answered(const path_probes *p);

/* Sets the TTL of packets that the socket sends. Returns false and sets errno on failure. */
bool path_set_ttl(int fd, int family, int ttl);

/* Returns the results since the previous call, with the last problem ("" if there was no problem) and the error of this
 * host's clock. Thread-safe. */
path_report path_probes_take(path_probes *p, char problem[PATH_PROBLEM_SIZE], int64_t *clock_error_ns);

/* Returns the time in nanoseconds since 1970 at which the kernel received a message, or the current time if the message
 * does not contain this time. If `ttl` is not NULL, sets *ttl to the message's TTL, or to 0. */
int64_t path_received_ns(struct msghdr *message, unsigned *ttl);

#endif
