/*
 * The event supplier agent: sensors that run because somebody looks, and those who look.
 *
 * One thread does everything, in libevent's loop. A record passes from a sensor's process (process.c) to the sensor
 * (active.c), which numbers looks and sums up, to each subscription whose condition it meets (subscription.c), where it
 * waits in a bounded queue until it is fetched or fits into its stream (http_server.c). What is asked comes in through
 * http_server.c, is read by soap.c, permitted by access.c and done by service.c.
 */
#ifndef NLAGENT_AGENT_H
#define NLAGENT_AGENT_H

#include "agent/condition.h"
#include "agent/definition.h"
#include "agent/process.h"
#include "agent/summary.h"

#include <event2/event.h>
#include <netlogger.h>

typedef struct agent agent;
typedef struct active active;
typedef struct subscription subscription;

typedef struct agent_limits {
    size_t sensors;       /* that run at once */
    size_t subscriptions; /* in all */
    size_t per_consumer;  /* of one */
    size_t queue;         /* records that wait for one subscription */
    double least_interval_s;
    size_t connections; /* of HTTP, in all */
    size_t per_address; /* of one address */
} agent_limits;

typedef struct agent_counts {
    uint64_t records;          /* from sensors */
    uint64_t missed;           /* by subscriptions */
    uint64_t starts, failures; /* of sensors */
    uint64_t requests, refused;
} agent_counts;

struct agent {
    struct event_base *base;
    definitions definitions;
    agent_limits limits;
    agent_counts counts;
    allowance matching; /* steps of the expressions of consumers */
    active *sensors;    /* those that run, and those that ran and have summaries */
    subscription *subscriptions;
    size_t subscription_count;
    nl_log *log; /* its own events; NULL when it has none */
    char host[256];
    struct event *clock;
    unsigned clock_looks; /* seconds */
    bool clock_warned;    /* it was said that this host's clock is not synchronized */
    struct access *access;
    struct directory *directory; /* NULL: it is none */
    struct collections *collections;
    struct http_clients *clients; /* who is connected */
};

/* ---- sensors that run: active.c ---- */

struct active {
    active *next;
    agent *agent;
    const definition *definition;
    sensor_spec *spec;
    sensor_process *process; /* NULL: nobody looks */
    subscription *members;
    double interval_s; /* the shortest that is wanted */
    bool held;         /* started for no consumer in particular */
    double held_interval_s;
    uint64_t look;
    int64_t look_ns, heard_ns; /* monotonic: when the latest look began, and was last heard of */
    nl_record **latest;        /* the records of the latest look */
    size_t latest_count;
    char failure[256]; /* why it ended last; "" when it did not */
    summaries *summaries;
    int64_t stopped_ns;
};

/* The sensor of that specification, running or not, which is kept as long as somebody looks; NULL on failure. */
active *active_get(agent *a, const char *spec);

/* The same for who only reads of it: *found is NULL where it has not run, and none is made. Returns false when there is
 * no such sensor. */
bool active_find(const agent *a, const char *spec, active **found);

/* Starts it, stops it, or changes its pace, as those who look want it. */
void active_adjust(active *s);

/* Forgets those that have not run for a day. */
void active_sweep(agent *a);
void active_free_all(agent *a);

/* Adds what is known of one to a record. */
void active_describe(const active *s, nl_record *record);

/* ---- those who look: subscription.c ---- */

enum { SUBSCRIPTION_ID = 33 };

/* A record that several queues hold. */
typedef struct shared_record {
    unsigned users;
    nl_record *record;
} shared_record;

typedef struct subscription_wish {
    wish condition;
    unsigned summary_minutes; /* summaries of that length instead of data; 0: data */
    double lease_s;           /* it ends when nobody fetches for so long */
    const char *owner;        /* who asked */
} subscription_wish;

struct subscription {
    subscription *next, *next_member;
    active *sensor;
    char id[SUBSCRIPTION_ID];
    char *owner;
    condition *condition;
    double interval_s;
    unsigned summary_minutes;
    double lease_s;
    int64_t expires_ns;
    shared_record **queue; /* a ring */
    size_t first, count, capacity;
    uint64_t sent, missed, missed_in_all;
    int64_t missed_from_ns, missed_to_ns;
    bool turn_comes;
    bool over; /* its expression costs too much: it gets no more records, and ends when its queue is empty */
    struct event *turn;
    void (*on_records)(void *user); /* something is in the queue; NULL: nobody waits */
    void *user;
};

/* NULL on failure. */
subscription *subscription_new(agent *a, const char *spec, const subscription_wish *w);
void subscription_free(subscription *s);
subscription *subscription_find(agent *a, const char *id);

/* Somebody has asked for it: it goes on. */
void subscription_renew(subscription *s);

/*
 * Takes the next record out; what was missed before it comes as a record of its own, Nlagentd.Missed. False when there
 * is none. The record is valid until the next call for any subscription.
 */
bool subscription_take(subscription *s, const nl_record **record);

/* For active.c. */
void subscription_put(subscription *s, const nl_record *record, uint64_t look, int64_t look_ns, shared_record **shared);
void subscription_put_summary(subscription *s, const nl_record *record, unsigned minutes);
void subscription_put_event(subscription *s, const nl_record *record);

/* Ends subscriptions whose lease is over, and those that are over and were read. */
void subscriptions_sweep(agent *a);

/* A record of the agent's own: an event of its log, and for those who look. */
nl_record *agent_record(const agent *a, nl_level level, const char *event);

#endif
