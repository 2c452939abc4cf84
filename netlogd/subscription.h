/*
 * Subscriptions: netlogd sends the records that it takes to the clients that asked for them.
 *
 * Taking a record only copies it into a backlog (backlog.h). Matching it with the expressions, and sending, is work in
 * the background (background.h), so that no expression, and no number of subscribers, delays clients that log. While
 * the backlog is full, that work is done at once, 2 ms at a time and for at most nine tenths of the time. Subscribers
 * whose expression costs more than a microsecond per record on average are then disconnected, with a message; the
 * others miss the oldest records of the backlog, and are told so. A subscriber whose expression costs too much for a
 * single record (NL_FILTER_STEPS_MAX) is disconnected at once.
 *
 * Subscribers with the same expression, start time and format form a group: a record is matched once for the group, a
 * line of text is made once for all groups of a format, and all members share the bytes. Each member has a queue of
 * limited size. It misses the records that do not fit, and is told so in their place when the queue is half empty.
 *
 * A subscriber that asks for stored records too gets them from the output's files (past.h), in the background, as fast
 * as it reads. It joins its group when all records taken so far are in the file and were read from there, so that no
 * record is missing or repeated between the two.
 *
 * The module owns all subscriptions, groups and the backlog. The server's thread only.
 */
#ifndef NETLOGD_SUBSCRIPTION_H
#define NETLOGD_SUBSCRIPTION_H

#include "request.h"

typedef struct subscription_counts {
    uint64_t subscribers; /* now */
    uint64_t records;     /* put into queues, counted once for each subscriber */
    uint64_t missed;      /* records that did not fit into queues, likewise */
    uint64_t costly;      /* subscribers disconnected because their expressions cost too much */
    uint64_t queued;      /* bytes, now */
} subscription_counts;

void subscriptions_start(void);

/* Called after all requests were closed. */
void subscriptions_free(void);

/* Whether there are subscribers, so that subscriptions_put must get every record. */
bool subscriptions_want_records(void);

/* Puts a record that was put into the outputs. */
void subscriptions_put(const nl_record *record);

/*
 * Notes that the outputs have changed; what was put before is written. Subscribers that read stored records from an
 * output that is gone, or that no longer has all records, read what it has. Records that come before they have
 * finished, they miss.
 */
void subscriptions_outputs_changed(void);

/* Matches the backlog until a time (nl_monotonic_ns), and sends what the kernel accepts. */
void subscriptions_deliver(int64_t until_ns);

subscription_counts subscriptions_count(void);

/* The verb: answers r with a stream. Returns NL_FAILED after setting the error. */
nl_status subscription_start(request *r, const nl_record *asked);

/* Called by request.c after a part of the queue was sent, and when the request is closed. */
void subscription_drained(subscription *s);
void subscription_free(subscription *s);

/* Adds the state of a subscription to a record of an answer. */
void subscription_describe(const subscription *s, nl_record *record);

#endif
