/*
 * Implements channels, with OpenSSL for TLS.
 *
 * OpenSSL reads and writes through the module's own BIO, because OpenSSL's socket BIO raises SIGPIPE. The module
 * recognizes failures by that BIO and by SSL_want. The module does not use SSL_get_error: that function requires an
 * empty error queue, but the queue may contain the program's errors.
 */
#include "config.h"

#include "transport/channel.h"

#include "base/error.h"

#include "transport/openssl.h"
#include "transport/peer.h"
#include "transport/tls_failure.h"
#include "transport/tls_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_AHEAD = 64 << 10, TICKET_S = 300, FIRST_SIZE = 16 };

struct nl_tls {
    SSL_CTX *context;
    char *ca;             /* file of trusted CAs, for messages, or NULL */
    SSL_SESSION *resumed; /* the latest session of a client, for resumption */
    const char *peers;    /* value of a server's option peers, or NULL; owned by the context */
    bool revokes;         /* a server checks revocation lists */
};

typedef struct nl_tls_session {
    SSL *ssl;
    nl_tls *tls; /* the certificates of a client; NULL for a server */
    int fd;
    int failed;             /* errno with which all further operations fail, or 0 */
    bool ended;             /* the peer has ended the connection */
    bool more;              /* the latest read did not end with EAGAIN */
    bool midway;            /* a write is incomplete */
    bool asked;             /* the server requested a client certificate */
    bool has_ticket;        /* the server sent a ticket, so it has accepted the client */
    const char *name;       /* the name that a client requires in the server's certificate */
    char first[FIRST_SIZE]; /* the first bytes that the peer sent */
    size_t first_size;
    const char *what; /* message for EPROTO: a static text, or `rejection` */
    char *rejection;  /* why the peer's certificate was rejected, or NULL */
} nl_tls_session;

/* ---- isolation from the rest of the process ---- */

/*
 * Each call of OpenSSL holds this lock for reading. fork and OpenSSL's clean-up at exit hold the lock for writing.
 * After the clean-up, `enter` rejects calls, because the writer thread may still be running.
 */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static bool cleaned_up;
static BIO_METHOD *socket_method;
static int peers_index; /* index of a context's copy of peers; the context owns the copy because connections may outlive
                           their nl_tls */

/*
 * The reason code of the mark that `enter` puts into OpenSSL's error queue. Errors after the mark belong to this
 * module, and errors before it to the program. OpenSSL itself empties the queue during a handshake.
 */
enum { OURS_FROM_HERE = 1 };

/* Prepares for a call of OpenSSL. Returns false and sets errno to ESHUTDOWN if OpenSSL has been cleaned up. */
static bool enter(void)
{
    pthread_rwlock_rdlock(&gate);
    if (!cleaned_up) {
        ERR_set_mark();
        ERR_raise(ERR_LIB_USER, OURS_FROM_HERE);
        return true;
    }
    pthread_rwlock_unlock(&gate);
    errno = ESHUTDOWN;
    return false;
}

/* Ends the use of OpenSSL that `enter` began, and removes this module's errors from the queue. Keeps errno. */
static void leave(void)
{
    int error = errno;
    ERR_pop_to_mark();
    pthread_rwlock_unlock(&gate);
    errno = error;
}

static void close_gate(void)
{
    pthread_rwlock_wrlock(&gate);
}

static void open_gate(void)
{
    pthread_rwlock_unlock(&gate);
}

static void open_gate_in_child(void)
{
    gate = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER; /* the lock's owner has another thread ID in the child */
}

static void on_clean_up(void)
{
    close_gate();
    cleaned_up = true;
    open_gate();
}

static int socket_write(BIO *bio, const char *data, int size)
{
    nl_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t put = send(session->fd, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    else if (put < 0)
        session->failed = errno;
    return (int)put;
}

static int socket_read(BIO *bio, char *data, int size)
{
    nl_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = recv(session->fd, data, (size_t)size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    else if (got < 0)
        session->failed = errno;
    else if (got == 0)
        session->ended = true;
    for (ssize_t i = 0; i < got && session->first_size < FIRST_SIZE; i++)
        session->first[session->first_size++] = data[i];
    return (int)got;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)number, (void)pointer;
    const nl_tls_session *session = BIO_get_data(bio);
    return command == BIO_CTRL_EOF ? session != NULL && session->ended : command == BIO_CTRL_FLUSH;
}

static void free_peers(void *parent, void *peers, CRYPTO_EX_DATA *data, int index, long number, void *pointer)
{
    (void)parent, (void)data, (void)index, (void)number, (void)pointer;
    free(peers);
}

/*
 * Initializes OpenSSL and disables its clean-up at exit, which would run before logs are flushed. OPENSSL_atexit
 * reports when the program itself cleans up OpenSSL.
 */
static void prepare(void)
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    OPENSSL_atexit(on_clean_up);
    pthread_atfork(close_gate, open_gate, open_gate_in_child);
    peers_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_peers);
    socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "NetLogger socket");
    if (socket_method == NULL)
        return;
    BIO_meth_set_write(socket_method, socket_write);
    BIO_meth_set_read(socket_method, socket_read);
    BIO_meth_set_ctrl(socket_method, socket_control);
}

/* Makes OpenSSL ready for use. Returns false and sets the error on failure. */
static bool load_openssl(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!nl_openssl_load())
        return false;
    pthread_once(&once, prepare);
    return true;
}

/* ---- certificates ---- */

static bool is_mark(unsigned long error)
{
    return ERR_GET_LIB(error) == ERR_LIB_USER && ERR_GET_REASON(error) == OURS_FROM_HERE;
}

/* Returns OpenSSL's message for an error, in static storage. */
static const char *message_of(unsigned long error)
{
    if (ERR_SYSTEM_ERROR(error))
        return strerror(ERR_GET_REASON(error));
    const char *message = error == 0 || is_mark(error) ? NULL : ERR_reason_error_string(error);
    return message != NULL ? message : "TLS failed";
}

static bool cannot_use(const char *what, const char *file)
{
    /* The first error is the cause; later errors only report where the first error occurred. */
    unsigned long error, first = 0;
    while ((error = ERR_get_error()) != 0)
        first = is_mark(error) ? 0 : first != 0 ? first : error;
    return nl_error_false(NL_ERROR_INVALID, "%s %s: %s", what, file, message_of(first));
}

/* Supplies no passphrase, so that OpenSSL does not ask the user for one. */
static int no_passphrase(char *out, int size, int writing, void *user)
{
    (void)out, (void)size, (void)writing, (void)user;
    return -1;
}

static const char no_such_peer[] = "the client's certificate has none of the names in peers=";

/*
 * Called for each certificate in the peer's chain. Checks the names of a trusted client, and describes a rejection.
 * Returns 1 to accept the certificate, and 0 to reject it.
 */
static int on_verified(int good, X509_STORE_CTX *verifying)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(verifying, SSL_get_ex_data_X509_STORE_CTX_idx());
    nl_tls_session *session = SSL_get_app_data(ssl); /* NULL for a connection from nl_tls_new_ssl */
    if (good != 1 && session != NULL) {
        char text[NL_TLS_FAILURE_SIZE];
        nl_tls_describe_rejected(text, verifying, SSL_is_server(ssl), session->name,
                                 session->tls != NULL ? session->tls->ca : NULL);
        free(session->rejection);
        session->rejection = strdup(text);
    }
    if (good != 1 || X509_STORE_CTX_get_error_depth(verifying) != 0)
        return good;
    const char *peers = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), peers_index);
    if (peers == NULL || nl_tls_names_match(X509_STORE_CTX_get_current_cert(verifying), peers))
        return 1;
    X509_STORE_CTX_set_error(verifying, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

/*
 * Loads revocation lists. OpenSSL also rejects certificates if their CA's list is missing or expired. Returns false on
 * failure.
 */
static bool load_revoked(SSL_CTX *context, const char *file)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (lookup == NULL || X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) < 1)
        return cannot_use("revocation list", file);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return true;
}

static bool load_peers(nl_tls *tls, const nl_tls_options *options)
{
    if (options->crl == NULL && options->peers == NULL)
        return true;
    if (options->ca == NULL)
        return nl_error_false(NL_ERROR_INVALID,
                              "crl= and peers= require ca=FILE, so that clients present certificates");
    if (options->crl != NULL && !load_revoked(tls->context, options->crl))
        return false;
    tls->revokes = options->crl != NULL;
    if (options->peers == NULL)
        return true;
    char *peers = strdup(options->peers);
    if (peers == NULL || SSL_CTX_set_ex_data(tls->context, peers_index, peers) != 1) {
        free(peers);
        return false;
    }
    tls->peers = peers;
    return true;
}

/* Offers a protocol to servers (RFC 7301). Returns false on failure. */
static bool offer_protocol(SSL_CTX *context, const char *protocol)
{
    unsigned char list[16];
    size_t size = strlen(protocol);
    list[0] = (unsigned char)size;
    memcpy(list + 1, protocol, size);
    return SSL_CTX_set_alpn_protos(context, list, (unsigned)size + 1) == 0;
}

/* Selects the server's protocol, whose name is `user`, if the client offers it (RFC 7301). */
static int on_protocols(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                        const unsigned char *offered, unsigned offered_size, void *user)
{
    (void)ssl;
    size_t size = strlen(user);
    for (unsigned at = 0; at < offered_size; at += 1U + offered[at])
        if (offered[at] == size && offered_size - at > size && memcmp(offered + at + 1, user, size) == 0) {
            *chosen = offered + at + 1;
            *chosen_size = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool load(SSL_CTX *context, bool server, const nl_tls_options *options)
{
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    const char *cert = options->cert, *key = options->key != NULL ? options->key : cert;
    if (cert == NULL && (server || key != NULL))
        return nl_error_false(NL_ERROR_INVALID, "missing cert=FILE");
    if (cert != NULL && SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return cannot_use("certificate", cert);
    if (key != NULL && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return options->key != NULL ? cannot_use("key", key)
                                    : nl_error_false(NL_ERROR_INVALID,
                                                     "%s has no usable private key; set the option key to the "
                                                     "file of the key",
                                                     cert);
    if (options->ca != NULL && SSL_CTX_load_verify_file(context, options->ca) != 1)
        return cannot_use("certificates", options->ca);
    if (options->ca == NULL && !server)
        SSL_CTX_set_default_verify_paths(context);
    if (options->protocol != NULL && server)
        SSL_CTX_set_alpn_select_cb(context, on_protocols, (void *)(uintptr_t)options->protocol);
    if (options->protocol != NULL && !server && !offer_protocol(context, options->protocol))
        return nl_error_false(NL_ERROR_UNSUPPORTED, "TLS is not available");
    if (options->ca != NULL && server)
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(options->ca));
    return true;
}

/* Called when the server requests a client certificate. */
static int on_asked(SSL *ssl, void *unused)
{
    (void)unused;
    nl_tls_session *session = SSL_get_app_data(ssl);
    session->asked = true;
    return 1;
}

/* Called when the server sends a ticket for resumption. */
static int on_ticket(SSL *ssl, SSL_SESSION *ticket)
{
    nl_tls_session *session = SSL_get_app_data(ssl);
    session->has_ticket = true;
    SSL_SESSION_free(session->tls->resumed);
    session->tls->resumed = ticket;
    return 1;
}

static void settle(SSL_CTX *context, bool server, bool verified)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, READ_AHEAD);
    SSL_CTX_set_verify(context, !verified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       on_verified);
    if (server) {
        static const unsigned char name[] = "netlogger";
        SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets need no cache */
        SSL_CTX_set_timeout(context, TICKET_S);                      /* a resumed session does not check the certificate
                                                                      * again */
        return;
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, on_ticket);
    SSL_CTX_set_cert_cb(context, on_asked, NULL);
}

nl_tls *nl_tls_new(bool server, const nl_tls_options *options)
{
    if (!load_openssl())
        return NULL;
    if (!enter())
        return nl_error_null(NL_ERROR_UNSUPPORTED, "TLS is not available");
    nl_error_clear();
    nl_tls *tls = calloc(1, sizeof *tls);
    if (tls != NULL && socket_method != NULL)
        tls->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    bool good = tls != NULL && tls->context != NULL && load(tls->context, server, options) && load_peers(tls, options);
    if (good)
        settle(tls->context, server, !server || options->ca != NULL);
    if (good && options->ca != NULL)
        tls->ca = strdup(options->ca); /* if this fails, messages do not name the file */
    leave();
    if (good)
        return tls;
    nl_tls_free(tls);
    if (nl_error_get_code() == NL_ERROR_NONE)
        nl_error_set(NL_ERROR_UNSUPPORTED, "TLS is not available");
    return NULL;
}

void nl_tls_free(nl_tls *tls)
{
    if (tls != NULL && enter()) {
        SSL_SESSION_free(tls->resumed);
        SSL_CTX_free(tls->context);
        leave();
    }
    if (tls != NULL)
        free(tls->ca);
    free(tls);
}

bool nl_tls_has_name(nl_tls *tls, const char *name)
{
    if (!enter())
        return false;
    X509 *own = SSL_CTX_get0_certificate(tls->context);
    bool found = own != NULL && (X509_check_host(own, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1 ||
                                 X509_check_ip_asc(own, name, 0) == 1);
    leave();
    return found;
}

/* ---- connections ---- */

static int64_t expiry_of(const X509 *certificate)
{
    struct tm end;
    if (certificate == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
        return INT64_MAX;
    return timegm(&end);
}

int64_t nl_tls_get_expiry(nl_tls *tls)
{
    if (!enter())
        return INT64_MAX;
    int64_t expiry_s = expiry_of(SSL_CTX_get0_certificate(tls->context));
    leave();
    return expiry_s;
}

int64_t nl_tls_read_expiry(const char *path)
{
    FILE *file = fopen(path, "re");
    int64_t expiry_s = INT64_MAX;
    if (file != NULL && load_openssl() && enter()) {
        X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
        expiry_s = expiry_of(certificate);
        X509_free(certificate);
        leave();
    }
    if (file != NULL)
        fclose(file);
    return expiry_s;
}

SSL *nl_tls_new_ssl(nl_tls *tls)
{
    if (!enter())
        return NULL;
    SSL *ssl = SSL_new(tls->context);
    leave();
    return ssl;
}

/* Sets the name for which the certificate must be valid. Returns false on failure. */
static bool expect(SSL *ssl, const char *name)
{
    char host[256];
    unsigned char address[16];
    snprintf(host, sizeof host, "%.*s", (int)strcspn(name, "%"), name);
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1;
    size_t size = strlen(host);
    if (size > 0 && host[size - 1] == '.')
        host[size - 1] = '\0';
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return *host != '\0' && X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

static bool tls_begin(nl_tls_session *session, nl_tls *tls, const char *name)
{
    session->ssl = SSL_new(tls->context);
    BIO *bio = session->ssl != NULL ? BIO_new(socket_method) : NULL;
    if (bio == NULL)
        return false;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    SSL_set_app_data(session->ssl, session);
    if (name == NULL) {
        SSL_set_accept_state(session->ssl);
        return true;
    }
    session->tls = tls;
    session->name = name;
    SSL_set_connect_state(session->ssl);
    if (tls->resumed != NULL)
        SSL_set_session(session->ssl, tls->resumed);
    return expect(session->ssl, name);
}

static void session_free(nl_tls_session *session)
{
    if (session != NULL && enter()) {
        SSL_free(session->ssl);
        leave();
    }
    if (session != NULL)
        free(session->rejection);
    free(session);
}

static void session_end(nl_tls_session *session)
{
    if (session == NULL || session->failed != 0 || !enter())
        return;
    if (SSL_is_init_finished(session->ssl) && !session->midway)
        SSL_shutdown(session->ssl);
    leave();
}

bool nl_channel_secure(nl_channel *channel, nl_tls *tls, const char *name)
{
    nl_tls_session *session = calloc(1, sizeof *session);
    if (session == NULL || !enter()) {
        free(session);
        return false;
    }
    session->fd = channel->fd;
    bool good = tls_begin(session, tls, name);
    leave();
    if (!good) {
        session_free(session);
        return false;
    }
    channel->tls = session;
    return true;
}

/* Returns the message for EPROTO. On a server, also sends an alert to a client that does not use TLS. */
static const char *describe_failure(const nl_tls_session *session, unsigned long error)
{
    static const char alert[] = {0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46}; /* fatal, protocol_version */
    const bool begun = SSL_is_init_finished(session->ssl), server = SSL_is_server(session->ssl);
    const long verified = SSL_get_verify_result(session->ssl);
    const char *problem = NULL;
    if (verified == X509_V_ERR_APPLICATION_VERIFICATION)
        return no_such_peer;
    if (!begun && session->rejection != NULL)
        return session->rejection;
    if (!begun && verified != X509_V_OK)
        return X509_verify_cert_error_string(verified);
    if (!begun && server && session->first_size > 0 && session->first[0] != 0x16) {
        send(session->fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
        return "the client does not use TLS; use x-netlogs:// in its URL";
    }
    if (!begun && !server)
        problem = nl_peer_problem_of_tls(session->first, session->first_size);
    if (problem == NULL)
        problem = nl_tls_failure_message(error, server, session->asked);
    return problem != NULL ? problem : message_of(error);
}

/*
 * Returns the result of a failed call of OpenSSL: 0 if the peer has ended the TLS connection with a close alert,
 * otherwise -1 with errno.
 */
static int result_of_failure(nl_tls_session *session)
{
    unsigned long error = ERR_peek_last_error();
    bool complained = error != 0 && !is_mark(error); /* OpenSSL also reports a fatal alert of the peer as a shutdown */
    if (session->failed == 0 && !complained && (SSL_get_shutdown(session->ssl) & SSL_RECEIVED_SHUTDOWN))
        return 0;
    if (session->failed == 0 && session->ended)
        session->failed =
            ECONNRESET; /* the peer closed the connection without a TLS close alert, which may be an attack */
    if (session->failed == 0 && !complained && SSL_want(session->ssl) != SSL_NOTHING) {
        errno = EAGAIN;
        return -1;
    }
    if (session->failed == 0) {
        session->failed = EPROTO;
        session->what = describe_failure(session, error);
    }
    errno = session->failed;
    return -1;
}

static bool has_failed(const nl_tls_session *session)
{
    errno = session->failed;
    return session->failed != 0;
}

int nl_channel_handshake(nl_channel *channel)
{
    nl_tls_session *session = channel->tls;
    if (session == NULL)
        return 0;
    if (has_failed(session) || !enter())
        return -1;
    int result = SSL_do_handshake(session->ssl) == 1 ? 0 : -1;
    if (result != 0 && result_of_failure(session) == 0)
        errno = ECONNRESET;
    leave();
    return result;
}

bool nl_channel_is_ready(const nl_channel *channel)
{
    const nl_tls_session *session = channel->tls;
    return session == NULL || (session->failed == 0 && SSL_is_init_finished(session->ssl));
}

int nl_channel_confirm(nl_channel *channel)
{
    nl_tls_session *session = channel->tls;
    if (session == NULL || !session->asked || SSL_version(session->ssl) < TLS1_3_VERSION)
        return 0;
    if (has_failed(session) || !enter())
        return -1;
    char byte;
    int result = SSL_peek(session->ssl, &byte, 1) == 1 ? 0 : result_of_failure(session);
    if (result != 0 && errno == EAGAIN && session->has_ticket)
        result = 0;
    leave();
    return result;
}

static long verify_again(X509 *shown, STACK_OF(X509) * chain, const nl_tls *tls)
{
    X509_STORE_CTX *verifying = X509_STORE_CTX_new();
    long result = X509_V_ERR_OUT_OF_MEM;
    if (verifying != NULL && X509_STORE_CTX_init(verifying, SSL_CTX_get_cert_store(tls->context), shown, chain) == 1) {
        X509_STORE_CTX_set_default(verifying, "ssl_client");
        X509_verify_cert(verifying);
        result = X509_STORE_CTX_get_error(verifying);
    }
    X509_STORE_CTX_free(verifying);
    return result;
}

bool nl_channel_may_stay(const nl_channel *channel, nl_tls *tls)
{
    if (channel->tls == NULL || tls == NULL || (tls->peers == NULL && !tls->revokes) || !enter())
        return true;
    X509 *shown = SSL_get0_peer_certificate(channel->tls->ssl);
    long result = shown != NULL ? verify_again(shown, SSL_get_peer_cert_chain(channel->tls->ssl), tls) : X509_V_OK;
    bool named = shown == NULL || tls->peers == NULL || nl_tls_names_match(shown, tls->peers);
    leave();
    if (result != X509_V_OK)
        return nl_error_false(NL_ERROR_PERMISSION, "%s", X509_verify_cert_error_string(result));
    return named || nl_error_false(NL_ERROR_PERMISSION, "%s", no_such_peer);
}

bool nl_channel_has_certificate(const nl_channel *channel)
{
    return channel->tls != NULL && SSL_get0_peer_certificate(channel->tls->ssl) != NULL;
}

bool nl_channel_name_certificate(const nl_channel *channel, char name[NL_CERTIFICATE_NAME_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (!nl_channel_has_certificate(channel) || !enter())
        return false;
    bool good = X509_digest(SSL_get0_peer_certificate(channel->tls->ssl), EVP_sha256(), digest, &size) == 1;
    leave();
    for (unsigned i = 0; i < size && 2 * i + 2 < NL_CERTIFICATE_NAME_SIZE; i++)
        snprintf(name + 2 * i, 3, "%02x", digest[i]);
    return good;
}

bool nl_channel_peer_is_named(const nl_channel *channel, const char *name, size_t size)
{
    if (channel->tls == NULL || !enter())
        return false;
    X509 *shown = SSL_get0_peer_certificate(channel->tls->ssl);
    bool named = shown != NULL && nl_tls_names_include(shown, name, size);
    leave();
    return named;
}

ssize_t nl_channel_read(nl_channel *channel, void *data, size_t size)
{
    nl_tls_session *session = channel->tls;
    if (session == NULL)
        return recv(channel->fd, data, size, MSG_DONTWAIT);
    if (has_failed(session) || !enter())
        return -1;
    size_t done = 0, got;
    while (done < size && SSL_read_ex(session->ssl, (char *)data + done, size - done, &got) == 1)
        done += got;
    ssize_t result = done < size ? result_of_failure(session) : 0;
    session->more = result >= 0 || errno != EAGAIN;
    leave();
    return done > 0 ? (ssize_t)done : result;
}

bool nl_channel_has_more(const nl_channel *channel)
{
    return channel->tls != NULL && channel->tls->more;
}

size_t nl_channel_held(const nl_channel *channel)
{
    return channel->tls != NULL && SSL_has_pending(channel->tls->ssl) ? READ_AHEAD : 0;
}

ssize_t nl_channel_write(nl_channel *channel, const void *data, size_t size)
{
    nl_tls_session *session = channel->tls;
    if (session == NULL)
        return send(channel->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (has_failed(session) || !enter())
        return -1;
    size_t put = 0;
    bool good = SSL_write_ex(session->ssl, data, size, &put) == 1;
    if (!good && result_of_failure(session) == 0)
        errno = EPIPE;
    session->midway = !good && errno == EAGAIN;
    leave();
    return good ? (ssize_t)put : -1;
}

bool nl_channel_is_midway(const nl_channel *channel)
{
    return channel->tls != NULL && channel->tls->midway;
}

short nl_channel_wants(const nl_channel *channel, short usual)
{
    int wanted = channel->tls != NULL ? SSL_want(channel->tls->ssl) : SSL_NOTHING;
    return wanted == SSL_READING ? POLLIN : wanted == SSL_WRITING ? POLLOUT : usual;
}

nl_status nl_channel_fail(const nl_channel *channel, int error)
{
    char message[128];
    if (error == EPROTO && channel->tls != NULL && channel->tls->what != NULL)
        return nl_error_set(NL_ERROR_PROTOCOL, "%s", channel->tls->what);
    const nl_error_code code = error == EACCES || error == EPERM ? NL_ERROR_PERMISSION : NL_ERROR_UNREACHABLE;
    return nl_error_set(code, "%s", strerror_r(error, message, sizeof message));
}

void nl_channel_end(nl_channel *channel)
{
    session_end(channel->tls);
    shutdown(channel->fd, SHUT_WR);
}

void nl_channel_forget(nl_channel *channel)
{
    session_free(channel->tls);
    if (channel->fd >= 0)
        close(channel->fd);
    *channel = (nl_channel){.fd = -1};
}

void nl_channel_close(nl_channel *channel)
{
    session_end(channel->tls);
    nl_channel_forget(channel);
}
