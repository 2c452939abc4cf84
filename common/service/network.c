#include "config.h"

#include "service/network.h"

#include "base/error.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
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
    unsigned bits_max = result->family == AF_INET6 ? 128 : 32;
    if (inet_pton(result->family, address, result->address) != 1)
        return false;
    result->bits = bits_max;
    if (text[size] == '\0')
        return true;
    char *end;
    unsigned long bits = strtoul(text + size + 1, &end, 10);
    if (text[size + 1] < '0' || text[size + 1] > '9' || *end != '\0' || bits > bits_max)
        return false;
    result->bits = (unsigned)bits;
    return true;
}

/* Returns the bytes of an address and sets its family. An IPv4 address mapped into IPv6 counts as IPv4. */
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

bool network_list_set(void *settings, const nl_option *row, const char *value)
{
    network_list *list = (network_list *)((char *)settings + row->offset);
    for (size_t size; *value != '\0'; value += size + (value[size] == ',')) {
        network net;
        char text[80];
        size = strcspn(value, ",");
        snprintf(text, sizeof text, "%.*s", (int)size, value);
        if (size >= sizeof text || !network_parse(text, &net))
            return nl_error_false(NL_ERROR_INVALID, "\"%.79s\" is not a network; use ADDRESS or ADDRESS/BITS", text);
        list->items = nl_memory_check(realloc(list->items, (list->count + 1) * sizeof *list->items));
        list->items[list->count++] = net;
    }
    return true;
}

const char *network_list_get(const network_list *list, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    char address[INET6_ADDRSTRLEN];
    if (index >= list->count)
        return NULL;
    const network *net = &list->items[index];
    inet_ntop(net->family, net->address, address, sizeof address);
    bool whole = net->bits == (net->family == AF_INET6 ? 128 : 32);
    snprintf(scratch, NL_OPTION_TEXT_SIZE, whole ? "%s" : "%s/%u", address, net->bits);
    return scratch;
}

void network_list_free(network_list *list)
{
    free(list->items);
    *list = (network_list){0};
}

bool network_list_contains(const network_list *list, const struct sockaddr *address)
{
    for (size_t i = 0; i < list->count; i++)
        if (network_contains(&list->items[i], address))
            return true;
    return false;
}

bool network_is_local(const struct sockaddr *address)
{
    static const network four = {AF_INET, {127}, 8};
    static const network six = {AF_INET6, {[15] = 1}, 128};
    return address->sa_family == AF_UNIX || network_contains(&four, address) || network_contains(&six, address);
}
