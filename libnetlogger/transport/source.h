/*
 * Where bytes come from (netlogger/source.h), and what only the library asks of it. One thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_SOURCE_H
#define NETLOGGER_TRANSPORT_SOURCE_H

#include <netlogger.h>

/* Whether NL_END means that the file was replaced and more will come. */
bool nl_source_was_replaced(const nl_source *source);

/* Waits until there may be more to read, at most timeout_ms. */
void nl_source_wait(nl_source *source, int timeout_ms);

/* The descriptor of a plain file of which nothing was read yet; -1 of anything else. Belongs to the source. */
int nl_source_unread_file(const nl_source *source);

/* Has reading begin at that offset of such a file. */
nl_status nl_source_begin_at(nl_source *source, uint64_t offset);

#endif
