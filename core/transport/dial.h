/*
 * Connecting to a collector that a URL names: over TCP, plain or within TLS, or a Unix stream socket. Nothing here
 * waits longer than it is told to, but for the system's resolver, which knows no limit but its own (resolv.conf(5)):
 * a name, other than an address, may take that long. One thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_DIAL_H
#define NETLOGGER_TRANSPORT_DIAL_H

#include <netlogger.h>

#include "transport/channel.h"
#include "transport/url.h"

/* Whom to connect to, and with which certificates. Channels that it has connected must not outlast it. */
typedef struct nl_dialer nl_dialer;

/*
 * For url, of which it keeps a copy of what it needs; of its options those of TLS are looked at. Connects nothing yet.
 * NULL, with the reason in nl_error_message(), when a certificate cannot be used. To be freed with nl_dialer_free.
 */
nl_dialer *nl_dialer_new(const nl_url *url);
void nl_dialer_free(nl_dialer *dialer); /* NULL is allowed */

/* The options of an x-netlogs URL that are about TLS. The dialer reads them itself. */
typedef struct nl_dialer_options {
    const char *ca, *cert, *key, *name; /* NULL: not given */
} nl_dialer_options;

extern const nl_option nl_dialer_rows[];

/*
 * Connects channel, which must not be connected, without blocking from then on; within TLS it is ready for data. After
 * timeout_ms at the latest it is given up. NL_FAILED with the reason, the peer's name in it, in nl_error_message().
 */
nl_status nl_dialer_connect(const nl_dialer *dialer, int timeout_ms, nl_channel *channel);

/* What failed, "send to" for example, and the peer's name, in front of the error message. NL_FAILED. */
nl_status nl_dialer_prepend(const nl_dialer *dialer, const char *what);

/* The same with the words for errno why, of a channel that it has connected, as the message. */
nl_status nl_dialer_cannot(const nl_dialer *dialer, const char *what, const nl_channel *channel, int error);

/* ---- waiting ---- */

/* When timeout_ms will be over, on the monotonic clock. */
int64_t nl_deadline_ns(int timeout_ms);

/* Waits until fd is ready for what (POLLIN, POLLOUT), or the deadline. Returns 0 or an errno: ETIMEDOUT for one. */
int nl_wait_ready(int fd, short what, int64_t deadline_ns);

#endif
