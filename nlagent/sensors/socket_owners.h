/*
 * Finds the processes that own sockets.
 *
 * Only /proc/PID/fd relates a socket to its processes, and a search of all processes is slow. The module therefore
 * keeps the result of the last search, and searches again only when the caller looks up an unknown socket. The searches
 * use at most 1 % of one processor. For example, after a search that took 5 ms, the module does not search for 500 ms.
 * The module uses 16 bytes per socket and about 180 bytes per process. The connections sensor calls this module. Not
 * thread-safe.
 */
#ifndef NLAGENT_SOCKET_OWNERS_H
#define NLAGENT_SOCKET_OWNERS_H

#include <netlogger.h>

typedef struct socket_owner {
    int pid;
    char program[16]; /* the process's name, as in /proc/PID/comm */
    char cgroup[128]; /* path in the hierarchy of version 2; "" if unknown */
    int64_t read_ns;  /* time at which socket_owners_read_times has read the members below */
    uint64_t wait_us; /* time in which the process's main thread waited for a processor, in microseconds */
    char state;       /* R: running; S: sleeping; D: waiting for I/O; 0: unknown */
} socket_owner;

typedef struct socket_owners socket_owners;

/* Returns an empty table, or NULL if memory is insufficient. The table is never freed. */
socket_owners *socket_owners_new(void);

/*
 * Returns the owner of the socket with this inode, valid until the next call. Returns NULL if the socket has no owner,
 * or if the owner is not known yet. If several processes own the socket, returns the process with the lowest ID.
 */
const socket_owner *socket_owners_find(socket_owners *o, uint64_t inode);

/* Reads the state of an owner, and the time that the owner has waited for a processor. Does nothing if the function has
 * already read the values at the time now_ns. */
void socket_owners_read_times(socket_owners *o, const socket_owner *owner, int64_t now_ns);

#endif
