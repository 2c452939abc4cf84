/*
 * By how much the clocks of hosts may differ, from what the log itself says (doc/clocks.md): the offsets that
 * collectors measure (ClockOffset), and what hosts report (ClockTracking, ClockKernel). A host without such records has
 * an unknown bound. Programs on one host share its clock, and so do hosts of one machine.
 *
 * Hosts have the numbers that request_reader gives them. One thread at a time.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_BOUNDS_H
#define NETLOGGER_REQUESTS_CLOCK_BOUNDS_H

#include <netlogger.h>

#define CLOCK_BOUND_UNKNOWN INT64_MAX

typedef struct clock_bounds clock_bounds;

clock_bounds *clock_bounds_new(void);
void clock_bounds_free(clock_bounds *b); /* NULL is allowed */

/* Learns from a record of a host. Other records than those about clocks change nothing. */
void clock_bounds_learn(clock_bounds *b, const nl_record *record, uint32_t host);

/* Sets a bound: a host's clock is at most error_ns wrong. */
void clock_bounds_set(clock_bounds *b, uint32_t host, int64_t error_ns);

/* Returns the most by which the clocks of two hosts differ, or CLOCK_BOUND_UNKNOWN. b may be NULL: nothing is known. */
int64_t clock_bounds_between(const clock_bounds *b, uint32_t host, uint32_t other);

#endif
