/*
 * Mechanisms that make visits wait, each a small model of when a visit can begin or end. They are judged on all visits
 * of a place, or of a program. One thread at a time.
 */
#ifndef NLDIAG_MECHANISMS_H
#define NLDIAG_MECHANISMS_H

#include "diag/sample.h"

/* The wait of each visit, by its index, for g_free; NULL: the mechanism does not apply. */
typedef struct mechanism {
    float *waits;
    double claim_ns;  /* of critical paths */
    double explained; /* 0 to 1, see each function */
    double p;         /* the probability of at least this by chance */
    const char *host; /* the one host that has most of it, or NULL */
    int servers;      /* queue */
    double busy;      /* queue: share of time in which all servers are busy */
    double peak;      /* queue: the most visits at a time */
    double period_ns; /* timer, time-out, periodic pauses; 0: not periodic */
    uint32_t count;   /* pauses, clusters, visits that timed out */
    double length_ns; /* of a pause; between the visits that end together */
    double share;     /* of visits that wait; queue: of the place's visits on host */
    bool constant;    /* timer: every visit takes the same time */
} mechanism;

/*
 * k servers: a visit begins to be served when fewer than k others are. Compared with independent times by the
 * likelihood of the times that remain, each half of the visits judged by the other half's distribution.
 */
mechanism find_queue(const visits *v, uint32_t place);

/* All visits of a program on a host stop for some time. Returns pause_result: the programs and hosts that pause most.
 */
GArray *find_pauses(const visits *v);

typedef struct pause_result {
    const char *program, *host;
    mechanism m;
    int64_t first_ns, last_ns;
} pause_result;

/* Visits end at multiples of a period, or all take the same time. */
mechanism find_timer(const sample *s);

/* Visits end together that began at different times. */
mechanism find_batch(const sample *s);

/* Some visits take a constant time longer than the others, and none are between. */
mechanism find_timeout(const sample *s);

static inline double path_weight(const visit *x)
{
    return x->own_ns > 0 ? MIN(1.0, (double)x->path_ns / (double)x->own_ns) : 0;
}

#endif
