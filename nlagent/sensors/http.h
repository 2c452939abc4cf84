/* HTTP GET for sensors, with a timeout and a size limit for the reply. The functions block. Not thread-safe. */
#ifndef NLAGENT_HTTP_H
#define NLAGENT_HTTP_H

#include <netlogger.h>

typedef struct http_place {
    char host[256];
    char port[8];
    char path[512]; /* path with the query; "" for tcp:// */
    bool plain_tcp; /* only connect; send no request */
} http_place;

/* Parses http://HOST[:PORT][/PATH] or tcp://HOST:PORT. Returns false if the URL has neither form. */
bool http_place_read(const char *url, http_place *place);

typedef struct http_reply {
    bool connected;
    int status;        /* 0: no reply */
    double connect_ms; /* duration of connecting in milliseconds */
    double reply_ms;   /* duration of the whole request in milliseconds */
    nl_buffer body;    /* NUL-terminated; owned by the caller, and overwritten by the next call */
} http_reply;

/*
 * Sends a request and reads a reply of at most max_size bytes within timeout_ms. Returns true for a complete reply with
 * any status. Returns false and sets the error on failure.
 */
bool http_get(const http_place *place, int timeout_ms, size_t max_size, http_reply *reply);

#endif
