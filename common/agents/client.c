#include "config.h"

#include "agents/client.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "transport/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_PORT = 14831,
    CONFIRM_MS = 1000,
    TIMEOUT_MS = 15000,       /* nlagentd waits up to 10 s for a measurement */
    REPLY_TIMEOUT_MS = 75000, /* nlagentd waits up to 50 s for records */
    REPLY_MAX = 64 << 20,
    READ_SIZE = 64 << 10,
    HEAD_MAX = 32 << 10
};

struct client {
    nl_dialer *dialer;
    char *host; /* host name and port */
    char *token;
};

/*
 * Returns a URL with the agent's address and the TLS options. The URL has a collector's scheme, because the dialer
 * accepts only URLs of collectors.
 */
static nl_url *make_url(const char *authority, size_t size, bool secure, const client_options *o)
{
    const char *const names[] = {"ca", "cert", "key"}, *const values[] = {o->ca, o->cert, o->key};
    const char *colon = memrchr(authority, ':', size), *bracket = memrchr(authority, ']', size);
    bool has_port = colon != NULL && (bracket == NULL || colon > bracket);
    char port[16], separator = '?';
    nl_buffer text = {0};
    snprintf(port, sizeof port, ":%d", DEFAULT_PORT);
    nl_buffer_append_text(&text, secure ? "x-netlogs://" : "x-netlog://");
    nl_buffer_append(&text, authority, size);
    nl_buffer_append_text(&text, has_port ? "" : port);
    for (int i = 0; i < 3 && secure; i++) {
        if (values[i] == NULL)
            continue;
        nl_buffer_append(&text, &separator, 1);
        nl_buffer_append_text(&text, names[i]);
        nl_buffer_append_text(&text, "=");
        nl_buffer_append_text(&text, values[i]);
        separator = '&';
    }
    nl_buffer_append(&text, "", 1);
    nl_url *url = nl_url_parse(text.data);
    nl_buffer_free(&text);
    return url;
}

client *client_new(const char *url, const client_options *o)
{
    bool secure = strncmp(url, "https://", 8) == 0;
    /* Reject a URL with options, because the dialer would read the files that the options name. */
    bool has_options = strchr(url, '?') != NULL;
    if (has_options || (!secure && strncmp(url, "http://", 7) != 0))
        return nl_error_null(NL_ERROR_INVALID, "%s: invalid URL; use http://HOST[:PORT] or https://HOST[:PORT]", url);

    const char *authority = url + (secure ? 8 : 7);
    size_t size = strcspn(authority, "/");
    client *c = nl_memory_check(calloc(1, sizeof *c));
    nl_url *parsed = make_url(authority, size, secure, o);
    if (parsed != NULL) { /* error messages must contain the caller's URL */
        free(parsed->text);
        parsed->text = nl_memory_check(strdup(url));
    }
    c->dialer = parsed != NULL ? nl_dialer_new(parsed, "nlagentd") : NULL;
    c->host = strndup(authority, size);
    c->token = o->token != NULL ? strdup(o->token) : NULL;
    nl_url_free(parsed);
    if (c->dialer != NULL)
        return c;
    nl_error_prepend("%s", url);
    client_free(c);
    return NULL;
}

void client_free(client *c)
{
    if (c == NULL)
        return;
    nl_dialer_free(c->dialer);
    free(c->host);
    free(c->token);
    free(c);
}

/* ---- bytes ---- */

static bool send_all(client *c, nl_channel *channel, const nl_buffer *bytes, int64_t deadline_ns)
{
    for (size_t done = 0; done < bytes->size;) {
        ssize_t sent = nl_channel_write(channel, bytes->data + done, bytes->size - done);
        int error = sent < 0 ? errno : 0;
        if (error == EAGAIN)
            error = nl_wait_ready(channel->fd, nl_channel_wants(channel, POLLOUT), deadline_ns);
        if (error != 0 && error != EINTR)
            return nl_dialer_cannot(c->dialer, "send", channel, error), false;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/*
 * Reads more bytes. Returns the number of bytes read, or 0 at the end. On failure, returns -1 and sets the error and
 * errno.
 */
static ssize_t read_more(client *c, nl_channel *channel, nl_buffer *in, int64_t deadline_ns)
{
    for (;;) {
        nl_buffer_reserve(in, READ_SIZE + 1);
        ssize_t got = nl_channel_read(channel, in->data + in->size, READ_SIZE);
        int error = got < 0 ? errno : 0;
        if (got >= 0) {
            in->size += (size_t)got;
            in->data[in->size] = '\0';
            return got;
        }
        if (error == EAGAIN)
            error = nl_channel_has_more(channel)
                        ? 0
                        : nl_wait_ready(channel->fd, nl_channel_wants(channel, POLLIN), deadline_ns);
        if (error == 0 || error == EINTR)
            continue;
        nl_dialer_cannot(c->dialer, "read", channel, error);
        errno = error;
        return -1;
    }
}

/* The header of a reply. body_size is REPLY_MAX if the header does not contain the size. */
typedef struct head {
    int status;
    size_t body_size;
} head;

static bool read_head(const char *text, head *h)
{
    const char *length = strcasestr(text, "\r\nContent-Length:");
    h->body_size = length != NULL ? strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) : REPLY_MAX;
    return sscanf(text, "HTTP/1.%*1[01] %d", &h->status) == 1;
}

/*
 * Sets the error for a peer that has sent no HTTP header. `error` is the errno of the failed read, or 0 if the peer
 * closed the connection. Returns false.
 */
static bool fail_head(const client *c, const nl_buffer *in, int error)
{
    if (in->size >= 2 && memcmp(in->data, "\x15\x03", 2) == 0)
        nl_error_set(NL_ERROR_PROTOCOL, "the port requires TLS; use https:// in the URL");
    else if (in->size >= 5 && memcmp(in->data, "HTTP/", 5) == 0 && error != ETIMEDOUT)
        nl_error_set(NL_ERROR_PROTOCOL, "the connection ended before the reply was complete%s%s",
                     error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    else if (in->size > 0)
        nl_error_set(NL_ERROR_PROTOCOL, "the peer is not nlagentd; check host and port");
    else if (error == ETIMEDOUT)
        nl_error_set(NL_ERROR_TIMEOUT, "no reply; check that the peer is nlagentd");
    else
        nl_error_set(NL_ERROR_PROTOCOL,
                     "the peer closed the connection without a reply; perhaps it is not nlagentd, does not allow this "
                     "host, or requires TLS (https://)");
    return nl_dialer_prepend(c->dialer), false;
}

/*
 * Waits until the peer confirms that it is an HTTP server ("100 Continue"). Removes the confirmation from `in`, and
 * sets *confirmed. The wait also ends after CONFIRM_MS, because a server need not confirm, or when the reply begins.
 * Returns false and sets the error if the connection fails.
 */
static bool await_confirmation(client *c, nl_channel *channel, nl_buffer *in, bool *confirmed)
{
    static const char start[] = "HTTP/1.1 100";
    const size_t length = sizeof start - 1;
    int64_t deadline_ns = nl_deadline_ns(CONFIRM_MS);
    const char *end = NULL;
    while (end == NULL) {
        ssize_t got = read_more(c, channel, in, deadline_ns);
        if (got < 0 && errno == ETIMEDOUT)
            return true;
        if (got < 0 || in->size == 0)
            return fail_head(c, in, got < 0 ? errno : 0);
        if (got == 0 || memcmp(in->data, start, in->size < length ? in->size : length) != 0)
            return true;
        end = in->size > length ? strstr(in->data, "\r\n\r\n") : NULL;
    }
    size_t size = (size_t)(end + 4 - in->data);
    in->size -= size;
    memmove(in->data, in->data + size, in->size + 1);
    return *confirmed = true;
}

/*
 * Sends a request on a connected channel. For a request with a body, sets *confirmed if the peer has confirmed that it
 * is an HTTP server.
 */
static bool send_request(client *c, const char *method, const char *path, const nl_buffer *body, nl_channel *channel,
                         nl_buffer *in, bool *confirmed)
{
    int64_t deadline_ns = nl_deadline_ns(TIMEOUT_MS);
    nl_buffer request = {0};
    char text[1024];
    /*
     * A request without a body uses HTTP/1.0, because this module cannot read a reply in chunks. A request with a body
     * can use HTTP/1.1, because nlagentd replies to it in one piece.
     */
    snprintf(text, sizeof text,
             "%s %.300s HTTP/1.%d\r\nHost: %.255s\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: \"\"\r\n"
             "Content-Length: %zu\r\n%s",
             method, path, body != NULL ? 1 : 0, c->host, body != NULL ? body->size : 0,
             body != NULL ? "Connection: close\r\nExpect: 100-continue\r\n" : "");
    nl_buffer_append_text(&request, text);
    if (c->token != NULL) {
        nl_buffer_append_text(&request, "Authorization: Bearer ");
        nl_buffer_append_text(&request, c->token);
        nl_buffer_append_text(&request, "\r\n");
    }
    nl_buffer_append_text(&request, "\r\n");
    bool good = send_all(c, channel, &request, deadline_ns);
    nl_buffer_free(&request);
    if (body == NULL || !good)
        return good;
    good = await_confirmation(c, channel, in, confirmed);
    return good && in->size == 0 ? send_all(c, channel, body, deadline_ns) : good;
}

/*
 * Connects, sends a request, and reads the header of the reply and perhaps a part of its body. nlagentd may need
 * TIMEOUT_MS to reply, but first confirms the request. Therefore, a peer that sends nothing is not nlagentd. Returns
 * false and sets the error on failure.
 */
static bool client_request(client *c, const char *method, const char *path, const nl_buffer *body, nl_channel *channel,
                           nl_buffer *in, head *answer)
{
    bool confirmed = false;
    char *end = NULL;
    ssize_t got = 1;
    *channel = (nl_channel){.fd = -1};
    in->size = 0;
    if (nl_dialer_connect(c->dialer, TIMEOUT_MS, channel) != NL_OK)
        return false;
    int64_t deadline_ns = nl_deadline_ns(TIMEOUT_MS), patience_ns = nl_deadline_ns(NL_PEER_PATIENCE_MS);
    bool good = send_request(c, method, path, body, channel, in, &confirmed);
    while (good && got > 0 && (end = in->size > 0 ? strstr(in->data, "\r\n\r\n") : NULL) == NULL)
        got =
            in->size < HEAD_MAX ? read_more(c, channel, in, confirmed || in->size > 0 ? deadline_ns : patience_ns) : 0;
    const int error = good && got < 0 ? errno : 0;
    if (good && end != NULL)
        *end = '\0';
    if (good && (end == NULL || !read_head(in->data, answer)))
        good = fail_head(c, in, error);
    if (good) {
        size_t size = (size_t)(end + 4 - in->data);
        in->size -= size;
        memmove(in->data, in->data + size, in->size + 1);
    }
    return good;
}

bool client_call(client *c, const nl_buffer *message, soap_call *answer)
{
    head head = {0};
    nl_channel channel;
    nl_buffer in = {0};
    *answer = (soap_call){0};
    bool good = client_request(c, "POST", "/soap", message, &channel, &in, &head);
    int64_t deadline_ns = nl_deadline_ns(REPLY_TIMEOUT_MS);
    ssize_t got = 1;
    while (good && got > 0 && in.size < head.body_size && in.size < REPLY_MAX)
        got = read_more(c, &channel, &in, deadline_ns);
    good = good && got >= 0;
    if (good && !soap_read(in.data, in.size, answer)) {
        nl_error_set(NL_ERROR_PROTOCOL, "the peer is an HTTP server, but not nlagentd (HTTP %d); check host and port",
                     head.status);
        nl_dialer_prepend(c->dialer);
        good = false;
    } else if (good && strcmp(answer->operation, "Fault") == 0) {
        const char *fault = soap_value(answer, "faultstring");
        good = nl_error_false(NL_ERROR_INVALID, "%s",
                              fault != NULL ? fault : "the agent reported a fault without a description");
    }
    if (channel.fd >= 0)
        nl_channel_close(&channel);
    nl_buffer_free(&in);
    return good;
}

bool client_open_delivery(client *c, const char *subscription, const char *format, nl_channel *channel,
                          nl_buffer *begun)
{
    char path[200];
    head head = {0};
    snprintf(path, sizeof path, "/stream?subscription=%.64s&format=%.8s", subscription, format);
    bool good = client_request(c, "GET", path, NULL, channel, begun, &head);
    if (good && head.status != 200)
        good = nl_error_false(NL_ERROR_PROTOCOL, "the agent does not send records (HTTP %d)", head.status);
    if (!good && channel->fd >= 0)
        nl_channel_close(channel);
    return good;
}
