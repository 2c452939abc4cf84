/*
 * Bounds the differences between hosts' clocks. The bounds come from two kinds of records (doc/clocks.md): the offsets
 * that collectors measure (ClockOffset), and the errors that hosts report (ClockTracking, ClockKernel). The bound of a
 * host without such records is unknown. Programs on one host share a clock. Hosts on one machine also share a clock.
 *
 * Hosts have the numbers that request_reader gives them. Only one thread at a time may use the bounds.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_BOUNDS_H
#define NETLOGGER_REQUESTS_CLOCK_BOUNDS_H

#include <netlogger.h>

/*
 * Maximum number of hosts whose clocks the module distinguishes. All further hosts share one number, so their clocks
 * count as unknown.
 */
enum { CLOCK_BOUNDS_HOSTS_MAX = 1 << 16 };

#define CLOCK_BOUND_UNKNOWN INT64_MAX

typedef struct clock_bounds clock_bounds;

clock_bounds *clock_bounds_new(void);
void clock_bounds_free(clock_bounds *b); /* NULL is allowed */

/* Learns from a record of a host. Only records about clocks have an effect. */
void clock_bounds_learn(clock_bounds *b, const nl_record *record, uint32_t host);

/* Sets the maximum error of a host's clock in nanoseconds. */
void clock_bounds_set(clock_bounds *b, uint32_t host, int64_t error_ns);

/*
 * Returns the maximum difference between the clocks of two hosts in nanoseconds, or CLOCK_BOUND_UNKNOWN. If `b` is
 * NULL, all clocks are unknown.
 */
int64_t clock_bounds_between(const clock_bounds *b, uint32_t host, uint32_t other);

#endif
