/*
 * The index by time of a file while it is written (reader/time_index.h, doc/time-index.md).
 *
 * An entry is appended for each piece when that is in the file, and one for the rest when the file is closed. Nothing
 * waits for the index, and nothing fails because of it: where it cannot be written the file is read without, and a
 * kill costs at most the piece that was being written, which whoever goes on with the file looks at then. One thread.
 */
#ifndef NETLOGD_OUTPUT_FILE_INDEX_H
#define NETLOGD_OUTPUT_FILE_INDEX_H

#include "file.h"
#include "reader/time_index.h"

enum { FILE_INDEX_MIN = 64 << 10 /* bytes of a file; a smaller one gets no index */ };

typedef struct file_index file_index;

/* The name of a file's index. The caller's, for free(). */
char *file_index_name(const char *path);

/* Goes on with the index of a plain file that was opened, or begins one; NULL, which all below take, of another. What
 * is in the file and not in the index is looked at if it is not much, and otherwise said to be of any time. */
file_index *file_index_open(const output_file *file);

/* So many bytes were appended to the file, which has that size now. With times: behind them a record ends, and those
 * are the times of all records since it was called so before. */
void file_index_wrote(file_index *x, size_t written, uint64_t size, const nl_time_piece *times);

/* Writes what there is of the last piece, and frees it. */
void file_index_close(file_index *x);

/* Finishes the index of a file that nobody writes any more, as file_index_open and file_index_close would. */
void file_index_complete(const char *path);

/*
 * Compares the index of a file with what is in it; what is wrong with it is printed. FILE_INDEX_BEHIND: it does not
 * tell of all, which is no damage.
 */
typedef enum file_index_state {
    FILE_INDEX_NONE,
    FILE_INDEX_SOUND,
    FILE_INDEX_BEHIND,
    FILE_INDEX_DAMAGED
} file_index_state;
file_index_state file_index_verify(const char *path);

/* Makes it anew of what is in the file, which nobody writes: beside it, then it takes its name. False after having said
 * on standard error why not. */
bool file_index_rebuild(const char *path);

#endif
