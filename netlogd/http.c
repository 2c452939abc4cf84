#include "config.h"

#include "http.h"

#include "accepting.h"
#include "program/program.h"
#include "service/http_host.h"
#include "base/memory.h"

#include <event2/listener.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { REQUEST_MAX = 8 << 10, ASKERS_MAX = 64, RETRY_MS = 250 };

/* One who asks. */
typedef struct asker {
    struct asker *next, **link; /* newer ones come first */
    http *http;
    int fd;
    bool answered; /* what comes then is passed over: to close with it unread would tear off the answer */
    struct event *readable, *writable, *deadline;
    struct evbuffer *out;
    size_t size;
    char request[REQUEST_MAX + 1];
} asker;

struct http {
    server *server;
    const char *path, *type;
    http_answer answer;
    struct evconnlistener *listener;
    struct event *again; /* accepts again, after there were no descriptors */
    asker *askers;
    size_t count;
};

static void let_go(asker *a)
{
    *a->link = a->next;
    if (a->next != NULL)
        a->next->link = a->link;
    a->http->count--;
    event_free(a->readable);
    event_free(a->writable);
    event_free(a->deadline);
    evbuffer_free(a->out);
    evutil_closesocket(a->fd);
    free(a);
}

static void begin_deadline(asker *a)
{
    unsigned seconds = a->http->server->settings->handshake_s;
    if (seconds > 0)
        event_add(a->deadline, &(struct timeval){.tv_sec = seconds});
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    let_go(user);
}

/* ---- the answer ---- */

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    asker *a = user;
    bool failed = evbuffer_write(a->out, fd) < 0 && errno != EAGAIN && errno != EINTR;
    if (failed)
        let_go(a);
    else if (evbuffer_get_length(a->out) > 0)
        event_add(a->writable, NULL);
    else
        shutdown(fd, SHUT_WR); /* and he closes */
}

static void reply(asker *a, const char *status, bool with_body)
{
    struct evbuffer *body = nl_memory_check(evbuffer_new());
    bool good = strncmp(status, "200", 3) == 0;
    if (good)
        a->http->answer(a->http->server, body);
    else
        evbuffer_add_printf(body, "%s\n", status);
    evbuffer_add_printf(a->out, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n",
                        status, good ? a->http->type : "text/plain", evbuffer_get_length(body),
                        strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "");
    if (with_body)
        evbuffer_add_buffer(a->out, body);
    evbuffer_free(body);
    a->answered = true;
    begin_deadline(a); /* to read it */
    event_add(a->writable, NULL);
}

/* ---- the request ---- */

enum { HEADER_SIZE = 300 };

/* Whether there is a header of that name; its value, as far as it fits, is copied to value, unless that is NULL. */
static bool find_header(const char *request, const char *name, char value[HEADER_SIZE])
{
    for (const char *line = strchr(request, '\n'); line != NULL; line = strchr(line + 1, '\n'))
        if (strncasecmp(line + 1, name, strlen(name)) == 0 && line[1 + strlen(name)] == ':') {
            const char *begin = line + 2 + strlen(name);
            begin += strspn(begin, " \t");
            if (value != NULL)
                snprintf(value, HEADER_SIZE, "%.*s", (int)strcspn(begin, " \t\r\n"), begin);
            return true;
        }
    return false;
}

/* NULL when the request was meant for this server, by its Host and Origin, or the status to refuse it with. */
static const char *refusal(const asker *a)
{
    char host[HEADER_SIZE], origin[HEADER_SIZE];
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    const server *srv = a->http->server;
    bool has_host = find_header(a->request, "Host", host), has_origin = find_header(a->request, "Origin", origin);
    getsockname(a->fd, (struct sockaddr *)&own, &(socklen_t){sizeof own});
    int status = http_host_check(has_host ? host : NULL, has_origin ? origin : NULL, srv->settings->metrics_place.names,
                                 srv->host, NULL, (struct sockaddr *)&own);
    return status == 0     ? NULL
           : status == 400 ? "400 Bad Request"
           : status == 403 ? "403 Forbidden"
                           : "421 Misdirected Request";
}

static void answer(asker *a)
{
    char method[16], target[256], version[2];
    if (sscanf(a->request, "%15[A-Z] %255s HTTP/1.%1[01]", method, target, version) != 3 ||
        find_header(a->request, "Transfer-Encoding", NULL) || find_header(a->request, "Content-Length", NULL)) {
        bool other = strncmp(a->request, "POST ", 5) == 0 || strncmp(a->request, "PUT ", 4) == 0;
        reply(a, other ? "405 Method Not Allowed" : "400 Bad Request", true);
        return;
    }
    bool head = strcmp(method, "HEAD") == 0;
    target[strcspn(target, "?")] = '\0';
    const char *refused = refusal(a);
    const char *status = !head && strcmp(method, "GET") != 0  ? "405 Method Not Allowed"
                         : refused != NULL                    ? refused
                         : strcmp(target, a->http->path) != 0 ? "404 Not Found"
                                                              : "200 OK";
    reply(a, status, !head);
}

static void http_take(asker *a, size_t size)
{
    a->size += size;
    a->request[a->size] = '\0';
    /* A NUL in it ends it: no header has one. */
    if (strstr(a->request, "\r\n\r\n") != NULL || strstr(a->request, "\n\n") != NULL)
        answer(a);
    else if (a->size == REQUEST_MAX)
        reply(a, "431 Request Header Fields Too Large", true);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    asker *a = user;
    char nowhere[4096];
    ssize_t got =
        a->answered ? recv(fd, nowhere, sizeof nowhere, 0) : recv(fd, a->request + a->size, REQUEST_MAX - a->size, 0);
    bool ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    if (ended && got == 0 && a->answered && evbuffer_get_length(a->out) > 0)
        event_del(a->readable); /* he has said all, and may still read */
    else if (ended)
        let_go(a);
    else if (got > 0 && !a->answered)
        http_take(a, (size_t)got);
}

/* ---- from first to last ---- */

static asker *oldest(const http *h)
{
    asker *a = h->askers;
    while (a->next != NULL)
        a = a->next;
    return a;
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size;
    http *h = user;
    if (!accepting_allows(h->server, peer, false)) {
        accepting_refuse(h->server, fd, peer, ACCEPTING_NOT_ALLOWED);
        return;
    }
    if (h->count == ASKERS_MAX)
        let_go(oldest(h));
    asker *a = nl_memory_check(malloc(sizeof *a));
    *a = (asker){.next = h->askers, .link = &h->askers, .http = h, .fd = fd, .out = nl_memory_check(evbuffer_new())};
    a->readable = nl_memory_check(event_new(h->server->base, fd, EV_READ | EV_PERSIST, on_readable, a));
    a->writable = nl_memory_check(event_new(h->server->base, fd, EV_WRITE, on_writable, a));
    a->deadline = nl_memory_check(event_new(h->server->base, -1, 0, on_deadline, a));
    if (a->next != NULL)
        a->next->link = &a->next;
    h->askers = a;
    h->count++;
    event_add(a->readable, NULL);
    begin_deadline(a);
}

/* Out of descriptors: who knocks waits in the kernel until some are free. */
static void on_accept_error(struct evconnlistener *from, void *user)
{
    http *h = user;
    evconnlistener_disable(from);
    event_add(h->again, &(struct timeval){.tv_usec = RETRY_MS * 1000});
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    evconnlistener_enable(((http *)user)->listener);
}

http *http_new(server *srv, int fd, const char *path, const char *type, http_answer answer)
{
    http *h = nl_memory_check(malloc(sizeof *h));
    *h = (http){.server = srv, .path = path, .type = type, .answer = answer};
    h->again = nl_memory_check(event_new(srv->base, -1, 0, on_again, h));
    h->listener = nl_memory_check(
        evconnlistener_new(srv->base, on_accept, h, LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd));
    evconnlistener_set_error_cb(h->listener, on_accept_error);
    return h;
}

void http_free(http *h)
{
    if (h == NULL)
        return;
    while (h->askers != NULL)
        let_go(h->askers); /* NOLINT(clang-analyzer-unix.Malloc): it takes itself off the list */
    evconnlistener_free(h->listener);
    event_free(h->again);
    free(h);
}
