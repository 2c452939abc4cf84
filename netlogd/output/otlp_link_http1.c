/*
 * Requests of OTLP over HTTP/1.1 (RFC 9112). A connection stays open for several requests, and has one request at a
 * time.
 */
#include "config.h"

#include "otlp_link_internal.h"

#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RESPONSE_MAX = 1 << 20, PIECE_SIZE = 16 << 10, RETRY_AFTER_MAX_S = 3600 };

typedef struct http1_response {
    int status;
    size_t head; /* size of the head with the empty line */
    bool chunked, closes, has_length;
    size_t length;
    unsigned retry_s;
} http1_response;

/* Returns the value of a header line if it has this name, or NULL. */
static const char *http1_value(const char *line, const char *name)
{
    size_t size = strlen(name);
    if (strncasecmp(line, name, size) != 0 || line[size] != ':')
        return NULL;
    line += size + 1;
    return line + strspn(line, " \t");
}

/*
 * Parses the head of a response, which ends with an empty line and NUL. Changes its bytes. Returns false if it is not
 * HTTP.
 */
static bool http1_parse_head(char *head, http1_response *r)
{
    int minor;
    if (sscanf(head, "HTTP/1.%1d %3d", &minor, &r->status) != 2 || r->status < 100)
        return false;
    r->closes = minor == 0;
    char *next;
    for (char *line = strstr(head, "\r\n") + 2; (next = strstr(line, "\r\n")) != NULL; line = next + 2) {
        const char *value;
        *next = '\0';
        if ((value = http1_value(line, "Content-Length")) != NULL) {
            r->length = strtoul(value, NULL, 10);
            r->has_length = isdigit((unsigned char)*value);
        } else if (http1_value(line, "Transfer-Encoding") != NULL) {
            r->chunked = true;
        } else if ((value = http1_value(line, "Connection")) != NULL) {
            r->closes = r->closes || strcasestr(value, "close") != NULL;
        } else if ((value = http1_value(line, "Retry-After")) != NULL && isdigit((unsigned char)*value)) {
            unsigned long wait_s = strtoul(value, NULL, 10);
            r->retry_s = wait_s < RETRY_AFTER_MAX_S ? (unsigned)wait_s : RETRY_AFTER_MAX_S;
        }
    }
    return true;
}

static nl_status http1_read(otlp_link *l, nl_buffer *in)
{
    char piece[PIECE_SIZE];
    size_t got;
    if (in->size > RESPONSE_MAX) {
        nl_error_set(NL_ERROR_PROTOCOL, "the receiver's response is too large");
        return nl_dialer_prepend(l->dialer);
    }
    if (otlp_link_read(l, piece, sizeof piece, &got) != NL_OK)
        return NL_FAILED;
    nl_buffer_append(in, piece, got);
    return NL_OK;
}

static nl_status http1_read_head(otlp_link *l, nl_buffer *in, http1_response *r)
{
    static const char end[] = "\r\n\r\n";
    do { /* skips interim responses */
        *r = (http1_response){0};
        const char *found;
        while ((found = memmem(in->data != NULL ? in->data : "", in->size, end, 4)) == NULL)
            if (http1_read(l, in) != NL_OK)
                return NL_FAILED;
        r->head = (size_t)(found + 4 - in->data);
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the end was found in the data */
        char *head = nl_memory_check(strndup(in->data, r->head));
        bool good = http1_parse_head(head, r);
        free(head);
        if (!good) {
            nl_error_set(NL_ERROR_PROTOCOL, "the peer does not speak HTTP; check host and port");
            return nl_dialer_prepend(l->dialer);
        }
        if (r->status < 200) {
            in->size -= r->head;
            memmove(in->data, in->data + r->head, in->size);
        }
    } while (r->status < 200);
    return NL_OK;
}

/* Reads chunked content. Removes the chunks' headers, so that the content follows the head of the response. */
static nl_status http1_read_chunks(otlp_link *l, nl_buffer *in, const http1_response *r, size_t *size)
{
    size_t at = r->head, to = at;
    for (;;) {
        const char *end;
        while ((end = memmem(in->data + at, in->size - at, "\r\n", 2)) == NULL)
            if (http1_read(l, in) != NL_OK)
                return NL_FAILED;
        size_t chunk = strtoul(in->data + at, NULL, 16), begin = (size_t)(end + 2 - in->data);
        if (chunk > RESPONSE_MAX)
            chunk = RESPONSE_MAX + 1; /* makes http1_read fail */
        while (in->size < begin + chunk + 2)
            if (http1_read(l, in) != NL_OK)
                return NL_FAILED;
        memmove(in->data + to, in->data + begin, chunk);
        to += chunk;
        at = begin + chunk + 2;
        if (chunk == 0) { /* netlogd's requests allow no trailer fields */
            *size = to - r->head;
            return NL_OK;
        }
    }
}

static nl_status http1_read_content(otlp_link *l, nl_buffer *in, http1_response *r, size_t *size)
{
    if (r->chunked)
        return http1_read_chunks(l, in, r, size);
    if (r->status == 204 || r->status == 304)
        r->has_length = true;
    if (!r->has_length) { /* the content ends with the connection; an OTLP response does not need content */
        *size = in->size - r->head;
        r->closes = true;
        return NL_OK;
    }
    size_t length = r->length < RESPONSE_MAX ? r->length : RESPONSE_MAX + 1;
    while (in->size - r->head < length)
        if (http1_read(l, in) != NL_OK)
            return NL_FAILED;
    *size = r->length;
    return NL_OK;
}

static nl_status http1_send(otlp_link *l, const otlp_request *request)
{
    char head[512];
    int size = snprintf(head, sizeof head,
                        "POST /v1/%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: netlogd\r\n"
                        "Content-Type: application/x-protobuf\r\n%sContent-Length: %zu\r\n\r\n",
                        request->spans ? "traces" : "logs", l->authority,
                        request->gzip ? "Content-Encoding: gzip\r\n" : "", request->body.size);
    if (size < 0 || (size_t)size >= sizeof head)
        return nl_error_set(NL_ERROR_INVALID, "the name of the host is too long");
    if (otlp_link_write(l, head, (size_t)size) != NL_OK)
        return NL_FAILED;
    return otlp_link_write(l, request->body.data, request->body.size);
}

/*
 * Returns NL_OK if the receiver has stored or rejected the request. Returns NL_FAILED if the request must be sent
 * again.
 */
static nl_status http1_judge(otlp_link *l, const http1_response *r, nl_string content, otlp_reply *reply, bool *failed)
{
    char text[16];
    if (r->status < 300) {
        otlp_link_read_response(content, reply);
        return NL_OK;
    }
    otlp_link_read_status(content, reply);
    reply->refused = r->status == 400 || r->status == 413 || r->status == 422;
    if (reply->refused)
        return NL_OK;
    *failed = true;
    reply->unsupported = r->status == 415;
    reply->wait_ms = r->retry_s > 0 ? r->retry_s * 1000 : reply->wait_ms;
    snprintf(text, sizeof text, "%d", r->status);
    return otlp_link_fail(l, text, reply);
}

static nl_status http1_exchange(otlp_link *l, const otlp_request *request, otlp_reply *reply, bool *failed)
{
    nl_buffer in = {0};
    http1_response r = {0};
    size_t size;
    nl_status status = http1_send(l, request);
    if (status == NL_OK)
        status = http1_read_head(l, &in, &r);
    if (status == NL_OK)
        status = http1_read_content(l, &in, &r, &size);
    if (status == NL_OK)
        status = http1_judge(l, &r, (nl_string){in.data + r.head, size}, reply, failed);
    nl_buffer_free(&in);
    if (status == NL_OK && r.closes)
        nl_channel_close(&l->channel);
    return status;
}

static void http1_close(void *session)
{
    (void)session;
}

const otlp_protocol otlp_link_http1 = {http1_exchange, http1_close};
