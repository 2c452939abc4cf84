/*
 * Finds the hosts that send the data for which visits wait. The edges between hosts on the critical paths show these
 * hosts. Callers: limits.c and connection_joins.c. No state.
 */
#ifndef NLDIAG_SENDERS_H
#define NLDIAG_SENDERS_H

#include "diag/visits.h"

/*
 * The host that sends the data for which a visit waits, and the host that receives it (`to`); NULL: none. `sends` is
 * true if the visit's own host sends the data during the visit.
 */
typedef struct sender {
    const char *host, *to;
    bool sends;
} sender;

/* Returns whether a visit is an edge between two hosts. */
bool visit_crosses(const visits *v, const visit *x);

/* Returns the senders of all visits, with the indices of visits. The caller frees the array with g_free. */
sender *senders_find(const visits *v);

#endif
