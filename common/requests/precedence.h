/*
 * Which events of one program cause events of another, learned from many requests.
 *
 * A cause precedes its effect in every request. So an event that precedes another one in nearly all requests may be its
 * cause (The Mystery Machine, OSDI 2014). Events that one program on one host logs in a request have one role, such as
 * client or server: roles also tell programs of one name apart. Of two roles, the one that calls the other begins
 * before it and ends after it. A role has one caller: among several candidates, the one whose latest event comes
 * closest before the role's first. Only roles that call each other have edges, because events of two programs that run
 * side by side may have a constant order without a cause.
 *
 * Memory is bounded: PRECEDENCE_EVENTS_MAX event names and PRECEDENCE_ROLES_MAX roles; others have no edges. One thread
 * at a time.
 */
#ifndef NETLOGGER_REQUESTS_PRECEDENCE_H
#define NETLOGGER_REQUESTS_PRECEDENCE_H

#include "requests/request_graph.h"

enum { PRECEDENCE_EVENTS_MAX = 256, PRECEDENCE_ROLES_MAX = 64 };

typedef struct precedence precedence;

precedence *precedence_new(void);
void precedence_free(precedence *p); /* NULL is allowed */

/* Learns from the events of one request, in order of time. Very large requests are not learned from. */
void precedence_learn(precedence *p, const request_event *events, size_t count);

/* Chooses the callers of roles from what was learned. Call it before precedence_holds. */
void precedence_settle(precedence *p);

/*
 * Returns how certain it is that an event like cause comes before one like effect, from 0 to 1: the share of requests
 * in which it did. 0 if the two have one role, or roles of which none calls the other.
 */
double precedence_holds(const precedence *p, const request_event *cause, const request_event *effect);

#endif
