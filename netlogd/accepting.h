/*
 * The server's listening sockets, and the decision which clients may connect: by address and by number of connections.
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
 * Starts the module with these sockets, which the caller owns. Accepts connections to the control socket at once; NULL:
 * there is no control socket.
 */
void accepting_start(listener *sockets, size_t count, const listener *control);

/* Starts to accept connections and datagrams from clients. */
void accepting_listen(void);

/* If enable is false, lets new connections wait in the kernel. If it is true, accepts connections again. */
void accepting_enable(bool enable);

/*
 * Accepts the connections that wait in the kernel. Skips sockets that systemd opened, which the next process serves.
 * For the end of the program.
 */
void accepting_take_waiting(void);

/* Starts to refuse new connections, except at sockets that systemd opened. */
void accepting_end(void);

void accepting_free(void);

/* Returns the connected clients, except clients of the control socket. */
client_table *accepting_get_clients(void);

/* Fails if other machines could connect without a certificate and without an allowed network under these settings. */
nl_status accepting_check_settings(const settings *now);

/* Applies checked settings that listen on the same addresses. */
void accepting_change_settings(const settings *now);

/*
 * Returns whether a client at an address may log: it is on this machine, or in an allowed network, or, if no network is
 * listed, it is authenticated by a certificate. Sets the error if not.
 */
bool accepting_allows(const struct sockaddr *peer, bool authenticated);

/* Closes the new connection fd of peer, counts it as rejected and reports the current error as the reason. */
void accepting_refuse(int fd, const struct sockaddr *peer);

/*
 * Returns whether the client of a channel that was accepted at a listener may stay after a change of the settings:
 * checks its address and its certificate again. If not, reports the reason with peer, the client's address as text.
 */
bool accepting_may_stay(const listener *at, const nl_channel *channel, const char *peer);

#endif
