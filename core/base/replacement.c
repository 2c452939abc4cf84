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

/* Returns the path of a file's directory, which the caller frees; NULL if memory runs out. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Returns whether other users can create files in a directory, or true if this is unknown. */
static bool others_can_write(const char *directory)
{
    struct stat status;
    return stat(directory, &status) != 0 || (status.st_mode & 022) != 0;
}

/* Sets r->name to a temporary name in the same directory. Returns false if memory runs out. */
static bool make_name(nl_replacement *r, int attempt)
{
    free(r->name);
    if (asprintf(&r->name, "%s.%ld-%d", r->path, (long)getpid(), attempt) >= 0)
        return true;
    r->name = NULL;
    return false;
}

/*
 * Opens a file with a temporary name, for file systems that do not support files without names. Returns false on
 * failure.
 */
static bool open_named(nl_replacement *r, mode_t mode)
{
    for (int i = 0; r->fd < 0 && i < ATTEMPTS && make_name(r, i); i++) {
        r->fd = open(r->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (r->fd < 0 && errno != EEXIST)
            break;
    }
    if (r->fd < 0) { /* a file with this name belongs to another process, so nl_replacement_free must not remove it */
        free(r->name);
        r->name = NULL;
    }
    return r->fd >= 0;
}

/*
 * Reads the umask from /proc, because umask(2) would change it. Returns false if the file in /proc does not contain the
 * umask.
 */
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

/*
 * Opens the new file with the permissions of mode that the umask allows. Applies the umask itself, because some kernels
 * ignore it for files without names. Returns false on failure.
 */
static bool open_new(nl_replacement *r, const char *directory, mode_t mode)
{
    mode_t mask = 0;
    if (access("/proc/self/fd", X_OK) == 0 /* name_it makes a link from this path */ && read_umask(&mask))
        r->fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (r->fd < 0)
        return open_named(r, mode);
    fchmod(r->fd, mode & ~mask);
    return true;
}

/* Opens the new file. `before` is the status of the file that will be replaced, or NULL. Returns false on failure. */
static bool open_aside(nl_replacement *r, const struct stat *before)
{
    char *directory = directory_of(r->path);
    /*
     * The new file is never more accessible than it will be at the end, because a user who opens it now can also read
     * what is written later.
     */
    bool good = directory != NULL && open_new(r, directory, before != NULL ? before->st_mode & 0606 : 0666);
    if (good && before != NULL && (before->st_uid == geteuid() || !others_can_write(directory)) &&
        fchown(r->fd, before->st_uid, before->st_gid) == 0)
        fchmod(r->fd, before->st_mode & 0777);
    free(directory);
    return good;
}

/*
 * Returns the file's path with symbolic links resolved; the caller frees it. Returns NULL and sets errno to EAGAIN if
 * the path now leads to another file, or if memory runs out.
 */
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
    bool is_there = stat(path, &before) == 0; /* the kernel may refuse to follow other users' links */
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
 * Links the file to its path, or to a temporary name if the path exists. A temporary file remains only if the process
 * is killed before the following rename. Returns false on failure.
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
    free(r->name);
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
