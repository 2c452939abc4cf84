/* Translates the part of a filter expression that a database can evaluate. Thread-safe. */
#ifndef NLTOOLS_ARCHIVE_PUSHDOWN_H
#define NLTOOLS_ARCHIVE_PUSHDOWN_H

#include <netlogger.h>

/*
 * Appends " AND condition" for each term of a conjunction that compares the time, or that compares the host, program or
 * event with a text. The caller must still apply the whole expression to the result.
 */
void pushdown(const nl_filter *filter, nl_buffer *sql);

#endif
