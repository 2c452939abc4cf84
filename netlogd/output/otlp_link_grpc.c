/* Requests of OTLP over gRPC: unary calls in HTTP/2, one at a time, which libnghttp2 frames. */
#include "config.h"

#include "otlp_link_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/encoding.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PREFIX_SIZE = 5, /* size of a message's prefix, which contains a flag for compression, and the message's length */
    RESPONSE_MAX = 1 << 20,
    DETAILS_MAX = 4096,
    PIECE_SIZE = 16 << 10,
    NO_STATUS = -1
};

/* Codes of gRPC. */
enum {
    GRPC_OK = 0,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
};

typedef struct grpc_call {
    nghttp2_session *http2;
    int32_t id; /* of the call's stream */
    nl_string request;
    unsigned char prefix[PREFIX_SIZE];
    size_t sent; /* bytes of the prefix and the request */
    nl_buffer response;
    int http_status, status; /* NO_STATUS: not received */
    otlp_reply *reply;
    bool closed; /* the stream has ended */
} grpc_call;

static ssize_t grpc_read_request(nghttp2_session *http2, int32_t id, uint8_t *to, size_t size, uint32_t *flags,
                                 nghttp2_data_source *source, void *user)
{
    (void)http2, (void)id, (void)user;
    grpc_call *c = source->ptr;
    size_t used = 0;
    while (used < size && c->sent < PREFIX_SIZE)
        to[used++] = c->prefix[c->sent++];
    if (c->sent < PREFIX_SIZE)
        return (ssize_t)used;
    size_t at = c->sent - PREFIX_SIZE, left = c->request.size - at, more = size - used < left ? size - used : left;
    if (more > 0)
        memcpy(to + used, c->request.data + at, more);
    used += more;
    c->sent += more;
    if (c->sent == PREFIX_SIZE + c->request.size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)used;
}

/* Reads grpc-status-details-bin, which is base64 without padding. */
static void grpc_read_details(grpc_call *c, nl_string value)
{
    char text[DETAILS_MAX + 4];
    if (value.size > DETAILS_MAX)
        return;
    memcpy(text, value.data, value.size);
    size_t size = value.size;
    while (size % 4 != 0)
        text[size++] = '=';
    size_t bytes = base64_get((nl_string){text, size}, text);
    if (bytes != SIZE_MAX)
        otlp_link_read_status((nl_string){text, bytes}, c->reply);
}

static bool grpc_is(nl_string name, const char *text)
{
    return name.size == strlen(text) && memcmp(name.data, text, name.size) == 0;
}

static int grpc_number(nl_string value)
{
    int number = 0;
    for (size_t i = 0; i < value.size && i < 4; i++)
        number = value.data[i] >= '0' && value.data[i] <= '9' ? number * 10 + value.data[i] - '0' : GRPC_UNKNOWN;
    return number;
}

static int on_grpc_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name_data,
                          size_t name_size, const uint8_t *data, size_t size, uint8_t flags, void *user)
{
    (void)http2, (void)flags;
    grpc_call *c = user;
    nl_string name = {(const char *)name_data, name_size}, value = {(const char *)data, size};
    if (frame->hd.stream_id != c->id)
        return 0;
    if (grpc_is(name, ":status"))
        c->http_status = grpc_number(value);
    else if (grpc_is(name, "grpc-status"))
        c->status = grpc_number(value);
    else if (grpc_is(name, "grpc-message"))
        otlp_link_note(c->reply, value);
    else if (grpc_is(name, "grpc-status-details-bin"))
        grpc_read_details(c, value);
    return 0;
}

static int on_grpc_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data, size_t size, void *user)
{
    (void)http2, (void)flags;
    grpc_call *c = user;
    if (id != c->id)
        return 0;
    if (c->response.size + size > RESPONSE_MAX)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    nl_buffer_append(&c->response, data, size);
    return 0;
}

static int on_grpc_close(nghttp2_session *http2, int32_t id, uint32_t code, void *user)
{
    (void)http2, (void)code;
    grpc_call *c = user;
    c->closed = c->closed || id == c->id;
    return 0;
}

static void grpc_begin(otlp_link *l)
{
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    grpc_call *c = nl_memory_check(calloc(1, sizeof *c));
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        nl_memory_failed();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_grpc_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_grpc_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_grpc_close);
    int failed = nghttp2_session_client_new(&c->http2, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    if (failed || nghttp2_submit_settings(c->http2, NGHTTP2_FLAG_NONE, settings, 1) != 0)
        nl_memory_failed();
    l->session = c;
}

static nghttp2_nv grpc_header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static nl_status grpc_submit(const otlp_link *l, grpc_call *c, const otlp_request *request)
{
    const nghttp2_nv headers[] = {
        grpc_header(":method", "POST"),
        grpc_header(":scheme", l->secure ? "https" : "http"),
        grpc_header(":path", request->spans ? "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
                                            : "/opentelemetry.proto.collector.logs.v1.LogsService/Export"),
        grpc_header(":authority", l->authority),
        grpc_header("te", "trailers"),
        grpc_header("content-type", "application/grpc"),
        grpc_header("user-agent", "netlogd"),
        grpc_header("grpc-encoding", "gzip"), /* the last header, which is omitted from other requests */
    };
    size_t header_count = sizeof headers / sizeof headers[0] - !request->gzip;
    nghttp2_data_provider provider = {.source.ptr = c, .read_callback = grpc_read_request};
    c->request = request->body;
    for (size_t i = 0; i < PREFIX_SIZE; i++)
        c->prefix[i] = i == 0 ? request->gzip : (unsigned char)(c->request.size >> 8 * (PREFIX_SIZE - 1 - i));
    c->sent = c->response.size = 0;
    c->status = c->http_status = NO_STATUS;
    c->closed = false;
    c->id = nghttp2_submit_request(c->http2, NULL, headers, header_count, &provider, NULL);
    return c->id > 0 ? NL_OK : nl_error_set(NL_ERROR_PROTOCOL, "%s", nghttp2_strerror(c->id));
}

static nl_status grpc_flush(otlp_link *l, const grpc_call *c)
{
    const uint8_t *data;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(c->http2, &data)) > 0)
        if (otlp_link_write(l, (const char *)data, (size_t)size) != NL_OK)
            return NL_FAILED;
    return size == 0 ? NL_OK : nl_error_set(NL_ERROR_PROTOCOL, "%s", nghttp2_strerror((int)size));
}

static nl_status grpc_run(otlp_link *l, const grpc_call *c)
{
    char piece[PIECE_SIZE];
    size_t got;
    for (;;) {
        if (grpc_flush(l, c) != NL_OK)
            return NL_FAILED;
        if (c->closed)
            return NL_OK;
        if (!nghttp2_session_want_read(c->http2)) {
            nl_error_set(NL_ERROR_PROTOCOL, "the receiver ended the connection");
            return nl_dialer_prepend(l->dialer);
        }
        if (otlp_link_read(l, piece, sizeof piece, &got) != NL_OK)
            return NL_FAILED;
        ssize_t used = nghttp2_session_mem_recv(c->http2, (const uint8_t *)piece, got);
        if (used < 0) {
            nl_error_set(NL_ERROR_PROTOCOL, "the peer does not speak gRPC; check host and port");
            return nl_dialer_prepend(l->dialer);
        }
    }
}

/*
 * Returns NL_OK if the receiver has stored or rejected the request. Returns NL_FAILED if the request must be sent
 * again.
 */
static nl_status grpc_judge(otlp_link *l, const grpc_call *c, bool *failed)
{
    otlp_reply *reply = c->reply;
    char text[32];
    switch (c->status) {
    case GRPC_OK:
        if (c->response.size >= PREFIX_SIZE && c->response.data[0] == 0)
            otlp_link_read_response((nl_string){c->response.data + PREFIX_SIZE, c->response.size - PREFIX_SIZE}, reply);
        return NL_OK;
    case GRPC_RESOURCE_EXHAUSTED: /* if the status names a time to wait, the receiver is overloaded; if not, the request
                                     is too large */
        reply->refused = reply->wait_ms == 0;
        break;
    case GRPC_UNKNOWN:
    case GRPC_INVALID_ARGUMENT:
    case GRPC_ALREADY_EXISTS:
    case GRPC_FAILED_PRECONDITION:
    case GRPC_INTERNAL:
        reply->refused = true;
        break;
    default:
        break;
    }
    if (reply->refused)
        return NL_OK;
    reply->unsupported = c->status == GRPC_UNIMPLEMENTED;
    *failed = c->status != NO_STATUS || c->http_status != NO_STATUS;
    if (c->status != NO_STATUS)
        snprintf(text, sizeof text, "with gRPC status %d", c->status);
    else if (c->http_status != NO_STATUS)
        snprintf(text, sizeof text, "with HTTP status %d", c->http_status);
    else
        snprintf(text, sizeof text, "without a status");
    return otlp_link_fail(l, text, reply);
}

static nl_status grpc_exchange(otlp_link *l, const otlp_request *request, otlp_reply *reply, bool *failed)
{
    if (l->session == NULL)
        grpc_begin(l);
    grpc_call *c = l->session;
    c->reply = reply;
    if (grpc_submit(l, c, request) != NL_OK)
        return nl_dialer_prepend(l->dialer);
    if (grpc_run(l, c) != NL_OK)
        return NL_FAILED;
    return grpc_judge(l, c, failed);
}

static void grpc_end_session(void *session)
{
    grpc_call *c = session;
    nghttp2_session_del(c->http2);
    nl_buffer_free(&c->response);
    free(c);
}

const otlp_protocol otlp_link_grpc = {grpc_exchange, grpc_end_session};
