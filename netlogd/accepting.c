#include "config.h"

#include "accepting.h"

#include "base/monotonic.h"
#include "connection.h"
#include "datagrams.h"
#include "program/program.h"
#include "request.h"

#include <event2/listener.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTED_AT_ONCE = 64,
    RETRY_MS = 250,       /* until it is looked again whether there are descriptors */
    TELL_SECONDS = 10,    /* the least between two times that it is said that there are none */
    LEFT_BEHIND = 4096,   /* clients of a place that are taken at the end at most: more than the kernel lets wait */
    OWN_DESCRIPTORS = 64, /* which clients leave: files are rotated and certificates read, however many they are */
};

#define NO_DESCRIPTORS "as many files are open as clients may take"

static const listener *socket_of(const server *srv, const struct evconnlistener *accepting)
{
    size_t i = 0;
    while (srv->listeners[i] != accepting)
        i++;
    return &srv->sockets[i];
}

/* From this machine, or with a certificate to show when no networks are listed; those hold for all. */
bool accepting_allows(const server *srv, const struct sockaddr *peer, bool authenticated)
{
    if (network_is_local(peer) || (authenticated && srv->settings->allow.count == 0))
        return true;
    return network_list_contains(&srv->settings->allow, peer);
}

bool accepting_may_stay(server *srv, const listener *at, const nl_channel *channel, const char *peer)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    bool certified = at->asked->authenticated && nl_channel_has_certificate(channel);
    if (getpeername(channel->fd, (struct sockaddr *)&address, &(socklen_t){sizeof address}) == 0 &&
        !accepting_allows(srv, (struct sockaddr *)&address, certified)) {
        srv->counts.refused++;
        server_add(srv, &srv->refused, peer, ACCEPTING_NOT_ALLOWED);
        return false;
    }
    if (nl_channel_may_stay(channel, at->asked->tls))
        return true;
    nl_write(srv->log, NL_WARNING, "Netlogd.Tls", "PEER=%s REASON=%s", peer, nl_error_message());
    return false;
}

/*
 * Libevent takes connections as long as there are any: strangers who connect faster than they are turned away would
 * keep those who are connected from being read, and even from being closed. So the listeners pause now and then, until
 * clients that wait for their turn have had one.
 */
static void give_way(server *srv, struct evconnlistener *from)
{
    if (++srv->accepted < ACCEPTED_AT_ONCE)
        return;
    evconnlistener_disable(from);
    event_active(srv->accept_event, EV_TIMEOUT, 0);
}

void accepting_enable(server *srv, bool enable)
{
    if (srv->control != NULL && enable)
        evconnlistener_enable(srv->control);
    for (size_t i = 0; i < srv->listener_count; i++)
        if (srv->listeners[i] == NULL)
            continue;
        else if (enable)
            evconnlistener_enable(srv->listeners[i]);
        else
            evconnlistener_disable(srv->listeners[i]);
}

/* Whether another client leaves enough of them: the kernel gives the lowest number that is free. */
static bool has_descriptors(const server *srv)
{
    if (srv->listener_count == 0)
        return true;
    int lowest = fcntl(srv->sockets[0].fd, F_DUPFD_CLOEXEC, 0);
    if (lowest >= 0)
        close(lowest);
    return lowest >= 0 && lowest < srv->client_descriptors;
}

/* Whoever knocks waits in the kernel until some descriptors are free, and the loop does not spin meanwhile. */
static void wait_for_descriptors(server *srv, const char *reason)
{
    int64_t now_ns = nl_monotonic_ns();
    if (srv->accept_told_ns == 0 || now_ns - srv->accept_told_ns >= TELL_SECONDS * NL_NS_PER_SECOND) {
        program_error("accept: %s; who connects waits until others are gone", reason);
        srv->accept_told_ns = now_ns;
    }
    accepting_enable(srv, false);
    struct timeval interval = {.tv_usec = RETRY_MS * 1000};
    event_add(srv->accept_event, &interval);
}

/* A client that is not read, or that is read for the last time, is not silent by its own choice. */
static bool may_displace(const server *srv)
{
    return !srv->paused && !srv->stopping;
}

static void displace(server *srv, client_entry *silent, const char *newcomer)
{
    srv->counts.displaced++;
    server_add(srv, &srv->displaced, newcomer, "too many clients: the one silent for the longest was closed");
    silent->close(silent);
}

/*
 * Returns NULL when a client from peer may connect, after having closed another one if it takes that one's place, or
 * the reason why it may not. With full, there are no descriptors for one more client.
 */
static const char *make_place(server *srv, const struct sockaddr *peer, bool full, const char *address)
{
    client_entry *silent;
    client_verdict verdict = client_table_admit(srv->clients, peer, full, nl_monotonic_ns(), &silent);
    if (verdict == CLIENT_DISPLACES && may_displace(srv)) {
        displace(srv, silent, address);
        return NULL;
    }
    if (full && verdict != CLIENT_TOO_MANY_OF_ONE &&
        client_table_count(srv->clients) < srv->settings->max_connections) {
        wait_for_descriptors(srv, NO_DESCRIPTORS); /* this client has the last one */
        return NULL;
    }
    return verdict == CLIENT_ADMITTED ? NULL : client_verdict_message(verdict);
}

void accepting_refuse(server *srv, int fd, const struct sockaddr *peer, const char *reason)
{
    char address[80];
    listener_address_text(peer, address, sizeof address);
    srv->counts.refused++;
    server_add(srv, &srv->refused, address, reason);
    evutil_closesocket(fd);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)size;
    server *srv = user;
    const listener *at = socket_of(srv, from);
    srv->counts.connections++;
    give_way(srv, from);
    char address[80];
    listener_address_text(peer, address, sizeof address);
    bool full = fd + 1 >= srv->client_descriptors;
    const char *reason = accepting_allows(srv, peer, at->asked->authenticated) ? make_place(srv, peer, full, address)
                                                                               : ACCEPTING_NOT_ALLOWED;
    if (reason == NULL)
        connection_new(srv, fd, at, peer);
    else
        accepting_refuse(srv, fd, peer, reason);
}

/* Whoever may open the control socket's file may ask. */
static void on_control(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size, (void)peer;
    request_new(user, (nl_channel){.fd = fd}, "control", NULL, NULL, NULL, 0);
}

static void on_accept_error(struct evconnlistener *from, void *user)
{
    const char *reason = strerror(errno);
    evconnlistener_disable(from);
    wait_for_descriptors(user, reason);
}

static void on_accept_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    srv->accepted = 0;
    client_entry *silent = NULL;
    if (!has_descriptors(srv) && may_displace(srv))
        silent = client_table_find_silent(srv->clients, nl_monotonic_ns());
    if (silent != NULL)
        displace(srv, silent, "?");
    else if (!has_descriptors(srv)) {
        wait_for_descriptors(srv, NO_DESCRIPTORS);
        return;
    }
    accepting_enable(srv, true);
}

static struct evconnlistener *listen_to(server *srv, evconnlistener_cb callback, int fd)
{
    struct evconnlistener *l = evconnlistener_new(srv->base, callback, srv, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (l == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    evconnlistener_set_error_cb(l, on_accept_error);
    return l;
}

void accepting_settings_changed(server *srv)
{
    client_table_set_limits(srv->clients, srv->settings->max_connections, srv->settings->max_per_address);
}

void accepting_start(server *srv, const listener *control)
{
    /* Some descriptors are never clients': an output that finds none for its next file stops all reading. */
    srv->client_descriptors = client_table_reserve_files(srv->settings->max_connections, OWN_DESCRIPTORS);
    srv->clients = client_table_new();
    srv->listeners = calloc(srv->listener_count + 1, sizeof *srv->listeners);
    srv->accept_event = event_new(srv->base, -1, 0, on_accept_again, srv);
    if (srv->listeners == NULL || srv->accept_event == NULL || srv->clients == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_priority_set(srv->accept_event, SERVER_TURN_PRIORITY);
    accepting_settings_changed(srv);
    if (control != NULL)
        srv->control = listen_to(srv, on_control, control->fd);
}

static void listen_on(server *srv, size_t i)
{
    listener *l = &srv->sockets[i];
    nl_write(srv->log, NL_USAGE, "Netlogd.Listen", "URL=%s", l->name);
    if (l->datagrams) {
        datagrams_new(srv, l);
        return;
    }
    srv->listeners[i] = listen_to(srv, on_accept, l->fd);
}

void accepting_listen(server *srv)
{
    for (size_t i = 0; i < srv->listener_count; i++)
        listen_on(srv, i);
}

static bool is_inherited(const server *srv, size_t listener)
{
    static const char inherited[] = "inherited:";
    return strncasecmp(srv->sockets[listener].asked->url, inherited, sizeof inherited - 1) == 0;
}

/* Who has connected, and perhaps said all and gone, is a client, too. Where systemd listens they wait for the next
 * process. */
void accepting_take_waiting(server *srv)
{
    for (size_t i = 0; i < srv->listener_count; i++) {
        if (srv->listeners[i] == NULL || is_inherited(srv, i))
            continue;
        for (int left = LEFT_BEHIND; left > 0; left--) {
            struct sockaddr_storage peer = {0};
            socklen_t size = sizeof peer;
            int fd = accept4(srv->sockets[i].fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
                break;
            if (fd >= 0)
                on_accept(srv->listeners[i], fd, (struct sockaddr *)&peer, (int)size, srv);
        }
    }
}

/* From now on who connects is refused, who would otherwise log to nobody. Where systemd listens the next one serves. */
void accepting_end(server *srv)
{
    for (size_t i = 0; i < srv->listener_count; i++)
        if (srv->listeners[i] != NULL && !is_inherited(srv, i))
            listener_end(&srv->sockets[i]);
}

void accepting_free(server *srv)
{
    for (size_t i = 0; i < srv->listener_count; i++)
        if (srv->listeners[i] != NULL)
            evconnlistener_free(srv->listeners[i]);
    if (srv->control != NULL)
        evconnlistener_free(srv->control);
    event_free(srv->accept_event);
    free(srv->listeners);
    client_table_free(srv->clients);
}
