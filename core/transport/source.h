/*
 * Bytes from a source, for programs that read what no decoder (decoder.h) knows.
 *
 * A source is a file, a pipe, standard input, memory or a collector (url.h); zstd-compressed bytes come out
 * decompressed. One source is for one thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_SOURCE_H
#define NETLOGGER_TRANSPORT_SOURCE_H

#include "transport/url.h"

typedef struct nl_source nl_source;

/*
 * Opens what url names. follow: at the end more may come, as with nl_reader_options; a followed file need not be there
 * yet. nonblocking: with a pipe or a collector never wait. url need not outlive the call. NULL with the reason in
 * nl_error_message(). Closed with nl_source_close, to which NULL may be given.
 */
nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking);
void nl_source_close(nl_source *source);

/*
 * Gives the next bytes, decompressed: *data and *size (never 0) on NL_OK, the source's own until the next call.
 * NL_AGAIN: followed or nonblocking, and there is nothing now. NL_END: the end, or, when followed, the end of a file
 * that has been replaced or truncated: calling again gives the new one from its start. NL_FAILED: reading or
 * decompressing failed.
 */
nl_status nl_source_read(nl_source *source, const char **data, size_t *size);

/*
 * A step between the stored bytes and those that nl_source_read gives, such as decompression. read is as
 * nl_source_read; it gets the bytes that it works on by nl_source_read_below. NL_END of these may mean that the file
 * was replaced (nl_source_was_replaced): then the step begins again.
 */
typedef struct nl_source_layer {
    nl_status (*read)(struct nl_source_layer *layer, nl_source *source, const char **data, size_t *size);
    void (*close)(struct nl_source_layer *layer);
    struct nl_source_layer *below; /* NULL: the stored bytes. Set by nl_source_add_layer */
} nl_source_layer;

/* Adds a step above those that are there; the source closes it. A source with layers is no plain file any more. */
void nl_source_add_layer(nl_source *source, nl_source_layer *layer);
nl_status nl_source_read_below(nl_source *source, const nl_source_layer *layer, const char **data, size_t *size);

/* The size of a plain file as it is stored, 0 when not known, and how many bytes of it were read. */
uint64_t nl_source_size(const nl_source *source);
uint64_t nl_source_position(const nl_source *source);

/* Whether NL_END means that the file was replaced and more will come. */
bool nl_source_was_replaced(const nl_source *source);

/* Waits until there may be more to read, at most timeout_ms. */
void nl_source_wait(nl_source *source, int timeout_ms);

/* The descriptor of a plain file without layers; -1 of anything else. Belongs to the source. */
int nl_source_file(const nl_source *source);

/* The path of a source that is a file with a name, without layers; NULL of anything else. Belongs to the source. */
const char *nl_source_path(const nl_source *source);

/*
 * Has reading go on at offset from of a plain file, where a whole record begins, and end (NL_END) at to, where one
 * ends; UINT64_MAX: where the file does. At NL_END it may be called again. When the file is replaced or truncated it is
 * forgotten.
 */
nl_status nl_source_take_range(nl_source *source, uint64_t from, uint64_t to);

#endif
