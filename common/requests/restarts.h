/*
 * Learns whether a request begins again when its first event occurs again with the same ID.
 *
 * The ID may name something that handles one request after another, such as a stream. Or the first event is a step that
 * one request repeats, such as a call that is tried again. A round is a first event and all events of the same ID
 * before the next first event. A round has ended if its last event is one with which IDs of its kind end for good. It
 * was a request of its own if it has ended and if, besides, the next round begins long after it (later than a round
 * usually lasts), or IDs have many rounds. Where nearly all rounds were requests, those that lost their last event are
 * requests too.
 *
 * Memory is bounded: RESTARTS_KINDS_MAX kinds of first events; for others, nothing is known. One thread at a time.
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
 * such a first event. `last` is the event before it.
 */
bool restarts_splits(const restarts *r, const request_event *first, const request_event *last,
                     const request_event *event, bool unknown);

#endif
