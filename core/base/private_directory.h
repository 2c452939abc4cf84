/*
 * Checks directories whose content a process trusts. A user who can write to a directory can replace the files in it,
 * or make the directory's owner write through symbolic links.
 */
#ifndef NETLOGGER_BASE_PRIVATE_DIRECTORY_H
#define NETLOGGER_BASE_PRIVATE_DIRECTORY_H

#include "base/error.h"

#include <sys/stat.h>
#include <unistd.h>

/*
 * Checks that only this process's user and root can change the directory that status describes. The message contains
 * `path`. If shared is true, the directory may also belong to root, or be writable by all users if it has the sticky
 * bit, like /tmp. Returns NL_FAILED and sets NL_ERROR_PERMISSION if another user can change the directory.
 */
static inline nl_status nl_private_directory_check(const char *path, const struct stat *status, bool shared)
{
    uid_t own = geteuid();
    if (status->st_uid != own && !(shared && status->st_uid == 0))
        return nl_error_set(NL_ERROR_PERMISSION, "%s belongs to user ID %u, not to user ID %u; use another directory",
                            path, (unsigned)status->st_uid, (unsigned)own);
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(shared && (status->st_mode & S_ISVTX) != 0))
        return nl_error_set(NL_ERROR_PERMISSION,
                            "other users can write to %s, which belongs to user ID %u; run chmod go-w", path,
                            (unsigned)status->st_uid);
    return NL_OK;
}

/*
 * Checks the directory at a path like nl_private_directory_check. If the path is a symbolic link, the link must belong
 * to this process's user or to root, because the link's owner could replace it.
 */
static inline nl_status nl_private_directory_check_path(const char *path, bool shared)
{
    struct stat status;
    if (lstat(path, &status) != 0 ||
        (S_ISLNK(status.st_mode) && (status.st_uid == geteuid() || status.st_uid == 0) && stat(path, &status) != 0))
        return nl_error_set_errno("open %s", path);
    return nl_private_directory_check(path, &status, shared);
}

#endif
