/*
 * A source of bytes, which is a file, a pipe, standard input, memory or a collector. The source decompresses zstd data.
 * Only one thread at a time may use a source.
 */
#ifndef NETLOGGER_TRANSPORT_SOURCE_H
#define NETLOGGER_TRANSPORT_SOURCE_H

#include "transport/url.h"

typedef struct nl_source nl_source;

/*
 * Opens a URL. `follow` has the same meaning as in nl_reader_options; if it is true, a file need not exist yet. If
 * nonblocking is true, reading never waits for pipes and collectors. Returns NULL on failure. The caller closes the
 * source; closing NULL has no effect.
 */
nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking);
void nl_source_close(nl_source *source);

/* Sets the maximum number of stored bytes to read at a time. The source keeps a buffer of this size. */
void nl_source_set_read_size(nl_source *source, size_t size);

/*
 * Returns NL_OK and the next bytes (at least one), decompressed; the bytes are valid until the next call. Returns
 * NL_AGAIN if a followed or non-blocking source has no bytes now, NL_END at the end, and NL_FAILED if reading or
 * decompressing failed. If a followed file was replaced or truncated, the call after NL_END reads the new file.
 */
nl_status nl_source_read(nl_source *source, const char **data, size_t *size);

/*
 * A step between the stored bytes and nl_source_read, such as decompression. read must behave like nl_source_read, and
 * reads its input with nl_source_read_below. If nl_source_read_below returns NL_END because the file was replaced
 * (nl_source_was_replaced), the step starts again.
 */
typedef struct nl_source_layer {
    nl_status (*read)(struct nl_source_layer *layer, nl_source *source, const char **data, size_t *size);
    void (*close)(struct nl_source_layer *layer);
    struct nl_source_layer *below; /* set by nl_source_add_layer; NULL means the stored bytes */
} nl_source_layer;

/*
 * Adds a layer above the existing layers. The source then owns and closes the layer. A source with layers no longer
 * counts as a regular file.
 */
void nl_source_add_layer(nl_source *source, nl_source_layer *layer);

/* Like nl_source_read, but reads the bytes below a layer. */
nl_status nl_source_read_below(nl_source *source, const nl_source_layer *layer, const char **data, size_t *size);

/*
 * Return the stored size of a regular file or memory (0 for other sources), and the offset of the next stored byte to
 * read, both in bytes.
 */
uint64_t nl_source_size(const nl_source *source);
uint64_t nl_source_position(const nl_source *source);

/* Returns whether the latest NL_END means that the file was replaced, so that more bytes will follow. */
bool nl_source_was_replaced(const nl_source *source);

/* Waits at most timeout_ms milliseconds until there may be more to read. May return earlier. */
void nl_source_wait(nl_source *source, int timeout_ms);

/* Returns the descriptor of a regular file without layers, otherwise -1. The source owns the descriptor. */
int nl_source_file(const nl_source *source);

/* Returns the path of a regular file without layers, otherwise NULL. The source owns the path. */
const char *nl_source_path(const nl_source *source);

/*
 * Makes reads of a regular file continue at the offset `from`, and return NL_END at the offset `to`. A record must
 * begin at `from`, and a record must end at `to`. If `to` is UINT64_MAX, reading continues to the end of the file. The
 * function may be called again after NL_END. If the file is replaced, the range no longer applies. Returns NL_OK or
 * NL_FAILED.
 */
nl_status nl_source_take_range(nl_source *source, uint64_t from, uint64_t to);

#endif
