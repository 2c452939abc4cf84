/* Derives names of clients from their addresses. The module has no state. */
#ifndef NETLOGD_PEER_ADDRESS_H
#define NETLOGD_PEER_ADDRESS_H

#include <stddef.h>

enum { PEER_ADDRESS_SIZE = 80 };

/*
 * Writes the address in `peer` without the port to `name`, for limits that a client cannot reset by reconnecting.
 * `peer` has the form of listener_address_text. All addresses of an IPv6 /64 network become the same name, because one
 * host may use all of them.
 */
void peer_address(const char *peer, char name[PEER_ADDRESS_SIZE]);

/* Returns the number of a bucket for the address in peer, less than `count`. Clients cannot guess the number. */
size_t peer_address_bucket(const char *peer, size_t count);

#endif
