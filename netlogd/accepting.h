/*
 * Accepts clients at the server's listening sockets. Rejects clients because of their addresses or because too many
 * clients are connected.
 *
 * The module owns the listeners and the table of clients. Only the server's thread may call it.
 */
#ifndef NETLOGD_ACCEPTING_H
#define NETLOGD_ACCEPTING_H

#include "service/client_table.h"
#include "service/listener.h"
#include "settings.h"
#include "transport/channel.h"

#include <sys/socket.h>

/*
 * Starts the module with these sockets, which the caller owns, and begins to accept connections to the control socket.
 * `control` is NULL if there is no control socket.
 */
void accepting_start(listener *sockets, size_t count, const listener *control);

/* Begins to accept connections and datagrams from clients. */
void accepting_listen(void);

/*
 * If `enable` is true, accepts connections again. Otherwise, lets new connections wait in the kernel, except
 * connections to the control socket.
 */
void accepting_enable(bool enable);

/*
 * Accepts the connections that are waiting in the kernel. Skips sockets that systemd opened, because the next netlogd
 * process serves them. Called at the end of the program.
 */
void accepting_take_waiting(void);

/* Begins to reject new connections, except at sockets that systemd opened. */
void accepting_end(void);

void accepting_free(void);

/* Returns the connected clients, except clients of the control socket. */
client_table *accepting_get_clients(void);

/*
 * If the settings list no allowed networks, checks that other machines can reach only listeners that require
 * certificates. Returns NL_FAILED and sets the error if the check fails.
 */
nl_status accepting_check_settings(const settings *now);

/* Applies settings that were checked and that have the same listen addresses as the current settings. */
void accepting_change_settings(const settings *now);

/*
 * Returns whether a client may log. The client must connect through loopback or a Unix socket, or from an allowed
 * network. If the settings list no networks, a client that is authenticated by a certificate may also log. If the
 * client may not log, sets the error.
 */
bool accepting_allows(const struct sockaddr *peer, bool authenticated);

/* Closes fd, a new connection from peer. Counts it as rejected, and reports the current error as the reason. */
void accepting_refuse(int fd, const struct sockaddr *peer);

/*
 * Checks a client's address and certificate again, after a change of the settings. Returns whether the client may stay
 * connected. If not, reports the reason. `at` is the listener that accepted the client's channel. `peer` is the
 * client's address as text, for the report.
 */
bool accepting_may_stay(const listener *at, const nl_channel *channel, const char *peer);

#endif
