/*
 * Directories whose content a process trusts. A user who can write to a directory can replace the files in it, or make
 * its owner write through symbolic links.
 */
#ifndef NETLOGGER_BASE_PRIVATE_DIRECTORY_H
#define NETLOGGER_BASE_PRIVATE_DIRECTORY_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Returns whether only this process's user (and root) can change the directory that status describes. Otherwise writes
 * the reason, which begins with path, to problem[0..size). A directory that holds private ones may be root's, or like
 * /tmp: writable by all, but with the sticky bit, so that nobody can replace another user's entries; set shared for it.
 */
static inline bool nl_private_directory_check(const char *path, const struct stat *status, bool shared, char *problem,
                                              size_t size)
{
    uid_t own = geteuid();
    if (status->st_uid != own && !(shared && status->st_uid == 0))
        snprintf(problem, size, "%s belongs to user ID %u, not to user ID %u; use another directory", path,
                 (unsigned)status->st_uid, (unsigned)own);
    else if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(shared && (status->st_mode & S_ISVTX) != 0))
        snprintf(problem, size, "other users can write to %s, which belongs to user ID %u; run chmod go-w", path,
                 (unsigned)status->st_uid);
    else
        return true;
    return false;
}

#endif
