/*
 * Waits for a file to grow, to be replaced, or to appear, with inotify. inotify does not report changes by other hosts,
 * and a user may have no inotify instances left. So a wait also ends after a while, and the caller checks the file
 * again.
 */
#ifndef NETLOGGER_TRANSPORT_WATCH_H
#define NETLOGGER_TRANSPORT_WATCH_H

typedef struct nl_watch {
    int fd; /* inotify descriptor, or -1 */
} nl_watch;

void nl_watch_init(nl_watch *watch);

/*
 * Waits for a change of path or its directory, at most timeout_ms. The first call only begins to watch and returns,
 * because earlier changes are unknown: the caller must check the file again.
 */
void nl_watch_wait(nl_watch *watch, const char *path, int timeout_ms);

/* Stops watching. */
void nl_watch_reset(nl_watch *watch);

#endif
