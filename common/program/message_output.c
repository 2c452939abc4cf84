#include "config.h"

#include "program/message_output.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_bool never_wait;
static atomic_ulong dropped_count;

/* Writes text without waiting. Returns false if writing would block. Drops text that no process can read. */
static bool write_at_once(const char *text, size_t size)
{
    struct stat status;
    if (fstat(STDERR_FILENO, &status) != 0)
        return true; /* drop the message, because no process can read it */
    if (S_ISSOCK(status.st_mode))
        return send(STDERR_FILENO, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size || errno != EAGAIN;
    if (S_ISFIFO(status.st_mode)) {
        struct iovec piece = {.iov_base = (void *)(size_t)text, .iov_len = size};
        if (pwritev2(STDERR_FILENO, &piece, 1, -1, RWF_NOWAIT) >= 0)
            return true;
        if (errno != EOPNOTSUPP && errno != ENOSYS)
            return errno != EAGAIN;
    }
    /* A ready pipe accepts PIPE_BUF bytes without waiting. */
    struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&wait, 1, 0) <= 0 || (wait.revents & POLLOUT) == 0)
        return (wait.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    return write(STDERR_FILENO, text, size) >= 0 || errno != EAGAIN;
}

void message_output_never_wait(void)
{
    atomic_store(&never_wait, true);
}

void message_output_report_dropped(const char *name)
{
    unsigned long count = atomic_exchange(&dropped_count, 0);
    if (count == 0)
        return;
    char line[200];
    int size = snprintf(line, sizeof line, "%s: %lu message%s dropped: standard error was blocked\n", name, count,
                        nl_plural(count));
    if (!write_at_once(line, (size_t)size))
        atomic_fetch_add(&dropped_count, count);
}

void message_output_write(const char *name, const char *message)
{
    if (!atomic_load(&never_wait)) {
        fprintf(stderr, "%s: %s\n", name, message);
        return;
    }
    char line[PIPE_BUF];
    int size = snprintf(line, sizeof line, "%s: %s\n", name, message);
    if (size >= (int)sizeof line) {
        size = sizeof line - 1;
        line[size - 1] = '\n';
    }
    message_output_report_dropped(name);
    if (atomic_load(&dropped_count) > 0 || !write_at_once(line, (size_t)size))
        atomic_fetch_add(&dropped_count, 1);
}
