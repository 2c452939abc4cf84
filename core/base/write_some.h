/* write(2) without short writes and interruptions. */
#ifndef NETLOGGER_BASE_WRITE_SOME_H
#define NETLOGGER_BASE_WRITE_SOME_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

/* Writes part of data, and waits if the descriptor is non-blocking. Returns the number of bytes, or -1 with errno. */
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

#endif
