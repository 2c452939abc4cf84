/* Sockets on which clients arrive: opened from a URL before anything else starts, so that what is wrong is said at
 * once. */
#ifndef NETLOGGER_SERVICE_LISTENER_H
#define NETLOGGER_SERVICE_LISTENER_H

#include "transport/channel.h"
#include "transport/url.h"

/* One of the places where clients connect, or from where what others collected is read. */
typedef struct listening {
    char *text;           /* as it was given; NULL: not by an option */
    char *url;            /* without its options; of NATS with those that tell one reader from another */
    char *nats;           /* of NATS: the whole URL; NULL: clients connect there */
    nl_tls *tls;          /* NULL: plain */
    bool authenticated;   /* the client has a certificate from a trusted CA */
    bool hosts_certified; /* a record's HOST must be a name of its client's certificate */
    char *names;          /* of HTTP: what this host is called besides, with commas between; NULL: nothing */
} listening;

/* The options of a URL where clients connect. */
typedef struct listening_options {
    nl_tls_options tls;
    bool hosts_certified;
    const char *names;
} listening_options;

/* The options of TLS; hosts= of collectors; names= of HTTP. About a listening_options. */
extern const nl_option listening_tls_rows[], listening_hosts_rows[], listening_names_rows[];

/*
 * Sets the members of a listening, except url and nats, from a URL's options. own: the rows besides those of TLS, or
 * NULL. secure: the URL demands TLS; otherwise TLS is used where it has options of TLS, if may_be_secure. False with
 * the error set.
 */
bool listening_read(const nl_url *url, const nl_option *own, bool secure, bool may_be_secure, listening *l);
void listening_free(listening *l);

/* Turns http://HOST[:PORT] or https://, with options, into the x-netlog URL of the same address. False when text is
 * something else, or has no port though default_port is NULL. */
bool listening_from_http(const char *text, const char *default_port, char *url, size_t capacity);

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
 * address off this machine is refused unless clients are authenticated for there or remote_allowed. False with the
 * error set.
 */
bool listener_open(const listening *asked, bool remote_allowed, listener **listeners, size_t *count);

/* Refuses who connects from now on, though it is still open. Not for those that systemd has opened. */
void listener_end(listener *l);

/* Closes them all, removes Unix sockets and frees the array. */
void listener_close_all(listener *listeners, size_t count);

/* A socket address in words: "127.0.0.1:5000", "[::1]:5000", "a local client". */
struct sockaddr;
void listener_address_text(const struct sockaddr *address, char *out, size_t size);

#endif
