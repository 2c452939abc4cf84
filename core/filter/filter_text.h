/* The text of a filter. Any thread. */
#ifndef NETLOGGER_FILTER_FILTER_TEXT_H
#define NETLOGGER_FILTER_FILTER_TEXT_H

#include <netlogger.h>

/*
 * Returns the expression in canonical form, which compiles to an equal filter. The form has uniform blanks,
 * parentheses, operators, times, levels and quotes; the order is unchanged. It belongs to the filter.
 */
const char *nl_filter_text(const nl_filter *filter);

#endif
