/*
 * As much of a filter as the kernel can do itself, so that what is not meant is not even recorded.
 *
 * The filter is specialised for each event: tests of its name, of fields that it has not, of host and level are known
 * beforehand; tests that the kernel knows too become the text of a kernel event filter; what remains (PID, which is not
 * in the kernel's record; regular expressions; times) is taken as true there, and asked about by us. One thread.
 */
#ifndef NLKERNEL_PUSHDOWN_H
#define NLKERNEL_PUSHDOWN_H

#include "events.h"

/*
 * Sets the event's kernel_filter and evaluate. False when the filter can be true of no such event, which then need not
 * be recorded. host is what records of this host have as HOST.
 */
bool pushdown(kernel_event *event, const nl_filter *filter, nl_string host);

#endif
