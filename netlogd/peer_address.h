/* The address of a client whatever its port, by which limits are kept that reconnecting does not reset. */
#ifndef NETLOGD_PEER_ADDRESS_H
#define NETLOGD_PEER_ADDRESS_H

#include <stddef.h>

enum { PEER_ADDRESS_SIZE = 80 };

/*
 * Writes to name the address in peer, which is as listener_address_text has it, without the port. A network of 64 bits
 * of IPv6 is one address, because one host may use all of it.
 */
void peer_address(const char *peer, char name[PEER_ADDRESS_SIZE]);

/* One of count buckets for the address in peer, which strangers cannot guess. */
size_t peer_address_bucket(const char *peer, size_t count);

#endif
