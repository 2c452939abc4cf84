#include "config.h"

#include "transport/watch.h"

#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Maximum wait in milliseconds with and without inotify. */
enum { TOLD_MS = 1000, UNTOLD_MS = 100 };

void nl_watch_init(nl_watch *watch)
{
    watch->fd = -1;
}

/* Watches the file, and its directory for a new file of that name. Returns false if neither can be watched. */
static bool watch_begin(nl_watch *watch, const char *path)
{
    char folder[PATH_MAX];
    watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0)
        return false;
    int file_watch = inotify_add_watch(watch->fd, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
    snprintf(folder, sizeof folder, "%s", path);
    int folder_watch = inotify_add_watch(watch->fd, dirname(folder), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    if (file_watch >= 0 || folder_watch >= 0)
        return true;
    nl_watch_reset(watch);
    return false;
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

void nl_watch_wait(nl_watch *watch, const char *path, int timeout_ms)
{
    if (watch->fd < 0) {
        if (!watch_begin(watch, path))
            poll(NULL, 0, at_most(timeout_ms, UNTOLD_MS));
        return;
    }
    struct pollfd ready = {.fd = watch->fd, .events = POLLIN};
    if (poll(&ready, 1, at_most(timeout_ms, TOLD_MS)) <= 0)
        return;
    /* Which change it was does not matter. */
    char events[4096];
    while (read(watch->fd, events, sizeof events) > 0)
        ;
}

void nl_watch_reset(nl_watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}
