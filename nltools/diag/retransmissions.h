/*
 * Finds visits that wait for a retransmission of TCP. The sender of a small message learns of its loss only
 * when its retransmission timer expires, after at least 200 ms (TCP_RTO_MIN of Linux). Caller: limits.c. No state.
 */
#ifndef NLDIAG_RETRANSMISSIONS_H
#define NLDIAG_RETRANSMISSIONS_H

#include "diag/findings.h"
#include "diag/senders.h"

/* The retransmissions on the connections of a finding's visits. */
typedef struct retransmissions {
    uint32_t late;    /* number of visits to which the finding adds a timeout */
    double count;     /* number of segments that TCP sent again from these visits' senders to their receivers */
    bool are_cause;   /* the retransmissions are sufficient to explain most of these visits */
    GHashTable *from; /* a set: names of the hosts that sent these segments */
} retransmissions;

/*
 * Counts the retransmissions of the connections on which the visits of a finding waited for a timeout. The caller
 * destroys `from`.
 */
retransmissions retransmissions_count(const visits *v, const finding *x);

/*
 * Returns whether a finding's time coincides with the retransmissions of the hosts that send the data. At least half of
 * the time must be in visits during which the sender retransmits. In addition, the same retransmissions at other times
 * would almost never contain as much of the time. Also returns true if the records do not permit a decision: no sender
 * has a record of its retransmissions, or the senders retransmit in at least half of their intervals. `senders` is the
 * result of senders_find.
 */
bool retransmissions_go_with(const visits *v, const sender *senders, const finding *x);

#endif
