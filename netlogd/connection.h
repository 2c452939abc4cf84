/*
 * One client: bytes from its socket, through a decoder of its own, into the output.
 *
 * Whatever a client sends costs only itself: what is malformed is counted and reported, and one that sends nothing else
 * is cut off.
 */
#ifndef NETLOGD_CONNECTION_H
#define NETLOGD_CONNECTION_H

#include "server.h"

#include <event2/util.h>

/* Takes over fd, which was accepted at a listener of the server's, and joins the list of the server. */
connection *connection_new(server *srv, evutil_socket_t fd, const listener *at, const struct sockaddr *peer);

/* Closes it when it has taken too long over something. now_ns is nl_monotonic_ns; called every second or so. */
void connection_check_time(connection *c, int64_t now_ns);

/* Starts or stops reading, while the output is blocked. */
void connection_pause(connection *c, bool pause);

/* Has new settings hold at once: how long it may be silent, how much it may send, and, by closing it, who may connect.
 */
void connection_settings_changed(connection *c);

/*
 * Reads what the kernel holds of this client at this moment, and nothing that comes meanwhile, until the time
 * (nl_monotonic_ns) has come; for the end of the program.
 */
void connection_take_what_came(connection *c, int64_t deadline_ns);

/*
 * Reads what the kernel holds of this client now, until it is empty or the time (nl_monotonic_ns) has come; for the end
 * of the program.
 */
void connection_drain(connection *c, int64_t deadline_ns);

/* Closes the socket and frees the connection. Part of a record whose rest never came is dropped: lines are whole. */
void connection_close(connection *c);

/* Sends a client of the binary protocol what the collector asks of it. Whether there was something to send. */
bool connection_send_activation(connection *c);

/* Adds what is known of a client to a record. */
void connection_describe(const connection *c, nl_record *record);

/* Tells a client of the binary protocol that all it has sent so far is written. */
void connection_acknowledge(connection *c);

/* Whether nothing more is to be read of it, which stays only because the server is ending. */
bool connection_is_over(const connection *c);

#endif
