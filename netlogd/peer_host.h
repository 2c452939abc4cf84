/* Names the host of a sender whose records have no HOST. */
#ifndef NETLOGD_PEER_HOST_H
#define NETLOGD_PEER_HOST_H

#include "peer_address.h"

struct sockaddr;

/* Writes the HOST of records that name no host: this host for a local client, otherwise the client's address. */
void peer_address_host(const struct sockaddr *peer, char name[PEER_ADDRESS_SIZE]);

#endif
