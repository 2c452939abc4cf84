#include "config.h"

#include "http.h"

#include "accepting.h"
#include "base/memory.h"
#include "server.h"
#include "service/http_host.h"

#include <event2/listener.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { REQUEST_MAX = 8 << 10, CLIENTS_MAX = 64, RETRY_MS = 250, HEADER_SIZE = 300 };

typedef struct http_client {
    struct http_client *next, **link; /* in a list, newest first */
    int fd;
    bool answered; /* the reply is being sent. netlogd reads and drops later bytes, because the kernel could truncate
                      the reply if bytes were unread at the close */
    struct event *readable, *writable, *deadline;
    struct evbuffer *out;
    size_t size;
    char request[REQUEST_MAX + 1];
} http_client;

static http_answer make_body;
static struct evconnlistener *http_listener; /* NULL: the service is not started */
static struct event *listen_again;           /* timer that accepts connections again after a lack of descriptors */
static http_client *clients;
static size_t client_count;

static void http_close(http_client *c)
{
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    client_count--;
    event_free(c->readable);
    event_free(c->writable);
    event_free(c->deadline);
    evbuffer_free(c->out);
    evutil_closesocket(c->fd);
    free(c);
}

static void begin_deadline(http_client *c)
{
    unsigned seconds = server_settings()->handshake_s;
    if (seconds > 0)
        event_add(c->deadline, &(struct timeval){.tv_sec = seconds});
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    http_close(user);
}

/* ---- the answer ---- */

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    http_client *c = user;
    if (evbuffer_write(c->out, fd) < 0 && errno != EAGAIN && errno != EINTR)
        http_close(c);
    else if (evbuffer_get_length(c->out) > 0)
        event_add(c->writable, NULL);
    else
        shutdown(fd, SHUT_WR); /* the client closes the connection */
}

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 421:
        return "Misdirected Request";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Bad Request";
    }
}

static void reply(http_client *c, int status, bool with_body)
{
    struct evbuffer *body = nl_memory_check(evbuffer_new());
    if (status == 200)
        make_body(body);
    else
        evbuffer_add_printf(body, "%d %s\n", status, status_text(status));
    evbuffer_add_printf(
        c->out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n", status,
        status_text(status), status == 200 ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain",
        evbuffer_get_length(body), status == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (with_body)
        evbuffer_add_buffer(c->out, body);
    evbuffer_free(body);
    c->answered = true;
    begin_deadline(c); /* deadline for the client to read the reply */
    event_add(c->writable, NULL);
}

/* ---- the request ---- */

/* Returns whether the request has this header. Copies as much of its value as fits, unless `value` is NULL. */
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

/*
 * Returns 0 if the request's Host and Origin headers name this server. Otherwise, returns the HTTP status with which to
 * reject the request.
 */
static int check_host(const http_client *c)
{
    char host[HEADER_SIZE], origin[HEADER_SIZE];
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    bool has_host = find_header(c->request, "Host", host), has_origin = find_header(c->request, "Origin", origin);
    getsockname(c->fd, (struct sockaddr *)&own, &(socklen_t){sizeof own});
    return http_host_check(has_host ? host : NULL, has_origin ? origin : NULL, server_settings()->metrics_place.names,
                           server_host(), NULL, (struct sockaddr *)&own);
}

static void answer(http_client *c)
{
    char method[16], target[256], version[2];
    if (sscanf(c->request, "%15[A-Z] %255s HTTP/1.%1[01]", method, target, version) != 3 ||
        find_header(c->request, "Transfer-Encoding", NULL) || find_header(c->request, "Content-Length", NULL)) {
        bool other = strncmp(c->request, "POST ", 5) == 0 || strncmp(c->request, "PUT ", 4) == 0;
        reply(c, other ? 405 : 400, true);
        return;
    }
    bool head = strcmp(method, "HEAD") == 0;
    int status = !head && strcmp(method, "GET") != 0 ? 405 : check_host(c);
    target[strcspn(target, "?")] = '\0';
    reply(c, status != 0 ? status : strcmp(target, "/metrics") != 0 ? 404 : 200, !head);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    http_client *c = user;
    char dropped[4096];
    ssize_t got =
        c->answered ? recv(fd, dropped, sizeof dropped, 0) : recv(fd, c->request + c->size, REQUEST_MAX - c->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got == 0 && c->answered && evbuffer_get_length(c->out) > 0) {
        event_del(c->readable); /* the client has closed its sending half but may still read */
    } else if (got <= 0) {
        http_close(c);
    } else if (!c->answered) {
        c->size += (size_t)got;
        c->request[c->size] = '\0'; /* a NUL byte would end the request earlier; valid headers contain no NUL byte */
        if (strstr(c->request, "\r\n\r\n") != NULL || strstr(c->request, "\n\n") != NULL)
            answer(c);
        else if (c->size == REQUEST_MAX)
            reply(c, 431, true);
    }
}

/* ---- clients ---- */

static http_client *find_oldest(void)
{
    http_client *c = clients;
    while (c->next != NULL)
        c = c->next;
    return c;
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer, int size, void *user)
{
    (void)from, (void)size, (void)user;
    if (!accepting_allows(peer, false)) {
        accepting_refuse(fd, peer);
        return;
    }
    if (client_count == CLIENTS_MAX)
        http_close(find_oldest());
    http_client *c = nl_memory_check(malloc(sizeof *c));
    *c = (http_client){.next = clients, .link = &clients, .fd = fd, .out = nl_memory_check(evbuffer_new())};
    c->readable = server_new_event(fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = server_new_event(fd, EV_WRITE, on_writable, c);
    c->deadline = server_new_event(-1, 0, on_deadline, c);
    if (c->next != NULL)
        c->next->link = &c->next;
    clients = c;
    client_count++;
    event_add(c->readable, NULL);
    begin_deadline(c);
}

/* Lets new clients wait in the kernel until descriptors are free. */
static void on_accept_error(struct evconnlistener *from, void *user)
{
    (void)user;
    evconnlistener_disable(from);
    event_add(listen_again, &(struct timeval){.tv_usec = RETRY_MS * 1000});
}

static void on_listen_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    evconnlistener_enable(http_listener);
}

void http_start(int fd, http_answer body)
{
    make_body = body;
    listen_again = server_new_event(-1, 0, on_listen_again, NULL);
    http_listener = nl_memory_check(
        evconnlistener_new(server_base(), on_accept, NULL, LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd));
    evconnlistener_set_error_cb(http_listener, on_accept_error);
    http_host_look_up();
}

void http_free(void)
{
    if (http_listener == NULL)
        return;
    while (clients != NULL)
        http_close(clients); /* NOLINT(clang-analyzer-unix.Malloc): http_close removes the client from the list */
    evconnlistener_free(http_listener);
    event_free(listen_again);
}
