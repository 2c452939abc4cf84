/*
 * One client that logs: bytes from its socket, through its decoder, into the outputs.
 *
 * The input of a client affects only that client: malformed input is counted and reported, and a client that sends
 * nothing else is disconnected. connections.h owns the list. The server's thread only.
 */
#ifndef NETLOGD_CONNECTION_H
#define NETLOGD_CONNECTION_H

#include "connections.h"
#include "service/listener.h"

#include <netlogger.h>

#include <event2/util.h>

struct sockaddr;

/* Takes over fd, which was accepted at a listener, and adds the connection to the list. */
connection *connection_new(evutil_socket_t fd, const listener *at, const struct sockaddr *peer);

/* Closes the connection if it has exceeded a time limit. now_ns is nl_monotonic_ns. Called every second. */
void connection_check_time(connection *c, int64_t now_ns);

/* Stops or starts reading, while an output is blocked. */
void connection_pause(connection *c, bool pause);

/*
 * Applies new settings: the limits of silence and of records per second, and the allowed clients. May close the
 * connection.
 */
void connection_settings_changed(connection *c);

/*
 * Reads the bytes from this client that the kernel holds now, but no later bytes, until a time (nl_monotonic_ns). For
 * the end of the program.
 */
void connection_take_arrived(connection *c, int64_t deadline_ns);

/* Reads until the kernel holds no bytes from this client, or until a time. For the end of the program. */
void connection_drain(connection *c, int64_t deadline_ns);

/* Closes and frees the connection. An incomplete record is dropped. */
void connection_close(connection *c);

/* Sends the collector's commands to a client of the binary protocol. Returns whether there were commands to send. */
bool connection_send_activation(connection *c);

/* Adds the state of the connection to a record of a reply. */
void connection_describe(const connection *c, nl_record *record);

/* Acknowledges to a client of the binary protocol all blocks received so far. */
void connection_acknowledge(connection *c);

/* Returns whether nothing more is read from the connection; it remains only because the server is ending. */
bool connection_is_over(const connection *c);

#endif
