#include "config.h"

#include "listener.h"

#include "network.h"
#include "program/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, MESSAGE_SIZE = 256 };

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

static void add(listener **listeners, size_t *count, listener added)
{
    *listeners = realloc(*listeners, (*count + 1) * sizeof **listeners);
    if (*listeners == NULL || added.name == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    (*listeners)[(*count)++] = added;
}

static bool failed(char message[MESSAGE_SIZE], const char *url)
{
    snprintf(message, MESSAGE_SIZE, "listen on %s: %s", url, strerror(errno));
    return false;
}

/* Binds a new non-blocking socket and listens. -1 with errno set when that fails. */
static int bind_and_listen(const struct sockaddr *address, socklen_t size)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
    if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static bool open_tcp(const nl_url *url, const listening *asked, bool remote_allowed, listener **listeners,
                     size_t *count, char message[MESSAGE_SIZE])
{
    char port[8];
    snprintf(port, sizeof port, "%u", url->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *addresses;
    int result = getaddrinfo(url->host, port, &hints, &addresses);
    if (result != 0) {
        snprintf(message, MESSAGE_SIZE, "listen on %s: %s", url->text, gai_strerror(result));
        return false;
    }
    bool good = true;
    for (struct addrinfo *a = addresses; a != NULL && good; a = a->ai_next) {
        if (!remote_allowed && !asked->vouched && !network_is_local(a->ai_addr)) {
            snprintf(message, MESSAGE_SIZE,
                     "listen on %s: that is open to other machines; say which may connect with --allow NETWORK, or "
                     "have clients show certificates: x-netlogs://HOST?cert=FILE&key=FILE&ca=FILE",
                     url->text);
            good = false;
            break;
        }
        int fd = bind_and_listen(a->ai_addr, a->ai_addrlen);
        if (fd < 0) {
            good = failed(message, url->text);
            break;
        }
        struct sockaddr_storage bound;
        socklen_t size = sizeof bound;
        getsockname(fd, (struct sockaddr *)&bound, &size);
        char address[80], name[100];
        listener_address_text((struct sockaddr *)&bound, address, sizeof address);
        snprintf(name, sizeof name, "%.*s%s", (int)strcspn(url->text, "/") + 2, url->text, address);
        add(listeners, count,
            (listener){.fd = fd,
                       .asked = asked,
                       .remote = !network_is_local((struct sockaddr *)&bound),
                       .name = strdup(name)});
    }
    freeaddrinfo(addresses);
    return good;
}

/* A socket left behind by a netlogd that was killed is in the way; one that still answers is somebody else's. */
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

static bool open_unix(const nl_url *url, const listening *asked, listener **listeners, size_t *count,
                      char message[MESSAGE_SIZE])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(url->path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return failed(message, url->text);
    }
    strcpy(address.sun_path, url->path);
    remove_stale(&address);
    int fd = bind_and_listen((struct sockaddr *)&address, sizeof address);
    if (fd < 0)
        return failed(message, url->text);
    add(listeners, count, (listener){.fd = fd, .asked = asked, .name = strdup(url->text), .path = strdup(url->path)});
    return true;
}

bool listener_open(const listening *asked, bool remote_allowed, listener **listeners, size_t *count,
                   char message[MESSAGE_SIZE])
{
    nl_url *url = nl_url_parse(asked->url); /* it was parsed before: see settings.c */
    bool good = url->scheme == NL_SCHEME_UNIX ? open_unix(url, asked, listeners, count, message)
                                              : open_tcp(url, asked, remote_allowed, listeners, count, message);
    nl_url_free(url);
    return good;
}

void listener_close_all(listener *listeners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        close(listeners[i].fd);
        if (listeners[i].path != NULL)
            unlink(listeners[i].path);
        free(listeners[i].path);
        free(listeners[i].name);
    }
    free(listeners);
}
