#include "config.h"

#include "serve/server.h"

#include "base/error.h"
#include "serve/page.h"
#include "service/http_host.h"
#include "service/http_url.h"
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
    HOST_CONNECTIONS_MAX = 16,    /* maximum number of connections per client address; a browser opens 6 with TLS */
    CONNECTION_MEMORY = 16 << 10, /* bytes for the headers of a request and of its answer */
    TIMEOUT_S = 30,
    THREADS = 4, /* number of threads, and therefore the maximum number of pictures in memory */
    BACKLOG = 32,
    RANDOM_SIZE = 16,
    TOKEN_SIZE = 2 * RANDOM_SIZE,
    TOKEN_SIZE_MAX = 200,
    ADDRESS_SIZE = 8192,
};

static const char default_address[] = "http://127.0.0.1", default_port[] = "14832";
static const char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct server {
    struct MHD_Daemon *daemon;
    views *views;
    jaeger *jaeger;
    nl_tls *tls;      /* NULL without TLS */
    char *cert, *key; /* contents of the PEM files */
    char token[TOKEN_SIZE_MAX + 1];
    char *url;
    struct sockaddr_storage bound;
};

/* Writes a random number in hexadecimal. Returns false and sets the error on failure. */
static bool make_random(char out[TOKEN_SIZE + 1])
{
    unsigned char bytes[RANDOM_SIZE];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return nl_error_false(NL_ERROR_SYSTEM, "cannot get random bytes");
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

/* Sends the page with a policy that allows only scripts and styles with this answer's nonce. */
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

/* ---- Jaeger's query API ---- */

typedef struct api_query {
    jaeger_parameter parameters[QUERY_COUNT_MAX];
    size_t count;
    bool is_bad;
} api_query;

static enum MHD_Result read_api_parameter(void *user, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                          const char *value, size_t value_size)
{
    api_query *q = user;
    (void)kind;
    q->is_bad =
        q->count == QUERY_COUNT_MAX || strlen(name) != name_size || (value != NULL && strlen(value) != value_size);
    if (!q->is_bad)
        q->parameters[q->count++] = (jaeger_parameter){name, value != NULL ? value : ""};
    return q->is_bad ? MHD_NO : MHD_YES;
}

static enum MHD_Result send_api_answer(const server *s, struct MHD_Connection *c, const char *path)
{
    api_query q = {.count = 0};
    char *body;
    MHD_get_connection_values_n(c, MHD_GET_ARGUMENT_KIND, read_api_parameter, &q);
    if (q.is_bad)
        return send_message(c, MHD_HTTP_BAD_REQUEST, "invalid parameters");
    const unsigned status = jaeger_answer(s->jaeger, path, q.parameters, q.count, &body);
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_COPY);
    g_free(body);
    MHD_add_response_header(r, "Content-Type", "application/json");
    return send_answer(c, status, r);
}

/* ---- requests ---- */

/* Returns whether a request has the token. Compares in constant time, so that a client cannot guess the token one byte
 * at a time. */
static bool has_token(const server *s, struct MHD_Connection *c)
{
    static const char scheme[] = "Bearer ";
    const char *text = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    return text != NULL && strncmp(text, scheme, sizeof scheme - 1) == 0 &&
           strlen(text) == sizeof scheme - 1 + strlen(s->token) &&
           CRYPTO_memcmp(text + sizeof scheme - 1, s->token, strlen(s->token)) == 0;
}

/* Checks the Host and Origin headers. Returns 0, or the HTTP status with which the server rejects the request. */
static int check_host(const server *s, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    struct sockaddr_storage local = {.ss_family = AF_UNSPEC};
    if (host == NULL || info == NULL)
        return MHD_HTTP_BAD_REQUEST;
    getsockname(info->connect_fd, (struct sockaddr *)&local, &(socklen_t){sizeof local});
    return http_host_check(host, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin"), NULL, NULL, s->tls,
                           (const struct sockaddr *)&local);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *body, size_t *body_size, void **state)
{
    const server *s = user;
    static int begun;
    (void)version, (void)body;
    if (*state == NULL) { /* libmicrohttpd has read only the headers, and calls the function again later */
        *state = &begun;
        if (strcmp(method, MHD_HTTP_METHOD_GET) == 0)
            return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return send_message(c, MHD_HTTP_METHOD_NOT_ALLOWED, "unsupported method; use GET");
    if (*body_size > 0)
        return MHD_NO;
    const int status = check_host(s, c);
    if (status != 0)
        return send_message(c, (unsigned)status, "this server does not accept this host name or origin");
    if (strcmp(path, "/") == 0)
        return send_page(c);
    if (!has_token(s, c))
        return send_message(c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong");
    return g_str_has_prefix(path, JAEGER_PATH) ? send_api_answer(s, c, path) : send_view(s, c, path);
}

/* ---- start and end ---- */

static const nl_option address_rows[] = {
    {.name = "cert", .value = "FILE", .is_path = true, NL_OPTION_MEMBER(nl_tls_options, cert)},
    {.name = "key", .value = "FILE", .is_path = true, NL_OPTION_MEMBER(nl_tls_options, key)},
    {0},
};

typedef struct server_options {
    const char *token; /* NULL: make a token */
} server_options;

static const nl_option server_rows[] = {
    {.name = "token", .value = "FILE", .is_path = true, NL_OPTION_MEMBER(server_options, token)},
    {0},
};

/* Returns a listening socket, or -1 with the error set. */
static int listen_on(const nl_url *url, bool is_secure, struct sockaddr_storage *bound)
{
    char port[8];
    g_snprintf(port, sizeof port, "%u", url->port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const int result = getaddrinfo(url->host, port, &hints, &found);
    if (result != 0)
        return nl_error_set(NL_ERROR_NOT_FOUND, "listen on %s: %s", url->host, gai_strerror(result)), -1;
    int fd = -1;
    if (!is_secure && !network_is_local(found->ai_addr)) {
        nl_error_set(NL_ERROR_PERMISSION,
                     "listen on %s: other hosts can reach this address, so it requires TLS: "
                     "--serve='https://HOST?cert=FILE&key=FILE' (see netlogctl certificates)",
                     url->host);
    } else {
        fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
        if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
            if (errno == EADDRINUSE)
                nl_error_set(NL_ERROR_BUSY,
                             "listen on %s port %s: %s; choose another port: --serve=http%s://%s%s%s:PORT", url->host,
                             port, strerror(errno), is_secure ? "s" : "", strchr(url->host, ':') != NULL ? "[" : "",
                             url->host, strchr(url->host, ':') != NULL ? "]" : "");
            else
                nl_error_set_errno("listen on %s port %s", url->host, port);
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

/* Parses [http://]HOST[:PORT] or https://HOST[:PORT]?cert=FILE[&key=FILE]. Returns NULL and sets the error if the
 * address is invalid. Sets *is_secure to whether the address begins with https. */
static nl_url *parse_address(const char *address, bool *is_secure)
{
    char text[ADDRESS_SIZE], *full = *address == '\0'                 ? g_strdup(default_address)
                                     : strstr(address, "://") == NULL ? g_strconcat("http://", address, NULL)
                                                                      : g_strdup(address);
    nl_url *url = NULL;
    *is_secure = g_str_has_prefix(full, "https://");
    if (url_from_http(full, default_port, text, sizeof text))
        url = nl_url_parse(text);
    if (url == NULL)
        nl_error_set(NL_ERROR_INVALID,
                     "%s: unsupported address; use http://HOST[:PORT] or https://HOST[:PORT]?cert=FILE&key=FILE",
                     address);
    g_free(full);
    return url;
}

static bool read_pem(const char *path, char **text)
{
    GError *error = NULL;
    const bool good = g_file_get_contents(path, text, NULL, &error);
    if (!good)
        nl_error_set(NL_ERROR_SYSTEM, "%s", error->message);
    g_clear_error(&error);
    return good;
}

/*
 * Sets the token to the first line of a file or, if `path` is NULL, to a random number. A program that asks for the
 * views or for traces, such as Grafana, needs a token that stays the same.
 */
static bool read_token(server *s, const char *path)
{
    char *text;
    if (path == NULL)
        return make_random(s->token);
    if (!read_pem(path, &text))
        return false;
    text[strcspn(text, "\r\n")] = '\0';
    const size_t size = strlen(text);
    const bool good =
        size >= TOKEN_SIZE && size <= TOKEN_SIZE_MAX && strspn(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS) == size;
    if (good)
        g_strlcpy(s->token, text, sizeof s->token);
    g_free(text);
    return good || nl_error_false(NL_ERROR_INVALID,
                                  "%s: invalid token; write %d to %d letters and digits into the file, for example "
                                  "with \"openssl rand -hex 16\"",
                                  path, TOKEN_SIZE, TOKEN_SIZE_MAX);
}

/* Reads the options of the URL, and for https, the certificate and key. Returns false and sets the error on failure. */
static bool read_options(server *s, const nl_url *url, bool is_secure)
{
    nl_tls_options files = {0};
    server_options own = {NULL};
    const nl_url_rows tables[] = {{server_rows, &own}, {is_secure ? address_rows : NULL, &files}, {0}};
    if (nl_url_read_options(url, tables) != NL_OK || !read_token(s, own.token))
        return false;
    if (!is_secure)
        return true;
    s->tls = nl_tls_new(true, &files);
    return s->tls != NULL && read_pem(files.cert, &s->cert) &&
           read_pem(files.key != NULL ? files.key : files.cert, &s->key);
}

static char *make_url(const server *s, const nl_url *address)
{
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    getnameinfo((const struct sockaddr *)&s->bound, sizeof s->bound, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        g_strlcpy(host, g_get_host_name(), sizeof host);
    else if (s->tls != NULL)
        g_strlcpy(host, address->host, sizeof host); /* use the name from the address, because a certificate contains
                                                        names rather than IP addresses */
    const bool is_six = strchr(host, ':') != NULL;
    return g_strdup_printf("http%s://%s%s%s:%s/#token=%s", s->tls != NULL ? "s" : "", is_six ? "[" : "", host,
                           is_six ? "]" : "", port, s->token);
}

static bool start_daemon(server *s, int fd)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD;
    const struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_versions},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, HOST_CONNECTIONS_MAX, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    if (s->tls != NULL)
        flags |= MHD_USE_TLS;
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
                                 MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_ARRAY,
                                 s->tls != NULL ? secure : secure + G_N_ELEMENTS(secure) - 1, MHD_OPTION_END);
    if (s->daemon != NULL)
        return true;
    close(fd);
    return nl_error_false(NL_ERROR_SYSTEM, "cannot start the HTTP server");
}

server *server_start(const char *address, views *v, jaeger *j)
{
    server *s = g_new0(server, 1);
    bool is_secure, good = false;
    nl_url *url = parse_address(address, &is_secure);
    s->views = v;
    s->jaeger = j;
    if (url != NULL && read_options(s, url, is_secure)) {
        const int fd = listen_on(url, is_secure, &s->bound);
        good = fd >= 0 && start_daemon(s, fd);
    }
    if (good) {
        s->url = make_url(s, url);
        http_host_look_up();
    } else {
        server_stop(s);
        s = NULL;
    }
    nl_url_free(url);
    return s;
}

void server_stop(server *s)
{
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon);
    nl_tls_free(s->tls);
    g_free(s->cert);
    g_free(s->key);
    g_free(s->url);
    g_free(s);
}

const char *server_url(const server *s)
{
    return s->url;
}
