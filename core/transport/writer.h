/*
 * Records into a destination.
 *
 * A writer encodes records, buffers them and hands whole records to the destination, never part of one. A record that
 * was read from text of the writer's format goes out as the very bytes that came in, unless canonical is set; others
 * are encoded. The binary format's blocks hold many records, of at most 16 MiB each: a writer gathers a block of some
 * 64 KiB, or less when buffer_size is less or nl_writer_flush asks for it. The destination is named by a URL (url.h). A
 * writer is for one thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_WRITER_H
#define NETLOGGER_TRANSPORT_WRITER_H

#include <netlogger.h>

typedef struct nl_writer nl_writer;

typedef struct nl_writer_options {
    nl_format format;   /* NL_FORMAT_UNKNOWN: nlb into a file whose name ends in .nlb, else ULM */
    size_t buffer_size; /* bytes collected before they are written; 0: each record at once */
    bool canonical;     /* encode every record anew, so that equal records give equal bytes */
    bool truncate;      /* files: start anew; otherwise append */
    bool atomic;        /* files: write aside, take the name at nl_writer_close; on failure the old file stays */
    int zstd_level;     /* nlb: 1 to 19; negative: not compressed; 0: 1 into files, otherwise not compressed */
    int timeout_ms;     /* collectors: bound on connecting and on a blocked send; 0 means 10,000 */
} nl_writer_options;

/*
 * Opens url; options may be NULL for all defaults. NULL with the reason in nl_error_message() when it can't be opened.
 * Closed with nl_writer_close, to which NULL must not be given: what it returns is of a writer.
 */
nl_writer *nl_writer_open(const char *url, const nl_writer_options *options);

/* Writes a record, perhaps only into the buffer. NL_OK, or NL_FAILED with the reason in nl_error_message(). */
nl_status nl_writer_put(nl_writer *writer, const nl_record *record);

/*
 * Writes lines that are whole records in the writer's format already (size bytes that end in a newline), as they are.
 * The format is one of text. level is for syslog. Results as nl_writer_put.
 */
nl_status nl_writer_put_text(nl_writer *writer, nl_level level, const char *lines, size_t size);

/*
 * Writes blocks as they are: as many of data[0..size) as are whole, *taken bytes. The format is nlb.
 * Results as nl_writer_put; to a collector, NL_OK from nl_writer_flush means that it has acknowledged them, and
 * after NL_FAILED those that it has not are sent again.
 */
nl_status nl_writer_put_blocks(nl_writer *writer, const char *data, size_t size, size_t *taken);

/* Hands everything buffered to the destination. On NL_FAILED what was not written stays buffered. */
nl_status nl_writer_flush(nl_writer *writer);

/*
 * Flushes and closes; the writer is gone whatever it returns. NL_FAILED when the last bytes could not be written: an
 * atomic writer then leaves the old file as it was and removes its own.
 */
nl_status nl_writer_close(nl_writer *writer);

/* Closes without writing what is buffered; an atomic writer leaves the old file as it was. NULL is allowed. */
void nl_writer_discard(nl_writer *writer);

#endif
