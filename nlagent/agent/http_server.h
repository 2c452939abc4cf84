/*
 * HTTP: SOAP at /soap, streams at /stream?subscription=ID&format=ulm|bp|nlb|xml, and the WSDL at /nlagent.wsdl (and
 * /soap?wsdl). In libevent's loop, plain or within TLS.
 */
#ifndef NLAGENT_HTTP_SERVER_H
#define NLAGENT_HTTP_SERVER_H

#include "agent/agent.h"
#include "service/listener.h"
#include "service/network.h"

enum { HTTP_BODY_MAX = 256 << 10, HTTP_DEFAULT_PORT = 14831 };

typedef struct http_server http_server;

/* Serves on a socket, which is taken over. wsdl and schema are the texts of these. */
http_server *http_server_new(agent *a, const listener *l, const char *wsdl, const char *schema,
                             const network_list *allow);
void http_server_free(http_server *s);

/* The same socket, with other certificates (l->asked) and networks from now on: connections that are there go on. */
void http_server_change(http_server *s, const listener *l, const network_list *allow);

/* ---- for service.c: a request that is being answered ---- */

typedef struct exchange exchange;

/* Answers, with a fault or not, and forgets it. */
void exchange_answer(exchange *x, const nl_buffer *message, bool fault);

/* It is answered later; on_gone is called when its client is gone by then, and it is forgotten. */
void exchange_keep(exchange *x, void (*on_gone)(void *user), void *user);

#endif
