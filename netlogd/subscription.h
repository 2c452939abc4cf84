/*
 * Subscriptions: netlogd sends the records that it receives to the clients that subscribe.
 *
 * netlogd only copies a record into a backlog (backlog.h). It matches records with the expressions, and sends them, in
 * the background (background.h), so that no expression, and no number of subscribers, delays clients that log. While
 * the backlog is full, it does this work immediately, 2 ms at a time and for at most nine tenths of the time.
 * Subscribers whose expression costs more than a microsecond per record on average are then disconnected, with a
 * message; the others miss the oldest records of the backlog, and netlogd reports the loss to them. A subscriber whose
 * expression costs too much for a single record (NL_FILTER_STEPS_MAX) is disconnected at once.
 *
 * Subscribers with the same expression, start time and format form a group: netlogd matches a record once for the
 * group, makes a line of text once for all groups of a format, and shares the bytes between all members. Each member
 * has a queue of limited size. It misses the records that do not fit; a report takes their place when the queue is half
 * empty.
 *
 * A subscriber that also requests stored records gets them from the output's files (past.h), in the background, as fast
 * as it reads. It joins its group when all records received so far are in the file and were read from there, so that no
 * record is missing or repeated at the transition.
 *
 * The module owns all subscriptions, groups and the backlog. The server's thread only.
 */
#ifndef NETLOGD_SUBSCRIPTION_H
#define NETLOGD_SUBSCRIPTION_H

#include "request.h"

typedef struct subscription_counts {
    uint64_t subscribers; /* now */
    uint64_t records;     /* put into queues, counted once for each subscriber */
    uint64_t missed;      /* records that did not fit into queues, counted once for each subscriber */
    uint64_t costly;      /* subscribers disconnected because their expressions cost too much */
    uint64_t queued;      /* bytes, now */
} subscription_counts;

void subscriptions_start(void);

/* Call it after all requests were closed. */
void subscriptions_free(void);

/* Returns whether any client subscribes, so that subscriptions_put must get every record. */
bool subscriptions_want_records(void);

/* Puts a record that was put into the outputs. */
void subscriptions_put(const nl_record *record);

/*
 * Notes that the outputs have changed; all earlier records are written. Subscribers that read stored records from an
 * output that was removed, or that no longer has all records, read the records that it has, and miss the records that
 * arrive before they have finished.
 */
void subscriptions_outputs_changed(void);

/* Matches the backlog until a time (nl_monotonic_ns), and sends as much as the kernel accepts. */
void subscriptions_deliver(int64_t until_ns);

subscription_counts subscriptions_count(void);

/* The verb: replies to r with a stream. Returns NL_FAILED after setting the error. */
nl_status subscription_start(request *r, const nl_record *asked);

/* Called by request.c after a part of the queue was sent, and when the request is closed. */
void subscription_drained(subscription *s);
void subscription_free(subscription *s);

/* Adds the state of a subscription to a record of a reply. */
void subscription_describe(const subscription *s, nl_record *record);

#endif
