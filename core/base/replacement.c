#include "config.h"

#include "base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };

/* The folder of a file; to be freed. NULL when there is no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Whether others may lay a file there, whose owner says nothing then. */
static bool may_others_lay_files(const char *folder)
{
    struct stat status;
    return stat(folder, &status) != 0 || (status.st_mode & 022) != 0;
}

/* A name beside the path. False when there is no memory. */
static bool make_name(nl_replacement *r, int attempt)
{
    free(r->name);
    if (asprintf(&r->name, "%s.%ld-%d", r->path, (long)getpid(), attempt) >= 0)
        return true;
    r->name = NULL;
    return false;
}

/* Where there is no file without a name, one with a name beside the path. */
static bool open_named(nl_replacement *r, mode_t mode)
{
    for (int i = 0; r->fd < 0 && i < ATTEMPTS && make_name(r, i); i++) {
        r->fd = open(r->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (r->fd < 0 && errno != EEXIST)
            break;
    }
    if (r->fd < 0) { /* what has that name is another's */
        free(r->name);
        r->name = NULL;
    }
    return r->fd >= 0;
}

/* What umask(2) says only who sets it. False where the kernel does not tell (before Linux 4.7, or without /proc). */
static bool read_umask(mode_t *mask)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[128];
    unsigned bits;
    bool found = false;
    while (status != NULL && !found && fgets(line, sizeof line, status) != NULL)
        found = sscanf(line, "Umask: %o", &bits) == 1;
    if (status != NULL)
        fclose(status);
    *mask = found ? (mode_t)bits : 0;
    return found;
}

/* mode: what it may be opened for, but for the umask. Some kernels leave that to us where a file has no name. */
static bool open_it(nl_replacement *r, const char *folder, mode_t mode)
{
    mode_t mask = 0;
    if (access("/proc/self/fd", X_OK) == 0 /* by which it gets its name */ && read_umask(&mask))
        r->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (r->fd < 0)
        return open_named(r, mode);
    fchmod(r->fd, mode & ~mask);
    return true;
}

/* before: what is replaced; NULL when nothing is there. */
static bool open_aside(nl_replacement *r, const struct stat *before)
{
    char *folder = folder_of(r->path);
    /* Never open to more than at last: who opens it meanwhile could read on. Its group is ours at first. */
    bool good = folder != NULL && open_it(r, folder, before != NULL ? before->st_mode & 0606 : 0666);
    if (good && before != NULL && (before->st_uid == geteuid() || !may_others_lay_files(folder)) &&
        fchown(r->fd, before->st_uid, before->st_gid) == 0)
        fchmod(r->fd, before->st_mode & 0777);
    free(folder);
    return good;
}

/* Where the file is that was found by path, past all links; NULL when another has come there since. To be freed. */
static char *replacement_place_of(const char *path, const struct stat *found)
{
    struct stat now;
    char *place = realpath(path, NULL);
    if (place == NULL)
        place = strdup(path);
    if (place != NULL && lstat(place, &now) == 0 && now.st_dev == found->st_dev && now.st_ino == found->st_ino)
        return place;
    free(place);
    errno = EAGAIN;
    return NULL;
}

bool nl_replacement_open(nl_replacement *r, const char *path)
{
    struct stat before;
    bool is_there = stat(path, &before) == 0; /* which refuses links that others laid, where the system does */
    *r = (nl_replacement){.fd = -1};
    if (!is_there && errno != ENOENT)
        return false;
    if (is_there && !S_ISREG(before.st_mode)) {
        r->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return r->fd >= 0;
    }
    r->path = is_there ? replacement_place_of(path, &before) : strdup(path);
    if (r->path != NULL && open_aside(r, is_there ? &before : NULL))
        return true;
    nl_replacement_free(r);
    return false;
}

/*
 * Gives it its place, or, where another has that, a name beside it from where it can take it. A kill in between, the
 * one moment in which something may be left behind, is as short as can be.
 */
static bool name_it(nl_replacement *r)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", r->fd);
    bool named = linkat(AT_FDCWD, self, AT_FDCWD, r->path, AT_SYMLINK_FOLLOW) == 0;
    if (named || errno != EEXIST)
        return named;
    for (int i = 0; !named && errno == EEXIST && i < ATTEMPTS && make_name(r, i); i++)
        named = linkat(AT_FDCWD, self, AT_FDCWD, r->name, AT_SYMLINK_FOLLOW) == 0;
    if (!named) {
        free(r->name);
        r->name = NULL;
    }
    return named;
}

bool nl_replacement_keep(nl_replacement *r)
{
    if (r->path == NULL)
        return true;
    if (fsync(r->fd) != 0 && errno != EINVAL && errno != EROFS)
        return false;
    if (r->name == NULL && !name_it(r))
        return false;
    if (r->name != NULL && rename(r->name, r->path) != 0)
        return false;
    free(r->name); /* it is another's from now on */
    r->name = NULL;
    return true;
}

void nl_replacement_free(nl_replacement *r)
{
    if (r->name != NULL)
        unlink(r->name);
    free(r->name);
    free(r->path);
    r->name = r->path = NULL;
}
