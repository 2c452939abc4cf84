/*
 * OTLP over gRPC: unary calls of Export in HTTP/2, which libnghttp2 frames. The specification is "gRPC over HTTP2" of
 * the gRPC project. A client begins with HTTP/2 at once (prior knowledge), or selects HTTP/2 with ALPN.
 *
 *   frames -> stream (its headers and its message) -> otlp_client_export -> status in the trailer
 *
 * The session owns the streams. A stream waits in RECEIVING until its message is complete, in COMPLETE until it is
 * exported, and in STORED until the outputs have settled its records. While streams are in STORED, the session answers
 * PING but exports nothing, so `settled` applies to all these streams. The session also does not enlarge the windows of
 * flow control, so that the client sends at most CONNECTION_WINDOW bytes.
 *
 * Memory is limited by STREAMS_MAX, HEADERS_MAX and OTLP_BODY_MAX, and by max-memory for all clients together. A stream
 * that is incomplete for longer than record-timeout is rejected.
 */
#include "config.h"

#include "otlp_session.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "program/encoding.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAMS_MAX = 100,      /* maximum number of concurrent streams of a connection */
    HEADERS_MAX = 16 << 10, /* maximum size of a stream's headers in bytes, counting 32 more bytes for each header (RFC
                               9113, section 6.5.2) */
    HEADER_OVERHEAD = 32,
    STREAM_WINDOW = 1 << 20,
    CONNECTION_WINDOW = 4 << 20,
    FRAME_MAX = 64 << 10,
    PREFIX_SIZE = 5, /* size of a message's prefix, which contains a flag for compression, and the message's length */
    RECORDS_PER_FLUSH = 4096, /* number of records after which the session waits for the outputs */
    SESSION_SIZE = 32 << 10,  /* estimated memory of libnghttp2 for a connection */
    GRPC_INVALID_ARGUMENT = OTLP_INVALID,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_RESOURCE_EXHAUSTED = OTLP_TOO_LARGE,
    GRPC_UNIMPLEMENTED = 12,
};

typedef enum stream_state { STREAM_RECEIVING, STREAM_COMPLETE, STREAM_STORED, STREAM_ANSWERED } stream_state;

typedef struct grpc_stream {
    struct grpc_stream *next, **link;
    int32_t id;
    stream_state state;
    int64_t since_ns;
    size_t headers; /* size of the headers so far, in bytes */
    size_t kept;    /* number of received bytes that have not yet been added to the stream's window */
    bool has_type, unknown_path, unknown_coding;
    bool incomplete; /* the stream was answered before the end of the request */
    otlp_request request;
    nl_buffer body; /* the received message; when the stream is answered, the response */
    size_t sent;    /* number of bytes of the response that were sent */
    otlp_result result;
} grpc_stream;

typedef struct grpc {
    otlp_session base;
    nghttp2_session *http2;
    grpc_stream *streams, **end; /* in the order in which they began */
    size_t kept;                 /* number of received bytes that have not yet been added to the connection's window */
    bool over;                   /* the connection ends, and all further bytes are dropped */
} grpc;

/* ---- responses ---- */

static nghttp2_nv header(const char *name, const char *value, size_t size)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), size,
                        NGHTTP2_NV_FLAG_NONE};
}

/* Appends a value of grpc-message, in which bytes other than printable ASCII and % are escaped. */
static void put_message(nl_buffer *out, const char *message)
{
    for (; *message != '\0'; message++) {
        char text[4];
        bool plain = *message >= ' ' && *message <= '~' && *message != '%';
        int size = snprintf(text, sizeof text, plain ? "%c" : "%%%02X", (unsigned char)*message);
        nl_buffer_append(out, text, (size_t)size);
    }
}

static ssize_t read_response(nghttp2_session *http2, int32_t id, uint8_t *to, size_t size, uint32_t *flags,
                             nghttp2_data_source *source, void *user)
{
    (void)user;
    grpc_stream *s = source->ptr;
    size_t left = s->body.size - s->sent;
    size = size < left ? size : left;
    if (size > 0)
        memcpy(to, s->body.data + s->sent, size);
    s->sent += size;
    if (s->sent < s->body.size)
        return (ssize_t)size;
    nghttp2_nv trailer = header("grpc-status", "0", 1);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return nghttp2_submit_trailer(http2, id, &trailer, 1) == 0 ? (ssize_t)size : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Sends the response of a stored request: a message, and the status in the trailer. */
static void confirm(grpc *g, grpc_stream *s)
{
    nghttp2_nv headers[] = {header(":status", "200", 3), header("content-type", "application/grpc", 16)};
    s->state = STREAM_ANSWERED;
    s->body.size = 0;
    nl_buffer_append(&s->body, "\0\0\0\0\0", PREFIX_SIZE);
    otlp_put_response(&s->request, &s->result, &s->body);
    for (size_t i = 1, size = s->body.size - PREFIX_SIZE; i < PREFIX_SIZE; i++)
        s->body.data[i] = (char)(size >> 8 * (PREFIX_SIZE - 1 - i));
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_response};
    nghttp2_submit_response(g->http2, s->id, headers, 2, &provider);
}

/* Sends an HTTP status without a gRPC status, or the status and message of gRPC. */
static void refuse_with(grpc *g, grpc_stream *s, const char *http_status, const otlp_result *result, int status)
{
    char number[12];
    nl_buffer message = {0}, details = {0}, base64 = {0};
    nghttp2_nv headers[6] = {header(":status", http_status, 3)};
    size_t count = 1;
    if (result != NULL) {
        snprintf(number, sizeof number, "%d", status);
        put_message(&message, result->message);
        headers[count++] = header("content-type", "application/grpc", 16);
        headers[count++] = header("grpc-status", number, strlen(number));
        headers[count++] = header("grpc-message", message.data, message.size);
        if (status == GRPC_UNIMPLEMENTED)
            headers[count++] = header("grpc-accept-encoding", "identity,gzip,zstd", 18);
        if (result->wait_s > 0) {
            otlp_put_response(&s->request, result, &details);
            base64_put(&base64, (nl_string){details.data, details.size});
            headers[count++] = header("grpc-status-details-bin", base64.data, base64.size);
        }
    }
    s->incomplete = s->state == STREAM_RECEIVING;
    s->state = STREAM_ANSWERED;
    nl_buffer_free(&s->body);
    nghttp2_submit_response(g->http2, s->id, headers, count, NULL);
    nl_buffer_free(&message);
    nl_buffer_free(&details);
    nl_buffer_free(&base64);
}

static void refuse_call(grpc *g, grpc_stream *s, int status, const char *message)
{
    otlp_result result = {.message = message};
    refuse_with(g, s, "200", &result, status);
}

static void refuse_too_much(grpc *g, grpc_stream *s)
{
    otlp_result result = {.code = OTLP_UNAVAILABLE, .wait_s = 1, .message = "clients use too much memory"};
    refuse_with(g, s, "200", &result, OTLP_UNAVAILABLE);
}

/* ---- the headers ---- */

static bool is_value(nl_string value, const char *text)
{
    return value.size == strlen(text) && memcmp(value.data, text, value.size) == 0;
}

static void take_path(grpc_stream *s, nl_string path)
{
    static const char *const paths[] = {[OTLP_TRACES] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                                        [OTLP_LOGS] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
                                        [OTLP_METRICS] =
                                            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"};
    s->unknown_path = true;
    for (otlp_signal i = 0; i < OTLP_SIGNAL_COUNT; i++)
        if (is_value(path, paths[i])) {
            s->request.signal = i;
            s->unknown_path = false;
        }
}

static void take_coding(grpc_stream *s, nl_string value)
{
    static const char *const codings[] = {[OTLP_IDENTITY] = "identity", [OTLP_GZIP] = "gzip", [OTLP_ZSTD] = "zstd"};
    s->unknown_coding = true;
    for (otlp_coding i = OTLP_IDENTITY; i <= OTLP_ZSTD; i++)
        if (is_value(value, codings[i])) {
            s->request.coding = i;
            s->unknown_coding = false;
        }
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
                     const uint8_t *data, size_t size, uint8_t flags, void *user)
{
    (void)flags, (void)user;
    grpc_stream *s = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    nl_string key = {(const char *)name, name_size}, value = {(const char *)data, size};
    if (s == NULL)
        return 0;
    s->headers += name_size + size + HEADER_OVERHEAD;
    if (s->headers > HEADERS_MAX)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (is_value(key, ":path"))
        take_path(s, value);
    else if (is_value(key, "content-type"))
        s->has_type = is_value(value, "application/grpc") || is_value(value, "application/grpc+proto");
    else if (is_value(key, "grpc-encoding"))
        take_coding(s, value);
    return 0;
}

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    grpc *g = user;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    grpc_stream *s = nl_memory_check(calloc(1, sizeof *s));
    s->id = frame->hd.stream_id;
    s->since_ns = nl_monotonic_ns();
    s->link = g->end;
    *g->end = s;
    g->end = &s->next;
    return nghttp2_session_set_stream_user_data(http2, s->id, s);
}

/* ---- the message ---- */

/* Returns the length that the prefix of a message contains. */
static size_t message_size(const grpc_stream *s)
{
    size_t size = 0;
    for (int i = 1; i < PREFIX_SIZE; i++)
        size = size << 8 | (unsigned char)s->body.data[i];
    return size;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data, size_t size, void *user)
{
    (void)flags;
    grpc *g = user;
    grpc_stream *s = nghttp2_session_get_stream_user_data(http2, id);
    g->kept += size;
    if (s == NULL || s->state != STREAM_RECEIVING)
        return 0;
    s->kept += size;
    if (otlp_client_is_too_much(g->base.client, g->base.kind->held(&g->base) + size)) {
        refuse_too_much(g, s);
        return 0;
    }
    nl_buffer_append(&s->body, data, size);
    if (s->body.size >= PREFIX_SIZE && message_size(s) > OTLP_BODY_MAX)
        refuse_call(g, s, GRPC_RESOURCE_EXHAUSTED, "the request is larger than 16 MiB");
    else if (s->body.size >= PREFIX_SIZE && s->body.size - PREFIX_SIZE > message_size(s))
        refuse_call(g, s, GRPC_INVALID_ARGUMENT, "a call must have 1 message");
    return 0;
}

static int on_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    grpc *g = user;
    grpc_stream *s = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (s == NULL || s->state != STREAM_RECEIVING)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        if (!s->has_type)
            refuse_with(g, s, "415", NULL, 0);
        else if (s->unknown_path)
            refuse_call(g, s, GRPC_UNIMPLEMENTED,
                        "netlogd implements Export of TraceService, LogsService and MetricsService");
        else if (s->unknown_coding)
            refuse_call(g, s, GRPC_UNIMPLEMENTED, "unsupported compression; use gzip or zstd");
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && s->state == STREAM_RECEIVING)
        s->state = STREAM_COMPLETE;
    return 0;
}

/* Resets a stream whose response was sent before the end of the request (RFC 9113, section 8.1). */
static int on_frame_sent(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    (void)user;
    grpc_stream *s = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (s != NULL && s->incomplete && frame->hd.type == NGHTTP2_HEADERS)
        return nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *http2, int32_t id, uint32_t code, void *user)
{
    (void)code;
    grpc *g = user;
    grpc_stream *s = nghttp2_session_get_stream_user_data(http2, id);
    if (s == NULL)
        return 0;
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    else
        g->end = s->link;
    nl_buffer_free(&s->body);
    free(s);
    return 0;
}

static uint64_t export_stream(grpc *g, grpc_stream *s)
{
    bool whole = s->body.size >= PREFIX_SIZE && s->body.size - PREFIX_SIZE == message_size(s);
    if (!whole || (unsigned char)s->body.data[0] > 1) {
        refuse_call(g, s, GRPC_INVALID_ARGUMENT, "the message is incomplete");
        return 0;
    }
    if (s->body.data[0] == 0)
        s->request.coding = OTLP_IDENTITY;
    s->result = otlp_client_export(g->base.client, &s->request,
                                   (nl_string){s->body.data + PREFIX_SIZE, s->body.size - PREFIX_SIZE});
    nl_buffer_free(&s->body);
    if (s->result.code != OTLP_OK)
        refuse_with(g, s, "200", &s->result, (int)s->result.code);
    else if (s->result.accepted == 0)
        confirm(g, s);
    else
        s->state = STREAM_STORED;
    return s->result.records;
}

/* ---- the session ---- */

static void grpc_end(grpc *g)
{
    if (!g->over)
        otlp_client_end(g->base.client);
    g->over = true;
}

static void grpc_send(grpc *g)
{
    const uint8_t *data;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(g->http2, &data)) > 0)
        otlp_client_send(g->base.client, (nl_string){(const char *)data, (size_t)size});
    if (size == NGHTTP2_ERR_NOMEM)
        nl_memory_failed();
    if (size < 0 || (!nghttp2_session_want_read(g->http2) && !nghttp2_session_want_write(g->http2)))
        grpc_end(g);
}

/* Enlarges the windows of flow control by the bytes that were received. */
static void enlarge_windows(grpc *g)
{
    if (g->kept > 0)
        nghttp2_session_consume_connection(g->http2, g->kept);
    g->kept = 0;
    for (grpc_stream *s = g->streams; s != NULL; s = s->next) {
        if (s->kept > 0)
            nghttp2_session_consume_stream(g->http2, s->id, s->kept);
        s->kept = 0;
    }
}

static void grpc_open(grpc *g)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX},
    };
    nghttp2_session_callbacks *callbacks;
    g->end = &g->streams;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        nl_memory_failed();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option *options;
    if (nghttp2_option_new(&options) != 0)
        nl_memory_failed();
    nghttp2_option_set_no_auto_window_update(options, 1);
    int failed = nghttp2_session_server_new2(&g->http2, callbacks, g, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    if (failed ||
        nghttp2_submit_settings(g->http2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof settings[0]) ||
        nghttp2_session_set_local_window_size(g->http2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW))
        nl_memory_failed();
}

static void refuse_late(grpc *g)
{
    for (grpc_stream *s = g->streams; s != NULL; s = s->next)
        if (s->state == STREAM_RECEIVING && otlp_client_is_late(g->base.client, s->since_ns))
            refuse_call(g, s, GRPC_DEADLINE_EXCEEDED, "the request was not complete within record-timeout");
}

/* Exports complete requests until RECORDS_PER_FLUSH records wait to be stored, and sets the session's state. */
static void export_streams(grpc *g)
{
    uint64_t records = 0;
    g->base.midway = g->base.more = false;
    for (grpc_stream *s = g->streams; s != NULL; s = s->next) {
        if (s->state == STREAM_COMPLETE && records < RECORDS_PER_FLUSH)
            records += export_stream(g, s);
        g->base.busy |= s->state == STREAM_STORED;
        g->base.more |= s->state == STREAM_COMPLETE;
        g->base.midway |= s->state == STREAM_RECEIVING;
    }
    g->base.more &= !g->base.busy;
}

static void grpc_feed(otlp_session *session, const char *data, size_t size)
{
    grpc *g = (grpc *)session;
    if (g->http2 == NULL)
        grpc_open(g);
    ssize_t used = size > 0 ? nghttp2_session_mem_recv(g->http2, (const uint8_t *)data, size) : 0;
    if (used == NGHTTP2_ERR_NOMEM)
        nl_memory_failed();
    if (used < 0)
        nghttp2_session_terminate_session(g->http2, NGHTTP2_PROTOCOL_ERROR);
    refuse_late(g);
    bool waits = session->busy;
    if (!waits) {
        export_streams(g);
        enlarge_windows(g);
    }
    grpc_send(g);
    if (used < 0)
        grpc_end(g);
    if (session->busy && !waits)
        otlp_client_await(session->client);
}

static void grpc_settled(otlp_session *session)
{
    grpc *g = (grpc *)session;
    session->busy = session->more = false;
    for (grpc_stream *s = g->streams; s != NULL; s = s->next) {
        if (s->state == STREAM_STORED)
            confirm(g, s);
        session->more |= s->state == STREAM_COMPLETE;
    }
    enlarge_windows(g);
    grpc_send(g);
}

static size_t grpc_held(const otlp_session *session)
{
    const grpc *g = (const grpc *)session;
    size_t held = g->http2 != NULL ? SESSION_SIZE : 0;
    for (const grpc_stream *s = g->streams; s != NULL; s = s->next)
        held += sizeof *s + s->headers + s->body.capacity;
    return held;
}

static void grpc_close(otlp_session *session)
{
    grpc *g = (grpc *)session;
    for (grpc_stream *s = g->streams, *next; s != NULL; s = next) {
        next = s->next;
        nl_buffer_free(&s->body);
        free(s);
    }
    nghttp2_session_del(g->http2); /* it calls no callbacks */
}

const otlp_session_kind otlp_grpc = {
    .size = sizeof(grpc),
    .name = "otlp",
    .reads_while_busy = true,
    .feed = grpc_feed,
    .settled = grpc_settled,
    .held = grpc_held,
    .close = grpc_close,
};
