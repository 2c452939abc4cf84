/*
 * Who may connect to the server, and how many at once: its listening sockets, from the first client to the last.
 *
 * Of the server's thread; what it keeps is in struct server.
 */
#ifndef NETLOGD_ACCEPTING_H
#define NETLOGD_ACCEPTING_H

#include "server.h"
#include "transport/channel.h"

#include <sys/socket.h>

#define ACCEPTING_NOT_ALLOWED "not from an allowed network"

/* Prepares for clients, and takes connections to the control socket (NULL: there is none). Ends the program when there
 * is no memory, as the next does. */
void accepting_start(server *srv, const listener *control);

/* Applies the limits of the settings that hold now. */
void accepting_settings_changed(server *srv);

/* Takes clients' connections and datagrams from now on. */
void accepting_listen(server *srv);

/* Lets those who connect wait in the kernel, or no longer. */
void accepting_enable(server *srv, bool enable);

/* At the end: takes those that wait, the listeners being disabled, but where systemd listens, for the next process. */
void accepting_take_waiting(server *srv);

/* From now on who connects is refused, who would otherwise log to nobody. Where systemd listens the next one serves. */
void accepting_end(server *srv);

void accepting_free(server *srv);

/* Whether a client at that address may log: it is on this machine, in an allowed network, or, where none is listed,
 * authenticated for by a certificate. */
bool accepting_allows(const server *srv, const struct sockaddr *peer, bool authenticated);

/* Closes the new connection fd of peer, counts it as refused and reports the reason, which is a constant. */
void accepting_refuse(server *srv, int fd, const struct sockaddr *peer, const char *reason);

/*
 * Whether the client of a channel that was accepted at the listener may stay after a change of the settings: its
 * address and its certificate are checked again. If not, the reason is reported with peer, the client's address as
 * text.
 */
bool accepting_may_stay(server *srv, const listener *at, const nl_channel *channel, const char *peer);

#endif
