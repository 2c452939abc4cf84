/*
 * The list of netlogd's connections, what they hold in memory together, and which of them wait for an acknowledgement.
 *
 * The module owns the order of the list and the sums. connection.c adds and removes each connection; server.c, reload.c
 * and control.c visit all of them. One thread.
 */
#ifndef NETLOGD_CONNECTIONS_H
#define NETLOGD_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct connection connection;
typedef struct connections connections;

/* A connection's part in the list, a member of the connection. {0} with owner is in no list. */
typedef struct connections_entry {
    connection *owner;
    struct connections_entry *next, **link;
    size_t held; /* bytes of what came in part */
    bool waits;  /* for an acknowledgement */
    struct connections_entry *next_waiting;
} connections_entry;

/* Exits without memory. Freed with connections_free, when no connection is left. */
connections *connections_new(void);
void connections_free(connections *all);

void connections_add(connections *all, connections_entry *entry);
void connections_remove(connections *all, connections_entry *entry);

/* Calls visit for each connection, the latest first. visit may close the connection that it gets, but no other. */
void connections_visit(connections *all, void (*visit)(connection *c, void *user), void *user);

/* Sets how many bytes a connection holds of what came in part. */
void connections_set_held(connections *all, connections_entry *entry, size_t held);

/* Returns how many bytes all connections hold of what came in part. */
size_t connections_get_held(const connections *all);

/*
 * Returns the connection to close when all hold too much, or NULL when none holds anything: of those that hold at least
 * an equal share, the one whose time, as time_ns returns it, is earliest; 0 is later than all others.
 */
connection *connections_find_worst(const connections *all, int64_t (*time_ns)(const connection *c));

/* Notes that a connection waits for an acknowledgement. */
void connections_await_acknowledgement(connections *all, connections_entry *entry);

/* Takes a connection off those that wait for an acknowledgement, and returns it; NULL when there is none. */
connection *connections_next_to_acknowledge(connections *all);

#endif
