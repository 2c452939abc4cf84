/*
 * A connected stream socket as bytes in and bytes out, plain or within TLS, so that who reads and writes need not know
 * which. Non-blocking: what cannot be done at once fails with EAGAIN.
 *
 * TLS is OpenSSL's, 1.2 and up, and lives beside whatever else the program does with it: nothing that belongs to the
 * whole process is changed, its error queue is left as it was where OpenSSL itself does so, no signal is
 * raised, nothing asks for a passphrase. A fork waits for a call here to end, so that the child finds OpenSSL in order.
 *
 * This depends on libc and OpenSSL only, and reports in words, not through the library's errors: it is linked into the
 * library and into netlogd. One thread at a time for a channel; for a nl_tls too, and all channels that it secures.
 */
#ifndef NETLOGGER_TRANSPORT_CHANNEL_H
#define NETLOGGER_TRANSPORT_CHANNEL_H

#include <netlogger.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the connections of one side have in common: certificates, and whom it trusts. */
typedef struct nl_tls nl_tls;

/* Files are PEM; NULL where there is none. */
typedef struct nl_tls_options {
    const char *ca;   /* certificates of those who may vouch for the other side; a client without trusts the system's */
    const char *cert; /* its own certificate, and the chain behind it; a server has one */
    const char *key;  /* of that certificate; in the same file when NULL */
    const char *crl;  /* of a server with ca: revocation lists, one of every CA in a client's chain, or it is refused */
    const char *peers; /* likewise: names, of which a client's certificate must have one: see transport/tls_names.h */
} nl_tls_options;

/* For a client, or, with server, for a listener: one with ca demands a certificate of each client. NULL on
 * failure. To be freed with nl_tls_free; channels may outlast a server's, not a client's.
 */
nl_tls *nl_tls_new(bool server, const nl_tls_options *options);
void nl_tls_free(nl_tls *tls); /* NULL is allowed */

/* Whether the side's own certificate is for that name: a DNS name or an address. */
bool nl_tls_has_name(nl_tls *tls, const char *name);

/* For who reads and writes by OpenSSL himself: a connection of a listener's, an SSL of OpenSSL's, which is the
 * caller's. NULL when memory is short. */
struct ssl_st *nl_tls_new_ssl(nl_tls *tls);

typedef struct nl_channel {
    int fd;                     /* -1: not connected */
    struct nl_tls_session *tls; /* NULL: plain */
} nl_channel;

/*
 * Whether the certificate that a client has shown still lets it in at a listener: it is believed, not revoked, and has
 * one of the names of peers. Without crl and peers, and for a channel without a certificate, nothing is checked.
 * Returns false and sets the error when it does not.
 */
bool nl_channel_may_stay(const nl_channel *channel, nl_tls *tls);

/* Whether the peer has shown a certificate. */
bool nl_channel_has_certificate(const nl_channel *channel);

enum { NL_CERTIFICATE_NAME_SIZE = 80 };

/* Writes a text that no other certificate has to name. False if the peer has shown no certificate. */
bool nl_channel_name_certificate(const nl_channel *channel, char name[NL_CERTIFICATE_NAME_SIZE]);

/* Whether the client's certificate is for that name, an address among them. False without one. */
bool nl_channel_peer_is_named(const nl_channel *channel, const char *name, size_t size);

/*
 * Secures a connected channel from here on. name is the host that a client expects, a name or an address, which the
 * server's certificate must be for; NULL for a server. Handshaking is nl_channel_handshake's, or the first read's.
 * False when memory is short.
 */
bool nl_channel_secure(nl_channel *channel, nl_tls *tls, const char *name);

/* 0 when the channel is ready for data; -1 with errno: EAGAIN, or as reading and writing have it. */
int nl_channel_handshake(nl_channel *channel);

/* Whether the handshake is over: asked of who only reads, and may have read nothing yet. */
bool nl_channel_is_ready(const nl_channel *channel);

/*
 * For a client, after the handshake. TLS 1.3 lets it begin before the server has looked at its certificate: 0 when the
 * server has shown that it took it (or did not want any), -1 with errno as reading has it. A server need not show it.
 */
int nl_channel_confirm(nl_channel *channel);

/*
 * As recv and send: how many bytes, 0 at the other side's orderly end, -1 with errno. EPROTO: TLS failed, and
 * nl_channel_fail reports how.
 */
ssize_t nl_channel_read(nl_channel *channel, void *data, size_t size);
ssize_t nl_channel_write(nl_channel *channel, const void *data, size_t size);

/* Bytes of memory that it takes besides, while part of what came is not understood yet. */
size_t nl_channel_held(const nl_channel *channel);

/* Whether there is more to be read, data or the end, that poll does not tell of. */
bool nl_channel_has_more(const nl_channel *channel);

/* Whether a write that failed with EAGAIN has left part of a message on its way: only the same bytes may follow. */
bool nl_channel_is_midway(const nl_channel *channel);

/* What to wait for after EAGAIN: usual (POLLIN or POLLOUT), or what TLS needs first. */
short nl_channel_wants(const nl_channel *channel, short usual);

/* Sets the error for an errno of a function above: TLS's message, or the system's. Returns NL_FAILED. */
nl_status nl_channel_fail(const nl_channel *channel, int error);

/* Tells the other side that no more comes from here. The channel can still be read. */
void nl_channel_end(nl_channel *channel);

/* Closes and frees; fd is -1 then. nl_channel_forget does not say a word to the other side: in the child after fork the
 * connection is the parent's. */
void nl_channel_close(nl_channel *channel);
void nl_channel_forget(nl_channel *channel);

/* ---- the same for what is within TLS: tls.c ---- */

ssize_t nl_tls_session_read(struct nl_tls_session *session, void *data, size_t size);
ssize_t nl_tls_session_write(struct nl_tls_session *session, const void *data, size_t size);
void nl_tls_session_end(struct nl_tls_session *session);
void nl_tls_session_free(struct nl_tls_session *session);

#endif
