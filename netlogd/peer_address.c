#include "config.h"

#include "peer_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

void peer_address(const char *peer, char name[PEER_ADDRESS_SIZE])
{
    struct in6_addr six;
    const char *port = strrchr(peer, ':');
    size_t size = port != NULL ? (size_t)(port - peer) : strlen(peer);
    snprintf(name, PEER_ADDRESS_SIZE, "%.*s", (int)size, peer);
    char *bracket = strchr(name, ']');
    if (name[0] != '[' || bracket == NULL)
        return;
    *bracket = '\0';
    if (inet_pton(AF_INET6, name + 1, &six) == 1) {
        memset(&six.s6_addr[8], 0, 8);
        inet_ntop(AF_INET6, &six, name, PEER_ADDRESS_SIZE);
    }
}
