/*
 * The collector: its event loop, its settings, and its start and end.
 *
 * One thread, the server's thread, runs the event loop and all modules of this directory, except delivery
 * (output/delivery.h), value indexes (output/value_thread.h), recovery (recovery.h) and libnats. No function of that
 * thread may wait for a client or a destination. A process has only one collector, so most modules have one static
 * state and no handle. This module owns the event loop, the current settings, netlogd's own log and the order in which
 * the modules start and end.
 */
#ifndef NETLOGD_SERVER_H
#define NETLOGD_SERVER_H

#include "service/listener.h"
#include "settings.h"

#include <event2/event.h>

enum {
    /*
     * Priorities of events; the lowest number is the most urgent. Clients that are served at once and new clients have
     * libevent's default priority, SERVER_PRIORITIES / 2. SERVER_PRIORITY_TURN is for the turns of waiting clients
     * (turns.h) and for datagrams. SERVER_PRIORITY_FLUSH is for the flush of the outputs, and
     * SERVER_PRIORITY_BACKGROUND for work for requests (background.h).
     */
    SERVER_PRIORITY_SIGNALS = 0,
    SERVER_PRIORITY_TURN = 4,
    SERVER_PRIORITY_FLUSH = 5,
    SERVER_PRIORITY_BACKGROUND = 6,
    SERVER_PRIORITIES = 7,
};

struct recovery;

/*
 * Reads the configuration again. Returns the new settings, which the caller frees with settings_delete. On failure,
 * reports all problems and returns NULL.
 */
typedef settings *(*server_read_settings)(void *user, config_report report, void *report_user);

typedef struct server_parts {
    const settings *settings;
    server_read_settings read_settings; /* called after SIGHUP */
    void *read_user;
    listener *listeners;
    size_t listener_count;
    const listener *control;     /* NULL: no control socket */
    int metrics_fd;              /* -1: no metrics */
    struct recovery *recovering; /* NULL: no recovery; the server ends the recovery before it ends itself */
    nl_log *log;                 /* NULL: no log */
    void (*on_ready)(void);      /* called when the server begins to accept clients */
} server_parts;

/* Serves until SIGTERM or SIGINT. The outputs must be open. The caller owns all parts. Returns the exit status. */
int server_run(const server_parts *parts);

/*
 * Blocks or unblocks the signals that end the program or reload its configuration. The caller blocks the signals before
 * it starts threads, so that only the server's thread receives them. server_run unblocks them while it serves.
 */
void server_block_signals(bool block);

/* Returns the settings in force. They change on a reload. */
const settings *server_settings(void);

/* Reads the configuration again (SIGHUP). Returns NULL after passing all problems to report. */
settings *server_read_again(config_report report, void *report_user);

/* Applies new settings, and takes ownership of them. */
void server_replace_settings(settings *now);

struct event_base *server_base(void);

/* Creates an event. Ends the program if memory runs out. The arguments are those of event_new. */
struct event *server_new_event(evutil_socket_t fd, short what, event_callback_fn callback, void *user);

/* Returns netlogd's own log; NULL before server_run and if the log is off. */
nl_log *server_log(void);

enum { SERVER_HOST_SIZE = 256 };

/* Returns the name of this host for netlogd's records. The name has fewer than SERVER_HOST_SIZE bytes. */
const char *server_host(void);

/* Returns the time at which the server started (nl_monotonic_ns). */
int64_t server_start_ns(void);

/* Returns whether the server was requested to end. It may still serve clients for a short time. */
bool server_is_ending(void);

/* Returns whether the server is ending and reads from its clients for the last time. */
bool server_is_stopping(void);

#endif
