#include "config.h"

#include "service/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

bool network_parse(const char *text, network *result)
{
    char address[64];
    size_t size = strcspn(text, "/");
    if (size >= sizeof address)
        return false;
    memcpy(address, text, size);
    address[size] = '\0';
    *result = (network){.family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET};
    unsigned most = result->family == AF_INET6 ? 128 : 32;
    if (inet_pton(result->family, address, result->address) != 1)
        return false;
    result->bits = most;
    if (text[size] == '\0')
        return true;
    char *end;
    unsigned long bits = strtoul(text + size + 1, &end, 10);
    if (text[size + 1] < '0' || text[size + 1] > '9' || *end != '\0' || bits > most)
        return false;
    result->bits = (unsigned)bits;
    return true;
}

/* The bytes and family of a socket's address, IPv4 mapped into IPv6 taken as IPv4. */
static const unsigned char *bytes_of(const struct sockaddr *address, int *family)
{
    *family = address->sa_family;
    if (address->sa_family == AF_INET)
        return (const unsigned char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (address->sa_family != AF_INET6)
        return NULL;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(six))
        return six->s6_addr;
    *family = AF_INET;
    return six->s6_addr + 12;
}

bool network_contains(const network *net, const struct sockaddr *address)
{
    int family;
    const unsigned char *bytes = bytes_of(address, &family);
    if (bytes == NULL || family != net->family)
        return false;
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    if (memcmp(bytes, net->address, whole) != 0)
        return false;
    return rest == 0 || ((bytes[whole] ^ net->address[whole]) >> (8 - rest)) == 0;
}

bool network_is_local(const struct sockaddr *address)
{
    static const network four = {AF_INET, {127}, 8};
    static const network six = {AF_INET6, {[15] = 1}, 128};
    return address->sa_family == AF_UNIX || network_contains(&four, address) || network_contains(&six, address);
}
