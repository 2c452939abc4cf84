/*
 * Files and standard output. A plain file is appended to; when the disk fills up in the middle of a record the file is
 * cut back to the last whole one, so that what is there is always whole records.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/error.h"
#include "base/write_some.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_destination {
    nl_destination base;
    int fd;
    bool plain;      /* a regular file: can be cut back */
    char *path;      /* NULL for standard output */
    char *temporary; /* the name it has until it is closed, when atomic */
    bool nameless;   /* atomic, and without any name yet */
} file_destination;

static const char *name_of(const file_destination *file)
{
    return file->path != NULL ? file->path : "standard output";
}

static nl_status take_descriptor(file_destination *file, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return nl_error_set_errno("open %s", name_of(file));
    file->fd = fd;
    file->plain = S_ISREG(status.st_mode);
    return NL_OK;
}

/* A file without a name in the directory of path: whatever becomes of this process, nothing is left behind. -1 if there
 * is none. */
static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    NL_REQUIRE(directory != NULL, "out of memory");
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(directory);
    return fd;
}

/* A file to be renamed to path when it is complete; one with a name of its own where the file system has none without.
 */
static nl_status open_temporary(file_destination *file)
{
    int nameless = open_nameless(file->path);
    if (nameless >= 0) {
        file->nameless = true;
        return take_descriptor(file, nameless);
    }
    if (asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0)
        nl_abort_call(__func__, "out of memory");
    int fd = mkostemp(file->temporary, O_CLOEXEC);
    if (fd < 0) {
        nl_error_set_errno("open %s", file->path);
        free(file->temporary);
        file->temporary = NULL;
        return NL_FAILED;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    return take_descriptor(file, fd);
}

/*
 * Takes a descriptor of this process that its path names. It is not opened anew by that name: then what is written
 * through both would have two positions in one file, and overwrite each other.
 */
static nl_status take_own(file_destination *file, int own)
{
    int fd = (fcntl(own, F_GETFL) & O_ACCMODE) != O_RDONLY ? fcntl(own, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0)
        return nl_error_set("open %s: it is not open for writing", file->path);
    file->fd = fd;
    file->plain = false;
    return NL_OK;
}

static nl_status open_path(file_destination *file, bool truncate)
{
    int own = nl_path_descriptor(file->path);
    if (own >= 0)
        return take_own(file, own);
    int fd = open(file->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0), 0666);
    if (fd < 0)
        return nl_error_set_errno("open %s", file->path);
    return take_descriptor(file, fd);
}

/* After a failed write that got part of a record into a plain file: cuts that part off again. */
static void cut_back(file_destination *file, const char *data, size_t *written)
{
    size_t whole = nl_destination_whole(&file->base, data, *written);
    off_t end = lseek(file->fd, 0, SEEK_END);
    if (whole == *written || !file->plain || end < (off_t)(*written - whole))
        return;
    if (ftruncate(file->fd, end - (off_t)(*written - whole)) == 0)
        *written = whole;
}

static nl_status file_write(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written)
{
    (void)level;
    file_destination *file = (file_destination *)destination;
    if (file->fd < 0 && open_path(file, false) != NL_OK)
        return NL_FAILED;
    while (*written < size) {
        ssize_t put = nl_write_some(file->fd, data + *written, size - *written);
        if (put < 0) {
            int why = errno;
            cut_back(file, data, written);
            errno = why;
            return nl_error_set_errno("write %s", name_of(file));
        }
        *written += (size_t)put;
    }
    return NL_OK;
}

static int64_t file_size(nl_destination *destination)
{
    const file_destination *file = (file_destination *)destination;
    struct stat status;
    return file->plain && file->path != NULL && fstat(file->fd, &status) == 0 ? (int64_t)status.st_size : -1;
}

static nl_status file_reopen(nl_destination *destination)
{
    file_destination *file = (file_destination *)destination;
    if (file->path == NULL || file->temporary != NULL || file->nameless)
        return NL_OK;
    int before = file->fd;
    if (open_path(file, false) != NL_OK)
        return NL_FAILED; /* the old one stays in use */
    if (before >= 0)
        close(before);
    return NL_OK;
}

/*
 * Gives a nameless file its path, or, where another has that, a name beside it from where it can take its place. A kill
 * in between, the one moment in which something may be left behind, is as short as can be.
 */
static nl_status name_it(file_destination *file)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) == 0)
        return NL_OK;
    for (unsigned attempt = 0; errno == EEXIST && attempt < 100; attempt++) {
        if (asprintf(&file->temporary, "%s.%ld-%u", file->path, (long)getpid(), attempt) < 0)
            nl_abort_call(__func__, "out of memory");
        if (linkat(AT_FDCWD, self, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0)
            return NL_OK;
        free(file->temporary);
        file->temporary = NULL;
    }
    return nl_error_set_errno("write %s", file->path);
}

static nl_status put_in_place(file_destination *file)
{
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != EROFS)
        return nl_error_set_errno("write %s", file->path);
    if (file->nameless && name_it(file) != NL_OK)
        return NL_FAILED;
    if (file->temporary != NULL && rename(file->temporary, file->path) != 0)
        return nl_error_set_errno("rename to %s", file->path);
    return NL_OK;
}

static nl_status file_close(nl_destination *destination, bool keep)
{
    file_destination *file = (file_destination *)destination;
    nl_status status = NL_OK;
    bool atomic = file->temporary != NULL || file->nameless;
    if (atomic && keep)
        status = put_in_place(file);
    if (file->temporary != NULL && (!keep || status != NL_OK))
        unlink(file->temporary);
    if (file->path != NULL && file->fd >= 0 && close(file->fd) != 0 && status == NL_OK)
        status = nl_error_set_errno("close %s", file->path);
    free(file->temporary);
    free(file->path);
    free(file);
    return status;
}

static const nl_destination_kind file_kind = {
    .write = file_write, .size = file_size, .reopen = file_reopen, .close = file_close};

nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options)
{
    file_destination *file = calloc(1, sizeof *file);
    NL_REQUIRE(file != NULL, "out of memory");
    file->base.kind = &file_kind;
    file->fd = -1;
    nl_status status;
    if (url->scheme == NL_SCHEME_STDIO) {
        status = take_descriptor(file, STDOUT_FILENO);
    } else {
        file->path = strdup(url->path);
        NL_REQUIRE(file->path != NULL, "out of memory");
        struct stat old;
        /* A device, a pipe or a symbolic link is written to; replacing it by a file is hardly meant. */
        bool replace = options->atomic && (lstat(file->path, &old) != 0 || S_ISREG(old.st_mode));
        status = replace ? open_temporary(file) : open_path(file, options->truncate || options->atomic);
    }
    if (status == NL_OK)
        return &file->base;
    file_close(&file->base, false);
    return NULL;
}
