/*
 * Manages the HTTP connections of an agent. The module rejects clients that may not connect, and enforces the maximum
 * number of connections and the time limit for each request.
 *
 * libevent's HTTP server itself accepts connections. http_server.c passes the bufferevent of each connection to this
 * module, which checks the connection before libevent reads a byte. To close a connection, the module shuts down its
 * socket, and libevent then releases the connection. The module holds a reference to each bufferevent. A bufferevent
 * without callbacks shows that libevent has released the connection. All connections are in one table
 * (service/client_table.h).
 */
#ifndef NLAGENT_HTTP_CLIENTS_H
#define NLAGENT_HTTP_CLIENTS_H

#include "agent/agent.h"

#include <sys/socket.h>

struct bufferevent;
struct evhttp_request;

typedef struct http_clients http_clients;

/*
 * Returns whether a client may connect from an address. If `established` is not NULL, returns whether this existing
 * connection may continue after a change of the settings.
 */
typedef bool (*http_clients_allows)(const void *user, const struct sockaddr *peer, struct bufferevent *established);

http_clients *http_clients_new(agent *a);

/* Call this function after freeing the HTTP servers. `all` may be NULL. */
void http_clients_free(http_clients *all);

/* Applies the agent's limits. */
void http_clients_limits_changed(http_clients *all);

/* Closes the connections that the new networks no longer allow. */
void http_clients_networks_changed(http_clients *all);

/* Begins to watch a connection, and checks the connection as soon as it has a socket. */
void http_clients_watch(http_clients *all, struct bufferevent *bytes, http_clients_allows allows, const void *user);

/* Suspends the time limit of a request's connection until the reply is sent. Call this function when the request has
 * arrived completely. */
void http_clients_request(http_clients *all, struct evhttp_request *request);

/* Closes connections that have exceeded the time limit, and frees released connections. Call this function every
 * second. */
void http_clients_sweep(http_clients *all);

#endif
