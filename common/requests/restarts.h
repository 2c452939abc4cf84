/*
 * Learns whether a request begins again when its first event occurs again with the same ID.
 *
 * There are two reasons for such a repetition. The ID may name an object that handles one request after another, such
 * as a stream. Or the first event may be a step that one request repeats, such as a call that is retried. A round is a
 * first event and all events of the same ID before the next first event. A round has ended if its last event is an
 * event with which IDs of its kind usually end. A round that has ended was a separate request in two cases: the next
 * round begins much later (after a longer time than rounds usually last), or IDs of its kind have many rounds. If
 * nearly all rounds were requests, rounds without their last event also count as requests.
 *
 * Memory is bounded: RESTARTS_KINDS_MAX kinds of first events; nothing is known about further kinds. Only one thread at
 * a time may use the object.
 */
#ifndef NETLOGGER_REQUESTS_RESTARTS_H
#define NETLOGGER_REQUESTS_RESTARTS_H

#include "requests/request_graph.h"

enum { RESTARTS_KINDS_MAX = 64 };

typedef struct restarts restarts;

restarts *restarts_new(void);
void restarts_free(restarts *r); /* NULL is allowed */

/* Learns from the events of one ID, in time order. `over` means that no further events of this ID are expected. */
void restarts_learn(restarts *r, const request_event *events, size_t count, bool over);

/* Ends the learning. Call it before restarts_splits. */
void restarts_settle(restarts *r);

/*
 * Returns whether an event may begin a new round, because it is of the same kind as the first event, and the event
 * before it is of another kind.
 */
bool restarts_repeats(const request_event *first, const request_event *last, const request_event *event);

/*
 * Returns whether an event that begins a round begins a new request. Returns `unknown` if nothing was learned about
 * such a first event. `last` is the event before `event`.
 */
bool restarts_splits(const restarts *r, const request_event *first, const request_event *last,
                     const request_event *event, bool unknown);

#endif
