/*
 * Admission of clients to the server, by address and number, and the server's listening sockets.
 *
 * The module owns the listeners and the table of clients. The server's thread only.
 */
#ifndef NETLOGD_ACCEPTING_H
#define NETLOGD_ACCEPTING_H

#include "service/client_table.h"
#include "service/listener.h"
#include "settings.h"
#include "transport/channel.h"

#include <sys/socket.h>

/* Starts with these sockets, whose owner is the caller, and accepts connections to the control socket (NULL: none). */
void accepting_start(listener *sockets, size_t count, const listener *control);

/* Accepts connections and datagrams of clients from now on. */
void accepting_listen(void);

/* With false, lets new connections wait in the kernel; with true, accepts connections again. */
void accepting_enable(bool enable);

/* At the end: accepts the waiting connections, except at sockets of systemd, which the next process serves. */
void accepting_take_waiting(void);

/* Refuses new connections from now on, except at sockets of systemd. */
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
