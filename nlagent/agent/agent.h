/*
 * nlagentd, the agent, runs each sensor as long as clients read its data.
 *
 * All work except registering with a directory (registrar.c) is in one thread, in libevent's loop. A record passes from
 * a sensor's process (process.c) to the sensor (active.c), and then to each subscription whose conditions the record
 * meets (subscription.c). In the subscription, the record waits in a bounded queue until the client fetches it, or
 * until the client's delivery has space (http_server.c). http_server.c receives requests, access.c checks the client's
 * rights, soap.c parses the requests, and service.c executes them.
 */
#ifndef NLAGENT_AGENT_H
#define NLAGENT_AGENT_H

#include "agent/condition.h"
#include "agent/definition.h"
#include "agent/process.h"
#include "agent/shared_record.h"
#include "agent/summary.h"

#include <event2/event.h>
#include <netlogger.h>

typedef struct agent agent;
typedef struct active active;
typedef struct subscription subscription;

typedef struct agent_limits {
    size_t sensors;       /* maximum number of running sensors */
    size_t subscriptions; /* maximum number of subscriptions of all clients */
    size_t per_consumer;  /* maximum number of subscriptions of one client */
    size_t queue;         /* maximum number of unread records of one subscription */
    double min_interval_s;
    size_t connections; /* maximum number of HTTP connections of all clients */
    size_t per_address; /* maximum number of HTTP connections from one address */
} agent_limits;

typedef struct agent_counts {
    uint64_t records;          /* number of records received from sensors */
    uint64_t missed;           /* number of records dropped from subscriptions' queues */
    uint64_t starts, failures; /* numbers of starts and failures of sensors */
    uint64_t requests, refused;
} agent_counts;

struct agent {
    struct event_base *base;
    definitions definitions;
    agent_limits limits;
    agent_counts counts;
    allowance matching; /* budget for evaluating clients' expressions */
    active *sensors;    /* running sensors, and sensors that stopped in the last day */
    subscription *subscriptions;
    size_t subscription_count;
    nl_log *log; /* nlagentd's own events; may be NULL */
    char host[256];
    struct event *clock;
    unsigned clock_checks; /* number of calls of check_clock, one per second */
    bool clock_warned;     /* nlagentd has logged that this host's clock is unsynchronized */
    struct access *access;
    struct directory *directory; /* NULL: this agent is not a directory */
    struct collections *collections;
    struct http_clients *clients;
    const struct agent_settings *settings; /* the current settings */
};

/* ---- sensors: active.c ---- */

struct active {
    active *next;
    agent *agent;
    const definition *definition;
    sensor_spec *spec;
    sensor_process *process; /* NULL: the sensor is stopped */
    subscription *members;
    double interval_s; /* the shortest interval that a client requested */
    bool held;         /* the Start operation started the sensor, which therefore runs even without subscriptions */
    double held_interval_s;
    uint64_t measurement;          /* number of the latest measurement */
    int64_t measured_ns, heard_ns; /* monotonic times: start of the latest measurement, and its latest record */
    struct shared_record **latest; /* the records of the latest measurement, at most 1,024 */
    size_t latest_count;
    char failure[256];    /* reason for the sensor's latest failure; "": no failure */
    summaries *summaries; /* NULL until active_summarize */
    int64_t stopped_ns;
};

/* Returns the sensor with a specification, and adds the sensor if necessary. Does not start the sensor, as
 * active_adjust does. Returns NULL and sets the error on failure. */
active *active_get(agent *a, const char *spec);

/* Sets *found to the sensor, or to NULL if the sensor has not run. Returns false and sets the error if no definition
 * accepts the specification. */
bool active_find(const agent *a, const char *spec, active **found);

/* Starts or stops the sensor, or changes its interval, as its subscriptions and the Start operation require. */
void active_adjust(active *s);

/* Begins to compute summaries of the sensor. Only then, nlagentd decodes each record of the sensor, which takes
 * time. */
void active_summarize(active *s);

/* Closes the summary windows that have ended. Frees sensors that stopped a day ago, and stopped sensors beyond the
 * first 64. Call this function every second. */
void active_sweep(agent *a);
void active_free_all(agent *a);

/* Adds fields that describe the sensor's state to a record. */
void active_describe(const active *s, nl_record *record);

/* ---- subscriptions: subscription.c ---- */

enum { SUBSCRIPTION_ID_SIZE = 33 };

typedef struct subscription_options {
    condition_options condition;
    unsigned summary_minutes; /* send summaries of this many minutes instead of records; 0: send records */
    double lease_s;    /* the subscription ends when no client has read its records for this number of seconds (1 to
                          86,400) */
    const char *owner; /* the client's name */
} subscription_options;

struct subscription {
    subscription *next, *next_member;
    active *sensor;
    char id[SUBSCRIPTION_ID_SIZE];
    char *owner;
    condition *condition;
    double interval_s;
    unsigned summary_minutes;
    double lease_s;
    int64_t expires_ns;
    shared_record **queue; /* a ring buffer */
    size_t first, count, capacity;
    uint64_t missed; /* records dropped since the last Nlagentd.Missed event */
    int64_t missed_from_ns, missed_to_ns;
    bool is_scheduled; /* libevent's loop will call on_records */
    bool over; /* the subscription's expression exceeded the budget; the subscription ends when its queue is empty */
    struct event *schedule;
    void (*on_records)(void *user); /* called when the queue has records; NULL: no client is waiting */
    void *user;
};

/* Subscribes to a sensor. Returns NULL and sets the error on failure. */
subscription *subscription_new(agent *a, const char *spec, const subscription_options *o);
void subscription_free(subscription *s);
subscription *subscription_find(agent *a, const char *id);

/* Renews the lease. */
void subscription_renew(subscription *s);

/*
 * Removes and returns the next record of the queue, or returns NULL if the queue is empty. If the queue has dropped
 * records before the next record, first returns an Nlagentd.Missed record with the number of dropped records. The
 * caller releases the record with shared_record_release.
 */
shared_record *subscription_take(subscription *s);

/* For active.c: offers a record, a summary, or one of the agent's own events to the subscription. */
void subscription_put(subscription *s, shared_record *record);
void subscription_put_summary(subscription *s, const nl_record *record, unsigned minutes);
void subscription_put_event(subscription *s, const nl_record *record, bool is_failure);

/* Ends the subscriptions whose lease has expired. Also ends the subscriptions whose expression has exceeded the budget,
 * as soon as their queue is empty. Call this function every second. */
void subscriptions_sweep(agent *a);

/* Returns a new record of nlagentd itself, with the current time. The caller frees the record. */
nl_record *agent_record(const agent *a, nl_level level, const char *event);

#endif
