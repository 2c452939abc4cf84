/*
 * Matching with a bound on its cost, for expressions that strangers write.
 *
 * Cost is counted in steps of about a nanosecond. Their number depends only on the expression and the record, not on
 * the machine.
 */
#ifndef NETLOGGER_FILTER_COST_H
#define NETLOGGER_FILTER_COST_H

#include <netlogger.h>

/* The steps that an expression may cost for one record: about 4 milliseconds. */
#define NL_FILTER_STEPS_MAX (UINT64_C(1) << 22)

/*
 * Sets *matches as nl_filter_matches does, and subtracts the cost from *steps. Returns NL_FAILED, and leaves *matches
 * as it was, when *steps did not suffice. Takes no lock and no memory. Any thread; several threads may use one filter.
 */
nl_status nl_filter_match(const nl_filter *filter, const nl_record *record, uint64_t *steps, bool *matches);

#endif
