/* Bytes from a file, a pipe, standard input, memory or a collector, with zstd decompressed. One thread at a time. */
#ifndef NETLOGGER_TRANSPORT_SOURCE_H
#define NETLOGGER_TRANSPORT_SOURCE_H

#include "transport/url.h"

typedef struct nl_source nl_source;

/*
 * Opens a URL. follow: as in nl_reader_options; a file need not exist yet. nonblocking: never wait for pipes and
 * collectors. Returns NULL on failure. The caller closes the source; NULL is allowed.
 */
nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking);
void nl_source_close(nl_source *source);

/*
 * Returns NL_OK and the next bytes (at least one), decompressed, valid until the next call. NL_AGAIN: nothing now
 * (followed or nonblocking). NL_END: the end; for a followed file that was replaced or truncated, the next call reads
 * the new file. NL_FAILED: reading or decompressing failed.
 */
nl_status nl_source_read(nl_source *source, const char **data, size_t *size);

/*
 * A step between the stored bytes and nl_source_read, such as decompression. read has the contract of nl_source_read
 * and reads its input with nl_source_read_below. If that returns NL_END because the file was replaced
 * (nl_source_was_replaced), the step starts again.
 */
typedef struct nl_source_layer {
    nl_status (*read)(struct nl_source_layer *layer, nl_source *source, const char **data, size_t *size);
    void (*close)(struct nl_source_layer *layer);
    struct nl_source_layer *below; /* set by nl_source_add_layer; NULL: the stored bytes */
} nl_source_layer;

/* Adds a step above the others; the source closes it. A source with layers no longer counts as a regular file. */
void nl_source_add_layer(nl_source *source, nl_source_layer *layer);
nl_status nl_source_read_below(nl_source *source, const nl_source_layer *layer, const char **data, size_t *size);

/* Return the stored size of a regular file (otherwise 0), and the number of bytes read so far. */
uint64_t nl_source_size(const nl_source *source);
uint64_t nl_source_position(const nl_source *source);

/* Returns whether NL_END means that the file was replaced and more will come. */
bool nl_source_was_replaced(const nl_source *source);

/* Waits until there may be more to read, at most timeout_ms. */
void nl_source_wait(nl_source *source, int timeout_ms);

/* Returns the descriptor of a regular file without layers, otherwise -1. It belongs to the source. */
int nl_source_file(const nl_source *source);

/* Returns the path of a regular file without layers, otherwise NULL. It belongs to the source. */
const char *nl_source_path(const nl_source *source);

/*
 * Continues at offset from of a regular file, at the start of a record, and returns NL_END at to, at the end of a
 * record; UINT64_MAX: at the file's end. May be called again at NL_END. A replacement of the file cancels it.
 */
nl_status nl_source_take_range(nl_source *source, uint64_t from, uint64_t to);

#endif
