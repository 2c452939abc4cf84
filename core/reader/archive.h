/*
 * A log as a file that stays: whether its end is whole.
 *
 * Whoever writes a log may be killed in the middle of a record. What is there up to its last whole record (a line, a
 * block of the binary format, a frame of a compressed file) is good; who goes on with the file cuts the rest off first,
 * or the next record would be part of the damage.
 */
#ifndef NETLOGGER_READER_ARCHIVE_H
#define NETLOGGER_READER_ARCHIVE_H

#include <netlogger.h>

/*
 * How many bytes of the file at path, which nobody is changing, end with its last whole record (*whole), of how many
 * there are (*size). Both are the same where the file is sound, empty, no plain one, or such that its end can't be
 * told. Of text the end is looked at; of blocks every header is, and the last block's checksum. NL_OK; NL_FAILED with
 * the reason in nl_error_message() when it can't be read. Any thread.
 */
nl_status nl_archive_find_end(const char *path, uint64_t *size, uint64_t *whole);

#endif
