/*
 * The collector: an event loop, its listeners (accepting.c) and connections, its outputs.
 *
 * One thread does everything. A record passes from connection.c (read, decode) to outputs.c (collect, write); the
 * server decides when the outputs are flushed (whenever no client has anything to read) and stops all reading while one
 * cannot be written.
 */
#ifndef NETLOGD_SERVER_H
#define NETLOGD_SERVER_H

#include "activation.h"
#include "connections.h"
#include "service/client_table.h"
#include "service/listener.h"
#include "output/outputs.h"
#include "settings.h"

#include <event2/event.h>

typedef struct server server;
typedef struct datagrams datagrams;
typedef struct nats_reader nats_reader;

typedef struct server_counts {
    uint64_t records;
    uint64_t malformed;
    uint64_t bytes;
    uint64_t connections;     /* so far */
    uint64_t refused;         /* not from an allowed network, or too many */
    uint64_t displaced;       /* closed because there were too many, for a new one */
    uint64_t streams_refused; /* blocks that were refused because too many streams began */
    uint64_t gaps_refused;    /* blocks that were not taken because their streams have too many gaps */
    uint64_t expanding;       /* times that clients had to wait because their records expand too much */
    uint64_t foreign;         /* clients of other protocols, such as HTTP */
    uint64_t over_rate;       /* datagrams that were dropped because of max-rate */
    uint64_t cut_off;         /* because clients took too much memory */
    uint64_t work;            /* units (record/work.h) that clients caused */
    uint64_t requests;        /* whose line was read */
    uint64_t requests_failed;
} server_counts;

/* What strangers make happen as often as they like: said at once, and then once a second with how often it was. */
typedef struct server_sum {
    const char *event;
    uint64_t count; /* not said yet; what it was the last time: */
    char peer[80];
    const char *reason;
    int64_t told_ns; /* 0: never */
} server_sum;

/* Reads the configuration again. The caller's, to be freed with settings_delete; NULL after the reasons were reported.
 */
typedef settings *(*server_read_settings)(void *user, config_report report, void *report_user);

struct server {
    const settings *settings;
    settings *reloaded; /* the same, when they are not those of the start */
    server_read_settings read_settings;
    void *read_user;
    struct event_base *base;
    outputs *outputs;
    nl_log *log;    /* its own events; NULL when it has none */
    char host[256]; /* this one's name, as clients compare their clocks with it */
    struct clocks *clocks;
    struct turns *turns;
    char *read_buffer;
    activation *activation; /* what clients are told */
    struct event *activation_event;
    struct stream_limit *stream_limit;
    struct text_limit *text_limit;
    nl_streams *streams; /* of all clients that number their records; the outputs' */
    struct gaps *gaps;   /* in these */
    connections *connections;
    datagrams *datagrams;
    nats_reader *nats_readers;
    size_t queued;                 /* bytes that wait in the queues of requests */
    client_table *clients;         /* connections and requests, but those over the control socket */
    struct request *requests;      /* clients that ask: request.h */
    struct background *background; /* work for requests */
    struct subscriptions *subscriptions;
    int64_t started_ns; /* by nl_monotonic_ns */
    server_counts counts;
    uint64_t rate_records;     /* counts.records when the rate was reckoned last, */
    int64_t rate_ns;           /* at that time; */
    double rate;               /* records a second until then */
    bool paused;               /* nothing is read from clients: an output is blocked */
    bool pause_told;           /* it was said */
    int64_t told_ns;           /* when the latest one was */
    bool ending;               /* it was asked to end: what is under way may go on for a while */
    bool stopping;             /* it does */
    char reload_failure[1024]; /* why the latest reload failed, as far as it fits */
    int64_t wrote_ns;          /* when the first was put of what is not flushed; 0: all is */
    bool wrote_at_once;        /* some of it by clients that did not wait for their turn (turns.h) */
    int64_t flush_latest_ns;   /* how long the latest flush took */
    int64_t flush_took_ns;     /* minimum of the latest two: one may have been preempted */
    int64_t flushed_ns;        /* when it ended */
    struct event *flush_event;
    struct event *late_event; /* flushes although clients always have something to be read */
    struct event *retry_event;
    struct event *settle_event; /* what was written is to be made safe, and acknowledged */
    struct event *accept_event; /* tries again after the process ran out of descriptors */
    server_sum refused, expanding, displaced, over_rate, foreign;
    unsigned accepted;      /* since listeners last gave way to those who are connected */
    int client_descriptors; /* clients get lower ones */
    int64_t accept_told_ns; /* when it was said last that there are none; 0: never */
    struct event *signals[3];
    struct recovery *recovering;       /* NULL: none */
    struct event *recovery_event;      /* looks whether it is over, when the server is to end */
    struct event *clock_event;         /* looks every second for clients that take too long */
    struct evconnlistener **listeners; /* NULL where datagrams come */
    listener *sockets;                 /* that they are for */
    size_t listener_count;
    struct evconnlistener *control; /* NULL: none */
    struct http *metrics;           /* likewise */
    int reject_fd;                  /* -1: none */
};

enum {
    SERVER_READ_SIZE = 256 << 10,
    SERVER_TURN_PRIORITY = 4, /* of the events of what waits for turns */
};

/* What there is besides the sockets that clients log to; each may be missing. */
typedef struct server_extras {
    const listener *control;     /* NULL */
    int metrics_fd;              /* -1 */
    struct recovery *recovering; /* is asked to end before the server does, and waited for, a while; NULL */
    void (*on_ready)(void);      /* called when it serves; NULL */
} server_extras;

/*
 * Serves until SIGTERM or SIGINT; read_settings is called on SIGHUP. log may be NULL. Returns the program's exit
 * status. Takes nothing over.
 */
int server_run(const settings *s, server_read_settings read_settings, void *read_user, listener *listeners,
               size_t listener_count, const server_extras *extras, outputs *out, nl_log *log);

/*
 * Signals that end the program or make it read its configuration anew wait while they are blocked: until the server
 * can answer them, and once it has. server_run lets them through meanwhile; threads that were started before never get
 * them.
 */
void server_block_signals(bool block);

/* For connections and datagrams. */
void server_add(server *srv, server_sum *sum, const char *peer, const char *reason); /* the latter is a constant */
void server_wrote(server *srv);                       /* something was put into the output, or is to be acknowledged */
void server_reject(server *srv, nl_string malformed); /* keeps malformed input where that was asked for */

/* For requests. */
bool server_flush(server *srv);         /* writes the output now; false while it can't be written */
const char *server_reload(server *srv); /* what SIGHUP does; NULL, or what failed: it was reported */

#endif
