/*
 * The HTTP server, with or without TLS, which runs in libevent's loop. The server has these paths:
 * - /soap: SOAP
 * - /stream?subscription=ID&format=ulm|bp|logfmt|nlb|xml: deliveries
 * - /nlagent.wsdl and /soap?wsdl: the WSDL
 * - /netlogger.xsd: the XML schema of records
 */
#ifndef NLAGENT_HTTP_SERVER_H
#define NLAGENT_HTTP_SERVER_H

#include "agent/agent.h"
#include "service/listener.h"
#include "service/network.h"

enum { HTTP_BODY_MAX = 256 << 10 };

typedef struct http_server http_server;

/* Starts and returns a server on the listener's socket, and takes ownership of the socket. The other arguments must
 * remain valid until http_server_free. */
http_server *http_server_new(agent *a, const listener *l, const char *wsdl, const char *schema,
                             const network_list *allow);
void http_server_free(http_server *s);

/* Applies new certificates (l->asked) and networks to new connections. */
void http_server_change(http_server *s, const listener *l, const network_list *allow);

/* ---- for service.c: a request whose reply is not complete ---- */

typedef struct exchange exchange;

/* Sends the reply and frees the exchange. */
void exchange_answer(exchange *x, const nl_buffer *message, bool fault);

/*
 * Defers the reply. If the client disconnects before exchange_answer, the server calls on_gone and frees the exchange.
 */
void exchange_keep(exchange *x, void (*on_gone)(void *user), void *user);

#endif
