#include "config.h"

#include "server.h"

#include "connection.h"
#include "metrics.h"
#include "program/program.h"
#include "request.h"
#include "subscription.h"

#include <event2/http.h>
#include <event2/listener.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PRIORITIES = 3, /* signals; clients, which libevent's default is for; the flush, when none of them wants anything */
    RETRY_MS = 250,
    ACTIVATION_MS = 500,
    DRAIN_SECONDS = 5,
};

int64_t server_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

static struct timeval milliseconds(int count)
{
    return (struct timeval){.tv_sec = count / 1000, .tv_usec = count % 1000 * 1000};
}

/* The output cannot be written: no client is read until it can, so that nothing is lost and memory does not grow. */
static void pause_clients(server *srv)
{
    if (srv->paused)
        return;
    srv->paused = true;
    program_error("%s; waiting until it can be written, nothing is lost", nl_error_message());
    for (connection *c = srv->connections; c != NULL; c = connection_next(c))
        connection_pause(c, true);
    struct timeval interval = milliseconds(RETRY_MS);
    event_add(srv->retry_event, &interval);
}

/* Everything that was decoded is written. */
static void acknowledge_all(server *srv)
{
    while (srv->to_acknowledge != NULL)
        connection_acknowledge(srv->to_acknowledge);
}

static void on_activation(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (!activation_look(srv->activation))
        return;
    for (connection *c = srv->connections; c != NULL; c = connection_next(c))
        connection_send_activation(c);
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (output_flush(srv->output) != NL_OK) {
        struct timeval interval = milliseconds(RETRY_MS);
        event_add(srv->retry_event, &interval);
        return;
    }
    srv->paused = false;
    program_error("%s can be written again", srv->settings->output);
    acknowledge_all(srv);
    for (connection *c = srv->connections; c != NULL; c = connection_next(c))
        connection_pause(c, false);
}

bool server_flush(server *srv)
{
    if (srv->paused)
        return false;
    if (output_flush(srv->output) != NL_OK)
        pause_clients(srv);
    else
        acknowledge_all(srv);
    return !srv->paused;
}

static void on_flush(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server_flush(user);
}

void server_wrote(server *srv)
{
    if (output_is_blocked(srv->output))
        pause_clients(srv);
    else if (!srv->stopping)
        event_active(srv->flush_event, EV_TIMEOUT, 0);
}

void server_reject(server *srv, nl_string malformed)
{
    if (srv->reject_fd < 0)
        return;
    /* Best effort, and never in the way of the log itself. */
    struct nl_buffer line = {0};
    nl_buffer_append(&line, malformed.data, malformed.size);
    nl_buffer_append(&line, "\n", 1);
    if (write(srv->reject_fd, line.data, line.size) < 0)
        nl_write(srv->log, NL_WARNING, "Netlogd.RejectFailed", "REASON=%s", strerror(errno));
    nl_buffer_free(&line);
}

bool server_allows(const server *srv, const struct sockaddr *peer)
{
    if (network_is_local(peer))
        return true;
    for (size_t i = 0; i < srv->settings->allow_count; i++)
        if (network_contains(&srv->settings->allow[i], peer))
            return true;
    return false;
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size;
    server *srv = user;
    srv->counts.connections++;
    bool room = srv->connection_count < srv->settings->max_connections;
    if (room && server_allows(srv, peer)) {
        connection_new(srv, fd, peer);
        return;
    }
    srv->counts.refused++;
    char address[80];
    listener_address_text(peer, address, sizeof address);
    nl_write(srv->log, NL_WARNING, "Netlogd.Refused", "PEER=%s REASON=%s", address,
             room ? "not from an allowed network" : "too many connections");
    evutil_closesocket(fd);
}

/* Whoever may open the control socket's file may ask. */
static void on_control(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size, (void)peer;
    request_new(user, fd, "control", true, NULL, 0);
}

static void enable_listeners(server *srv, bool enable)
{
    for (size_t i = 0; i < srv->listener_count; i++)
        if (enable)
            evconnlistener_enable(srv->listeners[i]);
        else
            evconnlistener_disable(srv->listeners[i]);
}

/* Out of descriptors: whoever knocks waits in the kernel until some are free, and the loop does not spin meanwhile. */
static void on_accept_error(struct evconnlistener *from, void *user)
{
    (void)from;
    server *srv = user;
    program_error("accept: %s; trying again", strerror(errno));
    enable_listeners(srv, false);
    struct timeval interval = milliseconds(RETRY_MS);
    event_add(srv->accept_event, &interval);
}

static void on_accept_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    enable_listeners(user, true);
}

static void on_stop(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    event_base_loopbreak(((server *)user)->base);
}

bool server_reload(server *srv)
{
    bool good = output_reopen(srv->output) == NL_OK;
    if (!good)
        program_error("%s; going on with the old one", nl_error_message());
    nl_write(srv->log, NL_USAGE, "Netlogd.Reopen", "FILE=%s", srv->settings->output);
    return good;
}

static void on_hangup(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    server_reload(user);
}

static struct event *new_event(server *srv, evutil_socket_t fd, short what, event_callback_fn callback)
{
    struct event *event = event_new(srv->base, fd, what, callback, srv);
    if (event == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return event;
}

static void start(server *srv, listener *listeners, const server_extras *extras)
{
    srv->base = event_base_new();
    srv->read_buffer = malloc(SERVER_READ_SIZE);
    srv->listeners = calloc(srv->listener_count, sizeof *srv->listeners);
    if (srv->base == NULL || srv->read_buffer == NULL || srv->listeners == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_base_priority_init(srv->base, PRIORITIES);
    srv->flush_event = new_event(srv, -1, 0, on_flush);
    event_priority_set(srv->flush_event, PRIORITIES - 1);
    srv->retry_event = new_event(srv, -1, 0, on_retry);
    srv->accept_event = new_event(srv, -1, 0, on_accept_again);
    srv->subscriptions = subscriptions_new(srv);
    srv->started_ns = server_now_ns();
    if (extras->control != NULL) {
        srv->control = evconnlistener_new(srv->base, on_control, srv, LEV_OPT_CLOSE_ON_EXEC, 0, extras->control->fd);
        if (srv->control == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
    }
    if (extras->metrics_fd >= 0)
        srv->metrics = metrics_start(srv, extras->metrics_fd);
    if (srv->settings->activation != NULL) {
        struct timeval often = milliseconds(ACTIVATION_MS);
        srv->activation_event = event_new(srv->base, -1, EV_PERSIST, on_activation, srv);
        if (srv->activation_event == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        event_add(srv->activation_event, &often);
    }
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++) {
        event_callback_fn callback = signals[i] == SIGHUP ? on_hangup : on_stop;
        srv->signals[i] = new_event(srv, signals[i], EV_SIGNAL | EV_PERSIST, callback);
        event_priority_set(srv->signals[i], 0);
        event_add(srv->signals[i], NULL);
    }
    for (size_t i = 0; i < srv->listener_count; i++) {
        srv->listeners[i] = evconnlistener_new(srv->base, on_accept, srv, LEV_OPT_CLOSE_ON_EXEC, 0, listeners[i].fd);
        if (srv->listeners[i] == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        evconnlistener_set_error_cb(srv->listeners[i], on_accept_error);
        nl_write(srv->log, NL_USAGE, "Netlogd.Listen", "URL=%s", listeners[i].name);
    }
}

/* What the kernel has taken from clients for us is taken over and written before the program ends. */
static int stop(server *srv)
{
    srv->stopping = true;
    enable_listeners(srv, false);
    int64_t deadline_ns = server_now_ns() + DRAIN_SECONDS * NL_NS_PER_SECOND;
    /* First what each has sent already, so that one who goes on sending does not take the others' time. */
    for (connection *c = srv->connections; c != NULL; c = connection_next(c))
        connection_take_what_came(c);
    for (connection *c = srv->connections; c != NULL; c = connection_next(c))
        connection_drain(c, deadline_ns);
    int status = PROGRAM_DONE;
    if (output_flush(srv->output) != NL_OK) {
        program_error("%s; the last records are lost", nl_error_message());
        status = PROGRAM_PROBLEM;
    } else {
        acknowledge_all(srv);
    }
    while (srv->connections != NULL)
        connection_close(srv->connections);
    subscriptions_deliver(srv->subscriptions);
    while (srv->requests != NULL)
        request_close(srv->requests);
    subscriptions_free(srv->subscriptions);
    nl_write(srv->log, NL_USAGE, "Netlogd.Stop",
             "RECORDS=%" PRIu64 " MALFORMED=%" PRIu64 " LOST=%" PRIu64 " BYTES=%" PRIu64 " CONNECTIONS=%" PRIu64
             " REFUSED=%" PRIu64,
             srv->counts.records, srv->counts.malformed, srv->counts.lost, srv->counts.bytes, srv->counts.connections,
             srv->counts.refused);
    for (size_t i = 0; i < srv->listener_count; i++)
        evconnlistener_free(srv->listeners[i]);
    if (srv->metrics != NULL)
        evhttp_free(srv->metrics);
    if (srv->control != NULL)
        evconnlistener_free(srv->control);
    for (int i = 0; i < 3; i++)
        event_free(srv->signals[i]);
    event_free(srv->flush_event);
    event_free(srv->retry_event);
    event_free(srv->accept_event);
    if (srv->activation_event != NULL)
        event_free(srv->activation_event);
    event_base_free(srv->base);
    nl_streams_free(srv->streams);
    activation_free(srv->activation);
    free(srv->listeners);
    free(srv->read_buffer);
    if (srv->reject_fd >= 0)
        close(srv->reject_fd);
    return status;
}

int server_run(const settings *s, listener *listeners, size_t listener_count, const server_extras *extras, output *out,
               nl_log *log)
{
    server srv = {.settings = s, .output = out, .log = log, .listener_count = listener_count, .reject_fd = -1};
    if (s->reject != NULL) {
        srv.reject_fd = open(s->reject, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (srv.reject_fd < 0) {
            program_error("open %s: %s", s->reject, strerror(errno));
            return PROGRAM_PROBLEM;
        }
    }
    srv.streams = nl_streams_new();
    srv.activation = activation_new(s->activation);
    activation_look(srv.activation);
    start(&srv, listeners, extras);
    event_base_dispatch(srv.base);
    return stop(&srv);
}
