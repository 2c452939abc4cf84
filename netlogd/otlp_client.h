/*
 * Clients of OTLP listeners (otlp:// and otlp+http://). A client's bytes go from its socket to its session
 * (otlp_session.h), which passes whole requests to otlp_export.c. The session responds when the outputs have settled
 * the records of the request, so the client may drop the request after the response.
 *
 * While an output cannot be written, or while incomplete requests use too much memory, netlogd rejects requests, and
 * clients try again. The module owns the list of clients and their incomplete requests. Only the server's thread may
 * call it.
 */
#ifndef NETLOGD_OTLP_CLIENT_H
#define NETLOGD_OTLP_CLIENT_H

#include "request.h"
#include "service/listener.h"

/* Creates a client from fd, which the listener `at` accepted. Takes ownership of fd. */
void otlp_client_new(int fd, const listener *at, const struct sockaddr *peer);

/* Called after the outputs have settled all records. Saves the known spans, and responds to the waiting requests. */
void otlp_clients_settled(void);

/* Closes the clients that have exceeded a time limit. `now_ns` is nl_monotonic_ns. Called every second. */
void otlp_clients_check_time(int64_t now_ns);

/* Closes the clients that may no longer connect. */
void otlp_clients_settings_changed(void);

/* Appends a record for each client to the reply to a request. */
void otlp_clients_describe(request *r);

/* Returns the number of bytes of memory that incomplete requests use. */
size_t otlp_clients_held(void);

void otlp_clients_close(void);

#endif
