/* Sockets on which clients arrive: opened from a URL before anything else starts, so that what is wrong is said at
 * once. */
#ifndef NETLOGD_LISTENER_H
#define NETLOGD_LISTENER_H

#include "settings.h"

typedef struct listener {
    int fd;
    const listening *asked; /* what it was opened for */
    bool remote;            /* other machines can reach it */
    bool datagrams;         /* not connections */
    char *name;             /* as a URL, with the port that was really taken */
    char *path;             /* of a Unix socket, to be removed at the end; NULL otherwise */
} listener;

/*
 * Opens the sockets that asked names (a host name may have several addresses) and appends them to *listeners. Any
 * address off this machine is refused unless clients are vouched for there or remote_allowed. False with the reason in
 * message.
 */
bool listener_open(const listening *asked, bool remote_allowed, listener **listeners, size_t *count, char message[256]);

/* Closes them all, removes Unix sockets and frees the array. */
void listener_close_all(listener *listeners, size_t count);

/* A socket address in words: "127.0.0.1:5000", "[::1]:5000", "a local client". */
struct sockaddr;
void listener_address_text(const struct sockaddr *address, char *out, size_t size);

/* Whether both such words, but "a local client", have the same address, whatever the port. */
bool listener_is_same_address(const char *a, const char *b);

#endif
