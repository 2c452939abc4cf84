/* The address of a client without its port, for limits that reconnecting must not reset. No state. */
#ifndef NETLOGD_PEER_ADDRESS_H
#define NETLOGD_PEER_ADDRESS_H

#include <stddef.h>

enum { PEER_ADDRESS_SIZE = 80 };

/*
 * Writes to name the address in peer, a text of listener_address_text, without the port. An IPv6 network of 64 bits is
 * one address, because one host may use all of it.
 */
void peer_address(const char *peer, char name[PEER_ADDRESS_SIZE]);

/* Returns the number, below count, of a bucket for the address in peer. Clients cannot guess it. */
size_t peer_address_bucket(const char *peer, size_t count);

#endif
