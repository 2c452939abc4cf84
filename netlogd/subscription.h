/*
 * Subscriptions: records to those who asked for them, as netlogd takes them.
 *
 * Taking a record only copies it into a backlog (backlog.h). Matching it with the expressions, and sending, is work in
 * the background (background.h), so that no expression, and no number of subscribers, delays those who log. While the
 * backlog is full that work is done at once, 2 milliseconds at a time and for nine tenths of the time at most. A
 * subscriber whose expression costs more than a microsecond a record on average is then disconnected, and told why; the
 * others miss the oldest records of the backlog, and are told so. A subscriber whose expression costs too much for a
 * single record (NL_FILTER_STEPS_MAX) is disconnected at once.
 *
 * Subscribers with the same expression, time and format are a group: a record is matched once for the group, a line of
 * text is made once for all groups of the format, and the bytes of a slice of work are shared by all members. Each
 * member has a queue of bounded size; what does not fit any more it misses, and is told so, in its place, once the
 * queue is half empty.
 *
 * One who asks for the past too gets that from the output's files (past.h), a slice at a time in the background, as
 * fast as it reads. It joins its group at a moment when all that was ever taken is in the file and read from there, so
 * that nothing is missing or repeated between the two.
 */
#ifndef NETLOGD_SUBSCRIPTION_H
#define NETLOGD_SUBSCRIPTION_H

#include "request.h"

typedef struct subscriptions subscriptions;

typedef struct subscription_counts {
    uint64_t subscribers; /* now */
    uint64_t asked;       /* subscriptions so far */
    uint64_t records;     /* put into queues, counted once for each subscriber */
    uint64_t missed;      /* that did not fit into queues, likewise */
    uint64_t costly;      /* subscribers that were disconnected because their expressions cost too much */
    uint64_t queued;      /* bytes, now */
} subscription_counts;

subscriptions *subscriptions_new(server *srv);

/* After all requests were closed. */
void subscriptions_free(subscriptions *all);

/* Whether somebody subscribes: then every record is to come to subscriptions_put, while blocks could stay whole. */
bool subscriptions_want_records(const subscriptions *all);

/* A record was taken and put into the output. */
void subscriptions_put(subscriptions *all, const nl_record *record);

/*
 * The outputs are others now, and what was put before is written. Those who read the past from one that is gone, or
 * does not have all any more, read what it has; what comes before they have done so they miss, and are told.
 */
void subscriptions_outputs_changed(subscriptions *all);

/* Matches what is in the backlog until a time (nl_monotonic_ns), and sends what is meant, as far as the kernel takes
 * it. */
void subscriptions_deliver(subscriptions *all, int64_t until_ns);

subscription_counts subscriptions_count(const subscriptions *all);

/* The verb: answers r with a stream. */
void subscription_start(request *r, const nl_record *asked);

/* For request.c: some of the queue was sent; the request is closed. */
void subscription_drained(subscription *s);
void subscription_free(subscription *s);

/* Adds what is known of one to a record of an answer. */
void subscription_describe(const subscription *s, nl_record *record);

#endif
