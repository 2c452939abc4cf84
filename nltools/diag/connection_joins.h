/*
 * Joins visits with TCP connections. The join shows the part of a visit's time in which the visit's connections were
 * limited, and the causes (connections/connection_causes.h).
 *
 * If a visit's records name the addresses of a connection (visit_ends.h), the module joins the visit with this
 * connection, unless the connection mainly carries data in the other direction. If the records also name a part of the
 * connection's data, only the time counts in which this part was on its way. The module joins any other visit that
 * waits for data from another host (senders.h) with the connections that carried data from that host to the visit's
 * host. It joins a visit that waits for no host of the log with the connections of the visit's program whose other end
 * is on a host without visits. A connection does not show which request its bytes belong to. Therefore, in each slice
 * of time, the module divides the time of the connections between two hosts among the visits of these hosts. The parts
 * are in proportion to the visits' own times without a round trip. A visit gets at most its own time without a round
 * trip. The module does not divide time in which the sending program wrote nothing, because the connection did not
 * cause this time.
 *
 * Connections between the same hosts may also carry data of other programs. If two hosts have connections of programs
 * with visits, their other connections do not count. A connection that was limited mostly while no visit waited does
 * not count. The module does not join visits with connections that have records of only one end if the connections lead
 * to more addresses than the visits have partner hosts.
 *
 * Caller: connection_limits.c. Memory: about 150 bytes per pair and slice. Not thread-safe.
 */
#ifndef NLDIAG_CONNECTION_JOINS_H
#define NLDIAG_CONNECTION_JOINS_H

#include "connections/connection_causes.h"
#include "diag/senders.h"

typedef struct connection_joins connection_joins;

/* Returns the join, or NULL if no visit is joined with a connection. `v` and `senders` must outlive the join. */
connection_joins *connection_joins_new(const visits *v, const sender *senders);
void connection_joins_free(connection_joins *j); /* j may be NULL */

/*
 * Sets parts[c] to the part of a visit's own time, 0 to 1, in which cause c limited its connections. Returns false if
 * the visit is joined with no connection.
 */
bool connection_joins_parts(const connection_joins *j, uint32_t index, double parts[CAUSE_COUNT]);

/* Returns whether a visit may be unrelated to the connections with which it is joined. */
bool connection_joins_is_weak(const connection_joins *j, uint32_t index);

/* Returns the visit's connection that the cause limited longest, or NULL. */
const connection_result *connection_joins_longest(const connection_joins *j, uint32_t index, connection_cause cause);

#endif
