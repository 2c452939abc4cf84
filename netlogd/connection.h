/*
 * A connection of a client that logs. The client's bytes go from its socket through its decoder to the outputs.
 *
 * The input of a client affects only that client. netlogd counts and reports malformed input, and disconnects a client
 * that sends only malformed input. connections.h owns the list of connections. Only the server's thread may call this
 * module.
 */
#ifndef NETLOGD_CONNECTION_H
#define NETLOGD_CONNECTION_H

#include "connections.h"
#include "service/listener.h"

#include <netlogger.h>

#include <event2/util.h>

struct sockaddr;

/* Creates a connection from fd, which the listener `at` accepted, and adds it to the list. Takes ownership of fd. */
connection *connection_new(evutil_socket_t fd, const listener *at, const struct sockaddr *peer);

/*
 * Marks the client's streams as used. Closes a connection that has exceeded a time limit. `now_ns` is nl_monotonic_ns.
 */
void connection_check_time(connection *c, int64_t now_ns);

/* Stops reading from the client because an output is blocked, or resumes reading. */
void connection_pause(connection *c, bool pause);

/* Applies a changed idle timeout, a changed maximum rate of records, and a changed list of allowed networks. May close
 * the connection. */
void connection_settings_changed(connection *c);

/*
 * Reads about as many bytes from this client as the kernel has buffered now. Stops at deadline_ns (nl_monotonic_ns),
 * when an output is blocked, or when clients use too much memory. Called at the end of the program.
 */
void connection_take_arrived(connection *c, int64_t deadline_ns);

/*
 * Reads until the kernel has no more bytes from this client. Stops earlier for the same reasons as
 * connection_take_arrived. Called at the end of the program.
 */
void connection_drain(connection *c, int64_t deadline_ns);

/* Closes and frees the connection. Drops an incomplete record. */
void connection_close(connection *c);

/*
 * Sends the collector's commands to a client of the binary protocol. Returns false if there are no commands, or if the
 * client does not expect commands yet.
 */
bool connection_send_activation(connection *c);

/* Adds fields that describe the state of the connection to a record of a reply. */
void connection_describe(const connection *c, nl_record *record);

/* Acknowledges all blocks that a client of the binary protocol has sent so far. */
void connection_acknowledge(connection *c);

/*
 * Returns whether netlogd has finished reading from the connection. At the end of the program, such a connection may
 * still be open.
 */
bool connection_is_over(const connection *c);

#endif
