/* One HTTP GET, for sensors that look at servers: within a time, of a bounded answer. */
#ifndef NLAGENT_HTTP_H
#define NLAGENT_HTTP_H

#include <netlogger.h>

typedef struct http_place {
    char host[256];
    char port[8];
    char path[512]; /* with its query; "" when the URL is tcp:// */
    bool plain_tcp; /* connect only */
} http_place;

/* Reads http://HOST[:PORT][/PATH] or tcp://HOST:PORT. False when it is neither. */
bool http_place_read(const char *url, http_place *place);

typedef struct http_answer {
    bool connected;
    int status;        /* 0: it was not asked, or has not answered */
    double connect_ms; /* how long connecting took */
    double answer_ms;  /* and all of it */
    nl_buffer body;    /* NUL-terminated; the caller's, used again by the next call */
} http_answer;

/*
 * Connects, asks and reads the answer, all within timeout_ms, at most most bytes of it. Returns true when all went
 * well, whatever the status; false sets the error.
 */
bool http_get(const http_place *place, int timeout_ms, size_t most, http_answer *answer);

#endif
