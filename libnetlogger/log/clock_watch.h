/*
 * A log's own records of how good its clock is: what the kernel and chronyd say (timekeeping/quality.h) when the log is
 * opened and every so often, and, where the destination is a collector that acknowledges, by how much this clock and
 * the collector's differ (ClockOffset), by exchanges of timestamps (doc/binary-format.md, "Time"). All of it is the
 * writer thread's, but for the first record of the kernel's, which costs a system call; a log without it (clock=no)
 * pays a comparison a look.
 *
 * An exchange gives the offset to within half of what the way there and back took, so the one that took least of the
 * last eight counts (the minimum filter of RFC 5905), the earlier ones being worth less as clocks drift. A clock that
 * is set while the log is open is noticed by comparison with the monotonic clock (ClockStep), and measured anew.
 */
#ifndef NETLOGGER_LOG_CLOCK_WATCH_H
#define NETLOGGER_LOG_CLOCK_WATCH_H

#include <netlogger.h>

typedef struct nl_clock_watch nl_clock_watch;

/* The log is being opened: says what the kernel says; makes log->watch, NULL when nothing is to be watched. */
void nl_clock_watch_begin(nl_log *log);

/* Does what is due. By the writer thread. */
void nl_clock_watch_look(nl_log *log);

/* The log is being closed: says what is known and was not said. By the writer thread. */
void nl_clock_watch_finish(nl_log *log);

/* In the child after fork; NULL is allowed, as below. */
void nl_clock_watch_after_fork(nl_clock_watch *watch);

void nl_clock_watch_free(nl_clock_watch *watch);

#endif
