/*
 * The connected clients of a daemon, and which client to close when a new one arrives at a limit.
 *
 * The table knows each client's address, when the daemon last heard of it, and whether it is proven: it has sent
 * something useful, such as a record or a request. A daemon asks the table before it accepts a client. If the table is
 * full, the table selects a client of the address with the most clients: the unproven client that has been silent
 * longest, or else the proven client that has been silent longest. A client whose bytes the daemon had no time to read
 * is not silent: the table asks the kernel for unread bytes, and spares such a client once. An IPv6 network of 64 bits
 * counts as one address, because one host may use all of it.
 *
 * Every operation takes constant time, so that the cost of an attacker's connections does not grow with their number.
 * The table owns the addresses and the order of their clients; the daemon owns the entries. One thread.
 */
#ifndef NETLOGGER_SERVICE_CLIENT_TABLE_H
#define NETLOGGER_SERVICE_CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sockaddr;

typedef struct client_table client_table;

/* A client: a member of the daemon's structure, zero until it is added. */
typedef struct client_entry {
    TAILQ_ENTRY(client_entry) of_address; /* the most silent first */
    struct client_address *address;       /* NULL: in no table */
    int64_t heard_ns;                     /* by nl_monotonic_ns */
    int fd;
    bool proven;
    bool spared; /* since the daemon last heard of it, it was once not closed because it had unread bytes */
    void (*close)(struct client_entry *entry); /* closes the client, which removes the entry */
} client_entry;

typedef enum client_verdict {
    CLIENT_ADMITTED,
    CLIENT_DISPLACES,      /* close another client first */
    CLIENT_TOO_MANY,       /* and no client has been silent long enough */
    CLIENT_TOO_MANY_OF_ONE /* the same for the client's address */
} client_verdict;

/* Returns NULL if memory runs out. */
client_table *client_table_new(void);
void client_table_free(client_table *t); /* the table must have no clients; NULL is allowed */

/* Sets the maximum number of clients, in total (SIZE_MAX: no limit) and of one address (0: no limit). */
void client_table_set_limits(client_table *t, size_t total_max, size_t address_max);

/*
 * Decides whether a client from peer may connect. full: the daemon has no resources for one more client. With
 * CLIENT_DISPLACES, *displaced is the client to close. Clients of Unix sockets count only in the total.
 */
client_verdict client_table_admit(client_table *t, const struct sockaddr *peer, bool full, int64_t now_ns,
                                  client_entry **displaced);

/* Returns the client to close when resources are short and the next client is unknown; NULL: all clients are busy. */
client_entry *client_table_find_silent(client_table *t, int64_t now_ns);

/* Adds a client from peer, whose fd and close are set. Returns false if memory runs out. */
bool client_table_add(client_table *t, client_entry *e, const struct sockaddr *peer, int64_t now_ns);

/* Notes that the client has sent something useful. The functions below ignore an entry that is in no table. */
void client_table_heard(client_table *t, client_entry *e, int64_t now_ns);

/* Removes the client. */
void client_table_remove(client_table *t, client_entry *e);

/* Replaces the entry of a client that continues under another owner. */
void client_table_replace(client_entry *old, client_entry *e);

size_t client_table_count(const client_table *t);

/* Returns the message for a client that was rejected or displaced. */
const char *client_verdict_message(client_verdict verdict);

/*
 * Raises the limit of open files, as far as permitted, to the wanted clients and own other files. Returns the first
 * descriptor that is not for clients.
 */
int client_table_reserve_files(size_t wanted, unsigned own);

#endif
