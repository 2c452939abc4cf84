#include "config.h"

#include "peer_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

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

/* The hash is FNV-1a. Its seed is random bytes that the kernel has passed to the process (AT_RANDOM). */
size_t peer_address_bucket(const char *peer, size_t count)
{
    char name[PEER_ADDRESS_SIZE];
    uint64_t hash;
    peer_address(peer, name);
    memcpy(&hash, (const void *)getauxval(AT_RANDOM), sizeof hash); /* NOLINT: an address as a number */
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32) % count;
}
