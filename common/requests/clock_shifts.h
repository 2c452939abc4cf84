/*
 * Learns small constant differences between the clocks of hosts from the order of events.
 *
 * Synchronized clocks usually differ by less than a millisecond, but messages often take even less time. Some messages
 * then seem to arrive before they were sent, and the order of their events shows no cause. The module looks for one
 * shift for each host that restores the order of such events. In a trace, spans name their parents, so the order of
 * these events is known. In other requests, only a message to the first event of a program, and the reply to this
 * message, show that a clock differs. If a call always takes longer than the work that it began on another host, the
 * work ends before the call. Other pairs of kinds of events have an order if it holds in nearly all requests. Each
 * order limits the shifts of two hosts: the shifted effect must not precede its cause. The module adds the orders that
 * need the smallest shifts first, and only orders that agree with all earlier limits (Cormen and others, Introduction
 * to Algorithms, "Difference constraints and shortest paths"). A call and its reply limit the same two hosts in both
 * directions. Events of concurrent programs have no constant order, so no shift can restore it.
 *
 * A shift is at most CLOCK_SHIFT_MAX_NS, a tenth of the usual duration of a request, and the bound of the two clocks.
 * If a difference is larger, a clock is wrong. The module then corrects no times. The gaps between events also show
 * which clocks are doubtful (clock_doubts.h). The module owns the gaps until clock_shifts_settle. Callers:
 * request_learning.c. Only one thread at a time may use a clock_shifts.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_SHIFTS_H
#define NETLOGGER_REQUESTS_CLOCK_SHIFTS_H

#include "requests/clock_doubts.h"
#include "requests/program_families.h"

#define CLOCK_SHIFT_MAX_NS INT64_C(2000000)

typedef struct clock_shifts clock_shifts;

/* `names` has the names of the events and must outlive the object, or is NULL (clock_gaps.h). */
clock_shifts *clock_shifts_new(const event_names *names);
void clock_shifts_free(clock_shifts *s); /* NULL is allowed */

/* Learns from the events of one request. `families` determines the kinds of events. Ignores large requests. */
void clock_shifts_learn(clock_shifts *s, const program_families *families, const request_event *events, size_t count);

/*
 * Learns from the graph of a trace, whose spans name their parents. A child begins after its parent and, if the parent
 * waits for it (`awaited`), ends before it. An object learns either from traces or from other requests.
 */
void clock_shifts_learn_trace(clock_shifts *s, const request_graph *g, const awaited_spans *awaited);

/* Finds the shifts, after learning. `clocks` are the known bounds of the clocks. */
void clock_shifts_settle(clock_shifts *s, const clock_bounds *clocks);

/* Adds to the time of each event the shift of the event's host. Returns whether a time changed. */
bool clock_shifts_apply(const clock_shifts *s, request_event *events, size_t count);

/*
 * Returns the maximum time in nanoseconds by which the clock of a host may still be ahead of the clock of another host
 * after clock_shifts_apply. Returns 0 for the same host, before clock_shifts_settle, and for hosts from which the
 * module has not learned.
 */
int64_t clock_shifts_rest(const clock_shifts *s, uint32_t host, uint32_t other);

/* Returns the number of hosts whose times clock_shifts_apply changes. Sets *max_ns to the largest change, or to 0. */
size_t clock_shifts_count(const clock_shifts *s, int64_t *max_ns);

/* Returns the clocks that seem to differ by more than the module corrects. Valid until clock_shifts_free. */
const clock_doubts *clock_shifts_doubts(const clock_shifts *s);

#endif
