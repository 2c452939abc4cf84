/*
 * Finds the servers of calls that only the callers log.
 *
 * A record of an access log, or of a call to another program, often names the server in a field: upstream=app3:8080.
 * The servers are peers, like the hosts of a program that writes its own records. The module makes the named server the
 * host of the visit, and keeps the caller's host as the host where the visit begins. The other modules can then compare
 * the servers, and find pauses, queues and sensors of each server.
 *
 * A field names servers in two cases. (1) Its name means a server, and its values differ only in numbers. (2) Its name
 * means a server or a host, and its values are hosts of the log. Other values, such as the names of services, are
 * different kinds of work. If only some visits of a place have the field, the module moves these visits to a new place.
 * The other visits, such as answers from a cache, are of a different kind, because they need no server. No state.
 */
#ifndef NLDIAG_SERVERS_H
#define NLDIAG_SERVERS_H

#include "diag/visits.h"

/* Moves visits to the hosts of their servers. Call the function once, before the instances of the sites are
 * numbered. */
void visits_move_to_servers(visits *v);

#endif
