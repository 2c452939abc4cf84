"""A program that logs numbered records, and a library that kills netlogd while netlogd changes its files."""

PROGRAM = r"""
#include <limits.h>
#include <netlogger.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int is_told_to_end(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}
/* client NAME URL COUNT MICROSECONDS: logs numbers, pausing after every hundred. COUNT "-": until its standard input
   ends; then it prints how many. */
int main(int argc, char **argv)
{
    nl_log *log = nl_open(argv[1], argv[2]);
    if (argc < 5 || log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    int endless = argv[3][0] == '-', count = endless ? INT_MAX : atoi(argv[3]), i;
    for (i = 0; i < count; i++) {
        if (i % 100 == 0 && endless && is_told_to_end())
            break;
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "some text");
        if (i % 100 == 0)
            usleep(atoi(argv[4]));
    }
    if (nl_close(log) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    if (endless)
        printf("%d\n", i);
    return 0;
}
"""

# Kills the process at the KILL_ATth call that changes a file: before the call, after the call, or in the middle of a write.
KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is_time(int fd)
{
    static int left = -1;
    char link[40], name[500] = "";
    if (left < 0)
        left = getenv("KILL_AT") ? atoi(getenv("KILL_AT")) : 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (left == 0 || (fd >= 0 && (readlink(link, name, sizeof name - 1) < 0 || strstr(name, "/out/") == NULL)))
        return 0; /* nothing of the output's */
    return --left == 0;
}
static void die(void)
{
    kill(getpid(), SIGKILL);
    pause();
}
ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t (*next)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (is_time(fd)) {
        if (size % 3 != 0)
            next(fd, data, size % 3 == 1 ? size : size / 2);
        die();
    }
    return next(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    ssize_t (*next)(int, const void *, size_t, off_t) =
        (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    if (is_time(fd)) {
        if (size % 2 != 0)
            next(fd, data, size, at);
        die();
    }
    return next(fd, data, size, at);
}
int fdatasync(int fd)
{
    if (is_time(fd))
        die();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
int ftruncate(int fd, off_t size)
{
    if (is_time(fd))
        die();
    return ((int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate"))(fd, size);
}
int rename(const char *from, const char *to)
{
    if (is_time(-1))
        die();
    int result = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
    if (is_time(-1))
        die();
    return result;
}
"""
