#include "config.h"

#include "agent/http_server.h"

#include "agent/access.h"
#include "agent/http_clients.h"
#include "agent/service.h"
#include "agents/soap.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"
#include "record/encoder.h"
#include "record/format.h"
#include "service/http_host.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define XML_TYPE "text/xml; charset=utf-8"

enum {
    HEADERS_MAX = 16 << 10,
    TIMEOUT_S = 60,
    DELIVERY_TIMEOUT_S = 3600 * 24,
    DELIVERY_BUFFER_SIZE =
        64 << 10, /* maximum number of unsent bytes of a delivery; further records stay in the subscription's queue */
    BEAT_INTERVAL_S = 5,
    ACCEPT_RETRY_MS = 250,
    DELIVERY_INPUT_MAX = 16 << 10 /* maximum number of unread bytes that a client has sent during its delivery */
};

struct http_server {
    http_server *next;
    agent *agent;
    struct evhttp *http;
    struct evconnlistener *accepting;
    struct event *retry;
    const listening *asked;
    const char *wsdl, *schema;
    const network_list *allow;
};

struct exchange {
    struct evhttp_request *request;
    void (*on_gone)(void *user);
    void *user;
};

static struct bufferevent *bytes_of(struct evhttp_request *request)
{
    return evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
}

static const char *find_header(struct evhttp_request *request, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(request), name);
}

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
    evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* ---- the client ---- */

/*
 * Returns whether the client has a verified certificate. Sets `name` to the certificate's common name, or to "" if the
 * client has no such certificate.
 */
static bool find_certificate(struct bufferevent *bytes, char name[ACCESS_NAME_SIZE])
{
    SSL *ssl = bufferevent_openssl_get_ssl(bytes);
    X509 *shown = ssl != NULL ? SSL_get1_peer_certificate(ssl) : NULL;
    bool good = shown != NULL && SSL_get_verify_result(ssl) == X509_V_OK;
    if (!good || X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, ACCESS_NAME_SIZE) < 0)
        name[0] = '\0';
    X509_free(shown);
    return good;
}

/*
 * Returns whether a client may connect. The client must be on this host or in an allowed network. Without configured
 * networks, a client with a certificate may also connect. A token gives rights, but does not allow a client to connect.
 */
static bool is_allowed(const http_server *s, const struct sockaddr *peer, bool authenticated)
{
    if (network_is_local(peer) || (authenticated && s->allow->count == 0))
        return true;
    return network_list_contains(s->allow, peer);
}

/* Returns the rights of the client, and writes the client's name to `name`. */
static unsigned find_rights(const http_server *s, struct evhttp_request *request, char name[ACCESS_NAME_SIZE])
{
    char certificate[ACCESS_NAME_SIZE];
    const struct sockaddr *peer = evhttp_connection_get_addr(evhttp_request_get_connection(request));
    const char *token = find_header(request, "Authorization");
    bool authenticated = find_certificate(bytes_of(request), certificate);
    token = token != NULL && strncasecmp(token, "Bearer ", 7) == 0 ? token + 7 : NULL;
    if (peer == NULL || !is_allowed(s, peer, authenticated))
        return 0;
    return access_rights(s->agent->access, peer, token, certificate[0] != '\0' ? certificate : NULL, name);
}

/* ---- replies ---- */

static void send_body(struct evhttp_request *request, int status, const char *type, const void *data, size_t size)
{
    struct evbuffer *out = nl_memory_check(evbuffer_new());
    if (evbuffer_add(out, data, size) != 0)
        nl_memory_failed();
    char length[24];
    snprintf(length, sizeof length, "%zu", size); /* libevent adds this header only for HTTP/1.1 clients */
    add_header(request, "Content-Type", type);
    add_header(request, "Content-Length", length);
    evhttp_send_reply(request, status, status == HTTP_OK ? "OK" : "Error", out);
    evbuffer_free(out);
}

/* Sends the current thread's error as a SOAP fault. */
static void send_fault(struct evhttp_request *request)
{
    nl_buffer out = {0};
    soap_put_fault(&out);
    send_body(request, HTTP_INTERNAL, XML_TYPE, out.data, out.size);
    nl_buffer_free(&out);
}

/*
 * Frees a request if its connection has failed. libevent drops such a request without freeing it, but frees all other
 * requests with their connections.
 */
static void free_dropped(struct evhttp_request *request)
{
    if (evhttp_request_get_connection(request) == NULL)
        evhttp_request_free(request);
}

static void on_connection_closed(struct evhttp_connection *connection, void *user)
{
    (void)connection;
    exchange *x = user;
    void (*on_gone)(void *) = x->on_gone;
    void *gone = x->user;
    free_dropped(x->request);
    free(x);
    on_gone(gone);
}

void exchange_keep(exchange *x, void (*on_gone)(void *user), void *user)
{
    x->on_gone = on_gone;
    x->user = user;
    evhttp_connection_set_closecb(evhttp_request_get_connection(x->request), on_connection_closed, x);
}

void exchange_answer(exchange *x, const nl_buffer *message, bool fault)
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(x->request), NULL, NULL);
    send_body(x->request, fault ? HTTP_INTERNAL : HTTP_OK, XML_TYPE, message->data, message->size);
    free(x);
}

/* Checks the Host and Origin headers. If a header is invalid or names another server, rejects the request and returns
 * false. */
static bool begin_request(const http_server *s, struct evhttp_request *request)
{
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    http_clients_request(s->agent->clients, request);
    getsockname(bufferevent_getfd(bytes_of(request)), (struct sockaddr *)&own, &(socklen_t){sizeof own});
    int status = http_host_check(find_header(request, "Host"), find_header(request, "Origin"), s->asked->names,
                                 s->agent->host, s->asked->tls, (struct sockaddr *)&own);
    if (status == 0)
        return true;
    static const char message[] = "this agent does not have the requested name; add names=NAME to its listen URL\n";
    s->agent->counts.refused++;
    add_header(request, "Connection", "close");
    send_body(request, status, "text/plain", message, status == 421 ? sizeof message - 1 : 0);
    return false;
}

static void on_unknown(struct evhttp_request *request, void *user)
{
    if (begin_request(user, request))
        evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void on_wsdl(struct evhttp_request *request, void *user)
{
    const http_server *s = user;
    if (begin_request(s, request))
        send_body(request, HTTP_OK, XML_TYPE, s->wsdl, strlen(s->wsdl));
}

static void on_schema(struct evhttp_request *request, void *user)
{
    const http_server *s = user;
    if (begin_request(s, request))
        send_body(request, HTTP_OK, XML_TYPE, s->schema, strlen(s->schema));
}

static void on_soap(struct evhttp_request *request, void *user)
{
    http_server *s = user;
    char consumer[ACCESS_NAME_SIZE] = "";
    if (evhttp_request_get_command(request) != EVHTTP_REQ_POST) {
        on_wsdl(request, user);
        return;
    }
    if (!begin_request(s, request))
        return;
    s->agent->counts.requests++;
    const char *type = find_header(request, "Content-Type");
    unsigned rights = find_rights(s, request, consumer);
    /* require a Content-Type that a browser does not send to another server without the server's permission */
    if (type == NULL || strncasecmp(type, "text/xml", 8) != 0) {
        nl_error_set(NL_ERROR_INVALID, "invalid Content-Type; SOAP 1.1 uses text/xml");
        send_fault(request);
    } else if (rights == 0) {
        s->agent->counts.refused++;
        nl_error_set(NL_ERROR_PERMISSION, "you have no access rights on this agent");
        send_fault(request);
    } else {
        struct evbuffer *in = evhttp_request_get_input_buffer(request);
        exchange *x = nl_memory_check(calloc(1, sizeof *x));
        x->request = request;
        size_t size = evbuffer_get_length(in);
        const char *message = (const char *)evbuffer_pullup(in, -1);
        service_do(s->agent, x, message != NULL ? message : "", size, consumer, rights);
    }
}

/* ---- deliveries ---- */

typedef struct delivery {
    struct evhttp_request *request;
    subscription *subscription;
    nl_format format;    /* NL_FORMAT_UNKNOWN: XML */
    nl_encoder *encoder; /* NULL for XML and ULM */
    struct event *beat;
    uint64_t sent;
} delivery;

static void on_written(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user);

static void delivery_free(delivery *t, struct evhttp_connection *connection)
{
    struct bufferevent *bytes = evhttp_connection_get_bufferevent(connection);
    evbuffer_remove_cb(bufferevent_get_output(bytes), on_written, t);
    event_free(t->beat);
    nl_encoder_free(t->encoder);
    subscription_free(t->subscription);
    free(t);
}

static void on_delivery_closed(struct evhttp_connection *connection, void *user)
{
    delivery *t = user;
    free_dropped(t->request);
    delivery_free(t, connection);
}

/* Ends the response after the bytes in the buffer. The connection stays open. */
static void delivery_end(delivery *t)
{
    struct evhttp_request *request = t->request;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    bufferevent_setwatermark(bytes_of(request), EV_READ, 0, 0);
    evhttp_connection_set_timeout(connection, TIMEOUT_S);
    evhttp_connection_set_closecb(connection, NULL, NULL);
    delivery_free(t, connection);
    evhttp_send_reply_end(request);
}

static size_t delivery_unsent(const delivery *t)
{
    return evbuffer_get_length(bufferevent_get_output(bytes_of(t->request)));
}

static void delivery_send(delivery *t, const nl_buffer *bytes)
{
    struct evbuffer *chunk = nl_memory_check(evbuffer_new());
    if (evbuffer_add(chunk, bytes->data, bytes->size) != 0)
        nl_memory_failed();
    evhttp_send_reply_chunk(t->request, chunk);
    evbuffer_free(chunk);
}

/* Appends a record in the delivery's format to `out`. If the format is ULM, copies the sensor's line unchanged. */
static void delivery_encode(delivery *t, shared_record *r, nl_buffer *out)
{
    const nl_record *fields = t->format != NL_FORMAT_ULM ? shared_record_decode(r) : NULL;
    if (t->format == NL_FORMAT_ULM) {
        nl_buffer_append(out, r->line, r->size);
    } else if (fields != NULL && t->format == NL_FORMAT_UNKNOWN) {
        soap_put_record(out, fields);
        nl_buffer_append(out, "\n", 1);
    } else if (fields != NULL) {
        nl_encoder_put(t->encoder, fields);
        nl_encoder_finish(t->encoder, out);
    }
}

/* Sends queued records until the delivery's buffer is full. Returns false if the delivery has ended. */
static bool delivery_pump(delivery *t)
{
    nl_buffer bytes = {0};
    size_t unsent = delivery_unsent(t);
    for (shared_record *r;
         unsent + bytes.size < DELIVERY_BUFFER_SIZE && (r = subscription_take(t->subscription)) != NULL;) {
        t->sent++;
        delivery_encode(t, r, &bytes);
        shared_record_release(r);
    }
    if (bytes.size > 0)
        delivery_send(t, &bytes);
    nl_buffer_free(&bytes);
    if (!t->subscription->over || t->subscription->count > 0)
        return true;
    delivery_end(t);
    return false;
}

static void on_queued(void *user)
{
    delivery_pump(user);
}

/* Sends an empty line on an idle text delivery, so that nlagentd detects that the client has disconnected. */
static void on_beat(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    delivery *t = user;
    uint64_t before = t->sent;
    if (!delivery_pump(t))
        return;
    nl_buffer line = {"\n", 1, 0};
    if (t->sent == before && t->format != NL_FORMAT_NLB && delivery_unsent(t) == 0)
        delivery_send(t, &line);
}

/* Schedules the sending of queued records, because the kernel has accepted bytes, so that the delivery may have space
 * again. */
static void on_written(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user)
{
    delivery *t = user;
    (void)buffer;
    if (info->n_deleted > 0 && t->subscription->count > 0)
        event_active(t->subscription->schedule, EV_TIMEOUT, 0);
}

static bool delivery_parse_format(const char *text, nl_format *format)
{
    *format = text == NULL ? NL_FORMAT_ULM : nl_format_parse(text);
    return *format != NL_FORMAT_UNKNOWN || strcmp(text, "xml") == 0;
}

static void delivery_begin(struct evhttp_request *request, subscription *found, nl_format format)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *bytes = bytes_of(request);
    delivery *t = nl_memory_check(calloc(1, sizeof *t));
    *t = (delivery){.request = request, .subscription = found, .format = format};
    if (format != NL_FORMAT_UNKNOWN && format != NL_FORMAT_ULM)
        t->encoder = nl_encoder_new(&(nl_encoder_options){.format = format});
    t->beat = nl_memory_check(event_new(found->sensor->agent->base, -1, EV_PERSIST, on_beat, t));
    if (event_add(t->beat, &(struct timeval){.tv_sec = BEAT_INTERVAL_S}) != 0)
        nl_memory_failed();
    found->on_records = on_queued;
    found->user = t;
    add_header(request, "Content-Type",
               format != NL_FORMAT_UNKNOWN ? nl_format_get_info(format)->media_type : XML_TYPE);
    evhttp_connection_set_timeout(connection, DELIVERY_TIMEOUT_S);
    evhttp_connection_set_closecb(connection, on_delivery_closed, t);
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    /* libevent continues to read, to detect the end of the connection, and the server discards the bytes */
    bufferevent_setwatermark(bytes, EV_READ, 0, DELIVERY_INPUT_MAX);
    evbuffer_add_cb(bufferevent_get_output(bytes), on_written, t);
    delivery_pump(t);
}

static void on_delivery(struct evhttp_request *request, void *user)
{
    http_server *s = user;
    if (!begin_request(s, request))
        return;
    char consumer[ACCESS_NAME_SIZE];
    struct evkeyvalq query = {0};
    const char *parameters = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    nl_format format = NL_FORMAT_ULM;
    bool good = parameters != NULL && evhttp_parse_query_str(parameters, &query) == 0;
    const char *id = good ? evhttp_find_header(&query, "subscription") : NULL;
    subscription *found = id != NULL ? subscription_find(s->agent, id) : NULL;
    good = good && delivery_parse_format(evhttp_find_header(&query, "format"), &format);
    if (find_rights(s, request, consumer) == 0)
        evhttp_send_error(request, 403, NULL);
    else if (!good)
        evhttp_send_error(request, HTTP_BADREQUEST, NULL);
    else if (found == NULL || found->on_records != NULL || strcmp(found->owner, consumer) != 0)
        evhttp_send_error(request, HTTP_NOTFOUND, NULL);
    else
        delivery_begin(request, found, format);
    evhttp_clear_headers(&query);
}

/* ---- the server ---- */

static struct bufferevent *new_tls_connection(struct event_base *base, const http_server *s)
{
    SSL *ssl = nl_tls_new_ssl(s->asked->tls);
    if (ssl == NULL)
        return NULL;
    SSL_set_read_ahead(ssl, 0); /* libevent waits for the socket, not for bytes that OpenSSL has read ahead */
    return bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

/* Returns whether a client may connect or stay connected. Allows a new client whose certificate is still unknown,
 * because the TLS handshake comes later and requires the certificate. */
static bool may_connect(const void *user, const struct sockaddr *peer, struct bufferevent *established)
{
    const http_server *s = user;
    char name[ACCESS_NAME_SIZE];
    return is_allowed(s, peer, established != NULL ? find_certificate(established, name) : s->asked->authenticated);
}

/* Returns the bufferevent for a connection that libevent accepts. libevent calls this function before it assigns the
 * socket. */
static struct bufferevent *on_connection(struct event_base *base, void *user)
{
    const http_server *s = user;
    struct bufferevent *bytes =
        s->asked->tls != NULL ? new_tls_connection(base, s) : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (bytes != NULL)
        http_clients_watch(s->agent->clients, bytes, may_connect, s);
    return bytes;
}

/* The list of all servers, because libevent itself uses the user pointer of a listener, which therefore cannot refer to
 * the server. */
static http_server *all_servers;

/* If no descriptors are free, pauses the listener, so that clients wait in the kernel, and the loop does not spin. */
static void on_accept_error(struct evconnlistener *accepting, void *user)
{
    (void)user;
    const struct timeval pause = {.tv_usec = ACCEPT_RETRY_MS * 1000};
    http_server *s = all_servers;
    while (s != NULL && s->accepting != accepting)
        s = s->next;
    if (s == NULL)
        return;
    program_error("accept: %s; trying again", strerror(errno));
    evconnlistener_disable(accepting);
    event_add(s->retry, &pause);
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    evconnlistener_enable(((http_server *)user)->accepting);
}

http_server *http_server_new(agent *a, const listener *l, const char *wsdl, const char *schema,
                             const network_list *allow)
{
    http_server *s = nl_memory_check(calloc(1, sizeof *s));
    *s = (http_server){
        .next = all_servers, .agent = a, .asked = l->asked, .wsdl = wsdl, .schema = schema, .allow = allow};
    s->http = nl_memory_check(evhttp_new(a->base));
    struct evhttp_bound_socket *bound = nl_memory_check(evhttp_accept_socket_with_handle(s->http, l->fd));
    s->retry = nl_memory_check(evtimer_new(a->base, on_retry, s));
    s->accepting = evhttp_bound_socket_get_listener(bound);
    all_servers = s;
    evconnlistener_set_error_cb(s->accepting, on_accept_error);
    evhttp_set_bevcb(s->http, on_connection, s);
    evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_headers_size(s->http, HEADERS_MAX);
    evhttp_set_max_body_size(s->http, HTTP_BODY_MAX);
    evhttp_set_timeout(s->http, TIMEOUT_S);
    evhttp_set_gencb(s->http, on_unknown, s);
    evhttp_set_cb(s->http, "/soap", on_soap, s);
    evhttp_set_cb(s->http, "/stream", on_delivery, s);
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
    event_free(s->retry);
    evhttp_free(s->http);
    free(s);
}
