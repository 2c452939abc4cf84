/* Networks of clients that may connect: "10.0.0.0/8", "fd00::/8", "192.0.2.7". */
#ifndef NETLOGGER_SERVICE_NETWORK_H
#define NETLOGGER_SERVICE_NETWORK_H

#include <stdbool.h>
#include <sys/socket.h>

typedef struct network {
    int family;
    unsigned char address[16];
    unsigned bits;
} network;

/* Reads one network. False when text is none. */
bool network_parse(const char *text, network *result);

/* Whether the network holds a socket's address. An IPv4 address mapped into IPv6 counts as the IPv4 address it is. */
bool network_contains(const network *net, const struct sockaddr *address);

/* Whether a socket address is of this machine alone: loopback, or a Unix socket. */
bool network_is_local(const struct sockaddr *address);

#endif
