/*
 * The part of HTTP/1.1 that Prometheus needs: GET or HEAD of one path, after which the connection closes.
 *
 * A client that sends nothing, or sends slowly, costs a descriptor and 8 KiB for at most handshake-timeout. At most 64
 * clients are connected; a further client replaces the oldest. The module owns the clients. The server's thread only.
 */
#ifndef NETLOGD_HTTP_H
#define NETLOGD_HTTP_H

#include <event2/buffer.h>

/* A function that appends the body of the reply to out. */
typedef void (*http_answer)(struct evbuffer *out);

/*
 * Serves the clients that the settings allow on the listening socket fd, and takes ownership of it. path is the served
 * path and type its Content-Type; both must remain valid.
 */
void http_start(int fd, const char *path, const char *type, http_answer answer);

/* Ends the service, if it was started. */
void http_free(void);

#endif
