/* Declarations that otlp_link.c and the two protocols share. */
#ifndef NETLOGD_OUTPUT_OTLP_LINK_INTERNAL_H
#define NETLOGD_OUTPUT_OTLP_LINK_INTERNAL_H

#include "otlp_link.h"
#include "transport/dial.h"

#include <zlib.h>

typedef struct otlp_protocol otlp_protocol;

struct otlp_link {
    const otlp_protocol *protocol;
    nl_dialer *dialer;
    char *authority; /* HOST:PORT */
    bool secure;
    nl_channel channel; /* fd is -1 if there is no connection */
    int64_t deadline_ns;
    void *session; /* state of the protocol for this connection; NULL if there is no connection */
    bool plain;    /* the receiver does not accept compressed requests */
    z_stream z;
    nl_buffer packed; /* the compressed request */
};

typedef struct otlp_request {
    bool spans;
    bool gzip; /* the body is compressed */
    nl_string body;
} otlp_request;

struct otlp_protocol {
    /*
     * Sends a request and waits for its response. Returns NL_FAILED if the request must be sent again. In this case,
     * sets *failed to true if the receiver has responded.
     */
    nl_status (*exchange)(otlp_link *l, const otlp_request *request, otlp_reply *reply, bool *failed);
    void (*close)(void *session);
};

extern const otlp_protocol otlp_link_grpc, otlp_link_http1;

/* Write all bytes, and read at least one byte, before the deadline. On failure, set the error and return NL_FAILED. */
nl_status otlp_link_write(otlp_link *l, const char *data, size_t size);
nl_status otlp_link_read(otlp_link *l, char *data, size_t size, size_t *got);

/* Sets the error to the receiver's status and message. Returns NL_FAILED. */
nl_status otlp_link_fail(otlp_link *l, const char *status, const otlp_reply *reply);

/*
 * Read an ExportXServiceResponse, or a Status whose details may name a time to wait, into *reply. Ignore malformed
 * content.
 */
void otlp_link_read_response(nl_string response, otlp_reply *reply);
void otlp_link_read_status(nl_string status, otlp_reply *reply);

/* Copies a message of the receiver to reply->message. Replaces control characters. */
void otlp_link_note(otlp_reply *reply, nl_string message);

#endif
