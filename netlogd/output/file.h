/*
 * The file that is written now: standard output, one file, or one of numbered files.
 *
 * Bytes come in batches of whole records; a plain file in which a batch does not fit is cut back to where it ended
 * before, so that what is there is always whole batches.
 */
#ifndef NETLOGD_OUTPUT_FILE_H
#define NETLOGD_OUTPUT_FILE_H

#include "options.h"

enum { OUTPUT_FILE_LONGEST = 256 << 20 }; /* bytes of a record that is read back from one, whatever was allowed then */

typedef struct output_file {
    int fd;
    bool plain;        /* a regular file: has a size and can be cut */
    char *name;        /* for messages, and of what is open */
    uint64_t number;   /* of numbered files; else 0 */
    uint64_t inode;    /* of a plain one */
    uint64_t size;     /* of a plain one, bytes */
    int64_t opened_ns; /* by the monotonic clock */
} output_file;

/* The name of the file of that number, for free(). */
char *output_file_name(const output_options *options, uint64_t number);

/* The name of a file beside the log files, such as the journal: their common name and a suffix. For free(). NULL:
 * standard output has none. */
char *output_file_name_beside(const output_options *options, const char *suffix);

/* The highest number of the files that are there, 0 when there are none. */
nl_status output_file_highest(const output_options *options, uint64_t *number);

/* The numbers above that of the files that are there, rising; to be freed, NULL when there are none. */
nl_status output_file_list(const output_options *options, uint64_t above, uint64_t **numbers, size_t *count);

/* Numbers of files in rising order. */
void output_file_sort(uint64_t *numbers, size_t count);

/* Removes those of lower numbers. */
void output_file_remove_below(const output_options *options, uint64_t number);

/*
 * Sees to it that nobody else writes the latest of the files that are there, as whoever has one open that is plain
 * locks it (flock). *claim becomes a descriptor, to be closed before it is opened; -1 when there is none. NL_FAILED:
 * somebody does, and nl_error_message() says who.
 */
nl_status output_file_claim(const output_options *options, int *claim);

/* Locks a file that is open until it is closed; where files cannot be locked they are not. NL_FAILED: somebody else
 * writes it, and nl_error_message() says who. */
nl_status output_file_lock(int fd, const char *name);

/* Opens the file of that number, to append to it, and locks it; fresh: it must not be there. *file is as it was on
 * NL_FAILED, else what it had open is closed. {.fd = -1} has nothing open. */
nl_status output_file_open(output_file *file, const output_options *options, uint64_t number, bool fresh);

/* Appends data. On NL_FAILED *written bytes of it are there nevertheless: none, where the file can be cut back. */
nl_status output_file_write(output_file *file, const char *data, size_t size, size_t *written);

/* Whether it has no name any more. */
bool output_file_is_removed(const output_file *file);

/* Waits until the disk has what was written. */
nl_status output_file_sync(output_file *file);

/* Waits until the disk has the names in a path's folder. */
void output_file_sync_folder(const char *path);

nl_status output_file_close(output_file *file);

#endif
