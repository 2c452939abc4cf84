/*
 * Whether an HTTP request was meant for this server, by its Host and Origin headers.
 *
 * A page in somebody's browser can have a name of its own resolve to an address of this machine (DNS rebinding), and
 * would then ask with the rights of loopback. The browser sends that name as Host, so a server answers only to names
 * that it has: localhost, the address on which the request came, this host's names, the names in its certificate, and
 * names that the administrator gave it. A page of another origin is refused by its Origin header.
 */
#ifndef NETLOGGER_SERVICE_HTTP_HOST_H
#define NETLOGGER_SERVICE_HTTP_HOST_H

#include "transport/channel.h"

struct sockaddr;

/*
 * Returns 0 when the request may be answered, or the HTTP status to refuse it with: 400, 403 or 421. host and origin
 * are the headers' values, NULL when missing: no browser leaves Host out. names is what the administrator gave, with
 * commas between, or NULL; host_name is what this host is called; tls is the listener's, or NULL; local is the socket's
 * own address.
 */
int http_host_check(const char *host, const char *origin, const char *names, const char *host_name, nl_tls *tls,
                    const struct sockaddr *local);

/* Starts to look up this host's name in full, in a thread, because that can take long where no DNS server answers. */
void http_host_look_up(void);

#endif
