/*
 * Implements the part of HTTP/1.1 that Prometheus needs: GET or HEAD of /metrics. The connection closes after the
 * reply.
 *
 * A client that sends slowly or not at all uses a descriptor and 8 KiB of memory. The module closes the connection of
 * such a client after handshake-timeout. At most 64 clients are connected; a new client replaces the oldest client. The
 * module owns the clients. Only the server's thread may call it.
 */
#ifndef NETLOGD_HTTP_H
#define NETLOGD_HTTP_H

#include <event2/buffer.h>

/* A function that appends the body of the reply to `out`. */
typedef void (*http_answer)(struct evbuffer *out);

/*
 * Serves clients that connect to the listening socket fd and that the settings allow. Takes ownership of fd. `answer`
 * writes the metrics in the text format of Prometheus.
 */
void http_start(int fd, http_answer answer);

/* Ends the service, if it was started. */
void http_free(void);

#endif
