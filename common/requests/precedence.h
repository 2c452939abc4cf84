/*
 * Learns from many requests which events of one program cause events of another.
 *
 * A cause precedes its effect in every request. An event that precedes another one in nearly all requests may therefore
 * be its cause (The Mystery Machine, OSDI 2014). Events that one program on one host logs in a request have one role,
 * such as client or server: roles also distinguish programs of one name. If a role calls another role, the caller
 * begins before the called role and ends after it. A role has one caller. Among several candidates, the caller is the
 * role whose latest event comes closest before the first event of the called role. Only roles that call each other have
 * edges, because events of two concurrent programs may have a constant order without a cause. There is one exception,
 * for two roles of one caller. If the first role always ends before the second role begins, and the time between them
 * varies less than the time since the caller's last event, then the second role waits for the first. If a request
 * visits one role on several hosts, always one after another, each visit waits for the visit before it. If spans of two
 * names often overlap in one thread so that neither contains the other, the spans run side by side. In that case, no
 * span of one name is part of a span of the other name, even if it lies within that span by chance.
 *
 * Memory is bounded: PRECEDENCE_EVENTS_MAX event names and PRECEDENCE_ROLES_MAX roles; further names and roles have no
 * edges. Only one thread at a time may use a precedence.
 */
#ifndef NETLOGGER_REQUESTS_PRECEDENCE_H
#define NETLOGGER_REQUESTS_PRECEDENCE_H

#include "requests/request_graph.h"

enum { PRECEDENCE_EVENTS_MAX = 256, PRECEDENCE_ROLES_MAX = 64 };

typedef struct precedence precedence;

/*
 * `names` must outlive the result; it determines which events begin and end spans. If it is NULL, only events whose
 * role is REQUEST_BEGIN or REQUEST_END do.
 */
precedence *precedence_new(const event_names *names);
void precedence_free(precedence *p); /* NULL is allowed */

/*
 * Learn which events occur together in requests, because requests with lost records would teach a wrong order of
 * events. First, pass all requests to precedence_learn_kinds. Then call precedence_settle_kinds, which returns whether
 * records were lost. Finally, pass only the requests that lack no event (precedence_count_missing) to precedence_learn.
 * Without these calls, no records count as lost.
 */
void precedence_learn_kinds(precedence *p, const request_event *events, size_t count);
bool precedence_settle_kinds(precedence *p);

/* Learns from the events of one request, in order of time. Ignores very large requests. */
void precedence_learn(precedence *p, const request_event *events, size_t count);

/* Chooses the callers of roles after learning. Call it before precedence_holds. */
void precedence_settle(precedence *p);

/*
 * Returns the number of events that a request lacks because their records are probably lost. Such an event usually
 * occurs together with an event that the request has, either once or as often as that event. The module distinguishes
 * lost records from optional events as follows. If records are lost at random, each of two such events is missing about
 * equally often. If one of them is optional, it is often missing, but the other event is never missing when it occurs.
 */
uint32_t precedence_count_missing(const precedence *p, const request_event *events, size_t count);

/*
 * Returns the certainty, from 0 to 1, that an event like `cause` precedes an event like `effect`: the share of requests
 * in which it preceded that event. Returns 0 if neither role calls or awaits the other. If both events have one role,
 * they are from different hosts; the result is then how certain it is that visits of this role wait for each other.
 */
double precedence_holds(const precedence *p, const request_event *cause, const request_event *effect);

/*
 * Returns whether a span may be part of another span of its thread. `outer` and `inner` are the first events of the
 * spans. Returns true if `p` is NULL.
 */
bool precedence_nests(const precedence *p, const request_event *outer, const request_event *inner);

#endif
