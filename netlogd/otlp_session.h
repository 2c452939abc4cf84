/*
 * A session implements the protocol of an OTLP client: it converts bytes to requests, and responses to bytes.
 * otlp_client.c owns the connection and calls the session; the session calls the functions at the end of this file.
 */
#ifndef NETLOGD_OTLP_SESSION_H
#define NETLOGD_OTLP_SESSION_H

#include "otlp_export.h"

typedef struct otlp_client otlp_client;

typedef struct otlp_session {
    const struct otlp_session_kind *kind;
    otlp_client *client;
    bool midway; /* a request is incomplete */
    bool busy;   /* a request waits for its response; until then, feed is called only if reads_while_busy is true */
    bool more;   /* the session is not busy, and has bytes of the next request; feed must be called */
} otlp_session;

/* The first member of a kind's structure is an otlp_session. */
typedef struct otlp_session_kind {
    size_t size; /* size of the kind's structure in bytes; it starts as zeros */
    const char *name;
    bool reads_while_busy; /* feed may be called while the session is busy, because the protocol limits the bytes that
                              the client sends */
    /* Accepts bytes from the client. size is 0 if the function is called because of `more`. */
    void (*feed)(otlp_session *s, const char *data, size_t size);
    void (*settled)(otlp_session *s);      /* called after the outputs have settled all records; sends the responses for
                                              which the session has called otlp_client_await */
    size_t (*held)(const otlp_session *s); /* returns the bytes of memory for incomplete requests */
    void (*close)(otlp_session *s);        /* frees the members */
} otlp_session_kind;

extern const otlp_session_kind otlp_http1, otlp_grpc;

/* Stores the content of a request, or rejects it because of a limit. */
otlp_result otlp_client_export(otlp_client *c, const otlp_request *request, nl_string body);

/*
 * Makes the client wait until the outputs have settled all records. The function `settled` may be called during this
 * call.
 */
void otlp_client_await(otlp_client *c);

void otlp_client_send(otlp_client *c, nl_string bytes);

/* Drops further bytes, and ends the connection after the response. */
void otlp_client_end(otlp_client *c);

/* Returns whether a request that began at since_ns (nl_monotonic_ns) has exceeded record-timeout. */
bool otlp_client_is_late(const otlp_client *c, int64_t since_ns);

/* Returns whether clients' requests use so much memory that a request of `more` bytes must be rejected. */
bool otlp_client_is_too_much(const otlp_client *c, size_t more);

#endif
