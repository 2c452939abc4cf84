/*
 * The file to which an output currently writes: standard output, a single file, or one of a series of numbered files.
 *
 * netlogd writes the file in batches of whole records. If there is no space for a batch, netlogd truncates a regular
 * file to the end of the previous batch. The caller owns the output_file. Only the server's thread may use an
 * output_file. The functions without an output_file parameter are thread-safe.
 */
#ifndef NETLOGD_OUTPUT_FILE_H
#define NETLOGD_OUTPUT_FILE_H

#include "options.h"

enum {
    OUTPUT_FILE_LONGEST = 256 << 20
}; /* maximum size in bytes of a record when a file is read again; independent of the limit for new records */

typedef struct output_file {
    int fd;
    bool plain;        /* a regular file */
    char *name;        /* name for messages */
    uint64_t number;   /* number of a numbered file; otherwise 0 */
    uint64_t inode;    /* inode of a regular file */
    uint64_t size;     /* size of a regular file in bytes */
    int64_t opened_ns; /* time of opening, on the monotonic clock */
} output_file;

/* Returns the name of the file with this number. The caller frees it. */
char *output_file_name(const output_options *options, uint64_t number);

/*
 * Returns the name of a file beside the log files, such as the journal. It consists of the log files' common name and a
 * suffix. The caller frees it. Returns NULL for standard output.
 */
char *output_file_name_beside(const output_options *options, const char *suffix);

/*
 * Sets *number to the highest number of an existing file, or to 0 if there is no file. Returns NL_FAILED if the
 * directory cannot be read.
 */
nl_status output_file_highest(const output_options *options, uint64_t *number);

/*
 * Lists the existing file numbers that are higher than `above`, in ascending order. The caller frees *numbers. Returns
 * NL_FAILED if the directory cannot be read.
 */
nl_status output_file_list(const output_options *options, uint64_t above, uint64_t **numbers, size_t *count);

/* Sorts numbers in ascending order. */
void output_file_sort(uint64_t *numbers, size_t count);

/* Removes the files whose numbers are lower than number. */
void output_file_remove_below(const output_options *options, uint64_t number);

/*
 * Locks the latest existing file. Sets *claim to a descriptor, which must be closed before that file is opened. Sets
 * *claim to -1 if the file does not exist, cannot be opened or is not a regular file. Returns NL_FAILED if another
 * process writes to the file.
 */
nl_status output_file_claim(const output_options *options, int *claim);

/*
 * Locks an open regular file until it is closed. Ignores other files, and file systems without locks. Returns NL_FAILED
 * if another process writes to the file; the error names that process.
 */
nl_status output_file_lock(int fd, const char *name);

/*
 * Opens the file with this number for appending, and locks it. If `fresh` is true, the file must not exist yet. Closes
 * the file that *file had open ({.fd = -1} means no file). On NL_FAILED, *file is unchanged.
 */
nl_status output_file_open(output_file *file, const output_options *options, uint64_t number, bool fresh);

/*
 * Appends data. On NL_FAILED, *written is the number of bytes of the data that remain in the file; it is 0 if the file
 * was truncated.
 */
nl_status output_file_write(output_file *file, const char *data, size_t size, size_t *written);

/* Returns whether the file was removed. */
bool output_file_is_removed(const output_file *file);

/* Waits until the data of the file is on the disk. On failure, sets the error and returns NL_FAILED. */
nl_status output_file_sync(output_file *file);

/* Waits until the file names in the directory of `path` are on the disk. */
void output_file_sync_directory(const char *path);

nl_status output_file_close(output_file *file);

#endif
