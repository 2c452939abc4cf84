/*
 * The HTTP connections of an agent: who may connect, how many connections there may be, and the deadline of a request.
 *
 * libevent's HTTP server accepts connections itself. This module learns of each one when libevent asks for its
 * bufferevent, and checks it before libevent reads a byte. To close a connection, the module shuts down the socket,
 * which libevent notices. The module holds a reference to each bufferevent; libevent has released a connection when the
 * callbacks of its bufferevent are gone. All connections are in one table (service/client_table.h).
 */
#ifndef NLAGENT_HTTP_CLIENTS_H
#define NLAGENT_HTTP_CLIENTS_H

#include "agent/agent.h"

#include <sys/socket.h>

struct bufferevent;
struct evhttp_request;

typedef struct http_clients http_clients;

/*
 * Returns whether a client with that address may connect (established is NULL), or may stay connected after a change of
 * the settings.
 */
typedef bool (*http_clients_allows)(const void *user, const struct sockaddr *peer, struct bufferevent *established);

http_clients *http_clients_new(agent *a);

/* Call it after the HTTP servers have been freed. NULL is allowed. */
void http_clients_free(http_clients *all);

/* Applies the agent's limits. */
void http_clients_limits_changed(http_clients *all);

/* Closes the connections that are not allowed any more. */
void http_clients_networks_changed(http_clients *all);

/* Checks a connection when it has its socket, and watches it from then on. */
void http_clients_watch(http_clients *all, struct bufferevent *bytes, http_clients_allows allows, const void *user);

/* Notes that a request is complete: its connection has no deadline until the reply is sent. */
void http_clients_request(http_clients *all, struct evhttp_request *request);

/* Closes connections that missed the deadline, and frees released ones. Call it every second. */
void http_clients_sweep(http_clients *all);

#endif
