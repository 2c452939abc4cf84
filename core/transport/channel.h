/*
 * A connected stream socket, plain or with TLS; code that uses a channel need not distinguish the two. Channels are
 * non-blocking, so operations may fail with EAGAIN.
 *
 * The module uses OpenSSL for TLS 1.2 or later, without side effects on the program. The module does not change the
 * state of the process, raise signals or request a passphrase. As far as OpenSSL allows, it does not remove the
 * program's errors from OpenSSL's error queue. A fork waits until calls of this module have ended, so that OpenSSL is
 * consistent in the child.
 *
 * Only one thread at a time may use a channel. Only one thread at a time may use an nl_tls and the channels that use
 * it.
 */
#ifndef NETLOGGER_TRANSPORT_CHANNEL_H
#define NETLOGGER_TRANSPORT_CHANNEL_H

#include <netlogger.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The certificates of a client or a server, and the CA certificates that it trusts. */
typedef struct nl_tls nl_tls;

/* The files are in PEM format. NULL means that a file is not given. */
typedef struct nl_tls_options {
    const char *ca;    /* CA certificates for verifying the peer; a client's default is the system's */
    const char *cert;  /* own certificate with its chain; required for a server */
    const char *key;   /* private key; NULL means that it is read from the cert file */
    const char *crl;   /* for servers with ca: revocation lists, one for every CA in a client's chain */
    const char *peers; /* for servers with ca: names (see tls_names.h), one of which a client's certificate must have */
    const char *protocol; /* the only protocol of ALPN that a server accepts, or that a client offers, such as h2; a
                             static text */
} nl_tls_options;

/*
 * Creates the TLS state of a client or a server. A server with ca requires client certificates. Returns NULL and sets
 * the error on failure. Channels may outlive a server's state, but not a client's.
 */
nl_tls *nl_tls_new(bool server, const nl_tls_options *options);
void nl_tls_free(nl_tls *tls); /* NULL is allowed */

/* Returns whether the certificate of `tls` is valid for a DNS name or address. */
bool nl_tls_has_name(nl_tls *tls, const char *name);

/*
 * Return the time, in seconds since 1970, at which the certificate of `tls`, or the first certificate in a PEM file,
 * expires. Return INT64_MAX if there is no certificate, or if the file cannot be read.
 */
int64_t nl_tls_get_expiry(nl_tls *tls);
int64_t nl_tls_read_expiry(const char *path);

/* Creates an SSL object for callers that use OpenSSL directly. The caller frees it. Returns NULL if memory runs out. */
struct ssl_st *nl_tls_new_ssl(nl_tls *tls);

typedef struct nl_channel {
    int fd;                     /* -1: not connected */
    struct nl_tls_session *tls; /* NULL: the channel does not use TLS */
} nl_channel;

/*
 * Checks again whether a client's certificate is trusted, not revoked, and has one of the names in `peers`. Returns
 * true if the server has neither crl nor peers, or if the client has no certificate. Returns false and sets the error
 * if the connection must be closed.
 */
bool nl_channel_may_stay(const nl_channel *channel, nl_tls *tls);

/* Returns whether the peer has presented a certificate. */
bool nl_channel_has_certificate(const nl_channel *channel);

enum { NL_CERTIFICATE_NAME_SIZE = 80 };

/*
 * Sets `name` to the SHA-256 digest of the peer's certificate, in hexadecimal. Returns false if the peer has no
 * certificate.
 */
bool nl_channel_name_certificate(const nl_channel *channel, char name[NL_CERTIFICATE_NAME_SIZE]);

/* Returns whether the peer's certificate is valid for a DNS name or address. */
bool nl_channel_peer_is_named(const nl_channel *channel, const char *name, size_t size);

/*
 * Adds TLS to a connected channel. `name` is the host for which the server's certificate must be valid; it must stay
 * valid as long as the channel. For a server, `name` is NULL. nl_channel_handshake or the first read performs the
 * handshake. Returns false on failure.
 */
bool nl_channel_secure(nl_channel *channel, nl_tls *tls, const char *name);

/* Performs the TLS handshake. Returns 0 if the channel is ready for data; otherwise -1 with errno, such as EAGAIN. */
int nl_channel_handshake(nl_channel *channel);

/* Returns whether the handshake is complete. */
bool nl_channel_is_ready(const nl_channel *channel);

/*
 * For a client whose handshake is complete: checks whether the server has accepted the client's certificate. A TLS 1.3
 * server verifies the certificate only after the handshake. Returns 0 if the server has accepted the certificate or did
 * not request one. Otherwise returns -1 with errno, which is EAGAIN if the result is not known yet. A server need not
 * reveal the result.
 */
int nl_channel_confirm(nl_channel *channel);

/*
 * Like recv and send, return the number of bytes, or -1 with errno. nl_channel_read returns 0 if the peer has ended the
 * connection. EPROTO means that TLS failed; see nl_channel_fail.
 */
ssize_t nl_channel_read(nl_channel *channel, void *data, size_t size);
ssize_t nl_channel_write(nl_channel *channel, const void *data, size_t size);

/* Returns an upper bound of the number of unread bytes in the channel's buffer; 0 if the buffer is empty. */
size_t nl_channel_held(const nl_channel *channel);

/* Returns whether the channel's buffer may contain unread bytes, which poll(2) does not report. */
bool nl_channel_has_more(const nl_channel *channel);

/* Returns whether a write that failed with EAGAIN is incomplete. If so, the next write must have the same bytes. */
bool nl_channel_is_midway(const nl_channel *channel);

/* Returns the event to wait for after EAGAIN: usual (POLLIN or POLLOUT), unless TLS needs the other event first. */
short nl_channel_wants(const nl_channel *channel, short usual);

/*
 * Sets the error for an errno that the functions above returned. The message comes from TLS or from the system. Returns
 * NL_FAILED.
 */
nl_status nl_channel_fail(const nl_channel *channel, int error);

/* Ends writing. The channel can still be read. */
void nl_channel_end(nl_channel *channel);

/*
 * Close the channel; fd is -1 afterwards. nl_channel_forget sends nothing. Call nl_channel_forget in the child after
 * fork, because the connection belongs to the parent.
 */
void nl_channel_close(nl_channel *channel);
void nl_channel_forget(nl_channel *channel);

#endif
