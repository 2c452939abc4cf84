/*
 * Finds the end of the last whole record in a log's file. A writer may be killed while it writes a record. The file is
 * valid up to its last whole record (a line, a block, or a zstd frame). A writer that continues the file first removes
 * the rest.
 */
#ifndef NETLOGGER_READER_ARCHIVE_H
#define NETLOGGER_READER_ARCHIVE_H

#include <netlogger.h>

/*
 * Sets *size to the size of the file at path, and *whole to the size up to the end of its last whole record, in bytes.
 * The sizes are equal if the file is empty or ends with a whole record, or if the end of its last whole record cannot
 * be determined. Both are 0 if the path is not that of a regular file. The file must not change during the call. If the
 * file contains text, checks only the end. If it contains blocks, checks all headers and the last block's checksum.
 * Returns NL_FAILED and sets the error if the file cannot be read. Any thread may call this function.
 */
nl_status nl_archive_find_end(const char *path, uint64_t *size, uint64_t *whole);

#endif
