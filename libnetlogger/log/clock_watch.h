/*
 * A log's records about the quality of its clock: the state of the kernel's clock and of chronyd (base/clock_quality.h)
 * when the log is opened and at intervals, steps of the clock (ClockStep), and the difference from the clock of an
 * acknowledging collector (ClockOffset), measured by exchanges of timestamps (doc/binary-format.md, "Time"). The writer
 * thread owns the state. If the URL has clock=no, the log has no such records.
 *
 * An exchange gives the offset to within half of the round-trip time, so the module uses the exchange with the shortest
 * round trip of the last eight (the minimum filter of RFC 5905), with a penalty for age. A comparison with the
 * monotonic clock detects steps, after which the offset is measured again.
 */
#ifndef NETLOGGER_LOG_CLOCK_WATCH_H
#define NETLOGGER_LOG_CLOCK_WATCH_H

#include <netlogger.h>

typedef struct nl_clock_watch nl_clock_watch;

/* Sets log->watch if the log has clock records, otherwise NULL. Call it before the log has a thread. */
void nl_clock_watch_begin(nl_log *log);

/* Writes the records that are due. Called by the writer thread. */
void nl_clock_watch_look(nl_log *log);

/* Writes the remaining records when the log is closed. Called by the writer thread. */
void nl_clock_watch_finish(nl_log *log);

/* Call it in the child after fork. watch may be NULL. */
void nl_clock_watch_after_fork(nl_clock_watch *watch);

void nl_clock_watch_free(nl_clock_watch *watch);

#endif
