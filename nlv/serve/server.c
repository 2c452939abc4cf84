#include "config.h"

#include "serve/server.h"

#include "base/error.h"
#include "serve/page.h"
#include "service/http_host.h"
#include "service/network.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    CONNECTION_MEMORY = 16 << 10, /* bytes for the headers of a request and of its answer */
    TIMEOUT_S = 30,
    THREADS = 4, /* also the maximum number of pictures in memory */
    BACKLOG = 32,
    RANDOM_SIZE = 16,
    TOKEN_SIZE = 2 * RANDOM_SIZE,
};

static const char default_host[] = "127.0.0.1", default_port[] = "14832";

struct server {
    struct MHD_Daemon *daemon;
    views *views;
    char token[TOKEN_SIZE + 1];
    char *url;
    struct sockaddr_storage bound;
};

/* Writes a random number in hexadecimal. */
static bool make_random(char out[TOKEN_SIZE + 1])
{
    unsigned char bytes[RANDOM_SIZE];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return nl_error_false(NL_ERROR_SYSTEM, "no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        g_snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* ---- answers ---- */

static enum MHD_Result send_answer(struct MHD_Connection *c, unsigned status, struct MHD_Response *r)
{
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    const enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_message(struct MHD_Connection *c, unsigned status, const char *text)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(r, "Content-Type", "text/plain; charset=utf-8");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, "Allow", "GET");
    return send_answer(c, status, r);
}

/* Sends the page. Its script and style run because they have this answer's nonce. */
static enum MHD_Result send_page(struct MHD_Connection *c)
{
    char nonce[TOKEN_SIZE + 1], policy[320];
    if (!make_random(nonce))
        return send_message(c, MHD_HTTP_INTERNAL_SERVER_ERROR, nl_error_message());
    char **parts = g_strsplit(page_text, "@NONCE@", -1), *page = g_strjoinv(nonce, parts);
    g_strfreev(parts);
    g_snprintf(policy, sizeof policy,
               "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'",
               nonce, nonce);
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(page), page, MHD_RESPMEM_MUST_COPY);
    g_free(page);
    MHD_add_response_header(r, "Content-Type", "text/html; charset=utf-8");
    MHD_add_response_header(r, "Content-Security-Policy", policy);
    return send_answer(c, MHD_HTTP_OK, r);
}

typedef struct reading_query {
    query q;
    unsigned count;
    bool is_bad;
} reading_query;

static enum MHD_Result read_parameter(void *user, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                      const char *value, size_t value_size)
{
    reading_query *r = user;
    (void)kind;
    if (++r->count > QUERY_COUNT_MAX || value == NULL || strlen(name) != name_size || strlen(value) != value_size)
        nl_error_set(NL_ERROR_INVALID, "invalid parameters");
    else if (query_set(&r->q, name, value))
        return MHD_YES;
    r->is_bad = true;
    return MHD_NO;
}

static enum MHD_Result send_view(const server *s, struct MHD_Connection *c, const char *path)
{
    reading_query r = {.is_bad = false};
    answer a;
    query_init(&r.q);
    MHD_get_connection_values_n(c, MHD_GET_ARGUMENT_KIND, read_parameter, &r);
    if (r.is_bad || !query_finish(&r.q))
        return send_message(c, MHD_HTTP_BAD_REQUEST, nl_error_message());
    if (!views_answer(s->views, path, &r.q, &a))
        return send_message(c, MHD_HTTP_NOT_FOUND, "there is no such page");
    if (a.type == NULL) {
        answer_clear(&a);
        return send_message(c, MHD_HTTP_NOT_FOUND, nl_error_message());
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(a.body->len, a.body->data, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", a.type);
    if (a.place != NULL)
        MHD_add_response_header(response, "X-Place", a.place);
    answer_clear(&a);
    return send_answer(c, MHD_HTTP_OK, response);
}

/* ---- requests ---- */

/* Compares in constant time, so that a client cannot guess the token one byte at a time. */
static bool has_token(const server *s, struct MHD_Connection *c)
{
    static const char scheme[] = "Bearer ";
    const char *text = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    return text != NULL && strncmp(text, scheme, sizeof scheme - 1) == 0 &&
           strlen(text) == sizeof scheme - 1 + TOKEN_SIZE &&
           CRYPTO_memcmp(text + sizeof scheme - 1, s->token, TOKEN_SIZE) == 0;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *body, size_t *body_size, void **state)
{
    const server *s = user;
    static int begun;
    (void)version, (void)body;
    if (*state == NULL) { /* libmicrohttpd calls again after the headers */
        *state = &begun;
        if (strcmp(method, MHD_HTTP_METHOD_GET) == 0)
            return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return send_message(c, MHD_HTTP_METHOD_NOT_ALLOWED, "use GET");
    if (*body_size > 0)
        return MHD_NO;
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    const int status = host == NULL ? MHD_HTTP_BAD_REQUEST
                                    : http_host_check(host, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin"),
                                                      NULL, NULL, NULL, (const struct sockaddr *)&s->bound);
    if (status != 0)
        return send_message(c, (unsigned)status, "this server does not accept this host name or origin");
    if (strcmp(path, "/") == 0)
        return send_page(c);
    if (!has_token(s, c))
        return send_message(c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong");
    return send_view(s, c, path);
}

/* ---- start and end ---- */

/* Returns a listening socket, or -1 with the error set. */
static int listen_on(const char *host, const char *port, struct sockaddr_storage *bound)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const int result = getaddrinfo(host, port, &hints, &found);
    if (result != 0)
        return nl_error_set(NL_ERROR_NOT_FOUND, "listen on %s: %s", host, gai_strerror(result)), -1;
    int fd = -1;
    if (!network_is_local(found->ai_addr)) {
        nl_error_set(
            NL_ERROR_PERMISSION,
            "listen on %s: --serve listens only on loopback; from another host, use \"ssh -L %s:127.0.0.1:%s\"", host,
            port, port);
    } else {
        fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
        if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
            nl_error_set_errno("listen on %s port %s", host, port);
            if (fd >= 0)
                close(fd);
            fd = -1;
        } else {
            getsockname(fd, (struct sockaddr *)bound, &(socklen_t){sizeof *bound});
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Splits HOST[:PORT], where HOST may be in brackets. Both parts are allocated. */
static bool split_address(const char *address, char **host, char **port)
{
    const char *text = g_str_has_prefix(address, "http://") ? address + 7 : address;
    const bool bracket = *text == '[';
    const size_t size = bracket ? strcspn(text, "]") : strcspn(text, ":");
    const char *rest = text + size + (bracket && text[size] == ']');
    *host = bracket ? g_strndup(text + 1, size - 1)
                    : g_strndup(*text != '\0' ? text : default_host, *text != '\0' ? size : strlen(default_host));
    *port = g_strdup(*rest == ':' ? rest + 1 : default_port);
    g_strdelimit(*port, "/", '\0');
    const bool good = (*rest == ':' || *rest == '\0' || *rest == '/') && **host != '\0' && **port != '\0' &&
                      strspn(*port, "0123456789") == strlen(*port) && strlen(*port) <= 5 && atoi(*port) <= 65535;
    return good || nl_error_false(NL_ERROR_INVALID, "%s: use http://HOST[:PORT]", address);
}

static char *make_url(const server *s)
{
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    getnameinfo((const struct sockaddr *)&s->bound, sizeof s->bound, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    const bool is_six = strchr(host, ':') != NULL;
    return g_strdup_printf("http://%s%s%s:%s/#token=%s", is_six ? "[" : "", host, is_six ? "]" : "", port, s->token);
}

server *server_start(const char *address, views *v)
{
    server *s = g_new0(server, 1);
    char *host, *port;
    s->views = v;
    int fd = split_address(address, &host, &port) && make_random(s->token) ? listen_on(host, port, &s->bound) : -1;
    g_free(host);
    g_free(port);
    if (fd >= 0) {
        s->daemon =
            MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
                             MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
                             (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
        if (s->daemon == NULL) {
            nl_error_set(NL_ERROR_SYSTEM, "cannot start the HTTP server");
            close(fd);
        }
    }
    if (s->daemon == NULL) {
        g_free(s);
        return NULL;
    }
    s->url = make_url(s);
    return s;
}

void server_stop(server *s)
{
    MHD_stop_daemon(s->daemon);
    g_free(s->url);
    g_free(s);
}

const char *server_url(const server *s)
{
    return s->url;
}
