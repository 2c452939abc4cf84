/* Finds the hosts that send the data for which visits wait. The module uses the edges between hosts. Callers: limits.c
 * and connection_joins.c. No state. */
#ifndef NLDIAG_SENDERS_H
#define NLDIAG_SENDERS_H

#include "diag/visits.h"

/* The host that sends the data for which a visit waits (`host`), and the host that receives the data (`to`). NULL: the
 * visit waits for no other host. `sends` is true if the visit's own host sends the data during the visit. */
typedef struct sender {
    const char *host, *to;
    bool sends;
} sender;

/* Returns whether a visit is an edge between two hosts. */
bool visit_crosses(const visits *v, const visit *x);

/* Returns the senders of all visits, indexed by visit. The caller frees the array with g_free. */
sender *senders_find(const visits *v);

#endif
