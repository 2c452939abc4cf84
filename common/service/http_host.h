/*
 * Checks the Host and Origin headers of an HTTP request, against DNS rebinding.
 *
 * An attacker's web page can make its own name resolve to an address of this host, and then use the rights of loopback.
 * The browser sends that name as Host. A server therefore accepts only its own names: localhost, the address of the
 * socket, this host's names, the names in its certificate, and names that the administrator configured. A page of
 * another origin is rejected by its Origin header. Any thread.
 */
#ifndef NETLOGGER_SERVICE_HTTP_HOST_H
#define NETLOGGER_SERVICE_HTTP_HOST_H

#include "transport/channel.h"

struct sockaddr;

/*
 * Returns 0 if the request is acceptable, else the HTTP status 400, 403 or 421. host and origin are the headers'
 * values, or NULL if missing; every browser sends Host. names: configured names, separated by commas, or NULL.
 * host_name: the name of this host. tls: the listener's TLS state, or NULL. local: the socket's own address.
 */
int http_host_check(const char *host, const char *origin, const char *names, const char *host_name, nl_tls *tls,
                    const struct sockaddr *local);

/* Resolves this host's full name in a thread, because that may take long. */
void http_host_look_up(void);

#endif
