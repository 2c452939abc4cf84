#include "config.h"

#include "accepting.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "connection.h"
#include "counts.h"
#include "datagrams.h"
#include "flush.h"
#include "otlp_client.h"
#include "program/program.h"
#include "request.h"
#include "server.h"

#include <event2/listener.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ACCEPTED_AT_ONCE = 64,
    RETRY_MS = 250,       /* interval between checks for free descriptors */
    REPORT_SECONDS = 10,  /* minimum time between two reports of missing descriptors */
    WAITING_MAX = 4096,   /* maximum number of connections to accept from a socket when netlogd ends; greater than the
                             kernel's queue */
    OWN_DESCRIPTORS = 64, /* number of descriptors that are reserved for output files and certificates */
};

static listener *sockets;
static size_t socket_count;
static struct evconnlistener **listeners; /* one listener for each socket; NULL for a datagram socket */
static struct evconnlistener *control;    /* NULL: no control socket */
static struct event *again;               /* timer that enables the listeners again */
static client_table *clients;
static unsigned accepted;      /* number of clients accepted since the listeners last paused */
static int client_descriptors; /* the descriptors of clients are smaller than this number */
static int64_t reported_ns;    /* time of the latest report of a lack of descriptors; 0: no report */

static const listener *find_socket(const struct evconnlistener *from)
{
    size_t i = 0;
    while (listeners[i] != from)
        i++;
    return &sockets[i];
}

client_table *accepting_get_clients(void)
{
    return clients;
}

/* ---- rights ---- */

bool accepting_allows(const struct sockaddr *peer, bool authenticated)
{
    const network_list *allow = &server_settings()->allow;
    return network_is_local(peer) || (authenticated && allow->count == 0) || network_list_contains(allow, peer) ||
           nl_error_false(NL_ERROR_PERMISSION, "not from an allowed network");
}

bool accepting_may_stay(const listener *at, const nl_channel *channel, const char *peer)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    bool certified = at->asked->authenticated && nl_channel_has_certificate(channel);
    if (getpeername(channel->fd, (struct sockaddr *)&address, &(socklen_t){sizeof address}) == 0 &&
        !accepting_allows((struct sockaddr *)&address, certified)) {
        counts_report(COUNT_REFUSED, peer, nl_error_message());
        return false;
    }
    if (nl_channel_may_stay(channel, at->asked->tls))
        return true;
    nl_write(server_log(), NL_WARNING, "Netlogd.Tls", "PEER=%s REASON=%s", peer, nl_error_message());
    return false;
}

nl_status accepting_check_settings(const settings *now)
{
    for (size_t i = 0; i < socket_count && now->allow.count == 0; i++) {
        const listening *asked = settings_find_listening(now, sockets[i].asked->url);
        if (sockets[i].remote && asked != NULL && !asked->authenticated)
            return listener_reject_open(asked) ? NL_OK : NL_FAILED;
    }
    return NL_OK;
}

void accepting_change_settings(const settings *now)
{
    for (size_t i = 0; i < socket_count; i++)
        sockets[i].asked = settings_find_listening(now, sockets[i].asked->url);
    client_table_set_limits(clients, now->max_connections, now->max_per_address);
}

/* ---- listeners ---- */

/*
 * Pauses the listeners after ACCEPTED_AT_ONCE connections, until waiting clients have had a turn. Without this pause,
 * libevent would not read from clients while connections are waiting in the kernel.
 */
static void pause_if_many_accepted(struct evconnlistener *from)
{
    if (++accepted < ACCEPTED_AT_ONCE)
        return;
    evconnlistener_disable(from);
    event_active(again, EV_TIMEOUT, 0);
}

void accepting_enable(bool enable)
{
    if (control != NULL && enable)
        evconnlistener_enable(control);
    for (size_t i = 0; i < socket_count; i++)
        if (listeners[i] != NULL)
            (enable ? evconnlistener_enable : evconnlistener_disable)(listeners[i]);
}

/* Returns whether a descriptor is free for another client. The kernel assigns the lowest free number. */
static bool has_descriptors(void)
{
    if (socket_count == 0)
        return true;
    int lowest = fcntl(sockets[0].fd, F_DUPFD_CLOEXEC, 0);
    if (lowest >= 0)
        close(lowest);
    return lowest >= 0 && lowest < client_descriptors;
}

static void wait_for_descriptors(const char *reason)
{
    int64_t now_ns = nl_monotonic_ns();
    if (reported_ns == 0 || now_ns - reported_ns >= REPORT_SECONDS * NL_NS_PER_SECOND) {
        program_error("accept: %s; new clients wait until other clients disconnect",
                      reason != NULL ? reason : "no file descriptor is free for another client");
        reported_ns = now_ns;
    }
    accepting_enable(false);
    event_add(again, &(struct timeval){.tv_usec = RETRY_MS * 1000});
}

/*
 * Returns whether netlogd may close a silent client. netlogd closes no silent clients while an output is blocked or
 * while netlogd ends. At these times, a client may seem silent although it has sent bytes.
 */
static bool may_displace(void)
{
    return !flush_is_paused() && !server_is_stopping();
}

static void close_silent_client(client_entry *silent, const char *newcomer)
{
    counts_report(COUNT_DISPLACED, newcomer, "too many clients; disconnected a silent client");
    silent->close(silent);
}

/*
 * Returns whether a client from `peer` may connect. Closes another client if necessary. Sets the error if the client
 * may not connect. `full` is true if no descriptor is free for another client.
 */
static bool make_place(const struct sockaddr *peer, bool full, const char *address)
{
    client_entry *silent;
    client_verdict verdict = client_table_admit(clients, peer, full, nl_monotonic_ns(), &silent);
    if (verdict == CLIENT_DISPLACES && may_displace()) {
        close_silent_client(silent, address);
        return true;
    }
    if (full && verdict != CLIENT_TOO_MANY_OF_ONE && client_table_count(clients) < server_settings()->max_connections) {
        wait_for_descriptors(NULL); /* this client uses the last descriptor */
        return true;
    }
    return verdict == CLIENT_ADMITTED || nl_error_false(NL_ERROR_LIMIT, "%s", client_verdict_message(verdict));
}

void accepting_refuse(int fd, const struct sockaddr *peer)
{
    char address[80];
    listener_address_text(peer, address, sizeof address);
    counts_report(COUNT_REFUSED, address, nl_error_message());
    evutil_closesocket(fd);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)size, (void)user;
    const listener *at = find_socket(from);
    char address[80];
    counts_add(COUNT_CONNECTIONS, 1);
    pause_if_many_accepted(from);
    listener_address_text(peer, address, sizeof address);
    if (accepting_allows(peer, at->asked->authenticated) && make_place(peer, fd + 1 >= client_descriptors, address))
        at->asked->otlp ? otlp_client_new(fd, at, peer) : (void)connection_new(fd, at, peer);
    else
        accepting_refuse(fd, peer);
}

/* Accepts a connection to the control socket. Every user who can open the socket's file may send requests. */
static void on_control(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size, (void)peer, (void)user;
    request_new((nl_channel){.fd = fd}, "control", NULL, NULL, NULL, 0);
}

static void on_accept_error(struct evconnlistener *from, void *user)
{
    (void)user;
    const char *reason = strerror(errno);
    evconnlistener_disable(from);
    wait_for_descriptors(reason);
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    accepted = 0;
    bool free = has_descriptors();
    client_entry *silent = free || !may_displace() ? NULL : client_table_find_silent(clients, nl_monotonic_ns());
    if (silent != NULL)
        close_silent_client(silent, "?");
    if (free || silent != NULL)
        accepting_enable(true);
    else
        wait_for_descriptors(NULL);
}

static struct evconnlistener *listen_to(evconnlistener_cb callback, int fd)
{
    struct evconnlistener *l =
        nl_memory_check(evconnlistener_new(server_base(), callback, NULL, LEV_OPT_CLOSE_ON_EXEC, 0, fd));
    evconnlistener_set_error_cb(l, on_accept_error);
    return l;
}

void accepting_start(listener *opened, size_t count, const listener *for_control)
{
    const settings *s = server_settings();
    sockets = opened;
    socket_count = count;
    client_descriptors = client_table_reserve_files(s->max_connections, OWN_DESCRIPTORS);
    clients = nl_memory_check(client_table_new());
    listeners = nl_memory_check(calloc(count + 1, sizeof *listeners));
    again = server_new_event(-1, 0, on_again, NULL);
    event_priority_set(again, SERVER_PRIORITY_TURN);
    client_table_set_limits(clients, s->max_connections, s->max_per_address);
    if (for_control != NULL)
        control = listen_to(on_control, for_control->fd);
}

void accepting_listen(void)
{
    for (size_t i = 0; i < socket_count; i++) {
        nl_write(server_log(), NL_USAGE, "Netlogd.Listen", "URL=%s", sockets[i].name);
        if (sockets[i].datagrams)
            datagrams_new(&sockets[i]);
        else
            listeners[i] = listen_to(on_accept, sockets[i].fd);
    }
}

/* ---- end ---- */

static bool is_inherited(size_t i)
{
    static const char inherited[] = "inherited:";
    return strncasecmp(sockets[i].asked->url, inherited, sizeof inherited - 1) == 0;
}

void accepting_take_waiting(void)
{
    for (size_t i = 0; i < socket_count; i++) {
        if (listeners[i] == NULL || is_inherited(i))
            continue;
        for (int left = WAITING_MAX; left > 0; left--) {
            struct sockaddr_storage peer = {0};
            socklen_t size = sizeof peer;
            int fd = accept4(sockets[i].fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
                break;
            if (fd >= 0)
                on_accept(listeners[i], fd, (struct sockaddr *)&peer, (int)size, NULL);
        }
    }
}

void accepting_end(void)
{
    for (size_t i = 0; i < socket_count; i++)
        if (listeners[i] != NULL && !is_inherited(i))
            listener_end(&sockets[i]);
}

void accepting_free(void)
{
    for (size_t i = 0; i < socket_count; i++)
        if (listeners[i] != NULL)
            evconnlistener_free(listeners[i]);
    if (control != NULL)
        evconnlistener_free(control);
    event_free(again);
    free(listeners);
    client_table_free(clients);
}
