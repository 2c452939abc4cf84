/*
 * Matching with limited cost, for expressions of untrusted users. The cost is counted in steps of about a nanosecond.
 * It depends only on the expression and the record, not on the machine.
 */
#ifndef NETLOGGER_FILTER_COST_H
#define NETLOGGER_FILTER_COST_H

#include <netlogger.h>

/* Maximum steps of an expression for one record: about 4 ms. */
#define NL_FILTER_STEPS_MAX (UINT64_C(1) << 22)

/*
 * Sets *matches as nl_filter_matches does, and subtracts the cost from *steps. Returns NL_FAILED and does not set
 * *matches if *steps is too small. Allocates and locks nothing. Any thread; threads may share a filter.
 */
nl_status nl_filter_match(const nl_filter *filter, const nl_record *record, uint64_t *steps, bool *matches);

#endif
