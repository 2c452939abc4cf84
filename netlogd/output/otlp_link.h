/*
 * A connection to a receiver of OTLP, over gRPC or over HTTP/1.1, and the meaning of the receiver's responses
 * (opentelemetry.io, "OTLP Specification"):
 *
 *   stored       gRPC OK, HTTP 2xx; some items may be rejected (partial success)
 *   rejected     the receiver can never store the request, which must not be sent again: gRPC INVALID_ARGUMENT and
 *                others, HTTP 400, 413 and 422
 *   failed       everything else: the request is sent again later, and not before the time that the receiver names
 *
 * Requests of at least OTLP_LINK_GZIP_MIN bytes are compressed with gzip, which every receiver must support. If a
 * receiver rejects a compressed request, the module sends the request again without compression. If the receiver then
 * accepts it, the module compresses no more requests.
 *
 * The specification also forbids repeating requests with other errors, such as a wrong path or missing permission. The
 * module repeats these requests nevertheless. Such errors are errors in the configuration, and the module would
 * otherwise drop all records until a user corrects the configuration. Only one thread at a time may use a link. Its
 * functions wait for up to OTLP_LINK_TIMEOUT_MS.
 */
#ifndef NETLOGD_OUTPUT_OTLP_LINK_H
#define NETLOGD_OUTPUT_OTLP_LINK_H

#include "transport/url.h"

#include <netlogger.h>

enum { OTLP_LINK_TIMEOUT_MS = 10000, OTLP_LINK_GZIP_MIN = 1024 };

typedef struct otlp_link otlp_link;

typedef struct otlp_reply {
    bool refused;      /* the receiver has rejected the whole request */
    uint64_t rejected; /* number of rejected items, unless `refused` is set */
    bool unsupported;  /* after a failure: the receiver may not support the compression */
    unsigned wait_ms;  /* after a failure: time after which the request may be sent again */
    char message[200]; /* the receiver's reason */
} otlp_reply;

/* Connects when the first request is sent. On failure, sets the error and returns NULL. */
otlp_link *otlp_link_new(const nl_url *url);
void otlp_link_free(otlp_link *l); /* NULL is allowed */

/*
 * Sends an ExportTraceServiceRequest (if `spans` is true) or an ExportLogsServiceRequest in protobuf, and waits for the
 * response. Sets *reply. If the request must be sent again, sets the error and returns NL_FAILED.
 */
nl_status otlp_link_send(otlp_link *l, bool spans, nl_string request, otlp_reply *reply);

#endif
