/* Translates the part of a filter expression that a database can evaluate into SQL. Thread-safe. */
#ifndef NLTOOLS_ARCHIVE_PUSHDOWN_H
#define NLTOOLS_ARCHIVE_PUSHDOWN_H

#include <netlogger.h>

/*
 * Appends " AND condition" for each of the following terms of a conjunction: comparisons of the time, and comparisons
 * of the host, program or event with a text. The caller must still apply the whole expression to the result.
 */
void pushdown(const nl_filter *filter, nl_buffer *sql);

#endif
