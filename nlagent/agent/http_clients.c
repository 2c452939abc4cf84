#include "config.h"

#include "agent/http_clients.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "service/client_table.h"
#include "service/listener.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>

#include <inttypes.h>
#include <openssl/ssl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_S = 20, /* time limit in seconds for the TLS handshake and a whole request */
    REJECTED_S = 2, /* time in seconds for a rejected client to read the reply */
    METHOD_SIZE = 8,
};

typedef struct http_client {
    client_entry entry;
    struct http_client *next, **link;
    http_clients *all;
    struct bufferevent *bytes; /* the connection; this module holds a reference */
    http_clients_allows allows;
    const void *user;
    int64_t waiting_ns;  /* time at which the current request began; 0: no request */
    int64_t rejected_ns; /* time of the client's rejection; the module then drops its bytes; 0: not rejected */
    bool busy;           /* the agent is answering a request */
    char method[METHOD_SIZE];
    size_t method_size;
} http_client;

struct http_clients {
    agent *agent;
    client_table *table;
    http_client *clients, **end; /* in the order of their connections; unchecked clients are last */
    http_client *unchecked;      /* the first unchecked client */
    struct event *check;         /* makes libevent's loop call on_check */
    uint64_t rejected;           /* number of clients rejected since the last report */
    uint64_t displaced;          /* number of clients displaced since the last report */
    char reason[120];            /* reason for rejecting the latest rejected client */
    char peer[80];               /* address of the latest rejected client */
    char newcomer[80];           /* address of the latest client that displaced another client */
    int first_descriptor;        /* lowest free descriptor when the module started */
};

/* ---- closing ---- */

static bool is_released(const http_client *c)
{
    bufferevent_data_cb read = NULL, write = NULL;
    bufferevent_event_cb event = NULL;
    void *user = NULL;
    bufferevent_getcb(c->bytes, &read, &write, &event, &user);
    return read == NULL && write == NULL && event == NULL;
}

static void client_free(http_client *c)
{
    http_clients *all = c->all;
    client_table_remove(all->table, &c->entry);
    *c->link = c->next;
    *(c->next != NULL ? &c->next->link : &all->end) = c->link;
    if (all->unchecked == c)
        all->unchecked = c->next;
    bufferevent_decref(c->bytes);
    free(c);
}

/* Removes a client from the table, and shuts down its socket, so that libevent releases the connection. */
static void client_shut_down(http_client *c)
{
    client_table_remove(c->all->table, &c->entry);
    shutdown(bufferevent_getfd(c->bytes), SHUT_RDWR);
    c->waiting_ns = 0;
}

static void close_entry(client_entry *entry)
{
    client_shut_down((http_client *)((char *)entry - offsetof(http_client, entry)));
}

static void free_released(http_clients *all)
{
    for (http_client *c = all->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (is_released(c))
            client_free(c);
    }
}

/* ---- admission ---- */

static bool http_clients_check_network(const http_client *c, const struct sockaddr *peer,
                                       struct bufferevent *established)
{
    return c->allows(c->user, peer, established) || nl_error_false(NL_ERROR_PERMISSION, "not from an allowed network");
}

/* Returns whether the client may connect. If not, sets the error. */
static bool admit(http_client *c, const struct sockaddr *peer)
{
    client_entry *silent;
    http_clients *all = c->all;
    if (!http_clients_check_network(c, peer, NULL))
        return false;
    client_verdict verdict = client_table_admit(all->table, peer, false, nl_monotonic_ns(), &silent);
    if (verdict != CLIENT_ADMITTED) {
        free_released(all);
        verdict = client_table_admit(all->table, peer, false, nl_monotonic_ns(), &silent);
    }
    if (verdict == CLIENT_DISPLACES) {
        listener_address_text(peer, all->newcomer, sizeof all->newcomer);
        all->displaced++;
        silent->close(silent);
    }
    return verdict == CLIENT_ADMITTED || verdict == CLIENT_DISPLACES ||
           nl_error_false(NL_ERROR_LIMIT, "%s", client_verdict_message(verdict));
}

/* Finds the client's address. If the client has disconnected, shuts down the connection and returns false. */
static bool find_peer(http_client *c, struct sockaddr_storage *peer)
{
    int fd = bufferevent_getfd(c->bytes);
    *peer = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (fd >= 0 && getpeername(fd, (struct sockaddr *)peer, &(socklen_t){sizeof *peer}) == 0)
        return true;
    client_shut_down(c);
    return false;
}

/* Closes a client's connection, and stores the current thread's error as the reason for the next report. */
static void reject_client(http_client *c, const struct sockaddr *peer)
{
    http_clients *all = c->all;
    listener_address_text(peer, all->peer, sizeof all->peer);
    all->rejected++;
    all->agent->counts.refused++;
    snprintf(all->reason, sizeof all->reason, "%s", nl_error_message());
    client_shut_down(c);
}

static void check_client(http_client *c)
{
    struct sockaddr_storage peer;
    http_clients *all = c->all;
    if (is_released(c) || !find_peer(c, &peer))
        return; /* the next sweep frees the client */
    if (!admit(c, (struct sockaddr *)&peer)) {
        reject_client(c, (struct sockaddr *)&peer);
        return;
    }
    c->waiting_ns = nl_monotonic_ns();
    c->entry.fd = bufferevent_getfd(c->bytes);
    c->entry.close = close_entry;
    if (!client_table_add(all->table, &c->entry, (struct sockaddr *)&peer, c->waiting_ns))
        nl_memory_failed();
}

/* ---- bytes that are not a valid request ---- */

/* Sends the reply to an invalid method. Does not use libevent, which would wait for more bytes after CONNECT. */
static void reject_method(http_client *c)
{
    static const char malformed[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static const char other[] = "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, POST\r\nContent-Length: 0\r\n"
                                "Connection: close\r\n\r\n";
    size_t letters = 0;
    while (letters < c->method_size && c->method[letters] >= 'A' && c->method[letters] <= 'Z')
        letters++;
    bool is_method = letters > 0 && (letters == c->method_size || c->method[letters] == ' ');
    const char *answer = is_method ? other : malformed;
    int fd = bufferevent_getfd(c->bytes);
    SSL *ssl = bufferevent_openssl_get_ssl(c->bytes);
    if (ssl != NULL)
        SSL_write(ssl, answer, (int)strlen(answer));
    else
        send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    c->rejected_ns = nl_monotonic_ns();
}

/* Returns whether the bytes received so far may begin a GET or POST request. */
static bool begins_request(const http_client *c)
{
    static const char *const known[] = {"GET ", "POST "};
    for (size_t i = 0; i < 2; i++)
        if (strncmp(c->method, known[i], c->method_size < strlen(known[i]) ? c->method_size : strlen(known[i])) == 0)
            return true;
    return false;
}

/* Checks the first bytes of a request before libevent reads them. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *user)
{
    http_client *c = user;
    if (info->n_added == 0 || c->busy)
        return;
    if (c->rejected_ns != 0) {
        evbuffer_drain(input, evbuffer_get_length(input));
        return;
    }
    if (c->waiting_ns == 0)
        c->waiting_ns = nl_monotonic_ns();
    if (c->method_size == METHOD_SIZE)
        return;
    ssize_t got = evbuffer_copyout(input, c->method, METHOD_SIZE);
    c->method_size = got > 0 ? (size_t)got : 0;
    if (begins_request(c))
        return;
    evbuffer_drain(input, evbuffer_get_length(input));
    reject_method(c);
}

/* ---- requests ---- */

static http_client *client_of(http_clients *all, struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *bytes = connection != NULL ? evhttp_connection_get_bufferevent(connection) : NULL;
    http_client *c = all->clients;
    while (c != NULL && c->bytes != bytes)
        c = c->next;
    return c;
}

static void on_answered(struct evhttp_request *request, void *user)
{
    http_client *c = client_of(user, request);
    if (c == NULL)
        return;
    int64_t now_ns = nl_monotonic_ns();
    c->busy = false;
    c->method_size = 0;
    c->waiting_ns = evbuffer_get_length(bufferevent_get_input(c->bytes)) > 0 ? now_ns : 0;
    client_table_heard(c->all->table, &c->entry, now_ns);
}

void http_clients_request(http_clients *all, struct evhttp_request *request)
{
    http_client *c = client_of(all, request);
    if (c == NULL)
        return;
    c->busy = true;
    c->waiting_ns = 0;
    client_table_heard(all->table, &c->entry, nl_monotonic_ns());
    evhttp_request_set_on_complete_cb(request, on_answered, all);
}

/* ---- all clients ---- */

static void on_check(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    http_clients *all = user;
    /* begin again with the first unchecked client, because a check may free other clients */
    for (http_client *c; (c = all->unchecked) != NULL;) {
        all->unchecked = c->next;
        check_client(c);
    }
}

void http_clients_watch(http_clients *all, struct bufferevent *bytes, http_clients_allows allows, const void *user)
{
    http_client *c = nl_memory_check(calloc(1, sizeof *c));
    *c = (http_client){.all = all, .bytes = bytes, .allows = allows, .user = user, .link = all->end};
    c->entry.fd = -1;
    *all->end = c;
    all->end = &c->next;
    if (all->unchecked == NULL)
        all->unchecked = c;
    bufferevent_incref(bytes);
    evbuffer_add_cb(bufferevent_get_input(bytes), on_input, c);
    event_active(all->check, EV_TIMEOUT, 0);
}

static bool is_late(const http_client *c, int64_t now_ns)
{
    if (c->rejected_ns != 0)
        return now_ns - c->rejected_ns >= REJECTED_S * NL_NS_PER_SECOND;
    return !c->busy && c->waiting_ns != 0 && now_ns - c->waiting_ns >= REQUEST_S * NL_NS_PER_SECOND;
}

static void http_clients_report(http_clients *all)
{
    if (all->rejected > 0)
        nl_write(all->agent->log, NL_WARNING, "Nlagentd.Refused", "PEER=%s REASON=%s COUNT=%" PRIu64, all->peer,
                 all->reason, all->rejected);
    if (all->displaced > 0)
        nl_write(all->agent->log, NL_WARNING, "Nlagentd.Displaced", "PEER=%s REASON=%s COUNT=%" PRIu64, all->newcomer,
                 "too many connections; closed a silent connection", all->displaced);
    all->rejected = all->displaced = 0;
}

void http_clients_sweep(http_clients *all)
{
    int64_t now_ns = nl_monotonic_ns();
    free_released(all);
    for (http_client *c = all->clients; c != NULL; c = c->next)
        if (is_late(c, now_ns)) {
            if (c->rejected_ns == 0) {
                snprintf(all->reason, sizeof all->reason, "the request was not complete in time");
                all->rejected++;
            }
            client_shut_down(c);
        }
    http_clients_report(all);
}

void http_clients_limits_changed(http_clients *all)
{
    const agent_limits *limits = &all->agent->limits;
    /* three descriptors for each sensor */
    unsigned own = (unsigned)(limits->sensors < 1000 ? limits->sensors : 1000) * 3 + 64;
    int end = client_table_reserve_files(limits->connections, own);
    size_t files = end > all->first_descriptor ? (size_t)(end - all->first_descriptor) : 1;
    client_table_set_limits(all->table, limits->connections < files ? limits->connections : files, limits->per_address);
}

void http_clients_networks_changed(http_clients *all)
{
    struct sockaddr_storage peer;
    on_check(-1, 0, all);
    for (http_client *c = all->clients; c != NULL; c = c->next)
        if (c->entry.address != NULL && find_peer(c, &peer) &&
            !http_clients_check_network(c, (struct sockaddr *)&peer, c->bytes))
            reject_client(c, (struct sockaddr *)&peer);
    http_clients_report(all);
}

http_clients *http_clients_new(agent *a)
{
    http_clients *all = nl_memory_check(calloc(1, sizeof *all));
    all->table = nl_memory_check(client_table_new());
    all->check = nl_memory_check(event_new(a->base, -1, 0, on_check, all));
    all->agent = a;
    all->end = &all->clients;
    all->first_descriptor = dup(STDERR_FILENO);
    if (all->first_descriptor >= 0)
        close(all->first_descriptor);
    http_clients_limits_changed(all);
    return all;
}

void http_clients_free(http_clients *all)
{
    if (all == NULL)
        return;
    while (all->clients != NULL)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): client_free removes the client from the list */
        client_free(all->clients);
    event_free(all->check);
    client_table_free(all->table);
    free(all);
}
