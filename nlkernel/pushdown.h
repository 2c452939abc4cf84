/*
 * Translation of a filter into the kernel's event filters, so that the kernel does not record events that cannot match.
 *
 * The filter is specialized for each event. The results of tests of the event's name, of host and level, and of fields
 * that the event lacks are known in advance. Tests that the kernel supports become text of a kernel filter. In the
 * kernel filter, the other tests (PID, which is not in the kernel's record; regular expressions; times) count as true,
 * and nlkernel evaluates the filter again for each event. One thread.
 */
#ifndef NLKERNEL_PUSHDOWN_H
#define NLKERNEL_PUSHDOWN_H

#include "events.h"

/*
 * Sets the event's kernel_filter and evaluate. Returns false if no event of this kind can match. host: the value of
 * HOST in the records.
 */
bool pushdown(kernel_event *event, const nl_filter *filter, nl_string host);

#endif
