/* HTTP/1.1 GET requests with W3C Trace Context headers. Each connection has one request and its own thread. */
#ifndef NETLOGGER_EXAMPLES_HTTP_H
#define NETLOGGER_EXAMPLES_HTTP_H

#include <netlogger.h>

enum { HTTP_BODY_SIZE = 4096 };

typedef struct http_request {
    char path[256];
    nl_context caller; /* from the traceparent header; empty if the header is missing or invalid */
    char tracestate[NL_TRACESTATE_SIZE];
} http_request;

/* Answers a request: writes the body as text, and returns the HTTP status. Any thread may call this function. */
typedef int http_handler(const http_request *request, char body[HTTP_BODY_SIZE]);

/* Listens on [ADDRESS:]PORT (0: a free port), prints the port, and serves until SIGTERM. Returns the exit status. */
int http_serve(const char *server, http_handler *handler);

/*
 * Sends GET path to the server [ADDRESS:]PORT, with the thread's current context and the tracestate. Returns the HTTP
 * status, or 0 on failure or after timeout_ms (0: no limit). `body` is NUL-terminated.
 */
int http_get(const char *server, int timeout_ms, const char *path, const char *tracestate, char body[HTTP_BODY_SIZE]);

#endif
