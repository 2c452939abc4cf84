/*
 * A file that takes its place only when all of it is there, be it in another one's stead. Until then it has no name,
 * where the file system can have such files: whatever becomes of the process, nothing is left behind. All functions
 * that fail leave the reason in errno. For one thread at a time.
 */
#ifndef NETLOGGER_BASE_REPLACEMENT_H
#define NETLOGGER_BASE_REPLACEMENT_H

#include <stdbool.h>

typedef struct nl_replacement {
    int fd;     /* to write into; it is closed by who opened it */
    char *path; /* the place it is to take; NULL when it is written in place, or not open */
    char *name; /* its own until it is there; NULL while it has none */
} nl_replacement;

/*
 * Opens one that is to take the place of path. A symbolic link stays one, unless it leads nowhere: what it names is
 * replaced; a device or a pipe is written as it is. The new file is open to the same users as the one before, and to no
 * others: it gets its owner and group where we may give it away and nobody else can have laid that there; otherwise no
 * more is allowed than both allow. False: there is nothing to free.
 */
bool nl_replacement_open(nl_replacement *r, const char *path);

/* Puts it in its place, and on the disk, while fd is open. */
bool nl_replacement_keep(nl_replacement *r);

/* Removes it if it is not in its place. fd stays open. */
void nl_replacement_free(nl_replacement *r);

#endif
