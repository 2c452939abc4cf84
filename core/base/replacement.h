/*
 * A new file that is not visible at its path until it is complete. The new file then replaces an older file at the
 * path. If the file system supports files without names, the incomplete file has no name, so that nothing remains if
 * the process is killed. Functions that fail set errno. Only one thread at a time may use a replacement.
 */
#ifndef NETLOGGER_BASE_REPLACEMENT_H
#define NETLOGGER_BASE_REPLACEMENT_H

#include <stdbool.h>

typedef struct nl_replacement {
    int fd;     /* descriptor of the file; the caller writes to it and closes it */
    char *path; /* the final path; NULL for a file that is written in place, or is not open */
    char *name; /* the temporary path; NULL while the file has no name */
} nl_replacement;

/*
 * Opens a replacement for path. If path is a symbolic link to a file, that file is replaced. A device or pipe is
 * written in place. The new file gets the mode, owner and group of the old file. There are two exceptions: this process
 * is not permitted to set the owner, or another user may have created the old file. The new file then gets only the
 * permissions that both the old file and the usual mode of a new file have. Returns false on failure; then there is
 * nothing to free.
 */
bool nl_replacement_open(nl_replacement *r, const char *path);

/*
 * Syncs the file to disk and renames it to its path. Does nothing for a file that is written in place. fd must be open.
 * Returns false on failure.
 */
bool nl_replacement_keep(nl_replacement *r);

/* Removes the file unless nl_replacement_keep succeeded. Does not close fd. */
void nl_replacement_free(nl_replacement *r);

#endif
