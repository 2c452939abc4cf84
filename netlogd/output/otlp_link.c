#include "config.h"

#include "otlp_link_internal.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "convert/protobuf.h"
#include "program/program.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_S = 3600, GZIP_WINDOW = 15 + 16 /* for zlib: the largest window, with a gzip header */ };

/* ---- the connection ---- */

otlp_link *otlp_link_new(const nl_url *url)
{
    otlp_link *l = nl_memory_check(calloc(1, sizeof *l));
    l->protocol = url->scheme == NL_SCHEME_OTLP ? &otlp_link_grpc : &otlp_link_http1;
    l->channel.fd = -1;
    l->dialer = nl_dialer_new(url, "the OTLP receiver");
    if (l->dialer == NULL) {
        free(l);
        return NULL;
    }
    if (deflateInit2(&l->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        nl_memory_failed();
    l->secure = nl_dialer_is_secure(l->dialer);
    bool brackets = strchr(url->host, ':') != NULL;
    l->authority = program_format("%s%s%s:%u", brackets ? "[" : "", url->host, brackets ? "]" : "", url->port);
    return l;
}

static void otlp_link_disconnect(otlp_link *l)
{
    if (l->session != NULL)
        l->protocol->close(l->session);
    l->session = NULL;
    nl_channel_close(&l->channel);
}

void otlp_link_free(otlp_link *l)
{
    if (l == NULL)
        return;
    otlp_link_disconnect(l);
    nl_dialer_free(l->dialer);
    deflateEnd(&l->z);
    nl_buffer_free(&l->packed);
    free(l->authority);
    free(l);
}

nl_status otlp_link_write(otlp_link *l, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = nl_channel_write(&l->channel, data, size);
        int error = sent > 0 ? 0 : errno;
        if (error == EAGAIN || error == EINTR)
            error = nl_wait_ready(l->channel.fd, nl_channel_wants(&l->channel, POLLOUT), l->deadline_ns);
        if (error != 0)
            return nl_dialer_cannot(l->dialer, "send", &l->channel, error);
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return NL_OK;
}

nl_status otlp_link_read(otlp_link *l, char *data, size_t size, size_t *got)
{
    for (;;) {
        ssize_t count = nl_channel_read(&l->channel, data, size);
        if (count > 0) {
            *got = (size_t)count;
            return NL_OK;
        }
        int error = count == 0 ? ECONNRESET : errno;
        if (error == EAGAIN || error == EINTR)
            error = nl_wait_ready(l->channel.fd, nl_channel_wants(&l->channel, POLLIN), l->deadline_ns);
        if (error != 0)
            return nl_dialer_cannot(l->dialer, "receive", &l->channel, error);
    }
}

static nl_string otlp_link_compress(otlp_link *l, nl_string body)
{
    l->packed.size = 0;
    deflateReset(&l->z);
    nl_memory_check(nl_buffer_reserve(&l->packed, deflateBound(&l->z, body.size)) ? l : NULL);
    l->z.next_in = (Bytef *)(uintptr_t)body.data;
    l->z.avail_in = (uInt)body.size;
    l->z.next_out = (Bytef *)l->packed.data;
    l->z.avail_out = (uInt)l->packed.capacity;
    deflate(&l->z, Z_FINISH); /* cannot fail, because the output has enough space */
    return (nl_string){l->packed.data, l->packed.capacity - l->z.avail_out};
}

nl_status otlp_link_send(otlp_link *l, bool spans, nl_string body, otlp_reply *reply)
{
    otlp_request request = {.spans = spans, .body = body};
    bool gzip = !l->plain && body.size >= OTLP_LINK_GZIP_MIN;
    if (gzip)
        request = (otlp_request){.spans = spans, .gzip = true, .body = otlp_link_compress(l, body)};
    for (bool again = l->channel.fd >= 0;; again = false) {
        bool failed = false;
        *reply = (otlp_reply){0};
        l->deadline_ns = nl_deadline_ns(OTLP_LINK_TIMEOUT_MS);
        if (l->channel.fd < 0 && nl_dialer_connect(l->dialer, OTLP_LINK_TIMEOUT_MS, &l->channel) != NL_OK)
            return NL_FAILED;
        nl_status status = l->protocol->exchange(l, &request, reply, &failed);
        if (status != NL_OK)
            otlp_link_disconnect(l);
        if (request.gzip && (reply->refused || reply->unsupported)) {
            request = (otlp_request){.spans = spans, .body = body};
            continue;
        }
        if (status == NL_OK) {
            l->plain = l->plain || (gzip && !request.gzip && !reply->refused);
            return NL_OK;
        }
        if (failed || !again) /* otherwise, the receiver may have closed the idle connection; try again */
            return NL_FAILED;
    }
}

nl_status otlp_link_fail(otlp_link *l, const char *status, const otlp_reply *reply)
{
    nl_error_set(NL_ERROR_PROTOCOL, "the receiver responded %s%s%s", status, *reply->message != '\0' ? ": " : "",
                 reply->message);
    return nl_dialer_prepend(l->dialer);
}

/* ---- responses ---- */

void otlp_link_note(otlp_reply *reply, nl_string message)
{
    size_t size = message.size < sizeof reply->message ? message.size : sizeof reply->message - 1;
    for (size_t i = 0; i < size; i++)
        reply->message[i] = (unsigned char)message.data[i] >= ' ' && message.data[i] != 0x7f ? message.data[i] : ' ';
    reply->message[size] = '\0';
}

/* Finds a field of bytes in a message, and sets *content. Returns false if the message does not have the field. */
static bool otlp_link_find(nl_string message, uint32_t number, nl_string *content)
{
    const char *at = message.data, *end = at + message.size;
    protobuf_field field;
    while (at < end && protobuf_next(&at, end, &field))
        if (field.number == number && field.wire == PROTOBUF_BYTES) {
            *content = (nl_string){field.data, field.size};
            return true;
        }
    return false;
}

static uint64_t otlp_link_find_number(nl_string message, uint32_t number)
{
    const char *at = message.data, *end = at + message.size;
    protobuf_field field;
    while (at < end && protobuf_next(&at, end, &field))
        if (field.number == number && field.wire == PROTOBUF_VARINT)
            return field.value;
    return 0;
}

void otlp_link_read_response(nl_string response, otlp_reply *reply)
{
    enum { PARTIAL_SUCCESS = 1, REJECTED = 1, MESSAGE = 2 };
    nl_string partial, message;
    if (!otlp_link_find(response, PARTIAL_SUCCESS, &partial))
        return;
    reply->rejected = otlp_link_find_number(partial, REJECTED);
    if (otlp_link_find(partial, MESSAGE, &message))
        otlp_link_note(reply, message);
}

void otlp_link_read_status(nl_string status, otlp_reply *reply)
{
    enum { MESSAGE = 2, DETAILS = 3, ANY_VALUE = 2, RETRY_DELAY = 1, SECONDS = 1, NANOS = 2 };
    nl_string message, details, info, delay;
    if (*reply->message == '\0' && otlp_link_find(status, MESSAGE, &message))
        otlp_link_note(reply, message);
    if (!otlp_link_find(status, DETAILS, &details) || !otlp_link_find(details, ANY_VALUE, &info) ||
        !otlp_link_find(info, RETRY_DELAY, &delay))
        return;
    uint64_t seconds = otlp_link_find_number(delay, SECONDS), nanos = otlp_link_find_number(delay, NANOS);
    seconds = seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S;
    reply->wait_ms = (unsigned)(seconds * 1000 + nanos % 1000000000 / 1000000 + 1);
}
