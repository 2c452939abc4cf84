/*
 * As much of HTTP/1.1 as Prometheus needs: GET or HEAD of one path, and the connection ends with the answer.
 *
 * Strangers who connect and say nothing, or say it slowly, cost a descriptor and 8 KiB each, for as long as
 * handshake-timeout says in all; and there are no more than 64 of them, for the oldest has to go when another one
 * comes.
 */
#ifndef NETLOGD_HTTP_H
#define NETLOGD_HTTP_H

#include "server.h"

#include <event2/buffer.h>

typedef struct http http;

/* Appends the answer's body to out. */
typedef void (*http_answer)(const server *srv, struct evbuffer *out);

/* Answers on that listening socket, which is taken over, those whom the settings allow. path and type are kept. */
http *http_new(server *srv, int fd, const char *path, const char *type, http_answer answer);
void http_free(http *h); /* NULL is allowed */

#endif
