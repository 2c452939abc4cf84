#include "config.h"

#include "sensors/http.h"

#include "base/monotonic.h"
#include "base/buffer.h"
#include "base/error.h"
#include "transport/dial.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool http_place_read(const char *url, http_place *p)
{
    bool http = strncmp(url, "http://", 7) == 0;
    if (!http && strncmp(url, "tcp://", 6) != 0)
        return false;
    url += http ? 7 : 6;
    size_t size = strcspn(url, "/");
    const char *end = url + size, *port = NULL;
    p->plain_tcp = !http;
    if (*url == '[') {
        const char *close = memchr(url, ']', size);
        if (close == NULL)
            return false;
        snprintf(p->host, sizeof p->host, "%.*s", (int)(close - url - 1), url + 1);
        port = close[1] == ':' ? close + 2 : NULL;
    } else {
        const char *colon = memchr(url, ':', size);
        snprintf(p->host, sizeof p->host, "%.*s", (int)((colon != NULL ? colon : end) - url), url);
        port = colon != NULL ? colon + 1 : NULL;
    }
    snprintf(p->port, sizeof p->port, "%.*s", port != NULL ? (int)(end - port) : 2, port != NULL ? port : "80");
    snprintf(p->path, sizeof p->path, "%s", !http ? "" : *end == '/' ? end : "/");
    bool has_port = p->port[0] != '\0' && strspn(p->port, "0123456789") == strlen(p->port);
    return p->host[0] != '\0' && has_port && (http || port != NULL) && strpbrk(url, " \r\n") == NULL;
}

static bool send_all(int fd, const char *text, int64_t deadline_ns)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t sent = send(fd, text, left, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN && (errno = nl_wait_ready(fd, POLLOUT, deadline_ns)) == 0)
            continue;
        if (sent < 0)
            return false;
        text += sent;
        left -= (size_t)sent;
    }
    return true;
}

/*
 * Reads until the server closes the connection. Returns false and sets errno on failure, or if more than max_size bytes
 * arrive.
 */
static bool http_read_all(int fd, size_t max_size, int64_t deadline_ns, nl_buffer *body)
{
    body->size = 0;
    for (;;) {
        nl_buffer_reserve(body, 16 << 10);
        ssize_t got = recv(fd, body->data + body->size, body->capacity - body->size - 1, 0);
        if (got < 0 && errno == EAGAIN && (errno = nl_wait_ready(fd, POLLIN, deadline_ns)) == 0)
            continue;
        if (got < 0)
            return false;
        body->size += (size_t)got;
        body->data[body->size] = '\0';
        if (got == 0)
            return true;
        if (body->size > max_size) {
            errno = EMSGSIZE;
            return false;
        }
    }
}

/* Parses the header and removes it from the body. Returns false and sets the error if the reply is not HTTP. */
static bool parse_head(http_reply *a)
{
    const char *end = strstr(a->body.data, "\r\n\r\n");
    if (sscanf(a->body.data, "HTTP/1.%*1[01] %d", &a->status) != 1 || end == NULL)
        return nl_error_false(NL_ERROR_PROTOCOL, "read: the reply is not HTTP");
    size_t head = (size_t)(end + 4 - a->body.data);
    a->body.size -= head;
    memmove(a->body.data, a->body.data + head, a->body.size + 1);
    return true;
}

static bool http_ask(int fd, const http_place *p, size_t max_size, int64_t deadline_ns, http_reply *a)
{
    char request[1024];
    /* use HTTP/1.0, so that the reply is not chunked, and ends with the connection */
    snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: %s:%s\r\nUser-Agent: netlogger/%s\r\n\r\n", p->path,
             p->host, p->port, PACKAGE_VERSION);
    if (!send_all(fd, request, deadline_ns))
        return nl_error_set_errno("send"), false;
    if (!http_read_all(fd, max_size, deadline_ns, &a->body))
        return nl_error_set_errno("read"), false;
    return parse_head(a);
}

bool http_get(const http_place *p, int timeout_ms, size_t max_size, http_reply *a)
{
    int64_t start_ns = nl_monotonic_ns(), deadline_ns = nl_deadline_ns(timeout_ms);
    a->connected = false;
    a->status = 0;
    int fd = nl_tcp_connect(p->host, p->port, deadline_ns);
    a->connect_ms = a->reply_ms = (double)(nl_monotonic_ns() - start_ns) / 1e6;
    if (fd < 0)
        return false;
    a->connected = true;
    bool good = p->plain_tcp || http_ask(fd, p, max_size, deadline_ns, a);
    a->reply_ms = (double)(nl_monotonic_ns() - start_ns) / 1e6;
    close(fd);
    return good;
}
