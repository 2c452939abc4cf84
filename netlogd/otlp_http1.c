/*
 * OTLP over HTTP/1.1 (RFC 9112): POST of one request at a time, with a length or in chunks, on a connection that may
 * stay open. The session rejects requests from web pages.
 *
 * The session owns the received bytes that are not processed yet, and the content of a request in chunks. Memory is
 * limited by HEAD_MAX and OTLP_BODY_MAX, and by max-memory for all clients together.
 */
#include "config.h"

#include "otlp_session.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MAX = 16 << 10, CHUNK_LINE_MAX = 256, WORD_SIZE = 128 };

typedef enum http1_state { HTTP1_HEAD, HTTP1_BODY, HTTP1_CHUNK_SIZE, HTTP1_CHUNK, HTTP1_TRAILER } http1_state;

typedef struct http1 {
    otlp_session base;
    http1_state state;
    nl_buffer in;
    size_t at;      /* number of processed bytes of `in` */
    nl_buffer body; /* the content of a request in chunks */
    size_t left;    /* bytes of the content or of the current chunk that have not been processed */
    bool chunked, closing;
    bool over; /* the connection ends, and all further bytes are dropped */
    otlp_request request;
    otlp_result result; /* result of the request that waits for its response */
} http1;

/* ---- responses ---- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Bad Request";
}

static void respond(http1 *h, int status, const otlp_result *result)
{
    char head[320], retry[40] = "";
    nl_buffer body = {0}, out = {0};
    otlp_put_response(&h->request, result, &body);
    if (result->wait_s > 0)
        snprintf(retry, sizeof retry, "Retry-After: %u\r\n", result->wait_s);
    snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s%s\r\n", status,
             reason_of(status), h->request.json ? "application/json" : "application/x-protobuf", body.size, retry,
             status == 405 ? "Allow: POST\r\n" : "", h->closing ? "Connection: close\r\n" : "");
    nl_buffer_append(&out, head, strlen(head));
    nl_buffer_append(&out, body.data, body.size);
    otlp_client_send(h->base.client, (nl_string){out.data, out.size});
    nl_buffer_free(&out);
    nl_buffer_free(&body);
    if (h->closing)
        otlp_client_end(h->base.client);
}

/* Rejects a request, and closes the connection because the rest of the request is not read. */
static bool refuse(http1 *h, int status, const char *message)
{
    otlp_result result = {.code = OTLP_INVALID, .message = message};
    h->closing = h->over = true;
    respond(h, status, &result);
    return false;
}

static bool refuse_too_much(http1 *h)
{
    otlp_result result = {.code = OTLP_UNAVAILABLE, .wait_s = 1, .message = "clients use too much memory"};
    h->closing = h->over = true;
    respond(h, 503, &result);
    return false;
}

static int status_of(const otlp_result *result)
{
    switch (result->code) {
    case OTLP_OK:
        return 200;
    case OTLP_TOO_LARGE:
        return 413;
    case OTLP_UNAVAILABLE:
        return result->throttled ? 429 : 503;
    case OTLP_INVALID:
        break;
    }
    return 400;
}

/* ---- the head ---- */

static bool is_word(nl_string text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

static nl_string trim(nl_string text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = (nl_string){text.data + 1, text.size - 1};
    while (text.size > 0 && strchr(" \t\r", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

/* Removes the next line from the head and returns it without its end. */
static nl_string next_line(nl_string *head)
{
    const char *newline = memchr(head->data, '\n', head->size);
    size_t size = newline != NULL ? (size_t)(newline - head->data) : head->size;
    nl_string line = {head->data, size};
    head->data += size + (newline != NULL);
    head->size -= size + (newline != NULL);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

/* Removes the text before the next separator, and the separator. */
static nl_string next_part(nl_string *text, char separator)
{
    const char *end = text->size > 0 ? memchr(text->data, separator, text->size) : NULL;
    size_t size = end != NULL ? (size_t)(end - text->data) : text->size;
    nl_string part = {text->data, size};
    text->data += size + (end != NULL);
    text->size -= size + (end != NULL);
    return part;
}

static bool take_request_line(http1 *h, nl_string line)
{
    static const char *const targets[] = {
        [OTLP_TRACES] = "/v1/traces", [OTLP_LOGS] = "/v1/logs", [OTLP_METRICS] = "/v1/metrics"};
    nl_string method = next_part(&line, ' '), target = next_part(&line, ' '), path = next_part(&target, '?');
    if (line.size != 8 || memcmp(line.data, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line.data[7]))
        return refuse(h, 400, "not an HTTP/1.1 request");
    h->closing = line.data[7] == '0';
    h->request.signal = OTLP_SIGNAL_COUNT;
    for (otlp_signal i = 0; i < OTLP_SIGNAL_COUNT; i++)
        if (path.size == strlen(targets[i]) && memcmp(path.data, targets[i], path.size) == 0)
            h->request.signal = i;
    if (h->request.signal == OTLP_SIGNAL_COUNT)
        return refuse(h, 404, "unknown path; use /v1/traces, /v1/logs or /v1/metrics");
    return (method.size == 4 && memcmp(method.data, "POST", 4) == 0) || refuse(h, 405, "unsupported method; use POST");
}

typedef struct head_fields {
    bool has_type, has_length, has_coding, expects;
    size_t length;
} head_fields;

static bool take_type(http1 *h, nl_string value, head_fields *f)
{
    nl_string type = trim(next_part(&value, ';'));
    f->has_type = true;
    h->request.json = is_word(type, "application/json");
    return h->request.json || is_word(type, "application/x-protobuf") ||
           refuse(h, 415, "unsupported content type; use application/x-protobuf or application/json");
}

static bool take_coding(http1 *h, nl_string value)
{
    static const char *const codings[] = {[OTLP_IDENTITY] = "identity", [OTLP_GZIP] = "gzip", [OTLP_ZSTD] = "zstd"};
    for (otlp_coding i = OTLP_IDENTITY; i <= OTLP_ZSTD; i++) {
        h->request.coding = i;
        if (is_word(value, codings[i]))
            return true;
    }
    return refuse(h, 415, "unsupported content encoding; use gzip or zstd");
}

static bool take_length(http1 *h, nl_string value, head_fields *f)
{
    size_t length = 0;
    for (size_t i = 0; i < value.size && length <= OTLP_BODY_MAX; i++) {
        if (!isdigit((unsigned char)value.data[i]))
            return refuse(h, 400, "invalid Content-Length");
        length = 10 * length + (size_t)(value.data[i] - '0');
    }
    if (value.size == 0 || (f->has_length && f->length != length))
        return refuse(h, 400, "invalid Content-Length");
    f->has_length = true;
    f->length = length;
    return length <= OTLP_BODY_MAX || refuse(h, 413, "the request is larger than 16 MiB");
}

static bool take_field(http1 *h, nl_string line, head_fields *f)
{
    nl_string rest = line, name = next_part(&rest, ':'), value = trim(rest);
    if (name.size == line.size || name.size == 0 || memchr(name.data, ' ', name.size) != NULL ||
        memchr(name.data, '\t', name.size) != NULL)
        return refuse(h, 400, "invalid header field");
    if (is_word(name, "content-type"))
        return take_type(h, value, f);
    if (is_word(name, "content-encoding"))
        return take_coding(h, value);
    if (is_word(name, "content-length"))
        return take_length(h, value, f);
    if (is_word(name, "origin"))
        return refuse(h, 403, "netlogd does not accept requests from web pages");
    if (is_word(name, "transfer-encoding")) {
        if (!is_word(value, "chunked") || h->chunked)
            return refuse(h, 501, "unsupported Transfer-Encoding");
        h->chunked = true;
    } else if (is_word(name, "expect")) {
        f->expects = is_word(value, "100-continue");
    } else if (is_word(name, "connection")) {
        while (value.size > 0)
            h->closing |= is_word(trim(next_part(&value, ',')), "close");
    }
    return true;
}

/* Returns the size of the head with the empty line after it; 0 if it is not complete. */
static size_t head_size(const char *data, size_t size)
{
    for (const char *at = data, *end = data + size; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
        if (end - at > 1 && at[1] == '\n')
            return (size_t)(at + 2 - data);
        if (end - at > 2 && at[1] == '\r' && at[2] == '\n')
            return (size_t)(at + 3 - data);
    }
    return 0;
}

/* Reads the head. Returns false if the head is incomplete or rejected. */
static bool read_head(http1 *h)
{
    head_fields f = {0};
    while (h->at < h->in.size && (h->in.data[h->at] == '\r' || h->in.data[h->at] == '\n'))
        h->at++; /* RFC 9112, section 2.2 */
    nl_string head = {h->in.data + h->at, h->in.size - h->at};
    size_t size = head.size > 0 ? head_size(head.data, head.size) : 0;
    h->request = (otlp_request){.json = true}; /* until Content-Type is known, errors are in JSON */
    h->chunked = h->closing = false;
    if (size > HEAD_MAX || (size == 0 && head.size > HEAD_MAX))
        return refuse(h, 431, "the header is larger than 16 KiB");
    if (size == 0)
        return false;
    head.size = size;
    if (!take_request_line(h, next_line(&head)))
        return false;
    for (nl_string line; (line = next_line(&head)).size > 0;)
        if (!take_field(h, line, &f))
            return false;
    if (!f.has_type)
        return refuse(h, 415, "unsupported content type; use application/x-protobuf or application/json");
    if (f.has_length && h->chunked)
        return refuse(h, 400, "the header has both Content-Length and Transfer-Encoding");
    if (!f.has_length && !h->chunked)
        return refuse(h, 411, "missing Content-Length");
    if (f.expects)
        otlp_client_send(h->base.client, (nl_string){"HTTP/1.1 100 Continue\r\n\r\n", 25});
    h->at += size;
    h->left = f.length;
    h->body.size = 0;
    h->state = h->chunked ? HTTP1_CHUNK_SIZE : HTTP1_BODY;
    return true;
}

/* ---- the content ---- */

static bool finish_request(http1 *h, nl_string body)
{
    h->result = otlp_client_export(h->base.client, &h->request, body);
    h->state = HTTP1_HEAD;
    if (h->result.code != OTLP_OK || h->result.accepted == 0) {
        respond(h, status_of(&h->result), &h->result);
        return !h->closing;
    }
    h->base.busy = true;
    return true;
}

static bool read_body(http1 *h)
{
    if (h->in.size - h->at < h->left)
        return false;
    nl_string body = {h->in.data + h->at, h->left};
    h->at += h->left;
    return finish_request(h, body);
}

/* Returns the next line of the framing of chunks. Its data is NULL if it is incomplete or rejected. */
static nl_string chunk_line(http1 *h)
{
    nl_string rest = {h->in.data + h->at, h->in.size - h->at};
    if (rest.size == 0 || memchr(rest.data, '\n', rest.size) == NULL) {
        if (rest.size > CHUNK_LINE_MAX + 1) /* one byte may be the CR before the newline */
            refuse(h, 400, "invalid chunk");
        return (nl_string){NULL, 0};
    }
    nl_string line = next_line(&rest);
    h->at = (size_t)(rest.data - h->in.data);
    if (line.size > CHUNK_LINE_MAX) {
        refuse(h, 400, "invalid chunk");
        line.data = NULL;
    }
    return line;
}

static bool read_chunk_size(http1 *h)
{
    nl_string line = chunk_line(h);
    size_t size = 0, i = 0;
    if (line.data == NULL)
        return false;
    for (; i < line.size && isxdigit((unsigned char)line.data[i]) && size <= OTLP_BODY_MAX; i++) {
        char c = line.data[i];
        size = 16 * size + (size_t)(isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    if (size > OTLP_BODY_MAX || h->body.size + size > OTLP_BODY_MAX)
        return refuse(h, 413, "the request is larger than 16 MiB");
    if (i == 0 || (i < line.size && line.data[i] != ';' && line.data[i] != ' '))
        return refuse(h, 400, "invalid chunk");
    h->left = size;
    h->state = size == 0 ? HTTP1_TRAILER : HTTP1_CHUNK;
    return true;
}

static bool read_chunk(http1 *h)
{
    size_t got = h->in.size - h->at, size = got < h->left ? got : h->left;
    nl_buffer_append(&h->body, h->in.data + h->at, size);
    h->at += size;
    h->left -= size;
    if (h->left > 0)
        return false;
    nl_string end = chunk_line(h);
    if (end.data == NULL)
        return false;
    if (end.size > 0)
        return refuse(h, 400, "invalid chunk");
    h->state = HTTP1_CHUNK_SIZE;
    return true;
}

static bool read_trailer(http1 *h)
{
    nl_string line = chunk_line(h);
    if (line.data == NULL)
        return false;
    return line.size > 0 || finish_request(h, (nl_string){h->body.data, h->body.size});
}

/* ---- the session ---- */

static bool http1_step(http1 *h)
{
    switch (h->state) {
    case HTTP1_HEAD:
        return read_head(h);
    case HTTP1_BODY:
        return read_body(h);
    case HTTP1_CHUNK_SIZE:
        return read_chunk_size(h);
    case HTTP1_CHUNK:
        return read_chunk(h);
    case HTTP1_TRAILER:
        return read_trailer(h);
    }
    return false;
}

static void http1_compact(http1 *h)
{
    if (h->over || (h->at == h->in.size && h->in.capacity > HEAD_MAX)) {
        nl_buffer_free(&h->in);
    } else if (h->at > 0) {
        memmove(h->in.data, h->in.data + h->at, h->in.size - h->at);
        h->in.size -= h->at;
    }
    h->at = 0;
}

static void http1_feed(otlp_session *s, const char *data, size_t size)
{
    http1 *h = (http1 *)s;
    s->more = false;
    bool going = !otlp_client_is_too_much(s->client, h->in.size + h->body.size + size) || refuse_too_much(h);
    nl_buffer_append(&h->in, data, size);
    while (going && !s->busy)
        going = http1_step(h);
    http1_compact(h);
    if (h->over || h->state == HTTP1_HEAD)
        nl_buffer_free(&h->body);
    s->midway = !s->busy && (h->in.size > 0 || h->state != HTTP1_HEAD);
    if (s->busy)
        otlp_client_await(s->client);
}

static void http1_settled(otlp_session *s)
{
    http1 *h = (http1 *)s;
    s->busy = false;
    s->more = h->in.size > 0 && !h->closing;
    respond(h, 200, &h->result);
}

static size_t http1_held(const otlp_session *s)
{
    const http1 *h = (const http1 *)s;
    return h->in.capacity + h->body.capacity;
}

static void http1_close(otlp_session *s)
{
    http1 *h = (http1 *)s;
    nl_buffer_free(&h->in);
    nl_buffer_free(&h->body);
}

const otlp_session_kind otlp_http1 = {
    .size = sizeof(http1),
    .name = "otlp+http",
    .feed = http1_feed,
    .settled = http1_settled,
    .held = http1_held,
    .close = http1_close,
};
