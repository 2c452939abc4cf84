/*
 * Checks the Host and Origin headers of an HTTP request, to prevent DNS rebinding.
 *
 * An attacker's web page can make its own name resolve to an address of this host, and then use the rights of loopback.
 * The browser sends that name as Host. Therefore, the server accepts only its own names: localhost, loopback addresses,
 * the address of the socket, this host's names, the names in its certificate, and configured names. If the Origin
 * header shows that a request comes from a page of another origin, the server rejects the request. Any thread may call
 * these functions.
 */
#ifndef NETLOGGER_SERVICE_HTTP_HOST_H
#define NETLOGGER_SERVICE_HTTP_HOST_H

#include "transport/channel.h"

struct sockaddr;

/*
 * Returns 0 if the request is acceptable. Otherwise, returns an HTTP status: 400 if Host is malformed, 421 if Host is
 * not a name of this server, and 403 if Origin is not the host in Host. host and origin are the headers' values, or
 * NULL if a header is missing. Every browser sends Host. `names` is a list of configured names, separated by commas, or
 * NULL. host_name is the name of this host, tls is the listener's TLS state or NULL, and local is the socket's own
 * address.
 */
int http_host_check(const char *host, const char *origin, const char *names, const char *host_name, nl_tls *tls,
                    const struct sockaddr *local);

/* Resolves this host's full name in a thread, because this may take a long time. */
void http_host_look_up(void);

#endif
