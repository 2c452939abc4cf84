/* Translates into SQL the part of a filter expression that a database can evaluate. Thread-safe. */
#ifndef NLTOOLS_ARCHIVE_PUSHDOWN_H
#define NLTOOLS_ARCHIVE_PUSHDOWN_H

#include <netlogger.h>

/*
 * Appends " AND condition" for some terms of a conjunction: comparisons of the time, and tests whether the host,
 * program or event equals a plain text, such as a name. Appends nothing if the expression contains || outside of
 * parentheses. The caller must still apply the whole expression to the records that the query returns.
 */
void pushdown(const nl_filter *filter, nl_buffer *sql);

#endif
