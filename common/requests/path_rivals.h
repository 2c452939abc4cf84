/*
 * Finds out whether small errors of hosts' clocks may change the critical path of a request.
 *
 * The path leads back from the latest of several events: the last event of the request, or the last of the events that
 * cause an event. A rival is an event on another host that was logged shortly before the latest event. If the clock of
 * the rival's host may be behind by the time between the two events (clock_shifts_rest), the rival may be the latest
 * event instead. Events that precede the event on the path are not rivals. If the rival is the latest event, the part
 * of the path after the last visit of the rival's program is wrong. The module counts this error only if the part takes
 * at least a tenth of the request's time.
 *
 * The functions have no state. request_learning.c is the only caller.
 */
#ifndef NETLOGGER_REQUESTS_PATH_RIVALS_H
#define NETLOGGER_REQUESTS_PATH_RIVALS_H

#include "requests/clock_shifts.h"
#include "requests/precedence.h"

/* Returns the number of steps of the path that a rival may change by at least a tenth of the request's duration. */
uint32_t path_rivals_count(const request_graph *g, const precedence *edges, const clock_shifts *shifts);

#endif
