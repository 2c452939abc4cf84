#include "config.h"

#include "record/format_info.h"
#include "agent/http_server.h"

#include "agent/access.h"
#include "agent/http_clients.h"
#include "agent/service.h"
#include "agents/soap.h"
#include "program/program.h"
#include "service/http_host.h"
#include "record/encoder.h"
#include "record/format.h"
#include "base/error.h"
#include "base/memory.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEADERS_MAX = 16 << 10,
    TIMEOUT_S = 60,
    STREAM_TIMEOUT_S = 3600 * 24,
    STREAM_BUFFER = 64 << 10, /* what waits in the kernel's stead before records wait in the subscription's queue */
    BEAT_S = 5,
    RETRY_MS = 250,
    UNWANTED_MAX = 16 << 10
};

struct http_server {
    http_server *next;
    agent *agent;
    struct evhttp *http;
    struct evconnlistener *accepting;
    struct event *again;
    const listening *asked;
    const char *wsdl, *schema;
    const network_list *allow;
};

struct exchange {
    struct evhttp_request *request;
    void (*on_gone)(void *user);
    void *user;
};

/* ---- who it is ---- */

static struct evhttp_connection *connection_of(struct evhttp_request *request)
{
    return evhttp_request_get_connection(request);
}

/* Whether a certificate was shown and authenticated for, with its common name, "" when it has none. */
static bool find_certificate(struct bufferevent *bytes, char name[ACCESS_NAME])
{
    SSL *ssl = bufferevent_openssl_get_ssl(bytes);
    X509 *shown = ssl != NULL ? SSL_get1_peer_certificate(ssl) : NULL;
    bool good = shown != NULL && SSL_get_verify_result(ssl) == X509_V_OK;
    if (!good || X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, ACCESS_NAME) < 0)
        name[0] = '\0';
    X509_free(shown);
    return good;
}

/* From this machine, or with a certificate when no networks are listed; those hold for all. A token has its turn later:
 * it says what somebody may who may connect. */
static bool is_allowed(const http_server *s, const struct sockaddr *peer, bool authenticated)
{
    if (network_is_local(peer) || (authenticated && s->allow->count == 0))
        return true;
    return network_list_contains(s->allow, peer);
}

/* The rights of who asks; 0 with a fault sent when there are none at all. */
static unsigned find_rights(const http_server *s, struct evhttp_request *request, char name[ACCESS_NAME])
{
    char certificate[ACCESS_NAME];
    const struct sockaddr *peer = evhttp_connection_get_addr(connection_of(request));
    const char *token = evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization");
    bool authenticated = find_certificate(evhttp_connection_get_bufferevent(connection_of(request)), certificate);
    token = token != NULL && strncasecmp(token, "Bearer ", 7) == 0 ? token + 7 : NULL;
    if (peer == NULL || !is_allowed(s, peer, authenticated))
        return 0;
    return access_rights(s->agent->access, peer, token, certificate[0] != '\0' ? certificate : NULL, name);
}

/* ---- exchanges ---- */

/* Libevent has let go of a request that was not answered when its connection failed; one that is of a connection still
 * goes with that. */
static void free_orphan(struct evhttp_request *request)
{
    if (connection_of(request) == NULL)
        evhttp_request_free(request);
}

static void on_connection_closed(struct evhttp_connection *connection, void *user)
{
    (void)connection;
    exchange *x = user;
    void (*on_gone)(void *) = x->on_gone;
    void *gone = x->user;
    free_orphan(x->request);
    free(x);
    if (on_gone != NULL)
        on_gone(gone);
}

void exchange_keep(exchange *x, void (*on_gone)(void *user), void *user)
{
    x->on_gone = on_gone;
    x->user = user;
    evhttp_connection_set_closecb(connection_of(x->request), on_connection_closed, x);
}

static void send_body(struct evhttp_request *request, int status, const char *type, const void *data, size_t size)
{
    struct evbuffer *out = nl_memory_check(evbuffer_new());
    if (evbuffer_add(out, data, size) != 0)
        nl_memory_failed();
    char length[24];
    snprintf(length, sizeof length, "%zu", size); /* libevent says it to HTTP/1.1 only */
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", length);
    evhttp_send_reply(request, status, status == HTTP_OK ? "OK" : "Error", out);
    evbuffer_free(out);
}

void exchange_answer(exchange *x, const nl_buffer *message, bool fault)
{
    evhttp_connection_set_closecb(connection_of(x->request), NULL, NULL);
    send_body(x->request, fault ? HTTP_INTERNAL : HTTP_OK, "text/xml; charset=utf-8", message->data, message->size);
    free(x);
}

/* Sends this thread's error. */
static void send_fault(struct evhttp_request *request)
{
    nl_buffer out = {0};
    soap_put_fault(&out);
    send_body(request, HTTP_INTERNAL, "text/xml; charset=utf-8", out.data, out.size);
    nl_buffer_free(&out);
}

/* Refuses a request that was not meant for this agent. Whether it may be answered. */
static bool begin_request(const http_server *s, struct evhttp_request *request)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    struct bufferevent *bytes = evhttp_connection_get_bufferevent(connection_of(request));
    http_clients_request(s->agent->clients, request);
    getsockname(bufferevent_getfd(bytes), (struct sockaddr *)&own, &(socklen_t){sizeof own});
    const char *host = evhttp_find_header(headers, "Host");
    int status = http_host_check(host, evhttp_find_header(headers, "Origin"), s->asked->names, s->agent->host,
                                 s->asked->tls, (struct sockaddr *)&own);
    if (status == 0)
        return true;
    static const char message[] = "this agent has no such name; add it to its listen URL: names=NAME\n";
    s->agent->counts.refused++;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    send_body(request, status, "text/plain", message, status == 421 ? sizeof message - 1 : 0);
    return false;
}

static void on_unknown(struct evhttp_request *request, void *user)
{
    if (begin_request(user, request))
        evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

/* ---- /soap ---- */

static void on_soap(struct evhttp_request *request, void *user)
{
    http_server *s = user;
    if (!begin_request(s, request))
        return;
    char consumer[ACCESS_NAME] = "";
    struct evbuffer *in = evhttp_request_get_input_buffer(request);
    const char *type = evhttp_find_header(evhttp_request_get_input_headers(request), "Content-Type");
    if (evhttp_request_get_command(request) != EVHTTP_REQ_POST) {
        send_body(request, HTTP_OK, "text/xml; charset=utf-8", s->wsdl, strlen(s->wsdl));
        return;
    }
    s->agent->counts.requests++;
    unsigned rights = find_rights(s, request, consumer);
    /* A page in somebody's browser can post anything but this type to where it should not. */
    if (type == NULL || strncasecmp(type, "text/xml", 8) != 0) {
        nl_error_set(NL_ERROR_INVALID, "the Content-Type of SOAP 1.1 is text/xml");
        send_fault(request);
    } else if (rights == 0) {
        s->agent->counts.refused++;
        nl_error_set(NL_ERROR_PERMISSION, "nothing is permitted to you here");
        send_fault(request);
    } else {
        exchange *x = nl_memory_check(calloc(1, sizeof *x));
        x->request = request;
        size_t size = evbuffer_get_length(in);
        const char *message = (const char *)evbuffer_pullup(in, -1);
        service_do(s->agent, x, message != NULL ? message : "", size, consumer, rights);
    }
}

/* ---- /stream ---- */

typedef struct stream {
    struct evhttp_request *request;
    subscription *subscription;
    nl_format format; /* NL_FORMAT_UNKNOWN: XML */
    nl_encoder *encoder;
    struct event *beat;
    uint64_t sent;
} stream;

static void on_written(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user);

static void stream_free(stream *t, struct evhttp_connection *connection)
{
    struct bufferevent *bytes = evhttp_connection_get_bufferevent(connection);
    evbuffer_remove_cb(bufferevent_get_output(bytes), on_written, t);
    event_free(t->beat);
    nl_encoder_free(t->encoder);
    subscription_free(t->subscription);
    free(t);
}

static void on_stream_closed(struct evhttp_connection *connection, void *user)
{
    stream *t = user;
    free_orphan(t->request);
    stream_free(t, connection);
}

/* Ends the response. The client gets what was sent, and its connection stays. */
static void end_stream(stream *t)
{
    struct evhttp_request *request = t->request;
    struct evhttp_connection *connection = connection_of(request);
    bufferevent_setwatermark(evhttp_connection_get_bufferevent(connection), EV_READ, 0, 0);
    evhttp_connection_set_timeout(connection, TIMEOUT_S);
    evhttp_connection_set_closecb(connection, NULL, NULL);
    stream_free(t, connection);
    evhttp_send_reply_end(request);
}

static size_t waiting(const stream *t)
{
    struct bufferevent *bytes = evhttp_connection_get_bufferevent(connection_of(t->request));
    return evbuffer_get_length(bufferevent_get_output(bytes));
}

static void send_chunk(stream *t, const nl_buffer *bytes)
{
    struct evbuffer *chunk = nl_memory_check(evbuffer_new());
    if (evbuffer_add(chunk, bytes->data, bytes->size) != 0)
        nl_memory_failed();
    evhttp_send_reply_chunk(t->request, chunk);
    evbuffer_free(chunk);
}

/* Sends what waits, as far as its client takes it. Returns false if the stream has ended. */
static bool send_waiting(stream *t)
{
    const nl_record *record;
    nl_buffer bytes = {0};
    while (waiting(t) + bytes.size < STREAM_BUFFER && subscription_take(t->subscription, &record)) {
        t->sent++;
        if (t->format == NL_FORMAT_UNKNOWN) {
            soap_put_record(&bytes, record);
            nl_buffer_append(&bytes, "\n", 1);
        } else {
            nl_encoder_put(t->encoder, record);
            nl_encoder_finish(t->encoder, &bytes);
        }
    }
    if (bytes.size > 0)
        send_chunk(t, &bytes);
    nl_buffer_free(&bytes);
    if (!t->subscription->over || t->subscription->count > 0)
        return true;
    end_stream(t);
    return false;
}

static void pump(void *user)
{
    send_waiting(user);
}

/* A look at a client that takes nothing for a while; in text, an empty line, so that one who is gone is noticed. */
static void on_beat(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    stream *t = user;
    uint64_t before = t->sent;
    if (!send_waiting(t))
        return;
    nl_buffer line = {"\n", 1, 0};
    if (t->sent == before && t->format != NL_FORMAT_NLB && waiting(t) == 0)
        send_chunk(t, &line);
}

/* The kernel took something: there may be room for more. */
static void on_written(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user)
{
    stream *t = user;
    (void)buffer;
    if (info->n_deleted > 0 && t->subscription->count > 0)
        event_active(t->subscription->turn, EV_TIMEOUT, 0);
}

static bool read_format(const char *text, nl_format *format)
{
    if (text == NULL || strcmp(text, "xml") == 0) {
        *format = text == NULL ? NL_FORMAT_ULM : NL_FORMAT_UNKNOWN;
        return true;
    }
    *format = nl_format_parse(text);
    return *format != NL_FORMAT_UNKNOWN;
}

static void begin_stream(struct evhttp_request *request, subscription *found, nl_format format)
{
    const char *type = format != NL_FORMAT_UNKNOWN ? nl_format_get_info(format)->media_type : "text/xml; charset=utf-8";
    struct evhttp_connection *connection = connection_of(request);
    struct bufferevent *bytes = evhttp_connection_get_bufferevent(connection);
    stream *t = nl_memory_check(calloc(1, sizeof *t));
    *t = (stream){.request = request, .subscription = found, .format = format};
    if (format != NL_FORMAT_UNKNOWN)
        t->encoder = nl_encoder_new(&(nl_encoder_options){.format = format});
    t->beat = nl_memory_check(event_new(found->sensor->agent->base, -1, EV_PERSIST, on_beat, t));
    if (event_add(t->beat, &(struct timeval){.tv_sec = BEAT_S}) != 0)
        nl_memory_failed();
    found->on_records = pump;
    found->user = t;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
    evhttp_connection_set_timeout(connection, STREAM_TIMEOUT_S);
    evhttp_connection_set_closecb(connection, on_stream_closed, t);
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    /* Libevent goes on reading, so that the end is noticed; what comes is of no use. */
    bufferevent_setwatermark(bytes, EV_READ, 0, UNWANTED_MAX);
    evbuffer_add_cb(bufferevent_get_output(bytes), on_written, t);
    pump(t);
}

static void on_stream(struct evhttp_request *request, void *user)
{
    http_server *s = user;
    if (!begin_request(s, request))
        return;
    char consumer[ACCESS_NAME];
    struct evkeyvalq query = {0};
    const char *parameters = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    nl_format format = NL_FORMAT_ULM;
    bool good = parameters != NULL && evhttp_parse_query_str(parameters, &query) == 0;
    const char *id = good ? evhttp_find_header(&query, "subscription") : NULL;
    subscription *found = id != NULL ? subscription_find(s->agent, id) : NULL;
    good = good && read_format(evhttp_find_header(&query, "format"), &format);
    if (find_rights(s, request, consumer) == 0)
        evhttp_send_error(request, 403, NULL);
    else if (!good)
        evhttp_send_error(request, HTTP_BADREQUEST, NULL);
    else if (found == NULL || found->on_records != NULL || strcmp(found->owner, consumer) != 0)
        evhttp_send_error(request, HTTP_NOTFOUND, NULL);
    else
        begin_stream(request, found, format);
    evhttp_clear_headers(&query);
}

/* ---- the server ---- */

static void on_wsdl(struct evhttp_request *request, void *user)
{
    const http_server *s = user;
    if (begin_request(s, request))
        send_body(request, HTTP_OK, "text/xml; charset=utf-8", s->wsdl, strlen(s->wsdl));
}

static void on_schema(struct evhttp_request *request, void *user)
{
    const http_server *s = user;
    if (begin_request(s, request))
        send_body(request, HTTP_OK, "text/xml; charset=utf-8", s->schema, strlen(s->schema));
}

/* A connection within TLS. */
static struct bufferevent *new_secure_connection(struct event_base *base, const http_server *s)
{
    SSL *ssl = nl_tls_new_ssl(s->asked->tls);
    if (ssl == NULL)
        return NULL;
    SSL_set_read_ahead(ssl, 0); /* libevent waits for the socket: what was read ahead of it would be forgotten */
    return bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

/*
 * Whether a client may connect or stay connected. A new client may connect without a certificate, which the TLS
 * handshake requires later.
 */
static bool may_connect(const void *user, const struct sockaddr *peer, struct bufferevent *established)
{
    const http_server *s = user;
    char name[ACCESS_NAME];
    return is_allowed(s, peer, established != NULL ? find_certificate(established, name) : s->asked->authenticated);
}

/* Called by libevent for each connection that it accepts, which gets its socket next. */
static struct bufferevent *new_connection(struct event_base *base, void *user)
{
    const http_server *s = user;
    struct bufferevent *bytes = s->asked->tls != NULL ? new_secure_connection(base, s)
                                                      : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (bytes != NULL)
        http_clients_watch(s->agent->clients, bytes, may_connect, s);
    return bytes;
}

/* All of them: a listener's error says nothing of whose it is, for libevent has set its user itself. */
static http_server *all_servers;

/* Out of descriptors: whoever knocks waits in the kernel until some are free, and the loop does not spin meanwhile. */
static void on_accept_error(struct evconnlistener *accepting, void *user)
{
    (void)user;
    const struct timeval pause = {.tv_usec = RETRY_MS * 1000};
    http_server *s = all_servers;
    while (s != NULL && s->accepting != accepting)
        s = s->next;
    if (s == NULL)
        return;
    program_error("accept: %s; trying again", strerror(errno));
    evconnlistener_disable(accepting);
    event_add(s->again, &pause);
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    evconnlistener_enable(((http_server *)user)->accepting);
}

http_server *http_server_new(agent *a, const listener *l, const char *wsdl, const char *schema,
                             const network_list *allow)
{
    http_server *s = nl_memory_check(calloc(1, sizeof *s));
    s->http = nl_memory_check(evhttp_new(a->base));
    struct evhttp_bound_socket *bound = nl_memory_check(evhttp_accept_socket_with_handle(s->http, l->fd));
    s->again = nl_memory_check(evtimer_new(a->base, on_again, s));
    s->accepting = evhttp_bound_socket_get_listener(bound);
    s->next = all_servers;
    all_servers = s;
    s->agent = a;
    evconnlistener_set_error_cb(s->accepting, on_accept_error);
    s->asked = l->asked;
    s->wsdl = wsdl;
    s->schema = schema;
    s->allow = allow;
    evhttp_set_bevcb(s->http, new_connection, s);
    evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_headers_size(s->http, HEADERS_MAX);
    evhttp_set_max_body_size(s->http, HTTP_BODY_MAX);
    evhttp_set_timeout(s->http, TIMEOUT_S);
    evhttp_set_gencb(s->http, on_unknown, s);
    evhttp_set_cb(s->http, "/soap", on_soap, s);
    evhttp_set_cb(s->http, "/stream", on_stream, s);
    evhttp_set_cb(s->http, "/nlagent.wsdl", on_wsdl, s);
    evhttp_set_cb(s->http, "/netlogger.xsd", on_schema, s);
    return s;
}

void http_server_change(http_server *s, const listener *l, const network_list *allow)
{
    s->asked = l->asked;
    s->allow = allow;
}

void http_server_free(http_server *s)
{
    http_server **link = &all_servers;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    event_free(s->again);
    evhttp_free(s->http);
    free(s);
}
