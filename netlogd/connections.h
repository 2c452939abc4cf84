/*
 * The list of netlogd's connections, the total memory that they use, and the list of connections that wait for an
 * acknowledgement.
 *
 * The module owns the order of both lists and the total. connection.c adds and removes connections, and other modules
 * visit all connections. Only the server's thread may call this module.
 */
#ifndef NETLOGD_CONNECTIONS_H
#define NETLOGD_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct connection connection;

/*
 * A connection's entry in the lists, which is a member of the connection. The connection sets `owner` and initializes
 * the other members with zeros; the entry is then in no list.
 */
typedef struct connections_entry {
    connection *owner;
    struct connections_entry *next, **link;
    size_t held; /* number of bytes of incomplete input */
    bool waits;  /* the connection waits for an acknowledgement */
    struct connections_entry *next_waiting;
} connections_entry;

void connections_add(connections_entry *entry);
void connections_remove(connections_entry *entry);

/*
 * Calls `visit` for each connection, the latest connection first. `visit` may close only the connection that it gets.
 */
void connections_visit(void (*visit)(connection *c, void *user), void *user);

/* Sets the number of bytes of a connection's incomplete input. */
void connections_set_held(connections_entry *entry, size_t held);

/* Returns the total number of bytes of incomplete input of all connections. */
size_t connections_get_held(void);

/*
 * Returns the connection to close when all connections together use too much memory, or NULL if no connection uses
 * memory. Considers only connections whose memory is at least the mean of all connections that use memory. Chooses the
 * connection whose time_ns is earliest. A time of 0 counts as later than all other times.
 */
connection *connections_find_worst(int64_t (*time_ns)(const connection *c));

/* Notes that a connection waits for an acknowledgement. */
void connections_await_acknowledgement(connections_entry *entry);

/*
 * Removes a connection from the list of connections that wait for an acknowledgement, and returns it. Returns NULL if
 * no connection waits.
 */
connection *connections_next_to_acknowledge(void);

#endif
