/* What of a field expression a database can do: the rest is done with the records that it gives. */
#ifndef NLTOOLS_ARCHIVE_PUSHDOWN_H
#define NLTOOLS_ARCHIVE_PUSHDOWN_H

#include <netlogger.h>

/*
 * Appends " AND condition" for each part of the expression that all records it is true of fulfil and the database can
 * look at: its terms, joined by &&, that compare the time, or that say what host, prog or event is.
 */
void pushdown(const nl_filter *filter, nl_buffer *sql);

#endif
