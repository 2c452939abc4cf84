#include "config.h"

#include "service/listener.h"

#include "base/error.h"
#include "service/confine.h"

#include "service/inherited.h"
#include "service/network.h"
#include "program/program.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

void listener_address_text(const struct sockaddr *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(out, size, "%s:%u", host, ntohs(four->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(out, size, "[%s]:%u", host, ntohs(six->sin6_port));
    } else {
        snprintf(out, size, "a local client");
    }
}

static void listener_add(listener **listeners, size_t *count, listener added)
{
    *listeners = nl_memory_check(realloc(*listeners, (*count + 1) * sizeof **listeners));
    nl_memory_check(added.name);
    (*listeners)[(*count)++] = added;
}

static bool failed(const char *url)
{
    if (errno == EADDRINUSE)
        return nl_error_false(NL_ERROR_BUSY,
                              "listen on %s: %s; choose another address, or end the program that uses it", url,
                              strerror(errno));
    nl_error_set_errno("listen on %s", url);
    return false;
}

/* Returns a new bound non-blocking socket. A stream socket also listens. Returns -1 with errno on failure. */
static int bind_and_listen(const struct sockaddr *address, socklen_t size, int type)
{
    int fd = socket(address->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX && type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
    if (bind(fd, address, size) == 0 && (type != SOCK_STREAM || listen(fd, BACKLOG) == 0))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Returns the URL for messages. The caller frees it. */
static char *listener_shown_url(const listening *asked)
{
    const size_t own = strlen("x-netlog");
    return asked->http && strncmp(asked->url, "x-netlog", own) == 0 ? program_format("http%s", asked->url + own)
                                                                    : program_copy(asked->url);
}

bool listener_reject_open(const listening *asked)
{
    const char *certificates = asked->text == NULL || strstr(asked->url, "udp:") != NULL ? "" /* no TLS */
                               : asked->http
                                   ? ", or require client certificates: https://HOST?cert=FILE&key=FILE&ca=FILE"
                               : strncmp(asked->url, "x-netlog:", 9) == 0
                                   ? ", or require client certificates: x-netlogs://HOST?cert=FILE&key=FILE&ca=FILE"
                                   : ", or require client certificates with cert=, key= and ca= in the URL";
    char *url = listener_shown_url(asked);
    nl_error_set(NL_ERROR_PERMISSION, "listen on %s: the address is open to other hosts; add --allow NETWORK%s", url,
                 certificates);
    free(url);
    return false;
}

/* Returns a URL of the address. The caller frees it. */
static char *listener_name_of(const char *scheme, const struct sockaddr *address)
{
    char text[80], *name;
    listener_address_text(address, text, sizeof text);
    return asprintf(&name, "%.*s://%s", (int)strcspn(scheme, ":"), scheme, text) < 0 ? NULL : name;
}

static bool open_internet(const nl_url *url, const listening *asked, bool remote_allowed, listener **listeners,
                          size_t *count)
{
    char port[8];
    snprintf(port, sizeof port, "%u", url->port);
    int type = url->scheme == NL_SCHEME_UDP || url->scheme == NL_SCHEME_SYSLOG_UDP ? SOCK_DGRAM : SOCK_STREAM;
    struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_PASSIVE}, *addresses;
    int result = getaddrinfo(url->host, port, &hints, &addresses);
    char *shown = listener_shown_url(asked);
    bool good = result == 0 || nl_error_false(NL_ERROR_NOT_FOUND, "listen on %s: %s", shown, gai_strerror(result));
    if (!good)
        addresses = NULL;
    for (struct addrinfo *a = addresses; a != NULL && good; a = a->ai_next) {
        if (!remote_allowed && !asked->authenticated && !network_is_local(a->ai_addr)) {
            good = listener_reject_open(asked);
            break;
        }
        int fd = bind_and_listen(a->ai_addr, a->ai_addrlen, type);
        if (fd < 0) {
            good = failed(shown);
            break;
        }
        struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
        socklen_t size = sizeof bound;
        getsockname(fd, (struct sockaddr *)&bound, &size);
        listener_add(listeners, count,
                     (listener){.fd = fd,
                                .asked = asked,
                                .remote = !network_is_local((struct sockaddr *)&bound),
                                .datagrams = type == SOCK_DGRAM,
                                .name = listener_name_of(url->text, (struct sockaddr *)&bound)});
    }
    if (addresses != NULL)
        freeaddrinfo(addresses);
    free(shown);
    return good;
}

/*
 * Removes the Unix socket of a killed daemon. Keeps a socket that accepts connections, because it belongs to a running
 * daemon.
 */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
    close(fd);
}

static bool open_unix(const nl_url *url, const listening *asked, listener **listeners, size_t *count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(url->path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return failed(url->text);
    }
    memcpy(address.sun_path, url->path, length);
    remove_stale(&address);
    int fd = bind_and_listen((struct sockaddr *)&address, sizeof address, SOCK_STREAM);
    if (fd < 0 && errno == ENOENT) {
        const char *slash = strrchr(url->path, '/');
        const int size = slash != NULL ? (int)(slash - url->path) : 0;
        return nl_error_false(NL_ERROR_NOT_FOUND, "listen on %s: the directory %.*s does not exist; create it",
                              url->text, size, url->path);
    }
    if (fd < 0)
        return failed(url->text);
    listener_add(listeners, count,
                 (listener){.fd = fd, .asked = asked, .name = strdup(url->text), .path = strdup(url->path)});
    return true;
}

/* Returns the scheme of URLs for an inherited socket; NULL if the socket is unusable. */
static const char *scheme_of(int fd, const listening *asked, int *type)
{
    int accepting = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, type, &(socklen_t){sizeof *type}) != 0)
        return NULL;
    if (*type == SOCK_DGRAM)
        return asked->tls == NULL ? "x-netlog+udp" : NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &(socklen_t){sizeof accepting}) != 0)
        return NULL;
    return !accepting || *type != SOCK_STREAM ? NULL : asked->tls != NULL ? "x-netlogs" : "x-netlog";
}

static bool take_inherited(int fd, const listening *asked, bool remote_allowed, listener **listeners, size_t *count)
{
    int type;
    struct sockaddr_storage bound = {0};
    const char *scheme = scheme_of(fd, asked, &type);
    if (scheme == NULL || getsockname(fd, (struct sockaddr *)&bound, &(socklen_t){sizeof bound}) != 0) {
        return nl_error_false(NL_ERROR_INVALID, "listen on inherited:%s: not a listening socket for %s",
                              inherited_name(fd), asked->tls != NULL ? "TLS" : "clients");
    }
    bool remote = !network_is_local((struct sockaddr *)&bound);
    if (remote && !asked->authenticated && !remote_allowed)
        return listener_reject_open(asked);
    listener_add(listeners, count,
                 (listener){.fd = fd,
                            .asked = asked,
                            .remote = remote,
                            .datagrams = type == SOCK_DGRAM,
                            .name = bound.ss_family == AF_UNIX ? strdup(asked->url)
                                                               : listener_name_of(scheme, (struct sockaddr *)&bound)});
    return true;
}

static bool open_inherited(const nl_url *url, const listening *asked, bool remote_allowed, listener **listeners,
                           size_t *count)
{
    int fd = inherited_next(url->path, 0);
    if (fd < 0)
        nl_error_set(NL_ERROR_NOT_FOUND, "listen on %s: systemd passed no socket with that name", url->text);
    bool good = fd >= 0;
    for (; good && fd >= 0; fd = inherited_next(url->path, fd))
        good = take_inherited(fd, asked, remote_allowed, listeners, count);
    return good;
}

bool listener_open(const listening *asked, bool remote_allowed, listener **listeners, size_t *count)
{
    nl_url *url = nl_url_parse(asked->url); /* valid, because the settings have parsed it */
    bool good;
    if (url->scheme == NL_SCHEME_UNIX)
        good = open_unix(url, asked, listeners, count);
    else if (url->scheme == NL_SCHEME_INHERITED)
        good = open_inherited(url, asked, remote_allowed, listeners, count);
    else
        good = open_internet(url, asked, remote_allowed, listeners, count);
    nl_url_free(url);
    return good;
}

static void remove_path(listener *l)
{
    if (l->path != NULL)
        unlink(l->path);
    free(l->path);
    l->path = NULL;
}

void listener_end(listener *l)
{
    /* Remove the path first. After the shutdown, the next daemon may create its own socket at this path. */
    remove_path(l);
    shutdown(l->fd, SHUT_RDWR);
}

void listener_close_all(listener *listeners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        close(listeners[i].fd);
        remove_path(&listeners[i]);
        free(listeners[i].name);
    }
    free(listeners);
}

/* ---- options ---- */

const nl_option listening_tls_rows[] = {
    {.name = "cert",
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(listening_options, tls.cert),
     .help = "Server certificate, followed by its chain of CA certificates; required for TLS"},
    {.name = "key",
     .value = "FILE",
     .is_path = true,
     .initial = "(read from the cert= file)",
     NL_OPTION_MEMBER(listening_options, tls.key),
     .help = "Private key of the certificate"},
    {.name = "ca",
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(listening_options, tls.ca),
     .help = "CA certificates for verifying clients; every client must then present a certificate"},
    {.name = "crl",
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(listening_options, tls.crl),
     .help = "With ca=: reject revoked client certificates; FILE contains a revocation list for every CA in a client's "
             "chain"},
    {.name = "peers",
     .value = "NAME,...",
     NL_OPTION_MEMBER(listening_options, tls.peers),
     .help = "With ca=: accept only clients whose certificate contains one of these names or addresses; *.DOMAIN is a "
             "wildcard"},
    {0},
};

const nl_option listening_hosts_rows[] = {
    {.name = "certified_hosts",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(listening_options, hosts_certified),
     .help = "With ca=: accept only records whose HOST is a name in the client's certificate"},
    {0},
};

const nl_option listening_names_rows[] = {
    {.name = "names",
     .value = "NAME,...",
     NL_OPTION_MEMBER(listening_options, names),
     .help = "Additional names that requests may use for this host, besides its own name and addresses"},
    {0},
};

bool listening_read(const nl_url *url, const nl_option *own, bool secure, bool may_be_secure, listening *l)
{
    listening_options o = {0};
    nl_url_rows tables[3] = {0};
    size_t count = 0;
    if (own != NULL)
        tables[count++] = (nl_url_rows){own, &o};
    if (secure || may_be_secure)
        tables[count++] = (nl_url_rows){listening_tls_rows, &o};
    if (nl_url_read_options(url, tables) != NL_OK)
        return false;
    if (o.hosts_certified && o.tls.ca == NULL)
        return nl_error_false(NL_ERROR_INVALID, "option certified_hosts requires ca=FILE");
    secure |= o.tls.cert != NULL || o.tls.key != NULL || o.tls.ca != NULL || o.tls.crl != NULL || o.tls.peers != NULL;
    l->names = o.names != NULL ? program_copy(o.names) : NULL;
    l->hosts_certified = o.hosts_certified;
    l->authenticated = o.tls.ca != NULL;
    if (!secure)
        return true;
    if (!confine_keep_files_of(url))
        return false;
    o.tls.protocol = l->grpc ? "h2" : NULL;
    l->tls = nl_tls_new(true, &o.tls);
    return l->tls != NULL;
}

void listening_free(listening *l)
{
    free(l->text);
    free(l->url);
    free(l->nats);
    free(l->names);
    nl_tls_free(l->tls);
    *l = (listening){0};
}
