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
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTED_AT_ONCE = 64,
    RETRY_MS = 250,       /* until it is looked again whether there are descriptors */
    TELL_SECONDS = 10,    /* the least between two times that it is said that there are none */
    LEFT_BEHIND = 4096,   /* clients of a place that are taken at the end at most: more than the kernel lets wait */
    OWN_DESCRIPTORS = 64, /* which clients leave: files are rotated and certificates read, however many they are */
};

static const listener *socket_of(const server *srv, const struct evconnlistener *accepting)
{
    size_t i = 0;
    while (srv->listeners[i] != accepting)
        i++;
    return &srv->sockets[i];
}

/* From this machine, or with a certificate to show when no networks are listed; those hold for all. */
bool accepting_allows(const server *srv, const struct sockaddr *peer, bool vouched)
{
    if (network_is_local(peer) || (vouched && srv->settings->allow_count == 0))
        return true;
    for (size_t i = 0; i < srv->settings->allow_count; i++)
        if (network_contains(&srv->settings->allow[i], peer))
            return true;
    return false;
}

static bool has_too_many(const server *srv, const char *address)
{
    size_t count = 0, most = srv->settings->max_per_address;
    for (const connection *c = srv->connections; c != NULL && most > 0 && count < most; c = connection_next(c))
        count += connection_is_from(c, address);
    for (const request *r = srv->requests; r != NULL && most > 0 && count < most; r = r->next)
        count += !r->control && listener_is_same_address(r->peer, address);
    return most > 0 && count >= most;
}

/* NULL when the client may connect. */
static const char *why_refused(const server *srv, const struct sockaddr *peer, const listening *asked,
                               const char *address)
{
    if (srv->connection_count >= srv->settings->max_connections)
        return "too many connections";
    if (!accepting_allows(srv, peer, asked->vouched))
        return "not from an allowed network";
    return has_too_many(srv, address) ? "too many connections from its address" : NULL;
}

/*
 * Libevent takes connections as long as there are any: strangers who connect faster than they are turned away would
 * keep those who are connected from being read, and even from being closed. So now and then they have their turn.
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
static void wait_for_descriptors(server *srv, const char *why)
{
    int64_t now_ns = nl_monotonic_ns();
    if (srv->accept_told_ns == 0 || now_ns - srv->accept_told_ns >= TELL_SECONDS * NL_NS_PER_SECOND) {
        program_error("accept: %s; who connects waits until others are gone", why);
        srv->accept_told_ns = now_ns;
    }
    accepting_enable(srv, false);
    struct timeval interval = {.tv_usec = RETRY_MS * 1000};
    event_add(srv->accept_event, &interval);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)size;
    server *srv = user;
    const listening *asked = socket_of(srv, from)->asked;
    srv->counts.connections++;
    give_way(srv, from);
    if (fd + 1 >= srv->client_descriptors)
        wait_for_descriptors(srv, "as many files are open as clients may take");
    char address[80];
    listener_address_text(peer, address, sizeof address);
    const char *why = why_refused(srv, peer, asked, address);
    if (why == NULL) {
        connection_new(srv, fd, asked->tls, peer);
        return;
    }
    srv->counts.refused++;
    server_add(srv, &srv->refused, address, why);
    evutil_closesocket(fd);
}

/* Whoever may open the control socket's file may ask. */
static void on_control(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size, (void)peer;
    request_new(user, (nl_channel){.fd = fd}, "control", true, NULL, 0);
}

static void on_accept_error(struct evconnlistener *from, void *user)
{
    const char *why = strerror(errno);
    evconnlistener_disable(from);
    wait_for_descriptors(user, why);
}

static void on_accept_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    srv->accepted = 0;
    if (!has_descriptors(srv)) {
        wait_for_descriptors(srv, "as many files are open as clients may take");
        return;
    }
    accepting_enable(srv, true);
}

/*
 * Some descriptors are never clients': were an output to find none for its next file, nobody would be read any more,
 * and so nobody be seen to go.
 */
static int descriptors_for_clients(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    rlim_t own = limit.rlim_cur / 4 < OWN_DESCRIPTORS ? limit.rlim_cur / 4 : OWN_DESCRIPTORS;
    return (int)(limit.rlim_cur - own);
}

static struct evconnlistener *listen_to(server *srv, evconnlistener_cb callback, int fd)
{
    struct evconnlistener *l = evconnlistener_new(srv->base, callback, srv, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (l == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    evconnlistener_set_error_cb(l, on_accept_error);
    return l;
}

void accepting_start(server *srv, const listener *control)
{
    srv->client_descriptors = descriptors_for_clients();
    srv->listeners = calloc(srv->listener_count + 1, sizeof *srv->listeners);
    srv->accept_event = event_new(srv->base, -1, 0, on_accept_again, srv);
    if (srv->listeners == NULL || srv->accept_event == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
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
}
