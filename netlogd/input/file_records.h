/*
 * Converts the bytes of a followed file to records. Uses the importers of all formats (convert/convert.h), and the same
 * detection as all programs. A line that is malformed in the file's format becomes a record with the line in the field
 * MESSAGE, so that no line is lost. In a file in an unknown format, each line becomes such a record, and lines that
 * begin with a blank continue the previous line.
 *
 * file_inputs.c owns a file_reader for each file. The same bytes always become the same number of records. Only the
 * server's thread may call it.
 */
#ifndef NETLOGD_INPUT_FILE_RECORDS_H
#define NETLOGD_INPUT_FILE_RECORDS_H

#include "convert/convert.h"

enum { FILE_HEAD_SIZE = 64 << 10 }; /* maximum number of bytes that determine the format */

typedef struct file_reader file_reader;

/*
 * Creates a reader for a file with this name. `host` is the HOST of records without a host, and must outlive the
 * reader. `format` is a name from file_reader_format, or "?" to detect the format in `head`, the first bytes of the
 * file. If the file contains blocks, which file inputs do not read, sets the error and returns NULL.
 */
file_reader *file_reader_new(const char *path, const char *host, nl_fraction fraction, const char *format,
                             nl_string head);
void file_reader_free(file_reader *r); /* accepts NULL */

/* Returns the name of the format, without blanks. */
const char *file_reader_format(const file_reader *r);

/* Returns the size of the header at the beginning of the file. The header contains no records. */
size_t file_reader_header_size(const file_reader *r);

/*
 * Returns the size in bytes of the whole records at the beginning of `data`. If `idle` is true, the file has not grown
 * recently, and its last line has no continuation.
 */
size_t file_reader_cut(const file_reader *r, const char *data, size_t size, bool idle);

/* Converts bytes that contain whole records, and passes the records to an exporter. */
void file_reader_read(file_reader *r, const char *data, size_t size, exporter *to);

#endif
