/* A limit of hosts or connections that can explain findings. Callers: limits.c, which implements it, and
 * connection_limits.c. No state. */
#ifndef NLDIAG_LIMIT_H
#define NLDIAG_LIMIT_H

#include "diag/findings.h"
#include "diag/senders.h"

/* Where a limit has an effect: within its host, on the way to the host, or on the way from the host. */
typedef enum scope { FELT_WITHIN = 1, FELT_TO = 2, FELT_FROM = 4 } scope;

/* A limit, with the results of all hosts that have it. */
typedef struct limit {
    const char *cause, *what, *advice;
    int felt;    /* scopes in which the limit explains findings */
    int alone;   /* scopes in which the limit may be a finding */
    double part; /* 0 to 1: part of the time in which the limit has an effect */
    double sure; /* 0 to 1: certainty of the limit's finding */
    double busy; /* 0 to 1: share of the time in which TCP has data to send; in a visit that sends data, the limit has
                    an effect in this share */
    GHashTable *hosts;   /* a set: names of the hosts, interned */
    GPtrArray *evidence; /* char *: evidence from the first host */
    const sender *senders;
    /* For each visit, the part of its time in which the limit has an effect. NAN: unknown. NULL: `hosts` determines the
     * part. */
    const float *parts;
    /* For each place, whether the limit has no effect: the visits on hosts with the limit take no longer than the
     * visits on other measured hosts. NULL: unknown. */
    const bool *refuted;
    const bool *weak; /* with `parts`: for each visit, whether it counts only if the limit has an effect in a large part
                         of all time */
    double alone_min; /* with `parts`: minimum share of all time that makes the limit a finding */
    bool of_queues;   /* requests wait in a queue for the limited resource. The limit therefore explains only the causes
                         "load", "lock" and "pool", and needs only the share alone_min of their time */
} limit;

/*
 * Makes a limit the cause of the findings that it explains. Returns whether the limit has an effect in more than half
 * of all time. In this case, the limit also claims the time that no finding claims. For a limit of connections (with
 * `parts`), the share alone_min of all time is sufficient.
 */
bool limit_find(findings *f, const limit *l);

/* Makes a limit the cause of a finding. The former cause becomes a rival. */
void limit_name_finding(const findings *f, finding *x, const limit *l);

#endif
