/* Unnamed temporary files, and directories for temporary files. Any thread may call these functions. */
#ifndef NETLOGGER_PROGRAM_TEMPORARY_FILE_H
#define NETLOGGER_PROGRAM_TEMPORARY_FILE_H

/*
 * Opens a file for reading and writing. The kernel deletes it when it is closed. If directory is NULL, the file is in
 * $TMPDIR, or in /var/tmp if TMPDIR is not set. Returns the descriptor, or -1 with the error set.
 */
int temporary_file_open(const char *directory);

/*
 * Creates a directory in $TMPDIR, or in `otherwise` if TMPDIR is not set. Returns its path, which the caller frees, or
 * NULL with the error set.
 */
char *temporary_directory_make(const char *otherwise);

#endif
