/* Opens the listening sockets of a daemon from URLs. Only one thread at a time may use this module. */
#ifndef NETLOGGER_SERVICE_LISTENER_H
#define NETLOGGER_SERVICE_LISTENER_H

#include "transport/channel.h"
#include "transport/url.h"

/* The configuration of a listener, or of another input. */
typedef struct listening {
    char *text;           /* the value of the option; NULL if the listener does not come from an option */
    char *url;            /* the URL without options; for NATS, with the options that identify a reader */
    char *nats;           /* for NATS: the whole URL; NULL for sockets to which clients connect */
    bool http;            /* clients use HTTP or HTTPS, but `url` has the scheme x-netlog or x-netlogs */
    bool otlp;            /* clients use OTLP */
    bool grpc;            /* if `otlp` is true: clients use gRPC; otherwise, they use HTTP/1.1 */
    bool syslog;          /* clients send syslog messages */
    nl_tls *tls;          /* NULL if the listener does not use TLS */
    bool authenticated;   /* a client needs a certificate from a trusted CA */
    bool hosts_certified; /* the HOST of a record must be a name in the client's certificate */
    char *names;          /* for HTTP: additional names of this host, separated by commas; or NULL */
} listening;

/* The options of a listener's URL. */
typedef struct listening_options {
    nl_tls_options tls;
    bool hosts_certified;
    const char *names;
} listening_options;

/* Rows of listening_options for TLS, for collectors, and for HTTP. */
extern const nl_option listening_tls_rows[], listening_hosts_rows[], listening_names_rows[];

/*
 * Reads the options of a URL into the members tls, authenticated, hosts_certified and names of a listening. The member
 * grpc must be set. `own` has rows in addition to the TLS rows, or is NULL. `secure` means that the URL requires TLS.
 * `may_be_secure` means that TLS options are allowed, and enable TLS. Returns false and sets the error on failure.
 */
bool listening_read(const nl_url *url, const nl_option *own, bool secure, bool may_be_secure, listening *l);
void listening_free(listening *l);

typedef struct listener {
    int fd;
    const listening *asked; /* its configuration */
    bool remote;            /* other hosts can connect */
    bool datagrams;
    char *name; /* a URL with the real port */
    char *path; /* path of a Unix socket, which is removed at the end; otherwise NULL */
} listener;

/*
 * Opens the sockets of a configuration (a host name may have several addresses) and appends them to *listeners. An
 * address that is open to other hosts requires client certificates or remote_allowed. Returns false and sets the error
 * on failure.
 */
bool listener_open(const listening *asked, bool remote_allowed, listener **listeners, size_t *count);

/*
 * Sets the error for an address that is open to other hosts, but has neither allowed networks nor client certificates.
 * Returns false.
 */
bool listener_reject_open(const listening *asked);

/*
 * Rejects further connections without closing the socket. Do not use it for sockets that systemd opened and keeps open.
 */
void listener_end(listener *l);

/* Closes all sockets, removes Unix sockets and frees the array. */
void listener_close_all(listener *listeners, size_t count);

/* Writes an address as text, such as "127.0.0.1:5000", "[::1]:5000" or "a local client". */
struct sockaddr;
void listener_address_text(const struct sockaddr *address, char *out, size_t size);

#endif
