#include "config.h"

#include "peer_host.h"

#include "server.h"
#include "service/listener.h"
#include "service/network.h"

#include <stdio.h>
#include <string.h>

void peer_address_host(const struct sockaddr *peer, char name[PEER_ADDRESS_SIZE])
{
    if (network_is_local(peer)) {
        snprintf(name, PEER_ADDRESS_SIZE, "%s", server_host());
        return;
    }
    char text[PEER_ADDRESS_SIZE];
    listener_address_text(peer, text, sizeof text);
    bool bracket = text[0] == '[';
    const char *end = bracket ? strchr(text, ']') : strrchr(text, ':');
    snprintf(name, PEER_ADDRESS_SIZE, "%.*s", end != NULL ? (int)(end - text - bracket) : -1, text + bracket);
}
