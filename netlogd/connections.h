/*
 * The list of netlogd's connections, the total memory that they hold, and the list of connections that wait for an
 * acknowledgement.
 *
 * The module owns the order of both lists and the total. connection.c adds and removes each connection; other modules
 * visit all of them. The server's thread only.
 */
#ifndef NETLOGD_CONNECTIONS_H
#define NETLOGD_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct connection connection;

/*
 * A connection's entry in the lists. It is a member of the connection. {0} with owner set is an entry that is in no
 * list.
 */
typedef struct connections_entry {
    connection *owner;
    struct connections_entry *next, **link;
    size_t held; /* bytes of incomplete input */
    bool waits;  /* waits for an acknowledgement */
    struct connections_entry *next_waiting;
} connections_entry;

void connections_add(connections_entry *entry);
void connections_remove(connections_entry *entry);

/* Calls visit for each connection, the latest first. visit may close only the connection that it gets. */
void connections_visit(void (*visit)(connection *c, void *user), void *user);

/* Sets the number of bytes of incomplete input that a connection holds. */
void connections_set_held(connections_entry *entry, size_t held);

/* Returns the number of bytes of incomplete input that all connections hold together. */
size_t connections_get_held(void);

/*
 * Returns the connection to close when all connections together hold too much, or NULL if no connection holds anything:
 * among the connections that hold at least an equal share, the one with the earliest time (time_ns). A time of 0 counts
 * as later than all other times.
 */
connection *connections_find_worst(int64_t (*time_ns)(const connection *c));

/* Notes that a connection waits for an acknowledgement. */
void connections_await_acknowledgement(connections_entry *entry);

/* Removes one connection from those that wait for an acknowledgement and returns it. Returns NULL if none waits. */
connection *connections_next_to_acknowledge(void);

#endif
