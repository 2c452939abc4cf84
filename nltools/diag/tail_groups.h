/*
 * Finds hosts and values of fields with which a few visits are very slow, but most visits take the usual time. The
 * search does not find these causes, because it compares the usual times.
 *
 * A visit is in the tail of its place if its time is far above the usual times of its kind, in relation to their
 * variation. If the visits with a host or a value (failure_groups.h) are in the tail more often than the other visits
 * throughout the log, the module adds a finding.
 */
#ifndef NLDIAG_TAIL_GROUPS_H
#define NLDIAG_TAIL_GROUPS_H

#include "diag/findings.h"

/* Adds the findings about the time that no finding has claimed yet, and evidence to the findings about timeouts. Call
 * the function after the search. */
void find_tail_groups(findings *f);

#endif
