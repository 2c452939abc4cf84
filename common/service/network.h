/* Networks of clients that may connect: "10.0.0.0/8", "fd00::/8", "192.0.2.7". */
#ifndef NETLOGGER_SERVICE_NETWORK_H
#define NETLOGGER_SERVICE_NETWORK_H

#include "base/option.h"

#include <sys/socket.h>

typedef struct network {
    int family;
    unsigned char address[16];
    unsigned bits;
} network;

/* Reads one network. False when text is not a network. */
bool network_parse(const char *text, network *result);

/* The networks of an option. */
typedef struct network_list {
    network *items;
    size_t count;
} network_list;

/* The setter of a repeatable row whose member is a network_list; a value is one or more networks, separated by commas.
 */
nl_option_setter network_list_set;

/* The network at an index as text, for the getter of such a row; NULL behind the last. */
const char *network_list_get(const network_list *list, size_t index, char scratch[NL_OPTION_TEXT_SIZE]);

void network_list_free(network_list *list);

/* Whether one of the networks holds a socket's address. */
bool network_list_contains(const network_list *list, const struct sockaddr *address);

/* Whether the network holds a socket's address. An IPv4 address mapped into IPv6 counts as the IPv4 address it is. */
bool network_contains(const network *net, const struct sockaddr *address);

/* Whether a socket address is of this machine alone: loopback, or a Unix socket. */
bool network_is_local(const struct sockaddr *address);

#endif
