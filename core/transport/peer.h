/*
 * Recognises peers that are not netlogd by the first bytes that they send. The messages name the remedy. No state; any
 * thread.
 */
#ifndef NETLOGGER_TRANSPORT_PEER_H
#define NETLOGGER_TRANSPORT_PEER_H

#include <stddef.h>

/* Maximum time in which a collector must answer the first bytes of a connection, and complete a TLS handshake. */
enum { NL_PEER_PATIENCE_MS = 5000 };

/* The description in netlogd's TLS alert to a TLS client on a port without TLS: no_application_protocol, which no TLS
 * server sends to a client that names no application protocol. */
enum { NL_PEER_ALERT_PLAIN = 120 };

/* Problems of a peer that has sent nothing: it has closed the connection, or has not answered in time. */
extern const char nl_peer_closed[], nl_peer_silent[];

/* The problem of a peer that replies to blocks with a record: it is netlogd's control socket. */
extern const char nl_peer_control[];

/*
 * Returns the problem of a peer that a collector's client reached and whose first bytes are data[0..size), in static
 * storage; NULL if netlogd may have sent them (doc/binary-format.md).
 */
const char *nl_peer_problem(const char *data, size_t size);

/* Like nl_peer_problem, for a TLS client whose peer has sent no TLS handshake. */
const char *nl_peer_problem_of_tls(const char *data, size_t size);

#endif
