/*
 * Recognizes peers that are not netlogd by the first bytes that they send. The messages name the remedy. The module has
 * no state. Any thread may call its functions.
 */
#ifndef NETLOGGER_TRANSPORT_PEER_H
#define NETLOGGER_TRANSPORT_PEER_H

#include <stddef.h>

/* Maximum time in which a collector must reply to the first bytes of a connection, or complete a TLS handshake. */
enum { NL_PEER_PATIENCE_MS = 5000 };

/*
 * The description in the TLS alert that netlogd sends to a TLS client on a port without TLS. The description is
 * no_application_protocol, which no TLS server sends to a client that does not name an application protocol.
 */
enum { NL_PEER_ALERT_PLAIN = 120 };

/* Messages for a peer that has sent nothing, and that has closed the connection or has not answered in time. */
extern const char nl_peer_closed[], nl_peer_silent[];

/* The message for a peer that replies to blocks with a record, because the peer is netlogd's control socket. */
extern const char nl_peer_control[];

/*
 * Returns a message about a peer whose first bytes are data[0..size), in static storage. Returns NULL if netlogd may
 * have sent these bytes (doc/binary-format.md).
 */
const char *nl_peer_problem(const char *data, size_t size);

/* Like nl_peer_problem, for a TLS client whose peer has not sent a TLS handshake. */
const char *nl_peer_problem_of_tls(const char *data, size_t size);

#endif
