/*
 * The order of events on different hosts, as evidence of a wrong clock. Requests of one kind have the same order of
 * events on all hosts of a program. If two events have the opposite order in nearly all requests of one host, the clock
 * of this host is wrong. This evidence requires a program that runs on several hosts, but no explicit parents. The
 * evidence also requires messages in both directions: some events on other hosts come before an event of this host, and
 * some come after another event of this host. With messages in one direction, a long path or a late reply would look
 * like a wrong clock. Not thread-safe.
 *
 * The module learns from the first requests of a log, because it only needs a few requests of each host.
 */
#ifndef NLDIAG_HOST_ORDERS_H
#define NLDIAG_HOST_ORDERS_H

#include "requests/request_graph.h"
#include "requests/request_reader.h"

typedef struct host_orders host_orders;

/* A host whose events have another order than the events of the other hosts. */
typedef struct host_order {
    const char *host;            /* interned */
    double ahead_ns, error_ns;   /* ahead_ns: the time by which the clock is ahead; error_ns: its standard error */
    uint32_t reversed, requests; /* reversed: number of this host's requests with the opposite order; requests: number
                                    of all its requests */
    const char *program;         /* interned: the program of the other events */
    const char *rival;           /* interned: a host whose clock may be wrong instead; NULL if there is no such host */
} host_order;

host_orders *host_orders_new(void);
void host_orders_free(host_orders *o);

/* Learns from the logged times of a request's events. `lifeline` is the number of the kind of request. `names` maps the
 * events' numbers to names, programs and hosts. */
void host_orders_learn(host_orders *o, uint32_t lifeline, const request_graph *g, const request_reader *names);

/* Returns the hosts with another order, at most one element for each host. The caller frees the array of host_order. */
GArray *host_orders_find(const host_orders *o);

#endif
