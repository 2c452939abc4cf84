/*
 * Writes a log's records about the quality of the host's clock when the log is opened, and then at intervals. The
 * records report the state of the kernel's clock and of chronyd (base/clock_quality.h), and the difference from the
 * clock of the collector, if the connection has acknowledgements (ClockOffset). Exchanges of timestamps measure this
 * difference (doc/binary-format.md, "Time"). ClockStep reports steps of the clock. The writer thread owns the state. By
 * default, only logs to collectors have these records; the option clock= changes this.
 *
 * An exchange gives the offset to within half of the round-trip time. The module uses the exchange with the shortest
 * round trip among the last eight exchanges, with a penalty for age (the minimum filter of RFC 5905). A comparison with
 * the boot-time clock detects steps, after which the offset is measured again.
 */
#ifndef NETLOGGER_LOG_CLOCK_WATCH_H
#define NETLOGGER_LOG_CLOCK_WATCH_H

#include <netlogger.h>

typedef struct nl_clock_watch nl_clock_watch;

/*
 * Sets log->watch, unless the log has no clock records or memory runs out. Call the function before the log has a
 * thread.
 */
void nl_clock_watch_begin(nl_log *log);

/* Writes the records that are due. Only the writer thread calls this function. */
void nl_clock_watch_look(nl_log *log);

/* Writes the remaining records when the log is closed. Only the writer thread calls this function. */
void nl_clock_watch_finish(nl_log *log);

/* Call this function in the child after fork. `watch` may be NULL. */
void nl_clock_watch_after_fork(nl_clock_watch *watch);

void nl_clock_watch_free(nl_clock_watch *watch);

#endif
