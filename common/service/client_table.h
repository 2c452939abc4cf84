/*
 * The connected clients of a daemon, and which of them has to go when a new one comes and there are too many.
 *
 * The table knows of each client its address, when it was last heard of, and whether it has proved itself: a client
 * that has sent something useful (a record, a request) is proven. A daemon asks the table before it accepts a client.
 * When the table is full, it names the client to close: of the address that holds most clients, the one that has proved
 * nothing for the longest, or else the proven one that has been silent for the longest. A client that cannot be read
 * for lack of a turn is not silent: the table checks whether the kernel holds bytes of it, and spares such a client
 * once. An IPv6 network of 64 bits counts as one address, because one host may use all of it.
 *
 * Every operation takes constant time, so that strangers who connect do not cost more when many are connected.
 * One thread at a time. The module owns the addresses and the order of their clients; the entries are their owners'.
 */
#ifndef NETLOGGER_SERVICE_CLIENT_TABLE_H
#define NETLOGGER_SERVICE_CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

typedef struct client_table client_table;

/* One client; part of what its owner keeps of it, and zero until it is added. */
typedef struct client_entry {
    struct client_entry *next, *previous; /* of the same address, the silent ones first */
    struct client_address *address;       /* NULL: it is in no table */
    int64_t heard_ns;                     /* by nl_monotonic_ns */
    int fd;
    bool proven;
    bool spared; /* since it was heard of, it was not closed because it had unread bytes */
    void (*close)(struct client_entry *entry); /* closes the client, which removes the entry */
} client_entry;

typedef enum client_verdict {
    CLIENT_ADMITTED,
    CLIENT_DISPLACES,      /* another client has to be closed first */
    CLIENT_TOO_MANY,       /* and nobody has been silent for long enough */
    CLIENT_TOO_MANY_OF_ONE /* likewise, of the address of the new client */
} client_verdict;

/* Returns NULL when memory is short. */
client_table *client_table_new(void);
void client_table_free(client_table *t); /* without clients; NULL is allowed */

/* Sets how many clients there may be, in all (SIZE_MAX: any number) and of one address (0: any number). */
void client_table_set_limits(client_table *t, size_t total_max, size_t address_max);

/*
 * Decides whether a client from peer may connect now. With full, the caller has no means for one more client, whatever
 * the limits. On CLIENT_DISPLACES, *displaced is the client to close. Clients of Unix sockets count in the total only.
 */
client_verdict client_table_admit(client_table *t, const struct sockaddr *peer, bool full, int64_t now_ns,
                                  client_entry **displaced);

/* The client to close when means for clients run out while it is not known who comes next; NULL: all are busy. */
client_entry *client_table_find_silent(client_table *t, int64_t now_ns);

/* Adds a client from peer, whose socket and close function e has. False when memory is short. */
bool client_table_add(client_table *t, client_entry *e, const struct sockaddr *peer, int64_t now_ns);

/* Notes that the client has done something useful. An entry that is in no table is left alone, here and below. */
void client_table_heard(client_table *t, client_entry *e, int64_t now_ns);

/* Removes the client. */
void client_table_remove(client_table *t, client_entry *e);

/* Puts e in the place of a client that goes on under another owner; old is in no table then. */
void client_table_replace(client_table *t, client_entry *old, client_entry *e);

size_t client_table_count(const client_table *t);

/* The message for why a client was turned away, or another one displaced. */
const char *client_verdict_message(client_verdict verdict);

/*
 * Raises the process's limit of open files, as far as it is allowed to, so that wanted clients fit in beside own files.
 * Returns the first descriptor that is not for clients.
 */
int client_table_reserve_files(size_t wanted, unsigned own);

#endif
