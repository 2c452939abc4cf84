/* The address of a client whatever its port, by which limits are kept that reconnecting does not reset. */
#ifndef NETLOGD_PEER_ADDRESS_H
#define NETLOGD_PEER_ADDRESS_H

enum { PEER_ADDRESS_SIZE = 80 };

/*
 * Writes to name the address in peer, which is as listener_address_text has it, without the port. A network of 64 bits
 * of IPv6 is one address, because one host may use all of it.
 */
void peer_address(const char *peer, char name[PEER_ADDRESS_SIZE]);

#endif
