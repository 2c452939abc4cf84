/*
 * Waiting for a file to grow, to be replaced, or to appear.
 *
 * The kernel tells (inotify) where it can; it cannot on file systems that other machines write to, and a user may be
 * out of inotify instances. So a wait also ends after a while by itself, and the caller looks again.
 */
#ifndef NETLOGGER_TRANSPORT_WATCH_H
#define NETLOGGER_TRANSPORT_WATCH_H

typedef struct nl_watch {
    int fd; /* of inotify; -1 while nothing is watched */
} nl_watch;

/* Before the first use. */
void nl_watch_init(nl_watch *watch);

/*
 * Waits until something may have happened to path or in its folder, at most timeout_ms. The first call after
 * nl_watch_init or nl_watch_reset only begins to watch and returns: what happened before was not seen, so the caller
 * must look once more.
 */
void nl_watch_wait(nl_watch *watch, const char *path, int timeout_ms);

/* Stops watching: the name stands for another file now, or the watch is not needed any more. */
void nl_watch_reset(nl_watch *watch);

#endif
