/* Limits of TCP connections, as causes of findings and as evidence for findings. Caller: limits.c. No state. */
#ifndef NLDIAG_CONNECTION_LIMITS_H
#define NLDIAG_CONNECTION_LIMITS_H

#include "diag/connection_joins.h"
#include "diag/limit.h"

/*
 * Makes faults of connections (windows and buffers, loss, policers, the reverse path) the causes of the findings that
 * they explain. Adds a finding for a fault that takes at least FINDING_MIN of all time. Returns whether a fault takes
 * more than half of all time. The rate of a path is a fault only if it takes a large part of all time. Slow start, and
 * programs that read or write slowly, are not faults of the connection.
 */
bool connection_limits_find(findings *f, const connection_joins *j);

/*
 * Adds to each finding the cause that limited the connections in most of its time. Replaces general advice about
 * windows, loss, policers and the reverse path with the advice for the connection that was limited longest.
 */
void connection_limits_add_evidence(findings *f, const connection_joins *j);

#endif
