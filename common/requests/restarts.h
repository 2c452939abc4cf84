/*
 * Learns whether a request begins again when its first event occurs again with the same ID.
 *
 * A first event has two possible reasons to occur again. The ID may name an object that handles several requests in
 * turn, such as a stream. Alternatively, the first event may be a step that one request repeats, such as a call that
 * the program tries again. A round is a first event and all events of the same ID before the next first event. A round
 * counts as ended if its last event is an event with which IDs of this kind usually end. An ended round was a separate
 * request in two cases. Either the pause before the next round is longer than rounds usually last, or IDs of this kind
 * usually have many rounds. If nearly all rounds were requests, rounds that have not ended also count as requests. The
 * kind of an ID is the kind of its first event.
 *
 * Memory is bounded: the module learns only about the first RESTARTS_KINDS_MAX kinds of first events. Only one thread
 * at a time may use the object.
 */
#ifndef NETLOGGER_REQUESTS_RESTARTS_H
#define NETLOGGER_REQUESTS_RESTARTS_H

#include "requests/request_graph.h"

enum { RESTARTS_KINDS_MAX = 64 };

typedef struct restarts restarts;

restarts *restarts_new(void);
void restarts_free(restarts *r); /* NULL is allowed */

/* Learns from the events of one ID, in time order. `over` is true if no further events of this ID are expected. */
void restarts_learn(restarts *r, const request_event *events, size_t count, bool over);

/* Ends the learning. Call it before restarts_splits. */
void restarts_settle(restarts *r);

/*
 * Returns whether an event may begin a new round. The event must be of the same kind as the first event. The event
 * before it (`last`) must be of another kind, and must not be later.
 */
bool restarts_repeats(const request_event *first, const request_event *last, const request_event *event);

/*
 * Returns whether an event that begins a round also begins a new request. `last` is the event before `event`. Returns
 * `unknown` if nothing was learned about this kind of first event.
 */
bool restarts_splits(const restarts *r, const request_event *first, const request_event *last,
                     const request_event *event, bool unknown);

#endif
