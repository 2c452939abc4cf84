/*
 * Writes the time index of a file while the file is written (reader/time_index.h, netlogd(8), FILES).
 *
 * The index gets an entry after each piece of the file, and when the file is closed. Writing to the file neither waits
 * for the index nor fails because of it. A kill loses at most the entry of the current piece, and file_index_open
 * writes that entry again. Another thread creates the value index from the pieces of the time index (value_thread.h).
 * Only the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_FILE_INDEX_H
#define NETLOGD_OUTPUT_FILE_INDEX_H

#include "file.h"
#include "reader/time_index.h"
#include "value_file.h"

enum { FILE_INDEX_MIN = 64 << 10 /* in bytes; smaller files get no index */ };

typedef struct file_index file_index;

/* Returns the name of a file's index. The caller frees it. */
char *file_index_name(const char *path);

/*
 * Continues or begins the index of an open file. Returns NULL if the file is not a regular file; the functions below
 * accept NULL. If a short part of the file is missing from the index, reads this part. A longer part gets an entry with
 * unknown times. `format` is the format of the records that netlogd appends. `choice` has the fields of the value
 * index.
 */
file_index *file_index_open(const output_file *file, nl_format format, const value_choice *choice);

/* Adds `written` bytes, which were appended to the file. `size` is the new size of the file. `times` contains the
 * times of all records since the last call with times, or is NULL if the file does not end with a whole record. */
void file_index_wrote(file_index *x, size_t written, uint64_t size, const nl_time_piece *times);

/* Writes the entry of the last piece, and frees the index. */
void file_index_close(file_index *x);

/* Completes the indexes of a file to which no process writes. */
void file_index_complete(const char *path, const value_choice *choice);

/*
 * Compares the time index of a file with the file, verifies the checksums of its value index, and prints the
 * differences. FILE_INDEX_BEHIND, which is not an error, means that the time index does not cover the whole file, or
 * that the file was changed later.
 */
typedef enum file_index_state {
    FILE_INDEX_NONE,
    FILE_INDEX_SOUND,
    FILE_INDEX_BEHIND,
    FILE_INDEX_DAMAGED
} file_index_state;
file_index_state file_index_verify(const char *path);

/*
 * Creates the indexes of a file to which no process writes. Writes them under other names and then renames them. If the
 * file has a value index, creates a new value index with the same fields. If these fields cannot be read, uses the
 * fields of index=auto. On failure, reports the error and returns false.
 */
bool file_index_rebuild(const char *path);

#endif
