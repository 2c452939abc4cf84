/*
 * Translates a filter into the kernel's event filters, so that the kernel does not record events that cannot match.
 *
 * The module translates the filter for each event. The results of some tests are known in advance: tests of the event's
 * name, the host, the level, and fields that the event lacks. Tests that the kernel supports become the text of a
 * kernel filter. Other tests count as true in the kernel filter, such as tests of PID (the kernel's record has no PID),
 * regular expressions and tests of times. A filter with such a test also needs an evaluation by nlkernel for each
 * event. Not thread-safe.
 */
#ifndef NLKERNEL_PUSHDOWN_H
#define NLKERNEL_PUSHDOWN_H

#include "events.h"

/*
 * Sets the event's kernel_filter and evaluate members. Returns false if no record of this event can match. `host` is
 * the value of HOST in the records.
 */
bool pushdown(kernel_event *event, const nl_filter *filter, nl_string host);

#endif
