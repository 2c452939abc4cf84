/*
 * Learns from many requests which events of one program cause events of another program.
 *
 * A cause precedes its effect in every request. Therefore, an event that precedes another event in nearly all requests
 * may be its cause (The Mystery Machine, OSDI 2014). The events that one program on one host logs in a request have one
 * role, such as client or server; two programs with the same name may have different roles. If a role calls another
 * role, the caller begins before the called role and ends after it. A role has one caller. Among several candidates,
 * the caller is the role whose latest event is closest to the first event of the called role. Only a caller and its
 * called role have edges, because events of two concurrent programs may have a constant order without a cause. Two
 * roles of one caller are an exception: the second role waits for the first role if the first role always ends before
 * the second begins, and the time between them varies less than the time since the caller's last event. If a request
 * leaves out the first role, the second role waits for the role before the first role, or for the role that the request
 * visits instead of the first role. If a request visits one role on several hosts, always one after another, each visit
 * waits for the previous visit. Spans of two names run side by side if, in one thread, spans of these names often
 * overlap without containing each other. Spans of two such names are never part of each other, even if one span
 * contains the other by chance.
 *
 * If one record describes a span and names no parent, whole_spans.h finds its parent. Processes of one program with
 * names of their own, such as worker-1 and worker-2, count as one program (program_families.h).
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
 * `names` determines which events begin and end spans, and must outlive the result. If `names` is NULL, only events
 * with the role REQUEST_BEGIN or REQUEST_END begin or end spans.
 */
precedence *precedence_new(const event_names *names);
void precedence_free(precedence *p); /* NULL is allowed */

/*
 * Learns which programs are processes of one program (program_families.h). The other functions then treat their events
 * alike. Pass all requests to this function before the first call of the other functions. Without these calls, all
 * programs are separate.
 */
void precedence_learn_programs(precedence *p, const request_event *events, size_t count);

/*
 * Find requests with lost records. The module would learn a wrong order from such requests. First, pass all requests to
 * precedence_learn_kinds, which learns which events occur together. Then call precedence_settle_kinds, which returns
 * whether records were lost. Finally, pass only the requests that lack no event (precedence_count_missing) to
 * precedence_learn. Without these calls, no records count as lost.
 */
void precedence_learn_kinds(precedence *p, const request_event *events, size_t count);
bool precedence_settle_kinds(precedence *p);

/* Learns from the events of one request, in order of time. Ignores requests with more than 4096 events. */
void precedence_learn(precedence *p, const request_event *events, size_t count);

/*
 * Chooses the callers of roles and computes the certainties, after learning. Call it before precedence_holds. Returns
 * whether any role calls another role.
 */
bool precedence_settle(precedence *p);

/*
 * Learn which events a caller logs for each reply. A caller may call several roles at the same time, and log the same
 * event after each reply. No order of names then shows which role replied. The event's first occurrence in a request
 * belongs to the called visit that ends first, the second occurrence to the next visit, and so on. This order must hold
 * in nearly all requests. If a place has several visits, the caller may also log only one event after the last of them.
 * After precedence_settle, pass all requests to precedence_learn_replies. Then call
 * precedence_settle_replies. Without these calls, no event belongs to one reply.
 */
void precedence_learn_replies(precedence *p, const request_event *events, size_t count);
void precedence_settle_replies(precedence *p);

/*
 * Finds the replies of a request, whose events are in order of time. Sets causes[i] to the index of the event that ends
 * the called visit to which event i belongs, or to REQUEST_NONE. Returns false if the request has no such events; it
 * may then leave `causes` unset. precedence_replies returns the certainty for such an event, from 0 to 1.
 */
bool precedence_find_replies(const precedence *p, const request_event *events, size_t count, uint32_t *causes);
double precedence_replies(const precedence *p, const request_event *effect);

/*
 * Returns the number of kinds of events that a request lacks, probably because their records were lost. Some kinds of
 * events usually occur together. A kind counts as missing if it usually occurs together with a kind that the request
 * has, and the request has no event of it. If the two kinds usually occur equally often, a kind also counts as missing
 * if the request has fewer events of it than of the other kind. The module distinguishes lost records from optional
 * events as follows. If records are lost at random, each of two such events is missing about equally often. An optional
 * event is often missing, but the other event is never missing when the optional event occurs.
 */
uint32_t precedence_count_missing(const precedence *p, const request_event *events, size_t count);

/*
 * Returns the certainty, from 0 to 1, that events like `cause` cause events like `effect`. The certainty is the share
 * of requests in which the cause precedes the effect. If both events have the same role, they must be from different
 * hosts. In this case, the result is the certainty that visits of the role wait for each other.
 */
double precedence_holds(const precedence *p, const request_event *cause, const request_event *effect);

/*
 * Returns the certainty that `cause` causes `effect` if no later event of the request causes `effect` by
 * precedence_holds. For example, a caller usually calls three roles in turn, and sometimes leaves out the second or
 * calls another role instead.
 */
double precedence_holds_without_others(const precedence *p, const request_event *cause, const request_event *effect);

/*
 * Returns whether a span may be part of another span of its thread. `outer` and `inner` are the first events of the
 * spans. Returns true if `p` is NULL.
 */
bool precedence_nests(const precedence *p, const request_event *outer, const request_event *inner);

/* Returns the families of programs, or NULL if `p` is NULL. */
const struct program_families *precedence_families(const precedence *p);

/*
 * Returns the relations of spans that one record describes and that no record names as parent (whole_spans.h), or NULL
 * if `p` is NULL.
 */
const struct whole_spans *precedence_whole_spans(const precedence *p);

#endif
