/*
 * Where bytes come from: a file, a pipe, standard input, memory, a collector; zstd-compressed or not; to its end, or
 * followed as it grows. One thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_SOURCE_H
#define NETLOGGER_TRANSPORT_SOURCE_H

#include <netlogger.h>

typedef struct nl_source nl_source;

/*
 * Opens what url names, follow and nonblocking as nl_reader_options has them. A followed file need not be there yet.
 * NULL with the reason in nl_error_message().
 */
nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking);
void nl_source_close(nl_source *source);

/*
 * Gives the next bytes, decompressed: *data and *size (never 0) on NL_OK, the source's own until the next call.
 * NL_AGAIN: followed, and there is nothing now. NL_END: the end, or, when followed, the end of a file that has been
 * replaced or truncated: calling again gives the new one from its start. NL_FAILED: reading or decompressing failed.
 */
nl_status nl_source_read(nl_source *source, const char **data, size_t *size);

/* Whether NL_END means that the file was replaced and more will come. */
bool nl_source_was_replaced(const nl_source *source);

/* Waits until there may be more to read, at most timeout_ms. */
void nl_source_wait(nl_source *source, int timeout_ms);

/* The size of a plain file, 0 when not known, and how many bytes of it were read. */
uint64_t nl_source_size(const nl_source *source);
uint64_t nl_source_position(const nl_source *source);

/* The descriptor of a plain file of which nothing was read yet; -1 of anything else. Belongs to the source. */
int nl_source_unread_file(const nl_source *source);

/* Has reading begin at that offset of such a file. */
nl_status nl_source_begin_at(nl_source *source, uint64_t offset);

#endif
