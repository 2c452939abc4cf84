/* The text of a filter. Any thread. */
#ifndef NETLOGGER_FILTER_FILTER_TEXT_H
#define NETLOGGER_FILTER_FILTER_TEXT_H

#include <netlogger.h>

/*
 * The expression in canonical form: compiled, it gives an equal filter of the same text. Blanks, parentheses, spelling
 * of operators, times, levels and quotes are made alike; nothing is reordered. Belongs to filter.
 */
const char *nl_filter_text(const nl_filter *filter);

#endif
