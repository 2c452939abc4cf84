/* Mechanisms that make visits wait. Each mechanism is a small model that predicts when visits can begin or end. The
 * module tests the model with all visits of a place or of a program. Not thread-safe. */
#ifndef NLDIAG_MECHANISMS_H
#define NLDIAG_MECHANISMS_H

#include "diag/sample.h"

/* When a server of a queue becomes free, and where the servers are. */
typedef enum queue_scope {
    QUEUE_SPAN,    /* at the end of the visit or, for an edge, of the next span */
    QUEUE_PROGRAM, /* when the program has ended all work of the request */
    QUEUE_FIRST,   /* for a span: at the start of its first call, or at the end of a span without calls */
    QUEUE_NEXT,    /* for a span: at the end of the caller's next span */
    QUEUE_CALLER,  /* when the caller has its answer; the servers belong to the caller's host */
    QUEUE_CALL     /* for a span that waits before one of its calls: when this call ends */
} queue_scope;

/* The result of a search for a mechanism. `waits` contains the wait of each visit, indexed by visit; the caller frees
 * the array with g_free. If the mechanism does not apply, `waits` is NULL. */
typedef struct mechanism {
    float *waits;
    double claim_ns;     /* claimed time on critical paths, in nanoseconds */
    double explained;    /* 0 to 1; see each function */
    double p;            /* probability of at least this effect by chance */
    const char *host;    /* the host with most of the effect, or NULL */
    const char *process; /* the process with most of the effect; NULL: not one of several on a host */
    int servers;         /* for a queue: the number of servers */
    int other_servers;   /* for a queue: 1 if a pool may be a lock, 2 or more if a lock may be a pool; otherwise 0 */
    bool is_completed;   /* for a batch: nearly each batch ends as soon as its last visit arrives */
    bool by_arrivals;    /* for a batch: an idle server begins when another visit arrives (idle_servers.c) */
    double other_gain;   /* quality of the prediction with other_servers, divided by the quality with `servers` */
    int64_t outside_ns;  /* for a queue: time that a visit takes before and after it occupies a server */
    double likelihood;   /* for a queue: log of the likelihood ratio to independent visits */
    double peak;         /* maximum number of visits in progress; for calls: visits per caller in the group */
    double period_ns;    /* period of a timer or of periodic pauses, or length of a timeout or delay; 0: not periodic */
    double rate, other_rate; /* for load: requests per second while visits are slow, and at other times; 0: unknown */
    uint32_t count;          /* number of pauses, of clusters, of visits that timed out, or of a queue's visits */
    int hosts;    /* for pauses on all hosts of a program at the same time: the number of these hosts; otherwise 0 */
    bool by_ends; /* for pauses: visits can begin in the pauses, but cannot end */
    double length_ns; /* mean length of a pause (ns); batch: mean number of visits; calls: usual visits per caller */
    double share;     /* share of visits that wait; queue: visits on `host` / mean visits per host */
    bool constant;    /* for a timer: every visit takes the same time */
    bool acknowledgement;   /* for a timer: the visits wait for TCP's delayed acknowledgements */
    bool is_sometimes;      /* for a timer: some visits take longer by a constant time, as for a timeout */
    bool is_retransmission; /* for a timeout: the time is that of TCP's first retransmission */
    bool is_joint;          /* for a pause: several programs stop at the same time */
    bool is_quota;          /* for a pause: the program stops until the end of each period, as with a CPU quota */
    bool is_from_host;      /* for an edge: `host` is the host where the visits begin */
    bool given_up;          /* for a timeout: the visits end at the timeout, and few take longer */
    bool is_retry;          /* for a timeout: the visits fail, and their callers try again */
    bool is_mixed; /* for a timeout on `host`: some visits there do not wait, so no wrong clock explains the waits */
    bool is_within_kinds; /* the function compared the visits with the usual times of their kinds */
    queue_scope scope;    /* for a queue */
    uint32_t call;        /* for QUEUE_CALL: the place of the call; otherwise 0 */
    bool by_process;      /* for a queue: each process has its own servers; otherwise, each host has its own */
    bool is_shared;       /* for a queue: all hosts of the place share the servers */
    bool is_host_fast;    /* for a queue: without their waits, the visits on `host` take no longer than the others */
} mechanism;

/*
 * Finds a queue with k servers: the service of a visit begins when fewer than k other visits are in service. Compares
 * the likelihood of the measured times under this model with their likelihood if the visits were independent. Computes
 * the likelihood of each half of the visits from the distribution of the other half. A visit may consist only of the
 * wait for a server, which then executes the request's next work (queue_scope).
 */
mechanism find_queue(const visits *v, uint32_t place);

/* Finds a queue in a part of a span without children (part_queues.c). */
mechanism find_queue_in_part(const visits *v, uint32_t place);

/* Returns whether most of the waiting visits to a place log an event inside their spans while they wait. Visits that
 * log an event work before they wait. `waits` has an element for each visit (part_queues.c). */
bool queue_is_in_part(const visits *v, uint32_t place, const float *waits);

/* Finds a queue at an edge to another program for servers that belong to the caller, such as a pool of connections. A
 * server is busy until the caller has its answer. */
mechanism queue_find_caller(const visits *v, uint32_t place);

/* Returns the place of the spans that begin on the same host when visits of an edge end, or VISIT_NONE. */
uint32_t next_span(const visits *v, uint32_t edge);

/*
 * Sets `saved` to the time that each visit of a place would save in the queue if each span were shorter by its element
 * of `cut`. If the place is an edge, the servers of `queue` execute the spans after the edge; if it is a span, the
 * visits wait in the span itself. Both arrays are indexed by visit and in nanoseconds. Returns the time saved on
 * critical paths.
 */
double queue_find_savings(const visits *v, uint32_t number, const mechanism *queue, const float *cut, float *saved);

/* Finds pauses, in which all visits of a program on a host stop. Returns the programs that pause most (elements are
 * pause_result). The caller frees the array. */
GArray *find_pauses(const visits *v);

typedef struct pause_result {
    mechanism m;
    int64_t first_ns, last_ns;
} pause_result;

/* Finds programs that stop until the end of each period of a CPU quota, and adds them to the results of find_pauses. */
void find_quotas(const visits *v, GArray *results);

/* Finds timers: visits end at multiples of a period, or all take the same time. */
mechanism find_timer(const sample *s);

/*
 * Finds messages between hosts that wait for an acknowledgement. Nagle's algorithm (RFC 896) holds back the second of
 * two small segments until the acknowledgement of the first arrives, and the receiver delays this acknowledgement. Also
 * finds messages that TCP sends again after 200 ms.
 */
mechanism find_acknowledgement(const sample *s);

/* Finds visits that end together although they began at different times. */
mechanism find_batch(const sample *s);

/* Finds waits for a server that is idle. Sets *is_batch if the server collects a batch; otherwise, the server polls its
 * queue at the end of each period (idle_servers.c). */
mechanism find_idle_servers(const sample *s, bool *is_batch);

/*
 * Finds visits that take longer than the other visits by a constant time, with at most a few durations in between. If
 * the constant time is that of TCP's delayed acknowledgements, sets `acknowledgement` and `is_sometimes`, because a
 * visit may contain messages that the log does not show.
 */
mechanism find_timeout(const sample *s);

/*
 * Finds attempts that callers give up after a fixed time: many visits take nearly the same, long time, and few visits
 * take a little less or more. Compares the number of visits in a narrow range with the numbers in the ranges of the
 * same relative width below and above. Requires that the visits in the range fail, or that the step after them differs
 * from the step after other visits.
 */
mechanism find_given_up(const sample *s);

/* Finds waits of nearly equal length before an event whose name means a timeout. */
mechanism find_named_timeout(const sample *s);

/*
 * Returns whether the visits that take from `from` to `to` nanoseconds end without a result: at least half of these
 * visits fail, or an unusual step, such as another attempt, follows at least half of these visits. In addition, the
 * number must be significant. The usual step follows after work with a fixed cost, and after timers that are part of
 * the work.
 */
bool visits_end_without_result(const sample *s, double from, double to);

/* Returns whether a delay in nanoseconds is that of TCP's delayed acknowledgements. */
bool delay_is_of_acknowledgement(double ns);

/* Sets the members that name a delay of some visits as TCP's delayed acknowledgement or first retransmission. */
void mechanism_name_delay(const sample *s, mechanism *m);

static inline double path_weight(const visit *x)
{
    return x->own_ns > 0 ? MIN(1.0, (double)x->path_ns / (double)x->own_ns) : 0;
}

#endif
