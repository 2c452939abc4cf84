#include "config.h"

#include "service/http_host.h"

#include "base/thread.h"
#include "service/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAME_SIZE = 256 };

/* This host's full name; "" until it is known. */
static char full_name[NAME_SIZE];
static atomic_bool full_name_known;

static void *look_up(void *unused)
{
    (void)unused;
    char host[NAME_SIZE];
    const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (gethostname(host, sizeof host) == 0 && getaddrinfo(host, NULL, &hints, &found) == 0 &&
        found->ai_canonname != NULL) {
        snprintf(full_name, sizeof full_name, "%s", found->ai_canonname);
        atomic_store(&full_name_known, true);
    }
    if (found != NULL)
        freeaddrinfo(found);
    return NULL;
}

void http_host_look_up(void)
{
    pthread_t thread;
    if (nl_thread_create(&thread, NULL, look_up, NULL) == 0)
        pthread_detach(thread);
}

/* Removes the port, brackets and a final dot. Returns false if the text is malformed. */
static bool read_authority(const char *text, char name[NAME_SIZE], const char **port)
{
    bool bracket = *text == '[';
    size_t size = bracket ? strcspn(++text, "]") : strcspn(text, ":");
    if (size == 0 || size >= NAME_SIZE || (bracket && text[size] != ']'))
        return false;
    memcpy(name, text, size);
    name[size] = '\0';
    *port = text + size + bracket;
    if (name[size - 1] == '.' && size > 1)
        name[size - 1] = '\0';
    return (**port == '\0' || **port == ':') && strpbrk(name, " \t/@\\") == NULL;
}

static bool is_listed(const char *name, const char *names)
{
    for (size_t size; names != NULL && *names != '\0'; names += size + (names[size] == ',')) {
        size = strcspn(names, ",");
        if (strlen(name) == size && strncasecmp(name, names, size) == 0)
            return true;
    }
    return false;
}

/* Returns whether name is a loopback address, or the socket's address. */
static bool is_own_address(const char *name, const struct sockaddr *local)
{
    network own;
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    if (!network_parse(name, &own) || strchr(name, '/') != NULL)
        return false;
    memcpy(&four.sin_addr, own.address, sizeof four.sin_addr);
    memcpy(&six.sin6_addr, own.address, sizeof six.sin6_addr);
    return network_is_local(own.family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six) ||
           (local != NULL && network_contains(&own, local));
}

/* Returns whether name is host_name or the first label of host_name. */
static bool is_own_name(const char *name, const char *host_name)
{
    if (host_name == NULL || *host_name == '\0')
        return false;
    size_t label = strcspn(host_name, ".");
    return strcasecmp(name, host_name) == 0 || (strlen(name) == label && strncasecmp(name, host_name, label) == 0);
}

static bool is_ours(const char *name, const char *names, const char *host_name, nl_tls *tls,
                    const struct sockaddr *local)
{
    char host[NAME_SIZE] = "";
    gethostname(host, sizeof host - 1);
    return strcasecmp(name, "localhost") == 0 || is_own_address(name, local) || is_listed(name, names) ||
           is_own_name(name, host_name) || is_own_name(name, host) ||
           (atomic_load(&full_name_known) && is_own_name(name, full_name)) ||
           (tls != NULL && nl_tls_has_name(tls, name));
}

int http_host_check(const char *host, const char *origin, const char *names, const char *host_name, nl_tls *tls,
                    const struct sockaddr *local)
{
    char name[NAME_SIZE];
    const char *port;
    if (host != NULL && *host != '\0') {
        if (!read_authority(host, name, &port))
            return 400;
        if (!is_ours(name, names, host_name, tls, local))
            return 421;
    }
    if (origin == NULL)
        return 0;
    /* A page that this server has sent has the requested host as its origin. Reject requests from all other pages. */
    const char *from = strstr(origin, "://");
    return from != NULL && host != NULL && strcasecmp(from + 3, host) == 0 ? 0 : 403;
}
