/*
 * Writes records to a destination.
 *
 * A writer encodes records, buffers them and passes whole records to the destination. The writer does not change the
 * bytes of a record that was read from text of the writer's format, with the exceptions that record/encoder.h lists. A
 * writer produces blocks of about 64 KiB, or smaller blocks if buffer_size is smaller or nl_writer_flush is called.
 * Only one thread at a time may use a writer.
 */
#ifndef NETLOGGER_TRANSPORT_WRITER_H
#define NETLOGGER_TRANSPORT_WRITER_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_writer nl_writer;

typedef struct nl_writer_options {
    nl_format format;   /* NL_FORMAT_UNKNOWN selects nlb for collectors, the format of a file's suffix, or otherwise
                         * ULM */
    size_t buffer_size; /* number of bytes to collect before writing; 0 means that each record is written at once */
    bool canonical;     /* encode every record again, so that equal records have equal bytes */
    bool truncate;      /* for files: truncate instead of appending */
    bool atomic;        /* for files: write to a temporary file, which nl_writer_close renames; on failure, the old file
                         * stays */
    int zstd_level;     /* for nlb: 1 to 19; 0 means level 1 for files, and no compression otherwise. A negative value
                         * disables compression */
    int timeout_ms; /* for collectors: maximum time of a write, including connecting and acknowledgement; 0 means 10 s
                     */
} nl_writer_options;

/*
 * Opens a URL; `options` may be NULL. Returns NULL on failure. The caller closes the writer with nl_writer_close or
 * nl_writer_discard.
 */
nl_writer *nl_writer_open(const char *url, const nl_writer_options *options);

/* Returns the format of the records that the writer writes. */
nl_format nl_writer_get_format(const nl_writer *writer);

/* Writes a record to the buffer, or also to the destination if the buffer is full. Returns NL_OK or NL_FAILED. */
nl_status nl_writer_put(nl_writer *writer, const nl_record *record);

/* Like nl_writer_put, for a moved record (record/block_move.h). The writer's format must be nlb. */
struct nl_block_shapes;
nl_status nl_writer_put_moved(nl_writer *writer, struct nl_block_shapes *shapes, nl_string moved, int64_t time_ns);

/*
 * Writes size bytes of lines, which must be whole records in the writer's text format. Returns the same
 * values as nl_writer_put.
 */
nl_status nl_writer_put_text(nl_writer *writer, const char *lines, size_t size);

/*
 * Writes the whole blocks in data[0..size), and sets *taken to their size. The writer's format must be nlb. Returns the
 * same values as nl_writer_put. If the destination is a collector, NL_OK from nl_writer_flush means that the collector
 * has acknowledged the blocks. After NL_FAILED, unacknowledged blocks are sent again.
 */
nl_status nl_writer_put_blocks(nl_writer *writer, const char *data, size_t size, size_t *taken);

/* Passes all buffered records to the destination. On NL_FAILED, records that were not written stay buffered. */
nl_status nl_writer_flush(nl_writer *writer);

/*
 * Flushes and closes the writer, and always frees it. Returns NL_FAILED if the last bytes could not be written; an
 * atomic writer then keeps the old file.
 */
nl_status nl_writer_close(nl_writer *writer);

/* Closes the writer without flushing; an atomic writer keeps the old file. Closing NULL has no effect. */
void nl_writer_discard(nl_writer *writer);

/* ---- options, for logs and nlwrite ---- */

/* Rows for nl_writer_options. */
extern const nl_option nl_writer_rows[];

/*
 * Returns the format that a URL selects. This is the format in the URL's format= option. Without this option, it is nlb
 * for a collector, or the format that a file's suffix implies. Returns NL_FORMAT_UNKNOWN if the URL does not select a
 * format.
 */
nl_format nl_writer_url_format(const nl_url *url);

/* If options->format is unknown, sets it to the format that the URL selects, or to ULM. */
void nl_writer_options_settle(nl_writer_options *options, const nl_url *url);

#endif
