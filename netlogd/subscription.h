/*
 * Subscriptions: netlogd sends the records that it receives to clients that subscribe.
 *
 * While receiving, netlogd only copies a record into a backlog (backlog.h). It evaluates expressions and sends records
 * in the background (background.h), so that no expression, and no number of subscribers, delays clients that log. While
 * the backlog is full, netlogd does this work at once, 2 ms at a time and for at most 90 % of the time. If that is not
 * sufficient, netlogd disconnects the subscribers whose expressions take more than 1,000 steps (about a microsecond)
 * per record on average, and sends them the reason. The other subscribers miss the oldest records of the backlog, and
 * netlogd reports the loss to them. netlogd immediately disconnects a subscriber whose expression takes too many steps
 * for a single record (NL_FILTER_STEPS_MAX).
 *
 * Subscribers with the same expression, start time and format form a group. netlogd evaluates a record once for the
 * group. It builds a line of text once for all groups of a format, and shares the bytes among all members. Each
 * subscriber of a group has a queue of limited size, and misses the records that do not fit. When the queue is half
 * empty, netlogd adds a report about the missed records.
 *
 * If a subscriber also requests stored records, netlogd reads them from the output's files (past.h) in the background,
 * as fast as the subscriber reads. The subscriber joins its group when netlogd has read from the file all records that
 * netlogd has received so far. Therefore, no record is missing or repeated at the transition.
 *
 * The module owns all subscriptions, groups and the backlog. Only the server's thread may call it.
 */
#ifndef NETLOGD_SUBSCRIPTION_H
#define NETLOGD_SUBSCRIPTION_H

#include "output/output.h"
#include "request.h"

typedef struct subscription_counts {
    uint64_t subscribers; /* number of current subscribers */
    uint64_t records;     /* number of records put into queues, counted once for each subscriber */
    uint64_t missed;      /* number of records that subscribers missed, counted once for each subscriber */
    uint64_t costly;      /* number of subscribers that were disconnected because their expressions cost too much */
    uint64_t queued;      /* number of bytes in queues at present */
} subscription_counts;

void subscriptions_start(void);

/* Frees the module's state. Call it after all requests have been closed. */
void subscriptions_free(void);

/* Returns whether any client subscribes. If so, subscriptions_put must receive every record. */
bool subscriptions_want_records(void);

/* Adds a record that was put into the outputs. */
void subscriptions_put(const nl_record *record);

/*
 * Call it after the outputs have changed; all earlier records must be written. Some subscribers may be reading stored
 * records from an output that was removed, or that no longer has all records. These subscribers read the records that
 * the output has, and miss the records that arrive before they have read all of them.
 */
void subscriptions_outputs_changed(void);

/* Returns the number of the first numbered file of an output that a subscriber still has to read, or UINT64_MAX. */
uint64_t subscriptions_get_first_needed(const output *out);

/*
 * Evaluates the expressions on the backlog's records until the time until_ns (nl_monotonic_ns), and sends as many bytes
 * as the kernel accepts.
 */
void subscriptions_deliver(int64_t until_ns);

subscription_counts subscriptions_count(void);

/*
 * Implements the verb `subscribe`: replies to r with a stream of records. On failure, sets the error and returns
 * NL_FAILED.
 */
nl_status subscription_start(request *r, const nl_record *asked);

/*
 * request.c calls subscription_drained after it has sent a part of the queue, and subscription_free when it closes the
 * request. subscription_free accepts NULL.
 */
void subscription_drained(subscription *s);
void subscription_free(subscription *s);

/* Adds fields that describe the state of a subscription to a record of a reply. */
void subscription_describe(const subscription *s, nl_record *record);

#endif
