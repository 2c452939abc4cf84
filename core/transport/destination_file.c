/*
 * Files and standard output. If the disk becomes full in the middle of a record, the module truncates a regular file to
 * its last whole record. Each write to a pipe has as many whole records as the kernel writes atomically (PIPE_BUF
 * bytes). Therefore, a killed process leaves no partial record in the pipe, unless the record is longer than PIPE_BUF.
 * The module waits for a pipe's reader only until the timeout.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "record/crc32c.h"
#include "transport/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 10 };

typedef struct file_destination {
    nl_destination base;
    int fd;
    nl_identity identity;       /* identity of the file that fd refers to */
    bool plain;                 /* the file is a regular file, which can be truncated */
    bool patient;               /* wait without limit */
    int timeout_ms;             /* maximum wait, unless patient */
    size_t partial;             /* number of bytes of an incomplete record that were written */
    uint32_t partial_crc;       /* checksum of these bytes */
    char *path;                 /* NULL: standard output */
    nl_replacement replacement; /* used only if the file is atomic */
} file_destination;

static const char *destination_file_name_of(const file_destination *file)
{
    return file->path != NULL ? file->path : "standard output";
}

static nl_status file_use_descriptor(file_destination *file, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return nl_error_set_errno("open %s", destination_file_name_of(file));
    file->fd = fd;
    file->identity = (nl_identity){status.st_dev, status.st_ino};
    file->plain = S_ISREG(status.st_mode);
    file->partial = 0;
    return NL_OK;
}

static bool is_atomic(const file_destination *file)
{
    return file->replacement.path != NULL;
}

static nl_status open_replacement(file_destination *file)
{
    if (!nl_replacement_open(&file->replacement, file->path))
        return nl_error_set_open(file->path);
    return file_use_descriptor(file, file->replacement.fd);
}

/*
 * Uses the descriptor of this process that the path names. Opening the path would give the file two positions, and
 * writes at these positions would overwrite each other. Returns NL_FAILED on failure.
 */
static nl_status file_use_own(file_destination *file, int own)
{
    int fd = (fcntl(own, F_GETFL) & O_ACCMODE) != O_RDONLY ? fcntl(own, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0)
        return nl_error_set(NL_ERROR_INVALID, "open %s: the descriptor is not open for writing", file->path);
    nl_status status = file_use_descriptor(file, fd);
    file->plain = false;
    return status;
}

static bool is_pipe(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Opens a path. If it is a pipe, waits at most wait_ms for a reader. Returns -1 with errno on failure. */
static int open_within(const char *path, int flags, int wait_ms)
{
    int64_t deadline_ns = nl_deadline_ns(wait_ms);
    int fd;
    while ((fd = open(path, flags | O_NONBLOCK, 0666)) < 0 &&
           (errno == EINTR || (errno == ENXIO && nl_monotonic_ns() < deadline_ns && is_pipe(path))))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000}, NULL);
    return fd;
}

/*
 * Opens the file's path. wait_ms is the maximum wait for the reader of a pipe, unless the file is patient. Returns
 * NL_FAILED on failure.
 */
static nl_status open_path(file_destination *file, bool truncate, int wait_ms)
{
    int own = nl_path_descriptor(file->path);
    if (own >= 0)
        return file_use_own(file, own);
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0);
    int fd = file->patient ? open(file->path, flags, 0666) : open_within(file->path, flags, wait_ms);
    if (fd < 0 && errno == ENXIO && is_pipe(file->path))
        return nl_error_set(NL_ERROR_UNREACHABLE, "open %s: no process is reading from the pipe", file->path);
    if (fd < 0)
        return nl_error_set_open(file->path);
    return file_use_descriptor(file, fd);
}

/*
 * After a failed write, removes a partial record from the end of a regular file, unless another process has appended
 * data since.
 */
static void file_truncate_partial(file_destination *file, const char *data, size_t *written)
{
    size_t whole = nl_destination_whole(&file->base, data, *written);
    off_t ours = lseek(file->fd, 0, SEEK_CUR); /* end of the latest append */
    struct stat status;
    if (whole == *written || !file->plain || ours < (off_t)(*written - whole) || fstat(file->fd, &status) != 0 ||
        status.st_size != ours)
        return;
    const off_t end = ours - (off_t)(*written - whole);
    if (ftruncate(file->fd, end) != 0)
        return;
    *written = whole;
    lseek(file->fd, end, SEEK_SET); /* standard output may lack O_APPEND; the next write would then leave a hole */
}

/*
 * Opens the file again if its descriptor was closed or the file was removed, because nobody could read what is written
 * to a removed file. Returns false on failure.
 */
static bool is_open(file_destination *file)
{
    struct stat status;
    if (file->path == NULL)
        return true;
    bool ours = file->fd >= 0 && fstat(file->fd, &status) == 0 && status.st_dev == file->identity.device &&
                status.st_ino == file->identity.inode;
    if (file->fd >= 0 && !ours) {
        if (is_atomic(file))
            return nl_error_set(NL_ERROR_BUSY, "write %s: the program has closed the file", file->path) == NL_OK;
        file->fd = -1; /* the descriptor belongs to another file */
    } else if (ours && file->plain && !is_atomic(file) && status.st_nlink == 0) { /* an atomic file has no name yet */
        close(file->fd);
        file->fd = -1;
    }
    return file->fd >= 0 || open_path(file, false, 0) == NL_OK;
}

/*
 * Returns the number of bytes to write to a pipe in one call. These are whole records, unless a single record is too
 * large.
 */
static size_t piece_of(const file_destination *file, const char *data, size_t size)
{
    if (size <= PIPE_BUF)
        return size;
    size_t whole = nl_destination_whole(&file->base, data, PIPE_BUF);
    return whole > 0 ? whole : PIPE_BUF;
}

/*
 * Writes the first bytes of data. Returns the number of bytes, or -1 with errno, which is ETIMEDOUT after the deadline.
 */
static ssize_t put_piece(const file_destination *file, const char *data, size_t size, int64_t deadline_ns)
{
    for (;;) {
        int error = nl_wait_ready(file->fd, POLLOUT, deadline_ns);
        errno = error;
        ssize_t put = error == 0 ? write(file->fd, data, piece_of(file, data, size)) : -1;
        bool again = put < 0 && (errno == EINTR || errno == EAGAIN);
        if (!again)
            return put;
        if (nl_monotonic_ns() >= deadline_ns) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/*
 * Writes to a pipe or another file that is not regular, and waits for its reader until the timeout. Returns NL_FAILED
 * on failure.
 */
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
        int error = errno;
        *written = nl_destination_whole(&file->base, data, done);
        /* After EPIPE, no process reads the pipe. The next reader must begin with a whole record, so the rest of a
         * partial record is not written. */
        file->partial = error != EPIPE ? done - *written : 0;
        file->partial_crc = nl_crc32c(0, data + *written, file->partial);
        if (error == ETIMEDOUT)
            return nl_error_set(NL_ERROR_UNREACHABLE, "write %s: no process is reading from the pipe",
                                destination_file_name_of(file));
        errno = error;
        return nl_error_set_errno("write %s", destination_file_name_of(file));
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
            int error = errno;
            file_truncate_partial(file, data, written);
            errno = error;
            return nl_error_set_errno("write %s", destination_file_name_of(file));
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

static nl_status put_in_place(file_destination *file)
{
    if (!is_open(file))
        return NL_FAILED;
    return nl_replacement_keep(&file->replacement) ? NL_OK : nl_error_set_errno("write %s", file->path);
}

static nl_status file_close(nl_destination *destination, bool keep)
{
    file_destination *file = (file_destination *)destination;
    nl_status status = NL_OK;
    if (is_atomic(file) && keep)
        status = put_in_place(file);
    nl_replacement_free(&file->replacement);
    if (file->path != NULL && file->fd >= 0 && !nl_identity_close(&file->identity, file->fd) && status == NL_OK)
        status = nl_error_set_errno("close %s", file->path);
    free(file->path);
    free(file);
    return status;
}

static const nl_destination_kind file_kind = {.write = file_write, .size = file_size, .close = file_close};

nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options)
{
    file_destination *file = nl_memory_check(calloc(1, sizeof *file));
    if (file == NULL)
        return NULL;
    file->base.kind = &file_kind;
    file->fd = -1;
    file->patient = options->patient;
    file->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : NL_DESTINATION_TIMEOUT_MS;
    nl_status status;
    if (url->scheme == NL_SCHEME_STDIO) {
        status = file_use_descriptor(file, STDOUT_FILENO);
    } else if ((file->path = strdup(url->path)) == NULL) {
        status = nl_memory_failed();
    } else {
        struct stat old;
        /* Devices, pipes and symbolic links are written, not replaced. */
        bool replace = options->atomic && (lstat(file->path, &old) != 0 || S_ISREG(old.st_mode));
        status = replace ? open_replacement(file)
                         : open_path(file, options->truncate || options->atomic, options->now ? 0 : file->timeout_ms);
    }
    if (status == NL_OK)
        return &file->base;
    file_close(&file->base, false);
    return NULL;
}
