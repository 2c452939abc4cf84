/*
 * Finds slow disks: reasons why hosts are slower than their peers. Callers: limits.c. No state.
 */
#ifndef NLDIAG_SLOW_DISKS_H
#define NLDIAG_SLOW_DISKS_H

#include "diag/findings.h"

/* If a slow disk explains a finding about a slow host, makes the disk the finding's cause. */
void name_slow_disks(const findings *f);

#endif
