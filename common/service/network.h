/* Networks of clients, such as "10.0.0.0/8", "fd00::/8" or "192.0.2.7". Any thread may call these functions. */
#ifndef NETLOGGER_SERVICE_NETWORK_H
#define NETLOGGER_SERVICE_NETWORK_H

#include "base/option.h"

#include <sys/socket.h>

typedef struct network {
    int family;
    unsigned char address[16];
    unsigned bits;
} network;

/* Parses a network. Returns false if text is invalid. */
bool network_parse(const char *text, network *result);

/* The value of an option that lists networks. */
typedef struct network_list {
    network *items;
    size_t count;
} network_list;

/*
 * Sets a repeatable option with a network_list: adds the networks in the value, which are separated by commas. Returns
 * false and sets the error if the value is invalid.
 */
nl_option_setter network_list_set;

/* Returns the network at an index as text, for the getter of such a row. Returns NULL after the last network. */
const char *network_list_get(const network_list *list, size_t index, char scratch[NL_OPTION_TEXT_SIZE]);

void network_list_free(network_list *list);

/* Returns whether a network in the list contains an address. */
bool network_list_contains(const network_list *list, const struct sockaddr *address);

/* Returns whether the network contains an address. An IPv4 address mapped into IPv6 counts as IPv4. */
bool network_contains(const network *net, const struct sockaddr *address);

/* Returns whether an address is local to this host: loopback, or a Unix socket. */
bool network_is_local(const struct sockaddr *address);

#endif
