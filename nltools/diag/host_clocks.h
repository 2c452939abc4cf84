/*
 * Finds hosts with wrong clocks, and corrects their times. The module uses only evidence that concurrency cannot
 * explain:
 * - measured offsets (ClockOffset records)
 * - calls between hosts, with explicit parents, in which an effect comes before its cause
 * - events that have another order on one host than on the other hosts
 *
 * Processes on one host share its clock. Not thread-safe.
 */
#ifndef NLDIAG_HOST_CLOCKS_H
#define NLDIAG_HOST_CLOCKS_H

#include "diag/findings.h"

typedef struct host_clocks host_clocks;

host_clocks *host_clocks_new(void);
void host_clocks_free(host_clocks *c);

/*
 * Stores the evidence that a record contains. Returns the record's time in nanoseconds since 1970. If
 * host_clocks_decide has found that the clock of the record's host is wrong, the returned time is corrected. `clocks`
 * is a host_clocks.
 */
int64_t host_clocks_time(void *clocks, const nl_record *record);

/* Decides after the first reading. Returns whether a clock is wrong, so that the log must be read again. */
bool host_clocks_decide(host_clocks *c, const visits *v);

/* Adds to v->corrections the hosts whose times were corrected, and the maximum errors of the corrections. */
void host_clocks_note(const host_clocks *c, visits *v);

/* Returns the maximum error of a host's corrected times in nanoseconds, or 0 if the times were not corrected. */
double host_clock_error(const visits *v, const char *host);

/* Returns whether the log has measurements that show a wrong clock. Other programs can correct the clock only with such
 * measurements. */
bool host_clocks_are_measured(const host_clocks *c);

/* Adds a finding for each wrong clock. `corrected` is true if the log was read again. */
void host_clocks_report(const host_clocks *c, findings *f, bool corrected);

/*
 * Returns whether a comparison of a host's times with the times of other hosts may be wrong. There are two possible
 * reasons: the host's clock may be fast, or the host's callers may not wait for its replies.
 */
bool host_clock_is_doubtful(const visits *v, const char *host);

#endif
