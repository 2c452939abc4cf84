/*
 * The connected clients of a daemon. The module selects the client to close when a new client connects and a limit is
 * reached.
 *
 * A proven client has sent something useful, such as a record or a request. A daemon asks the table before it accepts a
 * client. If the table is full, the module selects a client of the address with the most clients. It prefers unproven
 * clients, and among these the client that has been silent longest. If all clients of the address are proven, it
 * selects the proven client that has been silent longest. A client whose bytes the daemon has not yet read is not
 * silent. Therefore, the module asks the kernel whether a client has unread bytes, and spares such a client once. An
 * IPv6 network of 64 bits counts as one address, because one host may use all of it.
 *
 * Every operation takes constant time, so that the cost of an attacker's connections does not grow with their number.
 * The table owns the addresses and the order of their clients; the daemon owns the entries. Only one thread at a time
 * may use a table.
 */
#ifndef NETLOGGER_SERVICE_CLIENT_TABLE_H
#define NETLOGGER_SERVICE_CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sockaddr;

typedef struct client_table client_table;

/* A client. The entry is a member of the daemon's structure for the client. Initialize it with zeros. */
typedef struct client_entry {
    TAILQ_ENTRY(client_entry) of_address; /* the client that has been silent longest is first */
    struct client_address *address;       /* NULL if the entry is not in a table */
    int64_t heard_ns; /* time when the daemon last received something useful, or when the table added or spared the
                         client (nl_monotonic_ns) */
    int fd;
    bool proven;
    bool spared; /* the table has spared the client because of unread bytes, since the daemon last received something
                    useful */
    void (*close)(struct client_entry *entry); /* closes the client, which removes the entry */
} client_entry;

typedef enum client_verdict {
    CLIENT_ADMITTED,
    CLIENT_DISPLACES,      /* close another client first */
    CLIENT_TOO_MANY,       /* reject the client, because no other client has been silent long enough */
    CLIENT_TOO_MANY_OF_ONE /* reject the client, because its address has too many clients, and none of them has been
                              silent long enough */
} client_verdict;

/* Returns NULL if memory runs out. */
client_table *client_table_new(void);
void client_table_free(client_table *t); /* the table must have no clients; freeing NULL has no effect */

/* Sets the maximum number of clients in total (SIZE_MAX means no limit) and from one address (0 means no limit). */
void client_table_set_limits(client_table *t, size_t total_max, size_t address_max);

/*
 * Determines whether a client from peer may connect. `full` means that the daemon has no resources for one more client.
 * If the result is CLIENT_DISPLACES, *displaced is the client to close. Clients of Unix sockets count only towards the
 * total.
 */
client_verdict client_table_admit(client_table *t, const struct sockaddr *peer, bool full, int64_t now_ns,
                                  client_entry **displaced);

/*
 * Returns a client to close when resources are short and the next client is unknown. It is a client of the address with
 * the most clients. Returns NULL if all clients of this address are busy, or if the table is empty.
 */
client_entry *client_table_find_silent(client_table *t, int64_t now_ns);

/* Adds a client from peer. The caller has set the entry's fd and close. Returns false if memory runs out. */
bool client_table_add(client_table *t, client_entry *e, const struct sockaddr *peer, int64_t now_ns);

/*
 * Notes that a client has sent something useful. This function and the next two ignore an entry that is not in a table.
 */
void client_table_heard(client_table *t, client_entry *e, int64_t now_ns);

void client_table_remove(client_table *t, client_entry *e);

/* Replaces the entry of a client with an entry that is a member of another structure of the daemon. */
void client_table_replace(client_entry *old, client_entry *e);

size_t client_table_count(const client_table *t);

/* Returns the message for a client that was rejected or displaced. */
const char *client_verdict_message(client_verdict verdict);

/*
 * Raises the limit of open files, as far as permitted, to `wanted` (the intended number of clients) plus twice `own`
 * (the number of other files). Returns the first descriptor that is not for clients, or INT_MAX if the limit is
 * unknown.
 */
int client_table_reserve_files(size_t wanted, unsigned own);

#endif
