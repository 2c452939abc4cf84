/*
 * Follows the log files that the settings name (--input file:PATTERN), through rotation by renaming, by copying and
 * truncating, and by compression.
 *
 *   file -> file_content -> file_reader -> numbered_input
 *
 * netlogd recognizes a file by its inode or, if the file was copied, by hashes of its content (file_content.h). netlogd
 * reads a renamed file to its end. If a file was truncated, netlogd searches the directory for a copy, and reads the
 * rest of the old content from the copy. position_log.h describes how each record is stored exactly once, even if
 * netlogd is killed at any moment.
 *
 * While the outputs cannot be written, netlogd does not read files. The module owns the list of files and the log of
 * positions. Only the server's thread may call this module.
 */
#ifndef NETLOGD_FILE_INPUTS_H
#define NETLOGD_FILE_INPUTS_H

#include "request.h"

/*
 * Begins to follow the files in the settings, if they name any. Ends the program if the log of positions cannot be
 * used.
 */
void file_inputs_start(void);

/* Called after the outputs have settled all records. */
void file_inputs_acknowledge(void);

/* Appends a record for each file to the reply to a request. */
void file_inputs_describe(request *r);

typedef struct file_inputs_counts {
    uint64_t records; /* number of records read since netlogd was started */
    uint64_t files;   /* number of known files, including finished files */
} file_inputs_counts;

file_inputs_counts file_inputs_count(void);

void file_inputs_free(void);

#endif
