/*
 * Finds the routers and the maximum packet size (MTU) of a path. The module needs no privilege, because the kernel
 * passes the ICMP messages about a socket's own packets to the socket (IP_RECVERR). All packets go to the reflector's
 * port. At most one packet is on the way at a time. Call these functions only if path_probes_answered returns true.
 */
#ifndef NLAGENT_PATH_ROUTE_H
#define NLAGENT_PATH_ROUTE_H

#include "sensors/path_probes.h"

#include <netinet/in.h>

enum { PATH_HOPS_MAX = 30 };

typedef struct path_hop {
    char address[INET6_ADDRSTRLEN]; /* "" if no reply arrived */
    int64_t round_trip_ns;
} path_hop;

/* Sizes of IP packets in bytes. */
typedef struct path_mtu {
    unsigned local;    /* the largest packet that this host's interface can send */
    unsigned path;     /* the largest packet that reached the peer */
    unsigned reported; /* the smallest MTU that a router has reported; 0: no router has reported an MTU */
} path_mtu;

/* Finds the routers on the way to the peer. Returns the number of hops, or 0 on failure. The last hop is the peer,
 * unless the search ended early. */
size_t path_find_hops(path_probes *p, path_hop hops[PATH_HOPS_MAX]);

/* Finds the MTU in the direction to the peer. Returns false on failure. */
bool path_find_mtu(path_probes *p, path_mtu *result);

#endif
