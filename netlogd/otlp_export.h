/*
 * Stores the content of one OTLP request: decompresses it, converts it to records and passes the records to the
 * outputs. Also writes the body of the response, which depends on the encoding of the request.
 *
 *   body -> decompressed body -> otlp_records_read (convert/otlp_records.h) -> records_put
 *
 * The session (otlp_session.h) of the client calls this module. The session responds to an accepted request only after
 * the outputs have settled its records. Only the server's thread may call it.
 */
#ifndef NETLOGD_OTLP_EXPORT_H
#define NETLOGD_OTLP_EXPORT_H

#include "convert/otlp_records.h"
#include "service/listener.h"

enum {
    OTLP_BODY_MAX = 16 << 20,  /* maximum size of a request in bytes, both compressed and decompressed */
    OTLP_TEXT_MAX = 128 << 20, /* maximum size of the names and values of a request's records in bytes */
};

typedef enum otlp_coding { OTLP_IDENTITY, OTLP_GZIP, OTLP_ZSTD } otlp_coding;

typedef struct otlp_request {
    otlp_signal signal;
    otlp_coding coding;
    bool json;
} otlp_request;

/* The sender of a request. */
typedef struct otlp_sender {
    const char *peer; /* address as text, for messages and limits */
    char host[80];    /* HOST of records that name no host */
    const nl_channel *channel;
    bool hosts_certified; /* HOST must be a name in the certificate of the channel */
} otlp_sender;

/* Result codes of gRPC, which also determine the HTTP status. */
typedef enum otlp_code {
    OTLP_OK = 0,
    OTLP_INVALID = 3,
    OTLP_TOO_LARGE = 8,
    OTLP_UNAVAILABLE = 14, /* the client tries again later */
} otlp_code;

typedef struct otlp_result {
    otlp_code code;
    uint64_t accepted, rejected; /* spans, log records or data points */
    uint64_t records;            /* number of records that were passed to the outputs */
    unsigned wait_s;             /* for OTLP_UNAVAILABLE: seconds after which the client may try again */
    bool throttled;              /* for OTLP_UNAVAILABLE: the client has exceeded its own limits */
    const char *message;         /* reason of a rejection, or NULL */
} otlp_result;

/* Stores the valid items of a request. */
otlp_result otlp_export(const otlp_request *request, nl_string body, const otlp_sender *sender);

/* Appends the body of a response: an ExportXServiceResponse, or the Status of an error. */
void otlp_put_response(const otlp_request *request, const otlp_result *result, nl_buffer *out);

void otlp_export_free(void);

#endif
