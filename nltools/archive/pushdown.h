/* The part of an expression that a database can evaluate. Any thread. */
#ifndef NLTOOLS_ARCHIVE_PUSHDOWN_H
#define NLTOOLS_ARCHIVE_PUSHDOWN_H

#include <netlogger.h>

/*
 * Appends " AND condition" for each term of a conjunction that compares the time, or compares host, prog or event with
 * a text. The caller evaluates the whole expression on the result.
 */
void pushdown(const nl_filter *filter, nl_buffer *sql);

#endif
