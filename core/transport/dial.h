/*
 * Connects to a collector over TCP, TLS or a Unix stream socket. Functions wait no longer than their timeout, except
 * while the resolver looks up a host name (resolv.conf(5)). Only one thread at a time may use a dialer.
 */
#ifndef NETLOGGER_TRANSPORT_DIAL_H
#define NETLOGGER_TRANSPORT_DIAL_H

#include <netlogger.h>

#include "transport/channel.h"
#include "transport/url.h"

/* A collector's address and the certificates to use. Channels must not outlive the dialer that connected them. */
typedef struct nl_dialer nl_dialer;

/*
 * Creates a dialer for a URL and its TLS options, without connecting. `program` is the name of the server program, for
 * messages; it must be in static storage. Returns NULL on failure, for example if a certificate cannot be used. The
 * caller frees the dialer.
 */
nl_dialer *nl_dialer_new(const nl_url *url, const char *program);
void nl_dialer_free(nl_dialer *dialer); /* NULL is allowed */

/* Returns whether the dialer uses TLS: for x-netlogs, and for OTLP if the URL has an option of nl_dialer_rows. */
bool nl_dialer_is_secure(const nl_dialer *dialer);

/* The TLS options of a URL. */
typedef struct nl_dialer_options {
    const char *ca, *cert, *key, *name; /* or NULL */
} nl_dialer_options;

extern const nl_option nl_dialer_rows[];

/*
 * Connects a channel, which is then non-blocking and, with TLS, ready for data. Takes at most timeout_ms. Sets
 * channel->fd to the socket before it connects, so that a child of fork can close it meanwhile. Returns NL_OK or
 * NL_FAILED; the error contains the URL without its options.
 */
nl_status nl_dialer_connect(const nl_dialer *dialer, int timeout_ms, nl_channel *channel);

/* Prepends the URL without its options to the error's message. Returns NL_FAILED. */
nl_status nl_dialer_prepend(const nl_dialer *dialer);

/*
 * Sets the error for an operation on one of this dialer's channels that failed with the errno `error`. `what` is the
 * failed action, such as "send", or NULL. Returns NL_FAILED.
 */
nl_status nl_dialer_cannot(const nl_dialer *dialer, const char *what, const nl_channel *channel, int error);

/* ---- connecting and waiting ---- */

/*
 * Connects a non-blocking socket over TCP. Returns the socket, or -1 with the error and errno set. errno is 0 if the
 * host name cannot be resolved.
 */
int nl_tcp_connect(const char *host, const char *port, int64_t deadline_ns);

/* Returns the time timeout_ms milliseconds from now, in nanoseconds by the monotonic clock. */
int64_t nl_deadline_ns(int timeout_ms);

/* Waits until fd is ready for POLLIN or POLLOUT, or the deadline. Returns 0 or an errno, such as ETIMEDOUT. */
int nl_wait_ready(int fd, short what, int64_t deadline_ns);

#endif
