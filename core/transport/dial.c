#include "config.h"

#include "transport/dial.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "transport/peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONFIRM_MS = 1000 /* maximum wait for a server that does not reveal whether it accepted the certificate */ };

struct nl_dialer {
    char *name;          /* the URL without its options */
    const char *program; /* name of the server program, for messages */
    char *host;          /* TCP */
    char port[8];
    char *path;     /* Unix socket */
    nl_tls *tls;    /* NULL: no TLS */
    char *tls_name; /* required name in the certificate */
};

/* ---- waiting ---- */

int64_t nl_deadline_ns(int timeout_ms)
{
    return nl_monotonic_ns() + (int64_t)timeout_ms * 1000000;
}

int nl_wait_ready(int fd, short what, int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ms = (deadline_ns - nl_monotonic_ns()) / 1000000;
        struct pollfd ready = {.fd = fd, .events = what};
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count > 0)
            return 0;
        if (count == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

/* ---- errors ---- */

nl_status nl_dialer_prepend(const nl_dialer *dialer)
{
    return nl_error_prepend("%s", dialer->name);
}

nl_status nl_dialer_cannot(const nl_dialer *dialer, const char *what, const nl_channel *channel, int error)
{
    nl_channel_fail(channel, error);
    if (what != NULL)
        nl_error_prepend("%s", what);
    return nl_dialer_prepend(dialer);
}

/* Sets the error for a failed connection. If no program accepts the connection, the message asks whether d->program is
 * running. Returns NL_FAILED. */
static nl_status fail_connect(const nl_dialer *d, int error)
{
    char message[128];
    const char *text = strerror_r(error, message, sizeof message);
    if (error == ECONNREFUSED || error == ENOENT || error == ETIMEDOUT)
        nl_error_set(NL_ERROR_UNREACHABLE, "%s; is %s running there?", text, d->program);
    else
        nl_error_set(error == EACCES || error == EPERM ? NL_ERROR_PERMISSION : NL_ERROR_UNREACHABLE, "%s", text);
    return nl_dialer_prepend(d);
}

/* ---- connecting ---- */

/*
 * Connects a new non-blocking socket. Sets *made to the socket before it connects, and to -1 before it is closed.
 * Returns *made; -1 with errno on failure.
 */
static int connect_address(int family, const struct sockaddr *address, socklen_t size, int64_t deadline_ns, int *made)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    __atomic_store_n(made, fd, __ATOMIC_RELEASE);
    if (fd < 0)
        return -1;
    int error = connect(fd, address, size) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        error = nl_wait_ready(fd, POLLOUT, deadline_ns);
        socklen_t error_size = sizeof error;
        if (error == 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size);
    }
    if (error == 0)
        return fd;
    __atomic_store_n(made, -1, __ATOMIC_RELEASE);
    close(fd);
    errno = error;
    return -1;
}

/* Like nl_tcp_connect. Sets *made like connect_address. */
static int connect_host(const char *host, const char *port, int64_t deadline_ns, int *made)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
    int result = getaddrinfo(host, port, &hints, &addresses);
    if (result != 0) {
        nl_error_set(NL_ERROR_SYSTEM, "%s", result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
        errno = 0;
        return -1;
    }
    int fd = -1, error = 0, left = 0;
    for (struct addrinfo *a = addresses; a != NULL; a = a->ai_next)
        left++;
    for (struct addrinfo *a = addresses; a != NULL && fd < 0; a = a->ai_next, left--) {
        int64_t now_ns = nl_monotonic_ns(); /* each address gets an equal share of the remaining time */
        fd = connect_address(a->ai_family, a->ai_addr, a->ai_addrlen, now_ns + (deadline_ns - now_ns) / left, made);
        error = errno;
    }
    freeaddrinfo(addresses);
    errno = error;
    if (fd < 0)
        nl_error_set_errno("connect");
    return fd;
}

int nl_tcp_connect(const char *host, const char *port, int64_t deadline_ns)
{
    int made;
    return connect_host(host, port, deadline_ns, &made);
}

static nl_status connect_tcp(const nl_dialer *d, int64_t deadline_ns, nl_channel *channel)
{
    if (connect_host(d->host, d->port, deadline_ns, &channel->fd) < 0)
        return errno != 0 ? fail_connect(d, errno) : nl_dialer_prepend(d);
    /*
     * Disables Nagle's algorithm, because records are small and should arrive at once. Callers that need throughput
     * buffer records.
     */
    setsockopt(channel->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return NL_OK;
}

static nl_status connect_unix(const nl_dialer *d, int64_t deadline_ns, nl_channel *channel)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, d->path, strlen(d->path));
    const int fd = connect_address(AF_UNIX, (struct sockaddr *)&address, sizeof address, deadline_ns, &channel->fd);
    return fd >= 0 ? NL_OK : fail_connect(d, errno);
}

/* Repeats a step of the TLS handshake until it is complete. Returns 0 or an errno. */
static int complete(nl_channel *channel, int (*step)(nl_channel *), int64_t deadline_ns)
{
    while (step(channel) != 0) {
        int error =
            errno == EAGAIN ? nl_wait_ready(channel->fd, nl_channel_wants(channel, POLLIN), deadline_ns) : errno;
        if (error != 0 && error != EINTR)
            return error;
    }
    return 0;
}

static nl_status secure(const nl_dialer *d, int64_t deadline_ns, nl_channel *channel)
{
    int64_t patience_ns = nl_deadline_ns(NL_PEER_PATIENCE_MS);
    deadline_ns = patience_ns < deadline_ns ? patience_ns : deadline_ns;
    int error =
        nl_channel_secure(channel, d->tls, d->tls_name) ? complete(channel, nl_channel_handshake, deadline_ns) : ENOMEM;
    const bool silent = error == ETIMEDOUT, closed = error == ECONNRESET;
    if (error == 0) {
        int64_t confirm_ns = nl_deadline_ns(CONFIRM_MS);
        error = complete(channel, nl_channel_confirm, confirm_ns < deadline_ns ? confirm_ns : deadline_ns);
        error = error == ETIMEDOUT ? 0 : error;
    }
    if (error == 0)
        return NL_OK;
    if (silent)
        nl_error_set(NL_ERROR_TIMEOUT,
                     "no reply to the TLS handshake; check that %s uses TLS there, and check host and port",
                     d->program);
    else if (closed)
        nl_error_set(NL_ERROR_PROTOCOL,
                     "the peer closed the connection during the TLS handshake; check that %s uses TLS there, "
                     "and allows this host",
                     d->program);
    else
        nl_channel_fail(channel, error);
    nl_dialer_prepend(d);
    nl_channel_close(channel);
    return NL_FAILED;
}

nl_status nl_dialer_connect(const nl_dialer *dialer, int timeout_ms, nl_channel *channel)
{
    int64_t deadline_ns = nl_deadline_ns(timeout_ms);
    *channel = (nl_channel){.fd = -1};
    nl_status status =
        dialer->path != NULL ? connect_unix(dialer, deadline_ns, channel) : connect_tcp(dialer, deadline_ns, channel);
    return status == NL_OK && dialer->tls != NULL ? secure(dialer, deadline_ns, channel) : status;
}

/* ---- dialers ---- */

#define SECURE "x-netlogs otlp otlp+http"

const nl_option nl_dialer_rows[] = {
    {.name = "ca",
     .value = "FILE",
     .is_path = true,
     .commands = SECURE,
     .initial = "(the system's certificates)",
     NL_OPTION_MEMBER(nl_dialer_options, ca),
     .help = "CA certificates for verifying the collector"},
    {.name = "cert",
     .value = "FILE",
     .is_path = true,
     .commands = SECURE,
     NL_OPTION_MEMBER(nl_dialer_options, cert),
     .help = "Client certificate"},
    {.name = "key",
     .value = "FILE",
     .is_path = true,
     .commands = SECURE,
     .initial = "(read from the cert= file)",
     NL_OPTION_MEMBER(nl_dialer_options, key),
     .help = "Private key of the client certificate"},
    {.name = "name",
     .value = "HOST",
     .commands = SECURE,
     .initial = "(the URL's host)",
     NL_OPTION_MEMBER(nl_dialer_options, name),
     .help = "Name that the collector's certificate must contain"},
    {0},
};

static nl_status prepare_tls(nl_dialer *d, const nl_url *url)
{
    nl_dialer_options options = {0};
    if (nl_url_pick_options(url, nl_dialer_rows, &options) != NL_OK)
        return nl_error_prepend("open %s", url->text);
    d->tls_name = strdup(options.name != NULL ? options.name : url->host);
    if (d->tls_name == NULL)
        return nl_memory_failed();
    d->tls = nl_tls_new(false, &(nl_tls_options){.ca = options.ca,
                                                 .cert = options.cert,
                                                 .key = options.key,
                                                 .protocol = url->scheme == NL_SCHEME_OTLP ? "h2" : NULL});
    return d->tls != NULL ? NL_OK : nl_error_prepend("open %s", url->text);
}

static bool wants_tls(const nl_url *url)
{
    bool given = false;
    for (const nl_option *row = nl_dialer_rows; row->name != NULL; row++)
        given = given || nl_url_option_value(url, row->name) != NULL;
    return url->scheme == NL_SCHEME_NETLOGS ||
           (given && (url->scheme == NL_SCHEME_OTLP || url->scheme == NL_SCHEME_OTLP_HTTP));
}

bool nl_dialer_is_secure(const nl_dialer *dialer)
{
    return dialer->tls != NULL;
}

nl_dialer *nl_dialer_new(const nl_url *url, const char *program)
{
    if (url->scheme == NL_SCHEME_UNIX && strlen(url->path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return nl_error_null(NL_ERROR_INVALID, "open %s: the path of the socket is too long", url->text);
    nl_dialer *d = nl_memory_check(calloc(1, sizeof *d));
    if (d == NULL)
        return NULL;
    d->program = program;
    d->name = nl_memory_check(strndup(url->text, strcspn(url->text, "?")));
    bool unix_socket = url->scheme == NL_SCHEME_UNIX;
    char *copy = nl_memory_check(strdup(unix_socket ? url->path : url->host));
    *(unix_socket ? &d->path : &d->host) = copy;
    snprintf(d->port, sizeof d->port, "%u", url->port);
    if (copy != NULL && d->name != NULL && (!wants_tls(url) || prepare_tls(d, url) == NL_OK))
        return d;
    nl_dialer_free(d);
    return NULL;
}

void nl_dialer_free(nl_dialer *dialer)
{
    if (dialer == NULL)
        return;
    nl_tls_free(dialer->tls);
    free(dialer->name);
    free(dialer->tls_name);
    free(dialer->host);
    free(dialer->path);
    free(dialer);
}
