/*
 * Finds slow disks: reasons why hosts are slower than their peers. Callers: limits.c. No state.
 */
#ifndef NLDIAG_SLOW_DISKS_H
#define NLDIAG_SLOW_DISKS_H

#include "diag/findings.h"

/* Makes a slow disk the cause of each finding about a slow host that it explains. */
void name_slow_disks(const findings *f);

#endif
