/* Wrappers of read(2) and write(2) that handle short results and interruptions. */
#ifndef NETLOGGER_BASE_WRITE_SOME_H
#define NETLOGGER_BASE_WRITE_SOME_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/*
 * Writes at least a part of data. If the descriptor is non-blocking, waits until it is writable. Returns the number of
 * bytes written, or -1 with errno set.
 */
static inline ssize_t nl_write_some(int fd, const char *data, size_t size)
{
    for (;;) {
        ssize_t put = write(fd, data, size);
        if (put >= 0)
            return put;
        if (errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return -1;
        }
    }
}

/* Writes all of data. Returns false with errno on failure; part of data may have been written. */
static inline bool nl_write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = nl_write_some(fd, data, size);
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return false;
        data += put;
        size -= (size_t)put;
    }
    return true;
}

/* Reads size bytes at an offset. Returns false with errno on failure; errno is EIO if the file is too short. */
static inline bool nl_read_all_at(int fd, void *data, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* Writes all of data at an offset. Returns false with errno on failure; part of data may have been written. */
static inline bool nl_write_all_at(int fd, const void *data, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

#endif
