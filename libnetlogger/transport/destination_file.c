/*
 * Files and standard output. A plain file is appended to; when the disk fills up in the middle of a record the file is
 * cut back to the last whole one, so that what is there is always whole records. Into a pipe go whole records, as many
 * at a time as it takes in one piece, so that who is killed meanwhile leaves no part of one there; and who logs waits
 * for its reader only so long.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/monotonic.h"
#include "base/write_some.h"
#include "format/crc32c.h"
#include "transport/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_MS = 10000, LOOK_EVERY_MS = 10 };

typedef struct file_destination {
    nl_destination base;
    int fd;
    nl_identity identity; /* of fd */
    bool plain;           /* a regular file: can be cut back */
    bool patient;         /* others are waited for as long as it takes */
    int timeout_ms;       /* when not */
    size_t partial;       /* bytes of a record that went out before the others of it could ... */
    uint32_t partial_crc; /* ... and what they were */
    char *path;           /* NULL for standard output */
    char *temporary;      /* the name it has until it is closed, when atomic */
    bool nameless;        /* atomic, and without any name yet */
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
    file->identity = (nl_identity){status.st_dev, status.st_ino};
    file->plain = S_ISREG(status.st_mode);
    file->partial = 0;
    return NL_OK;
}

/* The folder of a file; to be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    NL_REQUIRE(folder != NULL, "out of memory");
    return folder;
}

/* A file without a name in the directory of path: whatever becomes of this process, nothing is left behind. -1 if there
 * is none. */
static int open_nameless(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(folder);
    return fd;
}

/* Whether others may lay a file there, whose owner says nothing then. */
static bool may_others_lay_files(const char *path)
{
    struct stat status;
    char *folder = folder_of(path);
    bool may = stat(folder, &status) != 0 || (status.st_mode & 022) != 0;
    free(folder);
    return may;
}

/*
 * A file that takes another one's place is open to the same users, and to no others: it gets the owner and group of the
 * one before where we may give it away and nobody else can have laid that there; otherwise no more than both allow.
 */
static void set_rights(const file_destination *file, int fd)
{
    struct stat before;
    mode_t mask = umask(0), mode = 0666 & ~mask;
    umask(mask);
    if (lstat(file->path, &before) == 0 && S_ISREG(before.st_mode)) {
        bool is_known = before.st_uid == geteuid() || !may_others_lay_files(file->path);
        bool is_same = is_known && fchown(fd, before.st_uid, before.st_gid) == 0;
        mode = is_same ? before.st_mode & 0777 : mode & before.st_mode & ~(mode_t)070;
    }
    fchmod(fd, mode);
}

/* A file to be renamed to path when it is complete; one with a name of its own where the file system has none without.
 */
static nl_status open_temporary(file_destination *file)
{
    int nameless = open_nameless(file->path);
    if (nameless >= 0) {
        file->nameless = true;
        set_rights(file, nameless);
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
    set_rights(file, fd);
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
    nl_status status = take_descriptor(file, fd);
    file->plain = false;
    return status;
}

static bool is_pipe(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Opens it without waiting for who would read it, if it is a pipe, longer than wait_ms. -1 with errno. */
static int open_soon(const char *path, int flags, int wait_ms)
{
    int64_t deadline_ns = nl_deadline_ns(wait_ms);
    int fd;
    while ((fd = open(path, flags | O_NONBLOCK, 0666)) < 0 &&
           (errno == EINTR || (errno == ENXIO && nl_monotonic_ns() < deadline_ns && is_pipe(path))))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000}, NULL);
    return fd;
}

/* wait_ms: for a reader, if it is a pipe; patient files wait as long as it takes. */
static nl_status open_path(file_destination *file, bool truncate, int wait_ms)
{
    int own = nl_path_descriptor(file->path);
    if (own >= 0)
        return take_own(file, own);
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0);
    int fd = file->patient ? open(file->path, flags, 0666) : open_soon(file->path, flags, wait_ms);
    if (fd < 0 && errno == ENXIO && is_pipe(file->path))
        return nl_error_set("open %s: nobody reads it", file->path);
    if (fd < 0)
        return nl_error_set_errno("open %s", file->path);
    return take_descriptor(file, fd);
}

/*
 * After a failed write that got part of a record into a plain file: cuts that part off again, unless another process
 * has written behind it meanwhile.
 */
static void cut_back(file_destination *file, const char *data, size_t *written)
{
    size_t whole = nl_destination_whole(&file->base, data, *written);
    off_t ours = lseek(file->fd, 0, SEEK_CUR); /* what was appended last ended there */
    struct stat status;
    if (whole == *written || !file->plain || ours < (off_t)(*written - whole) || fstat(file->fd, &status) != 0 ||
        status.st_size != ours)
        return;
    if (ftruncate(file->fd, ours - (off_t)(*written - whole)) == 0)
        *written = whole;
}

/* Sees to it that there is a descriptor, of this file. False with the reason. */
static bool is_open(file_destination *file)
{
    bool atomic = file->temporary != NULL || file->nameless;
    if (file->path == NULL)
        return true;
    if (file->fd >= 0 && !nl_identity_holds(&file->identity, file->fd)) {
        if (atomic)
            return nl_error_set("write %s: the program has closed it", file->path) == NL_OK;
        file->fd = -1; /* another's by now, or nobody's */
    }
    return file->fd >= 0 || open_path(file, false, 0) == NL_OK;
}

/* What is written to a pipe or its like at a time: whole records, as long as a single one is not too long for that. */
static size_t piece_of(const file_destination *file, const char *data, size_t size)
{
    if (size <= PIPE_BUF)
        return size;
    size_t whole = nl_destination_whole(&file->base, data, PIPE_BUF);
    return whole > 0 ? whole : PIPE_BUF;
}

/* Writes a piece when there is room for it. The bytes; -1 with errno, ETIMEDOUT when there was none until deadline_ns.
 */
static ssize_t put_piece(const file_destination *file, const char *data, size_t size, int64_t deadline_ns)
{
    for (;;) {
        int why = nl_wait_ready(file->fd, POLLOUT, deadline_ns);
        errno = why;
        ssize_t put = why == 0 ? write(file->fd, data, piece_of(file, data, size)) : -1;
        bool again = put < 0 && (errno == EINTR || errno == EAGAIN);
        if (!again)
            return put;
        if (nl_monotonic_ns() >= deadline_ns) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* Writes to what others read, at a pace of their own. */
static nl_status write_stream(file_destination *file, const char *data, size_t size, size_t *written)
{
    int64_t deadline_ns = nl_deadline_ns(file->timeout_ms);
    bool goes_on = file->partial <= size && nl_crc32c(0, data, file->partial) == file->partial_crc;
    size_t done = goes_on ? file->partial : 0;
    while (done < size) {
        ssize_t put = put_piece(file, data + done, size - done, deadline_ns);
        if (put >= 0) {
            done += (size_t)put;
            continue;
        }
        int why = errno;
        *written = nl_destination_whole(&file->base, data, done);
        /* Who opens a pipe that nobody had open any more is to begin with a whole record. */
        file->partial = why != EPIPE ? done - *written : 0;
        file->partial_crc = nl_crc32c(0, data + *written, file->partial);
        if (why == ETIMEDOUT)
            return nl_error_set("write %s: nobody reads it", name_of(file));
        errno = why;
        return nl_error_set_errno("write %s", name_of(file));
    }
    file->partial = 0;
    *written = size;
    return NL_OK;
}

static nl_status file_write(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written)
{
    (void)level;
    file_destination *file = (file_destination *)destination;
    if (!is_open(file))
        return NL_FAILED;
    if (!file->plain && !file->patient)
        return write_stream(file, data, size, written);
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
    file_destination *file = (file_destination *)destination;
    struct stat status;
    return is_open(file) && file->plain && file->path != NULL && fstat(file->fd, &status) == 0 ? (int64_t)status.st_size
                                                                                               : -1;
}

static nl_status file_reopen(nl_destination *destination)
{
    file_destination *file = (file_destination *)destination;
    if (file->path == NULL || file->temporary != NULL || file->nameless)
        return NL_OK;
    int before = file->fd;
    nl_identity was = file->identity;
    if (open_path(file, false, 0) != NL_OK)
        return NL_FAILED; /* the old one stays in use */
    if (before >= 0)
        nl_identity_close(&was, before);
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
    if (file->path != NULL && file->fd >= 0 && !nl_identity_close(&file->identity, file->fd) && status == NL_OK)
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
    file->patient = options->patient;
    file->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    nl_status status;
    if (url->scheme == NL_SCHEME_STDIO) {
        status = take_descriptor(file, STDOUT_FILENO);
    } else {
        file->path = strdup(url->path);
        NL_REQUIRE(file->path != NULL, "out of memory");
        struct stat old;
        /* A device, a pipe or a symbolic link is written to; replacing it by a file is hardly meant. */
        bool replace = options->atomic && (lstat(file->path, &old) != 0 || S_ISREG(old.st_mode));
        status = replace ? open_temporary(file)
                         : open_path(file, options->truncate || options->atomic, options->now ? 0 : file->timeout_ms);
    }
    if (status == NL_OK)
        return &file->base;
    file_close(&file->base, false);
    return NULL;
}
