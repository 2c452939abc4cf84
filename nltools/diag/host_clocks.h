/*
 * Hosts' clocks: which ones are wrong, and their times corrected. Evidence is only what concurrency cannot explain:
 * measured offsets (ClockOffset records), and calls between hosts, with explicit parents, whose effects come before
 * their causes. Processes of one host share its clock. One thread at a time.
 */
#ifndef NLDIAG_HOST_CLOCKS_H
#define NLDIAG_HOST_CLOCKS_H

#include "diag/findings.h"

typedef struct host_clocks host_clocks;

host_clocks *host_clocks_new(void);
void host_clocks_free(host_clocks *c);

/* Learns from a record, and returns its time: corrected, after host_clocks_decide found wrong clocks. */
int64_t host_clocks_time(void *clocks, const nl_record *record);

/* Decides from the first reading. Returns whether a clock is wrong, so that the log has to be read again. */
bool host_clocks_decide(host_clocks *c, const visits *v);

/* Adds a finding for each wrong clock. corrected: the log was read again. */
void host_clocks_report(const host_clocks *c, findings *f, bool corrected);

bool host_clocks_are_wrong(const host_clocks *c);

#endif
