/*
 * Implements two protocols of systemd: the passing of sockets that the service manager opened (LISTEN_PID, LISTEN_FDS,
 * LISTEN_FDNAMES; sd_listen_fds(3)), and notifications to the service manager (NOTIFY_SOCKET; sd_notify(3)). Only one
 * thread may call these functions.
 */
#ifndef NETLOGGER_SERVICE_INHERITED_H
#define NETLOGGER_SERVICE_INHERITED_H

#include <stddef.h>

/* Reads and removes the environment variables. Call it once, before the other functions. */
void inherited_find(void);

/* Returns the number of sockets. */
size_t inherited_count(void);

/*
 * Returns the next descriptor after `after` (0 at first) of a socket with this name. The name "*" matches all sockets.
 * Returns -1 at the end.
 */
int inherited_next(const char *name, int after);

/* Returns the name of a socket. */
const char *inherited_name(int fd);

/* Sends a state, such as "READY=1", to the service manager, if there is one. */
void inherited_notify(const char *state);

#endif
