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

/* The descriptor of a plain file; -1 of anything else. Belongs to the source. */
int nl_source_file(const nl_source *source);

/* The path of a source that is a file with a name; NULL of anything else. Belongs to the source. */
const char *nl_source_path(const nl_source *source);

/*
 * Has reading go on at offset from of a plain file, where a whole record begins, and end (NL_END) at to, where one
 * ends; UINT64_MAX: where the file does. At NL_END it may be called again. When the file is replaced or truncated it is
 * forgotten.
 */
nl_status nl_source_take_range(nl_source *source, uint64_t from, uint64_t to);

#endif
