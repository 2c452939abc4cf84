/*
 * The HTTP server of nlv --serve, on libmicrohttpd. On addresses other than loopback, the server requires TLS. For
 * every answer except the page itself, the server requires the token, which the page sends as "Authorization: Bearer
 * TOKEN". The server rejects requests for other host names (DNS rebinding) and from pages of other origins. The server
 * limits the number of connections, the size of headers and the size of pictures, and reads no bodies. libmicrohttpd's
 * threads call views.h and, for paths that begin with JAEGER_PATH, jaeger.h.
 */
#ifndef NLV_SERVE_SERVER_H
#define NLV_SERVE_SERVER_H

#include "serve/jaeger.h"
#include "serve/views.h"

typedef struct server server;

/*
 * Listens on [http://]HOST[:PORT] or https://HOST[:PORT]?cert=FILE&key=FILE; "" selects the default address. With
 * token=FILE, the token is the first line of FILE instead of a random number. Answers requests with `v` and `j`.
 * Returns NULL and sets the error on failure.
 */
server *server_start(const char *address, views *v, jaeger *j);
void server_stop(server *s);

/* Returns the URL of the page, which contains the token. */
const char *server_url(const server *s);

#endif
