/*
 * Counts the probes of a path and their replies: losses in each direction, duplicates, reordering and delays. The
 * module has no clock and no socket, so the caller passes all times. Not thread-safe.
 *
 * A probe is lost if its reply has not arrived after PATH_LATE_NS, or when PATH_PENDING_MAX - 1 later probes were sent.
 * A stateful reflector (RFC 8762) numbers its replies. The numbers show the direction of a loss, because a lost reply
 * leaves a gap in these numbers, and a lost probe does not. A stateless reflector copies the numbers of the sender. The
 * numbers of a stateful reflector begin at 0, so the sender's first number is never 0, and the module can distinguish
 * the two.
 */
#ifndef NLAGENT_PATH_TALLY_H
#define NLAGENT_PATH_TALLY_H

#include "sensors/stamp.h"

#include <netlogger.h>

enum { PATH_PENDING_MAX = 1024 };

#define PATH_LATE_NS (2 * NL_NS_PER_SECOND)

/* Delays in nanoseconds. The values are undefined while count is 0. */
typedef struct path_delays {
    uint64_t count;
    double sum_ns;
    int64_t min_ns, max_ns;
} path_delays;

/* The results since the previous report. */
typedef struct path_report {
    uint64_t replies, lost; /* lost: all lost probes, including losses in an unknown direction */
    uint64_t lost_out, lost_back;
    uint64_t duplicates, reordered;
    /* `out` and `back` depend on two clocks. `round_trip` does not include the time in the reflector. */
    path_delays out, back, round_trip;
    int64_t peer_error_ns;      /* the error of the reflector's clock in its last reply */
    unsigned ttl_out, ttl_back; /* TTL with which the last probe and reply arrived; 0 if unknown */
    bool knows_direction;       /* lost_out and lost_back are known */
} path_report;

typedef enum path_fate { PATH_WAITING, PATH_REPLIED, PATH_LOST } path_fate;

typedef struct path_pending {
    stamp_probe probe;
    int64_t sent_mono_ns; /* time of sending on the monotonic clock */
    uint32_t reply_sequence;
    path_fate fate;
} path_pending;

typedef struct path_tally {
    path_pending pending[PATH_PENDING_MAX]; /* indexed by the sequence number modulo PATH_PENDING_MAX */
    uint16_t session;
    uint32_t first, next; /* sequence numbers of the first and of the next probe */
    uint32_t decided;     /* the first probe that the module has not yet counted as replied or lost */
    uint32_t highest;     /* highest number of a probe that has a reply */
    bool has_highest;
    uint32_t known_reply; /* number of the last counted reply */
    uint64_t gap;         /* number of lost probes after the last counted reply */
    path_report report;
} path_tally;

/* Begins a session. Both numbers should be random, so that the module is unlikely to accept forged replies. */
void path_tally_begin(path_tally *t, uint16_t session, uint32_t first_sequence);

/* Adds and returns a probe, which the caller sends immediately. monotonic_ns and sent_ns are the current time on the
 * monotonic clock and on the real-time clock. error_ns is the maximum error of the real-time clock. */
stamp_probe path_tally_send(path_tally *t, int64_t monotonic_ns, int64_t sent_ns, int64_t error_ns);

/*
 * Adds a reply that arrived at received_ns with this TTL (0: unknown). Returns false unless the reply belongs to a
 * probe of this session that does not count as lost. Counts a further reply to the same probe as a duplicate.
 */
bool path_tally_reply(path_tally *t, const stamp_reply *reply, int64_t received_ns, unsigned ttl);

/* Counts the probes whose arrival or loss is certain at the time monotonic_ns. */
void path_tally_decide(path_tally *t, int64_t monotonic_ns);

/* Returns the results since the previous call. */
path_report path_tally_take(path_tally *t);

#endif
