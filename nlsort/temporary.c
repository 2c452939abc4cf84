#include "config.h"

#include "temporary.h"

#include "base/write_some.h"
#include "program/program.h"
#include "program/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int temporary_open(const char *directory)
{
    int fd = temporary_file_open(directory);
    if (fd < 0)
        program_fail(PROGRAM_PROBLEM, "cannot %s; use another directory (-T)", nl_error_message());
    return fd;
}

void temporary_write(int fd, const char *directory, const void *data, size_t size)
{
    if (!nl_write_all(fd, data, size))
        program_fail(PROGRAM_PROBLEM,
                     "cannot write a temporary file in %s: %s; use another directory (-T) or more memory (-S)",
                     directory, strerror(errno));
}

void temporary_read(int fd, const char *directory, void *data, size_t size, off_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)data + done, size - done, at + (off_t)done);
        if (got == 0 || (got < 0 && errno != EINTR))
            program_fail(PROGRAM_PROBLEM, "cannot read a temporary file in %s: %s", directory,
                         got == 0 ? "the file was truncated" : strerror(errno));
        done += got > 0 ? (size_t)got : 0;
    }
}

void temporary_expect(int fd, off_t at, off_t size)
{
    posix_fadvise(fd, at, size, POSIX_FADV_WILLNEED);
}

void temporary_forget(int fd, off_t at, off_t size)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
}
