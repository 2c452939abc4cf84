/*
 * The HTTP connections of an agent: who may connect, how many, and until when a request has to be there.
 *
 * Libevent's HTTP server accepts connections by itself. This module gets to know each one when libevent asks for its
 * bufferevent, checks it before any byte of it is read, and closes it by shutting its socket down, which libevent then
 * notices. It keeps a reference to each bufferevent, and learns by the callbacks that are gone that libevent has let
 * go of it. All connections of an agent, of every listener, are in one table (service/client_table.h).
 */
#ifndef NLAGENT_HTTP_CLIENTS_H
#define NLAGENT_HTTP_CLIENTS_H

#include "agent/agent.h"

#include <sys/socket.h>

struct bufferevent;
struct evhttp_request;

typedef struct http_clients http_clients;

/*
 * Whether a client of that address may connect (established is NULL), or may stay connected after a change of the
 * settings.
 */
typedef bool (*http_clients_allows)(const void *user, const struct sockaddr *peer, struct bufferevent *established);

http_clients *http_clients_new(agent *a);

/* Call it after the HTTP servers have been freed; NULL is allowed. */
void http_clients_free(http_clients *all);

/* Applies the limits that the agent has now. */
void http_clients_limits_changed(http_clients *all);

/* Closes the connections that are not allowed any more. */
void http_clients_networks_changed(http_clients *all);

/* Checks a connection that is accepted now, once it has its socket, and looks after it from then on. */
void http_clients_watch(http_clients *all, struct bufferevent *bytes, http_clients_allows allows, const void *user);

/* Notes that a request is there: until it is answered, its connection has no deadline. */
void http_clients_request(http_clients *all, struct evhttp_request *request);

/* Closes connections that are late, and forgets those that are gone; call it every second. */
void http_clients_sweep(http_clients *all);

#endif
